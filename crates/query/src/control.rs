//! Deadlines, cancellation, and cost accounting of a query.

use crate::error::QueryError;
use crate::memory::{MemoryPool, Share};
use meridian_store::seams::Clock;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

/// A flag that the caller raises to cancel a query. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    raised: AtomicBool,
    /// Waiting threads to wake.
    waiting: Mutex<Vec<Thread>>,
}

/// Registration of a thread for unparking; ends when dropped.
#[derive(Debug)]
pub struct Unparks<'a>(&'a CancelFlag, ThreadId);

impl CancelFlag {
    /// A flag that is not raised.
    pub fn new() -> CancelFlag {
        CancelFlag::default()
    }

    /// Raises the flag: the query stops at its next block.
    pub fn cancel(&self) {
        // Relaxed: the flag carries no data, and a check that is one block late is within the contract.
        self.0.raised.store(true, Ordering::Relaxed);
        // The lock orders the two: a thread that is not in the list yet will see the flag.
        self.0.waiting.lock().drain(..).for_each(|thread| thread.unpark());
    }

    /// Unparks this thread when the flag is raised, while the guard is held. Take the guard before reading the flag.
    pub fn unparks(&self) -> Unparks<'_> {
        let thread = thread::current();
        let id = thread.id();
        self.0.waiting.lock().push(thread);
        Unparks(self, id)
    }

    /// Whether the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed)
    }
}

impl Drop for Unparks<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.0.waiting.lock();
        if let Some(place) = waiting.iter().position(|thread| thread.id() == self.1) {
            waiting.swap_remove(place);
        }
    }
}

/// The processors shared by queries. Another component decides what runs; a query checks in as it goes.
pub trait Scheduler: Send + Sync + std::fmt::Debug {
    /// Called before each block by the thread that runs the query. It may block while other queries have more right
    /// to run, until `over` returns true because the query is no longer wanted.
    fn tick(&self, over: &dyn Fn() -> bool);

    /// Whether other queries wait; this one then does not spread over several threads.
    fn is_contended(&self) -> bool;

    /// Charges work that a helper thread did for the query.
    fn charge(&self, used: Duration);

    /// Records bytes of events that the query has read, on any of its threads.
    fn read(&self, bytes: u64);

    /// Records that the query is refused, or ended, because it exceeds its read limit. Called once.
    fn read_too_much(&self);
}

/// Number of processors of this machine that the process may use.
pub(crate) fn threads() -> usize {
    // Asked once: the answer comes from files of the cgroup, and reading them costs more than a small query.
    static THREADS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *THREADS
}

/// Bytes of events that a query may read, shared by its threads.
#[derive(Debug)]
struct Allowance {
    bytes: u64,
    read: AtomicU64,
}

/// The deadline of a query, its cancellation and its scheduling. Cheap to clone.
///
/// All are checked before each block is read, so a query stops within one block's work.
#[derive(Debug, Clone)]
pub struct Control {
    clock: Arc<dyn Clock>,
    /// Measured by [`Clock::elapsed`].
    deadline_us: i64,
    cancel: CancelFlag,
    memory: Option<Arc<dyn MemoryPool>>,
    scheduler: Option<Arc<dyn Scheduler>>,
    allowance: Option<Arc<Allowance>>,
    /// Whether this thread helps the one that runs the query: it is charged, and never blocks.
    helps: bool,
    /// The limits of a first try; see [`Control::brief`].
    brief: Option<Arc<Brief>>,
}

/// The limits of a query on a thread that others need soon.
#[derive(Debug)]
struct Brief {
    /// Measured by [`Clock::elapsed`].
    until_us: i64,
    exceeded: AtomicBool,
    /// Bytes read and not charged yet: a query that exceeds its limits runs again, and is then charged for them.
    read: AtomicU64,
    /// Whether it read too much, which is not reported yet for the same reason.
    read_too_much: AtomicBool,
}

