//! Records and samples as Arrow columns and back. The order of columns is the order of the fields.

use super::Sample;
use crate::record::{Outcome, Phase, Record};
use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// Columns of `requests.parquet`.
pub(super) fn record_schema() -> SchemaRef {
    use DataType::{Int64, UInt8, UInt16, UInt32, UInt64, Utf8};
    let field = |(name, kind, nullable): (&str, DataType, bool)| Field::new(name, kind, nullable);
    Arc::new(Schema::new(
        [
            ("trial", UInt16, false),
            ("phase", UInt8, false),
            ("target", UInt16, false),
            ("population", UInt16, false),
            ("request", UInt16, false),
            ("user", UInt32, false),
            ("n", UInt32, false),
            ("attempt", UInt8, false),
            ("resends", UInt8, false),
            ("in_flight", UInt32, false),
            ("intended_us", Int64, false),
            ("first_intended_us", Int64, false),
            ("sent_us", Int64, true),
            ("first_byte_us", Int64, true),
            ("first_result_us", Int64, true),
            ("last_result_us", Int64, true),
            ("done_us", Int64, true),
            ("packets", UInt32, false),
            ("results", UInt64, false),
            ("bytes", UInt64, false),
            ("status", UInt16, false),
            ("outcome", UInt8, false),
            ("detail", Utf8, true),
        ]
        .map(field)
        .to_vec(),
    ))
}

/// Columns of `samples.parquet`.
pub(super) fn sample_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("trial", DataType::UInt16, false),
        Field::new("at_us", DataType::Int64, false),
        Field::new("source", DataType::Utf8, false),
        Field::new("metric", DataType::Utf8, false),
        Field::new("value", DataType::Float64, false),
    ]))
}

pub(super) fn record_batch(schema: &SchemaRef, records: &[Record]) -> Result<RecordBatch, ArrowError> {
    let times = |of: fn(&Record) -> Option<i64>| {
        let mut column = Int64Builder::with_capacity(records.len());
        records.iter().for_each(|record| column.append_option(of(record)));
        Arc::new(column.finish()) as ArrayRef
    };
    macro_rules! column {
        ($array:ty, $of:expr) => {
            Arc::new(<$array>::from_iter_values(records.iter().map($of))) as ArrayRef
        };
    }
    let mut detail = StringBuilder::new();
    records.iter().for_each(|record| detail.append_option(record.detail.as_deref()));
    RecordBatch::try_new(
        Arc::clone(schema),
        vec![
            column!(UInt16Array, |r| r.trial),
            column!(UInt8Array, |r| r.phase.code()),
            column!(UInt16Array, |r| r.target),
            column!(UInt16Array, |r| r.population),
            column!(UInt16Array, |r| r.request),
            column!(UInt32Array, |r| r.user),
            column!(UInt32Array, |r| r.n),
            column!(UInt8Array, |r| r.attempt),
            column!(UInt8Array, |r| r.resends),
            column!(UInt32Array, |r| r.in_flight),
            column!(Int64Array, |r| r.intended),
            column!(Int64Array, Record::wanted),
            times(|r| r.sent),
            times(|r| r.first_byte),
            times(|r| r.first_result),
            times(|r| r.last_result),
            times(|r| r.done),
            column!(UInt32Array, |r| r.packets),
            column!(UInt64Array, |r| r.results),
            column!(UInt64Array, |r| r.bytes),
            column!(UInt16Array, |r| r.status),
            column!(UInt8Array, |r| r.outcome.code()),
            Arc::new(detail.finish()),
        ],
    )
}

pub(super) fn sample_batch(schema: &SchemaRef, samples: &[Sample]) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new(
        Arc::clone(schema),
        vec![
            Arc::new(UInt16Array::from_iter_values(samples.iter().map(|s| s.trial))) as ArrayRef,
            Arc::new(Int64Array::from_iter_values(samples.iter().map(|s| s.at))),
            Arc::new(StringArray::from_iter_values(samples.iter().map(|s| s.source.as_str()))),
            Arc::new(StringArray::from_iter_values(samples.iter().map(|s| s.metric.as_str()))),
            Arc::new(Float64Array::from_iter_values(samples.iter().map(|s| s.value))),
        ],
    )
}

