//! The cost of a request by stage: one measurement for its `Server-Timing`, the log of slow requests and its spans.

use crate::span::Span;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Defines an enumeration whose values have names.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$what:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type { $($(#[$what])* $variant,)* }

        impl $type {
            /// All values, in order.
            pub const ALL: [$type; [$($type::$variant),*].len()] = [$($type::$variant),*];

            /// Returns its name in logs and traces.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}

named! {
    /// A stage of a request.
    Stage {
        /// Its body arrives.
        Body "body",
        /// It waits for a permit.
        Admission "admission",
        /// A query was begun on the thread that read its request, and took too long there: it was begun again.
        VoidTry "void_try",
        /// Its body is parsed into events.
        Parse "parse",
        /// A query decides what to read.
        Plan "plan",
        /// A query reads and tests events.
        Scan "scan",
        /// The response is encoded.
        Encode "encode",
        /// A write waits until it is durable and visible.
        Commit "commit",
        /// The log is synced to disk: part of the `commit` of the write that leads its group.
        Sync "sync",
        /// The events are indexed and become visible: part of `commit`, as above.
        Apply "apply",
        /// The client reads the response.
        Send "send",
    }
}

named! {
    /// What a query visits and reads.
    Count {
        /// Memory trees and segments of the snapshot.
        Parts "parts",
        /// Parts excluded by their bounds.
        PartsPruned "parts_pruned",
        /// Tree nodes whose box was tested.
        NodesVisited "nodes_visited",
        /// Tree nodes skipped.
        NodesPruned "nodes_pruned",
        /// Tree nodes taken whole.
        NodesWhole "nodes_whole",
        /// Blocks read.
        BlocksRead "blocks_read",
        /// Bytes of events read.
        BytesRead "bytes_read",
        /// Events tested one by one.
        EventsTested "events_tested",
        /// Events that matched.
        EventsMatched "events_matched",
    }
}

/// Nanoseconds since some fixed moment; monotonic.
pub type Stopwatch = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The cost of a request so far. All work for the request adds to it.
pub struct Work {
    stopwatch: Stopwatch,
    /// Nanoseconds, indexed by [`Stage`].
    stages: [AtomicU64; Stage::ALL.len()],
    counts: [AtomicU64; Count::ALL.len()],
    notes: Mutex<Vec<String>>,
}

/// The cost of a request at one moment.
#[derive(Debug)]
pub(crate) struct WorkMark {
    at: u64,
    stages: [u64; Stage::ALL.len()],
    counts: [u64; Count::ALL.len()],
}

/// Max notes of a request.
const NOTES_MAX: usize = 64;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("stages", &self.stages).field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Work {
    /// Creates an empty measurement.
    pub fn new(stopwatch: Stopwatch) -> Work {
        Work { stopwatch, stages: Default::default(), counts: Default::default(), notes: Mutex::default() }
    }

    /// Adds a note to the log line of a slow request, unless there are too many.
    pub fn note(&self, line: impl FnOnce() -> String) {
        // A panic elsewhere leaves whole notes behind, so a poisoned lock is no reason to lose them.
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.push(line());
        }
    }

    /// Returns the notes so far, in order.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the time of a stage; `None` if it did not happen.
    pub fn took(&self, stage: Stage) -> Option<Duration> {
        let nanos = self.stages[stage as usize].load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// Adds time to a stage.
    pub fn add(&self, stage: Stage, nanos: u64) {
        // Never 0, which marks a stage that did not happen.
        self.stages[stage as usize].fetch_add(nanos.max(1), Ordering::Relaxed);
    }

    /// Returns a count.
    pub fn count(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Relaxed)
    }

    /// Remembers the cost so far.
    pub(crate) fn mark(&self) -> WorkMark {
        let load = |cost: &AtomicU64| cost.load(Ordering::Relaxed);
        WorkMark { at: self.now(), stages: self.stages.each_ref().map(load), counts: self.counts.each_ref().map(load) }
    }

    /// Attributes all time since a mark to one stage, and forgets what was counted: the work is done again. Nothing else
    /// of the request may run meanwhile.
    pub(crate) fn void_since(&self, mark: &WorkMark, stage: Stage) {
        let restore = |(cost, before): (&AtomicU64, &u64)| cost.store(*before, Ordering::Relaxed);
        self.stages.iter().zip(&mark.stages).for_each(restore);
        self.counts.iter().zip(&mark.counts).for_each(restore);
        self.add(stage, self.now().saturating_sub(mark.at));
    }

    fn now(&self) -> u64 {
        (self.stopwatch)()
    }
}

/// A stage of the current work, measured until dropped.
#[derive(Debug)]
pub struct StageTimer {
    /// Its span.
    pub span: Span,
    stage: Stage,
    began: Option<(Arc<Work>, u64)>,
}

impl StageTimer {
    /// Begins a stage of work, measured if there is a cost to add to.
    pub(crate) fn begin(stage: Stage, work: Option<&Arc<Work>>, span: impl FnOnce() -> Span) -> StageTimer {
        // The clock is not read for work that is not measured.
        let began = work.map(|work| (work.clone(), work.now()));
        StageTimer { span: span(), stage, began }
    }

    /// Adds to the counts of the work.
    pub fn count(&mut self, counts: &[(Count, u64)]) {
        for (count, n) in counts {
            if let Some((work, _)) = &self.began {
                work.counts[*count as usize].fetch_add(*n, Ordering::Relaxed);
            }
            self.span.set(count.name(), *n);
        }
    }

    /// Attributes the first `nanos` nanoseconds to another stage.
    pub fn split_off(&mut self, first: Stage, nanos: u64) {
        if let Some((work, began)) = &mut self.began {
            work.add(first, nanos);
            // The rest starts from there, so that no time is counted twice.
            *began += nanos;
        }
        self.span.split_off(first.name(), nanos);
    }
}

impl Drop for StageTimer {
    fn drop(&mut self) {
        if let Some((work, began)) = self.began.take() {
            work.add(self.stage, work.now().saturating_sub(began));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WorkContext, stage, try_once};

    #[test]
    fn stages_add_up_and_counts_too() {
        let at = Arc::new(AtomicU64::new(0));
        let clock = at.clone();
        let work = Arc::new(Work::new(Arc::new(move || clock.load(Ordering::Relaxed))));
        let pass = |nanos| at.fetch_add(nanos, Ordering::Relaxed);
        WorkContext { work: Some(work.clone()), ..WorkContext::default() }.run(|| {
            for _ in 0..2 {
                let mut scan = stage(Stage::Scan);
                pass(30);
                scan.split_off(Stage::Plan, 10);
                scan.count(&[(Count::BytesRead, 7)]);
            }
            drop(stage(Stage::Encode));
        });
        let took = |stage| work.took(stage).map(|took| took.as_nanos());
        assert_eq!((took(Stage::Plan), took(Stage::Scan), work.count(Count::BytesRead)), (Some(20), Some(40), 14));
        assert_eq!((took(Stage::Encode), took(Stage::Commit)), (Some(1), None));
        drop(stage(Stage::Commit));
        assert_eq!(took(Stage::Commit), None, "not a part of this work");
    }

    #[test]
    fn work_that_is_void_counts_as_one_stage() {
        let at = Arc::new(AtomicU64::new(0));
        let clock = at.clone();
        let work = Arc::new(Work::new(Arc::new(move || clock.load(Ordering::Relaxed))));
        let scan = || {
            let mut scan = stage(Stage::Scan);
            at.fetch_add(30, Ordering::Relaxed);
            scan.count(&[(Count::BytesRead, 7)]);
        };
        let took = |stage| work.took(stage).map(|took| took.as_nanos());
        WorkContext { work: Some(work.clone()), ..WorkContext::default() }.run(|| {
            scan();
            try_once(scan, |()| true);
            assert_eq!(
                (took(Stage::VoidTry), took(Stage::Scan), work.count(Count::BytesRead)),
                (Some(30), Some(30), 7)
            );
            try_once(scan, |()| false);
        });
        assert_eq!((took(Stage::VoidTry), took(Stage::Scan), work.count(Count::BytesRead)), (Some(30), Some(60), 14));
    }
}
