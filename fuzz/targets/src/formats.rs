//! Readers of event files.

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use meridian_formats::{
    BatchLimits, Format, OnError, ReadOptions, Unknown, decompress, gdelt_schema, infer, infer_prefix, reader, writer,
};
use meridian_model::{FieldType, GeometryType, IdRole, Schema, Seq, TimeRole};
use serde::de::IgnoredAny;
use std::io::{Cursor, Read};
use std::sync::{Arc, LazyLock};

/// Max bytes of a record here; larger ones are rejected.
const RECORD_BYTES: usize = 64 << 10;
/// Max bytes of a Parquet or Arrow file here.
const SPOOL_BYTES: usize = 1 << 20;
/// Max decompressed size of an input here.
const UNPACKED_BYTES: u64 = 1 << 20;

/// Fields of every type, and shapes of every kind.
static ANY: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let field = |name: &str, kind, required| meridian_model::Field { name: name.into(), kind, required, title: None };
    Arc::new(Schema {
        fields: vec![
            field("at", FieldType::Time, false),
            field("a", FieldType::Text, false),
            field("b", FieldType::Float, false),
            field("c", FieldType::TextList, false),
            field("d", FieldType::Int, false),
            field("e", FieldType::Bool, false),
        ],
        geometry: Some(GeometryType::Any),
        time: TimeRole::None,
        id: IdRole::Made,
        ..Schema::default()
    })
});

fn options(on_error: OnError) -> ReadOptions {
    ReadOptions {
        on_error,
        mend: on_error == OnError::Skip,
        unknown: if on_error == OnError::Skip { Unknown::Ignore } else { Unknown::Refuse },
        record_bytes: RECORD_BYTES,
        spool_bytes: SPOOL_BYTES,
        input_bytes: UNPACKED_BYTES,
        ..ReadOptions::default()
    }
}

fn source(bytes: &[u8]) -> Box<Cursor<Vec<u8>>> {
    Box::new(Cursor::new(bytes.to_vec()))
}

/// Reads bytes under the schema inferred from them, and under a schema of every type; then writes the result.
fn read(format: Format, bytes: &[u8], schema: &Arc<Schema>) {
    let _ = infer_prefix(format, bytes, &options(OnError::First));
    if let Ok(inferred) = infer(format, source(bytes), &options(OnError::First)) {
        read_as(format, bytes, &Arc::new(inferred.schema), OnError::Collect);
    }
    read_as(format, bytes, schema, OnError::Skip);
}

/// Whether a few bytes of a format may hold many events.
fn packs(format: Format) -> bool {
    matches!(format, Format::Arrow | Format::GeoParquet | Format::Shapefile | Format::Kml)
}

fn read_as(format: Format, bytes: &[u8], schema: &Arc<Schema>, on_error: OnError) {
    let Ok(mut events) = reader(format, source(bytes), schema.clone(), &options(on_error)) else { return };
    let limits = BatchLimits { rows: 1000, bytes: 1 << 16 };
    let mut rows = 0;
    while let Ok(Some(batch)) = events.next_batch(&limits) {
        rows += batch.rows();
        let seqs: Vec<Seq> = (0..batch.rows() as u64).map(Seq).collect();
        for into in [Format::GeoJson, Format::Csv] {
            let (mut out, mut writer) = (Vec::new(), writer(into, schema, None).unwrap());
            writer.start(&mut out).and_then(|()| writer.write(&batch, &seqs, &mut out)).unwrap();
            writer.finish(&mut out).unwrap();
            if into == Format::GeoJson {
                serde_json::from_slice::<IgnoredAny>(&out).unwrap();
            }
        }
        // A columnar file counts its events in a header, and its nulls take no space.
        if packs(format) && rows > 1 << 16 {
            return;
        }
    }
    assert!(rows <= bytes.len() || packs(format), "{rows} events");
    assert!(matches!(events.next_batch(&limits), Ok(None)), "a reader that ended goes on");
}

/// GeoJSON documents (RFC 7946), compressed or not.
pub fn geojson(bytes: &[u8]) {
    read(Format::GeoJson, bytes, &ANY);
    let _ = (Format::detect("a", bytes), Format::foreign("a", bytes));
    let mut plain = Vec::new();
    if let Ok(stream) = decompress(source(bytes)) {
        let _ = stream.take(UNPACKED_BYTES).read_to_end(&mut plain);
    }
}

/// GeoJSON text sequences (RFC 8142).
pub fn geojson_seq(bytes: &[u8]) {
    read(Format::GeoJsonSeq, bytes, &ANY);
}

/// One JSON value per line.
pub fn ndjson(bytes: &[u8]) {
    read(Format::NdJson, bytes, &ANY);
}

/// CSV tables (RFC 4180).
pub fn csv(bytes: &[u8]) {
    read(Format::Csv, bytes, &ANY);
}

/// Event exports of GDELT.
pub fn gdelt(bytes: &[u8]) {
    static GDELT: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(gdelt_schema()));
    read(Format::Gdelt, bytes, &GDELT);
}

/// Arrow IPC, as a stream and as a file.
pub fn arrow(bytes: &[u8]) {
    read(Format::Arrow, bytes, &ANY);
}

/// GeoParquet: the footer and the pages.
pub fn geoparquet(bytes: &[u8]) {
    read(Format::GeoParquet, bytes, &ANY);
}

/// FlatGeobuf: the header and the features.
pub fn flatgeobuf(bytes: &[u8]) {
    read(Format::FlatGeobuf, bytes, &ANY);
}

/// GeoPackage: an SQLite database.
pub fn geopackage(bytes: &[u8]) {
    read(Format::GeoPackage, bytes, &ANY);
}

/// Shapefile: a zip archive of shapes and attributes, or shapes alone.
pub fn shapefile(bytes: &[u8]) {
    read(Format::Shapefile, bytes, &ANY);
}

/// KML, compressed or not.
pub fn kml(bytes: &[u8]) {
    read(Format::Kml, bytes, &ANY);
}

/// GPX.
pub fn gpx(bytes: &[u8]) {
    read(Format::Gpx, bytes, &ANY);
}

/// NMEA 0183 sentences, and AIS in them.
pub fn nmea(bytes: &[u8]) {
    read(Format::Nmea, bytes, &ANY);
}

/// GTFS-Realtime.
pub fn gtfs_rt(bytes: &[u8]) {
    read(Format::GtfsRt, bytes, &ANY);
}

/// Well-known binary, as in a table column.
pub fn wkb(bytes: &[u8]) {
    let column: ArrayRef = Arc::new(BinaryArray::from(vec![Some(bytes), None, Some(bytes)]));
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("geometry", DataType::Binary, true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap();
    stream.write(&batch).unwrap();
    read(Format::Arrow, &stream.into_inner().unwrap(), &ANY);
}

/// Well-known text, or binary in hexadecimal, as in a table.
pub fn wkt(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace('"', "\"\"");
    read(Format::Csv, format!("geometry,a\n\"{text}\",b\n").as_bytes(), &ANY);
}
