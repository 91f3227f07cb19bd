//! Reads whole columns: a record batch in the stored form need not be split into events.
//!
//! Columns that do not fit are read event by event, which converts values or reports the event at fault.

use crate::columns::{Column, Texts};
use crate::options::BatchLimits;
use crate::roles::Role;
use arrow_array::builder::StringBuilder;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Float64Array, PrimitiveArray, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use meridian_model::builder::{TEXT_BYTES_MAX, id_fits};
use meridian_model::geometry::validate_position;
use meridian_model::layout::GeometryColumns;
use meridian_model::{Batch, FieldType, IdRole, Layout, Schema, TimeRole, time};
use std::sync::Arc;

/// Returns the events of a record batch, if each column can be taken as it is and all of them fit into `room`.
pub(crate) fn batch<'a>(
    schema: &Arc<Schema>,
    layout: &Arc<Layout>,
    columns: impl Iterator<Item = (Role, &'a Column)>,
    rows: usize,
    room: &BatchLimits,
) -> Option<Batch> {
    if rows > room.rows {
        return None;
    }
    let mut found: Vec<Option<ArrayRef>> = vec![None; layout.columns.len()];
    let (mut lon, mut lat, mut bytes) = (None, None, 0);
    for (role, column) in columns {
        match role {
            Role::Field(field) if matches!(column, Column::Null) => (!schema.fields[field].required).then_some(())?,
            Role::Field(field) => {
                let array = values(column, schema.fields[field].kind)?;
                if schema.fields[field].required && array.null_count() > 0 {
                    return None;
                }
                found[layout.field(field)] = Some(array);
            }
            // Both are required, without nulls: half a position is reported event by event.
            Role::Lon => lon = Some(degrees(column)?),
            Role::Lat => lat = Some(degrees(column)?),
            Role::Geometry => match column {
                Column::Points { x, y, nulls: None, heights: false } => (lon, lat) = (Some(plain(x)?), Some(plain(y)?)),
                Column::Null => {}
                _ => return None,
            },
            Role::Id if schema.id == IdRole::Made => {
                // An id that cannot be kept is refused or counted event by event.
                (0..rows).all(|row| matches!(column.id(row, ""), Ok(None))).then_some(())?;
            }
            Role::Id => {
                let Column::Text(texts) = column else { return None };
                let ids = texts_of(texts)?;
                (ids.null_count() == 0 && (0..ids.len()).all(|row| id_fits(ids.value(row)))).then_some(())?;
                found[layout.id?] = Some(Arc::new(ids));
            }
            Role::Nothing => {}
        }
    }
    if let (Some(x), Some(y)) = (lon, lat) {
        let Some(GeometryColumns::Points { lon, lat }) = layout.geometry else { return None };
        // Positions past the edge by rounding noise are corrected event by event.
        x.values().iter().zip(y.values()).all(|(x, y)| validate_position(*x, *y).is_ok()).then_some(())?;
        found[lon] = Some(Arc::new(x));
        found[lat] = Some(Arc::new(y));
    }
    if let TimeRole::Interval { start, end } = schema.time {
        let instants = |field: usize| {
            let array = found[layout.field(field)].as_ref()?;
            Some(array.as_any().downcast_ref::<TimestampMicrosecondArray>()?.clone())
        };
        if let (Some(from), Some(to)) = (instants(start), instants(end)) {
            let in_order = |row: usize| from.is_null(row) || to.is_null(row) || from.value(row) <= to.value(row);
            (0..rows).all(in_order).then_some(())?;
        }
    }
    for (column, field) in found.iter_mut().zip(&layout.columns) {
        let array = column.get_or_insert_with(|| arrow_array::new_null_array(field.data_type(), rows));
        // Counted before the batch is built: an oversized one is taken event by event, which cuts it.
        bytes += array.get_buffer_memory_size();
    }
    if layout.id.is_some_and(|id| found[id].as_ref().is_none_or(|ids| ids.null_count() > 0)) || bytes > room.bytes {
        return None;
    }
    Batch::new(schema.clone(), layout.clone(), rows, found).ok()
}

/// Returns a column in the stored form of a field of this type, in its own memory: the input holds the whole message.
fn values(column: &Column, kind: FieldType) -> Option<ArrayRef> {
    Some(match (kind, column) {
        (FieldType::Int, Column::Int(a)) => Arc::new(owned(a)),
        (FieldType::Float, Column::Int(a)) => {
            // Larger ones may be rounded, which is noted event by event.
            a.values().iter().all(|n| n.unsigned_abs() <= 1 << 53).then_some(())?;
            let floats: Float64Array = a.unary(|n| n as f64);
            Arc::new(owned(&floats))
        }
        (FieldType::Float, Column::Float(a)) => {
            let floats = owned(a);
            floats.values().iter().all(|x| x.is_finite()).then_some(())?;
            Arc::new(floats)
        }
        (FieldType::Bool, Column::Bool(a)) => {
            let bits: BooleanArray = a.iter().collect();
            Arc::new(bits)
        }
        (FieldType::Time, Column::Time(times)) => {
            let micros = owned(times.micros()?);
            micros.values().iter().all(|t| time::in_range(*t, t).is_ok()).then_some(())?;
            let times: TimestampMicrosecondArray = micros.reinterpret_cast();
            Arc::new(times.with_timezone("UTC"))
        }
        (FieldType::Text, Column::Text(texts)) => {
            let texts = texts_of(texts)?;
            texts.offsets().windows(2).all(|pair| (pair[1] - pair[0]) as usize <= TEXT_BYTES_MAX).then_some(())?;
            Arc::new(texts)
        }
        _ => return None,
    })
}

fn degrees(column: &Column) -> Option<Float64Array> {
    match column {
        Column::Float(a) => plain(a),
        _ => None,
    }
}

fn plain(floats: &Float64Array) -> Option<Float64Array> {
    (floats.null_count() == 0).then(|| owned(floats))
}

/// Returns a copy with zeros in place of nulls, as a column builder produces them.
fn owned<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> PrimitiveArray<T> {
    match array.null_count() {
        0 => PrimitiveArray::from_iter_values(array.values().iter().copied()),
        _ => array.iter().collect(),
    }
}

/// Returns a copy of texts in encodings that hold each value in full.
fn texts_of(texts: &Texts) -> Option<StringArray> {
    match texts {
        Texts::Small(a) if a.null_count() == 0 => {
            let (from, to) = (*a.offsets().first()?, *a.offsets().last()?);
            let offsets: Vec<i32> = a.offsets().iter().map(|o| o - from).collect();
            let bytes = Buffer::from(a.value_data().get(from as usize..to as usize)?);
            StringArray::try_new(OffsetBuffer::new(offsets.into()), bytes, None).ok()
        }
        Texts::Small(a) => Some(collected(a.iter(), a.value_data().len())),
        Texts::Large(a) => Some(collected(a.iter(), a.value_data().len())),
        Texts::View(a) => Some(collected(a.iter(), a.total_bytes_len())),
        // A few long texts under many keys stay few only event by event, where the bytes are counted.
        Texts::Dictionary { .. } => None,
    }
}

fn collected<'a>(texts: impl ExactSizeIterator<Item = Option<&'a str>>, bytes: usize) -> StringArray {
    let mut builder = StringBuilder::with_capacity(texts.len(), bytes);
    texts.for_each(|text| builder.append_option(text));
    builder.finish()
}
