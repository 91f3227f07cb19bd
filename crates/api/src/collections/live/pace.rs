//! Determines from a stream's last reads how it continues: in which class, how soon, and with how much memory.

use super::reading::Step;
use meridian_admission::gate::Class;
use tokio::time::{Duration, Instant};

/// Delay between two reads, so that writes in quick succession are read together.
const BATCH_DELAY: Duration = Duration::from_millis(5);
/// Min bytes reserved for a message, also used while its size is unknown.
const ROOM_MIN: usize = 8 << 10;
/// Min bytes reserved if more events follow than fit in the last message.
const ROOM_MANY: usize = 64 << 10;

/// The pace of a stream.
pub(super) struct Pace {
    /// Whether the last read left events unread.
    behind: bool,
    room: usize,
    caught_up_at: Option<Instant>,
}

impl Pace {
    /// Creates the pace of a new stream; `behind` tells whether it has to catch up.
    pub(super) fn new(behind: bool) -> Pace {
        Pace { behind, room: ROOM_MIN, caught_up_at: None }
    }

    /// Records how a read ended, and whether there is more.
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

    /// Returns the class of the next read of a stream of this class. A read that catches up is not interactive: many
    /// such streams would starve queries.
    pub(super) fn class(&self, own: Class) -> Class {
        if self.behind { own.max(Class::Batch) } else { own }
    }

    /// Returns the estimated bytes of the next message.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Returns when the next read may begin. Only a stream that has caught up delays it; one that is behind reads at
    /// full speed.
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
