//! Encodes answers that are neither events nor groups as Arrow streams, and describes answers.

use crate::protocol::problem::{Problem, Result};
use crate::request::ask::ResponseDescription;
use crate::response::arrow_stream::{instant, stream};
use arrow_array::builder::BinaryBuilder;
use arrow_array::{Int32Array, Int64Array, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use axum::response::Response;
use meridian_formats::{Format, writer};
use meridian_model::Schema;
use meridian_query::{Density, DensityCounts, TrackPoint};
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the columns of a density. The box and the size of the grid are schema metadata.
pub fn density_schema(question: &Density) -> ArrowSchema {
    let [west, south, east, north] = question.bbox;
    let metadata = HashMap::from([
        ("bbox".to_owned(), format!("{west},{south},{east},{north}")),
        ("width".to_owned(), question.width.to_string()),
        ("height".to_owned(), question.height.to_string()),
    ]);
    let field = |name: &str, kind| Field::new(name, kind, false);
    let fields = vec![field("row", DataType::Int32), field("column", DataType::Int32), field("count", DataType::Int64)];
    ArrowSchema::new_with_metadata(fields, metadata)
}

/// Encodes the nonempty cells of a density, row by row from the north-west.
///
/// # Errors
/// A fault of the server.
pub fn density(answer: &DensityCounts, question: &Density) -> Result<Vec<u8>> {
    let width = question.width.max(1) as usize;
    let cells = || answer.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    // Rows and columns are at most 4096.
    let rows = cells().map(|(at, _)| (at / width) as i32);
    let columns = cells().map(|(at, _)| (at % width) as i32);
    let counts = cells().map(|(_, count)| i64::try_from(*count).unwrap_or(i64::MAX));
    stream(
        density_schema(question),
        vec![
            Arc::new(Int32Array::from_iter_values(rows)),
            Arc::new(Int32Array::from_iter_values(columns)),
            Arc::new(Int64Array::from_iter_values(counts)),
        ],
    )
}

/// Returns the columns of a track: the time and the position of each of its events.
pub fn track_schema() -> ArrowSchema {
    let extension = HashMap::from([
        ("ARROW:extension:name".to_owned(), "geoarrow.wkb".to_owned()),
        ("ARROW:extension:metadata".to_owned(), r#"{"crs":"OGC:CRS84","crs_type":"authority_code"}"#.to_owned()),
    ]);
    let geometry = Field::new("geometry", DataType::Binary, false).with_metadata(extension);
    ArrowSchema::new(vec![Field::new("time", instant(), false), geometry])
}

/// Encodes the events of a track in order of time.
///
/// # Errors
/// A fault of the server.
pub fn track(points: &[TrackPoint]) -> Result<Vec<u8>> {
    let times = TimestampMicrosecondArray::from_iter_values(points.iter().map(|point| point.time)).with_timezone("UTC");
    let mut places = BinaryBuilder::with_capacity(points.len(), 21 * points.len());
    for point in points {
        // WKB of a point: little-endian, type 1.
        let mut wkb = [0; 21];
        wkb[..5].copy_from_slice(&[1, 1, 0, 0, 0]);
        wkb[5..13].copy_from_slice(&point.lon.to_le_bytes());
        wkb[13..].copy_from_slice(&point.lat.to_le_bytes());
        places.append_value(wkb);
    }
    stream(track_schema(), vec![Arc::new(times), Arc::new(places.finish())])
}

/// Returns a response that describes an answer with this schema, to be read from the newest snapshot at that time.
///
/// # Errors
/// A fault of the server.
pub fn described(schema: &ArrowSchema) -> Result<Response> {
    let writer = StreamWriter::try_new(Vec::new(), schema).map_err(Problem::internal)?;
    let schema = writer.get_ref().clone();
    Ok(response(ResponseDescription { schema, rows: None, snapshot: None, began: None, cuts: Vec::new() }))
}

/// Returns a response that describes an answer.
pub fn response(described: ResponseDescription) -> Response {
    let mut response = Response::default();
    response.extensions_mut().insert(described);
    response
}

/// Encodes the schema of a collection's events as the first message of an Arrow stream.
///
/// # Errors
/// A fault of the server.
pub fn events_schema(schema: &Arc<Schema>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = writer(Format::Arrow, schema, None).map_err(Problem::internal)?;
    writer.start(&mut out).map_err(Problem::internal)?;
    Ok(out)
}
