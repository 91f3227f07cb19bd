//! The number of matching events, by partition.

use super::envelope::Kind;
use crate::control::{Control, Stats};
use crate::count::count;
use crate::error::QueryError;
use crate::wire::WireError;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, UInt64Array};
use meridian_model::filter::Predicate;
use meridian_store::Snapshot;
use std::sync::Arc;

const KIND: Kind = Kind { name: "count", version: 1 };

/// Number of matching events of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialCount {
    /// The number; `None` if counting was abandoned.
    pub total: Option<u64>,
    /// The cost of the query.
    pub stats: Stats,
}

impl PartialCount {
    /// Counts the events of a snapshot, as [`crate::count()`] does.
    pub fn of(
        snapshot: &Snapshot,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<PartialCount, QueryError> {
        let (total, stats) = count(snapshot, predicate, tested_max, control)?;
        Ok(PartialCount { total, stats })
    }

    /// Adds another partition. A total is known only if all counts are.
    pub fn merge(&mut self, other: &PartialCount) {
        self.total = self.total.zip(other.total).map(|(mine, theirs)| mine.saturating_add(theirs));
        self.stats.merge(&other.stats);
    }

    /// Encodes as an Arrow record batch of one row.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let mut envelope = KIND.seal(&self.stats);
        envelope.column("count", Arc::new(UInt64Array::from(vec![self.total])));
        envelope.finish(1)
    }

    /// Decodes the output of [`PartialCount::to_arrow`].
    pub fn from_arrow(batch: &RecordBatch) -> Result<PartialCount, WireError> {
        let opened = KIND.open(batch)?;
        let totals = opened.nullable::<UInt64Type>("count")?;
        if totals.len() != 1 {
            return Err(opened.malformed("expected one row"));
        }
        Ok(PartialCount { total: totals.iter().next().flatten(), stats: opened.stats()? })
    }
}
