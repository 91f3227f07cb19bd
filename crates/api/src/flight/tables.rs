//! Answers that are no events, as Arrow streams.

use crate::ask::Described;
use crate::problem::{Problem, Result};
use arrow_array::builder::BinaryBuilder;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema as ArrowSchema, TimeUnit};
use axum::response::Response;
use meridian_formats::{Format, writer};
use meridian_model::{FieldType, Schema};
use meridian_query::{Aggregate, Aggregated, ByValue, Density, DensityCounts, Function, FunctionValue, TrackPoint};
use std::collections::HashMap;
use std::sync::Arc;

/// Media type of the answers.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";
/// Rows of a record batch.
const BATCH_ROWS: usize = 8192;

/// The columns of an aggregate: the window and the value of `by`, if it has them, the count, then each function by name.
pub fn groups_schema(question: &Aggregate, schema: &Schema) -> ArrowSchema {
    let mut fields = Vec::new();
    if question.windows.is_some() {
        fields.extend(["window_start", "window_end"].map(|name| Field::new(name, instant(), true)));
    }
    if let Some(by) = question.by {
        fields.push(Field::new("by", by_type(schema, by), true));
    }
    fields.push(Field::new("count", DataType::Int64, false));
    for function in others(question) {
        fields.push(Field::new(function.name(schema), value_type(*function, schema), true));
    }
    ArrowSchema::new(fields)
}

/// The groups of an aggregate.
///
/// # Errors
/// 400 for a sum of integers that 64 bits do not hold.
pub fn groups(answer: &Aggregated, question: &Aggregate, schema: &Schema) -> Result<Vec<u8>> {
    let groups = &answer.groups;
    let mut columns: Vec<ArrayRef> = Vec::new();
    if question.windows.is_some() {
        let start = groups.iter().map(|group| group.window.map(|window| window.start));
        let end = groups.iter().map(|group| group.window.map(|window| window.end));
        columns.push(Arc::new(start.collect::<TimestampMicrosecondArray>().with_timezone("UTC")));
        columns.push(Arc::new(end.collect::<TimestampMicrosecondArray>().with_timezone("UTC")));
    }
    if let Some(by) = question.by {
        columns.push(by_column(answer, &by_type(schema, by)));
    }
    let counts = groups.iter().map(|group| i64::try_from(group.count).unwrap_or(i64::MAX));
    columns.push(Arc::new(Int64Array::from_iter_values(counts)));
    for (at, function) in question.functions.iter().enumerate() {
        if *function == Function::Count {
            continue;
        }
        let values = groups.iter().map(|group| group.values.get(at).copied().unwrap_or(FunctionValue::Null));
        columns.push(match value_type(*function, schema) {
            DataType::Int64 => Arc::new(integers(values, &function.name(schema))?),
            _ => Arc::new(values.map(float).collect::<Float64Array>()),
        });
    }
    stream(groups_schema(question, schema), columns)
}

fn others(question: &Aggregate) -> impl Iterator<Item = &Function> {
    question.functions.iter().filter(|function| **function != Function::Count)
}

