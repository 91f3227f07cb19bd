//! Paths of the existing collections, with their queryables as parameters and their properties in bodies.
//!
//! A path without a variable takes precedence over the template that it matches, so it repeats every operation of the
//! template. Clients such as GDAL look for a collection's queryables only here.

use super::{describe, reference};
use crate::contract::links;
use crate::request::route::Route;
use crate::routes::ROUTES;
use meridian_model::filter::is_bare_name;
use meridian_model::{Field, FieldType, GeometryType, IdRole, Schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Max properties listed in the document. A tenant may have any number of collections, and the document must stay
/// bounded.
const PROPERTIES_MAX: usize = 10_000;
/// Path templates that are repeated for each collection.
const TEMPLATES: [&str; 2] = ["/collections/{c}/items", "/collections/{c}/items/{id}"];

/// Adds the paths and schemas of each collection, in order, until [`PROPERTIES_MAX`] properties are listed.
pub fn insert(collections: &[(String, Arc<Schema>)], paths: &mut Map<String, Value>, schemas: &mut Value) {
    let mut named = 0;
    for (name, schema) in collections {
        named += schema.fields.len() + 1;
        if named > PROPERTIES_MAX {
            return;
        }
        schemas[component(name)] = feature(schema);
        for operation in ROUTES.iter().filter(|o| TEMPLATES.contains(&o.path)) {
            let path = operation.path.replace("{c}", &links::escape(name));
            let item = paths.entry(path.clone()).or_insert_with(|| json!({}));
            item[operation.method.as_str().to_ascii_lowercase()] = own(operation, &path, name, schema);
        }
    }
}

/// Returns the name of the component with the schema of a collection's events. No other component's name contains a
/// dot.
fn component(collection: &str) -> String {
    format!("{collection}.feature")
}

/// Specializes an operation of a template for one collection.
fn own(operation: &Route, path: &str, name: &str, schema: &Schema) -> Value {
    let mut described = describe(operation, path);
    described["operationId"] = json!(format!("{}.{name}", operation.id));
    if let Some(Value::Array(parameters)) = described.get_mut("parameters")
        && operation.parameters.contains(&"queryable")
    {
        let shown = queryables(schema).into_iter().filter(|f| !hidden(operation, &f.name));
        let (bare, other): (Vec<Field>, Vec<Field>) = shown.partition(|f| is_bare_name(&f.name));
        // Clients that build CQL2 from these names do not quote them, so names that need quotes keep to the generic
        // parameter.
        if other.is_empty() {
            parameters.retain(|p| *p != reference("parameters", "queryable"));
        }
        parameters.extend(bare.iter().map(queryable));
    }
    if let Some(Value::Object(content)) = described.pointer_mut("/requestBody/content") {
        content.values_mut().for_each(|media| body(media, name));
    }
    described
}

/// Returns the queryables that are parameters of their own: the id, and every field.
fn queryables(schema: &Schema) -> Vec<Field> {
    let id = Field { name: schema.id_name.clone(), kind: FieldType::Text, required: false, title: None };
    let id = schema.field_index(&schema.id_name).is_none().then_some(id);
    id.into_iter().chain(schema.fields.iter().cloned()).collect()
}

/// Returns whether another parameter of the operation has this name.
fn hidden(operation: &Route, name: &str) -> bool {
    name == "f" || operation.parameters.contains(&name)
}

fn queryable(field: &Field) -> Value {
    let mut schema = match field.kind {
        // One member of the list.
        FieldType::TextList => json!({ "type": "string" }),
        _ => value(field.kind),
    };
    if let Some(title) = &field.title {
        schema["title"] = json!(title);
    }
    json!({
        "name": field.name, "in": "query", "required": false, "style": "form", "explode": false,
        "description": format!("Only events whose {} is this.", field.name),
        "schema": schema,
    })
}

/// Replaces the generic event schema with that of the collection.
fn body(media: &mut Value, name: &str) {
    let own = reference("schemas", &component(name));
    let Some(schema) = media.get_mut("schema") else { return };
    if *schema == reference("schemas", "Feature") {
        *schema = own;
    } else if *schema == reference("schemas", "Patch") {
        // A patch may omit any member.
        let properties = format!("#/components/schemas/{}/properties", component(name));
        *schema = json!({
            "type": "object",
            "properties": {
                "geometry": { "$ref": format!("{properties}/geometry") },
                "properties": { "type": "object" },
            },
        });
    } else if *schema == reference("schemas", "Features") {
        let collection = json!({
            "type": "object",
            "required": ["type", "features"],
            "properties": {
                "type": { "type": "string", "enum": ["FeatureCollection"] },
                "features": { "type": "array", "items": own },
            },
        });
        *schema = json!({ "oneOf": [own, collection] });
    }
}

/// Returns the schema of one event as GeoJSON.
fn feature(schema: &Schema) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in &schema.fields {
        let mut described = value(field.kind);
        if field.required {
            required.push(field.name.as_str());
        } else {
            described["type"] = json!([described["type"], "null"]);
        }
        if let Some(title) = &field.title {
            described["title"] = json!(title);
        }
        properties.insert(field.name.clone(), described);
    }
    let mut inner = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        inner["required"] = json!(required);
    }
    let mut feature = json!({
        "type": "object",
        "required": ["type", "geometry", "properties"],
        "properties": {
            "type": { "type": "string", "enum": ["Feature"] },
            "geometry": geometry(schema.geometry),
            "properties": inner,
        },
    });
    if schema.id == IdRole::Given {
        feature["properties"]["id"] = json!({ "type": "string", "minLength": 1 });
    }
    feature
}

fn value(kind: FieldType) -> Value {
    match kind {
        FieldType::Text => json!({ "type": "string" }),
        FieldType::Int => json!({ "type": "integer", "format": "int64" }),
        FieldType::Float => json!({ "type": "number", "format": "double" }),
        FieldType::Bool => json!({ "type": "boolean" }),
        FieldType::Time | FieldType::Date => json!({ "type": "string", "format": kind.word() }),
        FieldType::TextList => json!({ "type": "array", "items": { "type": "string" } }),
    }
}

/// Returns the schema of a GeoJSON geometry of this kind.
fn geometry(kind: Option<GeometryType>) -> Value {
    let position = json!({ "type": "array", "minItems": 2, "items": { "type": "number" } });
    let list = |items: &Value, min: u64| json!({ "type": "array", "minItems": min, "items": items });
    let (line, ring) = (list(&position, 2), list(&position, 4));
    let polygon = list(&ring, 1);
    let of = |name: &str, coordinates: &Value| {
        json!({
            "type": ["object", "null"],
            "required": ["type", "coordinates"],
            "properties": { "type": { "type": "string", "enum": [name] }, "coordinates": coordinates },
        })
    };
    match kind {
        Some(GeometryType::Point) => of("Point", &position),
        Some(GeometryType::Line) => of("LineString", &line),
        Some(GeometryType::Polygon) => of("Polygon", &polygon),
        Some(GeometryType::MultiPoint) => {
            json!({ "anyOf": [of("Point", &position), of("MultiPoint", &list(&position, 1))] })
        }
        Some(GeometryType::MultiLine) => {
            json!({ "anyOf": [of("LineString", &line), of("MultiLineString", &list(&line, 1))] })
        }
        Some(GeometryType::MultiPolygon) => {
            json!({ "anyOf": [of("Polygon", &polygon), of("MultiPolygon", &list(&polygon, 1))] })
        }
        Some(GeometryType::Any) | None => json!({ "type": ["object", "null"] }),
    }
}
