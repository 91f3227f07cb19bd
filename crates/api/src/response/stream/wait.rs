//! How a query waits for its client, and for a permit to go on afterwards.

use super::pipe::{Pipe, Wakeup};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::overload;
use crate::state::AppState;
use crate::state::readers::ParkedQuery;
use meridian_admission::gate::{Account, Class, Gate, Permit};
use meridian_backend::PermitScheduler;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant};

/// A client that takes at most this long was waiting for the response, so its query keeps its class.
const PROMPT: Duration = Duration::from_millis(100);

/// Waits until half of the pipe is free. A client that reads too slowly loses its connection, and with it the
/// pipe its reader.
pub(super) async fn wait(pipe: &Pipe, deadline: Instant) -> Result<()> {
    match tokio::time::timeout_at(deadline, pipe.room()).await {
        Ok(Wakeup::Room) => Ok(()),
        Ok(Wakeup::ReaderGone) => Err(disconnected()),
        Ok(Wakeup::Cut) => Err(evicted()),
        Err(_) => {
            // Frees the chunks now. The connection's task would notice only at its next write, which a client that does
            // not read delays.
            pipe.cut();
            Err(Problem::new(Kind::DeadlineExceeded, "the client took the response too slowly"))
        }
    }
}

/// A permit that is given back while the client reads.
pub(super) struct ReleasedPermit {
    gate: Gate,
    account: Account,
    /// Processor time used so far.
    used: Duration,
    since: Instant,
}

impl ReleasedPermit {
    pub(super) fn new(permit: Permit) -> ReleasedPermit {
        let (gate, account, used) = permit.release();
        ReleasedPermit { gate, account, used, since: Instant::now() }
    }

    /// Waits for a permit for the rest of the query. After a slow client the query is no longer interactive: otherwise
    /// many of them waking together would starve new requests.
    pub(super) async fn resume(mut self, state: &AppState, deadline: Instant) -> Result<Permit> {
        if self.since.elapsed() > PROMPT {
            self.account.class = self.account.class.max(Class::Batch);
        }
        let resumed = self.gate.resume(&self.account, self.used, deadline).await;
        resumed.map_err(|refusal| overload::refused(state, refusal, self.gate.counts().slots))
    }
}

/// Returns the error of a query whose client took nothing while others needed the memory.
pub(super) fn evicted() -> Problem {
    Problem::new(
        Kind::Overloaded,
        "the client took nothing of the response while others needed the memory for responses",
    )
}

/// How work that cannot be interrupted waits for its client: on its thread, but without its permit.
pub(super) struct BlockingWait {
    permit: Option<Permit>,
    turns: Arc<PermitScheduler>,
    runtime: Handle,
    deadline: Instant,
}

impl BlockingWait {
    pub(super) fn new(permit: Permit, turns: Arc<PermitScheduler>, runtime: Handle, deadline: Instant) -> BlockingWait {
        BlockingWait { permit: Some(permit), turns, runtime, deadline }
    }

    pub(super) fn for_room(&mut self, state: &AppState, pipe: &Arc<Pipe>) -> Result<()> {
        let Some(permit) = self.permit.take() else { return Err(Problem::internal("a wait without a permit")) };
        let released = ReleasedPermit::new(permit);
        // A waiting thread is cheap to keep, but a permit is not: it reserves a processor that a waiting thread does
        // not use.
        let parked = ParkedQuery::enter(&state.readers);
        self.runtime.block_on(wait(pipe, self.deadline))?;
        drop(parked);
        let permit = self.runtime.block_on(released.resume(state, self.deadline))?;
        self.turns.go_on(&permit);
        self.permit = Some(permit);
        Ok(())
    }
}

/// Returns the error of a query whose client has disconnected; no client sees it.
pub(super) fn disconnected() -> Problem {
    Problem::new(Kind::Internal, "the client has disconnected")
}
