//! Keys, sequence numbers and ids of rows, and the search for a position in the order.

use super::Scan;
use crate::error::QueryError;
use crate::matched_rows::{MatchedRows, Pick};
use meridian_index::Key;
use meridian_model::{Projection, Seq};
use std::sync::Arc;

impl Scan {
    /// The columns for keys, boxes and times.
    pub(crate) fn key_columns(&self) -> &Arc<Projection> {
        &self.key_columns
    }

    /// Sequence numbers of the given rows.
    pub(crate) fn seqs(&self, part: u32, rows: &MatchedRows) -> Result<Vec<u64>, QueryError> {
        // One read over the span: sequence numbers are one block per chunk.
        let span = rows.span();
        let all = self.part(part).seqs(span.clone())?;
        Ok(match rows {
            MatchedRows::Range(_) => all,
            MatchedRows::Rows(rows) => rows.iter().map(|r| all[(r - span.start) as usize]).collect(),
        })
    }

    /// Keys of the given rows.
    pub(crate) fn keys(&mut self, part: u32, rows: &MatchedRows) -> Result<Vec<Key>, QueryError> {
        let span = rows.span();
        // Memory trees keep their keys; those of segments are computed from the events.
        if let Some(keys) = self.part(part).keys(span.clone()) {
            return Ok(rows.iter().map(|r| keys[(r - span.start) as usize]).collect());
        }
        let columns = self.key_columns.clone();
        let batch = self.read(part, span.clone(), &columns)?;
        Ok(rows.iter().map(|r| self.grid.key(&batch.bounds((r - span.start) as usize))).collect())
    }

    /// Keys of events, in the order given.
    pub(crate) fn keys_of(&mut self, picks: &[Pick]) -> Result<Vec<Key>, QueryError> {
        let columns = self.key_columns.clone();
        let batch = self.read_picks(picks, &columns)?;
        Ok((0..picks.len()).map(|row| self.grid.key(&batch.bounds(row))).collect())
    }

    /// Key and sequence number of one row.
    pub(crate) fn place_of(&mut self, part: u32, row: u32) -> Result<(Key, Seq), QueryError> {
        let one = MatchedRows::Range(row..row + 1);
        let (keys, seqs) = (self.keys(part, &one)?, self.seqs(part, &one)?);
        match (keys.first(), seqs.first()) {
            (Some(&key), Some(&seq)) => Ok((key, Seq(seq))),
            _ => Err(meridian_model::Invalid::new("a row that was counted could not be read").into()),
        }
    }

    /// The part and row of the event with this id.
    pub(crate) fn find(&self, id: &str) -> Result<Option<(u32, u32)>, QueryError> {
        for part in self.parts() {
            if let Some(row) = self.part(part).find_id(id)? {
                return Ok(Some((part, row)));
            }
        }
        Ok(None)
    }

    /// The first row of a part after a position in the order of the collection.
    pub(crate) fn seek(&mut self, part: u32, after: (Key, Seq)) -> Result<u32, QueryError> {
        // A tree holds the rows of one size class, which is the key's highest part: only one tree needs a search.
        let class = after.0.class();
        let (mut low, mut high) = (0, 0);
        for tree in self.part(part).trees() {
            match tree.class().cmp(&class) {
                std::cmp::Ordering::Less => (low, high) = (tree.all_rows().end, tree.all_rows().end),
                std::cmp::Ordering::Equal => (low, high) = (tree.all_rows().start, tree.all_rows().end),
                std::cmp::Ordering::Greater => break,
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            // Each probe reads one row, some twenty in all, and only once per part and page.
            if self.place_of(part, middle)? <= after {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
