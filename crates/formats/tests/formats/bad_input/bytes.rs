//! Bytes that are no text, that do not end, or that are cut off.

use super::{GOOD, check, mistakes, schema};
use crate::common::{self, build, write};
use meridian_formats::{BatchLimits, Format, ReadOptions, decompress, infer, reader};
use meridian_model::GeometryType;
use meridian_model::builder::Value;
use std::io::{Cursor, Read, Write};
use std::sync::Arc;

#[test]
fn bytes_that_are_not_text_are_told() {
    let points = schema(GeometryType::Point);
    let mut bytes = format!("{GOOD}\n{GOOD}\n").into_bytes();
    let at = bytes.len() - 10;
    bytes[at] = 0xff;
    check(Format::NdJson, &bytes, &points, Some(2), None, "is not UTF-8");
    check(Format::Csv, b"id,lon,lat,time,name\na,1,2,2026-01-31T12:00:00Z,\xff\n", &points, Some(2), None, "not UTF-8");
}

#[test]
fn a_text_in_utf_16_is_detected_and_refused_by_the_name_of_its_encoding() {
    let points = schema(GeometryType::Point);
    let document = format!("{{\"type\":\"FeatureCollection\",\"features\":[{GOOD}]}}");
    let (lines, sequence) = (format!("{GOOD}\n{GOOD}\n"), format!("\u{1e}{GOOD}\n"));
    for (format, text) in [
        (Format::GeoJson, document.as_str()),
        (Format::NdJson, &lines),
        (Format::GeoJsonSeq, &sequence),
        (Format::Csv, "id,lon,lat\na,1,2\n"),
    ] {
        for (mark, low, high) in [("", "UTF-16LE", "UTF-16BE"), ("\u{feff}", "UTF-16", "UTF-16")] {
            let units: Vec<u16> = format!("{mark}{text}").encode_utf16().collect();
            let bytes = |bytes: fn(u16) -> [u8; 2]| units.iter().copied().flat_map(bytes).collect::<Vec<u8>>();
            for (bytes, name) in [(bytes(u16::to_le_bytes), low), (bytes(u16::to_be_bytes), high)] {
                assert_eq!(Format::detect("-", &bytes), Some(format), "{name} {text}");
                check(format, &bytes, &points, Some(1), None, &format!("the input is {name}: expected UTF-8"));
            }
        }
    }
}

#[test]
fn a_control_byte_before_a_record_is_told_and_never_taken_for_a_mark() {
    let points = schema(GeometryType::Point);
    for byte in ['\u{1}', '\u{15}', '\u{1e}', '\u{7f}'] {
        let found = format!("found {byte:?}");
        let line = format!("{byte}{GOOD}\n");
        check(Format::NdJson, format!("{GOOD}\n{line}").as_bytes(), &points, Some(2), None, &found);
        let error = infer(Format::NdJson, Box::new(Cursor::new(line)), &ReadOptions::default()).unwrap_err();
        assert!(error.first().is_some_and(|first| first.line == Some(1) && first.detail.contains(&found)), "{error}");
    }
    // A separator of the sequence belongs there; the mark of a converter does not.
    check(Format::GeoJsonSeq, format!("\u{1e}\u{15}{GOOD}\n").as_bytes(), &points, Some(1), None, "found '\\u{15}'");
}

#[test]
fn a_record_without_end_is_refused_without_being_held() {
    let points = schema(GeometryType::Point);
    for (format, start) in [
        (Format::NdJson, "{\"a\":\""),
        (Format::GeoJson, "{\"type\":\"FeatureCollection\",\"features\":[{\"a\":\""),
        (Format::GeoJson, "{\"a\":\""),
        (Format::GeoJsonSeq, "\u{1e}{\"a\":\""),
        (Format::Csv, "id,lon,lat,time,name\na,1,2,2026-01-31T12:00:00Z,\""),
        (Format::Csv, ""),
        (Format::Gdelt, ""),
    ] {
        // Claims two gigabytes, of which only the first few megabytes may be requested.
        let counted = Counted {
            rest: Cursor::new(start.as_bytes().to_vec()).chain(std::io::repeat(b'x')).take(2 << 30),
            read: 0,
        };
        let counted = Arc::new(std::sync::Mutex::new(counted));
        let options = ReadOptions { record_bytes: 1 << 20, ..ReadOptions::default() };
        let source = Box::new(Shared(counted.clone()));
        let error = reader(format, source, points.clone(), &options)
            .and_then(|mut r| r.next_batch(&BatchLimits::default()))
            .unwrap_err();
        assert!(error.to_string().contains("1048576 bytes"), "{format} {start}: {error}");
        let read = counted.lock().unwrap().read;
        assert!(read < 8 << 20, "{format} {start}: {read} bytes were read");
    }
}

struct Counted<R> {
    rest: R,
    read: u64,
}

struct Shared<R>(Arc<std::sync::Mutex<Counted<R>>>);

impl<R: Read> Read for Shared<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut counted = self.0.lock().unwrap();
        let got = counted.rest.read(out)?;
        counted.read += got as u64;
        Ok(got)
    }
}

#[test]
fn a_truncated_gzip_is_a_mistake_of_the_input() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(format!("{GOOD}\n").repeat(1000).as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap();
    let points = schema(GeometryType::Point);
    let plain = decompress(Box::new(Cursor::new(bytes[..bytes.len() - 20].to_vec()))).unwrap();
    let mut events = reader(Format::NdJson, plain, points, &ReadOptions::default()).unwrap();
    let error = events.next_batch(&BatchLimits::default()).unwrap_err();
    assert!(error.first().unwrap().detail.contains("the gzip data ends before it is complete"), "{error}");
}

#[test]
fn truncated_columns_are_told() {
    let points = schema(GeometryType::Point);
    let event = common::Event {
        id: "a".into(),
        geometry: Some(common::point(1.0, 2.0)),
        values: vec![Value::Time(0), Value::Text("b".into()), Value::Null, Value::Null, Value::Null, Value::Null],
    };
    let batch = build(&points, &vec![event; 100]);
    for format in [Format::GeoParquet, Format::Arrow] {
        let bytes = write(format, std::slice::from_ref(&batch), &points);
        for cut in (0..bytes.len() - 8).step_by(7) {
            let found = mistakes(format, &bytes[..cut], &points);
            assert!(!found[0].detail.is_empty(), "{format} cut at {cut}");
        }
    }
    let found = mistakes(Format::GeoParquet, b"PAR1 and then nothing", &points);
    assert!(found[0].detail.contains("the Parquet data is damaged or cut off"), "{}", found[0]);
}
