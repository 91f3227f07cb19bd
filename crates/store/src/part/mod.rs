//! What is kept: parts, the immutable sorted runs that a collection consists of, and what a reader may ask of one.
//!
//! Start here: a [`Part`] is a memory tree (`run.rs`) or a segment (`segment/`), and a [`PartView`] is what a snapshot sees of it.
//! `dead.rs` has the rows that are dead, `keys.rs` and `objects.rs` find rows by id and by object, `columns.rs` and `ipc.rs`
//! encode values, `cache.rs` keeps blocks.

pub(crate) mod cache;
pub(crate) mod columns;
pub(crate) mod dead;
pub(crate) mod ipc;
pub(crate) mod keys;
pub(crate) mod objects;
pub(crate) mod run;
pub(crate) mod segment;

use crate::collection::stats::Counters;
use crate::error::StoreError;
use crate::part::cache::Block;
use crate::part::dead::DeadRows;
use crate::part::keys::{self, Filter};
use crate::part::objects::{ObjectEntry, object_named};
use crate::part::run::Run;
use crate::part::segment::Segment;
use arrow_array::{ArrayRef, UInt32Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use meridian_index::{CountPyramid, Forest, Key, Pieces, Tree};
use meridian_model::{Batch, Bounds, IdRole, Layout, Projection, Schema, Seq};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Rows of a block. Reads that stay inside one block share its memory; longer ones copy.
pub const CHUNK_ROWS: u32 = 4096;

/// One immutable run of events in order of (key, seq): a memory tree or a segment file.
#[derive(Debug)]
pub(crate) struct Part {
    /// Number in this process, never given twice.
    pub(crate) number: u64,
    pub(crate) rows: u32,
    pub(crate) forest: Forest,
    /// Greatest sequence number of each block.
    pub(crate) chunk_seq_max: Vec<u64>,
    pub(crate) seq_min: u64,
    pub(crate) seq_max: u64,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Run(Box<Run>),
    Segment(Box<Segment>),
}

/// Whether blocks read from disk are kept in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// For the next reader.
    Keep,
    /// A merge reads each block once, and its inputs go when it is done.
    Pass,
}

/// How ids become keys of the sidecars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRule {
    pub(crate) role: IdRole,
    pub(crate) seed: u64,
}

impl KeyRule {
    /// The key of an id as readers see it; `None` if no event of the collection can have it.
    pub(crate) fn key_of(&self, id: &str) -> Option<u64> {
        match self.role {
            IdRole::Given => Some(keys::hash(self.seed, id.as_bytes())),
            IdRole::Made => Seq::from_id(id).ok().map(|seq| seq.0),
        }
    }
}

impl Part {
    /// The least and greatest sequence number of each block, from all of them.
    pub(crate) fn chunk_seq_maxima(seqs: &[u64]) -> Vec<u64> {
        seqs.chunks(CHUNK_ROWS as usize).map(|c| c.iter().copied().max().unwrap_or(0)).collect()
    }

    pub(crate) fn seqs(&self, rows: Range<u32>) -> Result<Vec<u64>, StoreError> {
        match &self.body {
            Body::Run(run) => Ok(run.seqs[rows.start as usize..rows.end as usize].to_vec()),
            Body::Segment(segment) => segment.seqs(rows),
        }
    }

    /// Physical columns of some rows; those that the part was written without are absent.
    pub(crate) fn column(&self, column: usize, rows: Range<u32>, fill: Fill) -> Result<Option<ArrayRef>, StoreError> {
        match &self.body {
            Body::Run(run) => {
                let array = run.batch.columns().get(column).and_then(Option::as_ref);
                Ok(array.map(|a| a.slice(rows.start as usize, (rows.end - rows.start) as usize)))
            }
            Body::Segment(segment) => segment.column(column, rows, fill),
        }
    }

    /// Rows whose key is this one: candidates, since hashes of ids may collide.
    fn rows_of_key(&self, rule: KeyRule, key: u64) -> Result<Vec<u32>, StoreError> {
        match &self.body {
            Body::Run(run) => Ok(run.index(rule).rows_of(key)),
            Body::Segment(segment) => segment.rows_of_key(key),
        }
    }

    /// Which of some keys, by their numbers, the part may have: all of them where it keeps no filter.
    pub(crate) fn may_hold(&self, rule: KeyRule, keys: &[u64], open: &[u32]) -> Result<Vec<u32>, StoreError> {
        let passing = |filter: &Filter| open.iter().copied().filter(|i| filter.may_hold(keys[*i as usize])).collect();
        Ok(match &self.body {
            Body::Run(run) => run.index(rule).filter().map_or_else(|| open.to_vec(), passing),
            Body::Segment(segment) => segment.filter()?.map_or_else(|| open.to_vec(), |filter| passing(&filter)),
        })
    }

