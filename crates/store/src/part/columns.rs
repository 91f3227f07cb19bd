//! Columns as plain bytes, for the log: written with each incoming event, and read only after a restart.
//!
//! An array begins with a byte: whether values may be null. If so, a bit per value follows, set if it is not null,
//! lowest bit first. Then, by type:
//! - numbers and times: the values, 8 bytes each;
//! - booleans: their bits;
//! - texts and shapes: the length of each (`u32`), then all their bytes;
//! - lists: the length of each (`u32`), then the array of all their values.
//!
//! For a batch of one event, Arrow's own messages take six times the bytes and ten times the work.

use crate::codec::{Reader, put_u32};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, ListArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use std::sync::Arc;

/// Appends an array of one of the types in a layout.
pub(crate) fn encode(array: &dyn Array, out: &mut Vec<u8>) -> Result<(), String> {
    match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => {
            out.push(1);
            put_bits(out, nulls.inner());
        }
        _ => out.push(0),
    }
    match array.data_type() {
        DataType::Int64 => put_numbers(out, array.as_primitive::<Int64Type>().values().inner()),
        DataType::Float64 => put_numbers(out, array.as_primitive::<Float64Type>().values().inner()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            put_numbers(out, array.as_primitive::<TimestampMicrosecondType>().values().inner());
        }
        DataType::Boolean => put_bits(out, array.as_boolean().values()),
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            put_pieces(out, texts.offsets(), Some(texts.values()));
        }
        DataType::Binary => {
            let shapes = array.as_binary::<i32>();
            put_pieces(out, shapes.offsets(), Some(shapes.values()));
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            put_pieces(out, lists.offsets(), None);
            let (from, to) = ends(lists.offsets());
            encode(&lists.values().slice(from, to - from), out)?;
        }
        other => return Err(format!("a column of {other} cannot be written to the log")),
    }
    Ok(())
}

/// Numbers have the same layout in memory as in the log: all supported machines are little-endian.
fn put_numbers(out: &mut Vec<u8>, values: &Buffer) {
    const { assert!(cfg!(target_endian = "little")) };
    out.extend_from_slice(values);
}

fn put_bits(out: &mut Vec<u8>, bits: &BooleanBuffer) {
    // Copied to begin at a byte, with the bits past the end cleared.
    let bytes = bits.len().div_ceil(8);
    let start = out.len();
    if bits.offset().is_multiple_of(8) {
        let from = bits.offset() / 8;
        out.extend_from_slice(&bits.values()[from..from + bytes]);
    } else {
        out.extend_from_slice(&bits.sliced()[..bytes]);
    }
    if let Some(last) = out[start..].last_mut().filter(|_| !bits.len().is_multiple_of(8)) {
        *last &= (1 << (bits.len() % 8)) - 1;
    }
}

fn ends(offsets: &OffsetBuffer<i32>) -> (usize, usize) {
    let end = |o: Option<&i32>| o.map_or(0, |o| *o as usize);
    (end(offsets.first()), end(offsets.last()))
}

fn put_pieces(out: &mut Vec<u8>, offsets: &OffsetBuffer<i32>, values: Option<&[u8]>) {
    offsets.windows(2).for_each(|pair| put_u32(out, (pair[1] - pair[0]) as u32));
    let (from, to) = ends(offsets);
    out.extend_from_slice(values.map_or(&[], |values| &values[from..to]));
}

/// Decodes an array of this type with `rows` rows.
pub(crate) fn decode(kind: &DataType, rows: usize, reader: &mut Reader<'_>) -> Result<ArrayRef, String> {
    let nulls = match reader.u8()? {
        0 => None,
        1 => Some(NullBuffer::new(bits(rows, reader)?)),
        other => return Err(format!("{other} where 0 or 1 says whether values are null")),
    };
    let text = |e: arrow_schema::ArrowError| e.to_string();
    Ok(match kind {
        DataType::Int64 => Arc::new(
            PrimitiveArray::<Int64Type>::try_new(numbers(rows, reader, i64::from_le_bytes)?, nulls).map_err(text)?,
        ),
        DataType::Float64 => {
            let values = numbers(rows, reader, f64::from_le_bytes)?;
            Arc::new(PrimitiveArray::<Float64Type>::try_new(values, nulls).map_err(text)?)
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let values = numbers(rows, reader, i64::from_le_bytes)?;
            let times = PrimitiveArray::<TimestampMicrosecondType>::try_new(values, nulls).map_err(text)?;
            Arc::new(times.with_timezone_opt(zone.clone()))
        }
        DataType::Boolean => {
            let values = bits(rows, reader)?;
            Arc::new(BooleanArray::new(values, nulls))
        }
        DataType::Utf8 => {
            let (offsets, bytes) = pieces(rows, reader)?;
            let values = Buffer::from(reader.take(bytes)?);
            Arc::new(StringArray::try_new(offsets, values, nulls).map_err(text)?)
        }
        DataType::Binary => {
            let (offsets, bytes) = pieces(rows, reader)?;
            let values = Buffer::from(reader.take(bytes)?);
            Arc::new(BinaryArray::try_new(offsets, values, nulls).map_err(text)?)
        }
        DataType::List(item) => {
            let (offsets, count) = pieces(rows, reader)?;
            let values = decode(item.data_type(), count, reader)?;
            Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls).map_err(text)?)
        }
        other => return Err(format!("a column of {other} cannot be read from the log")),
    })
}

