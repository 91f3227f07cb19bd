//! Schemas and settings of collections, and changes of an event.

use schemars::JsonSchema;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A JSON Schema with x-ogc-role and x-meridian-… members.
#[derive(JsonSchema)]
#[schemars(rename = "JsonSchema")]
#[expect(dead_code, reason = "it only describes")]
pub struct CollectionSchema {
    /// `object`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["object"]))]
    kind: Option<String>,
    /// Title of the collection.
    title: Option<String>,
    /// Subject of the collection.
    description: Option<String>,
    /// The schema of each property of an event, by its name.
    properties: BTreeMap<String, Map<String, Value>>,
    /// Names of the properties that every event has.
    required: Option<Vec<String>>,
    /// `false`: properties without a schema are refused.
    #[serde(rename = "additionalProperties")]
    #[schemars(extend("enum" = [false]))]
    additional_properties: Option<bool>,
    /// Whether a query sees all events, or the newest of each object.
    #[serde(rename = "x-meridian-mode")]
    mode: Option<Mode>,
    /// ISO 8601 duration.
    #[serde(rename = "x-meridian-time-unit")]
    time_unit: Option<String>,
    /// The id, if its name is that of another property too.
    #[serde(rename = "x-meridian-id")]
    id: Option<Id>,
}

/// The id of an event.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
struct Id {
    /// Its name.
    name: String,
    /// Whether clients give it; otherwise the server makes it.
    given: bool,
}

/// The events that a query sees.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
enum Mode {
    History,
    Latest,
}

/// Changes of a collection; what is absent stays.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes")]
pub struct Settings {
    /// A new name, without other changes.
    id: Option<String>,
    /// ISO 8601 duration; null keeps them for ever.
    #[schemars(extend("nullable" = true))]
    retention: Option<String>,
    /// Bytes of events; null for no limit.
    #[schemars(range(min = 1), extend("nullable" = true))]
    retention_bytes: Option<u64>,
    /// New optional fields, as in a JSON Schema.
    properties: Option<BTreeMap<String, Map<String, Value>>>,
}

/// A JSON Merge Patch (RFC 7396) of the event as GeoJSON.
#[derive(JsonSchema)]
#[schemars(rename = "Patch")]
#[expect(dead_code, reason = "it only describes")]
pub struct EventPatch {
    /// A geometry, which replaces the event's; null for none.
    #[schemars(extend("nullable" = true))]
    geometry: Option<Map<String, Value>>,
    /// New values by their names; null removes one.
    properties: Option<Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use crate::contract::{components, members};
    use meridian_model::schema_json::{MEMBERS, from_json};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn document() -> Value {
        json!({
            "type": "object", "title": "Ships", "description": "Where they were.",
            "properties": {
                "ship": { "type": "string", "x-meridian-object": true },
                "seen": { "type": "string", "format": "date-time", "x-ogc-role": "primary-instant" },
            },
            "required": ["ship"], "additionalProperties": false,
            "x-meridian-mode": "history", "x-meridian-time-unit": "PT1H",
            "x-meridian-id": { "name": "ship", "given": true },
        })
    }

    fn names(names: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
        names.into_iter().map(str::to_owned).collect()
    }

    fn keys(value: &Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn a_schema_has_the_members_that_its_parser_takes() {
        let mut document = document();
        assert_eq!(members("JsonSchema"), names(MEMBERS));
        assert_eq!(keys(&document), names(MEMBERS));
        let all = components();
        let properties = &all["JsonSchema"]["properties"];
        for name in ["x-meridian-mode", "additionalProperties", "type"] {
            for value in properties[name]["enum"].as_array().unwrap() {
                document[name] = value.clone();
                from_json(&document).unwrap_or_else(|mistake| panic!("{name} {value}: {mistake}"));
            }
        }
        assert_eq!(properties["additionalProperties"]["enum"], json!([false]));
        assert_eq!(keys(&properties["x-meridian-id"]["properties"]), keys(&document["x-meridian-id"]));
        for name in properties["x-meridian-id"]["required"].as_array().unwrap() {
            let mut document = document.clone();
            document["x-meridian-id"].as_object_mut().unwrap().remove(name.as_str().unwrap());
            let mistake = from_json(&document).expect_err("half an id");
            assert_eq!(mistake.field.as_deref(), Some("/x-meridian-id"), "{name}");
        }
        let bare = json!({ "properties": document["properties"] });
        from_json(&bare).unwrap_or_else(|mistake| panic!("what is not required may be absent: {mistake}"));
    }

    #[test]
    fn what_a_schema_does_not_name_is_refused() {
        for (name, value) in
            [("minProperties", json!(1)), ("x-meridian-colour", json!(1)), ("additionalProperties", json!(true))]
        {
            let mut document = document();
            document[name] = value;
            let mistake = from_json(&document).expect_err(name);
            assert_eq!(mistake.field, Some(format!("/{name}")));
        }
    }
}
