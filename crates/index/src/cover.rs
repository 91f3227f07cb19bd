//! Covers a range of leaves with the fewest nodes: the terms of a fold over consecutive rows.

use crate::summary::Summary;
use crate::tree::{FANOUT, LEVELS_MAX, Tree};
use std::ops::Range;

/// The fewest nodes of a tree that cover a range of its leaves, as contiguous runs: at most two per level.
#[derive(Debug, Clone, Default)]
pub struct Cover {
    runs: [Range<u32>; 2 * LEVELS_MAX],
    len: usize,
}

impl Cover {
    /// Number of nodes.
    pub fn nodes(&self) -> u64 {
        self.runs[..self.len].iter().map(|run| run.len() as u64).sum()
    }

    fn push(&mut self, level: u32, nodes: Range<u32>) {
        // At most two runs per level: one on either side of what the level above covers.
        if !nodes.is_empty() && self.len < self.runs.len() {
            self.runs[self.len] = level + nodes.start..level + nodes.end;
            self.len += 1;
        }
    }
}

impl Tree {
    /// Number of leaves.
    pub fn leaves(&self) -> u32 {
        self.levels.get(1).copied().unwrap_or(0)
    }

    /// First and last instants of the events below each leaf. Both ascend over rows in time order.
    pub fn leaf_times(&self) -> (&[i64], &[i64]) {
        let leaves = self.leaves() as usize;
        (&self.nodes.start[..leaves], &self.nodes.end[..leaves])
    }

    /// The fewest nodes that cover some leaves.
    pub fn cover(&self, leaves: Range<u32>) -> Cover {
        let mut cover = Cover::default();
        let fanout = FANOUT as u32;
        let mut nodes = leaves.start..leaves.end.min(self.leaves());
        for level in self.levels.windows(2) {
            let (first, count) = (level[0], level[1] - level[0]);
            // The last parent covers the remaining nodes, which may be fewer than a full group.
            let above = nodes.start.div_ceil(fanout)..if nodes.end == count && count > 1 {
                nodes.end.div_ceil(fanout)
            } else {
                nodes.end / fanout
            };
            if above.start >= above.end {
                cover.push(first, nodes);
                break;
            }
            cover.push(first, nodes.start..above.start * fanout);
            cover.push(first, above.end * fanout..nodes.end);
            nodes = above;
        }
        cover
    }

    /// Count, sum, min and max of a numeric field below the nodes of a cover, see [`Tree::summary`].
    pub fn summary_of(&self, cover: &Cover, ordinal: usize) -> Summary {
        let run = |run: &Range<u32>| self.nodes.summary_of(run.start as usize..run.end as usize, ordinal);
        let mut runs = cover.runs[..cover.len].iter();
        let mut total = runs.next().map_or(Summary::INT, run);
        runs.for_each(|r| total.merge(&run(r)));
        total
    }
}
