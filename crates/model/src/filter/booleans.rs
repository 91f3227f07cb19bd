//! Comparisons of booleans: FALSE is less than TRUE.

use super::expr::Comparison;
use super::truth::Truth;
use crate::batch::{Batch, FieldColumn};
use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Field(usize),
    Literal(bool),
}

/// `left op right`, unknown if a field is null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BoolTest {
    pub(crate) op: Comparison,
    pub(crate) left: Side,
    pub(crate) right: Side,
}

impl BoolTest {
    /// The constant result, if no field is involved.
    pub(crate) fn constant(&self) -> Option<bool> {
        match (self.left, self.right) {
            (Side::Literal(a), Side::Literal(b)) => Some(self.op.holds(a.cmp(&b))),
            _ => None,
        }
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = usize> {
        [self.left, self.right].into_iter().filter_map(|side| match side {
            Side::Field(field) => Some(field),
            Side::Literal(_) => None,
        })
    }

    /// The result for each row; `None` if a column was not read.
    pub(crate) fn evaluate(&self, batch: &Batch) -> Option<Truth> {
        let ((a, a_nulls), (b, b_nulls)) = (values(self.left, batch)?, values(self.right, batch)?);
        let yes = match self.op {
            Comparison::Eq => !&(&a ^ &b),
            Comparison::Ne => &a ^ &b,
            Comparison::Lt => &!&a & &b,
            Comparison::Le => &!&a | &b,
            Comparison::Gt => &a & &!&b,
            Comparison::Ge => &a | &!&b,
        };
        Some(Truth::of(yes, NullBuffer::union(a_nulls, b_nulls).as_ref()))
    }
}

/// The values of a side over a batch, and its null rows.
fn values(side: Side, batch: &Batch) -> Option<(BooleanBuffer, Option<&NullBuffer>)> {
    match side {
        Side::Literal(true) => Some((BooleanBuffer::new_set(batch.rows()), None)),
        Side::Literal(false) => Some((BooleanBuffer::new_unset(batch.rows()), None)),
        Side::Field(field) => column(batch, field).map(|column| (column.values().clone(), column.nulls())),
    }
}

fn column(batch: &Batch, field: usize) -> Option<&BooleanArray> {
    match batch.field(field) {
        Some(FieldColumn::Bool(column)) => Some(column),
        _ => None,
    }
}
