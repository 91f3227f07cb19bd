//! The location of a live event, and the newest event of an object.

use meridian_model::FieldColumn;
use std::collections::HashMap;

/// The location of a live event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowLocation {
    /// In a part of the collection.
    Part { entry: usize, row: u32 },
    /// In an earlier write of the group.
    Staged { batch: usize, row: u32 },
}

/// An object as identified by an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    Text(String),
    Int(i64),
}

/// The newest live event of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(super) time: i64,
    pub(super) seq: u64,
    pub(super) place: RowLocation,
}

/// Objects looked up by the writes of one group, with their newest events.
pub(crate) type NewestCache = HashMap<Object, Option<Newest>>;

/// Objects that a write touches, with what each showed before it.
pub(crate) type TouchedObjects = HashMap<Object, (u64, Option<Newest>)>;

pub(crate) fn object_in(column: &FieldColumn<'_>, row: usize) -> Option<Object> {
    use arrow_array::Array;
    match column {
        FieldColumn::Text(texts) => texts.is_valid(row).then(|| Object::Text(texts.value(row).to_owned())),
        FieldColumn::Int(numbers) => numbers.is_valid(row).then(|| Object::Int(numbers.value(row))),
        _ => None,
    }
}
