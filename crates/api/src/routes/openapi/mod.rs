//! The API described as OpenAPI: 3.0 at `/api` (required by the OGC class `oas30`), 3.1 at `/openapi.json`.
//!
//! Both documents are generated from the route table. They also list the existing collections, each with its own
//! properties.

mod collections;
mod components;
mod dialect;
mod statuses;

use crate::contract::links::{OPENAPI_30, OPENAPI_31};
use crate::html;
use crate::protocol::params::Params;
use crate::protocol::params::format::Format;
use crate::protocol::problem::Result;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::route::{RequestBody, Route};
use crate::request::scope::Scope;
use crate::response::respond;
use crate::routes::{ROUTES, TAGS};
use axum::http::Method;
use axum::response::Response;
use meridian_model::Schema;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// A version of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 3.0.3
    V30,
    /// 3.1.0
    V31,
}

/// `GET /api`
pub async fn get_30(state: Scope, context: Context) -> Result<Response> {
    let format = context.page_format()?;
    match format {
        Format::Html => Ok(respond::page(&state, page())),
        _ => respond::document(OPENAPI_30, &document(Version::V30, &context.base, &collections_of(&state)?)),
    }
}

/// `GET /openapi.json`
pub async fn get_31(state: Scope, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    respond::document(OPENAPI_31, &document(Version::V31, &context.base, &collections_of(&state)?))
}

/// Returns names and schemas of the collections, in order of name.
fn collections_of(state: &Scope) -> Result<Vec<(String, Arc<Schema>)>> {
    let collections = state.view().list().map_err(errors::store_problem)?;
    let mut described: Vec<_> = collections.iter().map(|c| (c.name().to_owned(), c.schema())).collect();
    described.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(described)
}

/// Returns the complete document, including these collections.
pub fn document(version: Version, server: &str, collections: &[(String, Arc<Schema>)]) -> Value {
    let mut paths = Map::new();
    for operation in ROUTES {
        let item = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        if let Value::Object(item) = item {
            item.insert(operation.method.as_str().to_ascii_lowercase(), describe(operation, operation.path));
        }
    }
    let mut components = components::components();
    collections::insert(collections, &mut paths, &mut components["schemas"]);
    let mut document = json!({
        "openapi": match version { Version::V30 => "3.0.3", Version::V31 => "3.1.0" },
        "info": {
            "title": "Meridian",
            "description": "Events in space and time: OGC API - Features (parts 1 to 4), OGC API - Tiles, aggregates, and the places profile.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" }
        },
        "servers": [{ "url": server }],
        "tags": TAGS.iter().map(|(name, text)| json!({"name": name, "description": text})).collect::<Vec<_>>(),
        "paths": paths,
        "components": components,
    });
    match version {
        // The document uses the terms of 3.1, most of which 3.0 shares; the others are translated.
        Version::V30 => dialect::lower(&mut document),
        Version::V31 => document["jsonSchemaDialect"] = json!("https://spec.openapis.org/oas/3.1/dialect/base"),
    }
    document
}

/// Describes an operation at its own path, or at a path with some of the variables filled in.
fn describe(operation: &Route, path: &str) -> Value {
    let in_path = path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> = in_path
        .map(|name| reference("parameters", name))
        .chain(operation.parameters.iter().map(|name| reference("parameters", name)))
        .collect();
    // Exactly the operations with this parameter can wait for a write.
    let reads = operation.parameters.contains(&"Meridian-After");
    let mut responses = Map::new();
    let mut success = json!({ "description": operation.answer });
    if !operation.produces.is_empty() {
        success["content"] = content(operation.produces);
    }
    if reads {
        success["headers"] = read_headers();
    }
    responses.insert(operation.status.to_string(), success);
    for (_, status, answer, produces) in statuses::MORE.iter().filter(|(id, ..)| *id == operation.id) {
        let mut more = json!({ "description": answer });
        if !produces.is_empty() {
            more["content"] = content(produces);
        }
        if reads && *status < 300 {
            more["headers"] = read_headers();
        }
        responses.insert(status.to_string(), more);
    }
    if operation.method == Method::GET && operation.parameters.contains(&"If-None-Match") {
        let same = "The client has this state already: `If-None-Match` names it.";
        responses.insert("304".to_owned(), json!({ "description": same }));
    }
    // Every operation can be refused, for reasons that its route does not list.
    responses.insert("default".to_owned(), reference("responses", "Problem"));
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(RequestBody { description, media_types, .. }) = operation.body {
        described["requestBody"] =
            json!({ "description": description, "required": true, "content": content(media_types) });
    }
    described
}

