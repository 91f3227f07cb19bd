//! Which partition of a collection an event belongs to.
//!
//! Events with given ids go by the id, so that each is there once. Others go by their object, if the collection names one: its track, and
//! its newest event, are then in one partition. The other fields decide nothing.

use crate::batch::{Batch, FieldColumn};
use crate::schema::{IdRole, Mode, Schema};
use crate::seq::partition_of;

/// The partition of each event of a batch; of one that nothing decides, what `other` gives for its row. `None`: nothing decides of any.
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
