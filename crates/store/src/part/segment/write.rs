//! Writes a segment: its rows and its index.

use super::blocks::BlockWriter;
use super::fields::{row_field, seq_field};
use super::rows::{PAGE_ROWS_MIN, RowsWriter, column_block};
use super::{Footer, MAGIC, ObjectPages, TimeColumns};
use crate::codec::hash;
use crate::error::StoreError;
use crate::manifest::{Sketch, rows_name, segment_name};
use crate::part::keys::{Filter, KeyRows, PAGE_KEYS};
use crate::part::objects::{ObjectEntry, ObjectRows, PAGE_OBJECTS};
use crate::part::rows::{CHUNK_ROWS, KeyRule, join};
use crate::seams::Objects;
use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use meridian_index::{ForestBuilder, Key, PyramidBuilder};
use meridian_model::{Batch, FieldColumn, GeometryType, IdRole, Layout, Schema, TimeRole};
use std::path::Path;
use std::sync::Arc;

/// Max bytes of memory for the time projection of one segment while it is built.
const TIME_BYTES_MAX: usize = 160 << 20;

/// Returns the max rows of a segment, so that the memory that the writer keeps per row stays bounded.
pub(crate) fn rows_max(schema: &Schema, wanted: u32) -> u32 {
    let objects = if schema.object.is_some() { size_of::<ObjectEntry>() } else { 0 };
    let per_row = 48 + objects + 9 * schema.numeric_fields().len();
    wanted.min((TIME_BYTES_MAX / per_row) as u32).max(CHUNK_ROWS)
}

/// The size and the statistics of the written files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentTotals {
    pub(crate) rows: u32,
    /// Total bytes of all files.
    pub(crate) bytes: u64,
    /// Present if the rows were written too.
    pub(crate) sketch: Option<Sketch>,
}

/// Writes one segment from rows in order of (key, seq).
pub(crate) struct SegmentWriter {
    index: BlockWriter,
    /// `None` if the rows are already archived.
    columns: Option<RowsWriter>,
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    rule: KeyRule,
    rows: u32,
    forest: ForestBuilder,
    pyramid: Option<PyramidBuilder>,
    seq_min: u64,
    seq_max: u64,
    chunk_seq_max: Vec<u64>,
    buckets: Vec<(u8, u64, u32)>,
    keys: Vec<u64>,
    objects: ObjectRows,
    /// Physical columns of the time projection, and their values so far; empty if it has none.
    time_columns: Vec<usize>,
    time_values: Vec<Vec<ArrayRef>>,
    times: Vec<(i64, u32)>,
}

impl SegmentWriter {
    /// Begins the files of a segment of this number.
    pub(crate) fn create(
        objects: &dyn Objects,
        file: u64,
        schema: &Arc<Schema>,
        rule: KeyRule,
    ) -> Result<SegmentWriter, StoreError> {
        let index = BlockWriter::put(objects, &segment_name(file), MAGIC)?;
        let columns = Layout::of(schema).columns.len() as u16;
        let rows = RowsWriter::put(objects, &rows_name(file), columns)?;
        Ok(SegmentWriter::new(index, Some(rows), schema, rule))
    }

    /// Begins the index of a segment that has its rows, in place of a missing or damaged one.
    pub(crate) fn replace_index(
        objects: &dyn Objects,
        file: u64,
        schema: &Arc<Schema>,
        rule: KeyRule,
    ) -> Result<SegmentWriter, StoreError> {
        let index = BlockWriter::replace(objects, &segment_name(file), MAGIC)?;
        Ok(SegmentWriter::new(index, None, schema, rule))
    }

