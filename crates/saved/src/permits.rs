//! A bounded number of permits for calls, granted to tenants in turn. A tenant gets at most three quarters of them: all
//! its calls may hang, and those of others continue.

use super::fair_queue::FairQueue;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot::{self, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits. While all are taken, callers wait in a queue per tenant.
#[derive(Debug)]
pub(crate) struct Permits {
    state: Arc<Mutex<State>>,
    /// Max permits of a tenant.
    own_max: usize,
    /// Remaining permits of each tenant that has or awaits one, within that max.
    own: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: FairQueue<Sender<TotalPermit>>,
}

/// A permit of the total, released when dropped.
#[derive(Debug)]
struct TotalPermit(Arc<Mutex<State>>);

/// A permit, released when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    // Drop order: the next caller of the same tenant must find a free permit.
    _shared: TotalPermit,
    _own: OwnedSemaphorePermit,
}

impl Permits {
    /// Starts with `count` permits, at least one.
    pub(crate) fn new(count: usize) -> Permits {
        let count = count.max(1);
        let state = Arc::new(Mutex::new(State { free: count, waiting: FairQueue::default() }));
        Permits { state, own_max: count - count / 4, own: Mutex::default() }
    }

    /// Waits for a permit. An error means that there will be none.
    pub(crate) async fn take(&self, tenant: &Arc<str>) -> Result<Permit, String> {
        let stopping = || "the server is stopping".to_owned();
        let own = self.own(tenant).acquire_owned().await.map_err(|_| stopping())?;
        let shared = self.shared(tenant).await.ok_or_else(stopping)?;
        Ok(Permit { _shared: shared, _own: own })
    }

    fn own(&self, tenant: &Arc<str>) -> Arc<Semaphore> {
        let mut own = self.own.lock();
        // Entries of tenants that neither have nor await one are removed.
        own.retain(|_, rest| Arc::strong_count(rest) > 1);
        own.entry(tenant.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.own_max))).clone()
    }

    async fn shared(&self, tenant: &Arc<str>) -> Option<TotalPermit> {
        let given = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return Some(TotalPermit(self.state.clone()));
            }
            let (give, given) = oneshot::channel();
            state.waiting.push(tenant, 1, give);
            given
        };
        given.await.ok()
    }
}

impl Drop for TotalPermit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // Callers that no longer wait are skipped here, rather than removed when dropped: there may be very many.
        let next = std::iter::from_fn(|| state.waiting.pop()).find(|next| !next.is_closed());
        let Some(next) = next else {
            state.free += 1;
            return;
        };
        // Unlocked first, since the permit comes back at once if its caller has just gone.
        drop(state);
        let _ = next.send(TotalPermit(self.0.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::pin::pin;
    use tokio::task::yield_now;

    #[tokio::test]
    async fn tenants_take_turns_and_no_permit_is_lost() {
        let permits = Arc::new(Permits::new(2));
        let (many, few): (Arc<str>, Arc<str>) = ("many".into(), "few".into());
        let mut held = VecDeque::from([permits.take(&many).await.unwrap(), permits.take(&many).await.unwrap()]);
        let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
        let mut waiting = Vec::new();
        for tenant in [vec![&many; 20], vec![&few; 3]].concat() {
            let (permits, say, tenant) = (permits.clone(), say.clone(), tenant.clone());
            waiting.push(tokio::spawn(async move {
                let permit = permits.take(&tenant).await.unwrap();
                say.send((tenant, permit)).unwrap();
            }));
            yield_now().await;
        }
        // Some give up while waiting.
        waiting.drain(..5).for_each(|task| task.abort());
        yield_now().await;
        let mut order = Vec::new();
        for _ in 0..18 {
            held.pop_front();
            let (tenant, permit) = said.recv().await.unwrap();
            order.push(tenant);
            held.push_back(permit);
        }
        assert_eq!(order[..6].iter().filter(|tenant| **tenant == few).count(), 3, "{order:?}");
        assert!(permits.state.lock().free == 0);
        // A caller that goes after it was granted a permit returns it.
        {
            let mut last = pin!(permits.take(&few));
            assert!(tokio::time::timeout(std::time::Duration::ZERO, &mut last).await.is_err());
            held.clear();
        }
        assert_eq!(permits.state.lock().free, 2);
    }

    #[tokio::test]
    async fn calls_that_hang_leave_permits_for_other_tenants() {
        let permits = Permits::new(4);
        let (hung, other): (Arc<str>, Arc<str>) = ("hung".into(), "other".into());
        let held = [permits.take(&hung).await, permits.take(&hung).await, permits.take(&hung).await];
        let soon = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(soon, permits.take(&hung)).await.is_err(), "three of four");
        drop(tokio::time::timeout(soon, permits.take(&other)).await.expect("a permit is left"));
        drop(held);
        permits.take(&hung).await.unwrap();
        assert_eq!((permits.state.lock().free, permits.own.lock().len()), (4, 1), "other tenants are forgotten");
    }
}
