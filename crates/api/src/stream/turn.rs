//! A question works by turns: while its client reads, on a thread and with a place of the [`crate::limiter::Limiter`];
//! while the client does not, without either.
//!
//! What is left of a question between two turns is a [`Source`]. It is kept in a task, which waits for the client, then
//! for a place behind those that wait already, and hands it to a thread again. So the number of slow clients is bounded
//! by memory (see `readers.rs`), not by places or threads.

use super::pipe::{Pipe, Woken};
use super::readers::{self, Resting};
use super::sink::{Sink, gone};
use crate::limiter::{Limiter, Permit};
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use meridian_query::Control;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// What is left of a question between two turns.
pub trait Source: Send {
    /// Puts the next events into the sink; `false` when the answer is whole.
    fn step(&mut self, sink: &mut Sink, control: &Control) -> Result<bool>;

    /// Lets go of what can be had again before a wait of unknown length; gives the bytes that it holds on to.
    fn rest(&mut self) -> usize;
}

/// Bytes that a resting question takes besides what its source says.
const RESTING_BYTES: usize = 16 << 10;

/// A question that is being answered.
pub(super) struct Job {
    pub(super) source: Option<Box<dyn Source>>,
    pub(super) sink: Sink,
    pub(super) control: Control,
    pub(super) state: AppState,
    pub(super) deadline: Instant,
    pub(super) arrived: Instant,
}

/// How a turn ended.
enum Turn {
    Whole,
    Full,
}

impl Job {
    /// The first turn: `open` begins the answer and says what is left of it.
    pub(super) fn begin(
        mut self,
        permit: Permit,
        open: impl FnOnce(&mut Sink, &Control) -> Result<Option<Box<dyn Source>>>,
    ) {
        match open(&mut self.sink, &self.control) {
            Ok(None) => match self.sink.end() {
                Ok(()) => self.done(),
                Err(problem) => self.failed(problem),
            },
            Ok(source) => {
                self.source = source;
                self.turn(permit);
            }
            Err(problem) => self.failed(problem),
        }
    }

    /// The only turn of work that cannot be interrupted.
    pub(super) fn whole(mut self, work: impl FnOnce(&mut Sink, &Control) -> Result<()>) {
        match work(&mut self.sink, &self.control).and_then(|()| self.sink.end()) {
            Ok(()) => self.done(),
            Err(problem) => self.failed(problem),
        }
    }

    /// Works until the answer is whole or the client has enough to take.
    fn turn(mut self, permit: Permit) {
        match self.work() {
            Ok(Turn::Whole) => self.done(),
            Ok(Turn::Full) => self.rest(permit.leave()),
            Err(problem) => self.failed(problem),
        }
    }

    fn work(&mut self) -> Result<Turn> {
        let Some(source) = &mut self.source else { return Err(Problem::internal("a turn without a question")) };
        while !self.sink.is_full() {
            if !source.step(&mut self.sink, &self.control)? {
                self.sink.end()?;
                return Ok(Turn::Whole);
            }
        }
        Ok(Turn::Full)
    }

    /// Waits for the client without a thread.
    fn rest(mut self, limiter: Limiter) {
        let held = self.source.as_mut().map_or(0, |source| source.rest());
        match readers::hold(&self.state, held + RESTING_BYTES) {
            Some(held) => self.sink.pipe().rest(held),
            None => return self.failed(gave_way()),
        }
        Handle::current().spawn(async move {
            let resting = Resting::enter(&self.state);
            let ready = wait(&self.state, self.sink.pipe(), self.deadline).await;
            drop(resting);
            let permit = match ready {
                Ok(()) => limiter.again(self.deadline).await,
                Err(problem) => Err(problem),
            };
            match permit {
                Ok(permit) => {
                    self.sink.pipe().wake();
                    tokio::task::spawn_blocking(move || self.turn(permit));
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
        // Asked first: the reader may leave because of what it is told now.
        let called_off = self.control.cancel_flag().is_cancelled();
        let untold = self.sink.pipe().fail(problem);
        if called_off {
            metrics.clients_gone.fetch_add(1, Ordering::Relaxed);
        } else if let Some(problem) = untold {
            // Nobody listens for the reason once the head has gone: then it is the log's.
            metrics.streams_broken.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(detail = problem.detail(), "a streamed answer was broken off");
        }
        metrics.streams.record(self.arrived.elapsed());
    }
}

/// Waits until the client has taken half of what there is. One that reads too slowly is let go.
async fn wait(state: &AppState, pipe: &Pipe, deadline: Instant) -> Result<()> {
    let rate = state.config.answer_rate_min;
    let at_rate = Duration::from_secs((pipe.bytes() as u64).checked_div(rate).unwrap_or(u64::from(u32::MAX)));
    let patience = Instant::now() + state.config.write_stall.saturating_add(at_rate);
    let slow = match tokio::time::timeout_at(deadline.min(patience).into(), pipe.room()).await {
        Ok(Woken::Room) => return Ok(()),
        Ok(Woken::Gone) => return Err(gone()),
        Ok(Woken::Cut) => return Err(gave_way()),
        Err(_) if patience < deadline => {
            format!("the client was let go: it took less than {rate} bytes a second of its answer")
        }
        Err(_) => "the client took its answer too slowly".to_owned(),
    };
    if patience < deadline {
        state.readers.count_slow();
    }
    pipe.cut();
    Err(Problem::new(Kind::DeadlineExceeded, slow))
}

fn gave_way() -> Problem {
    Problem::new(Kind::Overloaded, "the client took nothing of its answer while others needed the memory for answers")
}

/// Where work that cannot be interrupted waits for its client: on its thread, but without its place.
pub(super) struct Seat {
    permit: Option<Permit>,
    runtime: Handle,
    deadline: Instant,
}

impl Seat {
    pub(super) fn new(permit: Permit, runtime: Handle, deadline: Instant) -> Seat {
        Seat { permit: Some(permit), runtime, deadline }
    }

    pub(super) fn wait(&mut self, state: &AppState, pipe: &Arc<Pipe>) -> Result<()> {
        let Some(permit) = self.permit.take() else { return Err(Problem::internal("a wait without a place")) };
        let limiter = permit.leave();
        let resting = Resting::enter(state);
        self.runtime.block_on(wait(state, pipe, self.deadline))?;
        drop(resting);
        self.permit = Some(self.runtime.block_on(limiter.again(self.deadline))?);
        Ok(())
    }
}
