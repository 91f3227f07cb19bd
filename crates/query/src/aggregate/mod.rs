//! Counts, sums, averages and extremes, by time window and by field.
//!
//! A node whose events all match, all lie in one window and all have one value of the `by` field is taken from its
//! summary. Its events are not read. All other nodes are descended into, down to rows. If a part also keeps its
//! events in time order, and the query concerns only time and numbers, that order is walked. Its leaves are thin
//! slices of time, so the edge of a window cuts few of them. If the query concerns only time, no walk is needed: a
//! window is a contiguous range of that order ([`Timeline`](timeline::Timeline)). A query for one box over
//! points compares plain numbers ([`SpaceTimeWalk`](space_time::SpaceTimeWalk)).
//!
//! An event of an interval counts in the window of its start. Events with an open start count in a group without a
//! window, which comes last.

mod gaps;
mod groups;
mod question;
mod space_time;
mod timeline;
mod worker;

pub(crate) use groups::Groups;
pub use groups::TOTALS_MAX;
pub use question::{Aggregate, Aggregated, BY_FIELDS_MAX, Group};

use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::event_list::find_ids;
use crate::parallel::{slices, work};
use crate::scan::{Matches, Scan};
use meridian_store::Snapshot;
use worker::Worker;

/// The groups of one partition with their running totals: nothing is divided or omitted yet.
pub struct PartialGroups {
    pub(crate) groups: Groups,
    pub(crate) stats: Stats,
}

/// Runs an aggregate over the events of a snapshot.
pub fn aggregate(snapshot: &Snapshot, question: &Aggregate, control: &Control) -> Result<Aggregated, QueryError> {
    PartialGroups::of(snapshot, question, control)?.finish(question, control)
}

impl PartialGroups {
    /// The groups of the events of a snapshot.
    pub fn of(snapshot: &Snapshot, question: &Aggregate, control: &Control) -> Result<PartialGroups, QueryError> {
        PartialGroups::in_slices(slices(snapshot.rows()), snapshot, question, control)
    }

    /// The same with a given number of slices.
    pub(crate) fn in_slices(
        slices: usize,
        snapshot: &Snapshot,
        question: &Aggregate,
        control: &Control,
    ) -> Result<PartialGroups, QueryError> {
        let started = control.elapsed_us();
        control.check()?;
        let mut scan = Scan::new(snapshot, &question.predicate, control)?;
        let reads_values = !question.sketches().is_empty();
        if !reads_values {
            scan.expect_counts();
        }
        let mut worker = Worker::new(&mut scan, question)?;
        let planned = control.elapsed_us();
        scan.stats.plan_us = (planned - started).max(0) as u64;
        match question.predicate.ids() {
            Some(ids) => {
                for (part, run) in find_ids(&mut scan, &ids)? {
                    worker.run(&mut scan, part, &run)?;
                }
            }
            None => {
                // Aggregates over fields summarised by the tree need no matching events to be read.
                scan.weigh(if reads_values { Matches::Read } else { Matches::Counted })?;
                let mut tasks = Vec::new();
                // Computed for each part before the threads start, which then share it without a lock.
                let mut dead = Vec::new();
                if worker.reads_time_order() {
                    scan.snapshot.load_time_trees();
                }
                for part in scan.parts() {
                    dead.push(worker.plan(&mut scan, part, &mut tasks)?);
                }
                let parts = work(
                    &mut scan,
                    &tasks,
                    slices,
                    |scan| Worker::new(scan, question),
                    |worker, scan, task| match worker {
                        Ok(worker) => worker.task(scan, task, &dead[task.part as usize]),
                        Err(invalid) => Err(invalid.clone().into()),
                    },
                )?;
                for part in parts {
                    worker.groups.merge(part?.groups)?;
                }
            }
        }
        scan.stats.scan_us = (control.elapsed_us() - planned).max(0) as u64;
        Ok(PartialGroups { groups: worker.groups, stats: scan.stats })
    }

    /// The cost of the query.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Finishes the result: groups in order, with the value of each function, and empty windows if requested.
    pub fn finish(self, question: &Aggregate, control: &Control) -> Result<Aggregated, QueryError> {
        let started = control.elapsed_us();
        let mut stats = self.stats;
        let groups = self.groups.finish(question, control)?;
        stats.scan_us += (control.elapsed_us() - started).max(0) as u64;
        Ok(Aggregated { groups, stats })
    }
}
