//! When a call is retried: one rule for reads, writes and acts.
//!
//! | the owner | what a failed call does |
//! |---|---|
//! | is unknown | it fails at once |
//! | is handing its data over | it waits for the next owner, for 5 s at most |
//! | has not identified itself yet | it retries for 5 s: the process may be opening the partitions it took over |
//! | has since refused a call | the same: another owner is named within moments |
//! | has answered before | it retries three times, within half a second |
//!
//! Only link faults are retried. For a call that must run at most once, the caller reports whether it may have arrived;
//! then it is not retried.

use super::link::{Link, OwnerState};
use crate::wire::fault::Fault;
use std::time::Duration;
use tokio::time::Instant;

/// Pauses before retries at a process that has answered before.
const PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(400)];
/// How long a call waits for the next owner, and then for that owner to open the partitions it took over.
const CHANGE: Duration = Duration::from_secs(5);
/// Retry interval at a process that has not identified itself.
const LOOK: Duration = Duration::from_millis(50);

/// Retry state of one call.
#[derive(Debug, Default)]
pub(super) struct Retry {
    /// Retries so far at a process that has answered before.
    tries: usize,
    /// When the owner stopped identifying itself.
    opens: Option<Instant>,
}

impl Retry {
    /// Waits until a failed call can be retried.
    ///
    /// # Errors
    /// The fault, if the call must not be retried.
    pub(super) async fn after(&mut self, link: &Link, fault: Fault) -> Result<(), Fault> {
        if !fault.is_of_the_link() {
            return Err(fault);
        }
        match link.standing() {
            OwnerState::Absent => Err(fault),
            OwnerState::Leaves => {
                let mut owner = link.owner();
                let next = owner.wait_for(|owner| owner.as_ref().is_none_or(|owner| !owner.leaves));
                let next = tokio::time::timeout(CHANGE, next).await;
                // The next owner is another process, with retries of its own.
                *self = Retry::default();
                if matches!(next, Ok(Ok(owner)) if owner.is_some()) { Ok(()) } else { Err(fault) }
            }
            // The first time stays: a process that answers and then refuses again must not restart the wait.
            OwnerState::Opens(since) if self.opens.get_or_insert(since).elapsed() < CHANGE => {
                tokio::time::sleep(LOOK).await;
                Ok(())
            }
            OwnerState::Opens(_) | OwnerState::Serves => {
                let Some(pause) = PAUSES.get(self.tries) else { return Err(fault) };
                self.tries += 1;
                tokio::time::sleep(*pause).await;
                Ok(())
            }
        }
    }
}

impl Link {
    /// Runs an idempotent call, and retries it while that may help.
    pub(super) async fn again<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        mut call: impl FnMut() -> F,
    ) -> Result<T, Fault> {
        let mut retry = Retry::default();
        loop {
            match call().await {
                Ok(answer) => return Ok(answer),
                // Each retry runs it once more at most, which is harmless.
                Err(Fault::Unknown(why)) => retry.after(self, Fault::Unavailable(why)).await?,
                Err(fault) => retry.after(self, fault).await?,
            }
        }
    }
}
