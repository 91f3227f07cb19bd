//! Lazy walks over the trees of a part. Nodes are ruled out, taken whole or descended into; the rest are runs of
//! rows, each within one chunk of the store.

use crate::control::Stats;
use crate::predicate_bounds::PredicateBounds;
use arrow_buffer::BooleanBuffer;
use meridian_index::{Node, NodeRef, Tree};
use meridian_model::filter::{Predicate, Relation};
use meridian_store::CHUNK_ROWS;
use std::ops::Range;
use std::sync::Arc;

/// The step for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Skip it: nothing below it is needed.
    Skip,
    /// Descend to its children; a leaf yields its rows. `whole`: all rows below match.
    Descend { whole: bool },
    /// Return all its rows. `whole`: all of them match.
    Rows { whole: bool },
    /// Done: its summary was sufficient.
    Taken,
}

/// Consecutive rows of one chunk to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) rows: Range<u32>,
    /// Whether all of them match the predicate (though some may be invisible).
    pub(crate) whole: bool,
}

/// The rows of one part that a query must read, found lazily and in row order.
#[derive(Debug)]
pub(crate) struct Candidates {
    trees: Vec<Tree>,
    /// The tree that `stack` belongs to; later trees have not been entered.
    tree: usize,
    stack: Vec<(Node, bool)>,
    entered: bool,
    /// Rows found but not returned yet.
    found: Option<Run>,
    /// Rows before this one are skipped.
    from: u32,
    /// Rows that may match by the pieces of long lines; `None` if there are no pieces.
    sieve: Option<Arc<BooleanBuffer>>,
    /// Box and interval of the predicate; nodes outside are ruled out.
    bounds: PredicateBounds,
    /// Alignment in rows, a power of two: a run to be tested stays within one such stretch.
    stretch: u32,
    /// The same for runs that match as a whole.
    stretch_whole: u32,
    /// Max gap in rows between two runs that are joined.
    bridged: u32,
}

/// Max rows tested needlessly to save a separate run.
const BRIDGED_ROWS: u32 = 128;

impl Candidates {
    /// All rows of these trees from `from` on.
    pub(crate) fn new(trees: Vec<Tree>, from: u32) -> Candidates {
        Candidates {
            trees,
            tree: 0,
            stack: Vec::new(),
            entered: false,
            found: None,
            from,
            sieve: None,
            bounds: PredicateBounds::default(),
            stretch: CHUNK_ROWS,
            stretch_whole: CHUNK_ROWS,
            bridged: 0,
        }
    }

    /// The same rows in runs of limited size, as [`crate::scan::Scan::stretches`] returns it.
    pub(crate) fn in_stretches(self, (stretch, stretch_whole): (u32, u32)) -> Candidates {
        Candidates { stretch, stretch_whole, ..self }
    }

    /// The same rows without those that the sieve excludes.
    pub(crate) fn sifted(self, sieve: Option<Arc<BooleanBuffer>>) -> Candidates {
        Candidates { sieve, ..self }
    }

    /// The same rows without those below nodes outside the bounds.
    pub(crate) fn within(self, bounds: PredicateBounds) -> Candidates {
        Candidates { bounds, ..self }
    }

    /// The rows below one node.
    pub(crate) fn below(tree: &Tree, node: Node, whole: bool) -> Candidates {
        Candidates {
            trees: vec![tree.clone()],
            tree: 0,
            stack: vec![(node, whole)],
            entered: true,
            found: None,
            from: 0,
            sieve: None,
            bounds: PredicateBounds::default(),
            stretch: CHUNK_ROWS,
            stretch_whole: CHUNK_ROWS,
            bridged: 0,
        }
    }

    /// The same rows in fewer runs, which may include a few excluded rows. Valid only if skipped rows are ruled out
    /// by the predicate and nothing is counted from nodes.
    pub(crate) fn bridged(self) -> Candidates {
        Candidates { bridged: BRIDGED_ROWS, ..self }
    }

