//! Round trips: the reader of a format reads the output of its writer back as the same events.

use crate::common::{self, BOTH_WAYS, build, events, read_all, write};
use meridian_formats::{BatchLimits, Format, ReadOptions, Unknown, infer};
use meridian_model::builder::Value;
use meridian_model::{Batch, Field, FieldType, GeometryType, IdRole, Schema};
use proptest::prelude::*;
use std::io::Cursor;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_format_gives_back_what_it_took((schema, events) in events(), rows in 1usize..6) {
        let batch = build(&schema, &events);
        let cut = batch.rows() / 2;
        let parts = [batch.slice(0, cut), batch.slice(cut, batch.rows() - cut)];
        for format in BOTH_WAYS {
            let bytes = write(format, &parts, &schema);
            let limits = BatchLimits { rows, ..BatchLimits::default() };
            // Generated ids cannot be kept if they are generated again.
            let options = ReadOptions { ids: Unknown::Ignore, ..ReadOptions::default() };
            let back = match read_all(format, bytes.clone(), &schema, &options, &limits) {
                Ok(back) => back,
                Err(error) => return Err(TestCaseError::fail(format!("{format}: {error}\n{}", String::from_utf8_lossy(&bytes)))),
            };
            prop_assert_eq!(back.rows(), batch.rows(), "{}", format);
            for (i, (mine, theirs)) in back.columns().iter().zip(batch.columns()).enumerate() {
                prop_assert_eq!(mine, theirs, "{} column {}", format, batch.layout().columns[i].name());
            }
        }
    }

    #[test]
    fn what_was_written_is_detected_and_inferred((schema, events) in events()) {
        // By design, number fields of these names whose values are no degrees are taken for places, and then refused.
        prop_assume!(schema.field_index("lon").is_none() && schema.field_index("lat").is_none());
        let batch = build(&schema, &events);
        for format in BOTH_WAYS {
            let bytes = write(format, std::slice::from_ref(&batch), &schema);
            if batch.rows() > 1 && format != Format::Csv {
                prop_assert_eq!(Format::detect("", &bytes), Some(format));
            }
            // The inferred schema may differ, but it must accept its own sample.
            let Ok(inferred) = infer(format, Box::new(Cursor::new(bytes.clone())), &ReadOptions::default()) else { continue };
            let read = read_all(format, bytes.clone(), &inferred.schema.clone().into(), &ReadOptions::default(), &BatchLimits::default());
            match read {
                Ok(back) => prop_assert_eq!(back.rows(), batch.rows()),
                Err(error) => return Err(TestCaseError::fail(format!("{format}: {error}\n{inferred:?}\n{}", String::from_utf8_lossy(&bytes)))),
            }
        }
    }
}

/// Fields may have the names of the id, place and box columns in files; those columns give way.
#[test]
fn no_two_columns_of_a_file_have_one_name() {
    let names = ["id", "@id", "@seq", "lon", "@lon", "latitude", "x", "bbox", "geometry_bbox", "@bbox"];
    let fields = names.map(|name| Field { name: name.into(), kind: FieldType::Text, required: false, title: None });
    for id in [IdRole::Made, IdRole::Given] {
        let geometry = Some(GeometryType::Point);
        let schema = Arc::new(Schema { fields: fields.to_vec(), geometry, id, ..Schema::default() });
        let values = names.map(|name| Value::Text(format!("of {name}"))).to_vec();
        let event = common::Event { id: "own".to_owned(), geometry: Some(common::point(1.0, 2.0)), values };
        let batch = build(&schema, &[event]);
        for format in [Format::Csv, Format::Arrow, Format::GeoParquet] {
            let bytes = write(format, std::slice::from_ref(&batch), &schema);
            if format == Format::Csv {
                let text = String::from_utf8(bytes.clone()).unwrap();
                assert!(text.starts_with("@@id,@@lon,@lat,id,@id,@seq,lon,@lon,"), "{text}");
            }
            // Ids and places are known under such names without an option.
            let options = ReadOptions { ids: Unknown::Ignore, ..ReadOptions::default() };
            let back = read_all(format, bytes, &schema, &options, &BatchLimits::default()).unwrap();
            assert_eq!(back.columns(), batch.columns(), "{format}");
        }
    }
}

