//! Reads a schema document. Errors name the offending JSON Pointer.

use super::{GEOMETRY_FORMATS, parse_duration};
use crate::error::Invalid;
use crate::schema::{Field, FieldType, IdRole, Mode, Schema, TimeRole};
use serde_json::{Map, Value, json};

/// The members of a schema document that a [`Schema`] is read from. Annotations may be beside them.
pub const MEMBERS: [&str; 9] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "x-meridian-mode",
    "x-meridian-time-unit",
    "x-meridian-id",
];

/// Annotation keywords, which do not affect the accepted values.
const ANNOTATIONS: [&str; 7] = ["$schema", "$id", "$comment", "title", "description", "examples", "deprecated"];

/// String formats that are hints for readers; such strings stay plain text here.
const TEXT_FORMATS: [&str; 8] = ["uuid", "uri", "uri-reference", "iri", "email", "hostname", "ipv4", "ipv6"];

/// The value of a property's `x-ogc-role`.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    None,
    Id,
    Geometry,
    Instant,
    Start,
    End,
}

/// Reads a schema document, as accepted by `PUT /collections/{c}`. Errors name the offending JSON Pointer.
pub fn from_json(document: &Value) -> Result<Schema, Invalid> {
    let Some(root) = document.as_object() else {
        return Err(Invalid::new(
            "a schema must be a JSON object: expected {\"type\": \"object\", \"properties\": {…}}",
        ));
    };
    let mut reader = Reader { schema: Schema::default(), ..Reader::default() };
    for (key, value) in root {
        reader.root_keyword(key, value)?;
    }
    let Some(properties) = root.get("properties") else {
        return Err(Invalid::field("/properties", "a schema needs properties: expected an object of them by name"));
    };
    let Some(properties) = properties.as_object() else {
        return Err(Invalid::field("/properties", "expected an object of properties by name"));
    };
    let mut ordered: Vec<(&String, &Value)> = properties.iter().collect();
    // A stable sort: documents without `x-ogc-propertySeq` keep their order.
    ordered.sort_by_key(|(_, p)| p.get("x-ogc-propertySeq").and_then(Value::as_i64).unwrap_or(i64::MAX));
    for (name, property) in ordered {
        reader.property(name, property)?;
    }
    reader.finish(root.get("required"))
}

#[derive(Default)]
struct Reader {
    schema: Schema,
    has_id: bool,
    instant: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    /// Fields whose type list includes null, which must not be required.
    nullable: Vec<usize>,
}

impl Reader {
    fn root_keyword(&mut self, key: &str, value: &Value) -> Result<(), Invalid> {
        let path = format!("/{}", escape(key));
        match key {
            _ if !MEMBERS.contains(&key) && is_annotation(key) => {}
            // An ignored keyword would promise what the server does not check.
            _ if !MEMBERS.contains(&key) => return Err(unsupported(path)),
            "type" if value == "object" => {}
            "type" => return Err(Invalid::field(path, "a schema describes events: expected \"object\"")),
            // The only value that a typed schema can represent. Accepting `true` would promise to keep fields that
            // are rejected later.
            "additionalProperties" if value == &Value::Bool(false) => {}
            "additionalProperties" => {
                return Err(Invalid::field(
                    path,
                    "fields outside the schema are always refused: expected false or nothing",
                ));
            }
            "title" => self.schema.title = Some(text(&path, value)?),
            "description" => self.schema.description = Some(text(&path, value)?),
            "x-meridian-mode" => {
                self.schema.mode = match value.as_str() {
                    Some("history") => Mode::History,
                    Some("latest") => Mode::Latest,
                    _ => return Err(Invalid::field(path, format_args!("{value}: expected \"history\" or \"latest\""))),
                }
            }
            "x-meridian-time-unit" => {
                self.schema.time_unit_us =
                    parse_duration(&text(&path, value)?).map_err(|e| Invalid { field: Some(path), ..e })?;
            }
            "x-meridian-id" => {
                let name = value.get("name").and_then(Value::as_str);
                let given = value.get("given").and_then(Value::as_bool);
                let (Some(name), Some(given)) = (name, given) else {
                    return Err(Invalid::field(path, "expected {\"name\": \"…\", \"given\": true or false}"));
                };
                self.set_id(name, given, &path)?;
            }
            // `properties` and `required`: `from_json` reads them after all others.
            _ => {}
        }
        Ok(())
    }

    fn set_id(&mut self, name: &str, given: bool, path: &str) -> Result<(), Invalid> {
        if self.has_id {
            return Err(Invalid::field(path, "a second id: only one property may have the role id"));
        }
        self.has_id = true;
        self.schema.id = if given { IdRole::Given } else { IdRole::Made };
        self.schema.id_name = name.to_owned();
        Ok(())
    }

