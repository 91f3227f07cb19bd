//! Messages of several sentences, which are put together from their parts.

use super::ais;
use super::sentence::Part;
use meridian_model::Invalid;
use std::collections::VecDeque;

/// Messages of several sentences that begin while one waits for its parts; these come within seconds of each other.
const WINDOW: u64 = 64;
/// Longest payload of a sentence in characters. The standard has 82 characters in a whole sentence.
const PAYLOAD_MAX: usize = 1024;

/// The messages that wait for parts.
#[derive(Default)]
pub(super) struct Parts {
    /// In the order in which they began.
    waiting: VecDeque<Waiting>,
    /// Messages that were given up and not reported yet.
    lost: VecDeque<Invalid>,
    /// Messages that have begun so far.
    begun: u64,
    ended: bool,
}

/// A message of which some parts are there.
struct Waiting {
    /// What its sentences have in common: the number of the message, the channel, and how many there are.
    key: (String, String, u8),
    payloads: Vec<Option<String>>,
    /// When it was received, in microseconds, by the first sentence that says so.
    time: Option<i64>,
    /// The line of the part that came first, and its place among the messages that began.
    line: u64,
    begun: u64,
}

impl Parts {
    /// Takes a part; gives the payload of the message that it completes, and when that was received.
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
        // Numbers of messages come again after ten. The newest that lacks this part has it most likely.
        let lacks = |waiting: &Waiting| waiting.key == key && waiting.payloads[at].is_none();
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
        self.waiting.push_back(Waiting { key, payloads, time: None, line, begun: self.begun });
    }

    fn give_up(&mut self) {
        let Some(waiting) = self.waiting.pop_front() else { return };
        // A message of another type would have been no event.
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

    /// Gives up all that wait: the input has ended.
    pub(super) fn end(&mut self) {
        self.ended = true;
        while !self.waiting.is_empty() {
            self.give_up();
        }
    }

    /// The next message that was given up.
    pub(super) fn lost(&mut self) -> Option<Invalid> {
        self.lost.pop_front()
    }
}
