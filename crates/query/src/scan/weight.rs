//! The minimum that a query must read, known from the trees before it reads anything.

use super::Scan;
use crate::control::threads;
use crate::error::QueryError;
use meridian_index::Node;
use meridian_model::filter::RegionVerdict;
use std::time::Duration;

/// Max nodes visited to compute it. Nodes beyond count as nothing: the weight is a lower bound.
const NODES_MAX: usize = 512;
/// Upper bound on the events that a processor reads per second.
const EVENTS_PER_SECOND_MAX: f64 = 1e9;

/// Events that a query must read, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Weight {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// Treatment of matching events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matches {
    /// All of them are read.
    Read,
    /// Nodes that match as a whole are counted from the tree.
    Counted,
}

impl Scan {
    /// Refuses a query that cannot finish within its time, or must read more than it may. `matches` is its treatment
    /// of matching events. For queries that visit every match; others may end early.
    ///
    /// # Errors
    /// [`QueryError::TooLarge`]
    pub(crate) fn weigh(&self, matches: Matches) -> Result<(), QueryError> {
        let (limit, time) = (self.control.bytes_max(), self.control.time_left());
        // Most queries could read the whole snapshot, and need no weighing.
        if limit.is_none() && least_time(self.snapshot.rows()) <= time {
            return Ok(());
        }
        let Weight { events, bytes } = self.weight(matches);
        if limit.is_some_and(|limit| bytes > limit) {
            return Err(self.control.too_large(events, bytes));
        }
        match least_time(events) > time {
            true => Err(QueryError::TooLarge { events, bytes, limit: None }),
            false => Ok(()),
        }
    }

    pub(crate) fn weight(&self, matches: Matches) -> Weight {
        let mut weight = Weight::default();
        // The largest parts first: they may weigh most.
        let mut parts: Vec<u32> = self.parts().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(self.part(*part).rows()));
        let mut visited = 0;
        for part in parts {
            let view = self.part(part);
            for tree in view.trees() {
                let mut open: Vec<Node> = tree.root().into_iter().collect();
                while let Some(node) = open.pop() {
                    visited += 1;
                    // The weight so far is a lower bound, and a refusal may only rest on a lower bound.
                    if visited > NODES_MAX {
                        return weight;
                    }
                    let rows = tree.rows(node);
                    match self.predicate.verdict(&tree.node_ref(node)) {
                        RegionVerdict::False => {}
                        RegionVerdict::True if matches == Matches::Counted => {}
                        // Blocks with hidden rows may be omitted.
                        RegionVerdict::True | RegionVerdict::Tested if view.all_visible(rows.clone()) => {
                            weight.events += rows.len() as u64;
                            weight.bytes += rows.len() as u64 * view.event_bytes();
                        }
                        _ if tree.is_leaf(node) => {}
                        _ => open.extend(tree.children(node)),
                    }
                }
            }
        }
        weight
    }
}

/// Min time to read `events` events, with all processors, if nothing else runs.
fn least_time(events: u64) -> Duration {
    Duration::from_secs_f64(events as f64 / EVENTS_PER_SECOND_MAX / threads() as f64)
}
