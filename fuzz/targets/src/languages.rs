//! Languages of clients: filters, schemas, parameters.

use crate::world;
use meridian_api::fuzzed;
use meridian_model::filter::{Expr, Predicate, parse_json, parse_text, to_json, to_text};
use meridian_model::schema_json::{self, duration_text, parse_duration};
use meridian_model::{FenceTransition, Interval, Schema, Seq, schema_spec};
use meridian_query::{Function, SortKey, Windows};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::collections::BTreeSet;

/// Binds a filter to a schema, and tests events by it.
fn tested(expr: &Expr) {
    let batch = world::batch();
    if let Ok(predicate) = Predicate::bind(expr, batch.schema()) {
        let found = predicate.evaluate(batch);
        let left = predicate.not().evaluate(batch);
        assert!((0..batch.rows()).all(|row| !(found.value(row) && left.value(row))), "an event matches and does not");
    }
}

/// CQL2 text (OGC 21-065r2).
pub fn cql2_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(expr) = parse_text(text) else { return };
    let written = to_text(&expr);
    let again = parse_text(&written).unwrap_or_else(|e| panic!("{written}: {e}"));
    assert_eq!(to_text(&again), written);
    tested(&expr);
}

/// CQL2 JSON.
pub fn cql2_json(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    let Ok(expr) = parse_json(&value) else { return };
    let written = to_json(&expr);
    let again = parse_json(&written).unwrap_or_else(|e| panic!("{written}: {e}"));
    assert_eq!(to_json(&again), written);
    tested(&expr);
}

fn schema(schema: &Schema) {
    let document = schema_json::to_json(schema, "t", "/schema");
    let again = schema_json::from_json(&document).unwrap_or_else(|e| panic!("{document}: {e}"));
    assert!(schema_json::same(schema, &again, "t"), "{schema:?} is read back as {again:?}");
    schema_json::queryables(schema, "t", "/queryables");
}

/// A schema as a GeoTools spec.
pub fn schema_spec(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = schema_spec::parse(text) {
        schema(&read);
        let written = schema_spec::to_spec(&read);
        assert_eq!(schema_spec::parse(&written).as_ref(), Ok(&read), "{written}");
    }
}

/// A schema as JSON Schema.
pub fn json_schema(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(read) = schema_json::from_json(&document) {
        schema(&read);
    }
}

/// Parameter texts: instants, intervals, durations, windows, orders, functions, stream positions.
pub fn parameters(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let schema = world::batch().schema();
    let _ = Interval::parse(text);
    let _ = meridian_model::time::parse_date(text);
    let _ = meridian_model::time::parse_instant(text, None);
    let _ = SortKey::parse(text, schema);
    let _ = Function::parse(text, schema);
    let _ = FenceTransition::read(text.split(','));
    if let Ok(micros) = parse_duration(text) {
        duration_text(micros);
    }
    if let Some((duration, zone)) = text.split_once(' ') {
        let _ = Windows::parse(duration, zone);
    }
    if let Ok(seq) = Seq::from_id(text) {
        assert_eq!(seq.to_id(), text.to_ascii_lowercase());
    }
}

/// A query string or a form, and single client texts: the target after signing in, an anti-forgery token, a position.
pub fn query_string(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(pairs) = fuzzed::query(text) {
        let names: BTreeSet<&String> = pairs.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), pairs.len(), "a name is given twice");
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let written: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        assert_eq!(fuzzed::query(&written.join("&")), Ok(pairs));
    }
    let next = fuzzed::next_path(text);
    assert!(next.starts_with('/') && !next.starts_with("//") && !next.contains('\\'), "{next}");
    let session = format!("mrs_{}_{}", "0".repeat(16), "1".repeat(64));
    let (token, passes) = fuzzed::csrf_token(&session, text);
    assert_eq!(passes, text == token);
    if let Some(written) = fuzzed::stream_position(text) {
        assert_eq!(fuzzed::stream_position(&written).as_ref(), Some(&written));
    }
}
