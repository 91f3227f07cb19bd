//! How a write waits for room in memory: without a place to run, which readers need.

use crate::entry::Lease;
use crate::problem::Result;
use crate::snapshot as edge;
use crate::state::AppState;
use crate::stream::Run;
use meridian_backend::{Collection, WriteError};
use std::time::{Duration, Instant};

/// How often a waiting write looks whether a flush has made room; it may be a flush of any collection.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits for room in memory, for as long as the operator lets a write wait, then for a place to run.
pub(crate) async fn admit(
    state: &AppState,
    lease: &Lease,
    collection: &dyn Collection,
    deadline: Instant,
) -> Result<Run> {
    let until = deadline.min(Instant::now() + collection.room_wait());
    loop {
        wait(collection, until).await?;
        let run = lease.run(state, deadline).await?;
        // The writes that were admitted meanwhile may have taken the room.
        if collection.ask_for_room().map_err(|e| edge::write_problem(collection, e))? {
            return Ok(run);
        }
    }
}

/// Waits for room in memory until an instant.
pub(crate) async fn wait(collection: &dyn Collection, until: Instant) -> Result<()> {
    while !collection.ask_for_room().map_err(|e| edge::write_problem(collection, e))? {
        if Instant::now() >= until {
            return Err(edge::write_problem(collection, WriteError::no_room()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}
