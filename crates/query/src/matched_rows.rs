//! Matches: rows of one part, and single events of any part.

use meridian_model::{Batch, Seq};
use std::ops::Range;

/// Matching rows of one part, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MatchedRows {
    /// All rows of a range.
    Range(Range<u32>),
    /// These rows.
    Rows(Vec<u32>),
}

impl MatchedRows {
    pub(crate) fn len(&self) -> usize {
        match self {
            MatchedRows::Range(rows) => rows.len(),
            MatchedRows::Rows(rows) => rows.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First row and the row after the last; only for non-empty sets.
    pub(crate) fn span(&self) -> Range<u32> {
        match self {
            MatchedRows::Range(rows) => rows.clone(),
            MatchedRows::Rows(rows) => rows.first().copied().unwrap_or(0)..rows.last().map_or(0, |r| r + 1),
        }
    }

    pub(crate) fn get(&self, i: usize) -> u32 {
        match self {
            MatchedRows::Range(rows) => rows.start + i as u32,
            MatchedRows::Rows(rows) => rows[i],
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Only the given rows of `batch`, which holds the rows from `first` on.
    pub(crate) fn select(&self, batch: &Batch, first: u32) -> Batch {
        match self {
            MatchedRows::Range(rows) => batch.slice((rows.start - first) as usize, rows.len()),
            MatchedRows::Rows(rows) => batch.take(&rows.iter().map(|r| r - first).collect::<Vec<_>>()),
        }
    }
}

/// A found event: its part and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) part: u32,
    pub(crate) row: u32,
    pub(crate) seq: Seq,
}
