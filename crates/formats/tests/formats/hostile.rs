//! No input makes a reader panic, loop or exceed its memory limit.

use crate::common::{self, BOTH_WAYS, build, events, write};
use meridian_formats::{
    BatchLimits, Format, OnError, ReadError, ReadOptions, Unknown, Watch, decompress, gdelt_schema, infer,
    infer_prefix, reader, reader_of_bytes,
};
use meridian_model::{Field, FieldType, GeometryType, Schema};
use proptest::prelude::*;
use std::io::{Cursor, Read};
use std::sync::Arc;

fn options(on_error: OnError) -> ReadOptions {
    ReadOptions { on_error, record_bytes: 1 << 16, spool_bytes: 1 << 20, ..ReadOptions::default() }
}

/// Reads bytes as every format, under a schema of their own and under the inferred one.
fn feed(bytes: &[u8], formats: &[Format], schema: &Arc<Schema>) {
    for &format in formats {
        for on_error in [OnError::First, OnError::Collect] {
            let mut schemas = vec![schema.clone()];
            let source = || Box::new(Cursor::new(bytes.to_vec()));
            schemas.extend(infer(format, source(), &options(on_error)).ok().map(|inferred| Arc::new(inferred.schema)));
            let _ = infer_prefix(format, bytes, &options(on_error));
            for schema in schemas {
                let Ok(mut events) = reader(format, source(), schema, &options(on_error)) else { continue };
                let limits = BatchLimits { rows: 100, bytes: 1 << 16 };
                let mut rows = 0;
                while let Ok(Some(batch)) = events.next_batch(&limits) {
                    rows += batch.rows();
                    // An event takes at least a bit in any format.
                    assert!(rows <= bytes.len() * 8, "{format}: {rows} events of {} bytes", bytes.len());
                }
                assert!(matches!(events.next_batch(&limits), Ok(None)));
            }
        }
    }
    let _ = Format::detect("a.csv", bytes);
    let mut plain = Vec::new();
    if let Ok(stream) = decompress(Box::new(Cursor::new(bytes.to_vec()))) {
        let _ = stream.take(1 << 20).read_to_end(&mut plain);
    }
}

fn any_schema() -> Arc<Schema> {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    Arc::new(Schema {
        fields: vec![field("a", FieldType::Text), field("b", FieldType::Float), field("c", FieldType::TextList)],
        geometry: Some(GeometryType::Any),
        ..Schema::default()
    })
}

/// Text that is nearly JSON or nearly a table.
fn nearly_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[\\[\\]{}:,\"\\\\0-9a-e.\n\t-]",
        prop::sample::select(vec![
            "{\"type\":\"Feature\",",
            "\"geometry\":",
            "{\"type\":\"Point\",\"coordinates\":",
            "[1,2]",
            "\"properties\":{",
            "\"a\":",
            "\"b\":1",
            "\u{1e}",
            "}",
            "\"features\":[",
            "{\"type\":\"FeatureCollection\",",
            "null",
            "a,b\n",
            "lon,lat\n",
            "1,2\n",
            "POLYGON((0 0,1 0,1 1,0 0))",
            "\"\"",
            "\r\n",
            "é",
            "\\u12",
            "1e400",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

const TEXTUAL: [Format; 5] = [Format::GeoJson, Format::GeoJsonSeq, Format::NdJson, Format::Csv, Format::Gdelt];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        feed(&bytes, &Format::ALL, &any_schema());
    }

    #[test]
    fn nearly_right_text(text in nearly_text()) {
        feed(text.as_bytes(), &TEXTUAL, &any_schema());
        feed(text.as_bytes(), &[Format::Gdelt], &Arc::new(gdelt_schema()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_files((schema, events) in events(), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6)) {
        let batch = build(&schema, &events);
        for format in BOTH_WAYS {
            let mut bytes = write(format, std::slice::from_ref(&batch), &schema);
            for (at, byte, how) in &cuts {
                if bytes.is_empty() {
                    break;
                }
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = *byte,
                    1 => bytes.truncate(at),
                    _ => bytes.insert(at, *byte),
                }
            }
            feed(&bytes, &[format], &schema);
        }
    }
}

#[test]
fn gdelt_exports_of_every_width_are_read() {
    let schema = Arc::new(gdelt_schema());
    for width in [57, 58, 61] {
        let mut fields = vec![String::new(); width];
        let second = width == 61;
        fields[0] = "410412347".into();
        fields[1] = "20260131".into();
        fields[4] = "2026.0849".into();
        fields[6] = "FRANCE".into();
        let (lat, added) = if second { (56, 59) } else { (53, 56) };
        fields[lat] = "48.85".into();
        fields[lat + 1] = "2.35".into();
        fields[added] = if second { "20260131120000" } else { "20260131" }.into();
        let line = fields.join("\t");
        let text = format!("{line}\n{line}\n");
        assert_eq!(Format::detect("20260131.export.CSV", text.as_bytes()), Some(Format::Gdelt));
        let read = |text: String| {
            reader(Format::Gdelt, Box::new(Cursor::new(text)), schema.clone(), &ReadOptions::default())
                .and_then(|mut events| events.next_batch(&BatchLimits::default()))
        };
        let batch = read(text.clone()).unwrap().unwrap();
        assert_eq!(batch.rows(), 2);
        assert_eq!(batch.ids().unwrap().value(0), "410412347");
        assert_eq!(batch.geometry(1), Some(common::point(2.35, 48.85)));
        assert_eq!(batch.interval(0).0, meridian_model::time::parse_instant("2026-01-31T00:00:00Z", None).unwrap());
        for (text, field, line) in [
            (text.replace("20260131\t", "2026-01-31\t"), Some("day"), 1),
            (text.replace("48.85", "148.85"), Some("geometry"), 1),
            (format!("{text}short\trow\n"), None, 3),
        ] {
            let error = read(text).unwrap_err();
            let first = error.first().unwrap();
            assert_eq!((first.field.as_deref(), first.line), (field, Some(line)), "{first}");
        }
    }
}

#[test]
fn batches_of_arrow_are_given_up_when_their_time_is_over() {
    use meridian_model::builder::Value;
    let schema = any_schema();
    let event = common::Event { id: String::new(), geometry: None, values: vec![Value::Null; 3] };
    // One batch of few events, all in memory: no bytes are read, and few events are counted.
    let bytes = write(Format::Arrow, &[build(&schema, &[event.clone(), event])], &schema);
    let read = |goes_on: bool| {
        let watch = Some(Watch::new(move |_| goes_on));
        let options = ReadOptions { watch, ids: Unknown::Ignore, ..options(OnError::First) };
        let mut events = reader_of_bytes(Format::Arrow, bytes.clone().into(), schema.clone(), &options).unwrap();
        events.next_batch(&BatchLimits::default())
    };
    assert_eq!(read(true).unwrap().unwrap().rows(), 2);
    assert!(matches!(read(false), Err(ReadError::Stopped)));
}
