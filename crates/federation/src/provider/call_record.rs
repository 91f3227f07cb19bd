//! The outcome of a call, for the health of its source.

use crate::fetch::{Failure, RawResponse};
use crate::health::Health;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

/// Records the outcome of a call, even if its search ends first. A source that uses most of its timeout counts as
/// failing, however short the deadline of the search.
pub(super) struct CallRecord<'a> {
    health: &'a Mutex<Health>,
    timeout: Duration,
    began: Instant,
    done: bool,
}

impl CallRecord<'_> {
    /// Begins the record of a call to a source with this timeout.
    pub(super) fn begin(health: &Mutex<Health>, timeout: Duration) -> CallRecord<'_> {
        CallRecord { health, timeout, began: Instant::now(), done: false }
    }

    /// Ends the record with what the call returned.
    pub(super) fn end(mut self, result: &Result<RawResponse, Failure>) {
        self.done = true;
        match result {
            Err(failure) if failure.late => self.judge(),
            Err(failure) if failure.source_is_broken => self.health.lock().failed(Instant::now()),
            // The source is alive, though it rejects the request.
            Err(_) => self.health.lock().succeeded(),
            // A success counts only once the response has been mapped, by the provider: an error page may have status
            // 200.
            Ok(_) => {}
        }
    }

    fn judge(&self) {
        // A search with a short deadline must not open the breaker of a source of ordinary speed.
        if self.began.elapsed() >= self.timeout / 2 {
            self.health.lock().failed(Instant::now());
        }
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.judge();
        }
    }
}
