//! Deadlines, cancellation, and the account of what a question cost.

use crate::error::QueryError;
use crate::memory::{Memory, Share};
use meridian_store::seams::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A flag that whoever asked raises when the answer is wanted no more. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is down.
    pub fn new() -> CancelFlag {
        CancelFlag::default()
    }

    /// Raises the flag: the question stops at its next block.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is up.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long a question may work, and how it is called off. Cheap to clone.
///
/// Both are looked at before each block that is read, so a question stops within one block's work.
#[derive(Debug, Clone)]
pub struct Control {
    clock: Arc<dyn Clock>,
    /// On the clock's [`Clock::elapsed`].
    deadline_us: i64,
    cancel: CancelFlag,
    memory: Option<Arc<Memory>>,
}

impl Control {
    /// A question that may work for `timeout` from now on.
    pub fn new(clock: Arc<dyn Clock>, timeout: Duration, cancel: CancelFlag) -> Control {
        let timeout_us = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX);
        let deadline_us = clock.elapsed().saturating_add(timeout_us);
        Control { clock, deadline_us, cancel, memory: None }
    }

    /// The same, with what it collects taken out of a budget that questions share.
    pub fn sharing(self, memory: Arc<Memory>) -> Control {
        Control { memory: Some(memory), ..self }
    }

    /// A share of that budget, empty at first.
    pub(crate) fn share(&self) -> Share {
        Share::of(self.memory.clone())
    }

    /// The flag that calls the question off.
    pub fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
    }

    /// Time left; zero when it is over.
    pub fn time_left(&self) -> Duration {
        Duration::from_micros(self.deadline_us.saturating_sub(self.clock.elapsed()).max(0) as u64)
    }

    /// Whether work may go on.
    pub fn check(&self) -> Result<(), QueryError> {
        if self.cancel.is_cancelled() {
            return Err(QueryError::Cancelled);
        }
        if self.clock.elapsed() >= self.deadline_us {
            return Err(QueryError::Deadline);
        }
        Ok(())
    }

    /// Microseconds on the clock, for [`Stats`].
    pub(crate) fn elapsed_us(&self) -> i64 {
        self.clock.elapsed()
    }
}

/// What a question cost: the answer of `explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Stats {
    /// Memory trees and segments of the snapshot.
    pub parts: u64,
    /// Of these, the ones whose bounds alone ruled them out.
    pub parts_pruned: u64,
    /// Tree nodes whose box was looked at.
    pub nodes_visited: u64,
    /// Tree nodes left out with all their events.
    pub nodes_pruned: u64,
    /// Tree nodes taken whole, without a look at their events.
    pub nodes_whole: u64,
    /// Blocks read: runs of at most [`meridian_store::CHUNK_ROWS`] neighbouring events.
    pub blocks_read: u64,
    /// Blocks of 64 events at the edge of the question or of its windows: those that an aggregate could not take from
    /// the nodes above them.
    pub edge_blocks: u64,
    /// Events tested one by one.
    pub events_tested: u64,
    /// Events found to match, before any limit cut them.
    pub events_matched: u64,
    /// Microseconds spent on planning.
    pub plan_us: u64,
    /// Microseconds spent on scanning.
    pub scan_us: u64,
}

impl Stats {
    /// Adds the cost of another part of the same question.
    pub fn merge(&mut self, other: &Stats) {
        self.parts += other.parts;
        self.parts_pruned += other.parts_pruned;
        self.nodes_visited += other.nodes_visited;
        self.nodes_pruned += other.nodes_pruned;
        self.nodes_whole += other.nodes_whole;
        self.blocks_read += other.blocks_read;
        self.edge_blocks += other.edge_blocks;
        self.events_tested += other.events_tested;
        self.events_matched += other.events_matched;
        self.plan_us += other.plan_us;
        self.scan_us += other.scan_us;
    }
}
