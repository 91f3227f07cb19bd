//! FlatGeobuf, as a stream: the header, the index (skipped), then the features.

use super::table::{Cell, Kind, Row, Source};
use crate::error::Fault;
use crate::input::Input;
use crate::options::{ReadOptions, Unknown};
use crate::reference::{check_code, check_wkt, convert};
use crate::roles::left_out;
use crate::values::single;
use crate::wkb_out::{Parts, Path, Position};
use flatgeobuf::{
    ColumnType, Geometry, GeometryType, Header, size_prefixed_root_as_feature, size_prefixed_root_as_header,
};
use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::io::Read;

/// Bytes of the mark and the version at the start.
const MAGIC_BYTES: usize = 8;
/// Bytes of a node of the index: a box and an offset.
const NODE_BYTES: u64 = 40;

/// Features of a FlatGeobuf file, of which one is held at a time.
pub(crate) struct FlatGeobuf {
    input: Input,
    options: ReadOptions,
    /// Each column: its name, its type in the file, and its index among the kept columns.
    columns: Vec<(String, ColumnType, Option<usize>)>,
    /// Columns that are left out, as their types are not kept.
    left_out: Vec<String>,
    /// Whether the geometry is read: no option names another place.
    takes_geometry: bool,
    shape: GeometryType,
    heights: bool,
    ordinal: u64,
    /// The announced number of features; 0 if unknown.
    announced: u64,
}

impl FlatGeobuf {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> FlatGeobuf {
        FlatGeobuf {
            input: Input::new(source, options),
            options: options.clone(),
            columns: Vec::new(),
            left_out: Vec::new(),
            takes_geometry: true,
            shape: GeometryType::Unknown,
            heights: false,
            ordinal: 0,
            announced: 0,
        }
    }

    /// Returns the next size-prefixed message with its prefix, as the verifier aligns values from there.
    fn message(&mut self, what: &str) -> Result<Option<Vec<u8>>, Fault> {
        let line = self.ordinal + 1;
        let Some(prefix) = self.input.exactly(4, line, what)? else { return Ok(None) };
        let prefix: [u8; 4] = self.input.bytes(prefix).try_into().unwrap_or_default();
        let size = u32::from_le_bytes(prefix) as usize;
        let body = self.input.needed(size, line, what)?;
        Ok(Some([&prefix, self.input.bytes(body)].concat()))
    }

    fn read_header(&mut self, header: &Header<'_>) -> Result<Vec<(String, Kind)>, Invalid> {
        self.shape = header.geometry_type();
        self.heights = header.has_z() || header.has_m();
        self.announced = header.features_count();
        let mut kept = vec![("geometry".to_owned(), Kind::Shape)];
        for column in header.columns().into_iter().flatten() {
            let kind = match column.type_() {
                ColumnType::Byte
                | ColumnType::UByte
                | ColumnType::Short
                | ColumnType::UShort
                | ColumnType::Int
                | ColumnType::UInt
                | ColumnType::Long
                | ColumnType::ULong => Some(Kind::Int),
                ColumnType::Float | ColumnType::Double => Some(Kind::Float),
                ColumnType::Bool => Some(Kind::Bool),
                ColumnType::String | ColumnType::Json | ColumnType::DateTime => Some(Kind::Text),
                _ if self.options.unknown == Unknown::Ignore => {
                    self.left_out.push(column.name().to_owned());
                    None
                }
                _ => {
                    let detail = "a column of bytes, which is not kept: --ignore-unknown leaves it out";
                    return Err(Invalid::field(shorten(column.name()), detail));
                }
            };
            let mut name = column.name().to_owned();
            // The geometry has no name in this format, so it gives way.
            if kept.first().is_some_and(|(geometry, _)| *geometry == name) {
                kept[0].0 = format!("@{name}");
            }
            name.truncate(name.floor_char_boundary(meridian_model::schema::NAME_BYTES_MAX * 2));
            self.columns.push((name.clone(), column.type_(), kind.map(|_| kept.len())));
            kept.extend(kind.map(|kind| (name, kind)));
        }
        self.takes_geometry = self.options.takes(&kept[0].0);
        if self.takes_geometry
            && let Some(crs) = header.crs()
        {
            match crs.wkt() {
                Some(wkt) if crs.code() <= 0 => check_wkt(wkt)?,
                _ => check_code(crs.org().unwrap_or("EPSG"), i64::from(crs.code()))?,
            }
        }
        Ok(kept)
    }

