//! Retry times for refused clients: each gets its own, so that they do not all return at once.
//!
//! Searches end at some rate. Turns are assigned at a fraction of that rate, one after the other, which leaves slots
//! for clients without a turn. A client admitted before its turn shortens the schedule by one step.
//!
//! A client is remembered until its turn, so that early retries do not displace clients that wait.

use crate::asker::SearchKey;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use tokio::time::{Duration, Instant};

/// Min wait of a refused client.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Max wait of a refused client.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Searches that end for each turn assigned.
const ENDS_PER_TURN: u32 = 4;
/// Weight of the exponential mean of the pace: this many of the last ends dominate.
const PACE_WINDOW: u32 = 32;

/// Max clients remembered, some 2 MB. Any beyond them are treated as new.
const TURNS_MAX: usize = 1 << 16;
/// Min time between two sweeps of turns that have passed, when the table is full.
const SWEEP: Duration = Duration::from_secs(1);

/// The schedule of refused clients.
#[derive(Debug, Default)]
pub(super) struct RetrySchedule {
    ended: Option<Instant>,
    /// Mean time between two ends.
    pace: Option<Duration>,
    /// Time at which the last assigned turn would end if the first had begun at once.
    end: Option<Instant>,
    /// The turn of each client, by the hash of client and question.
    turns: HashMap<u64, Instant>,
    hasher: RandomState,
    swept: Option<Instant>,
}

impl RetrySchedule {
    /// Records the end of a search.
    pub(super) fn note_end(&mut self, now: Instant) {
        if let Some(last) = self.ended.replace(now) {
            let between = now.saturating_duration_since(last);
            self.pace = Some(self.pace.map_or(between, |mean| (mean * (PACE_WINDOW - 1) + between) / PACE_WINDOW));
        }
    }

    /// Records that a client was admitted.
    pub(super) fn note_begin(&mut self, who: &SearchKey, now: Instant) {
        if self.turns.is_empty() {
            return;
        }
        let turn = self.turns.remove(&self.hasher.hash_one(who));
        // Its turn is free again: without this step back, the schedule would drift from the real load.
        if turn.is_some_and(|turn| turn > now) {
            let step = self.step();
            self.end = self.end.and_then(|end| end.checked_sub(step));
        }
    }

