//! The groups of an aggregate as an Arrow stream.

use super::{by_names, others};
use crate::protocol::problem::{Problem, Result};
use crate::response::arrow_stream::{instant, stream};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};
use meridian_model::{FieldType, Schema};
use meridian_query::{Aggregate, Aggregated, ByValue, Function, FunctionValue};
use std::sync::Arc;

/// Returns the columns: the window and the values of `by`, if the question has them, and the count. Each function
/// follows under its name, with its error if it may have one.
pub fn schema(question: &Aggregate, schema: &Schema) -> ArrowSchema {
    let mut fields = Vec::new();
    if question.windows.is_some() {
        fields.extend(["window_start", "window_end"].map(|name| Field::new(name, instant(), true)));
    }
    for (by, name) in question.by.iter().zip(by_names(question, schema)) {
        fields.push(Field::new(name, plain_type(schema, *by), true));
    }
    fields.push(Field::new("count", DataType::Int64, false));
    for (_, function, name, error) in others(question, schema) {
        fields.push(Field::new(name, value_type(*function, schema), true));
        fields.extend(error.map(|error| Field::new(error, DataType::Float64, false)));
    }
    ArrowSchema::new(fields)
}

/// Encodes the groups.
///
/// # Errors
/// 400 for an integer that does not fit in 64 bits.
pub fn groups(answer: &Aggregated, question: &Aggregate, of: &Schema) -> Result<Vec<u8>> {
    let groups = &answer.groups;
    let mut columns: Vec<ArrayRef> = Vec::new();
    if question.windows.is_some() {
        let start = groups.iter().map(|group| group.window.map(|window| window.start));
        let end = groups.iter().map(|group| group.window.map(|window| window.end));
        columns.push(Arc::new(start.collect::<TimestampMicrosecondArray>().with_timezone("UTC")));
        columns.push(Arc::new(end.collect::<TimestampMicrosecondArray>().with_timezone("UTC")));
    }
    for (at, by) in question.by.iter().enumerate() {
        columns.push(plain_column(groups.iter().map(|group| group.by.get(at)), &plain_type(of, *by)));
    }
    let counts = groups.iter().map(|group| i64::try_from(group.count).unwrap_or(i64::MAX));
    columns.push(Arc::new(Int64Array::from_iter_values(counts)));
    for (at, function, name, error) in others(question, of) {
        let values = groups.iter().map(|group| group.values.get(at).unwrap_or(&FunctionValue::Null));
        columns.push(match value_type(*function, of) {
            DataType::Int64 => Arc::new(integers(values, &name)?),
            DataType::List(entry) => lists(values, entry)?,
            _ => Arc::new(values.map(float).collect::<Float64Array>()),
        });
        if error.is_some() {
            let errors = groups.iter().map(|group| group.errors.get(at).copied().unwrap_or_default());
            columns.push(Arc::new(Float64Array::from_iter_values(errors)));
        }
    }
    stream(schema(question, of), columns)
}

/// Returns the type of the values of a text, integer or boolean field.
fn plain_type(schema: &Schema, field: usize) -> DataType {
    match schema.fields.get(field).map(|field| field.kind) {
        Some(FieldType::Int) => DataType::Int64,
        Some(FieldType::Bool) => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

fn plain_column<'a>(values: impl Iterator<Item = Option<&'a ByValue>>, kind: &DataType) -> ArrayRef {
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
        Function::Count | Function::CountOf(_) | Function::Distinct(_) => DataType::Int64,
        Function::Sum(field) | Function::Min(field) | Function::Max(field) | Function::Percentile(field, _) => {
            if is_integer(field) {
                DataType::Int64
            } else {
                DataType::Float64
            }
        }
        Function::Avg(_) => DataType::Float64,
        Function::Top(field, _) => {
            let fields =
                vec![Field::new("value", plain_type(schema, field), true), Field::new("count", DataType::Int64, false)];
            DataType::new_list(DataType::Struct(fields.into()), false)
        }
    }
}

fn integers<'a>(values: impl Iterator<Item = &'a FunctionValue>, name: &str) -> Result<Int64Array> {
    let too_large = || {
        Problem::parameter(
            "function",
            format!("{name} of a group takes more than 64 bits: ask for JSON, whose numbers do not end there"),
        )
    };
    values
        .map(|value| match value {
            FunctionValue::Int(n) => i64::try_from(*n).map(Some).map_err(|_| too_large()),
            FunctionValue::Float(_) | FunctionValue::Top(_) | FunctionValue::Null => Ok(None),
        })
        .collect()
}

fn float(value: &FunctionValue) -> Option<f64> {
    match value {
        FunctionValue::Float(x) => Some(*x),
        FunctionValue::Int(n) => Some(*n as f64),
        FunctionValue::Top(_) | FunctionValue::Null => None,
    }
}

/// Encodes the most frequent values of each group.
fn lists<'a>(values: impl Iterator<Item = &'a FunctionValue>, entry: Arc<Field>) -> Result<ArrayRef> {
    let tops: Vec<&[(ByValue, u64)]> =
        values.map(|value| if let FunctionValue::Top(top) = value { &top[..] } else { &[] }).collect();
    let fields = match entry.data_type() {
        DataType::Struct(fields) => fields.clone(),
        _ => Fields::empty(),
    };
    let kind = fields.first().map_or(DataType::Utf8, |field| field.data_type().clone());
    let entries = || tops.iter().flat_map(|top| top.iter());
    let counts = entries().map(|(_, count)| i64::try_from(*count).unwrap_or(i64::MAX));
    let columns: Vec<ArrayRef> = vec![
        plain_column(entries().map(|(value, _)| Some(value)), &kind),
        Arc::new(Int64Array::from_iter_values(counts)),
    ];
    let make = || {
        let entries = StructArray::try_new(fields, columns, None)?;
        let offsets = OffsetBuffer::<i32>::from_lengths(tops.iter().map(|top| top.len()));
        ListArray::try_new(entry, offsets, Arc::new(entries), None)
    };
    Ok(Arc::new(make().map_err(Problem::internal)?))
}
