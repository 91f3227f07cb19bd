//! Nodes waiting to be opened, best first.

use crate::cursor::{SortValue, compare};
use meridian_index::Node;
use std::cmp::Ordering;

/// A node waiting to be opened.
#[derive(Clone)]
pub(super) struct PendingNode {
    /// The result of [`Sorter::best_of`](super::Sorter::best_of).
    pub(super) best: Option<SortValue>,
    pub(super) descending: bool,
    pub(super) part: u32,
    pub(super) tree: usize,
    pub(super) node: Node,
    pub(super) whole: bool,
}

impl PendingNode {
    /// Best first; ties in row order.
    fn order(&self, other: &PendingNode) -> Ordering {
        let best = match (&self.best, &other.best) {
            (Some(a), Some(b)) => compare(a, b, self.descending),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        // Ties follow a fixed order, so the same query costs the same on every run.
        best.then_with(|| (self.part, self.tree).cmp(&(other.part, other.tree)))
            .then_with(|| self.node.cmp(&other.node))
    }
}

impl Ord for PendingNode {
    fn cmp(&self, other: &Self) -> Ordering {
        other.order(self)
    }
}

impl PartialOrd for PendingNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PendingNode {}
