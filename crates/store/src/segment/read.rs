//! Reading a segment.

use super::{BlockRef, Footer, HEADER_BYTES, MAGIC, TAIL_BYTES, VERSION};
use crate::cache::{Block, BlockCache, BlockKey};
use crate::codec::Reader;
use crate::error::StoreError;
use crate::ipc;
use crate::keys::{Filter, KeyRows};
use crate::objects::ObjectRows;
use crate::part::{Body, CHUNK_ROWS, Fill, Part, array_of, join};
use crate::seams::{Disk, DiskFile, OpenMode};
use crate::stats::Counters;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field};
use meridian_index::{CountPyramid, Forest, Tree};
use meridian_model::Layout;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a segment is read through.
#[derive(Debug, Clone)]
pub(crate) struct SegmentPlace {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
}

/// An open segment file.
#[derive(Debug)]
pub(crate) struct Segment {
    place: SegmentPlace,
    file: Arc<dyn DiskFile>,
    pub(crate) path: PathBuf,
    number: u64,
    pub(crate) file_bytes: u64,
    pub(crate) footer: Footer,
    layout: Layout,
    seq_field: Arc<Field>,
    row_field: Arc<Field>,
    time_forest: Option<Forest>,
    /// Set once no manifest names the file: it goes when the last reader lets go of it.
    obsolete: AtomicBool,
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire)
            && let Err(e) = self.place.disk.remove(&self.path)
        {
            // It is removed at the next start at the latest.
            tracing::warn!(path = %self.path.display(), error = %e, "could not remove a merged segment");
        }
    }
}

/// Name and type of the column of sequence numbers.
pub(crate) fn seq_field() -> Arc<Field> {
    Arc::new(Field::new("@seq", DataType::UInt64, false))
}

/// Name and type of the column of rows of the time projection.
pub(crate) fn row_field() -> Arc<Field> {
    Arc::new(Field::new("@row", DataType::UInt32, false))
}

