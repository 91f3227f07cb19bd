//! Well-known binary: a reader that trusts no input, and GeoJSON and WKT straight from the bytes.

use crate::json_text::coordinate;
use crate::reference::{WGS_84, not_stored};
use crate::shape::Shape;
use crate::survey::Survey;
use geo_types::{Coord, Geometry, LineString, MultiLineString, MultiPoint, MultiPolygon, Point};
use meridian_model::Invalid;
use meridian_model::geometry::VERTICES_MAX;

/// The simple types in the order of their codes, from 1.
const NAMES: [&str; 6] = ["Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"];

/// Types of ISO that are not stored, in the order of their codes, from 8.
const OTHER_NAMES: [&str; 10] = [
    "CircularString",
    "CompoundCurve",
    "CurvePolygon",
    "MultiCurve",
    "MultiSurface",
    "Curve",
    "Surface",
    "PolyhedralSurface",
    "TIN",
    "Triangle",
];

/// A position in WKB bytes.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    vertices: usize,
    survey: Survey,
}

/// Byte order, simple type (1 to 7) and numbers per position of one geometry.
#[derive(Clone, Copy)]
struct Head {
    little: bool,
    kind: u32,
    dimensions: usize,
}

fn wrong(what: &str) -> Invalid {
    Invalid::new(format!("not well-known binary: {what}"))
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8], survey: Survey) -> Cursor<'a> {
        Cursor { bytes, at: 0, vertices: 0, survey }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let taken = self.bytes.get(self.at..self.at + N).and_then(|b| b.try_into().ok());
        self.at += N;
        taken.ok_or_else(|| wrong("it ends before it is complete"))
    }

    fn number(&mut self, little: bool) -> Result<u32, Invalid> {
        let bytes = self.take()?;
        Ok(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn float(&mut self, little: bool) -> Result<f64, Invalid> {
        let bytes = self.take()?;
        Ok(if little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    /// Reads order and type, in the ISO form (thousands for Z and M) and the extended one (high bits).
    fn head(&mut self) -> Result<Head, Invalid> {
        let little = match self.take::<1>()? {
            [0] => false,
            [1] => true,
            _ => return Err(wrong("it begins with neither byte order")),
        };
        let code = self.number(little)?;
        // The flags of PostGIS (EWKB): bits 31 to 29 stand for height, measure and SRID. ISO adds thousands to the
        // type instead; files of both kinds are in use.
        if code & 0x2000_0000 != 0 {
            let srid = self.number(little)?;
            if srid != 0 && !WGS_84.contains(&i64::from(srid)) {
                return Err(Invalid::new(format!("geometry in EPSG:{srid}: expected longitude and latitude")));
            }
        }
        let extended = (code >> 31 & 1) + (code >> 30 & 1);
        let code = code & 0x0fff_ffff;
        let iso = match code / 1000 {
            0 => 0,
            1 | 2 => 1,
            3 => 2,
            _ => return Err(wrong("it has an unknown type")),
        };
        Ok(Head { little, kind: code % 1000, dimensions: 2 + (extended + iso).min(2) as usize })
    }

    /// Reads a count of parts, each of which takes at least `bytes`.
    fn count(&mut self, head: Head, bytes: usize) -> Result<usize, Invalid> {
        let count = self.number(head.little)? as usize;
        // Checked against the remaining bytes before anything is allocated: a damaged count would otherwise reserve up
        // to 64 GB.
        if count > self.bytes.len().saturating_sub(self.at) / bytes {
            return Err(wrong("it ends before it is complete"));
        }
        Ok(count)
    }

    /// Reads a position, unchecked.
    fn pair(&mut self, head: Head) -> Result<(f64, f64), Invalid> {
        self.vertices += 1;
        if self.vertices > VERTICES_MAX {
            return Err(Invalid::new(format!("more than {VERTICES_MAX} vertices are too many")));
        }
        let (x, y) = (self.float(head.little)?, self.float(head.little)?);
        // Skipped here, and reported in `position`: the text writers call this function on shapes without a survey.
        self.at += 8 * (head.dimensions - 2);
        if self.at > self.bytes.len() {
            return Err(wrong("it ends before it is complete"));
        }
        Ok((x, y))
    }

    fn position(&mut self, head: Head) -> Result<Coord<f64>, Invalid> {
        let (x, y) = self.pair(head)?;
        if head.dimensions > 2 {
            self.survey.height()?;
        }
        self.survey.position(x, y)
    }

    fn positions(&mut self, head: Head) -> Result<Vec<Coord<f64>>, Invalid> {
        let count = self.count(head, 8 * head.dimensions)?;
        (0..count).map(|_| self.position(head)).collect()
    }

    fn rings(&mut self, head: Head) -> Result<Vec<Vec<Coord<f64>>>, Invalid> {
        let count = self.count(head, 4)?;
        (0..count).map(|_| self.positions(head)).collect()
    }

    /// Reads the parts of a multi form, which are whole geometries of one type.
    fn parts<T>(
        &mut self,
        head: Head,
        kind: u32,
        read: impl Fn(&mut Self, Head) -> Result<T, Invalid>,
    ) -> Result<Vec<T>, Invalid> {
        let count = self.count(head, 5)?;
        (0..count)
            .map(|_| {
                let part = self.head()?;
                if part.kind != kind {
                    return Err(wrong("a part of a multi geometry has another type"));
                }
                read(self, part)
            })
            .collect()
    }
}

/// Decodes well-known binary in any of its forms; `None` for an empty point.
pub(crate) fn read(bytes: &[u8], survey: &mut Survey) -> Result<Option<Shape>, Invalid> {
    let mut cursor = Cursor::new(bytes, *survey);
    let shape = read_shape(&mut cursor)?;
    if cursor.at != bytes.len() {
        return Err(wrong("something follows its end"));
    }
    *survey = cursor.survey;
    Ok(shape)
}

fn read_shape(cursor: &mut Cursor<'_>) -> Result<Option<Shape>, Invalid> {
    let head = cursor.head()?;
    Ok(match head.kind {
        1 => {
            let start = cursor.at;
            let (x, y) = cursor.pair(head)?;
            // An empty point is written as a pair of NaN.
            if x.is_nan() && y.is_nan() {
                return Ok(None);
            }
            // Read again as a position, which checks heights: an empty point is no reason to refuse one.
            cursor.at = start;
            Some(Shape::Point(cursor.position(head)?))
        }
        2 => Some(Shape::Other(LineString::new(cursor.positions(head)?).into())),
        3 => {
            let rings = cursor.rings(head)?;
            Some(Shape::Other(cursor.survey.polygon(rings)?.into()))
        }
        4 => {
            let points = cursor.parts(head, 1, |c, h| c.position(h).map(Point))?;
            Some(Shape::Other(MultiPoint::new(points).into()))
        }
        5 => {
            let lines = cursor.parts(head, 2, |c, h| c.positions(h).map(LineString::new))?;
            Some(Shape::Other(MultiLineString::new(lines).into()))
        }
        6 => {
            let polygons = cursor.parts(head, 3, |c, h| c.rings(h).and_then(|rings| c.survey.part(rings)))?;
            let polygons = polygons.into_iter().flatten().collect();
            Some(Shape::Other(Geometry::MultiPolygon(MultiPolygon::new(polygons))))
        }
        7 => {
            return Err(Invalid::new("a GeometryCollection is not supported: send its members as separate events"));
        }
        other => {
            let name = OTHER_NAMES.get(other.wrapping_sub(8) as usize);
            return Err(name.map_or_else(|| wrong("it has an unknown type"), |name| Invalid::new(not_stored(name))));
        }
    })
}

/// Syntax of nested positions in text.
struct Style {
    open: u8,
    close: u8,
    between: u8,
    /// Opening and closing byte of a single position, if any.
    point: Option<(u8, u8)>,
}

const GEOJSON: Style = Style { open: b'[', close: b']', between: b',', point: Some((b'[', b']')) };
const WKT: Style = Style { open: b'(', close: b')', between: b' ', point: None };

/// Appends a geometry of a batch as GeoJSON, without decoding it into shapes; `null` if the bytes are damaged.
pub(crate) fn write_geojson(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut cursor = Cursor::new(bytes, Survey::default());
    let done = cursor.head().and_then(|head| {
        let name = NAMES.get(head.kind.wrapping_sub(1) as usize).ok_or_else(|| wrong("unknown type"))?;
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"coordinates\":");
        write_coordinates(&mut cursor, head, &GEOJSON, out)?;
        out.push(b'}');
        Ok(())
    });
    if done.is_err() {
        // A partial geometry would make the whole response invalid.
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends a geometry of a batch as WKT; nothing if the bytes are damaged.
pub(crate) fn write_wkt(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut cursor = Cursor::new(bytes, Survey::default());
    let done = cursor.head().and_then(|head| {
        let name = NAMES.get(head.kind.wrapping_sub(1) as usize).ok_or_else(|| wrong("unknown type"))?;
        out.extend(name.bytes().map(|b| b.to_ascii_uppercase()));
        out.push(b' ');
        if head.kind == 1 {
            out.push(b'(');
            write_coordinates(&mut cursor, head, &WKT, out)?;
            out.push(b')');
            return Ok(());
        }
        write_coordinates(&mut cursor, head, &WKT, out)
    });
    if done.is_err() {
        out.truncate(start);
    }
}

fn write_position(cursor: &mut Cursor<'_>, head: Head, style: &Style, out: &mut Vec<u8>) -> Result<(), Invalid> {
    let (x, y) = cursor.pair(head)?;
    if let Some((open, _)) = style.point {
        out.push(open);
    }
    coordinate(x, out);
    out.push(style.between);
    coordinate(y, out);
    if let Some((_, close)) = style.point {
        out.push(close);
    }
    Ok(())
}

fn write_coordinates(cursor: &mut Cursor<'_>, head: Head, style: &Style, out: &mut Vec<u8>) -> Result<(), Invalid> {
    if head.kind == 1 {
        return write_position(cursor, head, style, out);
    }
    let smallest = match head.kind {
        2 => 8 * head.dimensions,
        3 => 4,
        _ => 5,
    };
    let count = cursor.count(head, smallest)?;
    out.push(style.open);
    for i in 0..count {
        if i > 0 {
            out.push(b',');
        }
        match head.kind {
            2 => write_position(cursor, head, style, out)?,
            // The rings of a polygon are laid out as lines without a header.
            3 => write_coordinates(cursor, Head { kind: 2, ..head }, style, out)?,
            4..=6 => {
                let part = cursor.head()?;
                if part.kind != head.kind - 3 {
                    return Err(wrong("a part of a multi geometry has another type"));
                }
                write_coordinates(cursor, part, style, out)?;
            }
            _ => return Err(wrong("unknown type")),
        }
    }
    out.push(style.close);
    Ok(())
}

#[cfg(test)]
mod tests;
