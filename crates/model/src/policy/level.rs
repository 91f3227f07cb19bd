//! Which formats the processes of a cluster may write, so that programs of two versions can share a bucket.
//!
//! A program has a *level*: it reads and writes the formats of its level and of the previous one. A bucket has a
//! level too, and processes write in the format of that level. The bucket's level rises by one once every live
//! process has a higher one; from then on older programs are refused. So nothing is written that a live process
//! cannot read.

use std::time::Duration;

/// Level of this program. It grows when a version adds a format: a field that must not be lost, an object, a call.
/// The new version reads the format at once, and writes it once the bucket has the level.
pub const LEVEL: u32 = 1;

/// Why a program cannot work over a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatMismatch {
    /// The bucket has formats that the program does not read.
    TooOld,
    /// The program no longer writes the formats of the bucket.
    TooNew,
}

/// Whether a program of level `own` works over a bucket of this level.
pub fn fits(bucket: u32, own: u32) -> Result<(), FormatMismatch> {
    match bucket {
        _ if bucket > own => Err(FormatMismatch::TooOld),
        _ if bucket + 1 < own => Err(FormatMismatch::TooNew),
        _ => Ok(()),
    }
}

/// Decides when the level of a bucket rises.
///
/// A process may have started a moment ago, or be paused, and so not be seen yet. So the level rises only once all
/// seen processes have had a higher one for some time. A process not seen all that time finds the new level at its
/// next check, and stops.
#[derive(Debug, Clone, Default)]
pub struct LevelRaiser {
    /// The next level, and the time since which all processes have had it.
    since: Option<(u32, Duration)>,
}

impl LevelRaiser {
    /// The level to write now, if it should rise. `own` is the level of this program, `others` those of all other
    /// live processes. `now` is this process's monotonic clock.
    pub fn look(
        &mut self,
        bucket: u32,
        own: u32,
        others: impl IntoIterator<Item = u32>,
        now: Duration,
        grace: Duration,
    ) -> Option<u32> {
        let next = bucket + 1;
        if own < next || others.into_iter().any(|level| level < next) {
            self.since = None;
            return None;
        }
        match self.since {
            Some((level, since)) if level == next => (now >= since + grace).then_some(next),
            _ => {
                self.since = Some((next, now));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRACE: Duration = Duration::from_secs(16);

    #[test]
    fn a_program_works_over_its_level_and_the_one_before() {
        assert_eq!([fits(1, 1), fits(1, 2), fits(2, 2)], [Ok(()); 3]);
        assert_eq!((fits(2, 1), fits(1, 3)), (Err(FormatMismatch::TooOld), Err(FormatMismatch::TooNew)));
    }

    #[test]
    fn a_level_rises_by_one_once_all_have_it_for_a_while() {
        let mut raising = LevelRaiser::default();
        let mut at = |seconds: u64, bucket: u32, others: &[u32]| {
            raising.look(bucket, 3, others.iter().copied(), Duration::from_secs(seconds), GRACE)
        };
        assert_eq!(at(0, 1, &[3, 1]), None, "one is of the level before");
        assert_eq!(at(60, 1, &[3, 2]), None);
        assert_eq!(at(75, 1, &[3, 2]), None);
        // A process of the previous level comes back: the time starts over.
        assert_eq!(at(76, 1, &[3, 1, 2]), None);
        assert_eq!(at(77, 1, &[3, 2]), None);
        assert_eq!(at(92, 1, &[3, 2]), None);
        assert_eq!(at(93, 1, &[3, 2]), Some(2));
        assert_eq!(at(94, 2, &[3, 2]), None, "one level at a time, and not above the min of all");
        assert_eq!(at(200, 2, &[3]), None);
        assert_eq!(at(216, 2, &[]), Some(3));
        assert_eq!(at(300, 3, &[]), None, "not above its own");
    }

    proptest! {
        /// Checks against the history of looks. A level rises by one if all had the next one at each look for the grace
        /// time. So it never exceeds the level of a live process.
        #[test]
        fn a_level_rises_after_a_run_of_looks_at_which_all_had_the_next(
            own in 1..6u32,
            grace in 0..10u64,
            looks in prop::collection::vec(
                (0..5u64, prop::collection::vec(1..6u32, 0..3), prop::bool::weighted(0.05)),
                0..60,
            ),
        ) {
            let (mut raiser, mut bucket, mut now) = (LevelRaiser::default(), 1_u32, 0_u64);
            let mut history: Vec<(u64, u32, u32)> = Vec::new();
            for (passed, others, is_raised_by_another) in looks {
                now += passed;
                bucket += u32::from(is_raised_by_another);
                let min = others.iter().copied().fold(own, u32::min);
                let risen = raiser.look(bucket, own, others, Duration::from_secs(now), Duration::from_secs(grace));
                history.push((now, bucket, min));
                let run: Vec<u64> = history
                    .iter()
                    .rev()
                    .take_while(|(_, level, min)| *level == bucket && *min > bucket)
                    .map(|(at, _, _)| *at)
                    .collect();
                let is_due = run.len() > 1 && run.last().is_some_and(|since| now >= *since + grace);
                prop_assert_eq!(risen, is_due.then_some(bucket + 1), "{:?}", history);
                if let Some(level) = risen {
                    prop_assert!(level <= min);
                    bucket = level;
                }
            }
        }
    }
}