    /// All rows that have this id, alive or dead, as (row, seq).
    pub(crate) fn find(&self, rule: KeyRule, layout: &Layout, id: &str) -> Result<Vec<(u32, u64)>, StoreError> {
        let Some(key) = rule.key_of(id) else { return Ok(Vec::new()) };
        self.find_key(rule, layout, key, id)
    }

    /// As [`Part::find`], with the key at hand.
    pub(crate) fn find_key(
        &self,
        rule: KeyRule,
        layout: &Layout,
        key: u64,
        id: &str,
    ) -> Result<Vec<(u32, u64)>, StoreError> {
        if rule.role == IdRole::Made && !(self.seq_min..=self.seq_max).contains(&key) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for row in self.rows_of_key(rule, key)? {
            if row >= self.rows {
                continue;
            }
            let same = match layout.id {
                None => true,
                Some(column) => match self.column(column, row..row + 1, Fill::Keep)? {
                    Some(ids) => {
                        arrow_array::cast::AsArray::as_string_opt::<i32>(&ids).is_some_and(|i| i.value(0) == id)
                    }
                    None => false,
                },
            };
            if same {
                let seq = self.seqs(row..row + 1)?.first().copied().unwrap_or(0);
                found.push((row, seq));
            }
        }
        Ok(found)
    }

    /// The events of an object (by its hash) with their last instant within some times, in order of time.
    pub(crate) fn object_entries(
        &self,
        rule: KeyRule,
        object: u64,
        times: &RangeInclusive<i64>,
    ) -> Result<Vec<ObjectEntry>, StoreError> {
        match &self.body {
            Body::Run(run) => Ok(run.objects(rule).within(object, times).to_vec()),
            Body::Segment(segment) => {
                let mut found = Vec::new();
                if segment.may_hold_object(object)? {
                    for page in segment.object_pages(object, times) {
                        found.extend_from_slice(segment.object_page(page)?.within(object, times));
                    }
                }
                found.retain(|e| e.row < self.rows);
                Ok(found)
            }
        }
    }

    /// The last of an object's events in order of time and number that `wanted` takes.
    pub(crate) fn newest_of_object(
        &self,
        rule: KeyRule,
        object: u64,
        mut wanted: impl FnMut(&ObjectEntry) -> bool,
    ) -> Result<Option<ObjectEntry>, StoreError> {
        let always = i64::MIN..=i64::MAX;
        match &self.body {
            Body::Run(run) => Ok(run.objects(rule).within(object, &always).iter().rev().find(|e| wanted(e)).copied()),
            Body::Segment(segment) => {
                if !segment.may_hold_object(object)? {
                    return Ok(None);
                }
                for page in segment.object_pages(object, &always).rev() {
                    let page = segment.object_page(page)?;
                    let mut entries = page.within(object, &always).iter().rev().filter(|e| e.row < self.rows);
                    if let Some(found) = entries.find(|e| wanted(e)) {
                        return Ok(Some(*found));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Bytes in memory (of a run) or on disk (of a segment).
    pub(crate) fn bytes(&self) -> u64 {
        match &self.body {
            Body::Run(run) => run.bytes + self.forest.bytes() as u64,
            Body::Segment(segment) => segment.file_bytes(),
        }
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        match &self.body {
            Body::Run(run) => Some(run),
            Body::Segment(_) => None,
        }
    }

    pub(crate) fn segment(&self) -> Option<&Segment> {
        match &self.body {
            Body::Run(_) => None,
            Body::Segment(segment) => Some(segment),
        }
    }
}

/// A part as one snapshot sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PartView {
    pub(crate) part: Arc<Part>,
    pub(crate) dead: Arc<DeadRows>,
    pub(crate) seq: Seq,
    pub(crate) context: Arc<Context>,
}

/// What all parts of a snapshot share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) schema: Arc<Schema>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) rule: KeyRule,
    pub(crate) counters: Arc<Counters>,
}

impl PartView {
    /// All rows of a segment by itself, in the schema that it was written in, with keys under this seed.
    pub(crate) fn alone(part: Arc<Part>, seed: u64) -> Option<PartView> {
        let schema = Arc::new(part.segment()?.footer.schema.clone());
        let layout = Arc::new(Layout::of(&schema));
        let rule = KeyRule { role: schema.id, seed };
        let context = Arc::new(Context { schema, layout, rule, counters: Arc::default() });
        Some(PartView { part, dead: Arc::default(), seq: Seq(u64::MAX), context })
    }

    /// Number of rows, dead ones and those newer than the snapshot included.
    pub fn rows(&self) -> u32 {
        self.part.rows
    }

    /// A number that no other part has had since the process began: a key for caches.
    pub fn number(&self) -> u64 {
        self.part.number
    }

    /// The trees over the rows, one per size class, in row order.
    pub fn trees(&self) -> &[Tree] {
        &self.part.forest.trees
    }

    /// The long lines among the rows in pieces, if there are any.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.part.forest.pieces.as_ref()
    }

    /// The box of all rows.
    pub fn bounds(&self) -> Bounds {
        self.part.forest.bounds()
    }

    /// The schema that [`PartView::read`] answers in.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.context.schema
    }

    /// The layout of that schema.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.context.layout
    }

