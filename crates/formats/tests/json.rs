//! GeoJSON documents, sequences and lines, through the public API.
#![allow(clippy::unwrap_used)]

use meridian_formats::{
    BatchLimits, FeatureWriter, Format, OnError, ReadError, ReadOptions, infer, infer_prefix, reader,
};
use meridian_model::{Batch, GeometryType, IdRole, Invalid, Schema, Seq, TimeRole};
use std::io::Cursor;
use std::sync::Arc;

fn inferred(format: Format, text: &str) -> Schema {
    infer(format, Box::new(Cursor::new(text.to_owned())), &ReadOptions::default()).unwrap().schema
}

fn read(format: Format, text: &str, schema: &Schema) -> Result<Batch, ReadError> {
    let schema = Arc::new(schema.clone());
    let mut events = reader(format, Box::new(Cursor::new(text.to_owned())), schema.clone(), &ReadOptions::default())?;
    let batch = events.next_batch(&BatchLimits::default())?;
    assert!(events.next_batch(&BatchLimits::default())?.is_none());
    Ok(batch.unwrap_or_else(|| Batch::empty(schema)))
}

const TWO: &str = r#"{"features":[
 {"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2.5]},
  "properties":{"time":"2026-01-31T12:00:00Z","name":"é \"x\"","n":1,"tags":["p","q"]}},
 {"properties":{"n":2.5,"time":"2026-01-31T13:00:00.5+01:00"},"geometry":{"coordinates":[-3,4],"type":"Point"},"id":7,"type":"Feature"}
 ],"type":"FeatureCollection","bbox":[0,0,1,1]}"#;

#[test]
fn a_collection_is_inferred_read_and_written_back() {
    let schema = inferred(Format::GeoJson, TWO);
    assert_eq!(schema.geometry, Some(GeometryType::Point));
    assert_eq!(schema.id, IdRole::Given);
    assert_eq!(schema.time, TimeRole::Instant(0));
    let batch = read(Format::GeoJson, TWO, &schema).unwrap();
    let writer = FeatureWriter::new(&schema, None).unwrap();
    let seqs = [Seq(1), Seq(2)];
    let mut out = Vec::new();
    let rows = writer.rows(&batch, &seqs);
    rows.feature(0, &mut out);
    out.push(b'\n');
    rows.feature(1, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2.5]},"properties":"#,
            r#"{"time":"2026-01-31T12:00:00Z","name":"é \"x\"","n":1.0,"tags":["p","q"]}}"#,
            "\n",
            r#"{"type":"Feature","id":"7","geometry":{"type":"Point","coordinates":[-3,4]},"properties":"#,
            r#"{"time":"2026-01-31T12:00:00.5Z","name":null,"n":2.5,"tags":null}}"#,
        )
    );
    assert_eq!(read(Format::NdJson, &text, &schema).unwrap().columns(), batch.columns());
    let sequence = format!("\u{1e}{}\n", text.replace('\n', "\n\u{1e}"));
    assert_eq!(read(Format::GeoJsonSeq, &sequence, &schema).unwrap().columns(), batch.columns());
    assert_eq!(read(Format::GeoJsonSeq, &text, &schema).unwrap().columns(), batch.columns());
}

#[test]
fn mistakes_are_collected_or_stop_the_reading() {
    let schema = inferred(Format::GeoJson, TWO);
    let good = r#"{"type":"Feature","id":"a","geometry":null,"properties":{"time":"2026-01-31T12:00:00Z"}}"#;
    let bad = r#"{"type":"Feature","id":"a","geometry":null,"properties":{"time":"2026-01-31T12:00:00"}}"#;
    let text = format!("{good}\n{bad}\n{good}\n\n{bad}\n");
    let Err(ReadError::Invalid(mistakes)) = read(Format::NdJson, &text, &schema) else { panic!("expected mistakes") };
    let lines: Vec<_> = mistakes.iter().map(|m| (m.line, m.field.as_deref())).collect();
    assert_eq!(lines, [(Some(2), Some("time")), (Some(5), Some("time"))]);
    let options = ReadOptions { on_error: OnError::First, ..ReadOptions::default() };
    let mut events = reader(Format::NdJson, Box::new(Cursor::new(text)), Arc::new(schema), &options).unwrap();
    let one = BatchLimits { rows: 1, ..BatchLimits::default() };
    assert_eq!(events.next_batch(&one).unwrap().unwrap().rows(), 1);
    let error = events.next_batch(&one).unwrap_err();
    assert_eq!(error.first().and_then(|m: &Invalid| m.line), Some(2));
    assert!(events.next_batch(&one).unwrap().is_none());
}

#[test]
fn a_sample_cut_off_anywhere_gives_the_same_schema() {
    let feature = |i: usize| {
        format!(
            r#"{{"type":"Feature","id":"e{i}","geometry":{{"type":"Point","coordinates":[{i}.5,2]}},"properties":{{"time":"2026-01-31T12:00:0{i}Z","n":{i},"x":{i}.25}}}}"#
        )
    };
    let features: Vec<_> = (0..6).map(feature).collect();
    let rows: String = (0..6).map(|i| format!("e{i},{i}.5,2,2026-01-31T12:00:0{i}Z,{i},{i}.25\n")).collect();
    for (format, text, whole) in [
        (Format::NdJson, features.join("\n"), 2 * features[0].len() + 2),
        (Format::GeoJsonSeq, format!("\u{1e}{}", features.join("\n\u{1e}")), 2 * features[0].len() + 8),
        (
            Format::GeoJson,
            format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, features.join(",")),
            2 * features[0].len() + 60,
        ),
        (Format::Csv, format!("id,lon,lat,time,n,x\n{rows}"), 100),
    ] {
        let expected = inferred(format, &text);
        assert_eq!(expected.id, IdRole::Given);
        for cut in whole..text.len() {
            let found = infer_prefix(format, &text.as_bytes()[..cut], &ReadOptions::default()).unwrap().schema;
            assert_eq!(found, expected, "{format} cut at {cut}");
        }
    }
}
