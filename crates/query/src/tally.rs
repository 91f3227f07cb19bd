//! What a query keeps of the events in each cell of a grid.

use meridian_index::NodeRef;
use meridian_model::{Batch, Layout, Projection};

/// What is kept of the events of each cell.
pub(crate) trait Tally: Send + Sync + Sized {
    /// One for the same cells that has no events.
    fn empty(&self) -> Self;
    /// Adds the columns that [`Tally::add_rows`] reads.
    fn add_columns(&self, layout: &Layout, columns: &mut Projection);
    /// Adds the events below a node, all in one cell; `alive` of them are not deleted. False, with nothing added, if
    /// the node does not say enough of them.
    fn add_node(&mut self, cell: usize, node: &NodeRef<'_>, alive: u64) -> bool;
    /// Adds rows of a batch, each with its cell.
    fn add_rows(&mut self, batch: &Batch, placed: impl Iterator<Item = (usize, usize)>);
    /// Adds another one of the same cells.
    fn merge(&mut self, other: Self);
}

/// Counts.
impl Tally for Vec<u64> {
    fn empty(&self) -> Vec<u64> {
        vec![0; self.len()]
    }

    fn add_columns(&self, _: &Layout, _: &mut Projection) {}

    fn add_node(&mut self, cell: usize, _: &NodeRef<'_>, alive: u64) -> bool {
        self[cell] += alive;
        true
    }

    fn add_rows(&mut self, _: &Batch, placed: impl Iterator<Item = (usize, usize)>) {
        placed.for_each(|(_, cell)| self[cell] += 1);
    }

    fn merge(&mut self, other: Vec<u64>) {
        self.iter_mut().zip(other).for_each(|(count, more)| *count += more);
    }
}