    /// Whether the rows lie in memory, so that reading them costs no disk.
    pub fn in_memory(&self) -> bool {
        self.part.run().is_some()
    }

    /// Columns of some rows, visible or not. Inside one block of [`CHUNK_ROWS`] nothing is copied.
    /// Fields that the part was written without are null.
    pub fn read(&self, rows: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        let rows = rows.start.min(self.part.rows)..rows.end.min(self.part.rows);
        self.context.counters.add_blocks_read(blocks_of(&rows));
        self.columns(rows, wanted, Fill::Keep)
    }

    /// Those of some columns that are kept in smaller pieces than a chunk in this chunk: of them only the rows that are needed
    /// should be read. `None` where there are none.
    pub fn paged(&self, chunk: u32, wanted: &Projection) -> Option<Projection> {
        let segment = self.part.segment()?;
        let mut paged = None;
        for column in wanted.columns().filter(|column| segment.page_rows(chunk, *column) < CHUNK_ROWS) {
            paged.get_or_insert_with(|| Projection::none(&self.context.layout)).add(column);
        }
        paged
    }

    /// Rows of the smallest page of a column, at least one leaf; those of a chunk where it is not kept in pages.
    pub fn page_rows(&self, column: usize) -> u32 {
        let Some(segment) = self.part.segment() else { return CHUNK_ROWS };
        let chunks = 0..self.part.rows.div_ceil(CHUNK_ROWS);
        chunks.map(|chunk| segment.page_rows(chunk, column)).min().unwrap_or(CHUNK_ROWS)
    }

    /// As [`PartView::read`], without pushing out of the cache what readers use.
    pub(crate) fn read_for_merge(&self, rows: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        self.columns(rows, wanted, Fill::Pass)
    }

    fn columns(&self, rows: Range<u32>, wanted: &Projection, fill: Fill) -> Result<Batch, StoreError> {
        let count = rows.len();
        let layout = &self.context.layout;
        let mut columns = vec![None; layout.columns.len()];
        for column in wanted.columns() {
            columns[column] = Some(match self.part.column(column, rows.clone(), fill)? {
                Some(array) => array,
                None => arrow_array::new_null_array(layout.columns[column].data_type(), count),
            });
        }
        Ok(Batch::new(self.context.schema.clone(), layout.clone(), count, columns)?)
    }

    /// Sequence numbers of some rows.
    pub fn seqs(&self, rows: Range<u32>) -> Result<Vec<u64>, StoreError> {
        self.part.seqs(rows.start.min(self.part.rows)..rows.end.min(self.part.rows))
    }

    /// All rows, where they are in memory as one batch with every column: a memory tree.
    pub fn at_hand(&self) -> Option<&Batch> {
        let batch = &self.part.run()?.batch;
        // Fields added since it was written are not in it.
        (batch.layout().columns.len() == self.context.layout.columns.len()).then_some(batch)
    }

    /// As [`PartView::seqs`], where they are in memory.
    pub fn seqs_at_hand(&self, rows: Range<u32>) -> Option<&[u64]> {
        self.part.run()?.seqs.get(rows.start as usize..rows.end as usize)
    }

    /// The keys of some rows, where they are at hand without computing them.
    pub fn keys(&self, rows: Range<u32>) -> Option<&[Key]> {
        self.part.run().map(|run| &run.keys[rows.start as usize..rows.end as usize])
    }

    /// Whether the snapshot is known to see every row of the range; where `false`, ask [`PartView::visible`].
    pub fn all_visible(&self, rows: Range<u32>) -> bool {
        !self.some_newer(&rows) && self.dead.all_alive(rows, self.seq)
    }