    fn property(&mut self, name: &str, value: &Value) -> Result<(), Invalid> {
        let path = format!("/properties/{}", escape(name));
        let Some(property) = value.as_object() else {
            return Err(Invalid::field(path, "expected an object such as {\"type\": \"string\"}"));
        };
        let role = role_of(&path, property)?;
        let format = property.get("format").map(|f| text(&format!("{path}/format"), f)).transpose()?;
        if role == Role::Geometry || format.as_deref().is_some_and(|f| f.starts_with("geometry-")) {
            return self.geometry(name, &path, property, format.as_deref(), role);
        }
        let (kind, nullable) = kind_of(&path, property, format.as_deref())?;
        let object = flag(&path, property, "x-meridian-object")?;
        let read_only = flag(&path, property, "readOnly")?;
        for key in property.keys() {
            match key.as_str() {
                "type" | "format" | "x-ogc-role" | "x-ogc-propertySeq" | "x-meridian-object" => {}
                "items" if kind == FieldType::TextList => {}
                // The server can generate only ids; any other read-only property could never be written.
                "readOnly" if role == Role::Id || !read_only => {}
                key if is_annotation(key) => {}
                key => return Err(unsupported(format!("{path}/{}", escape(key)))),
            }
        }
        if role == Role::Id {
            if kind != FieldType::Text {
                return Err(Invalid::field(format!("{path}/type"), "an id is text: expected \"string\""));
            }
            if object {
                return Err(Invalid::field(
                    format!("{path}/x-meridian-object"),
                    "the id names one event, not the object of many: mark another field",
                ));
            }
            return self.set_id(name, !read_only, &path);
        }
        let index = self.schema.fields.len();
        let slot = match role {
            Role::Instant => Some(&mut self.instant),
            Role::Start => Some(&mut self.start),
            Role::End => Some(&mut self.end),
            _ => None,
        };
        if let Some(slot) = slot
            && slot.replace(index).is_some()
        {
            return Err(Invalid::field(format!("{path}/x-ogc-role"), "two properties have this role"));
        }
        if object && self.schema.object.replace(index).is_some() {
            return Err(Invalid::field(format!("{path}/x-meridian-object"), "two properties name the object"));
        }
        if nullable {
            self.nullable.push(index);
        }
        let title = property.get("title").map(|t| text(&format!("{path}/title"), t)).transpose()?;
        self.schema.fields.push(Field { name: name.to_owned(), kind, required: false, title });
        Ok(())
    }

    pub(super) fn geometry(
        &mut self,
        name: &str,
        path: &str,
        property: &Map<String, Value>,
        format: Option<&str>,
        role: Role,
    ) -> Result<(), Invalid> {
        if !matches!(role, Role::None | Role::Geometry) {
            return Err(Invalid::field(format!("{path}/x-ogc-role"), "a geometry can only be the primary-geometry"));
        }
        let kind = GEOMETRY_FORMATS.iter().find(|(name, _)| Some(*name) == format).map(|(_, kind)| *kind);
        let Some(kind) = kind else {
            return Err(Invalid::field(
                format!("{path}/format"),
                format_args!(
                    "{} is not a geometry this server holds: expected {}",
                    format.map_or("nothing".to_owned(), |f| format!("{f:?}")),
                    GEOMETRY_FORMATS.map(|(name, _)| name).join(", ")
                ),
            ));
        };
        for key in property.keys() {
            match key.as_str() {
                "format" | "x-ogc-role" | "x-ogc-propertySeq" => {}
                // GeoJSON geometries are objects; only the format names the kind.
                "type" if property.get("type").is_some_and(|t| t == "object") => {}
                key if is_annotation(key) => {}
                key => return Err(unsupported(format!("{path}/{}", escape(key)))),
            }
        }
        if self.schema.geometry.replace(kind).is_some() {
            return Err(Invalid::field(path, "a second geometry: a collection holds one"));
        }
        self.schema.geometry_name = name.to_owned();
        Ok(())
    }

    fn finish(mut self, required: Option<&Value>) -> Result<Schema, Invalid> {
        self.schema.time = match (self.instant, self.start, self.end) {
            (None, None, None) => TimeRole::None,
            (Some(i), None, None) => TimeRole::Instant(i),
            (None, Some(start), Some(end)) => TimeRole::Interval { start, end },
            (Some(_), ..) => {
                return Err(Invalid::field("/properties", "a primary-instant and a primary-interval: expected one"));
            }
            _ => {
                return Err(Invalid::field(
                    "/properties",
                    "half an interval: expected both a primary-interval-start and a primary-interval-end",
                ));
            }
        };
        if let Some(required) = required {
            self.require(required)?;
        }
        // Segments are cut by time, so an event without its instant would have no place.
        if let TimeRole::Instant(i) = self.schema.time {
            self.schema.fields[i].required = true;
        }
        if let Some(&i) = self.nullable.iter().find(|&&i| self.schema.fields[i].required) {
            return Err(Invalid::field(
                format!("/properties/{}/type", escape(&self.schema.fields[i].name)),
                "required and null at once: a required field always has a value",
            ));
        }
        self.schema.validate()?;
        Ok(self.schema)
    }

