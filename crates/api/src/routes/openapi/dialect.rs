//! Converts schemas from JSON Schema 2020-12, used by OpenAPI 3.1, to the dialect of OpenAPI 3.0.

use serde_json::{Value, json};

/// Rewrites every nested schema for OpenAPI 3.0. `type: [x, "null"]` becomes `type: x` with `nullable`; `const`, and a
/// type of null alone, become an `enum` of one. A schema that is `true` becomes an empty one. `exclusiveMinimum: n`
/// becomes `minimum: n` with `exclusiveMinimum: true`: no schema here has both.
pub fn lower(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let kinds = members.get("type").and_then(Value::as_array).cloned();
            if let Some([kind, null]) = kinds.as_deref()
                && null == "null"
            {
                members.insert("type".to_owned(), kind.clone());
                members.insert("nullable".to_owned(), json!(true));
            }
            // One of several alternatives, matched only by null.
            if members.get("type").is_some_and(|kind| kind == "null") {
                members.remove("type");
                members.insert("enum".to_owned(), json!([null]));
                members.insert("nullable".to_owned(), json!(true));
            }
            if let Some(only) = members.get("const").filter(|only| !only.is_object()).cloned() {
                members.remove("const");
                members.insert("enum".to_owned(), json!([only]));
            }
            for (limit, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
                if let Some(value) = members.get(exclusive).filter(|value| value.is_number()).cloned() {
                    members.insert(limit.to_owned(), value);
                    members.insert(exclusive.to_owned(), json!(true));
                }
            }
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                properties.values_mut().filter(|schema| **schema == true).for_each(|schema| *schema = json!({}));
            }
            if members.get("items").is_some_and(|schema| *schema == true) {
                members.insert("items".to_owned(), json!({}));
            }
            members.values_mut().for_each(lower);
        }
        Value::Array(items) => items.iter_mut().for_each(lower),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_newer_dialect_has_is_put_in_words_of_the_older() {
        let mut schema =
            json!({"properties": {"a": true, "const": {"const": 1}}, "items": true, "additionalProperties": true});
        lower(&mut schema);
        let expected =
            json!({"properties": {"a": {}, "const": {"enum": [1]}}, "items": {}, "additionalProperties": true});
        assert_eq!(schema, expected);
    }

    #[test]
    fn an_exclusive_limit_becomes_a_mark_of_the_limit() {
        let mut schema = json!({"properties": {
            "a": {"exclusiveMinimum": 0, "maximum": 9},
            "b": {"exclusiveMaximum": 1.5},
            "exclusiveMinimum": {"minimum": 2},
        }});
        lower(&mut schema);
        let expected = json!({"properties": {
            "a": {"minimum": 0, "exclusiveMinimum": true, "maximum": 9},
            "b": {"maximum": 1.5, "exclusiveMaximum": true},
            "exclusiveMinimum": {"minimum": 2},
        }});
        assert_eq!(schema, expected);
    }

    #[test]
    fn types_with_null_become_nullable() {
        let mut schema = json!({"properties": {"a": {"type": ["string", "null"]}, "type": {"type": "string"}}});
        lower(&mut schema);
        let expected = json!({"properties": {"a": {"type": "string", "nullable": true}, "type": {"type": "string"}}});
        assert_eq!(schema, expected);
        let mut schema = json!({"anyOf": [{"$ref": "#/a"}, {"type": "null"}]});
        lower(&mut schema);
        assert_eq!(schema, json!({"anyOf": [{"$ref": "#/a"}, {"enum": [null], "nullable": true}]}));
    }
}