    /// Which rows of the range the snapshot sees.
    pub fn visible(&self, rows: Range<u32>) -> Result<BooleanBuffer, StoreError> {
        let count = rows.len();
        let mut seen = BooleanBufferBuilder::new(count);
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

    /// Rows of the range that were replaced or deleted by the time of the snapshot, in order. Where
    /// [`PartView::none_newer`] holds, these are all the rows that the snapshot does not see, so that the count and
    /// sums of a node may be corrected by reading only them.
    pub fn dead_rows(&self, rows: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.dead.range(rows, self.seq)
    }

    /// Whether the range is known to hold no row that is newer than the snapshot.
    pub fn none_newer(&self, rows: Range<u32>) -> bool {
        !self.some_newer(&rows)
    }

    fn some_newer(&self, rows: &Range<u32>) -> bool {
        if self.part.seq_max <= self.seq.0 {
            return false;
        }
        let chunks = (rows.start / CHUNK_ROWS) as usize..rows.end.div_ceil(CHUNK_ROWS) as usize;
        self.part.chunk_seq_max.get(chunks).is_none_or(|c| c.iter().any(|max| *max > self.seq.0))
    }

    /// The time-ordered projection, where the part has one: segments and large memory trees of collections with an
    /// instant. A memory tree makes its own when it is first asked.
    pub fn time_order(&self) -> Option<TimeOrder<'_>> {
        let has = match &self.part.body {
            Body::Segment(segment) => segment.has_time_order(),
            Body::Run(run) => run.by_time().is_some(),
        };
        has.then_some(TimeOrder { view: self })
    }

    /// Counts of all rows (visible or not) per map cell and bin of time, where the part has them: segments and large
    /// memory trees of collections of points. A memory tree makes its own when it is first asked.
    pub fn pyramid(&self) -> Result<Option<Arc<CountPyramid>>, StoreError> {
        match &self.part.body {
            Body::Segment(segment) => segment.pyramid(),
            Body::Run(run) => Ok(run.pyramid()),
        }
    }

    /// Rows that may belong to an object, seen by the snapshot or not, ascending: those whose last instant lies within
    /// some times (microseconds since 1970, ends included; an open end is the greatest number). Found by key, without a
    /// scan. Objects are told apart by a hash here: test the rows. `None` if the collection names no object.
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
        rows.sort_unstable();
        Ok(Some(rows))
    }

    /// The row with this id that the snapshot sees.
    pub fn find_id(&self, id: &str) -> Result<Option<u32>, StoreError> {
        let found = self.part.find(self.context.rule, &self.context.layout, id)?;
        let seen = |(row, seq): &(u32, u64)| *seq <= self.seq.0 && !self.dead.is_dead(*row, self.seq);
        Ok(found.into_iter().find(seen).map(|(row, _)| row))
    }
}

fn blocks_of(rows: &Range<u32>) -> u64 {
    if rows.is_empty() { 0 } else { u64::from((rows.end - 1) / CHUNK_ROWS - rows.start / CHUNK_ROWS) + 1 }
}

/// The rows of a part in order of time: for questions of time alone.
#[derive(Debug, Clone, Copy)]
pub struct TimeOrder<'a> {
    view: &'a PartView,
}

impl TimeOrder<'_> {
    /// The trees over time: one, or none of a part of no rows. Their rows are places in the order of time.
    pub fn trees(&self) -> Result<Vec<Tree>, StoreError> {
        match &self.view.part.body {
            Body::Segment(segment) => Ok(segment.time_forest()?.trees.clone()),
            Body::Run(run) => Ok(run.by_time().map_or_else(Vec::new, |order| order.forest.trees.clone())),
        }
    }

    /// The time and the numeric fields of what stands at some places of the order of time, as far as they are wanted;
    /// the other columns are absent.
    pub fn read(&self, places: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        let context = &self.view.context;
        context.counters.add_blocks_read(blocks_of(&places));
        let count = places.end.min(self.view.rows()).saturating_sub(places.start) as usize;
        let mut columns = match &self.view.part.body {
            Body::Segment(segment) => segment.time_columns(places, &context.layout, wanted)?,
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

    /// The rows of the part that stand at some places: what [`PartView::visible`] and [`PartView::read`] speak of.
    pub fn rows(&self, places: Range<u32>) -> Result<UInt32Array, StoreError> {
        match &self.view.part.body {
            Body::Segment(segment) => segment.time_rows(places),
            Body::Run(run) => Ok(run.time_rows(places).ok_or_else(no_order)?),
        }
    }
}

fn no_order() -> meridian_model::Invalid {
    meridian_model::Invalid::new("a memory tree without an order of time was asked for it")
}

/// Puts the pieces of neighbouring blocks together.
pub(crate) fn join(pieces: Vec<ArrayRef>) -> Result<ArrayRef, String> {
    match pieces.as_slice() {
        [one] => Ok(one.clone()),
        many => {
            let arrays: Vec<&dyn arrow_array::Array> = many.iter().map(|a| a.as_ref()).collect();
            arrow_select::concat::concat(&arrays).map_err(|e| e.to_string())
        }
    }
}

pub(crate) fn array_of(block: Block) -> Result<ArrayRef, String> {
    match block {
        Block::Array(array) => Ok(array),
        _ => Err("a block of another kind".to_owned()),
    }
}
