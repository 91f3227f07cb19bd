//! Small responses as Arrow streams, with all rows in memory.

use crate::protocol::problem::{Problem, Result};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Schema, TimeUnit};
use std::sync::Arc;

/// Rows per record batch.
const BATCH_ROWS: usize = 8192;

/// Returns the Arrow type of an instant.
pub fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Encodes these columns as an Arrow stream.
///
/// # Errors
/// A fault of the server.
pub fn stream(schema: Schema, columns: Vec<ArrayRef>) -> Result<Vec<u8>> {
    let encode = || {
        let schema = Arc::new(schema);
        let rows = columns.first().map_or(0, |column| column.len());
        let batch = RecordBatch::try_new(schema.clone(), columns)?;
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        for from in (0..rows).step_by(BATCH_ROWS) {
            writer.write(&batch.slice(from, BATCH_ROWS.min(rows - from)))?;
        }
        writer.finish()?;
        writer.into_inner()
    };
    encode().map_err(Problem::internal)
}
