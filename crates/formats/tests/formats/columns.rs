//! Columns of Arrow and Parquet with values that no field has unchanged, and the compression of Parquet.

use crate::common::shown::value;
use crate::left_out::read;
use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Int64Array, RecordBatch, TimestampMicrosecondArray, UInt64Array,
};
use meridian_formats::{Format, OnError, ReadOptions, infer};
use meridian_model::{FieldType, IdRole, Schema, schema_spec};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::Cursor;
use std::sync::Arc;

fn batch(name: &str, column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([(name, column)]).unwrap()
}

fn parquet(batch: &RecordBatch, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// A column in both formats.
fn files(name: &str, column: ArrayRef) -> [(Format, Vec<u8>); 2] {
    let batch = batch(name, column);
    let mut arrow = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    arrow.write(&batch).unwrap();
    let parquet = parquet(&batch, Compression::UNCOMPRESSED);
    [(Format::Arrow, arrow.into_inner().unwrap()), (Format::GeoParquet, parquet)]
}

fn guess(format: Format, bytes: &[u8]) -> Arc<Schema> {
    Arc::new(infer(format, Box::new(Cursor::new(bytes.to_vec())), &ReadOptions::default()).unwrap().schema)
}

/// Returns the values of the only field, under a schema of its own or the guessed one, and the reports of rounding.
fn values(name: &str, column: ArrayRef, kind: FieldType, spec: Option<&str>) -> (Vec<String>, Vec<String>) {
    let both = files(name, column).map(|(format, bytes)| {
        let schema = match spec {
            Some(spec) => Arc::new(schema_spec::parse(spec).unwrap()),
            None => guess(format, &bytes),
        };
        assert_eq!(schema.fields[0].kind, kind, "{format}");
        let (batch, report) = read(format, &bytes, &schema, &ReadOptions::default()).unwrap();
        let shown: Vec<String> = (0..batch.rows()).map(|row| value(&batch, name, row)).collect();
        let rounded: Vec<String> = report.rounded_first.iter().map(ToString::to_string).collect();
        (shown, rounded)
    });
    let [arrow, parquet] = both;
    assert_eq!(arrow, parquet);
    arrow
}

#[test]
fn times_without_a_zone_are_kept_as_text() {
    let local = || TimestampMicrosecondArray::from(vec![Some(-1_000_000), None, Some(1_500_000)]);
    let shown = ["\"1969-12-31T23:59:59\"", "null", "\"1970-01-01T00:00:01.5\""];
    assert_eq!(values("loc", Arc::new(local()), FieldType::Text, None).0, shown);
    // An existing field of texts takes these, days and instants.
    let text = |column: ArrayRef| values("loc", column, FieldType::Text, Some("loc:String")).0;
    assert_eq!(text(Arc::new(local())), shown);
    assert_eq!(text(Arc::new(Date32Array::from(vec![20_484]))), ["\"2026-01-31\""]);
    assert_eq!(text(Arc::new(local().with_timezone("UTC")))[0], "\"1969-12-31T23:59:59Z\"");
}

#[test]
fn an_integer_beyond_64_bits_is_a_bad_row_and_its_neighbours_are_not() {
    let numbers = UInt64Array::from(vec![Some(1), Some(u64::MAX), None, Some(3)]);
    let decimals = vec![Some(1), Some(i128::from(u64::MAX)), None, Some(3)];
    let decimals = Decimal128Array::from(decimals).with_precision_and_scale(30, 0).unwrap();
    for column in [Arc::new(numbers) as ArrayRef, Arc::new(decimals)] {
        for (format, bytes) in files("h", column) {
            let schema = guess(format, &bytes);
            assert_eq!(schema.fields[0].kind, FieldType::Int, "{format}");
            let refusal = read(format, &bytes, &schema, &ReadOptions::default()).unwrap_err().to_string();
            let expected = "line 2: h: the integer 18446744073709551615 is too large for 64 signed bits";
            assert_eq!(refusal, expected, "{format}");
            let skip = ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() };
            let (batch, report) = read(format, &bytes, &schema, &skip).unwrap();
            assert_eq!((batch.rows(), report.skipped), (3, 1), "{format}");
            assert_eq!([0, 1, 2].map(|row| value(&batch, "h", row)), ["1", "null", "3"], "{format}");
        }
    }
    // An id is a text.
    for (format, bytes) in files("id", Arc::new(UInt64Array::from(vec![1, u64::MAX]))) {
        let schema = guess(format, &bytes);
        assert_eq!(schema.id, IdRole::Given, "{format}");
        let (batch, _) = read(format, &bytes, &schema, &ReadOptions::default()).unwrap();
        assert_eq!(batch.ids().unwrap().value(1), "18446744073709551615", "{format}");
    }
}

#[test]
fn decimals_keep_their_digits_or_the_loss_is_reported() {
    let decimals = |numbers: Vec<i128>, precision, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(numbers).with_precision_and_scale(precision, scale).unwrap())
    };
    let keys = decimals(vec![123_456_789_012_345_678, 123_456_789_012_345_679], 20, 0);
    let (shown, rounded) = values("key", keys, FieldType::Int, None);
    assert_eq!(shown, ["123456789012345678", "123456789012345679"]);
    assert!(rounded.is_empty(), "{rounded:?}");
    let amounts = decimals(vec![1_234_567_890_123_456_789, 100, -1, 1_234_567_890_123_456_000], 30, 3);
    let (shown, rounded) = values("sum", amounts, FieldType::Float, None);
    assert_eq!(shown, ["1234567890123456.8", "0.1", "-0.001", "1234567890123456"]);
    assert_eq!(rounded, ["line 1: sum: the decimal 1234567890123456.789 was rounded to 1234567890123456.8"]);
    // Integers too, whichever way they come into a field of numbers.
    let long: ArrayRef = Arc::new(Int64Array::from(vec![1, 9_007_199_254_740_993]));
    let (_, rounded) = values("n", long, FieldType::Float, Some("n:Double"));
    assert_eq!(rounded, ["line 2: n: the integer 9007199254740993 was rounded to 9007199254740992"]);
}

#[test]
fn parquet_is_read_in_every_usual_compression() {
    let batch = batch("n", Arc::new(Int64Array::from_iter_values(0..1000)));
    for compression in [
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        let bytes = parquet(&batch, compression);
        let schema = guess(Format::GeoParquet, &bytes);
        let (events, _) = read(Format::GeoParquet, &bytes, &schema, &ReadOptions::default()).unwrap();
        assert_eq!(value(&events, "n", 999), "999", "{compression}");
    }
}
