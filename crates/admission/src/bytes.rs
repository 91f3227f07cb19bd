//! A budget of bytes shared by tenants. Each share is returned to the budget when dropped.

use meridian_model::policy::pool::Pool;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A limit on the bytes that all holders together may use for one purpose, as seen by one tenant. Clones share the
/// budget.
///
/// Each tenant is guaranteed a part (see [`Pool`]).
#[derive(Debug, Clone)]
pub struct ByteBudget {
    budget: Arc<Budget>,
    /// The tenant; empty for the server itself, which has no guarantee.
    tenant: Arc<str>,
}

#[derive(Debug)]
struct Budget {
    pool: Mutex<Pool<Arc<str>>>,
    refused: AtomicU64,
    /// Notified when a share is returned in whole or in part.
    freed: Notify,
    /// Held by the first caller in the queue, so that small requests cannot starve a large one.
    queue: tokio::sync::Mutex<()>,
}

impl ByteBudget {
    /// Creates a budget of the given number of bytes, at least one.
    pub fn new(limit: usize) -> ByteBudget {
        let (pool, freed) = (Mutex::new(Pool::new(limit.max(1))), Notify::new());
        let budget = Budget { pool, refused: AtomicU64::new(0), freed, queue: tokio::sync::Mutex::new(()) };
        ByteBudget { budget: Arc::new(budget), tenant: "".into() }
    }

    /// Returns the same budget as seen by a tenant.
    pub fn of(&self, tenant: &Arc<str>) -> ByteBudget {
        ByteBudget { budget: self.budget.clone(), tenant: tenant.clone() }
    }

    /// Guarantees each tenant a part in proportion to its weight; the guarantees add up to half of the budget.
    pub fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.budget.pool.lock().guarantee(weights);
        // Other parts may be larger now: waiting callers check again.
        self.budget.freed.notify_waiters();
    }

    /// Returns the max number of bytes.
    pub fn limit(&self) -> usize {
        self.budget.pool.lock().limit()
    }

    /// Returns the bytes held now by all tenants.
    pub fn held(&self) -> usize {
        self.budget.pool.lock().held()
    }

    /// Returns the bytes held now by this tenant.
    pub fn held_here(&self) -> usize {
        self.budget.pool.lock().held_by(&self.tenant)
    }

    /// Returns whether more than half of the budget is held.
    pub fn is_short(&self) -> bool {
        let pool = self.budget.pool.lock();
        pool.held() > pool.limit() / 2
    }

    /// Returns whether more than half of the budget is held, and the tenant holds at least half of its guarantee.
    pub fn is_short_here(&self) -> bool {
        let pool = self.budget.pool.lock();
        // Bytes held by others do not cause a shortage for a tenant whose own guarantee is unused.
        pool.held() > pool.limit() / 2 && pool.held_by(&self.tenant) >= pool.kept_free_for(&self.tenant)
    }

    /// Returns whether the tenant holds more than its guarantee.
    pub fn exceeds_guarantee(&self) -> bool {
        self.budget.pool.lock().exceeds(&self.tenant)
    }

    /// Returns whether both are the same budget, of any tenants.
    pub fn is_same_budget(&self, other: &ByteBudget) -> bool {
        Arc::ptr_eq(&self.budget, &other.budget)
    }

    /// Returns whether both belong to the same tenant.
    pub fn is_of_same_tenant(&self, other: &ByteBudget) -> bool {
        self.tenant == other.tenant
    }

    /// Returns the number of requests that found no room since the start.
    pub fn refused(&self) -> u64 {
        self.budget.refused.load(Ordering::Relaxed)
    }

    /// Returns an empty share.
    pub fn empty(&self) -> ByteShare {
        ByteShare { budget: self.clone(), bytes: 0 }
    }

    /// Takes a share if there is room for it now.
    pub fn try_take(&self, bytes: usize) -> Option<ByteShare> {
        let mut share = self.empty();
        share.try_grow(bytes).then_some(share)
    }

    /// Like [`ByteBudget::try_take`], but caps the share at the most that the tenant could ever have.
    pub fn try_take_some(&self, bytes: usize) -> Option<ByteShare> {
        self.try_take(bytes.min(self.limit_here()))
    }

    /// Waits for a share. Returns `None` if there is no room by the given time, or if there never can be. Callers are
    /// served in order. A caller must not hold another share of the same budget while it waits: two such callers would
    /// deadlock.
    pub async fn take(&self, bytes: usize, until: Instant) -> Option<ByteShare> {
        // Refused at once: it could never succeed, and would block those queued behind it.
        if bytes > self.limit_here() {
            return None;
        }
        let wait = async {
            // Tokio's mutex is fair, so the wait is a queue. Only its head checks for free bytes.
            let _first = self.budget.queue.lock().await;
            loop {
                let freed = self.budget.freed.notified();
                let mut freed = std::pin::pin!(freed);
                // Enabled before the check, so that a share returned in between is not missed.
                freed.as_mut().enable();
                match self.try_take(bytes) {
                    Some(share) => return share,
                    None => freed.await,
                }
            }
        };
        tokio::time::timeout_at(until, wait).await.ok()
    }

    /// Returns the most bytes that the tenant could hold if all others returned theirs.
    fn limit_here(&self) -> usize {
        self.budget.pool.lock().limit_of(&self.tenant)
    }
}

