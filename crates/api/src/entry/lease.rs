//! The place to run that a request holds, from its admission until its work is done.

use crate::limiter::{Limiter, Permit};
use crate::problem::Result;
use crate::state::AppState;
use crate::stream::Run;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request's place to run. Clones share it; it is given back with the last of them, or by the work that took it.
#[derive(Clone)]
pub struct Lease(Arc<Held>);

struct Held {
    limiter: Limiter,
    permit: Mutex<Option<Permit>>,
    waited: Duration,
}

impl Lease {
    /// A place that was waited for, or none yet.
    pub fn new(limiter: Limiter, permit: Option<Permit>, waited: Duration) -> Lease {
        Lease(Arc::new(Held { limiter, permit: Mutex::new(permit), waited }))
    }

    /// Runs work in this place. Where there is none, since the body had to arrive first or the place was used up, waits
    /// for one until `deadline`.
    pub async fn run(&self, state: &AppState, deadline: Instant) -> Result<Run> {
        let held = self.0.permit.lock().take();
        match held {
            Some(permit) => Ok(Run::new(state, permit, self.0.waited, deadline)),
            None => {
                let asked = Instant::now();
                let permit = self.0.limiter.admit(deadline).await?;
                Ok(Run::new(state, permit, asked.elapsed(), deadline))
            }
        }
    }

    /// Waits for a place for the rest of the request, once its body has arrived.
    pub async fn enter(&self, deadline: Instant) -> Result<()> {
        let permit = self.0.limiter.admit(deadline).await?;
        *self.0.permit.lock() = Some(permit);
        Ok(())
    }
}
