//! Averages in the cells of a tile, by partition.

use super::envelope::Kind;
use super::groups::{floats, ints, read_floats, read_ints};
use crate::averages::PartialAverages;
use crate::control::Stats;
use crate::tile::CELLS;
use crate::totals::Totals;
use crate::wire::WireError;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use meridian_model::FieldType;
use std::sync::Arc;

const KIND: Kind = Kind { name: "averages", version: 1 };
const FIELD: &str = "field";
const IS_INT: &str = "meridian.integers";

impl PartialAverages {
    /// Adds another partition's cells of the same tile.
    pub(crate) fn merge(&mut self, other: &PartialAverages) -> Result<(), WireError> {
        if std::mem::discriminant(&self.totals) != std::mem::discriminant(&other.totals) {
            return Err(KIND.malformed("integers and floats"));
        }
        for cell in 0..CELLS {
            self.counts[cell] = self.counts[cell].saturating_add(other.counts[cell]);
            self.totals.merge(cell, &other.totals, cell);
        }
        self.stats.merge(&other.stats);
        Ok(())
    }

    /// Whether a record batch declares to hold averages.
    pub(super) fn is_in(batch: &RecordBatch) -> bool {
        KIND.is_of(batch)
    }

    /// Encodes as an Arrow record batch: one row per non-empty cell.
    pub(crate) fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let held: Vec<usize> = (0..CELLS).filter(|&cell| self.counts[cell] > 0).collect();
        let mut envelope = KIND.seal(&self.stats);
        envelope.says(IS_INT, matches!(self.totals, Totals::Ints(_)));
        envelope.column("cell", Arc::new(held.iter().map(|&cell| cell as u32).collect::<UInt32Array>()));
        envelope.column("count", Arc::new(held.iter().map(|&cell| self.counts[cell]).collect::<UInt64Array>()));
        match &self.totals {
            Totals::Ints(all) => {
                ints(&mut envelope, FIELD, &held.iter().map(|&cell| all[cell]).collect::<Vec<_>>());
            }
            Totals::Floats(all) => {
                floats(&mut envelope, FIELD, &held.iter().map(|&cell| all[cell]).collect::<Vec<_>>());
            }
        }
        envelope.finish(held.len())
    }

    /// Decodes the output of [`PartialAverages::to_arrow`].
    pub(super) fn from_arrow(batch: &RecordBatch) -> Result<PartialAverages, WireError> {
        let opened = KIND.open(batch)?;
        let (kind, read) = match opened.said(IS_INT)? {
            true => (FieldType::Int, Totals::Ints(read_ints(&opened, FIELD)?)),
            false => (FieldType::Float, Totals::Floats(read_floats(&opened, FIELD)?)),
        };
        let (cells, held) = (opened.numbers::<UInt32Type>("cell")?, opened.numbers::<UInt64Type>("count")?);
        let mut all =
            PartialAverages { counts: vec![0; CELLS], totals: Totals::of_groups(kind, CELLS), stats: Stats::default() };
        for (row, (&cell, &count)) in cells.values().iter().zip(held.values()).enumerate() {
            let cell = cell as usize;
            let Some(total) = all.counts.get_mut(cell) else {
                return Err(opened.malformed(format!("cell {cell} of {CELLS}")));
            };
            *total = total.saturating_add(count);
            all.totals.merge(cell, &read, row);
        }
        all.stats = opened.stats()?;
        Ok(all)
    }
}
