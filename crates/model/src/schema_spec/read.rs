//! Reads the attributes and the user data of a spec.

use super::parser::Parser;
use crate::error::Invalid;
use crate::schema::{Field, FieldType, GeometryType, IdRole, Mode, Schema, TimeRole};
use crate::schema_json::parse_duration;

/// Options of an attribute that tune GeoMesa's own indexes and have no meaning here.
const TUNING: [&str; 7] =
    ["index", "cardinality", "precision", "json", "column-groups", "keep-stats", "geomesa.index.strategy"];

/// Max length of a spec in bytes.
const SPEC_BYTES_MAX: usize = 1 << 20;

/// The meaning of an attribute's type.
#[derive(Clone, Copy)]
enum Kind {
    Field(FieldType),
    Shape(GeometryType),
}

/// Reads a SimpleFeatureType spec.
pub fn parse(spec: &str) -> Result<Schema, Invalid> {
    if spec.len() > SPEC_BYTES_MAX {
        return Err(Invalid::field("schema", format!("a spec of {} bytes is too long", spec.len())));
    }
    let mut parser = Parser { chars: spec.chars().collect(), at: 0 };
    let mut reader = Reader::default();
    loop {
        reader.attribute(&mut parser)?;
        parser.space();
        match parser.peek() {
            Some(',') => parser.at += 1,
            Some(';') => {
                parser.at += 1;
                reader.user_data(&mut parser)?;
                break;
            }
            None => break,
            Some(c) => return Err(parser.wrong(format!("{c:?}: expected ',' or ';' or the end"))),
        }
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    schema: Schema,
    /// A geometry marked with `*` or `default=true`.
    geometry_marked: bool,
    /// A `Date` marked `default=true`.
    marked_time: Option<usize>,
    time: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    ignore_time: bool,
}

impl Reader {
    fn attribute(&mut self, parser: &mut Parser) -> Result<(), Invalid> {
        parser.space();
        let starred = parser.eat('*');
        let name_at = parser.at;
        let name = parser.word(&[',', ':', ';'])?;
        if name.is_empty() {
            return Err(parser.wrong_at(name_at, "no attribute name: expected name:Type, as in mag:Double"));
        }
        let kind = if parser.eat(':') {
            let type_at = parser.at;
            let word = parser.word(&[',', ':', ';'])?;
            kind_of(&word).ok_or_else(|| {
                parser.wrong_at(
                    type_at,
                    format!(
                        "{word:?} is not a type held here: expected String, Integer, Long, Float, Double, Boolean, Date, Timestamp, UUID, List[String], Point, LineString, Polygon, MultiPoint, MultiLineString, MultiPolygon or Geometry"
                    ),
                )
            })?
        } else {
            Kind::Field(FieldType::Text)
        };
        if let (true, Kind::Field(_)) = (starred, kind) {
            return Err(parser.wrong_at(name_at, format!("{name:?} has a star but is not a geometry")));
        }
        let mut options = Options::default();
        while parser.eat(':') {
            self.option(parser, kind, &mut options)?;
        }
        match kind {
            Kind::Shape(shape) => {
                if self.schema.geometry.is_some() {
                    return Err(parser.wrong_at(name_at, "a second geometry: a collection holds one"));
                }
                self.geometry_marked |= starred;
                self.schema.geometry = Some(shape);
                self.schema.geometry_name = name;
            }
            Kind::Field(kind) => {
                let index = self.schema.fields.len();
                if self.schema.field_index(&name).is_some() {
                    return Err(parser.wrong_at(name_at, format!("a second attribute {name:?}")));
                }
                if options.object && self.schema.object.replace(index).is_some() {
                    return Err(parser.wrong_at(name_at, "a second object=true: one attribute names the object"));
                }
                if options.default && kind.is_time() {
                    // GeoTools takes the first marked one, and ignores the rest.
                    self.marked_time.get_or_insert(index);
                }
                self.schema.fields.push(Field { name, kind, required: options.required, title: options.title });
            }
        }
        Ok(())
    }

    fn option(&mut self, parser: &mut Parser, kind: Kind, options: &mut Options) -> Result<(), Invalid> {
        parser.space();
        let at = parser.at;
        let key = parser.word(&[',', ':', ';', '='])?;
        if !parser.eat('=') {
            return Err(parser.wrong_at(at, format!("{key:?}: expected an option such as srid=4326")));
        }
        let value_at = parser.at;
        let value = parser.word(&[',', ':', ';'])?;
        let shape = matches!(kind, Kind::Shape(_));
        let yes = |parser: &Parser| match value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(parser.wrong_at(value_at, format!("{value:?}: expected true or false"))),
        };
        match key.as_str() {
            "srid" if shape && value == "4326" => {}
            "srid" if shape => {
                return Err(
                    parser.wrong_at(value_at, format!("srid={value}: expected 4326, longitude and latitude on WGS 84"))
                );
            }
            "default" => options.default = yes(parser)?,
            "nillable" | "nullable" if shape => {
                if !yes(parser)? {
                    return Err(parser.wrong_at(at, "a geometry cannot be required: an event may have none"));
                }
            }
            "nillable" | "nullable" => options.required = !yes(parser)?,
            "object" if !shape => options.object = yes(parser)?,
            "title" if !shape => options.title = Some(value),
            // Specs are copied unchanged from GeoMesa. Options that only tune its tables must not make them fail
            // here.
            key if TUNING.contains(&key) => {}
            key => {
                return Err(parser.wrong_at(
                    at,
                    format!("the option {key:?} is not known here: expected srid, default, nillable, object or title"),
                ));
            }
        }
        Ok(())
    }

    fn user_data(&mut self, parser: &mut Parser) -> Result<(), Invalid> {
        loop {
            parser.space();
            if parser.peek().is_none() {
                return Ok(());
            }
            let at = parser.at;
            let key = parser.word(&[',', ';', '='])?;
            if !parser.eat('=') {
                return Err(parser.wrong_at(at, format!("{key:?}: expected user data such as geomesa.index.dtg='dtg'")));
            }
            let value_at = parser.at;
            let value = parser.word(&[',', ';'])?;
            self.user_datum(parser, &key, &value, at, value_at)?;
            parser.space();
            match parser.peek() {
                None => return Ok(()),
                Some(',' | ';') => parser.at += 1,
                Some(c) => return Err(parser.wrong(format!("{c:?}: expected ',' or the end"))),
            }
        }
    }

    fn user_datum(
        &mut self,
        parser: &Parser,
        key: &str,
        value: &str,
        at: usize,
        value_at: usize,
    ) -> Result<(), Invalid> {
        let wrong = |detail: String| parser.wrong_at(value_at, detail);
        let date = |schema: &Schema| {
            let index = schema.field_index(value).filter(|&i| schema.fields[i].kind.is_time());
            index.map(Some).ok_or_else(|| wrong(format!("{value:?} is not a Date among the attributes")))
        };
        match key {
            "geomesa.index.dtg" => self.time = date(&self.schema)?,
            "meridian.interval.start" => self.start = date(&self.schema)?,
            "meridian.interval.end" => self.end = date(&self.schema)?,
            "geomesa.ignore.dtg" => self.ignore_time = value == "true",
            "geomesa.z3.interval" => {
                let day = 86_400_000_000;
                self.schema.time_unit_us = match value {
                    "day" => day,
                    "week" => 7 * day,
                    "month" => 30 * day,
                    "year" => 365 * day,
                    _ => return Err(wrong(format!("{value:?}: expected day, week, month or year"))),
                };
            }
            "meridian.time.unit" => self.schema.time_unit_us = parse_duration(value).map_err(|e| wrong(e.detail))?,
            "meridian.id" => {
                self.schema.id = match value {
                    "given" => IdRole::Given,
                    "made" => IdRole::Made,
                    _ => return Err(wrong(format!("{value:?}: expected given or made"))),
                }
            }
            "meridian.id.name" => self.schema.id_name = value.to_owned(),
            "meridian.mode" => {
                self.schema.mode = match value {
                    "history" => Mode::History,
                    "latest" => Mode::Latest,
                    _ => return Err(wrong(format!("{value:?}: expected history or latest"))),
                }
            }
            "meridian.title" => self.schema.title = Some(value.to_owned()),
            "meridian.description" => self.schema.description = Some(value.to_owned()),
            // The rest of GeoMesa's user data tunes its own tables.
            _ if key.starts_with("geomesa.") => {}
            _ => return Err(parser.wrong_at(at, format!("the user data {key:?} are not known here"))),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Schema, Invalid> {
        let first = || self.schema.fields.iter().position(|f| f.kind == FieldType::Time);
        self.schema.time = match (self.start, self.end) {
            (Some(start), Some(end)) if self.time.is_none() => TimeRole::Interval { start, end },
            (None, None) if self.ignore_time => TimeRole::None,
            // GeoMesa's order: the field named in the user data, then the marked one, then the first date.
            (None, None) => self.time.or(self.marked_time).or_else(first).map_or(TimeRole::None, TimeRole::Instant),
            (Some(_), Some(_)) => {
                return Err(Invalid::field("schema", "geomesa.index.dtg and meridian.interval at once: expected one"));
            }
            _ => {
                return Err(Invalid::field(
                    "schema",
                    "half an interval: expected both meridian.interval.start and meridian.interval.end",
                ));
            }
        };
        if let TimeRole::Instant(i) = self.schema.time {
            self.schema.fields[i].required = true;
        }
        self.schema.validate()?;
        Ok(self.schema)
    }
}

#[derive(Default)]
struct Options {
    required: bool,
    object: bool,
    default: bool,
    title: Option<String>,
}

fn kind_of(word: &str) -> Option<Kind> {
    use FieldType::*;
    // Geometry types may carry their Java package, as GeoTools writes them.
    let short = word.rsplit_once('.').map_or(word, |(_, last)| last);
    Some(match short {
        "String" | "string" | "" | "UUID" | "uuid" => Kind::Field(Text),
        "Integer" | "Int" | "int" | "integer" | "Long" | "long" | "Short" | "short" => Kind::Field(Int),
        "Float" | "float" | "Double" | "double" => Kind::Field(Float),
        "Boolean" | "boolean" | "Bool" | "bool" => Kind::Field(Bool),
        "Date" | "date" | "Timestamp" | "timestamp" => Kind::Field(Time),
        "LocalDate" => Kind::Field(Date),
        "List" | "List[String]" | "List[string]" => Kind::Field(TextList),
        "Point" => Kind::Shape(GeometryType::Point),
        "LineString" => Kind::Shape(GeometryType::Line),
        "Polygon" => Kind::Shape(GeometryType::Polygon),
        "MultiPoint" => Kind::Shape(GeometryType::MultiPoint),
        "MultiLineString" => Kind::Shape(GeometryType::MultiLine),
        "MultiPolygon" => Kind::Shape(GeometryType::MultiPolygon),
        "Geometry" => Kind::Shape(GeometryType::Any),
        _ => return None,
    })
}
