//! Arrow Flight messages to record batches. Input of a peer is checked, not trusted.

use super::answer::Meta;
use super::fault::Fault;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_flight::FlightData;
use arrow_ipc::MessageHeader;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use meridian_store::expect_buffers_within;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Max bytes of a response assembled from pieces.
const WHOLE_BYTES_MAX: usize = 1 << 30;

/// Decodes the messages of one stream.
#[derive(Default)]
pub(crate) struct Decoder {
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Decoder {
    /// Returns the columns of a message, if it has any, and its metadata.
    pub(crate) fn decode(&mut self, message: FlightData) -> Result<(Option<RecordBatch>, Option<Meta>), Fault> {
        let meta = match message.app_metadata.is_empty() {
            true => None,
            false => Some(Meta::from_bytes(&message.app_metadata)?),
        };
        if message.data_header.is_empty() {
            return Ok((None, meta));
        }
        // Arrow's reader panics at some types that do not exist. No call reads on after an error, so no half-changed
        // state is used.
        let read = catch_unwind(AssertUnwindSafe(|| self.columns(message)));
        let read = read.unwrap_or_else(|_| Err(ArrowError::IpcError("the message is damaged".to_owned())));
        let columns = read.map_err(|e| Fault::internal(format!("columns cannot be read: {e}")))?;
        Ok((columns, meta))
    }

    fn columns(&mut self, message: FlightData) -> Result<Option<RecordBatch>, ArrowError> {
        let head = arrow_ipc::root_as_message(&message.data_header).map_err(|e| ArrowError::IpcError(e.to_string()))?;
        let missing = || ArrowError::IpcError("a message without what its head names".to_owned());
        match head.header_type() {
            MessageHeader::Schema => {
                self.schema = Some(Arc::new(Schema::try_from(&message)?));
                self.dictionaries.clear();
                Ok(None)
            }
            MessageHeader::DictionaryBatch => {
                let schema = self.schema.as_ref().ok_or_else(missing)?;
                let batch = head.header_as_dictionary_batch().ok_or_else(missing)?;
                let buffer = Buffer::from(message.data_body.clone());
                expect_buffers_within(batch.data().ok_or_else(missing)?, buffer.len())?;
                read_dictionary(&buffer, batch, schema, &mut self.dictionaries, &head.version())?;
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let schema = self.schema.clone().ok_or_else(missing)?;
                let batch = head.header_as_record_batch().ok_or_else(missing)?;
                let buffer = Buffer::from(message.data_body.clone());
                expect_buffers_within(batch, buffer.len())?;
                read_record_batch(&buffer, batch, schema, &self.dictionaries, None, &head.version()).map(Some)
            }
            other => Err(ArrowError::IpcError(format!("a message of type {other:?}"))),
        }
    }
}

/// A response that is one batch, assembled from its pieces.
#[derive(Default)]
pub(crate) struct BatchAssembler {
    pieces: Vec<RecordBatch>,
    bytes: usize,
}

impl BatchAssembler {
    pub(crate) fn add(&mut self, piece: RecordBatch) -> Result<(), Fault> {
        self.bytes += piece.get_array_memory_size();
        if self.bytes > WHOLE_BYTES_MAX {
            return Err(Fault::internal(format!("an answer takes more than {WHOLE_BYTES_MAX} bytes")));
        }
        self.pieces.push(piece);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Option<RecordBatch>, Fault> {
        let mut pieces = self.pieces;
        if pieces.len() <= 1 {
            return Ok(pieces.pop());
        }
        let whole = concat_batches(&pieces[0].schema(), &pieces);
        whole.map(Some).map_err(|e| Fault::internal(format!("the pieces of an answer do not fit together: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PIECE_BYTES;
    use crate::wire::encode::Encoder;
    use arrow_array::{Array, DictionaryArray, Int64Array, LargeStringArray, UInt32Array};
    use arrow_schema::Field;

    /// Rows of a number and a dictionary-encoded text.
    fn rows(count: u32, texts: usize) -> RecordBatch {
        let list: LargeStringArray = (0..texts).map(|n| Some(format!("{n} {}", "x".repeat(40)))).collect();
        let keys: UInt32Array = (0..count).map(|n| (n % 11 > 0).then_some(n % texts as u32)).collect();
        let by: ArrayRef = Arc::new(DictionaryArray::try_new(keys, Arc::new(list)).unwrap());
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..i64::from(count)).map(|n| n * n)));
        let fields =
            vec![Field::new("by", by.data_type().clone(), true), Field::new("n", numbers.data_type().clone(), false)];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![by, numbers]).unwrap()
    }

    #[test]
    fn batches_come_back_from_pieces_of_a_bounded_size() {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::default();
        // The dictionary of the second batch replaces that of the first.
        for (count, texts) in [(200_000, 3), (50_000, 900), (0, 1)] {
            let batch = rows(count, texts);
            let messages = encoder.encode(&batch, &Meta::done()).unwrap();
            assert!(messages.iter().all(|message| message.data_body.len() <= 2 * PIECE_BYTES));
            assert!(count < 100_000 || messages.len() > 5, "{}", messages.len());
            let (mut whole, mut done, last) = (BatchAssembler::default(), 0, messages.len() - 1);
            for (n, message) in messages.into_iter().enumerate() {
                let (columns, meta) = decoder.decode(message).unwrap();
                columns.into_iter().for_each(|columns| whole.add(columns).unwrap());
                done += usize::from(meta.is_some_and(|meta| meta.done && n == last));
            }
            assert_eq!((whole.finish().unwrap().unwrap(), done), (batch, 1));
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let mut decoder = Decoder::default();
        let batch = rows(10, 2);
        let messages = Encoder::new().encode(&batch, &Meta::default()).unwrap();
        // Columns before their schema, a truncated header, and a truncated body.
        assert!(decoder.decode(messages[2].clone()).is_err());
        let cut = FlightData { data_header: messages[0].data_header.slice(..7), ..messages[0].clone() };
        assert!(decoder.decode(cut).is_err());
        decoder.decode(messages[0].clone()).unwrap();
        decoder.decode(messages[1].clone()).unwrap();
        let cut = FlightData { data_body: messages[2].data_body.slice(..8), ..messages[2].clone() };
        assert!(decoder.decode(cut).is_err());
        let meta = FlightData::new().with_app_metadata("{\"head\":3}");
        assert!(decoder.decode(meta).is_err());
    }
}
