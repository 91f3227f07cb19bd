//! Memory used by events that are not flushed yet, over all collections.

use meridian_model::policy::pool::Pool;
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes of memory trees, by tenant. Each tenant is guaranteed a share, so its writes never wait for another tenant's
/// flushes.
#[derive(Debug)]
pub(crate) struct WriteMemory(Mutex<State>);

#[derive(Debug)]
struct State {
    pool: Pool<Arc<str>>,
    /// Number of collections that hold some. Two changes of one collection may be recorded in another order than they
    /// were made.
    holders: i64,
}

impl WriteMemory {
    /// Creates an empty budget of this many bytes.
    pub(crate) fn new(limit: u64) -> WriteMemory {
        let pool = Pool::new(usize::try_from(limit).unwrap_or(usize::MAX));
        WriteMemory(Mutex::new(State { pool, holders: 0 }))
    }

    /// Guarantees each tenant a share by its weight.
    pub(crate) fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.0.lock().pool.guarantee(weights);
    }

    /// Returns the bytes of all tenants.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().pool.held() as u64
    }

    /// Returns the bytes of a tenant.
    pub(crate) fn bytes_of(&self, tenant: &str) -> u64 {
        self.0.lock().pool.held_by(tenant) as u64
    }

    /// Returns true if a collection that holds this much has at least an equal share. At least one always has,
    /// whichever store it belongs to.
    pub(crate) fn is_large(&self, bytes: u64) -> bool {
        let state = self.0.lock();
        bytes > 0 && bytes.saturating_mul(state.holders.max(1).unsigned_abs()) >= state.pool.held() as u64
    }

    /// Returns true if a tenant's next write need not wait. A write is accepted completely once there is any room, so
    /// it may exceed the limit.
    pub(crate) fn has_room(&self, tenant: &str) -> bool {
        let pool = &self.0.lock().pool;
        // A tenant's own share is available even while others exceed theirs.
        let within = pool.held() <= pool.limit() && pool.fits(tenant, usize::from(pool.held() < pool.limit()));
        within || pool.kept_free_for(tenant) > 0
    }

    /// Records how many bytes the trees of a collection had before, and have now.
    pub(crate) fn change(&self, tenant: &Arc<str>, before: i64, after: i64) {
        if before == after {
            return;
        }
        let mut state = self.0.lock();
        state.holders += i64::from(before == 0) - i64::from(after == 0);
        let amount = usize::try_from(after.abs_diff(before)).unwrap_or(usize::MAX);
        match after > before {
            // Forced, since the bytes exist already: writers waited before, by `has_room`.
            true => state.pool.force(tenant.clone(), amount),
            false => state.pool.give_back(tenant.clone(), amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_that_fills_the_memory_waits_alone() {
        let memory = WriteMemory::new(1_000);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        memory.change(&a, 0, 1_000);
        assert!(memory.has_room("a") && memory.has_room("b"), "full, and not beyond");
        memory.change(&a, 1_000, 1_001);
        assert!(!memory.has_room("a") && !memory.has_room("b"), "without a guarantee both wait");
        memory.change(&a, 1_001, 0);
        memory.guarantee([(a.clone(), 1), (b.clone(), 1)]);
        memory.change(&a, 0, 749);
        assert!(memory.has_room("a"));
        memory.change(&a, 749, 750);
        assert!(!memory.has_room("a") && memory.has_room("b"), "a quarter is kept free for the other");
        memory.change(&b, 0, 200);
        assert!(memory.has_room("b") && !memory.has_room("a") && memory.bytes() == 950);
        memory.change(&a, 750, 1_250);
        assert!(memory.has_room("b"), "whatever one large write of another took");
        memory.change(&a, 1_250, 749);
        assert!(memory.has_room("a"));
    }

    #[test]
    fn a_collection_is_large_beside_the_others_that_hold_something() {
        let (memory, tenant): (_, Arc<str>) = (WriteMemory::new(1_000), "a".into());
        [600, 10, 20].into_iter().for_each(|bytes| memory.change(&tenant, 0, bytes));
        assert_eq!([600, 210, 209, 0].map(|bytes| memory.is_large(bytes)), [true, true, false, false]);
        memory.change(&tenant, 600, 0);
        assert_eq!([20, 15, 10].map(|bytes| memory.is_large(bytes)), [true, true, false], "the other two have 30");
    }
}