    /// Returns the time left until a client's turn; `None` if it has passed or none was assigned.
    pub(super) fn remaining(&self, who: &SearchKey, now: Instant) -> Option<Duration> {
        if self.turns.is_empty() {
            return None;
        }
        let turn = self.turns.get(&self.hasher.hash_one(who))?;
        Some(turn.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// Assigns a turn: how long the client must wait. The schedule begins `min_wait` from now.
    pub(super) fn assign(&mut self, who: &SearchKey, now: Instant, min_wait: Duration) -> Duration {
        // The schedule grows by one step for each turn and drains with time, so its end gives the wait.
        let before = self.end.map_or(Duration::ZERO, |end| end.saturating_duration_since(now)).min(WAIT_MAX);
        self.end = Some(now + before + self.step());
        let wait = (min_wait.max(WAIT_MIN) + before).min(WAIT_MAX);
        self.remember(who, now, wait);
        wait
    }

    fn remember(&mut self, who: &SearchKey, now: Instant, wait: Duration) {
        // Sweeping on each insert into a full table would make refusals quadratic under load.
        if self.turns.len() >= TURNS_MAX && self.swept.is_none_or(|swept| now >= swept + SWEEP) {
            self.turns.retain(|_, turn| *turn > now);
            self.swept = Some(now);
        }
        if self.turns.len() < TURNS_MAX {
            // Keyed by a random hash: clients cannot construct collisions, and no question is kept in memory.
            self.turns.insert(self.hasher.hash_one(who), now + wait);
        }
    }

    fn step(&self) -> Duration {
        // Capped, because one long pause between searches would push all turns far away.
        self.pace.unwrap_or_default().min(WAIT_MIN) * ENDS_PER_TURN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asker::SearchClient;
    use crate::pipeline::tests::asker;
    use std::sync::LazyLock;

    fn who(n: usize) -> SearchKey {
        asks(n, "{}")
    }

    fn asks(n: usize, question: &str) -> SearchKey {
        static ASKER: LazyLock<SearchClient> = LazyLock::new(|| asker(""));
        SearchKey::of(&SearchClient { key: format!("as {n}"), ..ASKER.clone() }, question)
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
        let turns: Vec<Duration> = (0..1_000).map(|n| retries.assign(&who(n), now, Duration::ZERO)).collect();
        assert_eq!(
            (turns[0], turns[1], turns[999]),
            (WAIT_MIN, WAIT_MIN + Duration::from_millis(40), Duration::from_millis(40_960))
        );
        // In each second, at most a quarter of the searches that can be served.
        let in_second = |s: u64| turns.iter().filter(|wait| wait.as_secs() == s).count();
        assert!((1..40).all(|s| in_second(s) == 25));
        // Ten seconds later the schedule leaves no room for new clients.
        assert_eq!(retries.assign(&who(0), now + Duration::from_secs(10), Duration::ZERO), Duration::from_secs(31));
        assert_eq!((0..10_000).map(|n| retries.assign(&who(n), now, Duration::ZERO)).max(), Some(WAIT_MAX));
    }

    #[test]
    fn the_line_ends_when_there_is_room_and_no_client_waits_for_no_reason() {
        let begun = Instant::now();
        let (mut retries, now) = (busy(begun), begun + Duration::from_secs(10));
        for n in 0..1_000 {
            retries.assign(&who(n), now, Duration::ZERO);
        }
        for n in 0..1_000 {
            retries.note_begin(&who(n), now);
        }
        assert!(retries.turns.is_empty());
        assert_eq!(retries.assign(&who(0), now, Duration::ZERO), WAIT_MIN);
        assert_eq!(RetrySchedule::default().assign(&who(0), now, Duration::from_secs(7)), Duration::from_secs(7));
        // With a very slow pace the steps stay bounded.
        let mut retries = RetrySchedule::default();
        retries.note_end(begun);
        retries.note_end(begun + Duration::from_secs(3_600));
        retries.assign(&who(0), now, Duration::ZERO);
        assert_eq!(retries.assign(&who(1), now, Duration::ZERO), Duration::from_secs(5));
    }

    #[test]
    fn who_comes_before_his_turn_is_known_by_what_he_asks_until_it_has_come() {
        let now = Instant::now();
        let mut retries = RetrySchedule::default();
        assert_eq!(retries.remaining(&who(1), now), None);
        assert_eq!(retries.assign(&who(1), now, Duration::from_secs(7)), Duration::from_secs(7));
        let after = |seconds: u64| now + Duration::from_secs(seconds);
        assert_eq!(retries.remaining(&who(1), after(2)), Some(Duration::from_secs(5)));
        assert_eq!(retries.remaining(&who(2), after(2)), None);
        assert_eq!(retries.remaining(&asks(1, "[]"), after(2)), None);
        assert_eq!(retries.remaining(&who(1), after(8)), None);
        retries.note_begin(&who(1), after(8));
        assert_eq!(retries.remaining(&who(1), after(2)), None);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let now = Instant::now();
        let mut retries = RetrySchedule::default();
        for n in 0..TURNS_MAX + 10 {
            retries.assign(&who(n), now, Duration::ZERO);
        }
        assert_eq!(retries.turns.len(), TURNS_MAX);
        assert_eq!(retries.remaining(&who(TURNS_MAX + 5), now), None);
        // Once turns have passed, the table has space again.
        let later = now + Duration::from_secs(5);
        retries.assign(&who(TURNS_MAX + 5), later, Duration::ZERO);
        assert_eq!((retries.turns.len(), retries.remaining(&who(TURNS_MAX + 5), later)), (1, Some(WAIT_MIN)));
    }
}