/// Record batches of many kinds, good and bad, read as whole columns and event by event.
#[test]
fn columns_taken_whole_are_what_events_one_by_one_give() {
    use arrow_array::{
        ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
        StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    };
    let schemas = [
        "name:String,n:Long:nillable=false,x:Double,ok:Boolean,time:Date;meridian.id='made'",
        "name:String,n:Long,x:Double,ok:Boolean,time:Date,*geom:Point;meridian.id='given'",
    ]
    .map(|spec| Arc::new(meridian_model::schema_spec::parse(spec).unwrap()));
    let mut state = 7u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let (mut good, mut bad) = (0, 0);
    for case in 0..400u64 {
        let schema = &schemas[below(2) as usize];
        let mut out = Vec::new();
        let mut writer: Option<arrow_ipc::writer::StreamWriter<&mut Vec<u8>>> = None;
        // Column kinds stay the same across the batches of a stream.
        let (text, int, zoned, odd) = (below(3), below(2), below(4), case % 3 == 0);
        let mut sink = Some(&mut out);
        for _ in 0..1 + below(3) {
            let rows = below(30) as usize;
            let nulls = below(3) == 0;
            let mut some = |value: u64| (!nulls || below(4) > 0).then_some(value);
            let numbers: Vec<Option<u64>> = (0..rows as u64).map(&mut some).collect();
            let texts = || numbers.iter().map(|n| n.map(|n| format!("text {n}")));
            let name: ArrayRef = match text {
                0 => Arc::new(texts().collect::<StringArray>()),
                1 => Arc::new(texts().collect::<LargeStringArray>()),
                _ => Arc::new(texts().collect::<StringViewArray>()),
            };
            let n: ArrayRef = match int {
                0 => Arc::new(numbers.iter().map(|n| n.map(|n| n as i64 - 5)).collect::<Int64Array>()),
                _ => Arc::new(numbers.iter().map(|n| n.map(|n| n as i32 - 5)).collect::<Int32Array>()),
            };
            let strange = if odd && below(2) == 0 { [f64::NAN, f64::INFINITY, 1e300][below(3) as usize] } else { 0.5 };
            let x = numbers.iter().map(|n| n.map(|n| if n == 3 { strange } else { n as f64 / 3.0 }));
            let late = if odd && below(2) == 0 { i64::MAX } else { 0 };
            let times = numbers.iter().map(|n| n.map(|n| if n == 4 { late } else { n as i64 * 1_000_003 }));
            let time: ArrayRef = match zoned {
                0 => Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC")),
                1 if odd => Arc::new(times.collect::<TimestampMicrosecondArray>()),
                _ => Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("+00:00")),
            };
            let far = if odd && below(2) == 0 { [180.0 + 1e-10, 181.0, f64::NAN][below(3) as usize] } else { 180.0 };
            let mut columns: Vec<(&str, ArrayRef)> = vec![
                ("time", time),
                ("name", name),
                ("n", n),
                ("x", Arc::new(x.collect::<Float64Array>())),
                ("ok", Arc::new(numbers.iter().map(|n| n.map(|n| n % 2 == 0)).collect::<BooleanArray>())),
            ];
            if schema.geometry.is_some() {
                let wild = if odd && below(3) == 0 { "\u{7}" } else { "" };
                let ids = (0..rows).map(|i| Some(format!("id {i}{}", if i == 9 { wild } else { "" })));
                columns.push(("id", Arc::new(ids.collect::<StringArray>())));
                columns.push((
                    "lon",
                    Arc::new((0..rows).map(|i| Some(if i == 5 { far } else { i as f64 })).collect::<Float64Array>()),
                ));
                columns.push(("lat", Arc::new((0..rows).map(|i| Some(i as f64 - 9.0)).collect::<Float64Array>())));
            }
            // A slice need not begin at the start of its buffers.
            let record =
                RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
            let record = record.slice(rows.min(2), rows - rows.min(2));
            if let Some(sink) = sink.take() {
                writer = Some(arrow_ipc::writer::StreamWriter::try_new(sink, &record.schema()).unwrap());
            }
            writer.as_mut().unwrap().write(&record).unwrap();
        }
        writer.unwrap().finish().unwrap();
        let limits = BatchLimits { rows: 1 + below(60) as usize, bytes: 1 << 20 };
        let one_by_one = ReadOptions { id_if_absent: Some("none".to_owned()), ..ReadOptions::default() };
        let events = read_all(Format::Arrow, out.clone(), schema, &one_by_one, &limits);
        let whole = read_all(Format::Arrow, out.clone(), schema, &ReadOptions::default(), &limits);
        let bytes =
            meridian_formats::reader_of_bytes(Format::Arrow, out.into(), schema.clone(), &ReadOptions::default());
        let first = bytes.unwrap().next_batch(&BatchLimits::default());
        match (events, whole) {
            (Ok(events), Ok(whole)) => {
                good += 1;
                assert_eq!(events.columns(), whole.columns());
                let first = first.unwrap().unwrap_or_else(|| Batch::empty(schema.clone()));
                assert_eq!(events.columns(), first.columns());
            }
            (Err(events), Err(whole)) => {
                bad += 1;
                assert_eq!(events.to_string(), whole.to_string());
                assert_eq!(events.to_string(), first.unwrap_err().to_string());
            }
            (events, whole) => panic!("case {case}: {events:?} and {whole:?}"),
        }
    }
    assert!(good > 100 && bad > 50, "{good} good, {bad} bad");
}
