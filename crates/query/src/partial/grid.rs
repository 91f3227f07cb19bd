//! Counts on a grid of cells, by partition.

use super::envelope::Kind;
use crate::density::{DENSITY_CELLS_MAX, PartialGrid};
use crate::wire::WireError;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use std::sync::Arc;

const KIND: Kind = Kind { name: "grid", version: 1 };
const CELLS: &str = "meridian.cells";

impl PartialGrid {
    /// Adds another partition's counts on the same grid.
    pub fn merge(&mut self, other: &PartialGrid) -> Result<(), WireError> {
        if self.counts.len() != other.counts.len() {
            let detail = format!("{} cells, expected {}", other.counts.len(), self.counts.len());
            return Err(KIND.malformed(detail));
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count = count.saturating_add(*more));
        self.stats.merge(&other.stats);
        Ok(())
    }

    /// Encodes as an Arrow record batch: one row per non-empty cell.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let (cells, counts): (Vec<u32>, Vec<u64>) = held.map(|(cell, count)| (cell as u32, *count)).unzip();
        let rows = cells.len();
        let mut envelope = KIND.seal(&self.stats);
        envelope.says(CELLS, self.counts.len());
        envelope.column("cell", Arc::new(UInt32Array::from(cells)));
        envelope.column("count", Arc::new(UInt64Array::from(counts)));
        envelope.finish(rows)
    }

    /// Decodes the output of [`PartialGrid::to_arrow`] for a grid of `cells` cells.
    pub fn from_arrow(batch: &RecordBatch, cells: usize) -> Result<PartialGrid, WireError> {
        let opened = KIND.open(batch)?;
        let found: usize = opened.said(CELLS)?;
        if found != cells || cells as u64 > DENSITY_CELLS_MAX {
            return Err(opened.malformed(format!("{found} cells, expected {cells}")));
        }
        let (at, held) = (opened.numbers::<UInt32Type>("cell")?, opened.numbers::<UInt64Type>("count")?);
        let mut counts = vec![0u64; cells];
        for (&cell, &count) in at.values().iter().zip(held.values()) {
            let Some(total) = counts.get_mut(cell as usize) else {
                return Err(opened.malformed(format!("cell {cell} of {cells}")));
            };
            *total = total.saturating_add(count);
        }
        Ok(PartialGrid { counts, stats: opened.stats()? })
    }
}
