//! Backpressure: a write waits for room in memory without a permit, since queries need the permits.

use crate::protocol::problem::Result;
use crate::request::blocking::Run;
use crate::request::dispatch::Lease;
use crate::request::errors;
use crate::state::AppState;
use meridian_backend::{Collection, WriteError};
use tokio::time::{Duration, Instant};

/// How often a waiting write checks whether a flush has made room; it may be a flush of any collection.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Refuses a write that could not be accepted soon, before its body is read. A refusal is cheapest then.
pub(crate) fn refuse_early(state: &AppState, lease: &Lease, collection: &dyn Collection) -> Result<()> {
    lease.refuse_early(state)?;
    match collection.has_room() {
        true => Ok(()),
        // Without room the write may still wait; only a refusal that is certain ends it here.
        false => collection.request_room().map(drop).map_err(|e| errors::write_problem(collection, e)),
    }
}

/// Waits for room in memory, up to the operator's limit, then for a permit.
pub(crate) async fn admit(
    state: &AppState,
    lease: &Lease,
    collection: &dyn Collection,
    deadline: Instant,
) -> Result<Run> {
    // One deadline for all iterations, so that a write that is overtaken each time does not wait forever.
    let until = deadline.min(Instant::now() + collection.room_wait());
    loop {
        wait(collection, until).await?;
        let run = lease.run(state, deadline).await?;
        // Checked again, because writes admitted meanwhile may have used the room.
        if collection.request_room().map_err(|e| errors::write_problem(collection, e))? {
            return Ok(run);
        }
    }
}

/// Waits for room in memory until a deadline.
pub(crate) async fn wait(collection: &dyn Collection, until: Instant) -> Result<()> {
    while !collection.request_room().map_err(|e| errors::write_problem(collection, e))? {
        if Instant::now() >= until {
            return Err(errors::write_problem(collection, WriteError::no_room()));
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    Ok(())
}
