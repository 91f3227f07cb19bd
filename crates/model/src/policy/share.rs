//! Start-time fair queueing: a right to service that shrinks with use.

use std::time::Duration;

/// The right of one of several sharers: the lower its tag, the more right it has.
///
/// A tag is the service used so far divided by the weight, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) tag: u64,
    pub(super) weight: u32,
}

impl Share {
    pub(super) fn new(weight: u32) -> Share {
        Share { tag: 0, weight: weight.max(1) }
    }

    /// The increase of the tag for an amount of service.
    pub(super) fn cost(&self, used: Duration) -> u64 {
        u64::try_from(used.as_nanos()).unwrap_or(u64::MAX) / u64::from(self.weight)
    }

    pub(super) fn charge(&mut self, used: Duration) {
        self.tag = self.tag.saturating_add(self.cost(used));
    }

    /// Activates it after being idle. Idle time saves no right beyond the credit: otherwise one that was idle for a
    /// day could keep all others out for a day.
    pub(super) fn activate(&mut self, virtual_time: u64, credit: Duration) {
        self.tag = self.tag.max(virtual_time.saturating_sub(self.cost(credit)));
    }
}