fn by_type(schema: &Schema, by: usize) -> DataType {
    match schema.fields.get(by).map(|field| field.kind) {
        Some(FieldType::Int) => DataType::Int64,
        Some(FieldType::Bool) => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

fn by_column(answer: &Aggregated, kind: &DataType) -> ArrayRef {
    let values = answer.groups.iter().map(|group| group.by.as_ref());
    match kind {
        DataType::Int64 => Arc::new(
            values.map(|by| if let Some(ByValue::Int(n)) = by { Some(*n) } else { None }).collect::<Int64Array>(),
        ),
        DataType::Boolean => Arc::new(
            values.map(|by| if let Some(ByValue::Bool(b)) = by { Some(*b) } else { None }).collect::<BooleanArray>(),
        ),
        _ => Arc::new(
            values
                .map(|by| if let Some(ByValue::Text(text)) = by { Some(text.as_str()) } else { None })
                .collect::<StringArray>(),
        ),
    }
}

fn value_type(function: Function, schema: &Schema) -> DataType {
    let is_integer = |field: usize| schema.fields.get(field).is_some_and(|field| field.kind == FieldType::Int);
    match function {
        Function::Count | Function::CountOf(_) => DataType::Int64,
        Function::Sum(field) | Function::Min(field) | Function::Max(field) if is_integer(field) => DataType::Int64,
        Function::Sum(_) | Function::Min(_) | Function::Max(_) | Function::Avg(_) => DataType::Float64,
    }
}

fn integers(values: impl Iterator<Item = FunctionValue>, name: &str) -> Result<Int64Array> {
    let too_large = || {
        Problem::parameter(
            "function",
            format!("{name} of a group takes more than 64 bits: ask over HTTP, whose numbers do not end there"),
        )
    };
    values
        .map(|value| match value {
            FunctionValue::Int(n) => i64::try_from(n).map(Some).map_err(|_| too_large()),
            FunctionValue::Float(_) | FunctionValue::Null => Ok(None),
        })
        .collect()
}

fn float(value: FunctionValue) -> Option<f64> {
    match value {
        FunctionValue::Float(x) => Some(x),
        FunctionValue::Int(n) => Some(n as f64),
        FunctionValue::Null => None,
    }
}

/// The columns of a density. The box and the size of the grid are metadata of the schema.
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

/// The cells of a density that have events, row by row from the north-west.
///
/// # Errors
/// A fault of the server.
pub fn density(answer: &DensityCounts, question: &Density) -> Result<Vec<u8>> {
    let width = question.width.max(1) as usize;
    let cells = || answer.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    // At most 4096 rows and columns.
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

/// The columns of a track: the time and the place of each event on it.
pub fn track_schema() -> ArrowSchema {
    let extension = HashMap::from([
        ("ARROW:extension:name".to_owned(), "geoarrow.wkb".to_owned()),
        ("ARROW:extension:metadata".to_owned(), r#"{"crs":"OGC:CRS84","crs_type":"authority_code"}"#.to_owned()),
    ]);
    let geometry = Field::new("geometry", DataType::Binary, false).with_metadata(extension);
    ArrowSchema::new(vec![Field::new("time", instant(), false), geometry])
}

/// The events of a track in order of time.
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

/// A response that describes an answer of this schema, read from the newest snapshot by then.
///
/// # Errors
/// A fault of the server.
pub fn described(schema: &ArrowSchema) -> Result<Response> {
    let writer = StreamWriter::try_new(Vec::new(), schema).map_err(Problem::internal)?;
    let schema = writer.get_ref().clone();
    Ok(response(Described { schema, rows: None, snapshot: None, cuts: Vec::new() }))
}

/// A response that describes an answer.
pub fn response(described: Described) -> Response {
    let mut response = Response::default();
    response.extensions_mut().insert(described);
    response
}

/// The schema of the events of a collection, as the first message of an Arrow stream.
///
/// # Errors
/// A fault of the server.
pub fn events_schema(schema: &Arc<Schema>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = writer(Format::Arrow, schema, None).map_err(Problem::internal)?;
    writer.start(&mut out).map_err(Problem::internal)?;
    Ok(out)
}

fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn stream(schema: ArrowSchema, columns: Vec<ArrayRef>) -> Result<Vec<u8>> {
    let encode = || {
        let schema = Arc::new(schema);
        let rows = columns.first().map_or(0, |column| column.len());
        let batch = RecordBatch::try_new(schema.clone(), columns)?;
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        for from in (0..rows).step_by(BATCH_ROWS) {
            writer.write(&batch.slice(from, BATCH_ROWS.min(rows - from)))?;
        }
        writer.finish()?;
        writer.into_inner()
    };
    encode().map_err(Problem::internal)
}
