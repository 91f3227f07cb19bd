//! When those who are refused may come again: each at a time of his own, so that they do not all come back at once.
//!
//! Searches end at some pace. Turns are given out at a part of it, one after the other, so that those who come without one find
//! room as well. Whoever is let in makes the line shorter by one: he had a turn, or there was room beside those who have.

use std::time::{Duration, Instant};

/// Who is refused is never asked to come back sooner.
const SOONEST: Duration = Duration::from_secs(1);
/// Nor later.
const LATEST: Duration = Duration::from_secs(120);
/// Searches that end for each turn that is given.
const ENDS: u32 = 4;
/// The pace is a mean in which the last so many ends weigh most.
const MEMORY: u32 = 32;

/// The line of those who were told when to come again.
#[derive(Debug, Default)]
pub(super) struct Turns {
    ended: Option<Instant>,
    /// Time between two ends.
    pace: Option<Duration>,
    /// When the last turn that was given would be over, had the first begun at once.
    end: Option<Instant>,
}

impl Turns {
    /// Notes the end of a search.
    pub(super) fn note_end(&mut self, now: Instant) {
        if let Some(last) = self.ended.replace(now) {
            let between = now.saturating_duration_since(last);
            self.pace = Some(self.pace.map_or(between, |mean| (mean * (MEMORY - 1) + between) / MEMORY));
        }
    }

    /// Notes that somebody was let in.
    pub(super) fn note_begin(&mut self) {
        let step = self.step();
        self.end = self.end.and_then(|end| end.checked_sub(step));
    }

    /// Gives a turn: how long to wait for it. The line begins `least` from now.
    pub(super) fn give(&mut self, now: Instant, least: Duration) -> Duration {
        let before = self.end.map_or(Duration::ZERO, |end| end.saturating_duration_since(now)).min(LATEST);
        self.end = Some(now + before + self.step());
        (least.max(SOONEST) + before).min(LATEST)
    }

    fn step(&self) -> Duration {
        self.pace.unwrap_or_default().min(SOONEST) * ENDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred searches a second end.
    fn busy(now: Instant) -> Turns {
        let mut turns = Turns::default();
        (0..1_000).for_each(|n| turns.note_end(now + Duration::from_millis(10) * n));
        turns
    }

    #[test]
    fn those_who_are_refused_together_come_again_apart() {
        let begun = Instant::now();
        let (mut turns, now) = (busy(begun), begun + Duration::from_secs(10));
        let told: Vec<Duration> = (0..1_000).map(|_| turns.give(now, Duration::ZERO)).collect();
        assert_eq!(
            (told[0], told[1], told[999]),
            (SOONEST, SOONEST + Duration::from_millis(40), Duration::from_millis(40_960))
        );
        // No more than a quarter of those who can be served, in any second.
        let in_second = |s: u64| told.iter().filter(|wait| wait.as_secs() == s).count();
        assert!((1..40).all(|s| in_second(s) == 25));
        // Ten seconds later the last turns are as far from everybody.
        assert_eq!(turns.give(now + Duration::from_secs(10), Duration::ZERO), Duration::from_secs(31));
        assert_eq!((0..10_000).map(|_| turns.give(now, Duration::ZERO)).max(), Some(LATEST));
    }

    #[test]
    fn the_line_ends_when_there_is_room_and_nobody_waits_for_no_reason() {
        let begun = Instant::now();
        let (mut turns, now) = (busy(begun), begun + Duration::from_secs(10));
        for _ in 0..1_000 {
            turns.give(now, Duration::ZERO);
        }
        for _ in 0..1_000 {
            turns.note_begin();
        }
        assert_eq!(turns.give(now, Duration::ZERO), SOONEST);
        assert_eq!(Turns::default().give(now, Duration::from_secs(7)), Duration::from_secs(7));
        // Where next to nothing ends the steps are not endless.
        let mut turns = Turns::default();
        turns.note_end(begun);
        turns.note_end(begun + Duration::from_secs(3_600));
        turns.give(now, Duration::ZERO);
        assert_eq!(turns.give(now, Duration::ZERO), Duration::from_secs(5));
    }
}
