//! The average of a numeric field in each cell of a map tile.
//!
//! The pyramids hold counts alone, so these cells come from the nodes, and at low zoom from every event.

use crate::cells::{TileGrid, count_into};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::function::{Function, FunctionValue};
use crate::scan::Scan;
use crate::tally::Tally;
use crate::totals::Totals;
use meridian_index::NodeRef;
use meridian_model::filter::Predicate;
use meridian_model::{Batch, FieldType, Invalid, Layout, Projection};
use meridian_store::Snapshot;

/// Events of one partition by cell, and the totals of a field among them.
#[derive(Debug)]
pub struct PartialAverages {
    pub(crate) counts: Vec<u64>,
    pub(crate) totals: Totals,
    pub(crate) stats: Stats,
}

/// What a query adds up: events, and the totals of a field.
struct CellTotals {
    field: usize,
    kind: FieldType,
    /// Index of the field among the numeric ones.
    ordinal: usize,
    counts: Vec<u64>,
    totals: Totals,
}

impl PartialAverages {
    /// The averages of matching events in the cells of a tile. Leaves the cost of the query to the caller.
    pub(crate) fn of(
        snapshot: &Snapshot,
        predicate: &Predicate,
        field: usize,
        grid: &TileGrid,
        control: &Control,
        stats: &mut Stats,
    ) -> Result<PartialAverages, QueryError> {
        let schema = &snapshot.schema;
        let ordinal = schema.numeric_fields().iter().position(|&numeric| numeric == field);
        let ordinal = ordinal.ok_or_else(|| Invalid::field("avg", "an average needs a numeric property"))?;
        let kind = schema.fields[field].kind;
        let mut cells = CellTotals::of(field, kind, ordinal, 1 << (2 * grid.bits));
        let mut scan = Scan::new(snapshot, predicate, control)?;
        count_into(&mut scan, grid, &mut cells)?;
        stats.merge(&scan.stats);
        Ok(PartialAverages { counts: cells.counts, totals: cells.totals, stats: Stats::default() })
    }

    /// Number of values in a cell, and their average; `None` where there is none, or no float holds it.
    pub(crate) fn value(&self, cell: usize) -> Option<(i64, f64)> {
        let (values, average) =
            (self.totals.value(&Function::CountOf(0), cell), self.totals.value(&Function::Avg(0), cell));
        match (values, average) {
            (FunctionValue::Int(values), FunctionValue::Float(average)) => {
                Some((i64::try_from(values).unwrap_or(i64::MAX), average))
            }
            _ => None,
        }
    }
}

impl CellTotals {
    fn of(field: usize, kind: FieldType, ordinal: usize, cells: usize) -> CellTotals {
        CellTotals { field, kind, ordinal, counts: vec![0; cells], totals: Totals::of_groups(kind, cells) }
    }
}

impl Tally for CellTotals {
    fn empty(&self) -> CellTotals {
        CellTotals::of(self.field, self.kind, self.ordinal, self.counts.len())
    }

    fn add_columns(&self, layout: &Layout, columns: &mut Projection) {
        columns.add(layout.field(self.field));
    }

    fn add_node(&mut self, cell: usize, node: &NodeRef<'_>, alive: u64) -> bool {
        let summary = node.summary(self.ordinal);
        // The summary includes the values of deleted events.
        if alive != node.rows().len() as u64 || !summary.sum.is_known() {
            return false;
        }
        self.counts[cell] += alive;
        self.totals.add_all(cell as u32, &summary);
        true
    }

    fn add_rows(&mut self, batch: &Batch, placed: impl Iterator<Item = (usize, usize)>) {
        let (rows, cells): (Vec<u32>, Vec<u32>) = placed.map(|(row, cell)| (row as u32, cell as u32)).unzip();
        cells.iter().for_each(|&cell| self.counts[cell as usize] += 1);
        if let Some(column) = batch.field(self.field) {
            self.totals.add_rows(&rows, &cells, &column);
        }
    }

    fn merge(&mut self, other: CellTotals) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        (0..self.counts.len()).for_each(|cell| self.totals.merge(cell, &other.totals, cell));
    }
}
