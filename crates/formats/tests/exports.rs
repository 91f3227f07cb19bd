//! Files for other programs: ogr2ogr reads the same events in them, and they come back as they were.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs on files")]
#![cfg(all(feature = "flatgeobuf", feature = "geopackage"))]

mod common;

use arrow_ipc::reader::StreamReader;
use common::{build, write};
use meridian_formats::export::{FlatGeobufWriter, GeoPackageWriter};
use meridian_formats::{BatchLimits, Format, ReadOptions, reader_of_path};
use meridian_model::builder::Value;
use meridian_model::{Batch, Field, FieldType, GeometryType, IdRole, Schema};
use std::fs::File;
use std::io::Cursor;
use std::process::Command;
use std::sync::Arc;

#[test]
fn exported_files_hold_the_events_for_gdal_and_for_us() {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let fields = vec![
        field("name", FieldType::Text),
        field("n", FieldType::Int),
        field("x", FieldType::Float),
        field("ok", FieldType::Bool),
        field("at", FieldType::Time),
    ];
    for kind in [GeometryType::Point, GeometryType::MultiPoint] {
        let geometry = Some(kind);
        let schema = Arc::new(Schema { fields: fields.clone(), geometry, id: IdRole::Given, ..Schema::default() });
        let events: Vec<common::Event> = (0..200)
            .map(|n| common::Event {
                id: format!("e{n}"),
                geometry: Some(common::point(f64::from(n) / 4.0, f64::from(n) / -8.0)),
                values: vec![
                    if n % 7 == 0 { Value::Null } else { Value::Text(format!("né {n}")) },
                    Value::Int(i64::from(n) - 3_000_000_000),
                    Value::Float(f64::from(n) * 0.1),
                    Value::Bool(n % 2 == 0),
                    Value::Time(i64::from(n) * 1_234_567_000),
                ],
            })
            .collect();
        let batch = build(&schema, &events);
        let stream = write(Format::Arrow, std::slice::from_ref(&batch), &schema);
        let folder = tempfile::tempdir().unwrap();
        let (fgb, gpkg) = (folder.path().join("events.fgb"), folder.path().join("events.gpkg"));
        let mut flatgeobuf = FlatGeobufWriter::new("events", &schema).unwrap();
        let mut geopackage = GeoPackageWriter::create(&gpkg, "events", &schema).unwrap();
        for record in StreamReader::try_new(Cursor::new(stream), None).unwrap() {
            let record = record.unwrap();
            flatgeobuf.write(&record).unwrap();
            geopackage.write(&record).unwrap();
        }
        flatgeobuf.finish(File::create(&fgb).unwrap()).unwrap();
        geopackage.finish().unwrap();
        for (format, path) in [(Format::FlatGeobuf, &fgb), (Format::GeoPackage, &gpkg)] {
            let mut events = reader_of_path(format, path, schema.clone(), &ReadOptions::default()).unwrap();
            let mut batches = Vec::new();
            while let Some(batch) = events.next_batch(&BatchLimits::default()).unwrap() {
                batches.push(batch);
            }
            let back = Batch::concat(&batches).unwrap();
            assert_eq!(lines(&back, &schema), lines(&batch, &schema), "{format}");
            let said = Command::new("ogrinfo").args(["-so", "-al", path.to_str().unwrap()]).output();
            let said = said.expect("ogrinfo is needed: apt-get install gdal-bin");
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.status.success() && said.stderr.is_empty(), "{text}{}", String::from_utf8_lossy(&said.stderr));
            for part in ["Feature Count: 200", "WGS 84", "at: DateTime", "n: Integer64", "x: Real", "(Boolean)"] {
                assert!(text.contains(part), "{format}: {part} is not in {text}");
            }
        }
    }
}

/// Features a line each, sorted, in the multi form: a layer of that form has no other.
fn lines(batch: &Batch, schema: &Arc<Schema>) -> Vec<String> {
    let text = String::from_utf8(write(Format::NdJson, std::slice::from_ref(batch), schema)).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.replace("\"MultiPoint\"", "\"Point\"").replace("[[", "[").replace("]]", "]"))
        .collect();
    lines.sort();
    lines
}
