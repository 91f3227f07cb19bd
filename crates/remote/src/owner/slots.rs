//! Fair turns of tenants at an owner: whose query step gets the next slot.
//!
//! The rules are in [`meridian_model::policy::turns`], with the weights sent by gateways. A step is short for any
//! query: it produces a piece of the response, after which the query queues again. So a tenant with many queries delays
//! a query of another tenant by one step only.

use crate::wire::fault::Fault;
use meridian_model::policy::queue::{Class, Dequeued, JobTimeout};
use meridian_model::policy::turns::TenantQueues;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Max waiting steps of a tenant. The limits of the gateways are far lower.
const WAITING_MAX: usize = 16_384;

/// The slots of an owner, and the queues for them.
pub(super) struct FairSlots(Mutex<State>);

struct State {
    free: usize,
    lines: TenantQueues<Arc<str>, oneshot::Sender<Slot>>,
    /// Weights of tenants named by gateways; others have a weight of 1.
    weights: HashMap<Arc<str>, u32>,
}

/// A slot; dropping it passes it to another step.
pub(super) struct Slot(Arc<FairSlots>);

impl FairSlots {
    /// Starts with this many slots, all free.
    pub(super) fn new(slots: usize) -> Arc<FairSlots> {
        Arc::new(FairSlots(Mutex::new(State {
            free: slots,
            lines: TenantQueues::new(WAITING_MAX),
            weights: HashMap::new(),
        })))
    }

    /// Replaces the weights of all tenants.
    pub(super) fn set_weights(&self, weights: &[(Arc<str>, u32)]) {
        self.0.lock().weights = weights.iter().cloned().collect();
    }

    /// Waits for a slot in the queue of a tenant. A caller that goes away leaves the queue.
    pub(super) async fn take(self: &Arc<Self>, tenant: &str) -> Result<Slot, Fault> {
        let (tell, mut told) = oneshot::channel();
        {
            let mut state = self.0.lock();
            // Queued even if a slot is free, so that it counts as a turn.
            let weight = state.weights.get(tenant).copied().unwrap_or(1);
            let pushed =
                state.lines.push((tenant.into(), weight), Class::Default, Duration::ZERO, JobTimeout::Endless, tell);
            pushed
                .map_err(|_| Fault::Busy("too many questions wait for the owner of the data: try again".to_owned()))?;
        }
        self.give();
        if let Ok(slot) = told.try_recv() {
            return Ok(slot);
        }
        let mut waits = QueueWait { slots: self, in_line: true };
        // The sender stays in the queue until it is used; the queue lives as long as the process.
        let slot = told.await.map_err(|_| Fault::Closed);
        waits.in_line = false;
        slot
    }

    /// Hands free slots to the steps whose turn it is.
    fn give(self: &Arc<Self>) {
        // Dropped after the lock is released: a slot that its caller no longer wants comes back through this lock.
        let mut returned = Vec::new();
        let mut state = self.0.lock();
        while state.free > 0
            && let Some(Dequeued::Due(tell) | Dequeued::Expired(tell)) = state.lines.take(Duration::ZERO)
        {
            state.free -= 1;
            returned.extend(tell.send(Slot(self.clone())).err());
        }
        drop(state);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.lock().free += 1;
        self.0.give();
    }
}

/// A wait in the queue. Its place is removed if the caller goes away.
struct QueueWait<'t> {
    slots: &'t Arc<FairSlots>,
    in_line: bool,
}

impl Drop for QueueWait<'_> {
    fn drop(&mut self) {
        // Queues are searched only here, since callers rarely go away while they wait.
        if self.in_line {
            self.slots.0.lock().lines.retain(|tell| !tell.is_closed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::pin::pin;

    #[tokio::test]
    async fn a_tenant_with_many_steps_leaves_every_other_turn_to_one_with_few() {
        let turns = FairSlots::new(1);
        let first = turns.take("many").await.unwrap();
        let mut many: Vec<_> = (0..100).map(|_| Box::pin(turns.take("many"))).collect();
        assert!(many.iter_mut().all(|wait| wait.as_mut().now_or_never().is_none()));
        let mut few = pin!(turns.take("few"));
        assert!(few.as_mut().now_or_never().is_none());
        drop(first);
        // Its tag equals that of the tenant served last, and the other one has been charged for its turn.
        let slot = few.as_mut().now_or_never().unwrap().unwrap();
        drop(slot);
        assert!(many[0].as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn turns_follow_the_weights_that_gateways_tell() {
        let turns = FairSlots::new(1);
        turns.set_weights(&[("heavy".into(), 3), ("light".into(), 1)]);
        let mut held = Some(turns.take("other").await.unwrap());
        let mut waits: Vec<_> = (0..40)
            .map(|n| if n % 2 == 0 { "heavy" } else { "light" })
            .map(|tenant| (tenant, Some(Box::pin(turns.take(tenant)))))
            .collect();
        waits.iter_mut().for_each(|(_, wait)| assert!(wait.as_mut().unwrap().as_mut().now_or_never().is_none()));
        let mut served = Vec::new();
        for _ in 0..16 {
            drop(held.take());
            let (tenant, slot) = waits
                .iter_mut()
                .find_map(|(tenant, wait)| {
                    let slot = wait.as_mut()?.as_mut().now_or_never()?;
                    *wait = None;
                    Some((*tenant, slot.unwrap()))
                })
                .unwrap();
            served.push(tenant);
            held = Some(slot);
        }
        assert_eq!(served.iter().filter(|tenant| **tenant == "heavy").count(), 12, "{served:?}");
    }

    #[tokio::test]
    async fn who_leaves_the_line_costs_no_turn_and_no_slot() {
        let turns = FairSlots::new(2);
        let held = [turns.take("a").await.unwrap(), turns.take("a").await.unwrap()];
        for _ in 0..1_000 {
            assert!(turns.take("b").now_or_never().is_none());
        }
        let mut left = Box::pin(turns.take("a"));
        assert!(left.as_mut().now_or_never().is_none());
        drop(held);
        // It was handed both slots and never polled again.
        drop(left);
        let _both = [turns.take("b").await.unwrap(), turns.take("b").await.unwrap()];
        assert!(turns.take("c").now_or_never().is_none());
    }
}
