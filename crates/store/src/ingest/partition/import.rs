//! Imports events that keep the numbers of another partition, for a restore that divides them.

use super::Partition;
use crate::error::StoreError;
use crate::part::dead::DeadRows;
use crate::part::{Entry, Part};
use meridian_index::{Grid, sort_order};
use meridian_model::{Batch, Seq};

impl Partition {
    /// Adds events as a memory tree. Their numbers are of positions up to that of the partition; `hidden` marks those
    /// that mode `latest` does not show. Nothing is logged: a flush makes them durable.
    pub(crate) fn import(&mut self, batch: Batch, seqs: &[u64], hidden: &[bool]) -> Result<(), StoreError> {
        let batch = self.context.widen(batch)?;
        let keys = Grid::of(&self.context.schema).keys(&batch);
        let order = sort_order(&keys, seqs);
        let sorted = |row: &u32| *row as usize;
        // Hidden from every existing snapshot: earlier ones are gone.
        let (at, mut marks) = (Seq::new(self.position, 0).0, DeadRows::default());
        for (place, _) in order.iter().enumerate().filter(|(_, row)| hidden[sorted(row)]) {
            marks.kill(place as u32, at);
        }
        let keys = order.iter().map(|row| keys[sorted(row)]).collect();
        let seqs = order.iter().map(|row| seqs[sorted(row)]).collect();
        let part = Part::of_rows(self.shared.cache.number_part(), batch.take(&order), keys, seqs)?;
        self.entries.push(Entry::of(part, DeadRows::default(), marks));
        self.publish();
        Ok(())
    }
}
