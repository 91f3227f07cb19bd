//! Makes maintenance yield to requests: merges pause while a request is in flight.
//!
//! Every snapshot held by a reader and every write in progress counts as a request. After each block of 4096 rows a
//! merge checks for one. If there is one, it pauses for as long as the block took. So it never takes more than half of
//! a core from requests, and uses all of it while there are none. Flushes do not pause, since writers may wait for the
//! memory that they free. Neither do overdue merges and work that a caller waits for.

use crate::seams::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Max pause after one block.
const REST_MAX: Duration = Duration::from_millis(50);

/// The requests in progress. Each holds a reference, so the count of references is one more than that of requests. So a
/// request costs one write to memory shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct Load(Arc<()>);

/// A request in progress; it lasts until this and all its clones are dropped.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    _counted: Arc<()>,
}

impl Load {
    pub(crate) fn enter(&self) -> InFlight {
        InFlight { _counted: self.0.clone() }
    }

    fn is_busy(&self) -> bool {
        // The count guards no data. A merge that misses a request pauses one block later.
        Arc::strong_count(&self.0) > 1
    }
}

/// The pace of one piece of work.
pub(crate) struct Pace<'a> {
    clock: &'a dyn Clock,
    /// The requests to yield to; `None` for full speed.
    load: Option<&'a Load>,
    began: i64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, load: Option<&'a Load>) -> Pace<'a> {
        Pace { clock, load, began: clock.elapsed() }
    }

    /// Pauses after a block, if requests are in flight.
    pub(crate) fn block(&mut self) {
        if self.load.is_some_and(Load::is_busy) {
            // As long as the block took, which adapts to the machine. The max bounds the pause after a slow read.
            let worked = Duration::from_micros((self.clock.elapsed() - self.began).max(0) as u64);
            self.clock.sleep(worked.min(REST_MAX));
        } else {
            // Lets threads that share the core run first.
            std::thread::yield_now();
        }
        // Reset after the pause: otherwise the next pause would include this one and grow to the max.
        self.began = self.clock.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::ManualClock;

    #[test]
    fn work_rests_as_long_as_it_works_while_a_request_is_in_flight() {
        let (clock, load) = (ManualClock::new(0), Arc::new(Load::default()));
        let mut pace = Pace::new(&clock, Some(&load));
        let mut passed = |worked: i64| {
            let begun = clock.elapsed();
            clock.advance(worked);
            pace.block();
            clock.elapsed() - begun
        };
        assert_eq!(passed(2_000), 2_000);
        let request = load.enter();
        assert_eq!(passed(2_000), 4_000);
        assert_eq!(passed(3_000_000), 3_050_000, "no longer than the longest rest");
        drop(request);
        assert_eq!(passed(2_000), 2_000);
    }
}
