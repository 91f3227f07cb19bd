//! Runs of a query on blocking threads, each with a permit.

use super::memory::QueryMemory;
use crate::protocol::problem::{Problem, Result};
use crate::state::AppState;
use meridian_admission::gate::Permit;
use meridian_backend::PermitScheduler;
use meridian_model::policy::quota::Quota;
use meridian_observe::{self as observe, WorkContext};
use meridian_query::{CancelFlag, Control};
use std::sync::Arc;
use tokio::time::Instant;

/// Raises a query's cancel flag when the task that waits for the response is dropped.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What a query needs to run: its deadline, its cancel flag and its permit.
pub struct Run {
    /// Deadline and cancellation of the query.
    pub control: Control,
    /// When the query must have ended.
    pub deadline: Instant,
    /// Its permit.
    pub permit: Permit,
    /// Its turns among other queries.
    pub turns: Arc<PermitScheduler>,
    /// The work to which its threads belong.
    pub current: WorkContext,
}

impl Run {
    /// Creates a run of the current work, with a permit.
    pub fn new(state: &AppState, permit: Permit, deadline: Instant) -> Run {
        let left = deadline.saturating_duration_since(Instant::now());
        let turns = PermitScheduler::of(&permit);
        let control = Control::new(state.clock.clone(), left, CancelFlag::new())
            .sharing(QueryMemory::of(&state.memory.of(permit.account().ledger.tenant())))
            .scheduled_by(turns.clone());
        let bytes_max = permit.account().ledger.limit(Quota::ScannedBytesPerRequest);
        let control = match bytes_max {
            Some(bytes) => control.reading_at_most(bytes),
            None => control,
        };
        // Waits for other processes give the permit back meanwhile.
        observe::hold(&turns);
        Run { control, deadline, permit, turns, current: observe::current() }
    }
}

/// Runs `work` on a blocking thread and waits for its result. If the caller is dropped, the work is cancelled.
pub async fn run<T: Send + 'static>(run: Run, work: impl FnOnce(&Control) -> Result<T> + Send + 'static) -> Result<T> {
    let Run { control, permit, current, .. } = run;
    let guard = CancelOnDrop(control.cancel_flag().clone());
    let outcome = tokio::task::spawn_blocking(move || {
        permit.meter().begin();
        let outcome = current.run(|| work(&control));
        // Released by the thread, not by the waiting task, which may be dropped earlier. A query that still computes
        // must keep its permit, or more threads would run than there are permits.
        drop(permit);
        outcome
    })
    .await;
    // Contained here: the panic of one query must not end its connection.
    let outcome = outcome.unwrap_or_else(|e| Err(Problem::internal(format!("a query panicked: {e}"))));
    drop(guard);
    outcome
}
