//! A response of the owner, message by message.

use super::engine::Patience;
use super::failed::link_fault;
use super::link::Link;
use crate::wire::answer::Meta;
use crate::wire::decode::{BatchAssembler, Decoder};
use crate::wire::fault::Fault;
use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use tonic::Streaming;

/// A message: columns, metadata, or both.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) columns: Option<RecordBatch>,
    pub(super) meta: Meta,
}

/// The rest of a response.
pub(super) struct MessageStream {
    messages: Streaming<FlightData>,
    decoder: Decoder,
    done: bool,
}

impl MessageStream {
    pub(super) fn new(messages: Streaming<FlightData>) -> MessageStream {
        MessageStream { messages, decoder: Decoder::default(), done: false }
    }

    /// Returns the next non-empty message; `None` after the last. A truncated response is an error.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Fault> {
        while !self.done {
            let Some(message) = self.messages.message().await.map_err(link_fault)? else {
                // Only the message marked as the last one ends a response. A stream that ends earlier was cut off.
                let why = "the owner of the data went away in the middle of an answer: try again";
                return Err(Fault::Unavailable(why.to_owned()));
            };
            let (columns, meta) = self.decoder.decode(message)?;
            // A message with just a schema or a dictionary is for the decoder alone.
            let says = columns.is_some() || meta.is_some();
            let meta = meta.unwrap_or_default();
            if let Some(fault) = meta.fault {
                return Err(fault);
            }
            self.done = meta.done;
            if says {
                return Ok(Some(Message { columns, meta }));
            }
        }
        Ok(None)
    }

    /// Waits for the next message.
    pub(super) fn wait(self, link: &Link, patience: &Patience) -> Result<(MessageStream, Option<Message>), Fault> {
        let mut answer = self;
        link.wait(patience, async move {
            let next = answer.next().await?;
            Ok((answer, next))
        })
    }

    /// Waits for the rest of the response, and returns it as one batch of columns that begins with the first message.
    pub(super) fn whole(self, first: Message, link: &Link, patience: &Patience) -> Result<Option<RecordBatch>, Fault> {
        let mut answer = self;
        link.wait(patience, async move {
            let (mut whole, mut next) = (BatchAssembler::default(), Some(first));
            while let Some(message) = next {
                if let Some(columns) = message.columns {
                    whole.add(columns)?;
                }
                next = answer.next().await?;
            }
            whole.finish()
        })
    }
}