    /// The next run. `step` decides about each node, given whether all rows below are known to match.
    pub(crate) fn next(&mut self, stats: &mut Stats, step: &mut dyn FnMut(&NodeRef<'_>, bool) -> Step) -> Option<Run> {
        let mut run = match self.found.take() {
            Some(found) => found,
            None => self.advance(stats, step)?,
        };
        // Consecutive leaves of one chunk become one run. Rows past the end of the chunk or stretch wait for the next
        // call.
        let end = end_of(run.rows.start, if run.whole { self.stretch_whole } else { self.stretch });
        while run.rows.end < end {
            match self.advance(stats, step) {
                // Runs are joined because each is one read and one evaluation, whose overhead exceeds the cost of a
                // few rows.
                Some(next) if next.whole == run.whole && next.rows.start <= run.rows.end + self.bridge(&run) => {
                    run.rows.end = next.rows.end;
                }
                other => {
                    self.found = other;
                    break;
                }
            }
        }
        if run.rows.end > end {
            debug_assert!(self.found.is_none());
            self.found = Some(Run { rows: end..run.rows.end, whole: run.whole });
            run.rows.end = end;
        }
        Some(run)
    }

    /// Max gap in rows between a run and the next one joined to it.
    fn bridge(&self, run: &Run) -> u32 {
        if run.whole { 0 } else { self.bridged }
    }

    /// The rows of the next node, however many.
    fn advance(&mut self, stats: &mut Stats, step: &mut dyn FnMut(&NodeRef<'_>, bool) -> Step) -> Option<Run> {
        loop {
            let tree = self.trees.get(self.tree)?;
            if !self.entered {
                self.entered = true;
                if tree.all_rows().end > self.from {
                    self.stack.extend(tree.root().map(|root| (root, false)));
                }
            }
            let Some((node, whole)) = self.stack.pop() else {
                self.tree += 1;
                self.entered = false;
                continue;
            };
            let rows = tree.rows(node);
            // A page that resumes skips whole nodes before its first row without testing them.
            if rows.end <= self.from {
                continue;
            }
            stats.nodes_visited += 1;
            let whole = match step(&tree.node_ref(node), whole) {
                Step::Skip => {
                    stats.nodes_pruned += 1;
                    continue;
                }
                Step::Taken => {
                    stats.nodes_whole += 1;
                    continue;
                }
                Step::Descend { whole: false } | Step::Rows { whole: false } if self.is_sifted_out(node, &rows) => {
                    stats.nodes_pruned += 1;
                    continue;
                }
                Step::Descend { whole } if !tree.is_leaf(node) => {
                    let children = self.bounds.touched(tree, node, whole, stats);
                    // Reversed, so that rows come out in ascending order, on which cursors and merges rely.
                    self.stack.extend(children.rev().map(|child| (child, whole)));
                    continue;
                }
                Step::Descend { whole } | Step::Rows { whole } => whole,
            };
            stats.nodes_whole += u64::from(whole);
            return Some(Run { rows: rows.start.max(self.from)..rows.end, whole });
        }
    }

    /// Whether the sieve excludes all rows below a small node.
    fn is_sifted_out(&self, node: Node, rows: &Range<u32>) -> bool {
        let none = |sieve: &BooleanBuffer| !sieve.slice(rows.start as usize, rows.len()).has_true();
        node.level() <= SIFTED_LEVEL && self.sieve.as_ref().is_some_and(|sieve| none(sieve))
    }
}

/// Max level at which nodes are tested against the sieve: 16 times 64 rows.
const SIFTED_LEVEL: u8 = 1;

/// First row after the chunk that contains a row.
pub(crate) fn chunk_end(row: u32) -> u32 {
    end_of(row, CHUNK_ROWS)
}

/// First row after the stretch of `stretch` rows that contains a row.
fn end_of(row: u32, stretch: u32) -> u32 {
    (row / stretch + 1).saturating_mul(stretch)
}

/// The step of a plain search: prune, take whole, or descend.
pub(crate) fn search_step(predicate: &Predicate, node: &NodeRef<'_>, whole: bool) -> Step {
    if whole {
        return Step::Rows { whole };
    }
    match predicate.relation(node) {
        Relation::None => Step::Skip,
        Relation::All => Step::Rows { whole: true },
        Relation::Some => Step::Descend { whole: false },
    }
}
