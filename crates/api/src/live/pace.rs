//! How a stream reads on, going by its last reads: in which class, how soon, and with how much memory.

use super::reading::Step;
use meridian_admission::gate::Class;
use tokio::time::{Duration, Instant};

/// Delay between two reads, so that writes in quick succession are read together.
const BATCH_DELAY: Duration = Duration::from_millis(5);
/// Bytes that are reserved for a message, at least and while nothing is known of its size.
const ROOM_MIN: usize = 8 << 10;
/// The same where more events follow than went into the last message.
const ROOM_MANY: usize = 64 << 10;

/// The pace of a stream.
pub(super) struct Pace {
    /// Whether there was more than the last read took.
    behind: bool,
    room: usize,
    caught_up_at: Option<Instant>,
}

impl Pace {
    /// The pace of a new stream, which has something to catch up with or not.
    pub(super) fn new(behind: bool) -> Pace {
        Pace { behind, room: ROOM_MIN, caught_up_at: None }
    }

    /// Takes in how a read ended, and whether there is more.
    pub(super) fn observe(&mut self, step: &Step, more: bool) {
        match step {
            Step::Message(rendered) => {
                self.behind = more;
                self.room = rendered.bytes().max(if more { ROOM_MANY } else { ROOM_MIN });
            }
            Step::Larger(bytes) => self.room = *bytes,
            Step::NoMatch => self.behind = true,
            Step::CaughtUp => (self.behind, self.caught_up_at) = (false, Some(Instant::now())),
            Step::Missing(_) => {}
        }
    }

    /// The class of the next read of a stream of this class. One that catches up is not interactive: many such streams
    /// would starve queries.
    pub(super) fn class(&self, own: Class) -> Class {
        if self.behind { own.max(Class::Batch) } else { own }
    }

    /// Bytes that the next message is thought to take.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// When the next read may begin. Only a stream that has caught up delays it; one that is behind reads at full speed.
    pub(super) fn next_read_at(&self) -> Option<Instant> {
        self.caught_up_at.map(|at| at + BATCH_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_a_match_is_behind_until_it_has_caught_up() {
        let mut pace = Pace::new(false);
        assert_eq!(pace.class(Class::Interactive), Class::Interactive);
        pace.observe(&Step::NoMatch, true);
        assert_eq!((pace.class(Class::Interactive), pace.next_read_at()), (Class::Batch, None));
        assert_eq!(pace.class(Class::Background), Class::Background);
        pace.observe(&Step::CaughtUp, false);
        assert_eq!(pace.class(Class::Interactive), Class::Interactive);
        assert!(pace.next_read_at().is_some());
    }
}
