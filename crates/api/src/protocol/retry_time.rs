//! Times after which clients may retry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Returns a retry time for a refusal without a measured one, in turns, so that clients refused together do not return
/// together: of 1 s it is 1 to 3 s.
pub fn unmeasured(min: Duration) -> Duration {
    static TURN: AtomicU64 = AtomicU64::new(0);
    let seconds = whole_seconds(min);
    Duration::from_secs(seconds + TURN.fetch_add(1, Ordering::Relaxed) % (seconds / 4 + 3))
}

/// Rounds to whole seconds for `Retry-After`; 0 would invite a retry storm.
pub fn whole_seconds(wait: Duration) -> u64 {
    // Rounded up: a client that retried a moment early would be refused again.
    wait.as_secs_f64().ceil().max(1.0) as u64
}
