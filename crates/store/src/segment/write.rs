//! Writing a segment.

use super::read::{row_field, seq_field};
use super::{BlockRef, Footer, HEADER_BYTES, MAGIC, ObjectPages, TimeColumns, VERSION};
use crate::codec::{put_u32, put_u64};
use crate::error::StoreError;
use crate::ipc;
use crate::keys::{Filter, KeyRows, PAGE_KEYS, hash};
use crate::objects::{ObjectEntry, ObjectRows, PAGE_OBJECTS};
use crate::part::{CHUNK_ROWS, KeyRule, join};
use crate::seams::{Disk, DiskFile, OpenMode};
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array};
use arrow_schema::Field;
use meridian_index::{ForestBuilder, Key, PyramidBuilder};
use meridian_model::{Batch, FieldColumn, GeometryType, IdRole, Layout, Schema, TimeRole};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Written to the file in pieces of about this size.
const WRITE_BYTES: usize = 1 << 20;
/// A block is kept compressed if that saves a quarter.
const WORTH: (usize, usize) = (3, 4);
const ZSTD_LEVEL: i32 = 1;
/// Most bytes that the time projection of one segment may take in memory while it is built.
const TIME_BYTES_MAX: usize = 160 << 20;

/// Most rows of a segment, such that what the writer keeps of each row until the end stays bounded.
pub(crate) fn rows_max(schema: &Schema, wanted: u32) -> u32 {
    let objects = if schema.object.is_some() { size_of::<ObjectEntry>() } else { 0 };
    let per_row = 48 + objects + 9 * schema.numeric_fields().len();
    wanted.min((TIME_BYTES_MAX / per_row) as u32).max(CHUNK_ROWS)
}

/// What was written.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    pub(crate) rows: u32,
    pub(crate) bytes: u64,
}

/// Writes one segment from rows in order of (key, seq).
pub(crate) struct SegmentWriter {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    rule: KeyRule,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    offset: u64,
    rows: u32,
    blocks: Vec<BlockRef>,
    forest: ForestBuilder,
    pyramid: Option<PyramidBuilder>,
    seq_min: u64,
    seq_max: u64,
    chunk_seq_max: Vec<u64>,
    buckets: Vec<(u8, u64, u32)>,
    keys: Vec<u64>,
    objects: ObjectRows,
    /// Physical columns of the time projection, and their values so far; empty where there is none.
    time_columns: Vec<usize>,
    time_values: Vec<Vec<ArrayRef>>,
    times: Vec<(i64, u32)>,
}