/// A part of a [`ByteBudget`], returned when dropped.
#[derive(Debug)]
pub struct ByteShare {
    budget: ByteBudget,
    bytes: usize,
}

impl ByteShare {
    /// Returns its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows the share to the given total if there is room now. Returns whether the share has that size.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else { return true };
        let ByteBudget { budget, tenant } = &self.budget;
        let grown = budget.pool.lock().take(tenant.clone(), more);
        match grown {
            true => self.bytes = bytes,
            false => _ = budget.refused.fetch_add(1, Ordering::Relaxed),
        }
        grown
    }

    /// Adds bytes even beyond the limit: for small amounts whose allocation must not fail.
    pub fn grow(&mut self, more: usize) {
        let ByteBudget { budget, tenant } = &self.budget;
        budget.pool.lock().force(tenant.clone(), more);
        self.bytes += more;
    }

    /// Returns bytes to the budget, at most those of this share.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        let ByteBudget { budget, tenant } = &self.budget;
        budget.pool.lock().give_back(tenant.clone(), less);
        // `notify_waiters` stores no permit. `notify_one` would leave one that wakes a later caller without cause.
        budget.freed.notify_waiters();
    }

    /// Splits off part of the share, at most its own bytes.
    pub fn split(&mut self, bytes: usize) -> ByteShare {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        // The budget's total does not change: only the owner of the bytes does.
        ByteShare { budget: self.budget.clone(), bytes }
    }
}

