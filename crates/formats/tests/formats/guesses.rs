//! Schemas of files that the map guesses too: `web/tests/layers-unit.test.mjs` holds it against the same cases.

use crate::common::read_all;
use meridian_formats::{BatchLimits, Format, ReadOptions, infer};
use meridian_model::{schema_json, time};
use serde_json::Value;
use std::io::Cursor;
use std::sync::Arc;

#[test]
fn a_file_has_the_schema_that_the_map_guesses() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("files/guesses.json")).unwrap();
    for case in &cases {
        let name = &case["name"];
        let lines: Vec<&str> = case["lines"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let format = if lines[0].starts_with('{') { Format::NdJson } else { Format::Csv };
        // The map reads times without a zone in UTC.
        let zone = case["zone"].as_str().map(|zone| time::zone(zone).unwrap());
        let options = ReadOptions { zone, ..ReadOptions::default() };
        let guessed = infer(format, Box::new(Cursor::new(lines.join("\n"))), &options);
        if let Some(field) = case["refused"].as_str() {
            // Some values are refused by the sample, others by the schema that it gives.
            let bytes = lines.join("\n").into_bytes();
            let read = |schema| read_all(format, bytes, &Arc::new(schema), &options, &BatchLimits::default());
            let refusal = guessed.and_then(|guess| read(guess.schema)).unwrap_err().to_string();
            assert!(refusal.contains(field), "{name}: {refusal}");
            continue;
        }
        let guessed = guessed.unwrap();
        if let Some(note) = case["note"].as_str() {
            assert!(guessed.notes.iter().any(|one| one.contains(note)), "{name}: {:?}", guessed.notes);
        }
        if let Some(note) = case["no_note"].as_str() {
            assert!(!guessed.notes.iter().any(|one| one.contains(note)), "{name}: {:?}", guessed.notes);
        }
        let mut document = schema_json::to_json(&guessed.schema, "", "");
        let properties = document["properties"].as_object_mut().unwrap();
        if case["place"] != Value::Null {
            let mut places = properties.iter().filter(|(_, property)| property["x-ogc-role"] == "primary-geometry");
            assert_eq!(places.next().map(|(name, _)| name.as_str()), case["place"].as_str(), "{name}");
        }
        // Ids that the collection makes, and the place, are in no list of properties.
        properties.retain(|_, property| property["readOnly"] != true && property["x-ogc-role"] != "primary-geometry");
        assert_eq!(document["properties"], case["properties"], "{name}");
        let id_is_a_field_too = document["x-meridian-id"]["given"] == true;
        assert_eq!(id_is_a_field_too, case["id_is_a_field_too"] == true, "{name}");
    }
}
