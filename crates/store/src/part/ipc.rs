//! Encodes columns as one Arrow IPC record-batch message without its schema.
//!
//! Layout: length of the message (`u32`), four zero bytes, the message (a flatbuffer, padded to 8 bytes), the buffers.
//! The schema is not repeated, since log and segments have it. A message with fewer columns than the schema was written
//! before the last fields were added.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_ipc::{MetadataVersion, reader, root_as_message};
use arrow_schema::{ArrowError, Field, Schema as ArrowSchema};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes before the message.
const PREFIX_BYTES: usize = 8;

/// Encodes columns of equal length.
pub(crate) fn encode(fields: &[Arc<Field>], columns: Vec<ArrayRef>, rows: usize) -> Result<Vec<u8>, String> {
    let text = |e: arrow_schema::ArrowError| e.to_string();
    let schema = Arc::new(ArrowSchema::new(fields.to_vec()));
    let row_count = RecordBatchOptions::new().with_row_count(Some(rows));
    let record = RecordBatch::try_new_with_options(schema, columns, &row_count).map_err(text)?;
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5).map_err(text)?;
    let (_, data) = IpcDataGenerator::default()
        .encode(&record, &mut DictionaryTracker::new(true), &options, &mut IpcWriteContext::default())
        .map_err(text)?;
    let message = data.ipc_message.len().next_multiple_of(8);
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + message + data.arrow_data.len());
    bytes.extend_from_slice(&(message as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&data.ipc_message);
    bytes.resize(PREFIX_BYTES + message, 0);
    bytes.extend_from_slice(&data.arrow_data);
    Ok(bytes)
}

/// Decodes the output of [`encode`]. Aligned buffers are shared with `bytes`, not copied.
pub(crate) fn decode(fields: &[Arc<Field>], bytes: &Buffer) -> Result<(Vec<ArrayRef>, usize), String> {
    let wrong = |what: &str| format!("an Arrow message {what}");
    let prefix = bytes.get(..4).ok_or_else(|| wrong("is cut short"))?;
    let mut len = [0; 4];
    len.copy_from_slice(prefix);
    let message_end = PREFIX_BYTES + u32::from_le_bytes(len) as usize;
    let head = bytes.get(PREFIX_BYTES..message_end).ok_or_else(|| wrong("is cut short"))?;
    let message = root_as_message(head).map_err(|e| wrong(&format!("does not read: {e}")))?;
    let batch = message.header_as_record_batch().ok_or_else(|| wrong("holds no record batch"))?;
    let schema = Arc::new(ArrowSchema::new(fields.to_vec()));
    let body = bytes.slice(message_end);
    expect_buffers_within(batch, body.len()).map_err(|e| wrong(&format!("does not read: {e}")))?;
    // Arrow's reader panics at a validity buffer that is too short. Nothing that it changed is used after that.
    let read = || reader::read_record_batch(&body, batch, schema, &HashMap::new(), None, &message.version());
    let record = catch_unwind(AssertUnwindSafe(read))
        .map_err(|_| wrong("is damaged"))?
        .map_err(|e| wrong(&format!("does not read: {e}")))?;
    Ok((record.columns().to_vec(), record.num_rows()))
}

/// Checks that the buffers of a batch end within its body, in bytes: Arrow's reader slices them unchecked, and would
/// panic.
///
/// # Errors
/// [`ArrowError::IpcError`] if one does not.
pub fn expect_buffers_within(batch: arrow_ipc::RecordBatch<'_>, body: usize) -> Result<(), ArrowError> {
    let fits = |buffer: &arrow_ipc::Buffer| {
        let (offset, length) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()));
        offset
            .ok()
            .zip(length.ok())
            .and_then(|(offset, length)| offset.checked_add(length))
            .is_some_and(|end| end <= body)
    };
    match batch.buffers().is_none_or(|buffers| buffers.iter().all(fits)) {
        true => Ok(()),
        false => Err(ArrowError::IpcError("a buffer reaches beyond its message".to_owned())),
    }
}