impl Control {
    /// A query that may run for `timeout` from now on.
    pub fn new(clock: Arc<dyn Clock>, timeout: Duration, cancel: CancelFlag) -> Control {
        let timeout_us = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX);
        let deadline_us = clock.elapsed().saturating_add(timeout_us);
        Control {
            clock,
            deadline_us,
            cancel,
            memory: None,
            scheduler: None,
            allowance: None,
            helps: false,
            brief: None,
        }
    }

    /// Takes the query's memory from a shared pool.
    pub fn sharing(self, memory: Arc<dyn MemoryPool>) -> Control {
        Control { memory: Some(memory), ..self }
    }

    /// Lets a scheduler decide when the query runs.
    pub fn scheduled_by(self, scheduler: Arc<dyn Scheduler>) -> Control {
        Control { scheduler: Some(scheduler), ..self }
    }

    /// The control of a first try on a thread that others need soon, such as one that reads requests. The try ends at
    /// the first check after `timeout`. It neither waits for the scheduler nor spreads over threads. If
    /// [`Control::is_exceeded`] afterwards, its result is void and the query must run again under `self`. Otherwise
    /// [`Control::settle`] charges it.
    pub fn brief(&self, timeout: Duration) -> Control {
        let timeout_us = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX);
        let until_us = self.clock.elapsed().saturating_add(timeout_us).min(self.deadline_us);
        let (exceeded, read_too_much) = (AtomicBool::new(false), AtomicBool::new(false));
        let brief = Brief { until_us, exceeded, read: AtomicU64::new(0), read_too_much };
        // Both are its own: a try that is given up must neither cancel the query nor use its allowance.
        let allowance = self.bytes_max().map(|bytes| Arc::new(Allowance { bytes, read: AtomicU64::new(0) }));
        Control { cancel: CancelFlag::new(), allowance, brief: Some(Arc::new(brief)), ..self.clone() }
    }

    /// Whether a brief control has ended its query.
    pub fn is_exceeded(&self) -> bool {
        self.brief.as_ref().is_some_and(|brief| brief.exceeded.load(Ordering::Relaxed))
    }

    /// Charges the bytes that a completed query under a brief control has read.
    pub fn settle(&self) {
        let (Some(brief), Some(scheduler)) = (&self.brief, &self.scheduler) else { return };
        scheduler.read(brief.read.swap(0, Ordering::Relaxed));
        if brief.read_too_much.swap(false, Ordering::Relaxed) {
            scheduler.read_too_much();
        }
    }

    /// The control of a helper thread.
    pub(crate) fn helping(&self) -> Control {
        Control { helps: true, ..self.clone() }
    }

    /// Charges the work of a helper thread since `began_us`, as elapsed time, which its processor time does not
    /// exceed.
    pub(crate) fn helped(&self, began_us: i64) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.charge(Duration::from_micros((self.clock.elapsed() - began_us).max(0) as u64));
        }
    }

    /// Limits the bytes of events that the query may read.
    pub fn reading_at_most(self, bytes: u64) -> Control {
        Control { allowance: Some(Arc::new(Allowance { bytes, read: AtomicU64::new(0) })), ..self }
    }

    /// Max bytes that the query may read.
    pub fn bytes_max(&self) -> Option<u64> {
        self.allowance.as_ref().map(|allowance| allowance.bytes)
    }

    /// Charges bytes of events that another server has read for the query; that server enforced the limit.
    pub fn charge_elsewhere(&self, bytes: u64) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.read(bytes);
        }
    }

    /// Records that another server refused the query, or ended it, because it exceeds its read limit.
    pub fn refused_elsewhere(&self) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.read_too_much();
        }
    }

    /// Charges bytes of events about to be read.
    pub(crate) fn read(&self, bytes: u64) -> Result<(), QueryError> {
        if let Some(brief) = &self.brief {
            brief.read.fetch_add(bytes, Ordering::Relaxed);
        } else if let Some(scheduler) = &self.scheduler {
            scheduler.read(bytes);
        }
        let Some(Allowance { bytes: limit, read }) = self.allowance.as_deref() else { return Ok(()) };
        let before = read.fetch_add(bytes, Ordering::Relaxed);
        let read = before + bytes;
        if read <= *limit {
            return Ok(());
        }
        // Several threads may exceed the limit; the one that crossed it reports it.
        match before <= *limit {
            true => Err(self.too_large(0, read)),
            false => Err(QueryError::TooLarge { events: 0, bytes: read, limit: Some(*limit) }),
        }
    }

    /// The error of a query that exceeds its read limit.
    pub(crate) fn too_large(&self, events: u64, bytes: u64) -> QueryError {
        if let Some(brief) = &self.brief {
            brief.read_too_much.store(true, Ordering::Relaxed);
        } else if let Some(scheduler) = &self.scheduler {
            scheduler.read_too_much();
        }
        QueryError::TooLarge { events, bytes, limit: self.bytes_max() }
    }

    /// Whether the query must stay on its thread: other queries wait for a processor, or it is brief.
    pub(crate) fn stays_on_thread(&self) -> bool {
        self.brief.is_some() || self.scheduler.as_ref().is_some_and(|scheduler| scheduler.is_contended())
    }

    /// An empty share of the memory pool.
    pub fn share(&self) -> Share {
        Share::of(self.memory.clone())
    }

    /// The flag that cancels the query.
    pub fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
    }

    /// Time left; zero once the deadline has passed.
    pub fn time_left(&self) -> Duration {
        Duration::from_micros(self.deadline_us.saturating_sub(self.clock.elapsed()).max(0) as u64)
    }

    /// Whether work may continue.
    pub fn check(&self) -> Result<(), QueryError> {
        if let Some(brief) = &self.brief {
            return match self.clock.elapsed() >= brief.until_us {
                true => Err(brief.exceed()),
                false => Ok(()),
            };
        }
        // Scheduling first: it may block for long, and the query may be over by then.
        if let Some(scheduler) = self.scheduler.as_ref().filter(|_| !self.helps) {
            scheduler.tick(&|| self.is_over().is_some());
        }
        self.is_over().map_or(Ok(()), Err)
    }

    /// Why the query is no longer wanted, if so.
    pub fn is_over(&self) -> Option<QueryError> {
        // The flag first: it costs one load, while the clock may cost a system call.
        if self.cancel.is_cancelled() {
            return Some(QueryError::Cancelled);
        }
        (self.clock.elapsed() >= self.deadline_us).then_some(QueryError::Deadline)
    }

    /// Microseconds on the clock, for [`Stats`].
    pub(crate) fn elapsed_us(&self) -> i64 {
        self.clock.elapsed()
    }
}

