//! Real time by design: deadlines of threads that wait for one another (`docs/simulation.md` lists them).
#![allow(clippy::disallowed_methods, reason = "waits of threads are real time")]

use std::time::{Duration, Instant};

/// Returns when a wait of this length ends.
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait
}

/// Returns the start of a wait.
pub(crate) fn begin() -> Instant {
    Instant::now()
}

/// Returns how long a wait has taken.
pub(crate) fn since(begun: Instant) -> Duration {
    begun.elapsed()
}

/// Returns the time left until a deadline; `None` once it has passed.
pub(crate) fn left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}
