//! Reads found events, in the given order.

use super::Scan;
use crate::error::QueryError;
use crate::matched_rows::Pick;
use meridian_index::LEAF_ROWS;
use meridian_model::{Batch, Projection};
use meridian_store::CHUNK_ROWS;
use std::collections::HashMap;
use std::ops::Range;

/// Max ratio of rows read to rows requested before rows are copied out one chunk at a time.
const SCATTERED: usize = 4;
/// Min rows kept in memory along with one: its column was read as one block.
const HELD_MIN: usize = 256;

impl Scan {
    /// Reads events in the given order.
    pub(crate) fn read_picks(&mut self, picks: &[Pick], columns: &Projection) -> Result<Batch, QueryError> {
        if picks.is_empty() {
            return Ok(Batch::empty(self.schema().clone()).project(columns));
        }
        // Paged columns are read leaf by leaf: joining leaves pays off only for large values.
        let mut paged = Projection::none(&self.layout);
        let chunks = picks.chunk_by(|a, b| a.part == b.part && a.row / CHUNK_ROWS == b.row / CHUNK_ROWS);
        for pick in chunks.filter_map(|chunk| chunk.first()) {
            if let Some(more) = self.part(pick.part).paged(pick.row / CHUNK_ROWS, columns) {
                paged.union(&more);
            }
        }
        let rest = self.gather(picks, &columns.without(&paged), CHUNK_ROWS)?;
        if paged.is_none() {
            return Ok(rest);
        }
        Ok(rest.joined(self.gather(picks, &paged, LEAF_ROWS as u32)?))
    }

    /// Reads events in the given order: each `grain`-sized stretch in use once, over the requested rows.
    fn gather(&mut self, picks: &[Pick], columns: &Projection, grain: u32) -> Result<Batch, QueryError> {
        let stretch_of = |pick: &Pick| (pick.part, pick.row / grain);
        let mut numbers: HashMap<(u32, u32), usize> = HashMap::new();
        let mut spans: Vec<(u32, Range<u32>)> = Vec::new();
        let mut runs = Vec::new();
        for run in picks.chunk_by(|a, b| stretch_of(a) == stretch_of(b)) {
            // Each stretch is read once, however often the result order comes back to it.
            let number = *numbers.entry(stretch_of(&run[0])).or_insert(spans.len());
            if number == spans.len() {
                spans.push((run[0].part, run[0].row..run[0].row + 1));
            }
            let (_, span) = &mut spans[number];
            for pick in run {
                *span = span.start.min(pick.row)..span.end.max(pick.row + 1);
            }
            runs.push((number, run));
        }
        // A batch may keep the whole chunk alive that it is a slice of. A few rows from many chunks, as in a sorted
        // result, are copied out at once. So one chunk is held at a time instead of all.
        let held = |span: &Range<u32>| span.len().max(HELD_MIN.min(grain as usize));
        let scattered = spans.iter().map(|(_, span)| held(span)).sum::<usize>() > SCATTERED * picks.len();
        let mut wanted: Vec<Vec<u32>> = vec![Vec::new(); spans.len()];
        let mut places = Vec::with_capacity(picks.len());
        for (number, run) in runs {
            for pick in run {
                let row = pick.row - spans[number].1.start;
                places.push((number, if scattered { wanted[number].len() } else { row as usize }));
                wanted[number].push(row);
            }
        }
        let mut batches = Vec::with_capacity(spans.len());
        for ((part, span), rows) in spans.iter().zip(&wanted) {
            let batch = self.read(*part, span.clone(), columns)?;
            batches.push(if scattered { batch.take(rows) } else { batch });
        }
        if let ([batch], [(_, span)]) = (batches.as_slice(), spans.as_slice())
            && !scattered
        {
            // The usual case of a stream: rows of one chunk, often a whole stretch.
            if batch.rows() == picks.len() && picks.is_sorted_by(|a, b| a.row < b.row) {
                return Ok(batch.clone());
            }
            return Ok(batch.take(&picks.iter().map(|pick| pick.row - span.start).collect::<Vec<_>>()));
        }
        Ok(Batch::interleave(&batches.iter().collect::<Vec<_>>(), &places)?)
    }
}
