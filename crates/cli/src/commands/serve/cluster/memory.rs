//! Memory shared by the queries of an owner.

use meridian_query::MemoryPool;
use std::sync::atomic::{AtomicU64, Ordering};

/// A pool of bytes. It has no shares per tenant: gateways enforce those.
#[derive(Debug)]
pub(super) struct Pool {
    limit: u64,
    taken: AtomicU64,
}

impl Pool {
    pub(super) fn new(limit: u64) -> Pool {
        Pool { limit, taken: AtomicU64::new(0) }
    }
}

impl MemoryPool for Pool {
    fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= self.limit);
        // Relaxed: a sum that guards no other memory.
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn limit(&self) -> u64 {
        self.limit
    }
}
