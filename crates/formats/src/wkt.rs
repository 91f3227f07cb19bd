//! Well-known text.

use crate::options::ReadOptions;
use crate::shape::Shape;
use crate::survey::Survey;
use geo_types::{Coord, LineString, MultiLineString, MultiPoint, MultiPolygon, Point};
use meridian_model::geometry::VERTICES_MAX;
use meridian_model::{GeometryType, Invalid};

struct Text<'a> {
    text: &'a str,
    at: usize,
    vertices: usize,
    survey: Survey,
}

impl Text<'_> {
    fn wrong(&self, expected: &str) -> Invalid {
        // Counted in characters, as an editor does, though the parser works on bytes.
        let character = self.text.get(..self.at).map_or(0, |t| t.chars().count()) + 1;
        Invalid::new(format!("not well-known text: {expected} was expected at character {character}"))
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn word(&mut self) -> &str {
        self.peek();
        let from = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_alphabetic) {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, name: &str) -> Result<(), Invalid> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong(name)) }
    }

    fn number(&mut self) -> Result<f64, Invalid> {
        self.peek();
        let from = self.at;
        // Letters too: `1e5` has one, and for a token such as `12x` the error must name the start.
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        while self.text.as_bytes().get(self.at).is_some_and(part) {
            self.at += 1;
        }
        self.text[from..self.at].parse().map_err(|_| {
            self.at = from;
            self.wrong("a number")
        })
    }

    fn position(&mut self) -> Result<Coord<f64>, Invalid> {
        self.vertices += 1;
        if self.vertices > VERTICES_MAX {
            return Err(Invalid::new(format!("more than {VERTICES_MAX} vertices are too many")));
        }
        let (x, y) = (self.number()?, self.number()?);
        // A height and a measure may follow.
        for _ in 0..2 {
            if !matches!(self.peek(), Some(b',' | b')') | None) {
                self.number()?;
                self.survey.height()?;
            }
        }
        self.survey.position(x, y)
    }

    /// `( item , item … )`
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Invalid>) -> Result<Vec<T>, Invalid> {
        self.expect(b'(', "'('")?;
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if !self.take(b',') {
                self.expect(b')', "',' or ')'")?;
                return Ok(items);
            }
        }
    }

    fn positions(&mut self) -> Result<Vec<Coord<f64>>, Invalid> {
        self.list(Self::position)
    }

    fn rings(&mut self) -> Result<Vec<Vec<Coord<f64>>>, Invalid> {
        self.list(Self::positions)
    }
}

/// Returns whether a text begins like well-known text.
pub(crate) fn looks_like(text: &str) -> bool {
    let text = text.trim_start();
    let word: String = text.chars().take_while(char::is_ascii_alphabetic).take(20).collect();
    let rest = text[word.len()..].trim_start();
    let known =
        ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"];
    let shape =
        known.iter().any(|k| k.eq_ignore_ascii_case(&word)) && rest.starts_with(['(', 'Z', 'M', 'E', 'z', 'm', 'e']);
    shape || (word.eq_ignore_ascii_case("SRID") && rest.starts_with('='))
}

/// Returns the type of a geometry in a sample; `None` if unreadable, which is left to the reader to report.
pub(crate) fn kind(text: &str, options: &ReadOptions) -> Option<GeometryType> {
    let shape = read(text, &mut Survey::for_kinds(options)).ok().flatten()?;
    shape.kind_when_mended(options.mend)
}

/// Reads well-known text, also with `SRID=4326;` before it; `None` for an empty geometry.
pub(crate) fn read(text: &str, survey: &mut Survey) -> Result<Option<Shape>, Invalid> {
    let mut rest = text;
    // EWKT, as PostGIS writes it. The prefix is not part of well-known text.
    if let Some((srid, after)) = text.split_once(';')
        && let Some((word, number)) = srid.split_once('=')
        && word.trim().eq_ignore_ascii_case("srid")
    {
        if number.trim() != "4326" {
            let srid = meridian_model::error::shorten(number.trim());
            return Err(Invalid::new(format!("geometry in EPSG:{srid}: expected longitude and latitude (4326)")));
        }
        rest = after;
    }
    let mut text = Text { text: rest, at: 0, vertices: 0, survey: *survey };
    let kind = text.word().to_ascii_uppercase();
    let mut dimension = text.word().to_ascii_uppercase();
    if matches!(dimension.as_str(), "Z" | "M" | "ZM") {
        dimension = text.word().to_ascii_uppercase();
    }
    // An empty geometry is not a place: the event has none, as with null.
    if dimension == "EMPTY" && text.peek().is_none() {
        return Ok(None);
    }
    if !dimension.is_empty() {
        return Err(text.wrong("'('"));
    }
    let shape = match kind.as_str() {
        "POINT" => {
            text.expect(b'(', "'('")?;
            let at = text.position()?;
            text.expect(b')', "')'")?;
            Shape::Point(at)
        }
        "LINESTRING" => Shape::Other(LineString::new(text.positions()?).into()),
        "POLYGON" => {
            let rings = text.rings()?;
            Shape::Other(text.survey.polygon(rings)?.into())
        }
        "MULTIPOINT" => {
            // Each point may be in its own parentheses, or not.
            let points = text.list(|t| {
                let enclosed = t.take(b'(');
                let at = t.position()?;
                if enclosed {
                    t.expect(b')', "')'")?;
                }
                Ok(Point(at))
            })?;
            Shape::Other(MultiPoint::new(points).into())
        }
        "MULTILINESTRING" => {
            let lines = text.rings()?.into_iter().map(LineString::new).collect();
            Shape::Other(MultiLineString::new(lines).into())
        }
        "MULTIPOLYGON" => {
            let polygons = text.list(|t| t.rings().and_then(|rings| t.survey.part(rings)))?;
            Shape::Other(MultiPolygon::new(polygons.into_iter().flatten().collect()).into())
        }
        "GEOMETRYCOLLECTION" => {
            return Err(Invalid::new("a GeometryCollection is not supported: send its members as separate events"));
        }
        _ => {
            text.at = 0;
            return Err(text.wrong("POINT, LINESTRING, POLYGON or a multi form"));
        }
    };
    match text.peek() {
        None => {
            *survey = text.survey;
            Ok(Some(shape))
        }
        Some(_) => Err(text.wrong("the end")),
    }
}

