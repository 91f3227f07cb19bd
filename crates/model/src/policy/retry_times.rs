//! Retry times of refused clients: one after the other, so that they do not all return at once.
//!
//! Work starts or ends at some rate. Retry times are assigned at a quarter of that rate. So clients that return leave
//! room for new ones, however many were refused, and each is likely to be served. A fixed time would add the refused
//! clients to the load again and again.

use std::time::Duration;

/// Time since an origin that the caller chooses.
type At = Duration;

/// Min wait of a refused client.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Max wait of a refused client.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Steps of work for each retry time assigned.
const STEPS_PER_RETRY: u32 = 4;
/// Weight of the exponential mean of the pace: this many of the last steps dominate.
const PACE_WINDOW: u32 = 32;
/// Max time between two steps that counts. One long pause would otherwise push all retry times far away.
const PAUSE_MAX: Duration = WAIT_MIN;

/// Assigns retry times.
#[derive(Debug, Clone, Default)]
pub struct RetryTimes {
    last_step: Option<At>,
    /// Mean time between two steps of work.
    pace: Option<Duration>,
    /// When the last assigned retry would be done if the first had begun at once.
    end: At,
}

impl RetryTimes {
    /// Records a step of work: the start or the end of a query.
    pub fn note_step(&mut self, now: At) {
        if let Some(last) = self.last_step.replace(now) {
            let between = now.saturating_sub(last).min(PAUSE_MAX);
            self.pace = Some(self.pace.map_or(between, |mean| (mean * (PACE_WINDOW - 1) + between) / PACE_WINDOW));
        }
    }

    /// Returns how long the next refused client is to wait: from 1 s, or `min_wait` if longer, to 2 minutes.
    pub fn assign(&mut self, now: At, min_wait: Duration) -> Duration {
        // Each retry adds an interval, and time drains them. So the end of all gives the wait.
        let before = self.end.saturating_sub(now).min(WAIT_MAX);
        self.end = now.saturating_add(before).saturating_add(self.interval());
        (min_wait.max(WAIT_MIN) + before).min(WAIT_MAX)
    }

    /// Records that nothing waits any more: the next refusal begins a new schedule. The pace stays, and the pause that
    /// begins is not part of it.
    pub fn note_calm(&mut self) {
        (self.last_step, self.end) = (None, At::ZERO);
    }

    /// Takes back one retry time: its client was served sooner.
    pub fn take_back(&mut self) {
        self.end = self.end.saturating_sub(self.interval());
    }

    fn interval(&self) -> Duration {
        self.pace.unwrap_or_default() * STEPS_PER_RETRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// Work that has made a step each 10 ms for 10 s.
    fn busy() -> RetryTimes {
        let mut times = RetryTimes::default();
        (0..1_000).for_each(|n| times.note_step(10 * MS * n));
        times
    }

    #[test]
    fn clients_refused_together_return_at_a_quarter_of_the_pace() {
        let (mut times, now) = (busy(), 10_000 * MS);
        let waits: Vec<Duration> = (0..1_000).map(|_| times.assign(now, Duration::ZERO)).collect();
        assert_eq!((waits[0], waits[1], waits[999]), (WAIT_MIN, WAIT_MIN + 40 * MS, 40_960 * MS));
        assert!((1..40).all(|s| waits.iter().filter(|wait| wait.as_secs() == s).count() == 25));
        // Ten seconds later the first of them have returned, and the others are still to come.
        assert_eq!(times.assign(now + 10_000 * MS, Duration::ZERO), 31_000 * MS);
        times.take_back();
        assert_eq!(times.assign(now + 10_000 * MS, Duration::ZERO), 31_000 * MS);
        assert_eq!((0..10_000).map(|_| times.assign(now, Duration::ZERO)).max(), Some(WAIT_MAX));
        // All have returned by then.
        assert_eq!(times.assign(now + 2 * WAIT_MAX, Duration::ZERO), WAIT_MIN);
    }

    #[test]
    fn a_pause_without_a_backlog_is_not_part_of_the_pace() {
        let mut times = RetryTimes::default();
        // Two queries of 10 ms meet every two seconds.
        for n in 0..100 {
            times.note_calm();
            times.note_step(2_000 * MS * n);
            times.note_step(2_000 * MS * n + 10 * MS);
        }
        let now = 200_000 * MS;
        let waits: Vec<Duration> = (0..500).map(|_| times.assign(now, Duration::ZERO)).collect();
        assert_eq!(waits.last(), Some(&(WAIT_MIN + 499 * 40 * MS)));
        times.note_calm();
        assert_eq!(times.assign(now + MS, Duration::ZERO), WAIT_MIN);
    }

    #[test]
    fn a_pause_does_not_push_them_far_away() {
        let mut times = RetryTimes::default();
        times.note_step(Duration::ZERO);
        times.note_step(Duration::from_secs(3_600));
        times.assign(Duration::from_secs(3_600), Duration::ZERO);
        assert_eq!(times.assign(Duration::from_secs(3_600), Duration::ZERO), Duration::from_secs(5));
        assert_eq!(RetryTimes::default().assign(Duration::ZERO, Duration::from_secs(7)), Duration::from_secs(7));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Pass(u32),
        Work,
        Refuse(u32),
        TakeBack,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..2_000u32).prop_map(Step::Pass),
            1 => (0..200_000u32).prop_map(Step::Pass),
            4 => Just(Step::Work),
            8 => prop_oneof![Just(0u32), 0..10_000u32, 0..200_000u32].prop_map(Step::Refuse),
            1 => Just(Step::TakeBack),
        ]
    }

    proptest! {
        /// No wait leaves its bounds. At one time, each refused client moves the next by one interval, and a time taken
        /// back is assigned again. Once all assigned times have passed, the wait is the min.
        #[test]
        fn waits_follow_each_other_within_bounds(steps in prop::collection::vec(step(), 0..200)) {
            let mut times = RetryTimes::default();
            let (mut now, mut all_returned) = (Duration::ZERO, Duration::ZERO);
            for step in steps {
                match step {
                    Step::Pass(ms) => now += MS * ms,
                    Step::Work => times.note_step(now),
                    Step::TakeBack => times.take_back(),
                    Step::Refuse(ms) => {
                        let min_wait = MS * ms;
                        let before = times.clone().assign(now, Duration::ZERO);
                        let wait = times.assign(now, min_wait);
                        let bounds = min_wait.clamp(WAIT_MIN, WAIT_MAX)..=WAIT_MAX;
                        prop_assert!(bounds.contains(&wait), "{:?}", wait);
                        let after = times.clone().assign(now, Duration::ZERO);
                        prop_assert_eq!(after, (before + times.interval()).min(WAIT_MAX));
                        let mut without = times.clone();
                        without.take_back();
                        prop_assert_eq!(without.assign(now, min_wait), wait);
                        all_returned = all_returned.max(now + wait);
                    }
                }
            }
            // The last one takes an interval too.
            let later = now.max(all_returned) + PAUSE_MAX * STEPS_PER_RETRY;
            prop_assert_eq!(times.assign(later, Duration::ZERO), WAIT_MIN);
        }
    }
}
