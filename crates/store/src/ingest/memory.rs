//! Memory of events that are not flushed yet, over all collections.

use meridian_model::policy::pool::Pool;
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes of memory trees, by tenant. Each tenant is guaranteed a part, so the writes of one never wait for the
/// flushes of another.
#[derive(Debug)]
pub(crate) struct WriteMemory(Mutex<Pool<Arc<str>>>);

impl WriteMemory {
    /// An empty budget of this many bytes.
    pub(crate) fn new(limit: u64) -> WriteMemory {
        WriteMemory(Mutex::new(Pool::new(usize::try_from(limit).unwrap_or(usize::MAX))))
    }

    /// Guarantees each tenant a part by its weight.
    pub(crate) fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.0.lock().guarantee(weights);
    }

    /// Bytes of all tenants.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().held() as u64
    }

    /// Whether a tenant's next write need not wait. A write is accepted whole once there is any room, so it may
    /// exceed the limit.
    pub(crate) fn has_room(&self, tenant: &str) -> bool {
        let pool = self.0.lock();
        // A tenant's own part is available even while others exceed theirs.
        let within = pool.held() <= pool.limit() && pool.fits(tenant, usize::from(pool.held() < pool.limit()));
        within || pool.kept_free_for(tenant) > 0
    }

    /// Notes that the trees of a collection changed by this many bytes.
    pub(crate) fn change(&self, tenant: &Arc<str>, bytes: i64) {
        let mut pool = self.0.lock();
        let amount = usize::try_from(bytes.unsigned_abs()).unwrap_or(usize::MAX);
        match bytes > 0 {
            // Forced, since the bytes exist already: writers waited before, by `has_room`.
            true => pool.force(tenant.clone(), amount),
            false => pool.give_back(tenant.clone(), amount),
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
        memory.change(&a, 1_000);
        assert!(memory.has_room("a") && memory.has_room("b"), "full, and not beyond");
        memory.change(&a, 1);
        assert!(!memory.has_room("a") && !memory.has_room("b"), "without a guarantee both wait");
        memory.change(&a, -1_001);
        memory.guarantee([(a.clone(), 1), (b.clone(), 1)]);
        memory.change(&a, 749);
        assert!(memory.has_room("a"));
        memory.change(&a, 1);
        assert!(!memory.has_room("a") && memory.has_room("b"), "a quarter is kept free for the other");
        memory.change(&b, 200);
        assert!(memory.has_room("b") && !memory.has_room("a") && memory.bytes() == 950);
        memory.change(&a, 500);
        assert!(memory.has_room("b"), "whatever one large write of another took");
        memory.change(&a, -500);
        memory.change(&a, -1);
        assert!(memory.has_room("a"));
    }
}