/// Reads a column of shapes in text: well-known text, or well-known binary in hexadecimal digits as databases export
/// it.
pub(crate) fn read_text_or_hex(text: &str, survey: &mut Survey) -> Result<Option<Shape>, Invalid> {
    let bytes = text.as_bytes();
    // Hexadecimal WKB begins with the byte order, 00 or 01. No WKT begins with a digit.
    if bytes.first() == Some(&b'0') && bytes.len().is_multiple_of(2) && bytes.iter().all(u8::is_ascii_hexdigit) {
        let digit = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
        let binary: Vec<u8> = bytes.chunks_exact(2).map(|p| digit(p[0]) << 4 | digit(p[1])).collect();
        return crate::wkb::read(&binary, survey);
    }
    read(text, survey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo_types::Geometry;
    use meridian_model::geometry;

    fn read(text: &str) -> Result<Option<Shape>, Invalid> {
        super::read(text, &mut Survey::default())
    }

    fn read_text_or_hex(text: &str) -> Result<Option<Shape>, Invalid> {
        super::read_text_or_hex(text, &mut Survey::default())
    }

    #[test]
    fn every_type_reads_and_is_written_back() {
        for text in [
            "POINT (1 2.5)",
            "LINESTRING (1 2,3 4)",
            "POLYGON ((0 0,4 0,4 4,0 0),(1 0.5,2 0.5,2 1,1 0.5))",
            "MULTIPOINT ((1 2),(3 4))",
            "MULTILINESTRING ((1 2,3 4),(5 6,7 8))",
            "MULTIPOLYGON (((0 0,1 0,1 1,0 0)),((2 2,3 2,3 3,2 2)))",
        ] {
            let shape = read(text).unwrap().unwrap();
            let shape = match shape {
                Shape::Point(at) => Geometry::Point(Point(at)),
                Shape::Other(shape) => shape,
            };
            let binary = geometry::to_wkb(&shape);
            let mut out = Vec::new();
            crate::wkb::write_wkt(&binary, &mut out);
            let written = String::from_utf8(out).unwrap();
            assert_eq!(read(&written).unwrap(), read(text).unwrap(), "{written}");
            assert!(looks_like(&written));
            let hex: String = binary.iter().map(|b| format!("{b:02X}")).collect();
            assert_eq!(read_text_or_hex(&hex).unwrap(), read(text).unwrap());
        }
    }

    #[test]
    fn other_ways_of_writing_are_read() {
        let point = Some(Shape::Point(Coord { x: 1.0, y: 2.0 }));
        for text in ["point(1 2)", "SRID=4326;POINT(1 2)", "POINT(1e0 +2.0)"] {
            assert_eq!(read(text).unwrap(), point, "{text}");
        }
        assert_eq!(read("MULTIPOINT(1 2, 3 4)").unwrap(), read("MULTIPOINT((1 2),(3 4))").unwrap());
        assert_eq!(read("POLYGON EMPTY").unwrap(), None);
    }

    #[test]
    fn heights_are_refused_or_dropped_as_asked() {
        use crate::options::Unknown;
        use crate::survey::EventNotes;
        let mut drops = Survey::new(&ReadOptions { heights: Unknown::Ignore, ..ReadOptions::default() });
        for text in [
            " POINT Z (1 2 3)",
            "POINT ZM(1 2 3 4)",
            "POINT(1 2 3)",
            "01E9030000000000000000F03F00000000000000400000000000000840",
        ] {
            let error = read_text_or_hex(text).unwrap_err();
            assert!(error.not_kept && error.detail.contains("height"), "{text}: {error}");
            let shape = super::read_text_or_hex(text, &mut drops).unwrap();
            assert_eq!(shape, Some(Shape::Point(Coord { x: 1.0, y: 2.0 })), "{text}");
            assert!(drops.take().has(EventNotes::HEIGHTS), "{text}");
        }
        assert!(!drops.take().has(EventNotes::HEIGHTS));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            ("POLYGON((0 0,1 0,1 1))", "not closed"),
            ("POLYGON((0 0,1 0,0 0))", "at least 4"),
            ("POINT(1)", "a number was expected at character 8"),
            ("POINT(1 2", "')' was expected"),
            ("POINT(1 2) x", "the end was expected"),
            ("CIRCLE(1 2)", "POINT, LINESTRING"),
            ("SRID=3857;POINT(1 2)", "EPSG:3857"),
            ("GEOMETRYCOLLECTION(POINT(1 2))", "GeometryCollection"),
            ("", "POINT, LINESTRING"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.detail.contains(expected), "{text}: {error}");
        }
    }
}