impl Brief {
    /// Voids the try. The error only ends the query: nobody sees it.
    fn exceed(&self) -> QueryError {
        self.exceeded.store(true, Ordering::Relaxed);
        QueryError::Deadline
    }
}

/// The cost of a query, as reported by `explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Memory trees and segments of the snapshot.
    pub parts: u64,
    /// Those of them ruled out by their bounds alone.
    pub parts_pruned: u64,
    /// Tree nodes whose box was tested.
    pub nodes_visited: u64,
    /// Tree nodes skipped with all their events.
    pub nodes_pruned: u64,
    /// Tree nodes taken whole, without reading their events.
    pub nodes_whole: u64,
    /// Blocks read: runs of at most [`meridian_store::CHUNK_ROWS`] neighbouring events.
    pub blocks_read: u64,
    /// Bytes of the events in these blocks, at the mean event size of their part.
    pub bytes_read: u64,
    /// Blocks of 64 events at the edge of the query or of its windows. An aggregate reads these; all others are
    /// counted from the nodes above them.
    pub edge_blocks: u64,
    /// Events tested one by one.
    pub events_tested: u64,
    /// Matching events found, before any limit is applied.
    pub events_matched: u64,
    /// Microseconds spent on planning.
    pub plan_us: u64,
    /// Microseconds spent on scanning.
    pub scan_us: u64,
}

impl Stats {
    /// Every number with its name.
    pub(crate) fn numbers(&mut self) -> [(&'static str, &mut u64); 12] {
        [
            ("parts", &mut self.parts),
            ("parts_pruned", &mut self.parts_pruned),
            ("nodes_visited", &mut self.nodes_visited),
            ("nodes_pruned", &mut self.nodes_pruned),
            ("nodes_whole", &mut self.nodes_whole),
            ("blocks_read", &mut self.blocks_read),
            ("bytes_read", &mut self.bytes_read),
            ("edge_blocks", &mut self.edge_blocks),
            ("events_tested", &mut self.events_tested),
            ("events_matched", &mut self.events_matched),
            ("plan_us", &mut self.plan_us),
            ("scan_us", &mut self.scan_us),
        ]
    }

    /// Adds the cost of another part of the same query.
    pub fn merge(&mut self, other: &Stats) {
        let mut other = *other;
        for ((_, mine), (_, theirs)) in self.numbers().into_iter().zip(other.numbers()) {
            // Numbers of other partitions come over the wire, and an invalid one must not panic.
            *mine = mine.saturating_add(*theirs);
        }
    }
}
