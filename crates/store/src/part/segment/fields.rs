//! Columns that a segment has besides those of its schema.

use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// Returns name and type of the column of sequence numbers.
pub(super) fn seq_field() -> Arc<Field> {
    Arc::new(Field::new("@seq", DataType::UInt64, false))
}

/// Returns name and type of the column of rows of the time projection.
pub(super) fn row_field() -> Arc<Field> {
    Arc::new(Field::new("@row", DataType::UInt32, false))
}
