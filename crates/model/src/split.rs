//! Assigns events to the partitions of a collection.
//!
//! Events with given ids are assigned by id in history mode, so that each id exists once. Otherwise they are assigned
//! by their object, if the collection names one: its track and its newest event are then in one partition. No other
//! field counts.

use crate::batch::{Batch, FieldColumn};
use crate::schema::{IdRole, Mode, Schema};
use crate::seq::partition_of;

/// The partition of each event of a batch; `other` chooses it for rows without an object. `None` if the schema has no
/// deciding field.
pub fn partitions_of_rows(
    batch: &Batch,
    schema: &Schema,
    partitions: usize,
    other: impl Fn(usize) -> usize,
) -> Option<Vec<usize>> {
    if schema.id == IdRole::Given && schema.mode == Mode::History {
        let of = |id: Option<&str>| partition_of(id.unwrap_or_default().as_bytes(), partitions);
        return batch.ids().map(|ids| ids.iter().map(of).collect());
    }
    let of = |row: usize, key: Option<&[u8]>| key.map_or_else(|| other(row), |key| partition_of(key, partitions));
    match schema.object.and_then(|field| batch.field(field))? {
        FieldColumn::Text(texts) => {
            Some(texts.iter().enumerate().map(|(row, text)| of(row, text.map(str::as_bytes))).collect())
        }
        FieldColumn::Int(numbers) => {
            let keys = numbers.iter().map(|number| number.map(i64::to_le_bytes));
            Some(keys.enumerate().map(|(row, key)| of(row, key.as_ref().map(<[u8; 8]>::as_slice))).collect())
        }
        // Objects are texts or integers.
        _ => None,
    }
}
