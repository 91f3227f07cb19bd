//! A reader's view of a part: which rows a snapshot shows, and how they are read.

use super::context::Context;
use super::rows::{CHUNK_ROWS, CacheFill, KeyRule};
use super::segment::{PAGE_BYTES, PAGE_ROWS_MIN, RowSource};
use super::{Body, Part};
use crate::error::StoreError;
use crate::part::dead::DeadRows;
use crate::part::objects::object_named;
use arrow_array::UInt32Array;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use meridian_index::{CountPyramid, Key, Pieces, Tree};
use meridian_model::{Batch, Bounds, Layout, Numbering, Projection, Schema, Seq};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// A snapshot's view of a part. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PartView {
    pub(crate) part: Arc<Part>,
    pub(crate) dead: Arc<DeadRows>,
    pub(crate) seq: Seq,
    pub(crate) context: Arc<Context>,
}

impl PartView {
    /// Returns a view of all rows of a segment on its own, in the schema it was written in, with keys under this seed.
    pub(crate) fn alone(part: Arc<Part>, seed: u64) -> Option<PartView> {
        let schema = Arc::new(part.segment()?.footer.schema.clone());
        let layout = Arc::new(Layout::of(&schema));
        let rule = KeyRule { role: schema.id, seed };
        let context =
            Arc::new(Context { schema, layout, rule, numbering: Numbering::default(), counters: Arc::default() });
        Some(PartView { part, dead: Arc::default(), seq: Seq(u64::MAX), context })
    }

    /// Returns the number of rows, including dead ones and those newer than the snapshot.
    pub fn rows(&self) -> u32 {
        self.part.rows
    }

    /// Returns the mean bytes of an event, as stored in the part.
    pub fn event_bytes(&self) -> u64 {
        self.part.bytes().checked_div(u64::from(self.part.rows)).unwrap_or(0)
    }

    /// Returns the bytes of a chunk when read from its file; 0 if nothing is read, or it is unknown.
    pub(crate) fn chunk_bytes(&self, chunk: u32) -> u64 {
        self.part.segment().map_or(0, |segment| segment.chunk_bytes(chunk))
    }

    /// Returns true if events of a chunk take some kilobytes each in these columns, so that only a few should be read
    /// at once.
    pub fn has_large(&self, chunk: u32, wanted: &Projection) -> bool {
        match self.part.segment() {
            // Only columns with large values have pages this small. The file size proves nothing, because it is
            // compressed.
            Some(segment) => wanted.columns().any(|column| segment.page_rows(chunk, column) <= PAGE_ROWS_MIN),
            None => self.event_bytes() >= (PAGE_BYTES / PAGE_ROWS_MIN as usize) as u64,
        }
    }

    /// Returns a number that no other part has had since the process began: a key for caches.
    pub fn number(&self) -> u64 {
        self.part.number
    }

    /// Returns the trees over the rows, one per size class, in row order.
    pub fn trees(&self) -> &[Tree] {
        debug_assert!(self.is_open(), "a segment is read that was not opened");
        &self.part.forest.trees
    }

