//! Memory trees: sorted runs of events in memory.

use crate::error::StoreError;
use crate::keys::{Filter, KeyRows};
use crate::part::{Body, KeyRule, Part};
use meridian_index::{ForestBuilder, Key};
use meridian_model::{Batch, IdRole, Invalid, Seq};
use std::sync::OnceLock;

/// From this many rows on a run keeps a filter before its sorted keys.
const FILTER_ROWS_MIN: usize = 1024;

/// The content of a memory tree.
#[derive(Debug)]
pub(crate) struct Run {
    /// All columns, in order of (key, seq).
    pub(crate) batch: Batch,
    pub(crate) keys: Vec<Key>,
    pub(crate) seqs: Vec<u64>,
    /// Bytes of the columns, keys and numbers, and what the index will take.
    pub(crate) bytes: u64,
    /// Made at the first question.
    index: OnceLock<RunIndex>,
}

#[derive(Debug)]
pub(crate) struct RunIndex {
    filter: Option<Filter>,
    rows: KeyRows,
}

impl RunIndex {
    pub(crate) fn rows_of(&self, key: u64) -> Vec<u32> {
        if self.filter.as_ref().is_some_and(|f| !f.may_hold(key)) {
            return Vec::new();
        }
        self.rows.rows_of(key).to_vec()
    }
}

impl Run {
    /// The keys of the rows, for finding events by id.
    pub(crate) fn index(&self, rule: KeyRule) -> &RunIndex {
        self.index.get_or_init(|| {
            let rows = match (rule.role, self.batch.ids()) {
                (IdRole::Given, Some(ids)) => {
                    KeyRows::of(ids.iter().map(|id| crate::keys::hash(rule.seed, id.unwrap_or("").as_bytes())))
                }
                _ => KeyRows::of(self.seqs.iter().copied()),
            };
            let filter = (rule.role == IdRole::Given && rows.keys.len() >= FILTER_ROWS_MIN)
                .then(|| Filter::of(rows.keys.iter().copied()));
            RunIndex { filter, rows }
        })
    }
}

/// A memory tree of rows that are in order of (key, seq) already.
pub(crate) fn build(number: u64, batch: Batch, keys: Vec<Key>, seqs: Vec<u64>) -> Result<Part, StoreError> {
    let mut builder = ForestBuilder::new(batch.schema());
    builder.push(&batch, &keys).map_err(|e| Invalid::new(e.to_string()))?;
    let forest = builder.finish();
    let rows = batch.rows() as u32;
    // The index takes some 14 bytes a row, the filter included.
    let bytes = batch.bytes() as u64 + u64::from(rows) * (16 + 8 + 14);
    Ok(Part {
        number,
        rows,
        forest,
        chunk_seq_max: Part::chunk_seq_maxima(&seqs),
        seq_min: seqs.iter().copied().min().unwrap_or(u64::MAX),
        seq_max: seqs.iter().copied().max().unwrap_or(0),
        body: Body::Run(Run { batch, keys, seqs, bytes, index: OnceLock::new() }),
    })
}

/// The numbers of a batch's events.
pub(crate) fn seqs_of(position: u64, rows: usize) -> impl Iterator<Item = u64> {
    (0..rows).map(move |ordinal| Seq::new(position, ordinal).0)
}
