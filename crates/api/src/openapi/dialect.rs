//! The schemas of the document are written as JSON Schema 2020-12, which is what OpenAPI 3.1 takes; this makes of
//! them what OpenAPI 3.0 takes.

use serde_json::{Value, json};

/// Rewrites every schema within for OpenAPI 3.0: `type: [x, "null"]` becomes `type: x` with `nullable`.
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
    fn types_with_null_become_nullable() {
        let mut schema = json!({"properties": {"a": {"type": ["string", "null"]}, "type": {"type": "string"}}});
        lower(&mut schema);
        let expected = json!({"properties": {"a": {"type": "string", "nullable": true}, "type": {"type": "string"}}});
        assert_eq!(schema, expected);
    }
}
