//! Changes of all partitions, and the state of objects before them.

use super::{Partitioned, imported, shape};
use crate::collection::Part;
use crate::history::History;
use crate::read::{Changes, PriorEvents};
use meridian_model::{Batch, Layout, Positions, Projection, Schema, Seq, Seqs};
use meridian_store::{Problem, StoreError};
use std::sync::Arc;

/// The changes of one partition after another.
struct Chain {
    parts: Vec<Box<dyn Changes>>,
    /// Index of the partition being read.
    at: usize,
    /// Events left out before any of these.
    left_out: u64,
    missing: Vec<Problem>,
    shape: (Arc<Schema>, Arc<Layout>),
}

/// Opens the changes of each partition. `left_out`: earlier events that are left out.
pub(super) fn open(
    parts: &[Arc<dyn Part>],
    left_out: u64,
    of: impl Fn(usize, &dyn Part) -> Result<Box<dyn Changes>, StoreError>,
) -> Result<Box<dyn Changes>, StoreError> {
    let first = parts.first().ok_or(StoreError::Closed)?;
    let shape = shape(first.schema());
    let opened = parts.iter().enumerate().map(|(number, part)| of(number, &**part));
    let parts = opened.collect::<Result<Vec<_>, _>>()?;
    let missing = parts.iter().flat_map(|changes| changes.missing().to_vec()).collect();
    Ok(Box::new(Chain { parts, at: 0, left_out, missing, shape }))
}

impl Changes for Chain {
    fn read(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, StoreError> {
        let (schema, layout) = &self.shape;
        while let Some(part) = self.parts.get_mut(self.at) {
            if let Some((batch, seqs)) = part.read()? {
                return Ok(Some((batch.within(schema, layout)?, seqs)));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn upto(&self) -> Seqs {
        self.parts.iter().map(|part| part.upto().at(0)).collect()
    }

    fn left_out(&self) -> u64 {
        self.left_out + self.parts.iter().map(|part| part.left_out()).sum::<u64>()
    }

    fn missing(&self) -> &[Problem] {
        &self.missing
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    fn park(&mut self) {
        self.parts.iter_mut().for_each(|part| part.park());
    }
}

/// The previous events of objects in all partitions.
///
/// Numbers of two partitions do not tell the order of their writes. They are compared all the same, so that every
/// reader gets the same result. An object with all events in one partition has exactly those written before.
pub(super) struct PartitionedPriorEvents {
    pub(super) parts: Vec<Box<dyn PriorEvents>>,
}

impl PriorEvents for PartitionedPriorEvents {
    fn object(&self, batch: &Batch, row: usize) -> Option<u64> {
        // By the key of one partition, so that an object has a single number.
        self.parts.first()?.object(batch, row)
    }

    fn before(
        &self,
        batch: &Batch,
        row: usize,
        before: Seq,
        columns: &Projection,
    ) -> Result<Option<(Batch, Seq)>, StoreError> {
        let mut with_time = columns.clone();
        with_time.add_time(batch.layout(), batch.schema());
        let mut best: Option<(i64, Batch, Seq)> = None;
        for part in &self.parts {
            let Some((event, seq)) = part.before(batch, row, before, &with_time)? else { continue };
            let time = event.interval(0).1;
            if best.as_ref().is_none_or(|(best_time, _, best)| (*best_time, *best) < (time, seq)) {
                best = Some((time, event, seq));
            }
        }
        Ok(best.map(|(_, event, seq)| (event.project(columns), seq)))
    }
}

impl History for Partitioned {
    fn position(&self) -> Positions {
        self.vector(|part| part.position().at(0))
    }

    fn oldest(&self) -> Seqs {
        self.vector(|part| part.oldest().at(0))
    }

    fn changes_after(&self, after: &Seqs, max: usize, step_bytes: usize) -> Result<Box<dyn Changes>, StoreError> {
        let each = max.div_ceil(self.parts.len());
        imported::check_after(self.first().imported().as_ref(), after, self.parts.len())?;
        open(&self.parts, 0, |number, part| part.changes_after(&Seqs::one(after.at(number)), each, step_bytes))
    }

    fn changes_between(&self, after: &Positions, upto: &Positions, max: usize) -> Result<Box<dyn Changes>, StoreError> {
        let parts: Vec<&dyn Part> = self.parts.iter().map(|part| &**part).collect();
        let (after, left_out) = imported::pass(&parts, after)?;
        open(&self.parts, left_out, |number, part| {
            part.changes_between(&Positions::one(after.at(number)), &Positions::one(upto.at(number)), max)
        })
    }

    fn prior_events(&self) -> Box<dyn PriorEvents> {
        Box::new(PartitionedPriorEvents { parts: self.parts.iter().map(|part| part.prior_events()).collect() })
    }
}
