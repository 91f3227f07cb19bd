//! Sources of records for the columnar formats: streams, and files that are read in place.

use super::arrow::Ipc;
use super::columnar::Batches;
#[cfg(feature = "flatgeobuf")]
use super::flatgeobuf::FlatGeobuf;
#[cfg(feature = "geopackage")]
use super::geopackage::{Database, GeoPackage};
use super::gpx::Gpx;
use super::gtfs_rt::GtfsRt;
use super::kml::Kml;
use super::nmea::Nmea;
use super::parquet::Parquet;
use super::shapefile::{Files, Parts, Shapefile};
use super::spool::{archive, spool};
use super::table::{RecordBatcher, Source};
use super::zip::Zip;
use crate::compress::peek;
use crate::error::ReadError;
use crate::format::Format;
use crate::options::ReadOptions;
use crate::report::SharedUnread;
use meridian_model::Invalid;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A source of bytes.
type Bytes = Box<dyn Read + Send>;

/// Returns record batches of a stream.
pub(crate) fn stream(format: Format, input: Bytes, options: &ReadOptions) -> Result<Box<dyn Batches>, ReadError> {
    Ok(match format {
        Format::Arrow => Box::new(Ipc::new(input, options.spool_bytes, options.watch.clone())),
        Format::GeoParquet => Box::new(Parquet::new(spool(input, options.spool_bytes, "Parquet")?)),
        #[cfg(feature = "flatgeobuf")]
        Format::FlatGeobuf => tabled(FlatGeobuf::new(input, options)),
        #[cfg(feature = "geopackage")]
        Format::GeoPackage => tabled(GeoPackage::new(Database::Stream(input), options)),
        Format::Shapefile => tabled(Shapefile::new(Files::Stream(input), options)),
        Format::Gpx => tabled(Gpx::new(input, options)),
        Format::Nmea => tabled(Nmea::new(input, options)),
        Format::GtfsRt => tabled(GtfsRt::new(input, options)),
        other => return Err(absent(other).into()),
    })
}

/// Returns record batches of a file that is read in place; `None` for a format that is read as a stream.
pub(crate) fn in_place(
    format: Format,
    path: &Path,
    options: &ReadOptions,
) -> Result<Option<Box<dyn Batches>>, ReadError> {
    Ok(Some(match format {
        Format::GeoParquet => Box::new(Parquet::new(file(path)?)),
        #[cfg(feature = "geopackage")]
        Format::GeoPackage => tabled(GeoPackage::new(Database::File(path.to_owned()), options)),
        Format::Shapefile if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("shp")) => {
            let beside = |endings: [&str; 2]| endings.iter().find_map(|ending| open(&path.with_extension(ending)).ok());
            let parts = Parts {
                shp: Some(open(path)?),
                dbf: beside(["dbf", "DBF"]),
                prj: beside(["prj", "PRJ"]),
                cpg: beside(["cpg", "CPG"]),
            };
            tabled(Shapefile::new(Files::Apart(parts), options))
        }
        _ => return Ok(None),
    }))
}

/// Returns the features of a KML document, or of all documents in a KMZ archive, as newline-delimited JSON.
pub(crate) fn kml(input: Bytes, options: &ReadOptions, unread: &SharedUnread) -> Result<Bytes, ReadError> {
    let (first, document) = peek(input, 2)?;
    if first != b"PK" {
        return Ok(Box::new(Kml::new(document, options, unread)));
    }
    let zip = Zip::open(archive(document, options.spool_bytes)?)?;
    let names = zip.names().filter(|name| name.to_ascii_lowercase().ends_with(".kml")).map(str::to_owned);
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return Err(Invalid::new("the KMZ archive holds no .kml file").into());
    }
    let (options, unread) = (options.clone(), unread.clone());
    Ok(Box::new(Kmz { zip, names: names.into_iter(), document: None, options, unread }))
}

/// The documents of a KMZ archive, in order: the first may only link to the others.
struct Kmz {
    zip: Zip,
    names: std::vec::IntoIter<String>,
    document: Option<Kml>,
    options: ReadOptions,
    unread: SharedUnread,
}

impl Read for Kmz {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.document.as_mut().map_or(Ok(0), |document| document.read(out))?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Some(name) = self.names.next() else { return Ok(0) };
            let file = self.zip.file(&name).map_err(|fault| super::kml::io_error(fault.into()))?;
            self.document = file.map(|file| Kml::new(file, &self.options, &self.unread));
        }
    }
}

/// Opens a file to be read as a stream.
pub(crate) fn open(path: &Path) -> Result<Bytes, ReadError> {
    Ok(Box::new(file(path)?))
}

#[allow(clippy::disallowed_methods, reason = "an input that a command line names, outside of the store")]
fn file(path: &Path) -> Result<File, ReadError> {
    File::open(path).map_err(ReadError::Io)
}

fn tabled(source: impl Source + 'static) -> Box<dyn Batches> {
    Box::new(RecordBatcher::new(source))
}

fn absent(format: Format) -> Invalid {
    let convert = crate::reference::convert_to("geojsonl");
    Invalid::new(format!("this build of Meridian is without {format} (a feature of its build): {convert}"))
}
