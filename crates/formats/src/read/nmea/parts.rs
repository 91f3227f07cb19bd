//! Messages of several sentences, assembled from their parts.

use super::ais;
use super::sentence::Part;
use meridian_model::Invalid;
use std::collections::VecDeque;

/// Number of messages begun after one that waits for parts, at which it is given up. Parts follow within seconds.
const WINDOW: u64 = 64;
/// Max characters of a sentence's payload. The standard allows 82 characters in a whole sentence.
const PAYLOAD_MAX: usize = 1024;

/// Messages that wait for parts.
#[derive(Default)]
pub(super) struct Parts {
    /// Messages in the order in which they began.
    waiting: VecDeque<PartialMessage>,
    /// Messages that were given up and not reported yet.
    lost: VecDeque<Invalid>,
    /// Number of messages begun so far.
    begun: u64,
    ended: bool,
}

/// A message of which some parts have arrived.
struct PartialMessage {
    /// Key common to its sentences: the number of the message, the channel, and the number of parts.
    key: (String, String, u8),
    payloads: Vec<Option<String>>,
    /// When it was received, in microseconds, by the first sentence with a time.
    time: Option<i64>,
    /// The line of the part that arrived first, and the message's place among those begun.
    line: u64,
    begun: u64,
}

impl Parts {
    /// Adds a part. Returns the payload of the message that it completes, and when that was received.
    pub(super) fn add(
        &mut self,
        part: &Part<'_>,
        time: Option<i64>,
        line: u64,
    ) -> Result<Option<(String, Option<i64>)>, Invalid> {
        if part.payload.len() > PAYLOAD_MAX {
            let detail = format!("a payload of {} characters: at most {PAYLOAD_MAX}", part.payload.len());
            return Err(Invalid::new(detail));
        }
        let at = usize::from(part.number) - 1;
        let key = (part.sequence.to_owned(), part.channel.to_owned(), part.total);
        // Message numbers repeat after ten. The newest message that lacks this part is most likely its own.
        let lacks = |waiting: &PartialMessage| waiting.key == key && waiting.payloads[at].is_none();
        let index = match self.waiting.iter().rposition(lacks) {
            Some(index) => index,
            None => {
                self.begin(key, line);
                self.waiting.len() - 1
            }
        };
        let waiting = &mut self.waiting[index];
        waiting.payloads[at] = Some(part.payload.to_owned());
        waiting.time = waiting.time.or(time);
        if waiting.payloads.iter().any(Option::is_none) {
            return Ok(None);
        }
        let whole = self.waiting.remove(index);
        Ok(whole.map(|whole| (whole.payloads.into_iter().flatten().collect(), whole.time)))
    }

    fn begin(&mut self, key: (String, String, u8), line: u64) {
        self.begun += 1;
        while self.waiting.front().is_some_and(|first| first.begun + WINDOW <= self.begun) {
            self.give_up();
        }
        let payloads = vec![None; usize::from(key.2)];
        self.waiting.push_back(PartialMessage { key, payloads, time: None, line, begun: self.begun });
    }

    fn give_up(&mut self) {
        let Some(waiting) = self.waiting.pop_front() else { return };
        // A message of another type would not have been an event.
        if let Some(Some(first)) = waiting.payloads.first()
            && !ais::may_be_read(first)
        {
            return;
        }
        let total = waiting.payloads.len();
        let missing = waiting.payloads.iter().position(Option::is_none).map_or(total, |at| at + 1);
        let among = if self.ended { "up to the end of the input" } else { "among the sentences that follow" };
        let detail = format!("a message in {total} sentences: part {missing} is missing {among}");
        self.lost.push_back(Invalid::new(detail).at_line(waiting.line));
    }

    /// Gives up all incomplete messages at the end of the input.
    pub(super) fn end(&mut self) {
        self.ended = true;
        while !self.waiting.is_empty() {
            self.give_up();
        }
    }

    /// Returns the next message that was given up.
    pub(super) fn lost(&mut self) -> Option<Invalid> {
        self.lost.pop_front()
    }
}
