//! The values of one key over a batch.

use super::{SortKey, SortTarget, TEXT_BYTES_COMPARED};
use crate::cursor::{SortValue, compare, float_order};
use arrow_array::{Array, StringArray};
use meridian_model::{Batch, FieldColumn, IdRole};
use std::cmp::Ordering;

/// The values of one key over a batch.
pub(super) enum KeyColumn<'a> {
    Field(FieldColumn<'a>),
    Ids(&'a StringArray),
    /// Generated ids: the sequence numbers.
    Seqs(&'a [u64]),
    Missing,
}

fn cut(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(TEXT_BYTES_COMPARED)]
}

/// Sequence numbers as integers of the same order.
fn signed(seq: u64) -> i64 {
    // The top bit is flipped, so that the signed order equals the unsigned one.
    (seq ^ 1 << 63) as i64
}

impl<'a> KeyColumn<'a> {
    pub(super) fn of(key: &SortKey, batch: &'a Batch, seqs: &'a [u64]) -> KeyColumn<'a> {
        let column = match key.target {
            SortTarget::Field(field) => batch.field(field).map(KeyColumn::Field),
            SortTarget::Id if batch.schema().id == IdRole::Made => Some(KeyColumn::Seqs(seqs)),
            SortTarget::Id => batch.ids().map(KeyColumn::Ids),
        };
        column.unwrap_or(KeyColumn::Missing)
    }

    pub(super) fn value(&self, row: usize) -> SortValue {
        match self {
            KeyColumn::Field(FieldColumn::Int(a)) if a.is_valid(row) => SortValue::Int(a.value(row)),
            KeyColumn::Field(FieldColumn::Float(a)) if a.is_valid(row) => SortValue::Float(a.value(row)),
            KeyColumn::Field(FieldColumn::Bool(a)) if a.is_valid(row) => SortValue::Bool(a.value(row)),
            KeyColumn::Field(FieldColumn::Time(a)) if a.is_valid(row) => SortValue::Int(a.value(row)),
            KeyColumn::Field(FieldColumn::Text(a)) if a.is_valid(row) => SortValue::Text(cut(a.value(row)).to_vec()),
            KeyColumn::Ids(a) => SortValue::Text(cut(a.value(row)).to_vec()),
            KeyColumn::Seqs(seqs) => SortValue::Int(signed(seqs[row])),
            _ => SortValue::Null,
        }
    }

    /// Compares a row with a value without materializing the row's value.
    pub(super) fn compare(&self, row: usize, other: &SortValue, descending: bool) -> Ordering {
        let order = match (self, other) {
            (KeyColumn::Field(FieldColumn::Int(a)), SortValue::Int(b)) if a.is_valid(row) => a.value(row).cmp(b),
            (KeyColumn::Field(FieldColumn::Time(a)), SortValue::Int(b)) if a.is_valid(row) => a.value(row).cmp(b),
            (KeyColumn::Field(FieldColumn::Float(a)), SortValue::Float(b)) if a.is_valid(row) => {
                float_order(a.value(row), *b)
            }
            (KeyColumn::Field(FieldColumn::Text(a)), SortValue::Text(b)) if a.is_valid(row) => {
                cut(a.value(row)).cmp(b.as_slice())
            }
            (KeyColumn::Ids(a), SortValue::Text(b)) => cut(a.value(row)).cmp(b.as_slice()),
            // Nulls, booleans and values of two types are rare, and are materialized.
            _ => return compare(&self.value(row), other, descending),
        };
        if descending { order.reverse() } else { order }
    }
}
