//! The schema of a collection: its fields and their roles.

use crate::error::Invalid;
use serde::{Deserialize, Serialize};

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// UTF-8 text.
    Text,
    /// 64-bit signed integer.
    Int,
    /// 64-bit float; NaN and infinities are refused.
    Float,
    /// True or false.
    Bool,
    /// An instant in UTC, in microseconds.
    Time,
    /// A day, stored as its first instant in UTC.
    Date,
    /// A list of texts.
    TextList,
}

impl FieldType {
    /// Whether sums and averages are meaningful.
    pub fn is_numeric(self) -> bool {
        matches!(self, FieldType::Int | FieldType::Float)
    }

    /// Whether its values are instants in microseconds; the value of a date is the first instant of its day.
    pub fn is_time(self) -> bool {
        matches!(self, FieldType::Time | FieldType::Date)
    }

    /// The name of this type in messages and docs.
    pub fn word(self) -> &'static str {
        match self {
            FieldType::Text => "string",
            FieldType::Int => "integer",
            FieldType::Float => "number",
            FieldType::Bool => "boolean",
            FieldType::Time => "date-time",
            FieldType::Date => "date",
            FieldType::TextList => "list of strings",
        }
    }

    /// The name of this type with its article, for sentences.
    pub fn noun(self) -> &'static str {
        match self {
            FieldType::Text => "a string",
            FieldType::Int => "an integer",
            FieldType::Float => "a number",
            FieldType::Bool => "a boolean",
            FieldType::Time => "a date-time",
            FieldType::Date => "a date",
            FieldType::TextList => "a list of strings",
        }
    }
}

/// One named, typed property of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Name in GeoJSON `properties`.
    pub name: String,
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether every event must have a value.
    #[serde(default)]
    pub required: bool,
    /// A human-readable title, shown in pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Kind of geometry of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeometryType {
    /// Points only: stored as two numbers.
    Point,
    /// Line strings.
    Line,
    /// Polygons.
    Polygon,
    /// Multi-points, and points.
    MultiPoint,
    /// Multi-line strings, and lines.
    MultiLine,
    /// Multi-polygons, and polygons.
    MultiPolygon,
    /// Any of these.
    Any,
}

impl GeometryType {
    /// The GeoJSON name.
    pub fn word(self) -> &'static str {
        match self {
            GeometryType::Point => "Point",
            GeometryType::Line => "LineString",
            GeometryType::Polygon => "Polygon",
            GeometryType::MultiPoint => "MultiPoint",
            GeometryType::MultiLine => "MultiLineString",
            GeometryType::MultiPolygon => "MultiPolygon",
            GeometryType::Any => "Geometry",
        }
    }

    /// Whether a collection of this type accepts a geometry of type `other`; a multi form accepts its single form.
    pub fn takes(self, other: GeometryType) -> bool {
        use GeometryType::*;
        self == Any
            || self == other
            || matches!((self, other), (MultiPoint, Point) | (MultiLine, Line) | (MultiPolygon, Polygon))
    }

    /// The narrowest type that accepts both.
    pub fn union(self, other: GeometryType) -> GeometryType {
        if self.takes(other) {
            self
        } else if other.takes(self) {
            other
        } else {
            GeometryType::Any
        }
    }
}

/// The event time, as indexes into [`Schema::fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeRole {
    /// The collection has no time.
    None,
    /// One instant; the field is required.
    Instant(usize),
    /// From a start to an end; a null start or end is open.
    Interval {
        /// Field of the first instant.
        start: usize,
        /// Field of the last instant, inclusive.
        end: usize,
    },
}

/// Origin of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdRole {
    /// Each event brings its own; a collection holds each id once.
    Given,
    /// Generated from the event's sequence number, see [`crate::Seq::to_id`].
    Made,
}

/// The effect of writing a known id or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Every event is kept.
    #[default]
    History,
    /// Readers see only each object's last event by event time.
    Latest,
}

/// Min time unit of the grid: a minute.
pub const TIME_UNIT_MIN_US: i64 = 60 * 1_000_000;
/// Default time unit of the grid: a week, so that a year is some fifty buckets.
pub const TIME_UNIT_DEFAULT_US: i64 = 7 * 86_400 * 1_000_000;
/// Max fields of a collection.
pub const FIELDS_MAX: usize = 1_000;
/// Max length of a field or collection name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The schema of a collection: fields, geometry, time, id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Properties in order; fields added later are at the end.
    pub fields: Vec<Field>,
    /// Kind of geometry, if any.
    pub geometry: Option<GeometryType>,
    /// Name of the geometry in specs and queryables.
    #[serde(default = "geometry_name")]
    pub geometry_name: String,
    /// The fields that hold the event time.
    pub time: TimeRole,
    /// Origin of ids.
    pub id: IdRole,
    /// Name of the id column in files without a place for ids (CSV, Parquet).
    #[serde(default = "id_name")]
    pub id_name: String,
    /// Field that names the object an event belongs to (a ship, a sensor), if any.
    #[serde(default)]
    pub object: Option<usize>,
    /// History or latest.
    #[serde(default)]
    pub mode: Mode,
    /// Time unit of the Hilbert grid in microseconds; fixed for the life of the collection.
    #[serde(default = "time_unit")]
    pub time_unit_us: i64,
    /// A human-readable title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A human-readable description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn geometry_name() -> String {
    "geometry".to_owned()
}