    /// Returns the long lines among the rows in pieces, if there are any.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.part.forest.pieces.as_ref()
    }

    /// Returns the bounding box of all rows.
    pub fn bounds(&self) -> Bounds {
        self.part.bounds()
    }

    /// Returns true if its trees are in memory. [`crate::Snapshot::open_for`] reads those of a segment that is not
    /// open.
    pub fn is_open(&self) -> bool {
        self.part.closed().is_none()
    }

    /// Returns the schema in which [`PartView::read`] returns rows.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.context.schema
    }

    /// Returns the layout of that schema.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.context.layout
    }

    /// Returns true if the rows are in memory, so that reading them costs no disk access.
    pub fn in_memory(&self) -> bool {
        self.part.run().is_some()
    }

    /// Returns columns of some rows, visible or not. Within one block of [`CHUNK_ROWS`] nothing is copied. Fields that
    /// the part was written without are null.
    pub fn read(&self, rows: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        // Clamped: callers round ranges up to whole chunks.
        let rows = rows.start.min(self.part.rows)..rows.end.min(self.part.rows);
        self.context.counters.add_blocks_read(blocks_of(&rows));
        if let Some(segment) = self.part.segment() {
            segment.load_rows(&rows, wanted);
        }
        self.columns(rows, wanted, CacheFill::Keep)
    }

    /// Returns the wanted columns that are split into pages in this chunk: only the needed rows of these should be
    /// read. `None` if there are none.
    pub fn paged(&self, chunk: u32, wanted: &Projection) -> Option<Projection> {
        let segment = self.part.segment()?;
        let mut paged = None;
        for column in wanted.columns().filter(|column| segment.page_rows(chunk, *column) < CHUNK_ROWS) {
            paged.get_or_insert_with(|| Projection::none(&self.context.layout)).add(column);
        }
        paged
    }

    /// Returns the rows of the smallest page of a column, at least one leaf; the rows of a chunk if it has no pages.
    pub fn page_rows(&self, column: usize) -> u32 {
        self.part.segment().map_or(CHUNK_ROWS, |segment| segment.page_rows_min(column))
    }

    /// Returns the number of rows to read at once if an event takes kilobytes in one of these columns; a chunk would
    /// take megabytes. `None` if all are small, or nothing has to be read.
    pub fn rows_at_once(&self, wanted: &Projection) -> Option<u32> {
        let rows = wanted.columns().map(|column| self.page_rows(column)).min()?;
        (rows <= PAGE_ROWS_MIN).then_some(rows)
    }

    /// Does the same as [`PartView::read`], without evicting from the cache what readers use.
    pub(crate) fn read_for_merge(&self, rows: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        self.columns(rows, wanted, CacheFill::Pass)
    }

    fn columns(&self, rows: Range<u32>, wanted: &Projection, fill: CacheFill) -> Result<Batch, StoreError> {
        let count = rows.len();
        let layout = &self.context.layout;
        let mut columns = vec![None; layout.columns.len()];
        for column in wanted.columns() {
            columns[column] = Some(match self.part.column(column, rows.clone(), fill)? {
                Some(array) => array,
                // The field was added after the part was written.
                None => arrow_array::new_null_array(layout.columns[column].data_type(), count),
            });
        }
        Ok(Batch::new(self.context.schema.clone(), layout.clone(), count, columns)?)
    }

    /// Returns the sequence numbers of some rows.
    pub fn seqs(&self, rows: Range<u32>) -> Result<Vec<u64>, StoreError> {
        self.part.seqs(rows.start.min(self.part.rows)..rows.end.min(self.part.rows))
    }

    /// Returns all rows, if they are in memory as one batch with every column: a memory tree.
    pub fn at_hand(&self) -> Option<&Batch> {
        let batch = &self.part.run()?.batch;
        // Fields added since it was written are not in it.
        (batch.layout().columns.len() == self.context.layout.columns.len()).then_some(batch)
    }

    /// Returns what [`PartView::seqs`] does, if it is in memory.
    pub fn seqs_at_hand(&self, rows: Range<u32>) -> Option<&[u64]> {
        self.part.run()?.seqs.get(rows.start as usize..rows.end as usize)
    }

    /// Returns the keys of some rows, if they are stored.
    pub fn keys(&self, rows: Range<u32>) -> Option<&[Key]> {
        self.part.run().map(|run| &run.keys[rows.start as usize..rows.end as usize])
    }

    /// Returns true if the snapshot is known to see every row of the range; if false, call [`PartView::visible`].
    pub fn all_visible(&self, rows: Range<u32>) -> bool {
        !self.some_newer(&rows) && self.dead.all_alive(rows, self.seq)
    }

    /// Returns which rows of the range the snapshot sees.
    pub fn visible(&self, rows: Range<u32>) -> Result<BooleanBuffer, StoreError> {
        let count = rows.len();
        let mut seen = BooleanBufferBuilder::new(count);
        // Sequence numbers are read only if a chunk may hold rows newer than the snapshot, which is rare.
        if self.some_newer(&rows) {
            self.seqs(rows.clone())?.iter().for_each(|seq| seen.append(*seq <= self.seq.0));
        } else {
            seen.append_n(count, true);
        }
        for row in self.dead_rows(rows.clone()) {
            seen.set_bit((row - rows.start) as usize, false);
        }
        Ok(seen.finish())
    }

    /// Returns the rows of the range that were replaced or deleted by the time of the snapshot, in order. If
    /// [`PartView::none_newer`] holds, these are all rows that the snapshot does not see. Then the count and sums of a
    /// node can be corrected by reading only them.
    pub fn dead_rows(&self, rows: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.dead.range(rows, self.seq)
    }

    /// Returns true if the range is known to hold no row newer than the snapshot.
    pub fn none_newer(&self, rows: Range<u32>) -> bool {
        !self.some_newer(&rows)
    }

    fn some_newer(&self, rows: &Range<u32>) -> bool {
        // Most parts are entirely older than the snapshot: one comparison, and no chunk is read.
        if self.part.seq_max <= self.seq.0 {
            return false;
        }
        let chunks = (rows.start / CHUNK_ROWS) as usize..rows.end.div_ceil(CHUNK_ROWS) as usize;
        self.part.chunk_seq_max.get(chunks).is_none_or(|c| c.iter().any(|max| *max > self.seq.0))
    }

    /// Returns the time-ordered projection, if the part has one: segments and large memory trees of collections with an
    /// instant. A memory tree builds its own at the first call.
    pub fn time_order(&self) -> Option<TimeOrder<'_>> {
        let has = match &self.part.body {
            Body::Segment(segment) => segment.has_time_order(),
            Body::Closed(_) => false,
            Body::Run(run) => run.by_time().is_some(),
        };
        has.then_some(TimeOrder { view: self })
    }

    /// Returns the counts of all rows (visible or not) per map cell and time bin. Segments and large memory trees of
    /// collections of points have them. A memory tree builds its own at the first call.
    pub fn pyramid(&self) -> Result<Option<Arc<CountPyramid>>, StoreError> {
        match &self.part.body {
            Body::Segment(segment) => segment.pyramid(),
            Body::Closed(closed) => Err(closed.unopened()),
            Body::Run(run) => Ok(run.pyramid()),
        }
    }

    /// Returns rows that may belong to an object, visible to the snapshot or not, ascending. Their last instant lies
    /// within `times` (microseconds since 1970, inclusive; an open end is the max value). They are found by key,
    /// without a scan. Objects are compared by hash here, so the caller tests the rows. `None` if the schema has no
    /// object field.
    pub fn object_rows(&self, object: &str, times: RangeInclusive<i64>) -> Result<Option<Vec<u32>>, StoreError> {
        let context = &self.context;
        if context.schema.object.is_none() {
            return Ok(None);
        }
        let Some(object) = object_named(&context.schema, context.rule.seed, object) else {
            return Ok(Some(Vec::new()));
        };
        let entries = self.part.object_entries(context.rule, object, &times)?;
        let mut rows: Vec<u32> = entries.iter().map(|e| e.row).collect();
        // Ascending, so that each chunk is read once.
        rows.sort_unstable();
        Ok(Some(rows))
    }

    /// Returns the row with this id that the snapshot sees.
    pub fn find_id(&self, id: &str) -> Result<Option<u32>, StoreError> {
        let found = self.part.find(self.context.rule, &self.context.layout, id)?;
        let seen = |(row, seq): &(u32, u64)| *seq <= self.seq.0 && !self.dead.is_dead(*row, self.seq);
        Ok(found.into_iter().find(seen).map(|(row, _)| row))
    }
}

