//! Runs a query in steps. While its client reads, it has a thread and a permit of the [`Gate`]; while the client does
//! not read, it has neither.
//!
//! Between two runs, the state of a query is a [`Source`]. It is kept in a task that waits for the client, then for a
//! permit, and hands it to a thread again. The number of slow clients is therefore bounded by memory (see
//! `state/readers.rs`), not by permits or threads.

use super::pipe::{Pipe, Wakeup};
use super::sink::{Sink, disconnected};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::overload;
use crate::state::AppState;
use crate::state::readers::ParkedQuery;
use meridian_admission::gate::{Account, Class, Gate, Permit};
use meridian_backend::PermitScheduler;
use meridian_observe::WorkContext;
use meridian_query::Control;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant};

/// The part of a query that has not run yet.
pub trait Source: Send {
    /// Writes the next events to the sink; returns false when the response is complete.
    fn step(&mut self, sink: &mut Sink, control: &Control) -> Result<bool>;

    /// Releases everything that can be read again, before a wait of unknown length. Returns the bytes that are still
    /// held.
    fn park(&mut self) -> usize;
}

/// Bytes taken by a parked query in addition to what its source reports.
const PARKED_BYTES: usize = 16 << 10;

/// A client that takes at most this long was waiting for the response, so its query keeps its class.
const PROMPT: Duration = Duration::from_millis(100);

/// A query that runs for a client.
pub(super) struct Job {
    pub(super) source: Option<Box<dyn Source>>,
    pub(super) sink: Sink,
    pub(super) control: Control,
    pub(super) turns: Arc<PermitScheduler>,
    pub(super) state: AppState,
    pub(super) deadline: Instant,
    pub(super) arrived: Instant,
    /// The work to which its threads belong.
    pub(super) current: WorkContext,
}

/// Why a run of the query ended.
enum Progress {
    Complete,
    /// The client must read something first.
    PipeFull,
}

impl Job {
    /// Performs the first run: `open` starts the response and returns the source of the rest.
    pub(super) fn start(
        mut self,
        permit: Permit,
        open: impl FnOnce(&mut Sink, &Control) -> Result<Option<Box<dyn Source>>>,
    ) {
        // The meter measures the thread on which it begins.
        permit.meter().begin();
        match open(&mut self.sink, &self.control) {
            Ok(None) => match self.sink.end() {
                Ok(()) => self.done(),
                Err(problem) => self.failed(problem),
            },
            Ok(source) => {
                self.source = source;
                self.run(permit);
            }
            Err(problem) => self.failed(problem),
        }
    }

    /// Performs the only run of work that cannot be interrupted.
    pub(super) fn run_blocking(mut self, work: impl FnOnce(&mut Sink, &Control) -> Result<()>) {
        match work(&mut self.sink, &self.control).and_then(|()| self.sink.end()) {
            Ok(()) => self.done(),
            Err(problem) => self.failed(problem),
        }
    }

    /// Runs until the response is complete or the pipe is full.
    fn run(mut self, permit: Permit) {
        match self.run_steps() {
            Ok(Progress::Complete) => self.done(),
            Ok(Progress::PipeFull) => self.park(permit),
            Err(problem) => self.failed(problem),
        }
    }

    fn run_steps(&mut self) -> Result<Progress> {
        let Some(source) = &mut self.source else { return Err(Problem::internal("a run without a query")) };
        while !self.sink.is_full() {
            if !source.step(&mut self.sink, &self.control)? {
                self.sink.end()?;
                return Ok(Progress::Complete);
            }
        }
        Ok(Progress::PipeFull)
    }

