//! Runs a query in steps. While its client reads, it has a thread and a permit; while the client does not read, it has
//! neither.
//!
//! Between two runs, the state of a query is a [`Source`]. It is kept in a task that waits for the client, then for a
//! permit, and hands it to a thread again. The number of slow clients is therefore bounded by memory (see
//! `state/readers.rs`), not by permits or threads.

use super::pipe::Pipe;
use super::sink::Sink;
use super::wait::{ReleasedPermit, evicted, wait};
use crate::protocol::problem::{Problem, Result};
use crate::state::AppState;
use crate::state::readers::ParkedQuery;
use meridian_admission::gate::Permit;
use meridian_backend::PermitScheduler;
use meridian_observe::WorkContext;
use meridian_query::{CancelFlag, Control};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::time::Instant;

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
            let ready = wait(self.sink.pipe(), self.deadline).await;
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
        fail(&self.state, self.sink.pipe(), self.control.cancel_flag(), problem);
        self.state.metrics.streams.record(self.arrived.elapsed());
    }
}

/// Ends a response with a problem, and counts why. The flag is raised if the client is gone.
pub(super) fn fail(state: &AppState, pipe: &Pipe, cancel: &CancelFlag, problem: Problem) {
    let metrics = &state.metrics;
    // Read before the pipe fails: the reader may disconnect because of that error, and raise the flag.
    let cancelled = cancel.is_cancelled();
    let unsent = pipe.fail(problem);
    if cancelled {
        metrics.clients_gone.fetch_add(1, Ordering::Relaxed);
    } else if let Some(problem) = unsent {
        // Once the head is sent, the client cannot be given the reason, so it is logged.
        metrics.streams_broken.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(detail = problem.detail(), "a streamed response was broken off");
    }
}
