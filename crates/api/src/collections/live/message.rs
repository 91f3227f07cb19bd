//! A message of a stream: a few small events or one large one, as sent to its client.

use meridian_admission::ByteShare;
use meridian_model::{Seq, Seqs};

/// Size in bytes from which a message takes no further event.
const MESSAGE_BYTES: usize = 64 << 10;

/// How events are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-Sent Events: each has its position as `id` and its feature as `data`.
    Sse,
    /// Features only: the transport delimits messages itself.
    Texts,
}

/// Events of one partition as text.
#[derive(Debug, Default)]
pub(super) struct RenderedEvents {
    /// The position before the events.
    from: Seqs,
    text: Vec<u8>,
    /// The number of each event, and the end of its text.
    ends: Vec<(Seq, usize)>,
}

impl RenderedEvents {
    /// Creates a message without events, after a position.
    pub(super) fn after(from: Seqs) -> RenderedEvents {
        RenderedEvents { from, ..RenderedEvents::default() }
    }

    /// Adds an event, which `write` appends to the text.
    ///
    /// # Errors
    /// The event's size, if it does not fit; the message then stays unchanged.
    pub(super) fn push(
        &mut self,
        framing: Framing,
        seq: Seq,
        room: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        let begin = self.text.len();
        // Size 0 means that the message is full and the event's own size unknown.
        if begin >= MESSAGE_BYTES {
            return Err(0);
        }
        match framing {
            Framing::Texts => write(&mut self.text),
            Framing::Sse => {
                for piece in ["id: ", &self.from.past(seq).to_id(), "\ndata: "] {
                    self.text.extend_from_slice(piece.as_bytes());
                }
                write(&mut self.text);
                self.text.extend_from_slice(b"\n\n");
            }
        }
        self.ends.push((seq, self.text.len()));
        // Counted by length: unused capacity is released at the end.
        let bytes = self.text.len() + size_of_val(self.ends.as_slice());
        if bytes <= room {
            return Ok(());
        }
        // Undone, so that the message can be sent, and the event rendered again with enough room.
        self.ends.pop();
        self.text.truncate(begin);
        Err(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the position after the last event.
    pub(super) fn last(&self) -> Option<Seqs> {
        self.ends.last().map(|(seq, _)| self.from.past(*seq))
    }

    /// Releases the message's unused capacity.
    pub(super) fn fitted(mut self) -> RenderedEvents {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self
    }

    /// Returns its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(self.ends.as_slice())
    }

    /// Attaches the message's share of the memory for responses.
    pub(super) fn charged(self, mut share: ByteShare) -> Message {
        // The share was an estimate: the rest is returned before the message waits for its client.
        share.shrink(share.bytes().saturating_sub(self.bytes()));
        Message { from: self.from, text: Text { bytes: self.text, share: Some(share) }, ends: self.ends }
    }
}

/// Events that wait for their client, or a short text without events.
pub(super) struct Message {
    /// The position before the events.
    pub(super) from: Seqs,
    /// The text of all events.
    pub(super) text: Text,
    /// The number of each event, and the end of its text.
    pub(super) ends: Vec<(Seq, usize)>,
}

impl Message {
    /// Creates a short text, covered by the fixed memory of its connection.
    pub(super) fn short(text: String) -> Message {
        Message { from: Seqs::default(), text: Text { bytes: text.into_bytes(), share: None }, ends: Vec::new() }
    }

    /// Returns the bytes that it holds of the memory for responses.
    pub(super) fn held(&self) -> usize {
        self.text.share.as_ref().map_or(0, ByteShare::bytes)
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        self.text.as_ref()
    }
}

/// A text that returns its share of the memory for responses once it is sent.
pub(super) struct Text {
    bytes: Vec<u8>,
    share: Option<ByteShare>,
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_admission::ByteBudget;

    #[test]
    fn a_message_ends_before_the_event_that_it_has_no_room_for() {
        let mut message = RenderedEvents::default();
        let event = |bytes: usize| move |out: &mut Vec<u8>| out.extend(vec![b'x'; bytes]);
        assert_eq!(message.push(Framing::Texts, Seq(1), 100, event(200)), Err(216));
        assert!(message.is_empty() && message.bytes() == 0);
        assert_eq!(message.push(Framing::Texts, Seq(1), 100, event(50)), Ok(()));
        assert!(message.push(Framing::Texts, Seq(2), 100, event(50)).is_err());
        assert_eq!((message.last(), message.bytes()), (Some(Seqs::one(Seq(1))), 66));
        let budget = ByteBudget::new(1_000);
        let message = message.fitted().charged(budget.try_take(100).expect("room"));
        assert_eq!((budget.held(), message.held(), message.text.as_ref().len()), (66, 66, 50));
        assert_eq!(message.ends, [(Seq(1), 50)]);
        drop(message.text);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn a_large_event_is_a_message_of_its_own() {
        let mut message = RenderedEvents::default();
        let event = |out: &mut Vec<u8>| out.extend(vec![b'x'; 2 * MESSAGE_BYTES]);
        assert_eq!(message.push(Framing::Sse, Seq(1), 1 << 20, event), Ok(()));
        assert!(message.push(Framing::Sse, Seq(2), 1 << 20, event).is_err());
        let text = message.fitted().text;
        assert!(text.starts_with(b"id: 0000000000001\ndata: xx") && text.ends_with(b"x\n\n"));
    }
}
