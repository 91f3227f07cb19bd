//! Real time by design: deadlines of threads that wait for one another (`docs/simulation.md` lists them).
#![allow(clippy::disallowed_methods, reason = "waits of threads are real time")]

use std::time::{Duration, Instant};

/// When a wait of this length ends.
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait
}

/// When a wait begins.
pub(crate) fn begin() -> Instant {
    Instant::now()
}

/// How long a wait has taken.
pub(crate) fn since(begun: Instant) -> Duration {
    begun.elapsed()
}

/// How long until a deadline; `None` once it has passed.
pub(crate) fn left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}
