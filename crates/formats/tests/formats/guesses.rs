//! Schemas of files that the map guesses too: `web/tests/layers-unit.test.mjs` holds it against the same cases.

use meridian_formats::{Format, ReadOptions, infer};
use meridian_model::{schema_json, time};
use serde_json::Value;
use std::io::Cursor;

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
            let refusal = guessed.unwrap_err().to_string();
            assert!(refusal.contains(field), "{name}: {refusal}");
            continue;
        }
        let mut document = schema_json::to_json(&guessed.unwrap().schema, "", "");
        let properties = document["properties"].as_object_mut().unwrap();
        // Ids that the collection makes, and the place, are in no case.
        properties.retain(|_, property| property["readOnly"] != true && property["x-ogc-role"] != "primary-geometry");
        assert_eq!(document["properties"], case["properties"], "{name}");
        let id_is_a_field_too = document["x-meridian-id"]["given"] == true;
        assert_eq!(id_is_a_field_too, case["id_is_a_field_too"] == true, "{name}");
    }
}
