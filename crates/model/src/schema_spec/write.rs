//! Writes a schema as a spec.

use crate::schema::{FieldType, IdRole, Mode, Schema, TIME_UNIT_DEFAULT_US, TimeRole};
use crate::schema_json::duration_text;

/// Writes a schema as a spec that [`parse`](super::parse) reads back.
pub fn to_spec(schema: &Schema) -> String {
    let mut attributes = Vec::with_capacity(schema.fields.len() + 1);
    for (i, field) in schema.fields.iter().enumerate() {
        let kind = match field.kind {
            FieldType::Text => "String",
            FieldType::Int => "Long",
            FieldType::Float => "Double",
            FieldType::Bool => "Boolean",
            FieldType::Time => "Date",
            // GeoTools' `Date` has a time of day.
            FieldType::Date => "LocalDate",
            FieldType::TextList => "List[String]",
        };
        let mut attribute = format!("{}:{kind}", name_text(&field.name));
        if field.required && schema.time != TimeRole::Instant(i) {
            attribute.push_str(":nillable=false");
        }
        if schema.object == Some(i) {
            attribute.push_str(":object=true");
        }
        if let Some(title) = &field.title {
            attribute.push_str(&format!(":title={}", quoted(title)));
        }
        attributes.push(attribute);
    }
    if let Some(kind) = schema.geometry {
        attributes.push(format!("*{}:{}:srid=4326", name_text(&schema.geometry_name), kind.word()));
    }
    let mut data = Vec::new();
    let mut say = |key: &str, value: &str| data.push(format!("{key}={}", quoted(value)));
    match schema.time {
        TimeRole::None if schema.fields.iter().any(|f| f.kind == FieldType::Time) => {
            say("geomesa.ignore.dtg", "true");
        }
        TimeRole::None => {}
        TimeRole::Instant(i) => say("geomesa.index.dtg", &schema.fields[i].name),
        TimeRole::Interval { start, end } => {
            say("meridian.interval.start", &schema.fields[start].name);
            say("meridian.interval.end", &schema.fields[end].name);
        }
    }
    if schema.id == IdRole::Given {
        say("meridian.id", "given");
    }
    if schema.id_name != "id" {
        say("meridian.id.name", &schema.id_name);
    }
    if schema.mode == Mode::Latest {
        say("meridian.mode", "latest");
    }
    if schema.time_unit_us != TIME_UNIT_DEFAULT_US {
        say("meridian.time.unit", &duration_text(schema.time_unit_us));
    }
    if let Some(title) = &schema.title {
        say("meridian.title", title);
    }
    if let Some(description) = &schema.description {
        say("meridian.description", description);
    }
    let mut spec = attributes.join(",");
    if !data.is_empty() {
        spec.push(';');
        spec.push_str(&data.join(","));
    }
    spec
}

fn name_text(name: &str) -> String {
    let plain = !name.starts_with('*')
        && name.trim() == name
        && !name.chars().any(|c| matches!(c, ',' | ':' | ';' | '=' | '"' | '\''));
    if plain && !name.is_empty() { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