fn id_name() -> String {
    "id".to_owned()
}

fn time_unit() -> i64 {
    TIME_UNIT_DEFAULT_US
}

impl Default for Schema {
    fn default() -> Self {
        Schema {
            fields: Vec::new(),
            geometry: None,
            geometry_name: geometry_name(),
            time: TimeRole::None,
            id: IdRole::Made,
            id_name: id_name(),
            object: None,
            mode: Mode::History,
            time_unit_us: time_unit(),
            title: None,
            description: None,
        }
    }
}

impl Schema {
    /// Index of the field with this name.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }

    /// A column name that differs from the fields, the geometry and the id: the given one, prefixed with as many `@`
    /// as needed.
    pub fn free_name(&self, name: &str) -> String {
        let mut free = name.to_owned();
        while self.field_index(&free).is_some() || self.is_geometry_name(&free) || free == self.id_name {
            free.insert(0, '@');
        }
        free
    }

    /// Name of the id column: its own, unless a field or the geometry has it.
    pub fn id_column(&self) -> String {
        let is_taken = self.field_index(&self.id_name).is_some() || self.is_geometry_name(&self.id_name);
        if is_taken { self.free_name("@id") } else { self.id_name.clone() }
    }

    fn is_geometry_name(&self, name: &str) -> bool {
        self.geometry.is_some() && self.geometry_name == name
    }

    /// Indexes of the numeric fields, in the order of the summaries in every tree node.
    pub fn numeric_fields(&self) -> Vec<usize> {
        (0..self.fields.len()).filter(|&i| self.fields[i].kind.is_numeric()).collect()
    }

    /// Whether events have a time.
    pub fn has_time(&self) -> bool {
        self.time != TimeRole::None
    }

    /// Checks names, roles and limits; every constructor ends here.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.fields.len() > FIELDS_MAX {
            return Err(Invalid::new(format_args!("{} fields are too many: at most {FIELDS_MAX}", self.fields.len())));
        }
        for (i, field) in self.fields.iter().enumerate() {
            if field.name.is_empty() || field.name.len() > NAME_BYTES_MAX || field.name.chars().any(char::is_control) {
                return Err(Invalid::field(
                    &field.name,
                    format_args!("a field's name must be 1 to {NAME_BYTES_MAX} bytes without control characters"),
                ));
            }
            if self.fields[..i].iter().any(|f| f.name == field.name) {
                return Err(Invalid::field(&field.name, "two fields have this name"));
            }
            if self.geometry.is_some() && field.name == self.geometry_name {
                return Err(Invalid::field(&field.name, "a field has the name of the geometry"));
            }
        }
        let time_fields: &[usize] = match &self.time {
            TimeRole::None => &[],
            TimeRole::Instant(i) => &[*i],
            TimeRole::Interval { start, end } => &[*start, *end],
        };
        for &i in time_fields {
            let field = self.fields.get(i).ok_or_else(|| Invalid::new("the time names a field that does not exist"))?;
            if !field.kind.is_time() {
                return Err(Invalid::field(
                    &field.name,
                    format_args!(
                        "plays the part of the time but is a {}: expected a date-time or a date",
                        field.kind.word()
                    ),
                ));
            }
        }
        // Events are ordered and stored by this instant. An event without it would have no place in the order.
        if let TimeRole::Instant(i) = self.time
            && !self.fields[i].required
        {
            return Err(Invalid::field(&self.fields[i].name, "is the primary instant and must be required"));
        }
        if let Some(i) = self.object {
            let field =
                self.fields.get(i).ok_or_else(|| Invalid::new("the object names a field that does not exist"))?;
            if !matches!(field.kind, FieldType::Text | FieldType::Int) {
                return Err(Invalid::field(
                    &field.name,
                    format_args!("names the object but is a {}: expected a string or an integer", field.kind.word()),
                ));
            }
        }
        if self.mode == Mode::Latest && (self.object.is_none() || !self.has_time()) {
            return Err(Invalid::field(
                "x-meridian-mode",
                "a collection of mode latest needs a field with x-meridian-object and a time",
            ));
        }
        if self.time_unit_us < TIME_UNIT_MIN_US {
            return Err(Invalid::field("x-meridian-time-unit", "the time unit of the grid must be at least a minute"));
        }
        Ok(())
    }
}

/// Checks the name of a collection or tenant: it must be safe in a path, a URL and a file name.
pub fn validate_name(what: &str, name: &str) -> Result<(), Invalid> {
    let ok = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        // Names become folders and parts of URLs: a leading dot or dash would be hidden, or parsed as an option.
        && name.as_bytes()[0].is_ascii_alphanumeric();
    if ok {
        Ok(())
    } else {
        Err(Invalid::field(
            what,
            format_args!(
                "{name:?} is not a valid name: expected 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' or '.', beginning with a letter or digit"
            ),
        ))
    }
}
