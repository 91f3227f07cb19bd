//! The turns of tenants at an owner: whose step of a question gets the next slot.
//!
//! The rules are those of [`meridian_model::policy::turns`], with the weights that gateways tell. A step is short, whatever its question: it gives a piece of an answer, after which the question waits in line again. So
//! a tenant with many questions delays one of another tenant by one step of its own.

use crate::wire::fault::Fault;
use meridian_model::policy::queue::{Class, Dequeued, Patience};
use meridian_model::policy::turns::TenantQueues;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Steps of a tenant that wait. Gateways bound what they have under way far below.
const WAITING_MAX: usize = 16_384;

/// The slots of an owner, and the lines before them.
pub(super) struct FairSlots(Mutex<State>);

struct State {
    free: usize,
    lines: TenantQueues<Arc<str>, oneshot::Sender<Slot>>,
    /// Of tenants that gateways have named; others have a weight of 1.
    weights: HashMap<Arc<str>, u32>,
}

/// A slot; another step gets it when it is dropped.
pub(super) struct Slot(Arc<FairSlots>);

impl FairSlots {
    /// So many slots, all of them free.
    pub(super) fn new(slots: usize) -> Arc<FairSlots> {
        Arc::new(FairSlots(Mutex::new(State {
            free: slots,
            lines: TenantQueues::new(WAITING_MAX),
            weights: HashMap::new(),
        })))
    }

    /// Sets the weights of all tenants from now on.
    pub(super) fn set_weights(&self, weights: &[(Arc<str>, u32)]) {
        self.0.lock().weights = weights.iter().cloned().collect();
    }

    /// Waits for a slot, in the line of a tenant. A caller that goes away leaves the line.
    pub(super) async fn take(self: &Arc<Self>, tenant: &str) -> Result<Slot, Fault> {
        let (tell, mut told) = oneshot::channel();
        {
            let mut state = self.0.lock();
            // Also where a slot is free: it counts as a turn.
            let weight = state.weights.get(tenant).copied().unwrap_or(1);
            let pushed =
                state.lines.push((tenant.into(), weight), Class::Default, Duration::ZERO, Patience::Endless, tell);
            pushed
                .map_err(|_| Fault::Busy("too many questions wait for the owner of the data: try again".to_owned()))?;
        }
        self.give();
        if let Ok(slot) = told.try_recv() {
            return Ok(slot);
        }
        let mut waits = Waits { turns: self, in_line: true };
        // The sender is in line until it is used: the line ends with this process.
        let slot = told.await.map_err(|_| Fault::Closed);
        waits.in_line = false;
        slot
    }

    /// Gives free slots to the steps whose turn it is.
    fn give(self: &Arc<Self>) {
        // Dropped after the lock: the slot of a caller that has just gone comes back here.
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

/// A wait. Where its caller goes away, its place in line goes.
struct Waits<'t> {
    turns: &'t Arc<FairSlots>,
    in_line: bool,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        // Lines are searched only here: callers that go away while they wait are rare beside those that are served.
        if self.in_line {
            self.turns.0.lock().lines.retain(|tell| !tell.is_closed());
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
        // Its tag is that of the tenant that was served last, and the other one has been charged for its turn.
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
        // Given both slots and never polled again.
        drop(left);
        let _both = [turns.take("b").await.unwrap(), turns.take("b").await.unwrap()];
        assert!(turns.take("c").now_or_never().is_none());
    }
}
