//! Arrow IPC streams and Flight messages: the same messages in different framing.
//!
//! A message in a stream begins with four bytes of 255 and the length of its header. The header (a flatbuffer, padded
//! to eight bytes) follows, then a body whose length the header states. A length of 0 ends the stream.

use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{ArrowError, Schema};
use bytes::{Buf, Bytes, BytesMut};
use std::sync::Arc;

const MARK: [u8; 4] = [0xff; 4];
/// Bytes of the marker and the length.
const PREFIX_BYTES: usize = 8;
/// The end-of-stream marker.
const END: [u8; PREFIX_BYTES] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The schema of a stream.
    Schema,
    /// A dictionary and its number; `replaces` earlier ones with that number.
    Dictionary { id: i64, replaces: bool },
    /// A record batch, with its number of rows.
    Rows(u64),
}

/// Parses the head of a message.
///
/// # Errors
/// A sentence, if the message does not belong to a stream of record batches, or does not describe a body of
/// `body_bytes`.
pub fn content(header: &[u8], body_bytes: usize) -> Result<Content, String> {
    let message = root_as_message(header).map_err(|e| format!("a message is no Arrow: {e}"))?;
    if usize::try_from(message.bodyLength()) != Ok(body_bytes) {
        return Err(format!("a message of {} bytes has {body_bytes}", message.bodyLength()));
    }
    kind(&message)
}

fn kind(message: &arrow_ipc::Message<'_>) -> Result<Content, String> {
    let damaged = || "a message is no Arrow: its head is of another kind than it says".to_owned();
    match message.header_type() {
        MessageHeader::Schema => Ok(Content::Schema),
        MessageHeader::DictionaryBatch => {
            let dictionary = message.header_as_dictionary_batch().ok_or_else(damaged)?;
            Ok(Content::Dictionary { id: dictionary.id(), replaces: !dictionary.isDelta() })
        }
        MessageHeader::RecordBatch => {
            let batch = message.header_as_record_batch().ok_or_else(damaged)?;
            u64::try_from(batch.length()).map(Content::Rows).map_err(|_| damaged())
        }
        other => {
            Err(format!("a message is a {}: expected a schema or a record batch", other.variant_name().unwrap_or("?")))
        }
    }
}

/// Splits a stream into messages, however its bytes arrive.
#[derive(Default)]
pub struct Splitter {
    have: BytesMut,
    /// Number of bytes required for the next message, as far as known.
    wants: usize,
    over: bool,
}

impl Splitter {
    /// Appends more of the stream.
    pub fn push(&mut self, data: &[u8]) {
        self.have.extend_from_slice(data);
    }

    /// Returns the number of bytes required for the next message, as far as known.
    pub fn wants(&self) -> usize {
        self.wants
    }

    /// Returns whether the stream has ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the next message; `None` if more of the stream is needed, or at its end.
    ///
    /// # Errors
    /// A sentence, if the bytes are not such a stream.
    pub fn message(&mut self) -> Result<Option<(Content, FlightData)>, String> {
        if self.over || self.have.len() < self.wants.max(PREFIX_BYTES) {
            return Ok(None);
        }
        let (prefix, rest) = self.have.split_at(PREFIX_BYTES);
        let (mark, length) = prefix.split_at(MARK.len());
        if mark != MARK {
            return Err("the stream has no message where one is expected".to_owned());
        }
        let header_bytes = length.try_into().map(u32::from_le_bytes).unwrap_or_default() as usize;
        if header_bytes == 0 {
            self.over = true;
            return Ok(None);
        }
        let Some(header) = rest.get(..header_bytes) else {
            self.wants = PREFIX_BYTES + header_bytes;
            return Ok(None);
        };
        let message = root_as_message(header).map_err(|e| format!("a message is no Arrow: {e}"))?;
        let (content, body_bytes) = (kind(&message)?, usize::try_from(message.bodyLength()).unwrap_or(usize::MAX));
        let whole = body_bytes.saturating_add(PREFIX_BYTES + header_bytes);
        if self.have.len() < whole {
            self.wants = whole;
            return Ok(None);
        }
        let mut bytes = self.have.split_to(whole).freeze();
        self.wants = 0;
        bytes.advance(PREFIX_BYTES);
        let header = bytes.split_to(header_bytes);
        Ok(Some((content, FlightData::new().with_data_header(header).with_data_body(bytes))))
    }
}