    /// Waits for the client without a thread or a permit.
    fn park(mut self, permit: Permit) {
        // First of all, since from here on the query waits for its client.
        let released = ReleasedPermit::new(permit);
        let held = self.source.as_mut().map_or(0, |source| source.park());
        // Before the wait, so that a query that does not fit in the memory for responses fails instead of being parked.
        match self.state.readers.reserve(&*self.state.clock, self.sink.pipe().answers(), held + PARKED_BYTES) {
            Some(share) => self.sink.pipe().park(share),
            None => return self.failed(evicted()),
        }
        Handle::current().spawn(async move {
            let parked = ParkedQuery::enter(&self.state.readers);
            let ready = wait(&self.state, self.sink.pipe(), self.deadline).await;
            drop(parked);
            let permit = match ready {
                Ok(()) => released.resume(&self.state, self.deadline).await,
                Err(problem) => Err(problem),
            };
            match permit {
                Ok(permit) => {
                    // Before the run, which reserves memory for its chunks from the same budget.
                    self.sink.pipe().unpark();
                    tokio::task::spawn_blocking(move || {
                        self.turns.go_on(&permit);
                        self.current.clone().run(|| self.run(permit));
                    });
                }
                Err(problem) => self.failed(problem),
            }
        });
    }

    fn done(self) {
        self.state.metrics.streams.record(self.arrived.elapsed());
    }

    fn failed(self, problem: Problem) {
        let metrics = &self.state.metrics;
        // Read before the pipe fails: the reader may disconnect because of that error, and raise the flag.
        let cancelled = self.control.cancel_flag().is_cancelled();
        let unsent = self.sink.pipe().fail(problem);
        if cancelled {
            metrics.clients_gone.fetch_add(1, Ordering::Relaxed);
        } else if let Some(problem) = unsent {
            // Once the head is sent, the client cannot be given the reason, so it is logged.
            metrics.streams_broken.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(detail = problem.detail(), "a streamed response was broken off");
        }
        metrics.streams.record(self.arrived.elapsed());
    }
}

/// Waits until half of the pipe is free. Disconnects a client that reads too slowly.
async fn wait(state: &AppState, pipe: &Pipe, deadline: Instant) -> Result<()> {
    let rate = state.config.answer_rate_min;
    // The time that a full pipe takes at the min rate; a rate of 0 sets no limit.
    let at_rate = Duration::from_secs((pipe.bytes() as u64).checked_div(rate).unwrap_or(u64::from(u32::MAX)));
    let stalled = Instant::now() + state.config.write_stall.saturating_add(at_rate);
    let slow = match tokio::time::timeout_at(deadline.min(stalled), pipe.room()).await {
        Ok(Wakeup::Room) => return Ok(()),
        Ok(Wakeup::ReaderGone) => return Err(disconnected()),
        Ok(Wakeup::Cut) => return Err(evicted()),
        Err(_) if stalled < deadline => {
            format!("the client was disconnected: it took less than {rate} bytes a second of the response")
        }
        Err(_) => "the client took the response too slowly".to_owned(),
    };
    if stalled < deadline {
        state.readers.count_slow();
    }
    // Frees the chunks now. The connection's task would notice only at its next write, which a client that does not
    // read delays.
    pipe.cut();
    Err(Problem::new(Kind::DeadlineExceeded, slow))
}

/// A permit that is given back while the client reads.
struct ReleasedPermit {
    gate: Gate,
    account: Account,
    /// Processor time used so far.
    used: Duration,
    since: Instant,
}

impl ReleasedPermit {
    fn new(permit: Permit) -> ReleasedPermit {
        let (gate, account, used) = permit.release();
        ReleasedPermit { gate, account, used, since: Instant::now() }
    }

    /// Waits for a permit for the rest of the query. After a slow client the query is no longer interactive: otherwise
    /// many of them waking together would starve new requests.
    async fn resume(mut self, state: &AppState, deadline: Instant) -> Result<Permit> {
        if self.since.elapsed() > PROMPT {
            self.account.class = self.account.class.max(Class::Batch);
        }
        let resumed = self.gate.resume(&self.account, self.used, deadline).await;
        resumed.map_err(|refusal| overload::refused(state, refusal, self.gate.counts().slots))
    }
}

fn evicted() -> Problem {
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
        self.runtime.block_on(wait(state, pipe, self.deadline))?;
        drop(parked);
        let permit = self.runtime.block_on(released.resume(state, self.deadline))?;
        self.turns.go_on(&permit);
        self.permit = Some(permit);
        Ok(())
    }
}
