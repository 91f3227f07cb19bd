//! Reads ahead of a query, for segments in a bucket: determines the bytes to fetch before it requests them one block at
//! a time.

use super::open::Segment;
use super::read::ROWS_BLOCK;
use crate::error::StoreError;
use crate::part::cache::BlockKey;
use crate::part::rows::CHUNK_ROWS;
use crate::seams::{Objects, ReadHint};
use meridian_model::Projection;
use std::ops::Range;

impl Segment {
    pub(crate) fn objects(&self) -> &dyn Objects {
        self.place.objects.as_ref()
    }

    /// Returns true if its files are read from a bucket. Rows that are only archived are not read ahead.
    pub(crate) fn reads_slowly(&self) -> bool {
        self.index.ahead(0..0).is_some()
    }

    /// Returns the blocks of columns and sequence numbers of some rows that are not in memory.
    pub(crate) fn rows_ahead(&self, rows: &Range<u32>, columns: &Projection) -> Vec<ReadHint> {
        let mut ahead = Vec::new();
        let Some(file) = self.rows.load_full().filter(|_| !rows.is_empty()) else { return ahead };
        let seqs = usize::from(self.footer.columns);
        let wanted = columns.columns().filter(|column| *column < seqs).chain([seqs]);
        let chunks = rows.start / CHUNK_ROWS..=(rows.end - 1) / CHUNK_ROWS;
        for (column, chunk) in wanted.flat_map(|column| chunks.clone().map(move |chunk| (column, chunk))) {
            let first = chunk * CHUNK_ROWS;
            let within = rows.start.max(first) - first..rows.end.min(first + CHUNK_ROWS) - first;
            for block in file.blocks_of(chunk, column, within) {
                if !self.holds(ROWS_BLOCK | block) {
                    ahead.extend(file.block_ahead(block));
                }
            }
        }
        ahead
    }

    /// Prefetches everything that a read of some rows needs, concurrently.
    pub(crate) fn load_rows(&self, rows: &Range<u32>, columns: &Projection) {
        self.load(|| self.rows_ahead(rows, columns));
    }

    /// Does the same for some places of the order of time.
    pub(crate) fn load_places(&self, places: &Range<u32>, columns: &Projection) {
        self.load(|| self.places_ahead(places, columns));
    }

    fn load(&self, ahead: impl FnOnce() -> Vec<ReadHint>) {
        if self.reads_slowly() {
            let ahead = ahead();
            // A single block needs no prefetch.
            if ahead.len() > 1 {
                self.objects().load(&ahead);
            }
        }
    }

    /// Returns the blocks of columns at some places of the order of time, and of their rows.
    fn places_ahead(&self, places: &Range<u32>, columns: &Projection) -> Vec<ReadHint> {
        let Some(time) = self.footer.time.as_ref().filter(|_| !places.is_empty()) else { return Vec::new() };
        let width = time.columns.len() as u32 + 1;
        let held = time.columns.iter().map(|column| columns.has(usize::from(*column))).chain([true]);
        let wanted: Vec<u32> = (0..width).zip(held).filter(|(_, wanted)| *wanted).map(|(column, _)| column).collect();
        let chunks = places.start / CHUNK_ROWS..=(places.end - 1) / CHUNK_ROWS;
        let blocks = chunks.flat_map(|chunk| wanted.iter().map(move |column| chunk * width + column));
        blocks.filter_map(|block| self.block_ahead(time.first_block + block)).collect()
    }

    /// Returns the bytes of the tree over the order of time, to be read ahead.
    pub(crate) fn time_trees_ahead(&self) -> Option<ReadHint> {
        self.block_ahead(self.footer.time.as_ref()?.forest_block)
    }

    /// Returns the bytes of the counts per map cell, to be read ahead.
    pub(crate) fn pyramid_ahead(&self) -> Option<ReadHint> {
        self.block_ahead(self.footer.pyramid_block?)
    }

    /// Returns the bytes of the filter of keys, to be read ahead.
    pub(crate) fn filter_ahead(&self) -> Option<ReadHint> {
        self.block_ahead(self.footer.filter_block?)
    }

    /// Returns the pages of keys that a lookup of a key reads, if the filter lets it pass.
    pub(crate) fn key_pages_ahead(&self, key: u64) -> Result<Vec<ReadHint>, StoreError> {
        if self.filter()?.is_some_and(|filter| !filter.may_hold(key)) {
            return Ok(Vec::new());
        }
        let pages = self.key_pages(key).map(|page| self.footer.first_key_block + page);
        Ok(pages.filter_map(|block| self.block_ahead(block)).collect())
    }

    /// Returns a block of the index, if it is not in memory.
    fn block_ahead(&self, block: u32) -> Option<ReadHint> {
        let place = self.footer.blocks.get(block as usize).filter(|_| !self.holds(block))?;
        self.index.block_ahead(place)
    }

    fn holds(&self, block: u32) -> bool {
        self.place.cache.holds(BlockKey { part: self.number, block })
    }
}