fn read_headers() -> Value {
    let named = components::READ_HEADERS.map(|name| (name.to_owned(), reference("headers", name)));
    Value::Object(Map::from_iter(named))
}

/// Returns media types with their schemas; a schema may be absent.
fn content(types: &[(&str, &str)]) -> Value {
    let schema_of = |schema: &str| match schema {
        "" => json!({}),
        named => json!({ "schema": reference("schemas", named) }),
    };
    Value::Object(types.iter().map(|(kind, schema)| ((*kind).to_owned(), schema_of(schema))).collect())
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn page() -> html::Page {
    let mut body = String::from(
        "<p>The same as <a href=\"/api?f=json\">OpenAPI 3.0</a> and <a href=\"/openapi.json\">OpenAPI 3.1</a> for programs. \
         Open an operation to see its parameters and to try it.</p><div id=\"operations\">",
    );
    for (tag, text) in TAGS {
        let _ = write!(
            body,
            "<h2>{}</h2><p>{}</p><div class=\"wide\" tabindex=\"0\"><table>",
            html::escape(tag),
            html::escape(text)
        );
        for operation in ROUTES.iter().filter(|o| o.tag == *tag) {
            let _ = write!(
                body,
                "<tr><td><code>{} {}</code></td><td>{}</td></tr>",
                operation.method,
                html::escape(operation.path),
                html::escape(operation.summary)
            );
        }
        body.push_str("</table></div>");
    }
    body.push_str("</div>");
    let page = html::page("API", &[], &body).within("/api");
    // The viewer is part of the output of `web/`; without it, the page is only the list.
    if cfg!(feature = "map") { page.with_assets("api") } else { page }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the test compares or writes a file of the repository")]
    use super::*;
    use meridian_model::schema_spec;
    use std::collections::BTreeSet;

    fn collections() -> Vec<(String, Arc<Schema>)> {
        let schema = schema_spec::parse("mag:Double,dtg:Date,tags:List[String],flag:Boolean,*geom:Point").unwrap();
        vec![("quakes".to_owned(), Arc::new(schema))]
    }

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get("$ref") {
                    found.push(target.clone());
                }
                members.values().for_each(|v| references(v, found));
            }
            Value::Array(items) => items.iter().for_each(|v| references(v, found)),
            _ => {}
        }
    }

    #[test]
    fn the_document_that_the_pages_types_come_from_is_this_one() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let written =
            serde_json::to_string_pretty(&document(Version::V31, "http://localhost:7117", &[])).unwrap() + "\n";
        if std::env::var_os("MERIDIAN_WRITE_DOCS").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let hint =
            "docs/openapi.json differs from the types: MERIDIAN_WRITE_DOCS=1 cargo test --workspace --lib openapi";
        assert!(found == written, "{hint}; then npm --prefix web run contract");
    }

    #[test]
    fn every_reference_resolves_and_every_operation_is_whole() {
        for version in [Version::V30, Version::V31] {
            let document = document(version, "http://localhost", &collections());
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(found.len() > 50);
            for target in found {
                let pointer = target.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{target}");
            }
            let mut ids = BTreeSet::new();
            for (path, item) in document["paths"].as_object().unwrap() {
                assert!(path.starts_with('/'), "{path}");
                for (method, operation) in item.as_object().unwrap() {
                    let id = operation["operationId"].as_str().unwrap().to_owned();
                    assert!(ids.insert(id.clone()), "{method} {path}: {id} stands twice");
                    let responses = operation["responses"].as_object().unwrap();
                    assert!(responses.len() > 1 && responses.values().all(|r| r.is_object()), "{id}");
                    for name in path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')) {
                        let parameter = document.pointer(&format!("/components/parameters/{name}")).unwrap();
                        assert_eq!(
                            (&parameter["in"], &parameter["required"]),
                            (&json!("path"), &json!(true)),
                            "{name}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn each_collection_has_its_own_queryables_and_bodies_and_every_operation_of_the_template() {
        let document = document(Version::V30, "http://localhost", &collections());
        let (own, template) = (&document["paths"]["/collections/quakes/items"], "/collections/{c}/items");
        let methods = |item: &Value| item.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(methods(own), methods(&document["paths"][template]));
        let named = |name: &str| {
            let parameters = own["get"]["parameters"].as_array().unwrap();
            parameters.iter().find(|p| p["name"] == name).map(|p| p["schema"]["type"].clone())
        };
        assert_eq!(named("mag"), Some(json!("number")));
        assert_eq!(named("tags"), Some(json!("string")), "one member of the list");
        assert_eq!(named("geom"), None, "a place is asked for by bbox and filter");
        let feature = &document["components"]["schemas"]["quakes.feature"]["properties"];
        let mag = &feature["properties"]["properties"]["mag"];
        assert_eq!((&mag["type"], &mag["nullable"]), (&json!("number"), &json!(true)));
        assert_eq!(feature["geometry"]["properties"]["type"]["enum"], json!(["Point"]));
    }

    #[test]
    fn names_that_filters_must_quote_or_that_mean_something_else_are_no_parameters() {
        let field = |name: &str| meridian_model::Field {
            name: name.to_owned(),
            kind: meridian_model::FieldType::Int,
            required: false,
            title: None,
        };
        let fields = ["at place", "limit", "f", "like", "n"].map(field).to_vec();
        let schema = Arc::new(Schema { fields, ..Schema::default() });
        let document = document(Version::V30, "http://localhost", &[("odd".to_owned(), schema)]);
        let parameters = document["paths"]["/collections/odd/items"]["get"]["parameters"].as_array().unwrap();
        let own: Vec<&str> = parameters.iter().filter_map(|p| p["name"].as_str()).collect();
        assert_eq!(own, ["id", "n"]);
        assert!(parameters.contains(&reference("parameters", "queryable")), "the others can still be asked for");
    }

    #[test]
    fn what_is_described_is_bounded() {
        let fields = (0..900).map(|n| meridian_model::Field {
            name: format!("n{n}"),
            kind: meridian_model::FieldType::Int,
            required: false,
            title: None,
        });
        let schema = Arc::new(Schema { fields: fields.collect(), ..Schema::default() });
        let many: Vec<_> = (0..40).map(|n| (format!("c{n:02}"), schema.clone())).collect();
        let document = document(Version::V30, "http://localhost", &many);
        let own = document["paths"].as_object().unwrap().keys().filter(|p| p.starts_with("/collections/c")).count();
        assert_eq!(own, 2 * 11, "eleven collections of 901 queryables are within 10,000");
    }

    #[test]
    fn further_answers_are_of_operations_that_there_are() {
        for (id, status, ..) in statuses::MORE {
            let operation = ROUTES.iter().find(|o| o.id == *id).unwrap_or_else(|| panic!("there is no {id}"));
            assert_ne!(operation.status, *status, "{id}");
        }
    }

    #[test]
    fn every_component_is_used() {
        let document = document(Version::V30, "http://localhost", &[]);
        let mut found = Vec::new();
        references(&document, &mut found);
        for kind in ["parameters", "schemas", "headers", "responses"] {
            for name in document["components"][kind].as_object().unwrap().keys() {
                assert!(found.contains(&format!("#/components/{kind}/{name}")), "{kind}/{name} is never used");
            }
        }
    }
}
