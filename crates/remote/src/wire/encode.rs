//! Record batches to Arrow Flight messages: a schema, then pieces of bounded size.

use super::answer::Meta;
use super::fault::Fault;
use super::{MESSAGE_BYTES_MAX, PIECE_BYTES};
use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{ArrowError, SchemaRef};

/// Encodes the batches of one stream.
pub(crate) struct Encoder {
    options: IpcWriteOptions,
    dictionaries: DictionaryTracker,
    context: IpcWriteContext,
    /// The schema sent last.
    schema: Option<SchemaRef>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            options: IpcWriteOptions::default(),
            dictionaries: DictionaryTracker::new(false),
            context: IpcWriteContext::default(),
            schema: None,
        }
    }

    /// Returns the messages of a batch; `meta` goes with the last of them.
    pub(crate) fn encode(&mut self, batch: &RecordBatch, meta: &Meta) -> Result<Vec<FlightData>, Fault> {
        let mut messages = Vec::new();
        if self.schema.as_ref() != Some(batch.schema_ref()) {
            self.dictionaries = DictionaryTracker::new(false);
            let (schema, dictionaries) = (batch.schema_ref(), &mut self.dictionaries);
            // With the tracker, which assigns ids to the dictionaries in the schema.
            let schema = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
                schema,
                dictionaries,
                &self.options,
            );
            messages.push(schema.into());
            self.schema = Some(batch.schema());
        }
        let rows = batch.num_rows();
        // Assumes rows of similar size. If they differ much, pieces vary in size, but the limit still bounds them.
        let pieces = batch.get_array_memory_size().div_ceil(PIECE_BYTES).max(1);
        let step = rows.div_ceil(pieces).max(1);
        let mut from = 0;
        loop {
            let piece = batch.slice(from, step.min(rows - from));
            self.piece(&piece, &mut messages)
                .map_err(|e| Fault::internal(format!("columns cannot be written: {e}")))?;
            from += piece.num_rows();
            if from >= rows {
                break;
            }
        }
        if let Some(last) = messages.last_mut() {
            last.app_metadata = meta.to_bytes();
        }
        match messages.iter().map(|message| message.data_body.len()).max() {
            Some(bytes) if bytes > MESSAGE_BYTES_MAX - PIECE_BYTES => {
                Err(Fault::internal(format!("an event takes {bytes} bytes, more than a message may")))
            }
            _ => Ok(messages),
        }
    }

    fn piece(&mut self, piece: &RecordBatch, messages: &mut Vec<FlightData>) -> Result<(), ArrowError> {
        let encode =
            IpcDataGenerator::default().encode(piece, &mut self.dictionaries, &self.options, &mut self.context);
        let (dictionaries, batch) = encode?;
        messages.extend(dictionaries.into_iter().map(FlightData::from));
        messages.push(batch.into());
        Ok(())
    }
}