    fn require(&mut self, required: &Value) -> Result<(), Invalid> {
        let Some(names) = required.as_array() else {
            return Err(Invalid::field("/required", "expected an array of property names"));
        };
        for (i, name) in names.iter().enumerate() {
            let path = format!("/required/{i}");
            let name = text(&path, name)?;
            if let Some(field) = self.schema.field_index(&name) {
                self.schema.fields[field].required = true;
            } else if self.schema.geometry.is_some() && name == self.schema.geometry_name {
                return Err(Invalid::field(path, "a geometry cannot be required: an event may have none"));
            } else if !(self.has_id && name == self.schema.id_name) {
                return Err(Invalid::field(path, format_args!("{name:?} is not among the properties")));
            }
        }
        Ok(())
    }
}

fn role_of(path: &str, property: &Map<String, Value>) -> Result<Role, Invalid> {
    let Some(value) = property.get("x-ogc-role") else { return Ok(Role::None) };
    Ok(match value.as_str() {
        Some("id") => Role::Id,
        Some("primary-geometry") => Role::Geometry,
        Some("primary-instant") => Role::Instant,
        Some("primary-interval-start") => Role::Start,
        Some("primary-interval-end") => Role::End,
        _ => {
            return Err(Invalid::field(
                format!("{path}/x-ogc-role"),
                format_args!(
                    "{value}: expected \"id\", \"primary-geometry\", \"primary-instant\", \"primary-interval-start\" or \"primary-interval-end\""
                ),
            ));
        }
    })
}

/// The type of a property, and whether its type list includes null.
fn kind_of(path: &str, property: &Map<String, Value>, format: Option<&str>) -> Result<(FieldType, bool), Invalid> {
    let at = format!("{path}/type");
    let (name, nullable) = match property.get("type") {
        Some(Value::String(name)) => (name.as_str(), false),
        Some(Value::Array(names)) => match names.iter().map(Value::as_str).collect::<Vec<_>>()[..] {
            [Some(name)] => (name, false),
            // Both orders are in use: JSON Schema writers put `null` first or last.
            [Some(name), Some("null")] | [Some("null"), Some(name)] => (name, true),
            _ => return Err(Invalid::field(at, "one type, or one type and \"null\", is all that a field can have")),
        },
        _ => {
            return Err(Invalid::field(
                at,
                "expected \"string\", \"integer\", \"number\", \"boolean\" or \"array\" (or a format such as \"geometry-point\")",
            ));
        }
    };
    let wrong_format = |expected: &str| {
        Invalid::field(format!("{path}/format"), format_args!("{:?}: expected {expected}", format.unwrap_or_default()))
    };
    let kind = match (name, format) {
        ("string", Some("date-time")) => FieldType::Time,
        ("string", Some("date")) => FieldType::Date,
        ("string", None) => FieldType::Text,
        ("string", Some(f)) if TEXT_FORMATS.contains(&f) => FieldType::Text,
        ("string", Some(_)) => return Err(wrong_format("\"date-time\", \"date\", or no format")),
        ("integer", None | Some("int32" | "int64")) => FieldType::Int,
        ("integer", Some(_)) => return Err(wrong_format("no format")),
        ("number", None | Some("float" | "double")) => FieldType::Float,
        ("number", Some(_)) => return Err(wrong_format("no format")),
        ("boolean", None) => FieldType::Bool,
        ("boolean", Some(_)) => return Err(wrong_format("no format")),
        ("array", None) => {
            if property.get("items") != Some(&json!({"type": "string"})) {
                return Err(Invalid::field(
                    format!("{path}/items"),
                    "only lists of strings are held: expected {\"type\": \"string\"}",
                ));
            }
            FieldType::TextList
        }
        _ => {
            return Err(Invalid::field(
                at,
                format_args!("{name:?}: expected \"string\", \"integer\", \"number\", \"boolean\" or \"array\""),
            ));
        }
    };
    Ok((kind, nullable))
}

fn flag(path: &str, property: &Map<String, Value>, key: &str) -> Result<bool, Invalid> {
    match property.get(key) {
        None => Ok(false),
        Some(Value::Bool(b)) => Ok(*b),
        Some(other) => Err(Invalid::field(format!("{path}/{key}"), format_args!("{other}: expected true or false"))),
    }
}

fn text(path: &str, value: &Value) -> Result<String, Invalid> {
    value.as_str().map(str::to_owned).ok_or_else(|| Invalid::field(path, format_args!("{value}: expected a string")))
}

/// Extensions of other vendors are annotations; a misspelt one of ours is not.
fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key)
        || (key.starts_with("x-") && !key.starts_with("x-meridian-") && !key.starts_with("x-ogc-role"))
}

fn unsupported(path: String) -> Invalid {
    Invalid::field(
        path,
        "this keyword is not supported here: a schema has names, types, roles and the list of required fields",
    )
}

/// Escapes one step of a JSON Pointer (RFC 6901).
fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}
