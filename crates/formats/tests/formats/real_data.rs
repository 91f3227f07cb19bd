//! The data sets that the project carries: each is detected, inferred to the schema one would write by hand, and
//! loaded to its last row.

use meridian_formats::{BatchLimits, Format, OnError, ReadOptions, decompress, infer, infer_prefix, peek, reader};
use meridian_model::{FieldType, GeometryType, IdRole, Schema, TimeRole};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

fn open(name: &str) -> Box<dyn Read + Send> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name);
    decompress(Box::new(File::open(path).unwrap())).unwrap()
}

/// Loads a whole data set; returns its schema and number of events.
fn load(name: &str) -> (Arc<Schema>, usize) {
    let options = ReadOptions { on_error: OnError::First, ..ReadOptions::default() };
    let (first, input) = peek(open(name), 1 << 20).unwrap();
    let format = Format::detect(name, &first).unwrap();
    let schema = Arc::new(infer(format, open(name), &options).unwrap().schema);
    assert_eq!(infer_prefix(format, &first, &options).unwrap().schema.time, schema.time, "{name}");
    let mut events = reader(format, input, schema.clone(), &options).unwrap();
    let mut rows = 0;
    while let Some(batch) = events.next_batch(&BatchLimits::default()).unwrap() {
        rows += batch.rows();
    }
    (schema, rows)
}

fn kinds(schema: &Schema) -> Vec<(&str, FieldType)> {
    schema.fields.iter().map(|f| (f.name.as_str(), f.kind)).collect()
}

#[test]
fn earthquakes() {
    use FieldType::{Float, Int, Text, Time};
    let (schema, rows) = load("usgs-earthquakes/earthquakes.csv.zst");
    assert_eq!(rows, 156_288);
    assert_eq!((schema.geometry, schema.id), (Some(GeometryType::Point), IdRole::Given));
    assert_eq!(schema.time, TimeRole::Instant(0));
    assert_eq!(
        kinds(&schema),
        [
            ("time", Time),
            ("depth", Float),
            ("mag", Float),
            ("magType", Text),
            ("nst", Int),
            ("gap", Float),
            ("dmin", Float),
            ("rms", Float),
            ("net", Text),
            ("updated", Time),
            ("place", Text),
            ("type", Text)
        ]
    );
}

#[test]
fn storms() {
    let (schema, rows) = load("atlantic-storms/storms.csv.zst");
    assert_eq!(rows, 20_778);
    assert_eq!((schema.geometry, schema.id), (Some(GeometryType::Point), IdRole::Made));
    assert_eq!(schema.time, TimeRole::Instant(2));
    assert_eq!(kinds(&schema)[4], ("category", FieldType::Int));
}

#[test]
fn ships() {
    let (schema, rows) = load("us-ais-20220103/ais.csv.zst");
    assert_eq!(rows, 99_999);
    assert_eq!((schema.geometry, schema.time), (Some(GeometryType::Point), TimeRole::Instant(0)));
    assert_eq!(
        kinds(&schema)[1..4],
        [("vessel", FieldType::Text), ("mid", FieldType::Int), ("sog_kn", FieldType::Float)]
    );
}

#[test]
fn postal_places() {
    let (schema, rows) = load("geonames-postal-places/postal_places.tsv.zst");
    assert_eq!(rows, 744_944);
    assert_eq!((schema.geometry, schema.time), (Some(GeometryType::Point), TimeRole::None));
    // Codes keep their leading zeros.
    assert_eq!(kinds(&schema)[1], ("postal_code", FieldType::Text));
}

#[test]
fn countries_and_capitals() {
    for (name, kind, expected) in [
        ("natural-earth/capitals_110m.geojsonl.zst", GeometryType::Point, 243),
        ("natural-earth/countries_110m_pop.geojsonl.zst", GeometryType::MultiPolygon, 177),
        ("natural-earth/countries_50m.geojsonl.zst", GeometryType::MultiPolygon, 241),
    ] {
        let (schema, rows) = load(name);
        assert_eq!((schema.geometry, rows), (Some(kind), expected), "{name}");
        // In the last set, five features have no id and two share one: the ids are kept, but not as the events' own.
        assert_eq!(schema.field_index("feature_id").is_some(), name.contains("50m"), "{name}");
    }
}