impl SegmentWriter {
    pub(crate) fn create(
        disk: &dyn Disk,
        path: &Path,
        schema: &Arc<Schema>,
        rule: KeyRule,
    ) -> Result<SegmentWriter, StoreError> {
        let file = disk.open(path, OpenMode::Create).map_err(StoreError::io("create", path))?;
        let layout = Arc::new(Layout::of(schema));
        let mut buffer = MAGIC.to_vec();
        put_u32(&mut buffer, VERSION);
        let crc = crc32c::crc32c(&buffer);
        put_u32(&mut buffer, crc);
        debug_assert_eq!(buffer.len() as u64, HEADER_BYTES);
        let time_columns = match schema.time {
            TimeRole::Instant(time) => {
                std::iter::once(time).chain(schema.numeric_fields()).map(|field| layout.field(field)).collect()
            }
            _ => Vec::new(),
        };
        Ok(SegmentWriter {
            file,
            path: path.to_owned(),
            schema: schema.clone(),
            rule,
            buffer,
            offset: 0,
            rows: 0,
            blocks: Vec::new(),
            forest: ForestBuilder::new(schema),
            pyramid: (schema.geometry == Some(GeometryType::Point)).then(|| PyramidBuilder::new(schema)),
            seq_min: u64::MAX,
            seq_max: 0,
            chunk_seq_max: Vec::new(),
            buckets: Vec::new(),
            keys: Vec::new(),
            objects: ObjectRows::default(),
            time_values: vec![Vec::new(); time_columns.len()],
            time_columns,
            times: Vec::new(),
            layout,
        })
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// Adds one chunk: [`CHUNK_ROWS`] rows, or fewer if it is the last.
    pub(crate) fn push(&mut self, batch: &Batch, keys: &[Key], seqs: &[u64]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let bug = |detail: String| StoreError::corrupt(&path, detail);
        if !self.rows.is_multiple_of(CHUNK_ROWS) || batch.rows() > CHUNK_ROWS as usize || batch.rows() != seqs.len() {
            return Err(bug("rows were not handed over by chunk".to_owned()));
        }
        self.forest.push(batch, keys).map_err(|e| bug(e.to_string()))?;
        if let Some(pyramid) = &mut self.pyramid {
            pyramid.push(batch);
        }
        for (i, key) in keys.iter().enumerate() {
            let at = (key.class(), key.bucket());
            if self.buckets.last().is_none_or(|(class, bucket, _)| (*class, *bucket) != at) {
                self.buckets.push((at.0, at.1, self.rows + i as u32));
            }
        }
        match (self.rule.role, batch.ids()) {
            (IdRole::Given, Some(ids)) => {
                self.keys.extend(ids.iter().map(|id| hash(self.rule.seed, id.unwrap_or("").as_bytes())));
            }
            _ => self.keys.extend_from_slice(seqs),
        }
        self.objects.add(self.rule.seed, batch, seqs, self.rows);
        if let TimeRole::Instant(field) = self.schema.time
            && let Some(FieldColumn::Time(times)) = batch.field(field)
        {
            self.times.extend(times.values().iter().zip(self.rows..).map(|(time, row)| (*time, row)));
            for (column, values) in self.time_columns.iter().zip(&mut self.time_values) {
                values.extend(batch.column(*column).cloned());
            }
        }
        for column in 0..self.layout.columns.len() {
            let field = self.layout.columns[column].clone();
            let array = batch.column(column).ok_or_else(|| bug("a column was left out".to_owned()))?.clone();
            self.column_block(&field, array)?;
        }
        self.column_block(&seq_field(), Arc::new(UInt64Array::from(seqs.to_vec())))?;
        let chunk_max = seqs.iter().copied().max().unwrap_or(0);
        self.chunk_seq_max.push(chunk_max);
        self.seq_max = self.seq_max.max(chunk_max);
        self.seq_min = self.seq_min.min(seqs.iter().copied().min().unwrap_or(u64::MAX));
        self.rows += batch.rows() as u32;
        Ok(())
    }

    fn column_block(&mut self, field: &Arc<Field>, array: ArrayRef) -> Result<(), StoreError> {
        let rows = array.len();
        let raw = ipc::encode(std::slice::from_ref(field), vec![array], rows)
            .map_err(|e| StoreError::corrupt(&self.path, e))?;
        self.block(&raw, true)
    }

    fn block(&mut self, raw: &[u8], compress: bool) -> Result<(), StoreError> {
        let packed = compress.then(|| zstd::bulk::compress(raw, ZSTD_LEVEL).ok()).flatten();
        let packed = packed.filter(|p| p.len() * WORTH.1 <= raw.len() * WORTH.0);
        let stored = packed.as_deref().unwrap_or(raw);
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len()).map_err(|_| StoreError::corrupt(&self.path, "a block would pass 4 GiB"))
        };
        // Blocks begin at multiples of 8.
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
        self.blocks.push(BlockRef {
            offset: self.offset + self.buffer.len() as u64,
            stored: len(stored)?,
            raw: len(raw)?,
            crc: crc32c::crc32c(stored),
            compressed: packed.is_some(),
        });
        self.buffer.extend_from_slice(stored);
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.file.write_at(self.offset, &self.buffer).map_err(StoreError::io("write", &self.path))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        // The offset stays a multiple of 8 because blocks are padded before they begin.
        let padding = self.offset.next_multiple_of(8) - self.offset;
        self.buffer.resize(padding as usize, 0);
        Ok(())
    }

    /// Writes what follows the rows, and syncs. The caller syncs the folder.
    pub(crate) fn finish(mut self) -> Result<Written, StoreError> {
        let (key_fences, first_key_block, filter_block) = self.write_keys()?;
        let objects = self.write_objects()?;
        let forest = std::mem::replace(&mut self.forest, ForestBuilder::new(&self.schema)).finish();
        let forest_block = self.blocks.len() as u32;
        self.block(&forest.encode(), false)?;
        let pyramid_block = self.pyramid.is_some().then_some(self.blocks.len() as u32);
        if let Some(pyramid) = self.pyramid.take() {
            self.block(&pyramid.finish().encode(), true)?;
        }
        let time = self.write_time()?;
        let footer = Footer {
            rows: self.rows,
            schema: self.schema.as_ref().clone(),
            columns: self.layout.columns.len() as u16,
            seq_min: self.seq_min,
            seq_max: self.seq_max,
            chunk_seq_max: std::mem::take(&mut self.chunk_seq_max),
            buckets: std::mem::take(&mut self.buckets),
            key_fences,
            first_key_block,
            filter_block,
            objects,
            forest_block,
            pyramid_block,
            time,
            blocks: std::mem::take(&mut self.blocks),
        };
        let footer = footer.encode().map_err(|e| StoreError::corrupt(&self.path, e))?;
        let at = self.offset + self.buffer.len() as u64;
        self.buffer.extend_from_slice(&footer);
        put_u64(&mut self.buffer, at);
        put_u32(&mut self.buffer, footer.len() as u32);
        put_u32(&mut self.buffer, crc32c::crc32c(&footer));
        self.buffer.extend_from_slice(MAGIC);
        let bytes = self.offset + self.buffer.len() as u64;
        self.file.write_at(self.offset, &self.buffer).map_err(StoreError::io("write", &self.path))?;
        self.file.sync().map_err(StoreError::io("sync", &self.path))?;
        Ok(Written { path: self.path, rows: self.rows, bytes })
    }

    fn write_keys(&mut self) -> Result<(Vec<u64>, u32, Option<u32>), StoreError> {
        let sorted = KeyRows::of(std::mem::take(&mut self.keys).into_iter());
        let first_block = self.blocks.len() as u32;
        let mut fences = Vec::new();
        for from in (0..sorted.keys.len()).step_by(PAGE_KEYS) {
            fences.push(sorted.keys[from]);
            let page = sorted.encode_page(from..sorted.keys.len().min(from + PAGE_KEYS));
            self.block(&page, true)?;
        }
        // Made ids are looked up by number, and the range of numbers says enough.
        let filter_block = (self.rule.role == IdRole::Given).then_some(self.blocks.len() as u32);
        if filter_block.is_some() {
            let filter = Filter::of(sorted.keys.iter().copied());
            self.block(&filter.encode(), false)?;
        }
        Ok((fences, first_block, filter_block))
    }

    fn write_objects(&mut self) -> Result<Option<ObjectPages>, StoreError> {
        if self.schema.object.is_none() {
            return Ok(None);
        }
        let mut objects = std::mem::take(&mut self.objects);
        objects.sort();
        let first_block = self.blocks.len() as u32;
        let mut fences = Vec::new();
        for entries in objects.entries.chunks(PAGE_OBJECTS) {
            fences.extend(entries.first().map(|e| (e.object, e.time)));
            self.block(&ObjectRows::encode_page(entries), true)?;
        }
        let mut known: Vec<u64> = objects.entries.iter().map(|e| e.object).collect();
        known.dedup();
        let filter_block = self.blocks.len() as u32;
        self.block(&Filter::of(known.iter().copied()).encode(), false)?;
        Ok(Some(ObjectPages { fences, first_block, filter_block }))
    }

    fn write_time(&mut self) -> Result<Option<TimeColumns>, StoreError> {
        if self.time_columns.is_empty() {
            return Ok(None);
        }
        let wrong = |path: &Path, e: String| StoreError::corrupt(path, e);
        let mut times = std::mem::take(&mut self.times);
        times.sort_unstable();
        let mut columns = Vec::new();
        for (pieces, column) in std::mem::take(&mut self.time_values).into_iter().zip(&self.time_columns) {
            let empty = arrow_array::new_empty_array(self.layout.columns[*column].data_type());
            let pieces = if pieces.is_empty() { vec![empty] } else { pieces };
            columns.push(join(pieces).map_err(|e| wrong(&self.path, e))?);
        }
        let first_block = self.blocks.len() as u32;
        let mut forest = ForestBuilder::over_time(&self.schema);
        for places in times.chunks(CHUNK_ROWS as usize) {
            let rows = UInt32Array::from(places.iter().map(|(_, row)| *row).collect::<Vec<_>>());
            let mut batch = vec![None; self.layout.columns.len()];
            for (i, values) in columns.iter().enumerate() {
                let taken = arrow_select::take::take(values, &rows, None);
                let taken = taken.map_err(|e| wrong(&self.path, e.to_string()))?;
                let column = self.time_columns[i];
                let field = self.layout.columns[column].clone();
                self.column_block(&field, taken.clone())?;
                batch[column] = Some(taken);
            }
            let batch = Batch::new(self.schema.clone(), self.layout.clone(), places.len(), batch)?;
            forest.push_ordered(&batch).map_err(|e| wrong(&self.path, e.to_string()))?;
            self.column_block(&row_field(), Arc::new(rows))?;
        }
        let forest_block = self.blocks.len() as u32;
        self.block(&forest.finish().encode(), false)?;
        let columns = self.time_columns.iter().map(|c| *c as u16).collect();
        Ok(Some(TimeColumns { columns, first_block, forest_block }))
    }
}