fn column<'a, T: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a T, String> {
    let column = batch.column_by_name(name).ok_or_else(|| format!("the column {name} is missing"))?;
    column.as_any().downcast_ref().ok_or_else(|| format!("the column {name} has the type {}", column.data_type()))
}

pub(super) fn records(batch: &RecordBatch) -> Result<Vec<Record>, String> {
    let u8s = |name| column::<UInt8Array>(batch, name);
    let u16s = |name| column::<UInt16Array>(batch, name);
    let u32s = |name| column::<UInt32Array>(batch, name);
    let u64s = |name| column::<UInt64Array>(batch, name);
    let times = |name| column::<Int64Array>(batch, name);
    let at = |column: &Int64Array, i: usize| column.is_valid(i).then(|| column.value(i));
    let (trial, phase, target, population) = (u16s("trial")?, u8s("phase")?, u16s("target")?, u16s("population")?);
    let (request, user, n, attempt) = (u16s("request")?, u32s("user")?, u32s("n")?, u8s("attempt")?);
    let (in_flight, intended, sent) = (u32s("in_flight")?, times("intended_us")?, times("sent_us")?);
    // Folders of earlier versions have neither column: every try counts from its own time, and resends were not counted.
    let resends = batch.column_by_name("resends").map(|_| u8s("resends")).transpose()?;
    let first_intended = batch.column_by_name("first_intended_us").map(|_| times("first_intended_us")).transpose()?;
    let (first_byte, first_result) = (times("first_byte_us")?, times("first_result_us")?);
    let (last_result, done) = (times("last_result_us")?, times("done_us")?);
    let (packets, results, bytes) = (u32s("packets")?, u64s("results")?, u64s("bytes")?);
    let (status, outcome, detail) = (u16s("status")?, u8s("outcome")?, column::<StringArray>(batch, "detail")?);
    (0..batch.num_rows())
        .map(|i| {
            Ok(Record {
                trial: trial.value(i),
                phase: Phase::from_code(phase.value(i))
                    .ok_or_else(|| format!("no phase has code {}", phase.value(i)))?,
                target: target.value(i),
                population: population.value(i),
                request: request.value(i),
                user: user.value(i),
                n: n.value(i),
                attempt: attempt.value(i),
                resends: resends.map_or(0, |of| of.value(i)),
                in_flight: in_flight.value(i),
                intended: intended.value(i),
                first_intended: first_intended.map(|of| of.value(i)).filter(|first| *first != intended.value(i)),
                sent: at(sent, i),
                first_byte: at(first_byte, i),
                first_result: at(first_result, i),
                last_result: at(last_result, i),
                done: at(done, i),
                packets: packets.value(i),
                results: results.value(i),
                bytes: bytes.value(i),
                status: status.value(i),
                outcome: Outcome::from_code(outcome.value(i))
                    .ok_or_else(|| format!("no outcome has code {}", outcome.value(i)))?,
                detail: detail.is_valid(i).then(|| detail.value(i).to_owned()),
            })
        })
        .collect()
}

pub(super) fn samples(batch: &RecordBatch) -> Result<Vec<Sample>, String> {
    let (trial, at) = (column::<UInt16Array>(batch, "trial")?, column::<Int64Array>(batch, "at_us")?);
    let (source, metric) = (column::<StringArray>(batch, "source")?, column::<StringArray>(batch, "metric")?);
    let value = column::<Float64Array>(batch, "value")?;
    let row = |i| Sample {
        trial: trial.value(i),
        at: at.value(i),
        source: source.value(i).to_owned(),
        metric: metric.value(i).to_owned(),
        value: value.value(i),
    };
    Ok((0..batch.num_rows()).map(row).collect())
}
