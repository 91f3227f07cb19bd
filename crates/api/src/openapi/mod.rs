//! The API described as OpenAPI: 3.0 at `/api` (what the OGC class `oas30` asks for), 3.1 at `/openapi.json`.
//!
//! Both documents come from one table, [`operations::OPERATIONS`]; a test holds that table against the router.

mod components;
pub mod operations;

use crate::html;
use crate::links::{OPENAPI_30, OPENAPI_31};
use crate::params::Params;
use crate::params::format::{self, Format, PAGES};
use crate::problem::Result;
use crate::request::Context;
use crate::respond;
use axum::response::Response;
use operations::{Body, OPERATIONS, Operation};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A version of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 3.0.3
    V30,
    /// 3.1.0
    V31,
}

/// `GET /api`
pub async fn get_30(context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    params.finish()?;
    match format {
        Format::Html => Ok(respond::html(page())),
        _ => respond::json(OPENAPI_30, &document(Version::V30, &context.base)),
    }
}

/// `GET /openapi.json`
pub async fn get_31(context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    respond::json(OPENAPI_31, &document(Version::V31, &context.base))
}

/// The whole document.
pub fn document(version: Version, server: &str) -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let item = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        if let Value::Object(item) = item {
            item.insert(operation.method.to_ascii_lowercase(), describe(operation));
        }
    }
    let mut document = json!({
        "openapi": match version { Version::V30 => "3.0.3", Version::V31 => "3.1.0" },
        "info": {
            "title": "Meridian",
            "description": "Events in space and time: OGC API - Features (parts 1 to 4), OGC API - Tiles, aggregates, and the places profile.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" }
        },
        "servers": [{ "url": server }],
        "tags": operations::TAGS.iter().map(|(name, text)| json!({"name": name, "description": text})).collect::<Vec<_>>(),
        "paths": paths,
        "components": components::components(),
    });
    if version == Version::V31
        && let Value::Object(document) = &mut document
    {
        document.insert("jsonSchemaDialect".into(), json!("https://spec.openapis.org/oas/3.1/dialect/base"));
    }
    document
}

fn describe(operation: &Operation) -> Value {
    let in_path = operation.path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> = in_path
        .map(|name| reference("parameters", name))
        .chain(operation.parameters.iter().map(|name| reference("parameters", name)))
        .collect();
    let mut responses = Map::new();
    let mut success = json!({ "description": operation.answer });
    if !operation.produces.is_empty() {
        success["content"] = content(operation.produces);
    }
    responses.insert(operation.status.to_string(), success);
    responses.insert("default".to_owned(), reference("responses", "Problem"));
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(Body { description, takes }) = operation.body {
        described["requestBody"] = json!({ "description": description, "required": true, "content": content(takes) });
    }
    described
}

/// Media types and the schema of each, which may have none.
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

fn page() -> String {
    let mut body = String::from(
        "<p>The same as <a href=\"/api?f=json\">OpenAPI 3.0</a> and <a href=\"/openapi.json\">OpenAPI 3.1</a> for programs.</p>",
    );
    for (tag, text) in operations::TAGS {
        let _ = write!(body, "<h2>{}</h2><p>{}</p><div class=\"wide\"><table>", html::escape(tag), html::escape(text));
        for operation in OPERATIONS.iter().filter(|o| o.tag == *tag) {
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
    html::page("API", &[("Meridian", "/".to_owned())], &body)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_reference_resolves_and_every_operation_is_whole() {
        for version in [Version::V30, Version::V31] {
            let document = document(version, "http://localhost");
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(found.len() > 50);
            for target in found {
                let pointer = target.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{target}");
            }
            let mut ids = std::collections::BTreeSet::new();
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
    fn every_component_is_used() {
        let document = document(Version::V30, "http://localhost");
        let mut found = Vec::new();
        references(&document, &mut found);
        for kind in ["parameters", "schemas", "responses"] {
            for name in document["components"][kind].as_object().unwrap().keys() {
                assert!(found.contains(&format!("#/components/{kind}/{name}")), "{kind}/{name} is never used");
            }
        }
    }
}
