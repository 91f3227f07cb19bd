//! Reads a segment: columns, keys, objects and the order of time, block by block.

use super::rows::RowsFile;
use crate::error::StoreError;
use crate::part::cache::{Block, BlockKey};
use crate::part::ipc;
use crate::part::keys::{Filter, KeyRows};
use crate::part::objects::ObjectRows;
use crate::part::rows::{CHUNK_ROWS, CacheFill, join};
use crate::waits;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array};
use arrow_buffer::Buffer;
use arrow_schema::Field;
use meridian_index::{CountPyramid, Forest};
use meridian_model::{Layout, Projection, memory_of};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::open::{Segment, forest_of};
/// Flag in the number of a cached block of Arrow rows, which is not a block of the index.
pub(super) const ROWS_BLOCK: u32 = 1 << 31;
/// Flag in the number of a cached column of a chunk of the archive.
const ARCHIVE_BLOCK: u32 = 1 << 30;

impl Segment {
    pub(crate) fn has_time_order(&self) -> bool {
        self.footer.time.is_some()
    }

    /// Returns the tree over the order of time. Unlike the trees over the rows, not every query reads it, so it is not
    /// kept in memory with the segment.
    pub(crate) fn time_forest(&self) -> Result<Arc<Forest>, StoreError> {
        let block = self.footer.time.as_ref().ok_or_else(|| self.corrupt("it has no order of time"))?.forest_block;
        let found = self.block(block, "the tree over the order of time", |bytes| {
            forest_of(&bytes, self.footer.rows).map(|forest| Block::Forest(Arc::new(forest)))
        })?;
        match found {
            Block::Forest(forest) => Ok(forest),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    pub(crate) fn column(
        &self,
        column: usize,
        rows: Range<u32>,
        fill: CacheFill,
    ) -> Result<Option<ArrayRef>, StoreError> {
        if column >= usize::from(self.footer.columns) {
            return Ok(None);
        }
        self.values(column, &self.layout.columns[column], rows, fill).map(Some)
    }

    pub(crate) fn seqs(&self, rows: Range<u32>) -> Result<Vec<u64>, StoreError> {
        let array = self.values(usize::from(self.footer.columns), &self.seq_field, rows, CacheFill::Keep)?;
        Ok(array.as_primitive_opt::<UInt64Type>().map_or_else(Vec::new, |a| a.values().to_vec()))
    }

    /// Returns the number of rows read at a time of one column of one chunk.
    pub(crate) fn page_rows(&self, chunk: u32, column: usize) -> u32 {
        self.rows.load().as_ref().map_or(CHUNK_ROWS, |rows| rows.page_rows(chunk, column))
    }

    /// Returns the min of [`Self::page_rows`] over all chunks.
    pub(crate) fn page_rows_min(&self, column: usize) -> u32 {
        self.rows.load().as_ref().map_or(CHUNK_ROWS, |rows| rows.page_rows_min(column))
    }

    /// Returns the bytes of the Arrow rows of a chunk when read; 0 if they are only archived.
    pub(crate) fn chunk_bytes(&self, chunk: u32) -> u64 {
        self.rows.load().as_ref().map_or(0, |rows| rows.chunk_bytes(chunk))
    }

    /// Returns the values of a column of rows; the column after the last is that of the sequence numbers.
    fn values(
        &self,
        column: usize,
        field: &Arc<Field>,
        rows: Range<u32>,
        fill: CacheFill,
    ) -> Result<ArrayRef, StoreError> {
        if rows.is_empty() {
            return Ok(arrow_array::new_empty_array(field.data_type()));
        }
        let mut pieces = Vec::new();
        let mut at = rows.start;
        while at < rows.end {
            let (first, array) = self.piece(at, column, field, fill)?;
            let (from, to) = (at - first, rows.end.min(first + array.len() as u32) - first);
            if to <= from {
                // Without this check a short block would loop forever.
                return Err(self.corrupt("a block of rows is too short"));
            }
            let whole = from == 0 && to as usize == array.len();
            pieces.push(if whole { array } else { array.slice(from as usize, (to - from) as usize) });
            at = first + to;
        }
        join(pieces).map_err(|e| self.corrupt(&e))
    }

    /// Returns the block that holds a row, and its first row: a page of the Arrow rows, or a chunk of the archive.
    fn piece(
        &self,
        row: u32,
        column: usize,
        field: &Arc<Field>,
        fill: CacheFill,
    ) -> Result<(u32, ArrayRef), StoreError> {
        let chunk = row / CHUNK_ROWS;
        // Arrow rows if there are any: reading a block takes a tenth of the time of an archive page.
        if let Some(rows) = self.rows.load_full() {
            let page_rows = rows.page_rows(chunk, column);
            let (first, page) = (row / page_rows * page_rows, row % CHUNK_ROWS / page_rows);
            // Damage to this copy only costs speed: the archive has the same rows.
            match self.page(&rows, rows.block_of(chunk, column, page), field, fill) {
                Ok(array) if array.len() == page_rows.min(self.footer.rows - first) as usize => {
                    return Ok((first, array));
                }
                Ok(_) => return Err(self.corrupt("a block of rows has another length")),
                // Or they are gone: the owner of a collection that is followed here removes them to save space.
                Err(e) if e.is_damage() && self.archive.load().is_some() => {
                    tracing::warn!(error = %e, "Arrow rows do not read: they are read from GeoParquet from now on");
                    // Dropped for all readers: each further read would meet the same damage.
                    self.drop_rows();
                }
                Err(e) => return Err(e),
            }
        }
        Ok((chunk * CHUNK_ROWS, self.archived_chunk(chunk, column, field, fill)?))
    }

    /// Returns one block of the Arrow rows.
    fn page(&self, rows: &RowsFile, block: u32, field: &Arc<Field>, fill: CacheFill) -> Result<ArrayRef, StoreError> {
        let key = BlockKey { part: self.number, block: ROWS_BLOCK | block };
        if let Some(found) = self.cached(key) {
            return Ok(found);
        }
        waits::check()?;
        // Only reads that reach the disk count: rows served from the cache do not need their file.
        self.used.store(self.place.cache.tick(), Ordering::Relaxed);
        let (array, bytes) = rows.values(block, field)?;
        if array.data_type() != field.data_type() {
            // The checksum proves the bytes, not that they belong to this column.
            return Err(self.corrupt("a block of rows has another type"));
        }
        self.place.counters.add_bytes_read(bytes);
        // A merge reads every block once: caching them would evict what queries use.
        if fill == CacheFill::Keep {
            self.place.cache.insert(key, Block::Array(array.clone()));
        }
        Ok(array)
    }

    fn cached(&self, key: BlockKey) -> Option<ArrayRef> {
        match self.place.cache.get(key) {
            Some(Block::Array(found)) => {
                self.place.counters.add_cache_hits(1);
                Some(found)
            }
            _ => {
                self.place.counters.add_cache_misses(1);
                None
            }
        }
    }

    /// Returns one column of one chunk of the archive.
    fn archived_chunk(
        &self,
        chunk: u32,
        column: usize,
        field: &Arc<Field>,
        fill: CacheFill,
    ) -> Result<ArrayRef, StoreError> {
        let columns = usize::from(self.footer.columns);
        let key = |column: usize| BlockKey {
            part: self.number,
            block: ARCHIVE_BLOCK | (chunk * (columns as u32 + 1) + column as u32),
        };
        if let Some(found) = self.cached(key(column)) {
            return Ok(found);
        }
        waits::check()?;
        let fits =
            |array: &ArrayRef| array.len() == self.chunk_rows(chunk) as usize && array.data_type() == field.data_type();
        let archive = self.archive.load_full().ok_or_else(|| self.corrupt("its rows are gone"))?;
        let (family, arrays) = match column == columns {
            true => (column..column + 1, vec![Arc::new(UInt64Array::from(archive.seqs(chunk)?)) as ArrayRef]),
            false => (archive.family(column), archive.columns(chunk, column)?),
        };
        self.place.counters.add_bytes_read(memory_of(&arrays) as u64);
        let wanted = arrays.get(column - family.start).filter(|array| fits(array)).cloned();
        // Longitude comes with latitude, a shape with its box: a reader of one soon needs the others.
        if fill == CacheFill::Keep || family.len() > 1 {
            for (column, array) in family.zip(arrays) {
                self.place.cache.insert(key(column), Block::Array(array));
            }
        }
        wanted
            .ok_or_else(|| StoreError::corrupt(archive.path(), format!("{} has another length or type", field.name())))
    }

    fn chunk_rows(&self, chunk: u32) -> u32 {
        CHUNK_ROWS.min(self.footer.rows - chunk * CHUNK_ROWS)
    }

    /// Returns the wanted columns of the time projection at some places, in the requested layout.
    pub(crate) fn time_columns(
        &self,
        places: Range<u32>,
        layout: &Layout,
        wanted: &Projection,
    ) -> Result<Vec<Option<ArrayRef>>, StoreError> {
        let mut columns = vec![None; layout.columns.len()];
        let held = self.footer.time.iter().flat_map(|time| time.columns.iter().map(|c| usize::from(*c)).enumerate());
        for (i, column) in held.filter(|(_, column)| wanted.has(*column)) {
            if let Some(slot) = columns.get_mut(column) {
                *slot = Some(self.time_stretch(places.clone(), i as u32, &self.layout.columns[column])?);
            }
        }
        Ok(columns)
    }

    /// Returns the rows at some places of the time projection.
    pub(crate) fn time_rows(&self, places: Range<u32>) -> Result<UInt32Array, StoreError> {
        let last = self.footer.time.as_ref().map_or(0, |time| time.columns.len());
        let rows = self.time_stretch(places, last as u32, &self.row_field)?;
        let rows = rows.as_primitive_opt::<UInt32Type>().cloned();
        rows.ok_or_else(|| self.corrupt("its order of time holds no rows"))
    }

    /// Returns some values of one column of the time projection. The last column is the rows.
    fn time_stretch(&self, places: Range<u32>, column: u32, field: &Arc<Field>) -> Result<ArrayRef, StoreError> {
        let Some(time) = &self.footer.time else {
            return Err(self.corrupt("it has no order of time"));
        };
        let places = places.start.min(self.footer.rows)..places.end.min(self.footer.rows);
        let width = time.columns.len() as u32 + 1;
        self.stretch(places, field, |chunk| self.time_chunk(time.first_block + chunk * width + column, chunk, field))
    }

    /// Returns the counts per map cell, if the segment has them.
    pub(crate) fn pyramid(&self) -> Result<Option<Arc<CountPyramid>>, StoreError> {
        let Some(block) = self.footer.pyramid_block else { return Ok(None) };
        let found = self.block(block, "the counts per map cell", |bytes| {
            let pyramid = CountPyramid::decode_shared(&bytes).map_err(|e| e.to_string())?;
            Ok(Block::Pyramid(Arc::new(pyramid)))
        })?;
        match found {
            Block::Pyramid(pyramid) => Ok(Some(pyramid)),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Returns the filter of its keys; segments with generated ids have none.
    pub(crate) fn filter(&self) -> Result<Option<Arc<Filter>>, StoreError> {
        let Some(block) = self.footer.filter_block else { return Ok(None) };
        let found = self.block(block, "the filter of its keys", |bytes| {
            Filter::decode(&bytes).map(|f| Block::Filter(Arc::new(f)))
        })?;
        match found {
            Block::Filter(filter) => Ok(Some(filter)),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Returns the candidate rows of a key.
    pub(crate) fn rows_of_key(&self, key: u64) -> Result<Vec<u32>, StoreError> {
        if self.filter()?.is_some_and(|filter| !filter.may_hold(key)) {
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        for page in self.key_pages(key) {
            rows.extend_from_slice(self.key_page(page)?.rows_of(key));
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// Returns the pages of the key sidecar that may have a key.
    pub(super) fn key_pages(&self, key: u64) -> Range<u32> {
        let fences = &self.footer.key_fences;
        // Equal keys may continue on the next page, so start at the last page that begins below the key.
        let first = fences.partition_point(|fence| *fence < key).saturating_sub(1);
        let end = fences.partition_point(|fence| *fence <= key);
        first as u32..(end as u32).max(first as u32)
    }

    /// Returns one page of the key sidecar.
    pub(crate) fn key_page(&self, page: u32) -> Result<Arc<KeyRows>, StoreError> {
        let block = self.block(self.footer.first_key_block + page, "a page of its keys", |bytes| {
            KeyRows::decode_page(&bytes).map(|k| Block::Keys(Arc::new(k)))
        })?;
        match block {
            Block::Keys(keys) => Ok(keys),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Returns one column of one chunk of the order of time.
    fn time_chunk(&self, block: u32, chunk: u32, field: &Arc<Field>) -> Result<ArrayRef, StoreError> {
        let expected = self.chunk_rows(chunk);
        let block = self.block(block, field.name(), |bytes| {
            let (mut arrays, count) = ipc::decode(std::slice::from_ref(field), &bytes)?;
            match arrays.pop() {
                Some(array) if count == expected as usize => Ok(Block::Array(array)),
                _ => Err(format!("{count} values where {expected} were expected")),
            }
        })?;
        block.into_array().map_err(|e| self.corrupt(&e))
    }

    /// Returns true if the segment may hold events of an object; false is certain.
    pub(crate) fn may_hold_object(&self, object: u64) -> Result<bool, StoreError> {
        let Some(objects) = &self.footer.objects else { return Ok(false) };
        let filter = self.block(objects.filter_block, "the filter of its objects", |bytes| {
            Filter::decode(&bytes).map(|f| Block::Filter(Arc::new(f)))
        })?;
        Ok(!matches!(filter, Block::Filter(filter) if !filter.may_hold(object)))
    }

    /// Returns the pages of the sidecar of objects that may hold entries of an object within some times.
    pub(crate) fn object_pages(&self, object: u64, times: &RangeInclusive<i64>) -> Range<u32> {
        let Some(objects) = &self.footer.objects else { return 0..0 };
        // Equal entries may continue on the next page, so start at the last page that begins below.
        let first = objects.fences.partition_point(|f| *f < (object, *times.start())).saturating_sub(1);
        let end = objects.fences.partition_point(|f| *f <= (object, *times.end()));
        first as u32..(end as u32).max(first as u32)
    }

    /// Returns one page of the sidecar of objects.
    pub(crate) fn object_page(&self, page: u32) -> Result<Arc<ObjectRows>, StoreError> {
        let Some(objects) = &self.footer.objects else { return Err(self.corrupt("it has no sidecar of objects")) };
        let block = self.block(objects.first_block + page, "a page of its objects", |bytes| {
            ObjectRows::decode_page(&bytes).map(|o| Block::Objects(Arc::new(o)))
        })?;
        match block {
            Block::Objects(objects) => Ok(objects),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Returns the values of a column over some rows: shared if they lie in one chunk, otherwise concatenated.
    fn stretch(
        &self,
        rows: Range<u32>,
        field: &Arc<Field>,
        chunk_of: impl Fn(u32) -> Result<ArrayRef, StoreError>,
    ) -> Result<ArrayRef, StoreError> {
        if rows.is_empty() {
            return Ok(arrow_array::new_empty_array(field.data_type()));
        }
        let mut pieces = Vec::new();
        for chunk in rows.start / CHUNK_ROWS..=(rows.end - 1) / CHUNK_ROWS {
            let first = chunk * CHUNK_ROWS;
            let array = chunk_of(chunk)?;
            let from = rows.start.max(first) - first;
            let to = rows.end.min(first + array.len() as u32) - first;
            let whole = from == 0 && to as usize == array.len();
            pieces.push(if whole { array } else { array.slice(from as usize, (to - from) as usize) });
        }
        join(pieces).map_err(|e| self.corrupt(&e))
    }

    fn block(
        &self,
        block: u32,
        what: &str,
        decode: impl FnOnce(Buffer) -> Result<Block, String>,
    ) -> Result<Block, StoreError> {
        let key = BlockKey { part: self.number, block };
        if let Some(found) = self.place.cache.get(key) {
            self.place.counters.add_cache_hits(1);
            return Ok(found);
        }
        self.place.counters.add_cache_misses(1);
        waits::check()?;
        let place = *self.footer.blocks.get(block as usize).ok_or_else(|| self.corrupt("a block is missing"))?;
        // Damage found by a query is recorded, and maintenance rebuilds the index from the rows.
        let bytes = self.index.fetch(place, what).map_err(StoreError::absence_is_damage);
        let bytes = bytes.inspect_err(|e| self.note_damage(e))?;
        let decoded = decode(bytes).map_err(|e| self.corrupt(&format!("block {block} ({what}): {e}")))?;
        self.place.counters.add_bytes_read(u64::from(place.stored));
        // Decoded, so that a hit costs neither a checksum nor decompression.
        self.place.cache.insert(key, decoded.clone());
        Ok(decoded)
    }
}
