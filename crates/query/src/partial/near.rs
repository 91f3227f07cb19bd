//! Places in a circle, by partition: their number, and the nearest of them.

use super::envelope::Kind;
use super::rows::PartialRows;
use crate::control::Stats;
use crate::cursor::Cursor;
use crate::items::{Hits, Order};
use crate::near::{Circle, Walk};
use crate::wire::WireError;
use arrow_array::RecordBatch;
use meridian_model::{Batch, Invalid, Projection, Schema, Seq};
use meridian_store::{Snapshot, StoreError};
use std::sync::Arc;

const KIND: Kind = Kind { name: "near", version: 1 };
const TOTAL: &str = "meridian.total";
/// By distance, from an arbitrary centre: only the type of the cursors matters.
const ORDER: Order = Order::Near { lon: 0.0, lat: 0.0, k: None };

/// The places of one partition in a circle.
#[derive(Debug, Clone)]
pub struct PartialNear {
    /// The number of places in it.
    pub total: u64,
    /// The nearest of them, by distance and then by sequence number.
    pub rows: PartialRows,
}

impl PartialNear {
    /// The places of a snapshot: their number, and the `k` nearest with the requested columns.
    pub fn of(snapshot: &Snapshot, circle: Circle, k: usize, columns: &Projection) -> Result<PartialNear, StoreError> {
        let snapshot = &snapshot.open_within(&circle.bounds())?;
        let (total, hits) = Walk::new(snapshot, circle).finish(snapshot, k)?;
        snapshot.load(&hits.iter().map(|hit| (hit.part, hit.row..hit.row + 1)).collect::<Vec<_>>(), columns);
        let mut batches = vec![Batch::empty(snapshot.schema.clone()).project(columns)];
        let mut cursors = Vec::with_capacity(hits.len());
        for hit in hits {
            let view = &snapshot.parts[hit.part];
            batches.push(view.read(hit.row..hit.row + 1, columns)?.project(columns));
            let seq = view.seqs(hit.row..hit.row + 1)?.first().copied().map_or(Seq(0), Seq);
            cursors.push(Cursor::Near { distance_m: hit.distance_m, seq, given: 0 });
        }
        Ok(PartialNear { total, rows: PartialRows { batch: Batch::concat(&batches)?, cursors } })
    }

    /// Adds the places of another partition, and keeps the `k` nearest.
    pub fn merge(&mut self, other: PartialNear, k: usize) -> Result<(), Invalid> {
        self.total = self.total.saturating_add(other.total);
        let mine = std::mem::take(&mut self.rows.cursors).into_iter().enumerate();
        let theirs = other.rows.cursors.into_iter().enumerate();
        let all = mine.map(|(row, cursor)| (cursor, (0, row))).chain(theirs.map(|(row, cursor)| (cursor, (1, row))));
        let mut all: Vec<(Cursor, (usize, usize))> = all.collect();
        all.sort_by(|a, b| a.0.compare(&b.0, 0).then(a.1.cmp(&b.1)));
        all.truncate(k);
        let (cursors, picks): (Vec<Cursor>, Vec<(usize, usize)>) = all.into_iter().unzip();
        let batch = Batch::interleave(&[&self.rows.batch, &other.rows.batch], &picks)?;
        self.rows = PartialRows { batch, cursors };
        Ok(())
    }

    /// Finishes the result: the number of places in the circle, and the nearest.
    pub fn finish(self) -> (u64, Hits) {
        let distance = |cursor: &Cursor| if let Cursor::Near { distance_m, .. } = cursor { *distance_m } else { 0.0 };
        let PartialRows { batch, cursors } = self.rows;
        let distances = Some(cursors.iter().map(distance).collect());
        (self.total, Hits { batch, seqs: cursors.iter().map(Cursor::seq).collect(), distances })
    }

    /// Encodes as an Arrow record batch: one row for each of the nearest places.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let mut envelope = KIND.seal(&Stats::default());
        envelope.says(TOTAL, self.total);
        self.rows.write(&mut envelope, &ORDER)?;
        envelope.finish(self.rows.cursors.len())
    }

    /// Decodes the output of [`PartialNear::to_arrow`] for events of a schema.
    pub fn from_arrow(batch: &RecordBatch, schema: &Arc<Schema>) -> Result<PartialNear, WireError> {
        let opened = KIND.open(batch)?;
        Ok(PartialNear { total: opened.said(TOTAL)?, rows: PartialRows::read(&opened, &ORDER, schema)? })
    }
}
