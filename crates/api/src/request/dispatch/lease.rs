//! The permit of a request, held from its admission until its work is done.

use crate::protocol::problem::Result;
use crate::request::blocking::Run;
use crate::request::overload;
use crate::state::AppState;
use meridian_admission::gate::{Account, Gate, Meter, Permit};
use meridian_observe::{self as observe, Slot, Stage};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;

/// A request's permit. Clones share it. It is released with the last clone, or by the work that took it.
#[derive(Clone)]
pub struct Lease(Arc<Inner>);

struct Inner {
    gate: Gate,
    account: Account,
    permit: Mutex<Option<Permit>>,
}

impl Lease {
    /// Creates a lease of a permit, or an empty one.
    pub fn new(gate: Gate, account: Account, permit: Option<Permit>) -> Lease {
        Lease(Arc::new(Inner { gate, account, permit: Mutex::new(permit) }))
    }

    /// Associates the current work with this permit, so that the slot is given back while the work waits for another
    /// process.
    pub fn hold(&self) {
        observe::hold(&self.0);
    }

    /// Takes the permit for a run. Without one it waits for a permit until `deadline`: either the body had to arrive
    /// first, or an earlier run used the permit.
    pub async fn run(&self, state: &AppState, deadline: Instant) -> Result<Run> {
        // Taken in a separate statement, so that the lock is not held during the wait.
        let held = self.0.permit.lock().take().filter(|permit| !permit.is_closed());
        let permit = match held {
            Some(permit) => permit,
            None => self.admit(state, deadline).await?,
        };
        Ok(Run::new(state, permit, deadline))
    }

    async fn admit(&self, state: &AppState, deadline: Instant) -> Result<Permit> {
        let _admission = observe::stage(Stage::Admission);
        let Inner { gate, account, .. } = &*self.0;
        gate.enter(account, deadline).await.map_err(|refusal| overload::refused(state, refusal, gate.counts().slots))
    }

    /// Refuses a write before its body is read if it would wait long for a permit behind others.
    pub fn refuse_early(&self, state: &AppState) -> Result<()> {
        let Inner { gate, account, .. } = &*self.0;
        gate.refuse_early(account).map_err(|refusal| overload::refused(state, refusal, gate.counts().slots))
    }

    /// Gives the permit back before a wait for something else. The next run acquires another one.
    pub fn give_back(&self) {
        drop(self.0.permit.lock().take());
    }

    /// Returns the account that the request is charged to.
    pub fn account(&self) -> &Account {
        &self.0.account
    }

    /// Waits for a permit for the rest of the request, once its body has arrived.
    pub async fn enter(&self, state: &AppState, deadline: Instant) -> Result<()> {
        let permit = self.admit(state, deadline).await?;
        // Stored instead of returned: the run takes it, and after an earlier error it is released with the lease.
        *self.0.permit.lock() = Some(permit);
        self.hold();
        Ok(())
    }
}

impl Inner {
    /// Returns the permit's meter, unless the permit was taken. The lock is not held during a wait.
    fn meter(&self) -> Option<Arc<Meter>> {
        self.permit.lock().as_ref().map(|permit| permit.meter().clone())
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Slot for Inner {
    fn rest(&self) {
        if let Some(meter) = self.meter() {
            meter.rest();
        }
    }

    fn wake(&self, over: &dyn Fn() -> bool) {
        if let Some(meter) = self.meter() {
            meter.wake(over);
        }
    }
}
