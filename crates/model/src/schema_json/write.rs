//! Writes the schema document and the queryables document of a collection.

use super::{duration_text, geometry_format};
use crate::schema::{Field, FieldType, IdRole, Mode, Schema, TimeRole};
use serde_json::{Map, Value, json};

/// The dialect named in every schema document.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema document of a collection, as `GET /collections/{c}/schema` serves it.
///
/// `title` is used if the schema has no title; `id_url` is the document's own address.
pub fn to_json(schema: &Schema, title: &str, id_url: &str) -> Value {
    let mut document = head(schema, title, id_url);
    let mut properties = Map::new();
    let mut required = Vec::new();
    let id_is_a_field_too = schema.field_index(&schema.id_name).is_some() || collides(schema);
    if id_is_a_field_too {
        document
            .insert("x-meridian-id".to_owned(), json!({"name": schema.id_name, "given": schema.id == IdRole::Given}));
    } else {
        properties.insert(schema.id_name.clone(), id_property(schema));
        if schema.id == IdRole::Given {
            required.push(json!(schema.id_name));
        }
    }
    insert_geometry(&mut properties, schema);
    for (i, field) in schema.fields.iter().enumerate() {
        let mut property = field_property(field);
        if let Some(role) = time_role(schema, i) {
            property.insert("x-ogc-role".to_owned(), json!(role));
        }
        if schema.object == Some(i) {
            property.insert("x-meridian-object".to_owned(), json!(true));
        }
        properties.insert(field.name.clone(), Value::Object(property));
        if field.required {
            required.push(json!(field.name));
        }
    }
    document.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        document.insert("required".to_owned(), Value::Array(required));
    }
    document.insert("additionalProperties".to_owned(), json!(false));
    document.insert(
        "x-meridian-mode".to_owned(),
        json!(match schema.mode {
            Mode::History => "history",
            Mode::Latest => "latest",
        }),
    );
    document.insert("x-meridian-time-unit".to_owned(), json!(duration_text(schema.time_unit_us)));
    Value::Object(document)
}

/// The queryables document (Features Part 3): the properties that a filter may name.
pub fn queryables(schema: &Schema, title: &str, id_url: &str) -> Value {
    let mut document = head(schema, title, id_url);
    let mut properties = Map::new();
    if schema.field_index(&schema.id_name).is_none() && !collides(schema) {
        properties.insert(schema.id_name.clone(), json!({"type": "string", "x-ogc-role": "id"}));
    }
    insert_geometry(&mut properties, schema);
    for (i, field) in schema.fields.iter().enumerate() {
        let mut property = field_property(field);
        if let Some(role) = time_role(schema, i) {
            property.insert("x-ogc-role".to_owned(), json!(role));
        }
        properties.insert(field.name.clone(), Value::Object(property));
    }
    document.insert("properties".to_owned(), Value::Object(properties));
    document.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(document)
}

/// Whether the id and the geometry would have the same name.
fn collides(schema: &Schema) -> bool {
    schema.geometry.is_some() && schema.geometry_name == schema.id_name
}

fn head(schema: &Schema, title: &str, id_url: &str) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!(DIALECT));
    document.insert("$id".to_owned(), json!(id_url));
    document.insert("type".to_owned(), json!("object"));
    document.insert("title".to_owned(), json!(schema.title.as_deref().unwrap_or(title)));
    if let Some(description) = &schema.description {
        document.insert("description".to_owned(), json!(description));
    }
    document
}

fn id_property(schema: &Schema) -> Value {
    match schema.id {
        IdRole::Given => json!({"type": "string", "x-ogc-role": "id"}),
        IdRole::Made => json!({"type": "string", "readOnly": true, "x-ogc-role": "id"}),
    }
}

fn insert_geometry(properties: &mut Map<String, Value>, schema: &Schema) {
    if let Some(kind) = schema.geometry {
        let property = json!({"format": geometry_format(kind), "x-ogc-role": "primary-geometry"});
        properties.insert(schema.geometry_name.clone(), property);
    }
}

fn time_role(schema: &Schema, field: usize) -> Option<&'static str> {
    match schema.time {
        TimeRole::Instant(i) if i == field => Some("primary-instant"),
        TimeRole::Interval { start, .. } if start == field => Some("primary-interval-start"),
        TimeRole::Interval { end, .. } if end == field => Some("primary-interval-end"),
        _ => None,
    }
}

fn field_property(field: &Field) -> Map<String, Value> {
    let mut property = Map::new();
    if let Some(title) = &field.title {
        property.insert("title".to_owned(), json!(title));
    }
    let kind = match field.kind {
        FieldType::Text | FieldType::Time | FieldType::Date => "string",
        FieldType::Int => "integer",
        FieldType::Float => "number",
        FieldType::Bool => "boolean",
        FieldType::TextList => "array",
    };
    property.insert("type".to_owned(), json!(kind));
    match field.kind {
        FieldType::Time | FieldType::Date => drop(property.insert("format".to_owned(), json!(field.kind.word()))),
        FieldType::TextList => drop(property.insert("items".to_owned(), json!({"type": "string"}))),
        _ => {}
    }
    property
}
