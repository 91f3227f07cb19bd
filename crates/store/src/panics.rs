//! Background jobs that panic: each costs only its own work, and is tried again after a pause, which doubles while they
//! go on.

use crate::error::StoreError;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pause after a job that has panicked, in microseconds, and the max to which it doubles.
const PAUSE_US: i64 = 2_000_000;
const PAUSE_MAX_US: i64 = 300_000_000;

static STORE_PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns how often work of stores as a whole, or the opening of a collection, has panicked since the start of the
/// process. Panics of open collections are in [`CollectionStats::job_panics`](crate::CollectionStats::job_panics).
pub fn store_panics() -> u64 {
    STORE_PANICS.load(Ordering::Relaxed)
}

/// Runs work, and turns a panic into an error, after a call of `count`.
pub(crate) fn contained<T>(
    what: &'static str,
    run: impl FnOnce() -> Result<T, StoreError>,
    count: impl FnOnce(),
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        count();
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(StoreError::Internal { what, detail: text })
    })
}

/// Runs work that belongs to no open collection, and turns a panic into an error, which is counted.
pub(crate) fn contained_by_store<T>(
    what: &'static str,
    run: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    contained(what, run, || {
        STORE_PANICS.fetch_add(1, Ordering::Relaxed);
    })
}

/// The pauses of a collection's jobs, or of a store's, by the job's name.
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
