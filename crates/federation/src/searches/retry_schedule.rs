//! When those who are refused may come again: each at a time of his own, so that they do not all come back at once.
//!
//! Searches end at some pace. Turns are given out at a part of it, one after the other, so that those who come without one find
//! room as well. Who is let in before his turn makes the line shorter by one.
//!
//! Who was told is remembered until his turn, so that those who come before it do not push out those who wait for theirs.

use super::Key;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Who is refused is never asked to come back sooner.
const SOONEST: Duration = Duration::from_secs(1);
/// Nor later.
const LATEST: Duration = Duration::from_secs(120);
/// Searches that end for each turn that is given.
const ENDS: u32 = 4;
/// The pace is a mean in which the last so many ends weigh most.
const MEMORY: u32 = 32;

/// At most so many are remembered, some 2 MB. Who comes beyond them is taken for new.
const TOLD_MAX: usize = 1 << 16;
/// Those whose turn has come are forgotten, where room is short, once in so long.
const SWEEP: Duration = Duration::from_secs(1);

/// The line of those who were told when to come again.
#[derive(Debug, Default)]
pub(super) struct RetrySchedule {
    ended: Option<Instant>,
    /// Time between two ends.
    pace: Option<Duration>,
    /// When the last turn that was given would be over, had the first begun at once.
    end: Option<Instant>,
    /// When the turn of each comes, by the hash of who asks what.
    told: HashMap<u64, Instant>,
    hasher: RandomState,
    swept: Option<Instant>,
}

impl RetrySchedule {
    /// Notes the end of a search.
    pub(super) fn note_end(&mut self, now: Instant) {
        if let Some(last) = self.ended.replace(now) {
            let between = now.saturating_duration_since(last);
            self.pace = Some(self.pace.map_or(between, |mean| (mean * (MEMORY - 1) + between) / MEMORY));
        }
    }

    /// Notes that somebody was let in.
    pub(super) fn note_begin(&mut self, who: &Key, now: Instant) {
        if self.told.is_empty() {
            return;
        }
        let turn = self.told.remove(&self.hasher.hash_one(who));
        if turn.is_some_and(|turn| turn > now) {
            let step = self.step();
            self.end = self.end.and_then(|end| end.checked_sub(step));
        }
    }

    /// How long it is until the turn of one who was given one; `None` where it has come, or none was given.
    pub(super) fn early(&self, who: &Key, now: Instant) -> Option<Duration> {
        if self.told.is_empty() {
            return None;
        }
        let turn = self.told.get(&self.hasher.hash_one(who))?;
        Some(turn.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// Gives a turn: how long to wait for it. The line begins `least` from now.
    pub(super) fn give(&mut self, who: &Key, now: Instant, least: Duration) -> Duration {
        let before = self.end.map_or(Duration::ZERO, |end| end.saturating_duration_since(now)).min(LATEST);
        self.end = Some(now + before + self.step());
        let wait = (least.max(SOONEST) + before).min(LATEST);
        self.remember(who, now, wait);
        wait
    }

    fn remember(&mut self, who: &Key, now: Instant, wait: Duration) {
        if self.told.len() >= TOLD_MAX && self.swept.is_none_or(|swept| now >= swept + SWEEP) {
            self.told.retain(|_, turn| *turn > now);
            self.swept = Some(now);
        }
        if self.told.len() < TOLD_MAX {
            self.told.insert(self.hasher.hash_one(who), now + wait);
        }
    }

    fn step(&self) -> Duration {
        self.pace.unwrap_or_default().min(SOONEST) * ENDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(n: usize) -> Key {
        (format!("as {n}"), "{}".to_owned())
    }

    /// A hundred searches a second end.
    fn busy(now: Instant) -> RetrySchedule {
        let mut retries = RetrySchedule::default();
        (0..1_000).for_each(|n| retries.note_end(now + Duration::from_millis(10) * n));
        retries
    }

    #[test]
    fn those_who_are_refused_together_come_again_apart() {
        let begun = Instant::now();
        let (mut retries, now) = (busy(begun), begun + Duration::from_secs(10));
        let told: Vec<Duration> = (0..1_000).map(|n| retries.give(&who(n), now, Duration::ZERO)).collect();
        assert_eq!(
            (told[0], told[1], told[999]),
            (SOONEST, SOONEST + Duration::from_millis(40), Duration::from_millis(40_960))
        );
        // No more than a quarter of those who can be served, in any second.
        let in_second = |s: u64| told.iter().filter(|wait| wait.as_secs() == s).count();
        assert!((1..40).all(|s| in_second(s) == 25));
        // Ten seconds later the last turns are as far from everybody.
        assert_eq!(retries.give(&who(0), now + Duration::from_secs(10), Duration::ZERO), Duration::from_secs(31));
        assert_eq!((0..10_000).map(|n| retries.give(&who(n), now, Duration::ZERO)).max(), Some(LATEST));
    }

    #[test]
    fn the_line_ends_when_there_is_room_and_nobody_waits_for_no_reason() {
        let begun = Instant::now();
        let (mut retries, now) = (busy(begun), begun + Duration::from_secs(10));
        for n in 0..1_000 {
            retries.give(&who(n), now, Duration::ZERO);
        }
        for n in 0..1_000 {
            retries.note_begin(&who(n), now);
        }
        assert!(retries.told.is_empty());
        assert_eq!(retries.give(&who(0), now, Duration::ZERO), SOONEST);
        assert_eq!(RetrySchedule::default().give(&who(0), now, Duration::from_secs(7)), Duration::from_secs(7));
        // Where next to nothing ends the steps are not endless.
        let mut retries = RetrySchedule::default();
        retries.note_end(begun);
        retries.note_end(begun + Duration::from_secs(3_600));
        retries.give(&who(0), now, Duration::ZERO);
        assert_eq!(retries.give(&who(1), now, Duration::ZERO), Duration::from_secs(5));
    }

    #[test]
    fn who_comes_before_his_turn_is_known_by_what_he_asks_until_it_has_come() {
        let now = Instant::now();
        let mut retries = RetrySchedule::default();
        assert_eq!(retries.early(&who(1), now), None);
        assert_eq!(retries.give(&who(1), now, Duration::from_secs(7)), Duration::from_secs(7));
        let after = |seconds: u64| now + Duration::from_secs(seconds);
        assert_eq!(retries.early(&who(1), after(2)), Some(Duration::from_secs(5)));
        assert_eq!(retries.early(&who(2), after(2)), None);
        assert_eq!(retries.early(&(who(1).0, "[]".to_owned()), after(2)), None);
        assert_eq!(retries.early(&who(1), after(8)), None);
        retries.note_begin(&who(1), after(8));
        assert_eq!(retries.early(&who(1), after(2)), None);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let now = Instant::now();
        let mut retries = RetrySchedule::default();
        for n in 0..TOLD_MAX + 10 {
            retries.give(&who(n), now, Duration::ZERO);
        }
        assert_eq!(retries.told.len(), TOLD_MAX);
        assert_eq!(retries.early(&who(TOLD_MAX + 5), now), None);
        // Once the turns of those before have come there is room again.
        let later = now + Duration::from_secs(5);
        retries.give(&who(TOLD_MAX + 5), later, Duration::ZERO);
        assert_eq!((retries.told.len(), retries.early(&who(TOLD_MAX + 5), later)), (1, Some(SOONEST)));
    }
}
