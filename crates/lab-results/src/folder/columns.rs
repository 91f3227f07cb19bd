//! Converts records and samples to Arrow columns and back. The order of columns is the order of the fields.

use super::Sample;
use crate::record::{Outcome, Phase, Record};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::ArrowError;
use std::sync::Arc;

/// A column with a value in each row.
macro_rules! column {
    ($array:ty, $rows:ident, $of:expr) => {
        Arc::new(<$array>::from_iter_values($rows.iter().map($of))) as ArrayRef
    };
}

/// Columns of `requests.parquet`: names, values, and whether a value may be missing.
pub(super) fn record_batch(records: &[Record]) -> Result<RecordBatch, ArrowError> {
    let times = |of: fn(&Record) -> Option<i64>| Arc::new(Int64Array::from_iter(records.iter().map(of))) as ArrayRef;
    let detail = StringArray::from_iter(records.iter().map(|r| r.detail.as_deref()));
    RecordBatch::try_from_iter_with_nullable([
        ("trial", column!(UInt16Array, records, |r| r.trial), false),
        ("phase", column!(UInt8Array, records, |r| r.phase.code()), false),
        ("target", column!(UInt16Array, records, |r| r.target), false),
        ("population", column!(UInt16Array, records, |r| r.population), false),
        ("request", column!(UInt16Array, records, |r| r.request), false),
        ("user", column!(UInt32Array, records, |r| r.user), false),
        ("n", column!(UInt32Array, records, |r| r.n), false),
        ("attempt", column!(UInt8Array, records, |r| r.attempt), false),
        ("resends", column!(UInt8Array, records, |r| r.resends), false),
        ("in_flight", column!(UInt32Array, records, |r| r.in_flight), false),
        ("intended_us", column!(Int64Array, records, |r| r.intended), false),
        ("first_intended_us", column!(Int64Array, records, Record::wanted), false),
        ("sent_us", times(|r| r.sent), true),
        ("first_byte_us", times(|r| r.first_byte), true),
        ("first_result_us", times(|r| r.first_result), true),
        ("last_result_us", times(|r| r.last_result), true),
        ("done_us", times(|r| r.done), true),
        ("packets", column!(UInt32Array, records, |r| r.packets), false),
        ("results", column!(UInt64Array, records, |r| r.results), false),
        ("bytes", column!(UInt64Array, records, |r| r.bytes), false),
        ("status", column!(UInt16Array, records, |r| r.status), false),
        ("outcome", column!(UInt8Array, records, |r| r.outcome.code()), false),
        ("detail", Arc::new(detail), true),
    ])
}

/// Columns of `samples.parquet`.
pub(super) fn sample_batch(samples: &[Sample]) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter([
        ("trial", column!(UInt16Array, samples, |s| s.trial)),
        ("at_us", column!(Int64Array, samples, |s| s.at)),
        ("source", column!(StringArray, samples, |s| s.source.as_str())),
        ("metric", column!(StringArray, samples, |s| s.metric.as_str())),
        ("value", column!(Float64Array, samples, |s| s.value)),
    ])
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
    // Folders of earlier versions lack both columns: every attempt counts from its own time, and resends were not
    // counted.
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
                // Written for every row, as a column with few nulls would save nothing. Equal times mark the first
                // attempt.
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