/// Returns the frames of a message in a stream.
pub fn framed(message: &FlightData) -> [Bytes; 2] {
    let header = &message.data_header;
    let padded = header.len().next_multiple_of(8);
    let mut frame = Vec::with_capacity(PREFIX_BYTES + padded);
    frame.extend_from_slice(&MARK);
    // A header is at most as long as a gRPC message, whose length has 32 bits.
    frame.extend_from_slice(&u32::try_from(padded).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(header);
    frame.resize(PREFIX_BYTES + padded, 0);
    [frame.into(), message.data_body.clone()]
}

/// Returns the size of a message's frames in a stream.
pub fn framed_bytes(message: &FlightData) -> usize {
    PREFIX_BYTES + message.data_header.len().next_multiple_of(8) + message.data_body.len()
}

/// Returns the end-of-stream marker.
pub fn end() -> Bytes {
    Bytes::from_static(&END)
}

/// Returns a message without rows, which all clients accept as a carrier of metadata.
pub fn empty(schema: Schema) -> Result<FlightData, ArrowError> {
    let batch = RecordBatch::new_empty(Arc::new(schema));
    let (mut dictionaries, options) = (DictionaryTracker::new(false), IpcWriteOptions::default());
    let encode = IpcDataGenerator::default();
    let (_, data) = encode.encode(&batch, &mut dictionaries, &options, &mut IpcWriteContext::default())?;
    Ok(data.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringArray};
    use arrow_ipc::reader::StreamReader;
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{DataType, Field};
    use proptest::prelude::*;

    fn batches(rows: &[usize]) -> Vec<RecordBatch> {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true), Field::new("t", DataType::Utf8, true)]);
        let schema = Arc::new(schema);
        let of = |rows: usize| {
            let numbers: Int64Array = (0..rows as i64).map(Some).collect();
            let texts: StringArray = (0..rows).map(|n| (n % 3 > 0).then(|| "x".repeat(n))).collect();
            RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
        };
        rows.iter().map(|rows| of(*rows)).collect()
    }

    fn stream(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = StreamWriter::try_new(Vec::new(), batches[0].schema_ref()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    }

    proptest! {
        /// A stream that is split at arbitrary places and reassembled contains the same batches.
        #[test]
        fn a_stream_survives_the_way_there_and_back(
            rows in prop::collection::vec(0..40usize, 1..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let batches = batches(&rows);
            let bytes = stream(&batches);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut splitter, mut from, mut messages) = (Splitter::default(), 0, Vec::new());
            for cut in cuts.into_iter().chain([bytes.len()]) {
                splitter.push(&bytes[from..cut]);
                from = cut;
                while let Some(message) = splitter.message().unwrap() {
                    messages.push(message);
                }
            }
            prop_assert!(splitter.is_over());
            prop_assert_eq!(messages[0].0, Content::Schema);
            let found: Vec<_> = messages[1..].iter().map(|(content, _)| *content).collect();
            let expected: Vec<_> = rows.iter().map(|rows| Content::Rows(*rows as u64)).collect();
            prop_assert_eq!(found, expected);
            let mut joined = Vec::new();
            for (kind, message) in &messages {
                prop_assert_eq!(content(&message.data_header, message.data_body.len()).unwrap(), *kind);
                let frames = framed(message);
                prop_assert_eq!(framed_bytes(message), frames.iter().map(Bytes::len).sum::<usize>());
                frames.iter().for_each(|frame| joined.extend_from_slice(frame));
            }
            joined.extend_from_slice(&end());
            let read: Vec<RecordBatch> =
                StreamReader::try_new(joined.as_slice(), None).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(read, batches);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), marked: bool) {
            let mut splitter = Splitter::default();
            if marked {
                splitter.push(&MARK);
            }
            splitter.push(&bytes);
            while let Ok(Some(_)) = splitter.message() {}
            let _ = content(&bytes, 0);
        }
    }

    #[test]
    fn a_message_of_no_rows_is_one() {
        let schema = batches(&[1])[0].schema_ref().as_ref().clone();
        let message = empty(schema).unwrap();
        assert_eq!(content(&message.data_header, message.data_body.len()), Ok(Content::Rows(0)));
    }
}
