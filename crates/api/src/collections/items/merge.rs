//! The change of one event by a JSON Merge Patch.

use serde_json::{Value, json};

/// Applies RFC 7396: null removes, objects merge, anything else replaces. A geometry is replaced as a whole, since half
/// of one is not valid.
pub fn merge(target: &mut Value, change: Value) {
    // One exception to JSON Merge Patch (RFC 7396): a null geometry is a value, an event without a position, and not a
    // deletion.
    let Value::Object(change) = change else {
        *target = change;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(members) = target else { return };
    for (name, value) in change {
        if value.is_null() && name != "geometry" {
            members.remove(&name);
        } else if name == "geometry" {
            members.insert(name, value);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::members;
    use bytes::Bytes;
    use meridian_formats::{BatchLimits, Format, ReadOptions, reader_of_bytes};
    use meridian_model::{IdRole, Schema, schema_spec};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn a_patch_merges_properties_and_replaces_geometry() {
        let mut event = json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"a": 1, "b": 2}});
        merge(
            &mut event,
            json!({"properties": {"a": null, "c": 3}, "geometry": {"type": "Point", "coordinates": [5, 6]}}),
        );
        assert_eq!(
            event,
            json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [5, 6]}, "properties": {"b": 2, "c": 3}})
        );
    }

    #[test]
    fn the_described_members_of_a_patch_change_an_event() {
        let patch = json!({"geometry": {"type": "Point", "coordinates": [5, 6]}, "properties": {"name": "new"}});
        let names: BTreeSet<String> = patch.as_object().unwrap().keys().cloned().collect();
        assert_eq!(members("Patch"), names);
        let parsed = schema_spec::parse("name:String,*geom:Point").unwrap();
        let schema = Arc::new(Schema { id: IdRole::Made, ..parsed });
        let event = json!({"type": "Feature", "geometry": null, "properties": {"name": "old"}});
        for patch in [patch, json!({"geometry": null}), json!({"properties": {"name": null}})] {
            let mut changed = event.clone();
            merge(&mut changed, patch.clone());
            assert_eq!(&changed["geometry"], patch.get("geometry").unwrap_or(&event["geometry"]));
            let name = patch["properties"].get("name").unwrap_or(&event["properties"]["name"]);
            assert_eq!(changed["properties"].get("name").unwrap_or(&Value::Null), name);
            let bytes = Bytes::from(changed.to_string());
            let options = ReadOptions::default();
            let mut reader = reader_of_bytes(Format::GeoJson, bytes, schema.clone(), &options).unwrap();
            assert!(reader.next_batch(&BatchLimits::default()).unwrap().is_some(), "{changed}");
        }
    }
}
