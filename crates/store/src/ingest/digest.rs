//! A digest of the events of a batch, kept with their idempotency key to distinguish batches.
//!
//! It covers the events as parsed, in order. The same events have the same digest in any format or compression, and
//! when read back from the log. Columns without values are left out, so a field added to the schema in between makes no
//! difference. Part of the file format (`.keys`).

use crate::codec::hash;
use crate::codec::put_u32;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use meridian_model::Batch;

/// The placeholder for an unknown batch, in keys of older versions.
pub(crate) const UNKNOWN: u64 = 0;

/// Returns the digest of a batch with all its columns; never [`UNKNOWN`].
pub(crate) fn of(seed: u64, batch: &Batch) -> Result<u64, String> {
    let mut digest = hash(seed, &(batch.rows() as u64).to_le_bytes());
    let mut bytes = Vec::new();
    for (number, column) in batch.columns().iter().enumerate() {
        let column = column.as_ref().ok_or("a column was left out")?;
        if column.null_count() == column.len() {
            continue;
        }
        bytes.clear();
        // The column's number is hashed too: equal values in two different fields are different batches.
        put_u32(&mut bytes, number as u32);
        put(column.as_ref(), &mut bytes)?;
        digest = hash(digest, &bytes);
    }
    // Zero means "unknown" in the file, so the one batch in 2^64 that hashes to it becomes 1.
    Ok(digest.max(UNKNOWN + 1))
}

/// Appends the values of an array, without nulls, whose stored value is arbitrary.
fn put(array: &dyn Array, out: &mut Vec<u8>) -> Result<(), String> {
    if array.null_count() > 0 {
        // Without the positions of nulls, a value moved from one row to another would give the same digest.
        out.extend((0..array.len()).map(|row| u8::from(array.is_null(row))));
    }
    match array.data_type() {
        DataType::Int64 => numbers(array.as_primitive::<Int64Type>(), out, i64::to_le_bytes),
        DataType::Float64 => numbers(array.as_primitive::<Float64Type>(), out, f64::to_le_bytes),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers(array.as_primitive::<TimestampMicrosecondType>(), out, i64::to_le_bytes);
        }
        DataType::Boolean => out.extend(array.as_boolean().iter().flatten().map(u8::from)),
        DataType::Utf8 => pieces(array.as_string::<i32>().iter().map(|text| text.map(str::as_bytes)), out),
        DataType::Binary => pieces(array.as_binary::<i32>().iter(), out),
        DataType::List(_) => {
            for values in array.as_list::<i32>().iter().flatten() {
                put_u32(out, values.len() as u32);
                put(values.as_ref(), out)?;
            }
        }
        other => return Err(format!("a column of {other} has no digest")),
    }
    Ok(())
}

fn numbers<T: ArrowPrimitiveType, const N: usize>(
    array: &PrimitiveArray<T>,
    out: &mut Vec<u8>,
    bytes: fn(T::Native) -> [u8; N],
) {
    array.iter().flatten().for_each(|value| out.extend_from_slice(&bytes(value)));
}

fn pieces<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, out: &mut Vec<u8>) {
    for value in values.flatten() {
        put_u32(out, value.len() as u32);
        out.extend_from_slice(value);
    }
}
