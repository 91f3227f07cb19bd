//! Shapefile: shapes and attributes in separate files, or together in a zip archive.

mod dbf;
mod encoding;
mod shp;

use super::spool::archive;
use super::zip::Zip;
use crate::error::{Fault, ReadError};
use crate::input::Input;
use crate::options::ReadOptions;
use crate::read::table::{Cell, Kind, Row, Source};
use crate::reference::{INPUT, check_wkt};
use crate::roles::left_out;
use dbf::{Dbf, RecordStatus};
use meridian_model::Invalid;
use shp::Shp;
use std::io::Read;

/// Max bytes of a `.prj` or `.cpg` file, which holds one line.
const TEXT_BYTES: u64 = 64 << 10;

/// The files of a data set.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) shp: Option<Box<dyn Read + Send>>,
    pub(crate) dbf: Option<Box<dyn Read + Send>>,
    pub(crate) prj: Option<Box<dyn Read + Send>>,
    pub(crate) cpg: Option<Box<dyn Read + Send>>,
}

/// Location of the files.
pub(crate) enum Files {
    /// Separate files.
    Apart(Parts),
    /// One stream: a zip archive, or shapes alone.
    Stream(Box<dyn Read + Send>),
}

/// Records of a data set.
pub(crate) struct Shapefile {
    files: Option<Files>,
    options: ReadOptions,
    shp: Option<Shp>,
    dbf: Option<Dbf>,
    ordinal: u64,
    /// Whether the shapes are read: no option names another place.
    takes_geometry: bool,
    /// Whether a `.prj` file names the reference system.
    has_reference: bool,
    /// The name of the shapes in the zip archive, if it is one.
    packed: Option<String>,
}

impl Shapefile {
    pub(crate) fn new(files: Files, options: &ReadOptions) -> Shapefile {
        Shapefile {
            files: Some(files),
            options: options.clone(),
            shp: None,
            dbf: None,
            ordinal: 0,
            takes_geometry: true,
            has_reference: false,
            packed: None,
        }
    }

    fn parts(&mut self) -> Result<Parts, Fault> {
        match self.files.take() {
            Some(Files::Apart(parts)) => Ok(parts),
            Some(Files::Stream(source)) => {
                let mut input = Input::new(source, &self.options);
                input.has_more()?;
                if !input.available().starts_with(b"PK") {
                    return Ok(Parts { shp: Some(Box::new(input.into_read())), ..Parts::default() });
                }
                self.unpack(Zip::open(archive(Box::new(input.into_read()), self.options.spool_bytes)?)?)
            }
            None => Err(Fault::stop(Invalid::new("the Shapefile was opened twice"))),
        }
    }

    fn unpack(&mut self, zip: Zip) -> Result<Parts, Fault> {
        let stem = |name: &str| {
            // Archives made on a Mac hold a shadow of each file.
            let (stem, ending) = name.rsplit_once('.').filter(|_| !name.starts_with("__MACOSX"))?;
            ending.eq_ignore_ascii_case("shp").then(|| stem.to_owned())
        };
        let stems: Vec<String> = zip.names().filter_map(stem).collect();
        if stems.is_empty() {
            return Err(Fault::stop(Invalid::new("the zip archive holds no .shp file")));
        }
        let stem = super::layer_of(&stems, self.options.layer.as_deref()).map_err(Fault::stop)?;
        let shapes = format!("{stem}.shp");
        self.packed = zip.names().find(|name| name.eq_ignore_ascii_case(&shapes)).map(str::to_owned);
        let file = |ending: &str| zip.file(&format!("{stem}.{ending}"));
        Ok(Parts { shp: file("shp")?, dbf: file("dbf")?, prj: file("prj")?, cpg: file("cpg")? })
    }

    /// Names the shapes in the archive to the command of a refusal: GDAL does not search the folders of an archive.
    fn named(&self, fault: Fault) -> Fault {
        let Some(packed) = &self.packed else { return fault };
        let named = |mistake: Invalid| match mistake.detail.ends_with(INPUT) {
            true => Invalid { detail: format!("{}/{packed}", mistake.detail), ..mistake },
            false => mistake,
        };
        match fault {
            Fault::Event(mistake) => Fault::Event(named(mistake)),
            Fault::Stop(ReadError::Invalid(mistakes)) => {
                Fault::Stop(ReadError::Invalid(mistakes.into_iter().map(named).collect()))
            }
            other => other,
        }
    }

    fn columns(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        let parts = self.parts()?;
        self.has_reference = parts.prj.is_some();
        let encoding = parts.cpg.map(text).transpose()?;
        let shp = parts.shp.ok_or_else(|| Fault::stop(Invalid::new("the .shp file is missing")))?;
        self.shp = Some(Shp::open(Input::new(shp, &self.options))?);
        let mut columns = vec![("geometry".to_owned(), Kind::Shape)];
        if let Some(dbf) = parts.dbf {
            let dbf = Dbf::open(Input::new(dbf, &self.options), encoding.as_deref(), self.options.unknown)?;
            columns.extend(dbf.columns());
            if columns[1..].iter().any(|(name, _)| name == "geometry") {
                columns[0].0 = "@geometry".to_owned();
            }
            self.dbf = Some(dbf);
        }
        self.takes_geometry = self.options.takes(&columns[0].0);
        if self.takes_geometry
            && let Some(prj) = parts.prj
        {
            check_wkt(&text(prj)?).map_err(Fault::stop)?;
        }
        Ok(columns)
    }

    fn record(&mut self, row: &mut Row) -> Result<bool, Fault> {
        let Some(shp) = &mut self.shp else { return Ok(false) };
        // Both files advance before either record is judged, so that they stay in step.
        let shape = loop {
            let shape = shp.next()?;
            match (self.dbf.as_mut().map(Dbf::take).transpose()?, &shape) {
                (None, _) | (Some(RecordStatus::Kept), Some(_)) | (Some(RecordStatus::End), None) => break shape,
                (Some(RecordStatus::Deleted), Some(_)) => self.ordinal += 1,
                _ => {
                    let detail =
                        format!("the .shp and .dbf files part after {} records: was one cut off?", self.ordinal);
                    return Err(Fault::stop(Invalid::new(detail)));
                }
            }
        };
        let Some(shape) = shape else { return Ok(false) };
        self.ordinal += 1;
        if self.takes_geometry
            && let Some(shape) = shape?
        {
            row.set(0, Cell::Shape(&shape.wkb()))?;
        }
        if let Some(dbf) = &self.dbf {
            dbf.set(row, 1)?;
        }
        Ok(true)
    }
}

fn text(source: Box<dyn Read + Send>) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    source.take(TEXT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Source for Shapefile {
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        self.columns().map_err(|fault| self.named(fault))
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, Fault> {
        self.record(row).map_err(|fault| self.named(fault))
    }

    fn notes(&self) -> Vec<String> {
        let reference =
            "no .prj file names the reference system: the positions are read as longitude and latitude in degrees";
        let attributes = "no .dbf file is beside the .shp file: the events have a geometry and no other field";
        let said = [(self.takes_geometry && !self.has_reference, reference), (self.dbf.is_none(), attributes)];
        let said = said.into_iter().filter(|(lacks, _)| *lacks).map(|(_, note)| note.to_owned());
        said.chain(self.dbf.as_ref().and_then(|dbf| left_out(&dbf.left_out))).collect()
    }
}