    fn properties(&self, bytes: &[u8], row: &mut Row) -> Result<(), Invalid> {
        let mut rest = Values { bytes };
        while !rest.bytes.is_empty() {
            let at = u16::from_le_bytes(rest.take()?) as usize;
            let (name, kind, place) = self
                .columns
                .get(at)
                .ok_or_else(|| Invalid::new(format!("a value of column {at}, which is not there")))?;
            let cell = rest.value(*kind).map_err(|e| crate::values::blame(e, name))?;
            if let (Some(place), Some(cell)) = (place, cell) {
                row.set(*place, cell)?;
            }
        }
        Ok(())
    }
}

impl Source for FlatGeobuf {
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        let magic = self.input.needed(MAGIC_BYTES, 1, "the mark of FlatGeobuf")?;
        let magic = self.input.bytes(magic);
        if !magic.starts_with(b"fgb") || &magic[4..7] != b"fgb" {
            return Err(Fault::stop(Invalid::new("not FlatGeobuf: the mark fgb is missing").at_line(1)));
        }
        if magic[3] > flatgeobuf::VERSION {
            let detail = format!("FlatGeobuf of version {} is newer than {}", magic[3], flatgeobuf::VERSION);
            return Err(Fault::stop(Invalid::new(detail).at_line(1)));
        }
        let message = self.message("the header")?.unwrap_or_default();
        let header = size_prefixed_root_as_header(&message).map_err(|_| damaged("the header"))?;
        let columns = self.read_header(&header).map_err(Fault::stop)?;
        let index = index_bytes(header.features_count(), header.index_node_size());
        self.input.skip(index.ok_or_else(|| damaged("the size of the index"))?, "the index")?;
        Ok(columns)
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, Fault> {
        let Some(message) = self.message("a feature")? else {
            if self.announced > 0 && self.ordinal < self.announced {
                let detail =
                    format!("{} features where the header says {}: was it cut off?", self.ordinal, self.announced);
                return Err(Fault::stop(Invalid::new(detail)));
            }
            return Ok(false);
        };
        self.ordinal += 1;
        let feature = size_prefixed_root_as_feature(&message).map_err(|_| damaged("a feature"))?;
        if feature.columns().is_some_and(|own| !own.is_empty()) {
            return Err(Invalid::new(format!("the feature has columns of its own: {}", convert())).into());
        }
        if self.takes_geometry
            && let Some(geometry) = feature.geometry()
            && let Some(parts) = self.parts(&geometry)?
        {
            row.set(0, Cell::Shape(&parts.wkb()))?;
        }
        if let Some(properties) = feature.properties() {
            self.properties(properties.bytes(), row)?;
        }
        Ok(true)
    }

    fn notes(&self) -> Vec<String> {
        left_out(&self.left_out).into_iter().collect()
    }
}

impl FlatGeobuf {
    /// Returns the parts of a geometry; `None` for an empty one.
    fn parts(&self, geometry: &Geometry<'_>) -> Result<Option<Parts>, Invalid> {
        let kind = match (self.shape, geometry.type_()) {
            (GeometryType::Unknown, own) => own,
            (all, _) => all,
        };
        let path = self.path(geometry)?;
        let parts = geometry.parts().filter(|parts| !parts.is_empty());
        if path.is_empty() && parts.is_none() {
            return Ok(None);
        }
        // Positions are in the geometry itself, but for the types of several parts.
        Ok(Some(match (kind, parts) {
            (GeometryType::Point, None) if path[0].x.is_nan() => return Ok(None),
            (GeometryType::Point, None) if path.len() == 1 => Parts::Point(path[0]),
            (GeometryType::LineString, None) => Parts::Line(path),
            (GeometryType::Polygon, None) => Parts::Polygon(cut(path, geometry)?),
            (GeometryType::MultiPoint, None) => Parts::Points(path),
            (GeometryType::MultiLineString, None) => Parts::Lines(cut(path, geometry)?),
            (GeometryType::MultiPolygon, Some(parts)) if path.is_empty() => {
                let polygon = |part: Geometry<'_>| cut(self.path(&part)?, &part);
                Parts::Polygons(parts.into_iter().map(polygon).collect::<Result<Vec<_>, _>>()?)
            }
            (GeometryType(1..=6), _) => {
                let detail = "the geometry has its positions where its type has none";
                return Err(Invalid::field("geometry", format!("{detail}: {}", convert())));
            }
            (GeometryType::GeometryCollection, _) => {
                return Err(Invalid::field(
                    "geometry",
                    "a GeometryCollection is not supported: send its members as separate events",
                ));
            }
            (other, _) => {
                let name = other.variant_name().unwrap_or("of an unknown type");
                return Err(Invalid::field("geometry", crate::reference::not_stored(name)));
            }
        }))
    }