impl Drop for ByteShare {
    fn drop(&mut self) {
        // An empty share frees nothing, so it notifies no caller.
        if self.bytes > 0 {
            self.shrink(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[derive(Debug, Clone)]
    enum Step {
        Take(usize),
        Grow(usize, usize),
        Force(usize, usize),
        Shrink(usize, usize),
        Split(usize, usize),
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (at, bytes) = (0..8usize, 0..150usize);
        prop_oneof![
            bytes.clone().prop_map(Step::Take),
            (at.clone(), bytes.clone()).prop_map(|(a, b)| Step::Grow(a, b)),
            (at.clone(), 0..10usize).prop_map(|(a, b)| Step::Force(a, b)),
            (at.clone(), bytes.clone()).prop_map(|(a, b)| Step::Shrink(a, b)),
            (at.clone(), bytes).prop_map(|(a, b)| Step::Split(a, b)),
            at.prop_map(Step::Drop),
        ]
    }

    proptest! {
        /// The bytes held equal the sum of the shares, and exceed the limit by at most what was forced.
        #[test]
        fn the_account_is_that_of_the_shares(steps in prop::collection::vec(step(), 0..60)) {
            let budget = ByteBudget::new(200);
            let (mut shares, mut forced): (Vec<ByteShare>, usize) = (Vec::new(), 0);
            for step in steps {
                let before = budget.held();
                let count = shares.len();
                match step {
                    Step::Take(bytes) => {
                        let share = budget.try_take(bytes);
                        prop_assert_eq!(share.is_some(), bytes == 0 || before + bytes <= 200);
                        shares.extend(share);
                    }
                    Step::Grow(at, bytes) if count > 0 => {
                        let share = &mut shares[at % count];
                        let more = bytes.saturating_sub(share.bytes());
                        prop_assert_eq!(share.try_grow(bytes), more == 0 || before + more <= 200);
                    }
                    Step::Force(at, bytes) if count > 0 => {
                        shares[at % count].grow(bytes);
                        forced += bytes;
                    }
                    Step::Shrink(at, bytes) if count > 0 => shares[at % count].shrink(bytes),
                    Step::Split(at, bytes) if count > 0 => {
                        let part = shares[at % count].split(bytes);
                        shares.push(part);
                    }
                    Step::Drop(at) if count > 0 => drop(shares.swap_remove(at % count)),
                    _ => {}
                }
                prop_assert_eq!(budget.held(), shares.iter().map(ByteShare::bytes).sum::<usize>());
                prop_assert!(budget.held() <= 200 + forced);
            }
            drop(shares);
            prop_assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn a_tenant_cannot_take_the_part_of_another() {
        let budget = ByteBudget::new(1_000);
        let (one, other) = (budget.of(&"one".into()), budget.of(&"other".into()));
        budget.guarantee([("one".into(), 1), ("other".into(), 1)]);
        let most = one.try_take_some(5_000).expect("room");
        assert_eq!((most.bytes(), one.exceeds_guarantee(), other.exceeds_guarantee()), (750, true, false));
        assert!(one.try_take(1).is_none() && budget.refused() == 1);
        let rest = other.try_take(250).expect("its part");
        assert!(!other.exceeds_guarantee() && other.try_take(1).is_none());
        drop(most);
        assert_eq!((budget.held(), other.try_take_some(5_000).map(|share| share.bytes())), (250, None));
        drop(rest);
        assert_eq!((budget.held(), other.try_take_some(5_000).map(|share| share.bytes())), (0, Some(750)));
    }

    #[test]
    fn what_another_tenant_holds_does_not_make_a_free_part_short() {
        let budget = ByteBudget::new(1_000);
        let (one, other, stranger) = (budget.of(&"one".into()), budget.of(&"other".into()), budget.of(&"third".into()));
        budget.guarantee([("one".into(), 1), ("other".into(), 1)]);
        let _most = one.try_take(750).expect("room");
        let mut some = other.try_take(124).expect("its part");
        assert!(one.is_short_here() && !other.is_short_here() && stranger.is_short_here());
        assert!(other.is_short(), "of all tenants");
        assert!(some.try_grow(125) && other.is_short_here());
        let alone = ByteBudget::new(1_000).of(&"one".into());
        alone.guarantee([("one".into(), 1)]);
        let mut half = alone.try_take(500).expect("room");
        assert!(!alone.is_short_here() && half.try_grow(501) && alone.is_short_here());
    }

    #[tokio::test]
    async fn a_large_share_is_not_overtaken_by_a_small_one() {
        let budget = ByteBudget::new(8_000);
        let (now, soon) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        let first = budget.take(5_000, now).await.expect("room");
        assert!(budget.take(4_000, now).await.is_none());
        assert!(budget.take(9_000, soon).await.is_none(), "more than the budget is refused at once");
        let waits = |bytes| {
            let budget = budget.clone();
            tokio::spawn(async move { budget.take(bytes, soon).await.map(|share| share.bytes()) })
        };
        let large = waits(8_000);
        tokio::task::yield_now().await;
        let small = waits(1_000);
        tokio::task::yield_now().await;
        assert!(!large.is_finished() && !small.is_finished(), "the small one waits behind the large one");
        drop(first);
        assert_eq!((large.await.expect("a task"), small.await.expect("a task")), (Some(8_000), Some(1_000)));
        assert_eq!(budget.held(), 0);
    }
}