impl RowSource for PartView {
    fn schema(&self) -> &Arc<Schema> {
        &self.context.schema
    }

    fn rows(&self) -> u32 {
        self.part.rows
    }

    fn chunk(&self, rows: Range<u32>) -> Result<(Batch, Vec<u64>), StoreError> {
        Ok((self.read_for_merge(rows.clone(), &Projection::all(&self.context.layout))?, self.part.seqs(rows)?))
    }
}

fn blocks_of(rows: &Range<u32>) -> u64 {
    if rows.is_empty() { 0 } else { u64::from((rows.end - 1) / CHUNK_ROWS - rows.start / CHUNK_ROWS) + 1 }
}

/// The rows of a part in order of time, for queries by time alone.
#[derive(Debug, Clone, Copy)]
pub struct TimeOrder<'a> {
    view: &'a PartView,
}

impl TimeOrder<'_> {
    /// Returns the trees over time: one, or none for a part without rows. Their rows are places in the order of time.
    pub fn trees(&self) -> Result<Vec<Tree>, StoreError> {
        match &self.view.part.body {
            Body::Segment(segment) => Ok(segment.time_forest()?.trees.clone()),
            Body::Closed(closed) => Err(closed.unopened()),
            Body::Run(run) => Ok(run.by_time().map_or_else(Vec::new, |order| order.forest.trees.clone())),
        }
    }

    /// Returns the wanted ones of the time and the numeric fields at these places of the order of time. Other columns
    /// are absent.
    pub fn read(&self, places: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        let context = &self.view.context;
        context.counters.add_blocks_read(blocks_of(&places));
        if let Some(segment) = self.view.part.segment() {
            segment.load_places(&places, wanted);
        }
        let count = places.end.min(self.view.rows()).saturating_sub(places.start) as usize;
        let mut columns = match &self.view.part.body {
            Body::Segment(segment) => segment.time_columns(places, &context.layout, wanted)?,
            Body::Closed(closed) => return Err(closed.unopened()),
            Body::Run(run) => {
                let batch = run.time_columns(places, wanted).ok_or_else(no_order)?;
                let mut columns = batch.columns().to_vec();
                columns.resize(context.layout.columns.len(), None);
                columns
            }
        };
        let numeric = context.schema.numeric_fields().into_iter().map(|field| context.layout.field(field));
        for column in numeric.filter(|column| wanted.has(*column)) {
            // Added to the schema after the segment was written.
            let kind = context.layout.columns[column].data_type();
            columns[column].get_or_insert_with(|| arrow_array::new_null_array(kind, count));
        }
        Ok(Batch::new(context.schema.clone(), context.layout.clone(), count, columns)?)
    }

    /// Returns the rows of the part at these places, numbered as in [`PartView::visible`] and [`PartView::read`].
    pub fn rows(&self, places: Range<u32>) -> Result<UInt32Array, StoreError> {
        match &self.view.part.body {
            Body::Segment(segment) => segment.time_rows(places),
            Body::Closed(closed) => Err(closed.unopened()),
            Body::Run(run) => Ok(run.time_rows(places).ok_or_else(no_order)?),
        }
    }
}

fn no_order() -> meridian_model::Invalid {
    meridian_model::Invalid::new("a memory tree without an order of time was asked for it")
}