    fn new(index: BlockWriter, columns: Option<RowsWriter>, schema: &Arc<Schema>, rule: KeyRule) -> SegmentWriter {
        let layout = Arc::new(Layout::of(schema));
        let time_columns = match schema.time {
            TimeRole::Instant(time) => {
                std::iter::once(time).chain(schema.numeric_fields()).map(|field| layout.field(field)).collect()
            }
            _ => Vec::new(),
        };
        SegmentWriter {
            index,
            columns,
            schema: schema.clone(),
            rule,
            rows: 0,
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
        }
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// Adds a chunk, or a piece of one as in [`RowsWriter::push`].
    pub(crate) fn push(&mut self, batch: &Batch, keys: &[Key], seqs: &[u64]) -> Result<(), StoreError> {
        let path = self.index.path.clone();
        let bug = |detail: String| StoreError::corrupt(&path, detail);
        // Chunks and pages are addressed by row number divided by their size. A short one in the middle would shift all
        // that follow.
        let room = (CHUNK_ROWS - self.rows % CHUNK_ROWS) as usize;
        if !self.rows.is_multiple_of(PAGE_ROWS_MIN) || batch.rows() > room || batch.rows() != seqs.len() {
            return Err(bug("rows were not handed over by chunk".to_owned()));
        }
        self.forest.push(batch, keys).map_err(|e| bug(e.to_string()))?;
        if let Some(pyramid) = &mut self.pyramid {
            pyramid.push(batch);
        }
        for (i, key) in keys.iter().enumerate() {
            let at = (key.class(), key.bucket());
            // Rows are in order of key, so a bucket's rows are contiguous and its first row is enough.
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
        if let Some(columns) = &mut self.columns {
            let mut chunk = Vec::with_capacity(self.layout.columns.len() + 1);
            for (column, field) in self.layout.columns.iter().enumerate() {
                let array = batch.column(column).ok_or_else(|| bug("a column was left out".to_owned()))?;
                chunk.push((field.clone(), array.clone()));
            }
            chunk.push((seq_field(), Arc::new(UInt64Array::from(seqs.to_vec()))));
            columns.push(chunk)?;
        }
        let chunk_max = seqs.iter().copied().max().unwrap_or(0);
        match self.chunk_seq_max.last_mut().filter(|_| !self.rows.is_multiple_of(CHUNK_ROWS)) {
            Some(begun) => *begun = chunk_max.max(*begun),
            None => self.chunk_seq_max.push(chunk_max),
        }
        self.seq_max = self.seq_max.max(chunk_max);
        self.seq_min = self.seq_min.min(seqs.iter().copied().min().unwrap_or(u64::MAX));
        self.rows += batch.rows() as u32;
        Ok(())
    }

    /// Writes the index. The caller syncs the names.
    pub(crate) fn finish(mut self) -> Result<SegmentTotals, StoreError> {
        let (key_fences, first_key_block, filter_block) = self.write_keys()?;
        let objects = self.write_objects()?;
        let forest = std::mem::replace(&mut self.forest, ForestBuilder::new(&self.schema)).finish();
        let (forest_block, bounds) = (self.index.next(), forest.bounds());
        let times = Some(forest.times()).filter(|times| *times != (bounds.start, bounds.end));
        self.index.block(&forest.encode(), false)?;
        let trees = self.index.blocks.last().map_or((0, 0), |block| (block.offset, block.stored));
        let pyramid_block = self.pyramid.is_some().then_some(self.index.next());
        if let Some(pyramid) = self.pyramid.take() {
            self.index.block(&pyramid.finish().encode(), true)?;
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
            blocks: std::mem::take(&mut self.index.blocks),
        };
        let footer = footer.encode().map_err(|e| StoreError::corrupt(&self.index.path, e))?;
        let rows = self.columns.map(RowsWriter::finish).transpose()?;
        let index = self.index.finish(&footer)?;
        let seqs = (self.seq_min, self.seq_max);
        let sketch = rows.map(|rows| Sketch { bounds, times, seqs, index, trees, rows });
        Ok(SegmentTotals { rows: self.rows, bytes: index.bytes + rows.map_or(0, |rows| rows.bytes), sketch })
    }

    fn write_keys(&mut self) -> Result<(Vec<u64>, u32, Option<u32>), StoreError> {
        let sorted = KeyRows::of(std::mem::take(&mut self.keys).into_iter());
        let first_block = self.index.next();
        let mut fences = Vec::new();
        for from in (0..sorted.keys.len()).step_by(PAGE_KEYS) {
            fences.push(sorted.keys[from]);
            let page = sorted.encode_page(from..sorted.keys.len().min(from + PAGE_KEYS));
            self.index.block(&page, true)?;
        }
        // Generated ids are looked up by number, for which the range of numbers suffices.
        let filter_block = (self.rule.role == IdRole::Given).then_some(self.index.next());
        if filter_block.is_some() {
            let filter = Filter::of(sorted.keys.iter().copied());
            self.index.block(&filter.encode(), false)?;
        }
        Ok((fences, first_block, filter_block))
    }

    fn write_objects(&mut self) -> Result<Option<ObjectPages>, StoreError> {
        if self.schema.object.is_none() {
            return Ok(None);
        }
        let mut objects = std::mem::take(&mut self.objects);
        objects.sort();
        let first_block = self.index.next();
        let mut fences = Vec::new();
        for entries in objects.entries.chunks(PAGE_OBJECTS) {
            fences.extend(entries.first().map(|e| (e.object, e.time)));
            self.index.block(&ObjectRows::encode_page(entries), true)?;
        }
        let mut known: Vec<u64> = objects.entries.iter().map(|e| e.object).collect();
        known.dedup();
        let filter_block = self.index.next();
        self.index.block(&Filter::of(known.iter().copied()).encode(), false)?;
        Ok(Some(ObjectPages { fences, first_block, filter_block }))
    }

    fn write_time(&mut self) -> Result<Option<TimeColumns>, StoreError> {
        if self.time_columns.is_empty() {
            return Ok(None);
        }
        let wrong = |path: &Path, e: String| StoreError::corrupt(path, e);
        let mut times = std::mem::take(&mut self.times);
        // The row number breaks ties, so the same rows always give the same bytes.
        times.sort_unstable();
        let mut columns = Vec::new();
        for (pieces, column) in std::mem::take(&mut self.time_values).into_iter().zip(&self.time_columns) {
            let empty = arrow_array::new_empty_array(self.layout.columns[*column].data_type());
            let pieces = if pieces.is_empty() { vec![empty] } else { pieces };
            columns.push(join(pieces).map_err(|e| wrong(&self.index.path, e))?);
        }
        let first_block = self.index.next();
        let mut forest = ForestBuilder::over_time(&self.schema);
        for places in times.chunks(CHUNK_ROWS as usize) {
            let rows = UInt32Array::from(places.iter().map(|(_, row)| *row).collect::<Vec<_>>());
            let mut batch = vec![None; self.layout.columns.len()];
            for (i, values) in columns.iter().enumerate() {
                let taken = arrow_select::take::take(values, &rows, None);
                let taken = taken.map_err(|e| wrong(&self.index.path, e.to_string()))?;
                let column = self.time_columns[i];
                let field = self.layout.columns[column].clone();
                column_block(&mut self.index, &field, taken.clone())?;
                batch[column] = Some(taken);
            }
            let batch = Batch::new(self.schema.clone(), self.layout.clone(), places.len(), batch)?;
            forest.push_ordered(&batch).map_err(|e| wrong(&self.index.path, e.to_string()))?;
            column_block(&mut self.index, &row_field(), Arc::new(rows))?;
        }
        let forest_block = self.index.next();
        self.index.block(&forest.finish().encode(), false)?;
        let columns = self.time_columns.iter().map(|c| *c as u16).collect();
        Ok(Some(TimeColumns { columns, first_block, forest_block }))
    }
}