    fn path(&self, geometry: &Geometry<'_>) -> Result<Path, Invalid> {
        let Some(xy) = geometry.xy() else { return Ok(Path::new()) };
        let heights = geometry.z().or(geometry.m()).filter(|_| self.heights);
        let at = |i: usize| Position {
            x: xy.get(2 * i),
            y: xy.get(2 * i + 1),
            z: heights.and_then(|z| (i < z.len()).then(|| z.get(i))),
        };
        Ok((0..xy.len() / 2).map(at).collect())
    }
}

/// Splits positions at the ends that the geometry lists.
fn cut(path: Path, geometry: &Geometry<'_>) -> Result<Vec<Path>, Invalid> {
    let Some(ends) = geometry.ends().filter(|ends| !ends.is_empty()) else { return Ok(vec![path]) };
    let mut from = 0;
    let mut parts = Vec::new();
    for end in ends {
        let part = path
            .get(from..end as usize)
            .ok_or_else(|| Invalid::field("geometry", "its parts overlap or pass its end"))?;
        parts.push(part.to_vec());
        from = end as usize;
    }
    if from < path.len() {
        return Err(Invalid::field("geometry", "its parts end before it does"));
    }
    Ok(parts)
}

/// Returns the bytes of an index over this many features; `None` if the numbers are impossible.
fn index_bytes(features: u64, node_size: u16) -> Option<u64> {
    if features == 0 || node_size == 0 {
        return Some(0);
    }
    let node = u64::from(node_size.max(2));
    let (mut level, mut nodes) = (features, features);
    while level != 1 {
        level = level.div_ceil(node);
        nodes = nodes.checked_add(level)?;
    }
    // A single feature has a leaf and a root.
    if features == 1 {
        nodes += 1;
    }
    nodes.checked_mul(NODE_BYTES)
}

fn damaged(what: &str) -> Fault {
    Fault::stop(Invalid::new(format!("the FlatGeobuf data is damaged: {what} does not read")))
}

/// Property values still to be read.
struct Values<'a> {
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or_else(|| Invalid::new("the value is cut off"))?;
        self.bytes = rest;
        Ok(*head)
    }

    fn long(&mut self) -> Result<&'a [u8], Invalid> {
        let length = u32::from_le_bytes(self.take()?) as usize;
        let (head, rest) = self.bytes.split_at_checked(length).ok_or_else(|| Invalid::new("the value is cut off"))?;
        self.bytes = rest;
        Ok(head)
    }

    /// Returns the next value; `None` for bytes, which are not kept.
    fn value(&mut self, kind: ColumnType) -> Result<Option<Cell<'a>>, Invalid> {
        Ok(Some(match kind {
            ColumnType::Byte => Cell::Int(i64::from(i8::from_le_bytes(self.take()?))),
            ColumnType::UByte => Cell::Int(i64::from(u8::from_le_bytes(self.take()?))),
            ColumnType::Bool => Cell::Bool(u8::from_le_bytes(self.take()?) != 0),
            ColumnType::Short => Cell::Int(i64::from(i16::from_le_bytes(self.take()?))),
            ColumnType::UShort => Cell::Int(i64::from(u16::from_le_bytes(self.take()?))),
            ColumnType::Int => Cell::Int(i64::from(i32::from_le_bytes(self.take()?))),
            ColumnType::UInt => Cell::Int(i64::from(u32::from_le_bytes(self.take()?))),
            ColumnType::Long => Cell::Int(i64::from_le_bytes(self.take()?)),
            ColumnType::ULong => {
                let n = u64::from_le_bytes(self.take()?);
                let fits = i64::try_from(n);
                Cell::Int(fits.map_err(|_| Invalid::new(format!("the integer {n} is too large for 64 signed bits")))?)
            }
            // Takes the shortest text of the single-precision number: 0.1 stays 0.1.
            ColumnType::Float => Cell::Float(single(f32::from_le_bytes(self.take()?))),
            ColumnType::Double => Cell::Float(f64::from_le_bytes(self.take()?)),
            ColumnType::String | ColumnType::Json | ColumnType::DateTime => {
                Cell::Text(crate::input::utf8(self.long()?)?)
            }
            _ => {
                self.long()?;
                return Ok(None);
            }
        }))
    }
}