fn numbers<T: arrow_buffer::ArrowNativeType>(
    rows: usize,
    reader: &mut Reader<'_>,
    of: impl Fn([u8; 8]) -> T,
) -> Result<ScalarBuffer<T>, String> {
    let bytes = reader.take(rows.saturating_mul(8))?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|value| of(*value)).collect::<Vec<T>>().into())
}

fn bits(rows: usize, reader: &mut Reader<'_>) -> Result<BooleanBuffer, String> {
    Ok(BooleanBuffer::new(Buffer::from(reader.take(rows.div_ceil(8))?), 0, rows))
}

/// Reads the offsets of texts, shapes or lists, and their total length.
fn pieces(rows: usize, reader: &mut Reader<'_>) -> Result<(OffsetBuffer<i32>, usize), String> {
    let lengths = reader.take(rows.saturating_mul(4))?;
    let (mut offsets, mut end) = (Vec::with_capacity(rows + 1), 0i32);
    offsets.push(0);
    for length in lengths.as_chunks::<4>().0 {
        let length = i32::try_from(u32::from_le_bytes(*length)).ok();
        end = length.and_then(|length| end.checked_add(length)).ok_or("a column of more than 2 GiB")?;
        offsets.push(end);
    }
    Ok((OffsetBuffer::new(offsets.into()), end as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{Float64Array, Int64Array, TimestampMicrosecondArray};

    fn arrays() -> Vec<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for list in [Some(vec![Some("a"), None, Some("")]), None, Some(vec![]), Some(vec![Some("ö")])] {
            match list {
                Some(list) => lists.append_value(list),
                None => lists.append_null(),
            }
        }
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(0), Some(7)])),
            Arc::new(Int64Array::from(vec![1, 2, 3, i64::MAX])),
            Arc::new(Float64Array::from(vec![Some(-0.0), Some(1.5), None, Some(f64::MAX)])),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-5), None, None, Some(9)]).with_timezone("UTC")),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Arc::new(StringArray::from(vec![Some("one"), Some(""), None, Some("vier")])),
            Arc::new(StringArray::from(vec!["", "", "", ""])),
            Arc::new(BinaryArray::from(vec![Some(&b"\0\xff"[..]), None, Some(b""), Some(b"x")])),
            Arc::new(lists.finish()),
        ];
        // Enough rows that bits do not end at byte borders, and slices that begin within a byte.
        let many: Vec<_> = arrays.iter().map(|a| arrow_select::concat::concat(&[a.as_ref(); 9]).unwrap()).collect();
        let slices: Vec<_> = many.iter().flat_map(|a| [a.slice(3, 30), a.slice(8, 17), a.slice(5, 0)]).collect();
        arrays.extend(many);
        arrays.extend(slices);
        arrays
    }

    #[test]
    fn arrays_come_back() {
        for array in arrays() {
            let mut bytes = Vec::new();
            encode(&array, &mut bytes).unwrap();
            let mut reader = Reader::new(&bytes);
            let back = decode(array.data_type(), array.len(), &mut reader).unwrap();
            reader.end().unwrap();
            assert_eq!(&back, &array);
        }
    }

    #[test]
    fn cut_bytes_are_an_error_and_never_a_panic() {
        for array in arrays().iter().filter(|a| !a.is_empty()) {
            let mut bytes = Vec::new();
            encode(array, &mut bytes).unwrap();
            for len in 0..bytes.len() {
                assert!(decode(array.data_type(), array.len(), &mut Reader::new(&bytes[..len])).is_err());
            }
            for bit in 0..bytes.len().min(64) * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(array.data_type(), array.len(), &mut Reader::new(&bytes));
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
