//! Background jobs that panic: each is tried again after a pause, which doubles while they go on.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

/// Pause after a job that has panicked, in microseconds, and the max to which it doubles.
const PAUSE_US: i64 = 2_000_000;
const PAUSE_MAX_US: i64 = 300_000_000;

/// The pauses of a collection's jobs, by the job's name.
#[derive(Debug, Default)]
pub(crate) struct Panics(Mutex<BTreeMap<&'static str, Pause>>);

#[derive(Debug, Clone, Copy)]
struct Pause {
    length: i64,
    /// Its end, in microseconds of [`crate::seams::Clock::elapsed`].
    until: i64,
}

impl Panics {
    /// Returns false while the job is in its pause.
    pub(crate) fn may_run(&self, job: &str, now: i64) -> bool {
        self.0.lock().get(job).is_none_or(|pause| now >= pause.until)
    }

    /// Begins the pause of a job that has panicked, and returns its length.
    pub(crate) fn begin_pause(&self, job: &'static str, now: i64) -> Duration {
        let mut pauses = self.0.lock();
        // Other work of the same name may succeed in between, so only time without a panic counts.
        let length = match pauses.get(job) {
            Some(last) if now < last.until.saturating_add(PAUSE_MAX_US) => (last.length * 2).min(PAUSE_MAX_US),
            _ => PAUSE_US,
        };
        pauses.insert(job, Pause { length, until: now.saturating_add(length) });
        Duration::from_micros(length.unsigned_abs())
    }
}