impl Segment {
    /// Opens a segment: checks header, footer and trees.
    pub(crate) fn open(place: &SegmentPlace, path: &Path) -> Result<Part, StoreError> {
        let corrupt = |detail: String| StoreError::corrupt(path, detail);
        let file = place.disk.open(path, OpenMode::Read).map_err(StoreError::io("open", path))?;
        let file_bytes = file.len().map_err(StoreError::io("read", path))?;
        if file_bytes < HEADER_BYTES + TAIL_BYTES {
            return Err(corrupt(format!("{file_bytes} bytes are too few for a segment")));
        }
        let read = |offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            file.read_at(offset, &mut bytes).map_err(StoreError::io("read", path)).map(|()| bytes)
        };
        let header = read(0, HEADER_BYTES as usize)?;
        let mut reader = Reader::new(&header);
        if reader.take(8).map_err(corrupt)? != MAGIC {
            return Err(corrupt("it does not begin as a segment does".to_owned()));
        }
        let version = reader.u32().map_err(corrupt)?;
        if version > VERSION && version < 0x1_0000 {
            return Err(StoreError::NewerFormat { path: path.to_owned(), found: version, supported: VERSION });
        }
        if version != VERSION || reader.u32().map_err(corrupt)? != crc32c::crc32c(&header[..12]) {
            return Err(corrupt("its header is damaged".to_owned()));
        }
        let tail = read(file_bytes - TAIL_BYTES, TAIL_BYTES as usize)?;
        let mut reader = Reader::new(&tail);
        let offset = reader.u64().map_err(corrupt)?;
        let len = reader.u32().map_err(corrupt)?;
        let crc = reader.u32().map_err(corrupt)?;
        if reader.rest() != MAGIC || offset.checked_add(u64::from(len) + TAIL_BYTES) != Some(file_bytes) {
            return Err(corrupt("its end is damaged or cut off".to_owned()));
        }
        let footer = read(offset, len as usize)?;
        if crc32c::crc32c(&footer) != crc {
            return Err(corrupt("the checksum of its footer is wrong".to_owned()));
        }
        let footer = Footer::decode(&footer).map_err(|e| corrupt(format!("its footer does not read: {e}")))?;
        let forest = |block: u32, rows: u32| -> Result<Forest, StoreError> {
            let bytes = fetch(&*file, path, footer.blocks[block as usize], "the trees")?;
            let forest = Forest::decode_shared(&bytes).map_err(|e| corrupt(e.to_string()))?;
            if forest.rows() == rows { Ok(forest) } else { Err(corrupt("its trees do not fit its rows".to_owned())) }
        };
        let trees = forest(footer.forest_block, footer.rows)?;
        let time_forest = footer.time.as_ref().map(|t| forest(t.forest_block, footer.rows)).transpose()?;
        let number = place.cache.number_part();
        Ok(Part {
            number,
            rows: footer.rows,
            forest: trees,
            chunk_seq_max: footer.chunk_seq_max.clone(),
            seq_min: footer.seq_min,
            seq_max: footer.seq_max,
            body: Body::Segment(Box::new(Segment {
                place: place.clone(),
                file,
                path: path.to_owned(),
                number,
                file_bytes,
                layout: Layout::of(&footer.schema),
                seq_field: seq_field(),
                row_field: row_field(),
                footer,
                time_forest,
                obsolete: AtomicBool::new(false),
            })),
        })
    }

    /// From now on the file is removed once nobody reads it.
    pub(crate) fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    pub(crate) fn has_time_order(&self) -> bool {
        self.time_forest.is_some()
    }

    pub(crate) fn time_trees(&self) -> &[Tree] {
        self.time_forest.as_ref().map_or(&[], |f| &f.trees)
    }

    pub(crate) fn column(&self, column: usize, rows: Range<u32>, fill: Fill) -> Result<Option<ArrayRef>, StoreError> {
        let columns = usize::from(self.footer.columns);
        if column >= columns {
            return Ok(None);
        }
        let field = &self.layout.columns[column];
        self.stretch(rows, field, fill, |chunk| chunk * (columns as u32 + 1) + column as u32).map(Some)
    }

    pub(crate) fn seqs(&self, rows: Range<u32>) -> Result<Vec<u64>, StoreError> {
        let columns = u32::from(self.footer.columns);
        let array = self.stretch(rows, &self.seq_field, Fill::Keep, |chunk| chunk * (columns + 1) + columns)?;
        Ok(array.as_primitive_opt::<UInt64Type>().map_or_else(Vec::new, |a| a.values().to_vec()))
    }

    /// Columns of the time projection at some places, in the layout asked for, and the rows they stand for.
    pub(crate) fn time_rows(
        &self,
        places: Range<u32>,
        layout: &Layout,
    ) -> Result<(Vec<Option<ArrayRef>>, UInt32Array), StoreError> {
        let Some(time) = &self.footer.time else {
            return Err(self.corrupt("it has no order of time"));
        };
        let places = places.start.min(self.footer.rows)..places.end.min(self.footer.rows);
        let width = time.columns.len() as u32 + 1;
        let mut columns = vec![None; layout.columns.len()];
        for (i, column) in time.columns.iter().enumerate() {
            let field = &self.layout.columns[usize::from(*column)];
            let array =
                self.stretch(places.clone(), field, Fill::Keep, |chunk| time.first_block + chunk * width + i as u32)?;
            if let Some(slot) = columns.get_mut(usize::from(*column)) {
                *slot = Some(array);
            }
        }
        let rows =
            self.stretch(places, &self.row_field, Fill::Keep, |chunk| time.first_block + (chunk + 1) * width - 1)?;
        match rows.as_primitive_opt::<UInt32Type>() {
            Some(rows) => Ok((columns, rows.clone())),
            None => Err(self.corrupt("its order of time holds no rows")),
        }
    }

    /// Counts per map cell, where the segment has them.
    pub(crate) fn pyramid(&self) -> Result<Option<Arc<CountPyramid>>, StoreError> {
        let Some(block) = self.footer.pyramid_block else { return Ok(None) };
        let found = self.block(block, "the counts per map cell", Fill::Keep, |bytes| {
            let pyramid = CountPyramid::decode_shared(&bytes).map_err(|e| e.to_string())?;
            Ok(Block::Pyramid(Arc::new(pyramid)))
        })?;
        match found {
            Block::Pyramid(pyramid) => Ok(Some(pyramid)),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Candidate rows of a key.
    pub(crate) fn rows_of_key(&self, key: u64) -> Result<Vec<u32>, StoreError> {
        if let Some(block) = self.footer.filter_block {
            let filter = self.block(block, "the filter of its keys", Fill::Keep, |bytes| {
                Filter::decode(&bytes).map(|f| Block::Filter(Arc::new(f)))
            })?;
            if matches!(filter, Block::Filter(filter) if !filter.may_hold(key)) {
                return Ok(Vec::new());
            }
        }
        let fences = &self.footer.key_fences;
        // Equal keys may run over the end of a page, so start at the last page that begins below the key.
        let first = fences.partition_point(|fence| *fence < key).saturating_sub(1);
        let mut rows = Vec::new();
        for (page, fence) in fences.iter().enumerate().skip(first) {
            if *fence > key {
                break;
            }
            rows.extend_from_slice(self.key_page(page as u32)?.rows_of(key));
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// One page of the key sidecar.
    pub(crate) fn key_page(&self, page: u32) -> Result<Arc<KeyRows>, StoreError> {
        let block = self.block(self.footer.first_key_block + page, "a page of its keys", Fill::Keep, |bytes| {
            KeyRows::decode_page(&bytes).map(|k| Block::Keys(Arc::new(k)))
        })?;
        match block {
            Block::Keys(keys) => Ok(keys),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Whether the segment may hold events of an object; `false` is certain.
    pub(crate) fn may_hold_object(&self, object: u64) -> Result<bool, StoreError> {
        let Some(objects) = &self.footer.objects else { return Ok(false) };
        let filter = self.block(objects.filter_block, "the filter of its objects", Fill::Keep, |bytes| {
            Filter::decode(&bytes).map(|f| Block::Filter(Arc::new(f)))
        })?;
        Ok(!matches!(filter, Block::Filter(filter) if !filter.may_hold(object)))
    }

    /// Pages of the sidecar of objects that may hold entries of an object within some times.
    pub(crate) fn object_pages(&self, object: u64, times: &RangeInclusive<i64>) -> Range<u32> {
        let Some(objects) = &self.footer.objects else { return 0..0 };
        // Equal entries may run over the end of a page, so start at the last page that begins below.
        let first = objects.fences.partition_point(|f| *f < (object, *times.start())).saturating_sub(1);
        let end = objects.fences.partition_point(|f| *f <= (object, *times.end()));
        first as u32..(end as u32).max(first as u32)
    }

    /// One page of the sidecar of objects.
    pub(crate) fn object_page(&self, page: u32) -> Result<Arc<ObjectRows>, StoreError> {
        let Some(objects) = &self.footer.objects else { return Err(self.corrupt("it has no sidecar of objects")) };
        let block = self.block(objects.first_block + page, "a page of its objects", Fill::Keep, |bytes| {
            ObjectRows::decode_page(&bytes).map(|o| Block::Objects(Arc::new(o)))
        })?;
        match block {
            Block::Objects(objects) => Ok(objects),
            _ => Err(self.corrupt("a block of another kind")),
        }
    }

    /// Values of a column over some rows: shared where they lie in one chunk, copied together otherwise.
    fn stretch(
        &self,
        rows: Range<u32>,
        field: &Arc<Field>,
        fill: Fill,
        block_of: impl Fn(u32) -> u32,
    ) -> Result<ArrayRef, StoreError> {
        if rows.is_empty() {
            return Ok(arrow_array::new_empty_array(field.data_type()));
        }
        let mut pieces = Vec::new();
        for chunk in rows.start / CHUNK_ROWS..=(rows.end - 1) / CHUNK_ROWS {
            let first = chunk * CHUNK_ROWS;
            let chunk_rows = CHUNK_ROWS.min(self.footer.rows - first);
            let block = self.block(block_of(chunk), field.name(), fill, |bytes| {
                let (mut arrays, count) = ipc::decode(std::slice::from_ref(field), &bytes)?;
                match arrays.pop() {
                    Some(array) if count == chunk_rows as usize => Ok(Block::Array(array)),
                    _ => Err(format!("{count} values where {chunk_rows} were expected")),
                }
            })?;
            let array = array_of(block).map_err(|e| self.corrupt(&e))?;
            let from = rows.start.max(first) - first;
            let to = rows.end.min(first + chunk_rows) - first;
            let whole = from == 0 && to == chunk_rows;
            pieces.push(if whole { array } else { array.slice(from as usize, (to - from) as usize) });
        }
        join(pieces).map_err(|e| self.corrupt(&e))
    }

    fn block(
        &self,
        block: u32,
        what: &str,
        fill: Fill,
        decode: impl FnOnce(Buffer) -> Result<Block, String>,
    ) -> Result<Block, StoreError> {
        let key = BlockKey { part: self.number, block };
        if let Some(found) = self.place.cache.get(key) {
            self.place.counters.add_cache_hits(1);
            return Ok(found);
        }
        self.place.counters.add_cache_misses(1);
        let (decoded, stored) = self.read_block(block, what, decode)?;
        self.place.counters.add_bytes_read(stored);
        if fill == Fill::Keep {
            self.place.cache.insert(key, decoded.clone());
        }
        Ok(decoded)
    }

    /// Reads a block past the cache.
    fn read_block(
        &self,
        block: u32,
        what: &str,
        decode: impl FnOnce(Buffer) -> Result<Block, String>,
    ) -> Result<(Block, u64), StoreError> {
        let place = *self.footer.blocks.get(block as usize).ok_or_else(|| self.corrupt("a block is missing"))?;
        let bytes = fetch(&*self.file, &self.path, place, what)?;
        let decoded = decode(bytes).map_err(|e| self.corrupt(&format!("block {block} ({what}): {e}")))?;
        Ok((decoded, u64::from(place.stored)))
    }

    fn corrupt(&self, detail: &str) -> StoreError {
        StoreError::corrupt(&self.path, detail)
    }

    /// Checks the checksum of every block, past the cache.
    pub(crate) fn verify_blocks(&self) -> Vec<StoreError> {
        let mut bad = Vec::new();
        for (i, block) in self.footer.blocks.iter().enumerate() {
            if let Err(e) = fetch(&*self.file, &self.path, *block, &format!("block {i}")) {
                bad.push(e);
            }
        }
        bad
    }
}

/// Reads, checks and decompresses one block.
fn fetch(file: &dyn DiskFile, path: &Path, block: BlockRef, what: &str) -> Result<Buffer, StoreError> {
    let mut stored = vec![0; block.stored as usize];
    file.read_at(block.offset, &mut stored).map_err(StoreError::io("read", path))?;
    let wrong = |detail: &str| {
        StoreError::corrupt(path, format!("{what} at byte {} ({} bytes): {detail}", block.offset, block.stored))
    };
    if crc32c::crc32c(&stored) != block.crc {
        return Err(wrong("its checksum is wrong"));
    }
    if !block.compressed {
        return Ok(Buffer::from(stored));
    }
    let raw = zstd::bulk::decompress(&stored, block.raw as usize).map_err(|e| wrong(&e.to_string()))?;
    if raw.len() != block.raw as usize {
        return Err(wrong("it decompresses to another length"));
    }
    Ok(Buffer::from(raw))
}
