//! Rate limit of repeated lines: each message is written once a second, and its other lines are counted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};
use tracing::Level;

/// A message is written again after this time.
const QUIET: Duration = Duration::from_secs(1);
/// Max messages kept.
const MESSAGES_MAX: usize = 512;

/// A message, for a later report: its level, target and text.
pub type Message = (Level, &'static str, String);

/// Limits each message to one line a second: the messages written in the last second.
#[derive(Default)]
pub struct RepeatLimiter(HashMap<u64, RecentMessage>);

struct RecentMessage {
    written: Instant,
    suppressed: u64,
    message: Message,
}

/// The decision on a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write it, with the number of suppressed lines like it.
    Write { suppressed: u64 },
    /// Do not write it.
    Suppress,
}

impl RepeatLimiter {
    /// Counts a line; `key` identifies its message.
    pub fn count(&mut self, key: u64, now: Instant, message: impl FnOnce() -> Message) -> Decision {
        if self.0.len() >= MESSAGES_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, recent| recent.suppressed > 0 || now.duration_since(recent.written) < QUIET);
            if self.0.len() >= MESSAGES_MAX {
                // Too many different messages within a second: the table stays bounded, and this one is written.
                return Decision::Write { suppressed: 0 };
            }
        }
        match self.0.entry(key) {
            Entry::Vacant(new) => {
                new.insert(RecentMessage { written: now, suppressed: 0, message: message() });
                Decision::Write { suppressed: 0 }
            }
            Entry::Occupied(mut known) => {
                let recent = known.get_mut();
                if now.duration_since(recent.written) < QUIET {
                    recent.suppressed += 1;
                    return Decision::Suppress;
                }
                recent.written = now;
                Decision::Write { suppressed: std::mem::take(&mut recent.suppressed) }
            }
        }
    }

    /// Returns suppressed messages that have not recurred within a second, with their numbers.
    pub fn stopped(&mut self, now: Instant) -> Vec<(Message, u64)> {
        let over = |recent: &RecentMessage| now.duration_since(recent.written) >= QUIET;
        let told = self.0.extract_if(|_, recent| over(recent)).map(|(_, recent)| (recent.message, recent.suppressed));
        told.filter(|(_, suppressed)| *suppressed > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        (Level::WARN, "here", "refused".to_owned())
    }

    #[test]
    fn a_flood_writes_one_line_a_second_and_tells_the_number_of_the_others() {
        let (mut limiter, start) = (RepeatLimiter::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let decisions: Vec<Decision> = (0..2_500).map(|ms| limiter.count(1, at(ms), message)).collect();
        let written: Vec<&Decision> = decisions.iter().filter(|decision| **decision != Decision::Suppress).collect();
        let some = |suppressed| Decision::Write { suppressed };
        assert_eq!(written, [&some(0), &some(999), &some(999)]);
        assert_eq!(limiter.count(2, at(2_500), message), some(0), "another message");
        assert!(limiter.stopped(at(2_600)).is_empty());
        let stopped = limiter.stopped(at(3_600));
        assert_eq!(stopped, [(message(), 499)]);
        assert!(limiter.stopped(at(9_000)).is_empty() && limiter.0.is_empty());
    }

    #[test]
    fn the_table_is_bounded_and_no_message_is_lost_to_it() {
        let (mut limiter, start) = (RepeatLimiter::default(), Instant::now());
        for key in 0..10_000 {
            assert_eq!(limiter.count(key, start, message), Decision::Write { suppressed: 0 });
        }
        assert_eq!(limiter.0.len(), MESSAGES_MAX);
        limiter.count(0, start, message);
        limiter.count(20_000, start + QUIET, message);
        assert_eq!(limiter.0.len(), 2, "what was suppressed is kept, to be told");
    }
}
