//! The blocks that a query has read.

use meridian_model::{Batch, Projection};
use meridian_store::{CHUNK_ROWS, PartView, StoreError};

/// Blocks read for one query, so that each is looked up once.
pub struct Chunks {
    wanted: Projection,
    read: Vec<(usize, u32, Batch)>,
}

impl Chunks {
    /// An empty cache; `wanted` are the columns of all blocks.
    pub fn new(wanted: Projection) -> Chunks {
        Chunks { wanted, read: Vec::new() }
    }

    /// Rows around one row, and the first of them: all of a memory tree, a block of a segment.
    pub fn get<'a>(&'a mut self, part: usize, view: &'a PartView, row: u32) -> Result<(&'a Batch, u32), StoreError> {
        if let Some(batch) = view.at_hand() {
            return Ok((batch, 0));
        }
        let first = row - row % CHUNK_ROWS;
        // From the end: leaves come in row order, so the block read last usually has the next one too.
        let found = self.read.iter().rposition(|(p, f, _)| (*p, *f) == (part, first));
        let at = match found {
            Some(at) => at,
            None => {
                let batch = view.read(first..(first + CHUNK_ROWS).min(view.rows()), &self.wanted)?;
                self.read.push((part, first, batch));
                self.read.len() - 1
            }
        };
        Ok((&self.read[at].2, first))
    }
}
