//! The time up to which a snapshot is known to hold every write, which is the age of a response.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// Max earlier states whose times are remembered: page tokens refer to those of the last minutes.
const PASSED_MAX: usize = 512;

/// The time up to which states are complete. In a collection that this process writes, a snapshot is complete when
/// taken. In a followed one, the owner states it.
#[derive(Debug, Default)]
pub(crate) struct Completeness(Option<Mutex<FollowedState>>);

#[derive(Debug)]
struct FollowedState {
    /// When the collection was created: no earlier write is missing from any state.
    made: i64,
    /// Position of the current state.
    position: u64,
    /// Time up to which it is complete.
    time: i64,
    /// Positions of earlier states, and the time up to which each was complete.
    passed: VecDeque<(u64, i64)>,
}

impl Completeness {
    /// Creates one for a followed collection, created at `made`. Times are in microseconds since 1970.
    pub(crate) fn followed(made: i64) -> Completeness {
        Completeness(Some(Mutex::new(FollowedState { made, position: 0, time: made, passed: VecDeque::new() })))
    }

    /// Returns true if another process writes the collection.
    pub(crate) fn is_followed(&self) -> bool {
        self.0.is_some()
    }

    /// Records the state that is shown from now on, and the time up to which it is complete, if stated.
    pub(crate) fn note(&self, position: u64, time: Option<i64>) {
        let Some(followed) = &self.0 else { return };
        let mut followed = followed.lock();
        if position != followed.position {
            let passed = (followed.position, followed.time);
            followed.passed.push_back(passed);
            if followed.passed.len() > PASSED_MAX {
                followed.passed.pop_front();
            }
            followed.position = position;
        }
        // A statement about an earlier state holds for later ones.
        followed.time = time.map_or(followed.time, |time| time.max(followed.time));
    }

    /// Returns the time up to which the state at a position is complete; `now` if the collection is written here.
    pub(crate) fn of(&self, position: u64, now: i64) -> i64 {
        let Some(followed) = &self.0 else { return now };
        let followed = followed.lock();
        // A state that is shown but not recorded yet holds more than the recorded one.
        if position >= followed.position {
            return followed.time;
        }
        let passed = followed.passed.iter().rfind(|(passed, _)| *passed <= position);
        passed.map_or(followed.made, |(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_as_old_as_was_last_said_of_it() {
        let complete = Completeness::followed(100);
        assert_eq!(complete.of(7, 900), 100, "nothing is said yet");
        complete.note(7, Some(500));
        complete.note(7, None);
        complete.note(7, Some(400));
        assert_eq!(complete.of(7, 900), 500, "a statement holds for ever");
        complete.note(9, Some(700));
        // The earlier state has not become more recent.
        assert_eq!((complete.of(9, 900), complete.of(7, 900), complete.of(8, 900)), (700, 500, 500));
        for position in 10..2000 {
            complete.note(position, None);
        }
        assert_eq!((complete.of(1999, 900), complete.of(3, 900)), (700, 100));
    }

    #[test]
    fn what_is_written_here_is_complete_now() {
        assert_eq!(Completeness::default().of(3, 900), 900);
    }
}
