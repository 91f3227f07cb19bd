//! Retry times for refused clients: each gets its own, so that they do not all return at once.
//!
//! Turns are assigned one after the other, at a quarter of the rate at which searches end ([`RetryTimes`]). A client
//! admitted before its turn gives it back. A client is remembered until its turn, so that early retries do not displace
//! clients that wait.

use crate::asker::SearchKey;
use meridian_model::policy::retry_times::RetryTimes;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use tokio::time::{Duration, Instant};

/// Max clients remembered, some 2 MB. Any beyond them are treated as new.
const TURNS_MAX: usize = 1 << 16;
/// Min time between two sweeps of turns that have passed, when the table is full.
const SWEEP: Duration = Duration::from_secs(1);

/// The schedule of refused clients.
#[derive(Debug)]
pub(super) struct RetrySchedule {
    origin: Instant,
    times: RetryTimes,
    /// The turn of each client, by the hash of client and question.
    turns: HashMap<u64, Instant>,
    hasher: RandomState,
    swept: Option<Instant>,
}

impl RetrySchedule {
    /// Creates an empty schedule, of times from `origin` on.
    pub(super) fn new(origin: Instant) -> RetrySchedule {
        let (times, turns, hasher) = (RetryTimes::default(), HashMap::new(), RandomState::default());
        RetrySchedule { origin, times, turns, hasher, swept: None }
    }

    /// Records the end of a search.
    pub(super) fn note_end(&mut self, now: Instant) {
        self.times.note_step(self.at(now));
    }

    fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.origin)
    }

    /// Records that a client was admitted.
    pub(super) fn note_begin(&mut self, who: &SearchKey, now: Instant) {
        if self.turns.is_empty() {
            return;
        }
        let turn = self.turns.remove(&self.hasher.hash_one(who));
        // Its turn is free again: without this step back, the schedule would drift from the real load.
        if turn.is_some_and(|turn| turn > now) {
            self.times.take_back();
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
        let wait = self.times.assign(self.at(now), min_wait);
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
        let mut retries = RetrySchedule::new(now);
        (0..1_000).for_each(|n| retries.note_end(now + Duration::from_millis(10) * n));
        retries
    }

    #[test]
    fn a_client_admitted_before_its_turn_gives_the_turn_back() {
        let begun = Instant::now();
        let (mut retries, now) = (busy(begun), begun + Duration::from_secs(10));
        let turns: Vec<Duration> = (0..1_000).map(|n| retries.assign(&who(n), now, Duration::ZERO)).collect();
        assert_eq!(turns[..2], [Duration::from_millis(1_000), Duration::from_millis(1_040)]);
        for n in 0..1_000 {
            retries.note_begin(&who(n), now);
        }
        assert!(retries.turns.is_empty());
        assert_eq!(retries.assign(&who(0), now, Duration::ZERO), Duration::from_secs(1));
    }

    #[test]
    fn who_comes_before_his_turn_is_known_by_what_he_asks_until_it_has_come() {
        let now = Instant::now();
        let mut retries = RetrySchedule::new(now);
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
        let mut retries = RetrySchedule::new(now);
        for n in 0..TURNS_MAX + 10 {
            retries.assign(&who(n), now, Duration::ZERO);
        }
        assert_eq!(retries.turns.len(), TURNS_MAX);
        assert_eq!(retries.remaining(&who(TURNS_MAX + 5), now), None);
        // Once turns have passed, the table has space again.
        let later = now + Duration::from_secs(5);
        retries.assign(&who(TURNS_MAX + 5), later, Duration::ZERO);
        assert_eq!(
            (retries.turns.len(), retries.remaining(&who(TURNS_MAX + 5), later)),
            (1, Some(Duration::from_secs(1)))
        );
    }
}
