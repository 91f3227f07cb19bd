//! Reads and tests the rows that trees lead to.
//!
//! Every query has the same three steps. Nodes are ruled out, taken whole or descended into
//! ([`crate::candidates::Candidates`]). The remaining rows are tested a run at a time ([`Scan::test`]). The matching
//! rows are read and put in order ([`Scan::read_picks`]). A run never crosses a chunk of the store, so reading it
//! shares the cached block, and deadline and cancellation are checked before each.

mod ahead;
mod keys;
mod picks;
mod weight;

pub(crate) use weight::Matches;

use crate::candidates::{Candidates, Run, chunk_end};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::matched_rows::MatchedRows;
use crate::predicate_bounds::PredicateBounds;
use ahead::ReadAhead;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use meridian_index::Grid;
use meridian_model::filter::Predicate;
use meridian_model::layout::GeometryColumns;
use meridian_model::{Batch, IdRole, Layout, Projection, Schema};
use meridian_store::{CHUNK_ROWS, PartView, Snapshot};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A running query: its snapshot, its predicate, and its cost so far.
pub(crate) struct Scan {
    pub(crate) snapshot: Snapshot,
    pub(crate) layout: Arc<Layout>,
    pub(crate) predicate: Predicate,
    pub(crate) bounds: PredicateBounds,
    pub(crate) control: Control,
    pub(crate) stats: Stats,
    pub(crate) grid: Grid,
    /// Columns that the predicate reads.
    test_columns: Arc<Projection>,
    /// Columns of the predicate, plus the other columns read for each run.
    read_columns: Arc<Projection>,
    /// Whether the predicate tests ids generated from sequence numbers.
    tests_made_ids: bool,
    /// Columns for keys.
    key_columns: Arc<Projection>,
    /// The predicate on pieces of long lines; `None` if it has no spatial condition.
    of_pieces: Option<Predicate>,
    /// The rows of each part that may match by its pieces, computed on first use.
    sieves: Arc<[OnceLock<Option<Arc<BooleanBuffer>>>]>,
    /// The chunks read last, newest at the end: a query reads a chunk leaf by leaf.
    open: Vec<OpenChunk>,
    /// Read-ahead state of each part. See `ahead.rs`.
    ahead: Vec<ReadAhead>,
    /// Whether any part is read from a bucket.
    reads_slowly: bool,
    /// Columns read for the found events.
    expected: Projection,
    /// Whether matching nodes are counted from the trees.
    counts: bool,
}

/// A chunk with the columns read so far.
struct OpenChunk {
    part: u32,
    chunk: u32,
    batch: Batch,
}

/// Max chunks held at a time: few parts overlap in time.
const OPEN_MAX: usize = 4;

impl Scan {
    /// Starts a query on a snapshot. Relevant segments are opened; parts are numbered among these.
    pub(crate) fn new(snapshot: &Snapshot, predicate: &Predicate, control: &Control) -> Result<Scan, QueryError> {
        let all = snapshot.parts.len() as u64;
        let snapshot = snapshot.open_for(predicate)?;
        let schema = snapshot.schema.clone();
        let layout = snapshot.layout.clone();
        let mut test_columns = Projection::none(&layout);
        predicate.add_columns(&layout, &schema, &mut test_columns);
        let mut key_columns = Projection::none(&layout);
        key_columns.add_boxes(&layout);
        key_columns.add_time(&layout, &schema);
        let test_columns = Arc::new(test_columns);
        let left_out = all - snapshot.parts.len() as u64;
        let stats = Stats { parts: all, parts_pruned: left_out, ..Stats::default() };
        let ahead = vec![ReadAhead::NOTHING; snapshot.parts.len()];
        let expected = Projection::none(&layout);
        Ok(Scan {
            grid: Grid::of(&schema),
            layout,
            predicate: predicate.clone(),
            bounds: PredicateBounds::of(predicate),
            control: control.clone(),
            stats,
            read_columns: test_columns.clone(),
            test_columns,
            tests_made_ids: snapshot.schema.id == IdRole::Made && predicate.reads_id(),
            key_columns: Arc::new(key_columns),
            of_pieces: predicate.of_pieces(),
            sieves: snapshot.parts.iter().map(|_| OnceLock::new()).collect(),
            open: Vec::new(),
            ahead,
            // Ids are looked up, and their rows are known without the trees.
            reads_slowly: snapshot.reads_slowly() && predicate.ids().is_none(),
            expected,
            counts: false,
            snapshot,
        })
    }

    /// The rows of a part that the query must read, from `from` on.
    pub(crate) fn candidates(&mut self, part: u32, from: u32) -> Candidates {
        let trees = self.part(part).trees().to_vec();
        self.sought(part, Candidates::new(trees, from))
    }

    /// The rows of one tree of a part that the query must read, from `from` on.
    pub(crate) fn candidates_of_tree(&mut self, part: u32, tree: usize, from: u32) -> Candidates {
        let trees = self.part(part).trees()[tree..tree + 1].to_vec();
        self.sought(part, Candidates::new(trees, from))
    }

    /// The same rows, limited to the bounds of the predicate.
    fn sought(&mut self, part: u32, all: Candidates) -> Candidates {
        all.in_stretches(self.stretches(part)).within(self.bounds).sifted(self.sieve(part))
    }

    /// The rows of a part that may match by the pieces of its long lines, if the predicate has a spatial condition.
    pub(crate) fn sieve(&mut self, part: u32) -> Option<Arc<BooleanBuffer>> {
        let predicate = self.of_pieces.as_ref()?;
        let view = &self.snapshot.parts[part as usize];
        let pieces = view.pieces()?;
        let sift = || {
            // Sifted once for a whole part: its pieces have their own tree, in another order than the rows.
            let (rows, visited) = pieces.sift(&mut |region| predicate.relation(region));
            self.stats.nodes_visited += visited;
            Some(Arc::new(rows))
        };
        self.sieves[part as usize].get_or_init(sift).clone()
    }

    /// Max rows of a part that are tested at a time, and max rows read at a time if all match. If shapes are stored
    /// in pages, one page is tested at a time: it is read without a copy, while joining several pages copies them.
    /// Few large events are read at a time: a chunk of them would take many megabytes.
    pub(crate) fn stretches(&self, part: u32) -> (u32, u32) {
        let view = self.part(part);
        if let Some(few) = view.rows_at_once(&self.read_columns) {
            return (few, few);
        }
        match self.layout.geometry {
            Some(GeometryColumns::Shapes { wkb }) if self.test_columns.has(wkb) => (view.page_rows(wkb), CHUNK_ROWS),
            _ => (CHUNK_ROWS, CHUNK_ROWS),
        }
    }

    /// A scan of the same query for another thread, with its own cost.
    pub(crate) fn fork(&self) -> Scan {
        Scan {
            snapshot: self.snapshot.clone(),
            layout: self.layout.clone(),
            predicate: self.predicate.clone(),
            bounds: self.bounds,
            control: self.control.helping(),
            stats: Stats::default(),
            grid: self.grid,
            test_columns: self.test_columns.clone(),
            read_columns: self.read_columns.clone(),
            tests_made_ids: self.tests_made_ids,
            key_columns: self.key_columns.clone(),
            of_pieces: self.of_pieces.clone(),
            // Shared, so that one thread sifts and the others wait for its result.
            sieves: self.sieves.clone(),
            // Not shared: each thread walks other chunks.
            open: Vec::new(),
            ahead: self.ahead.clone(),
            reads_slowly: self.reads_slowly,
            expected: self.expected.clone(),
            counts: self.counts,
        }
    }

    /// Drops everything that can be read again, and the mark that maintenance yields to.
    pub(crate) fn rest(&mut self) {
        self.open.clear();
        self.snapshot.rest();
    }

    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.snapshot.schema
    }

    pub(crate) fn part(&self, part: u32) -> &PartView {
        &self.snapshot.parts[part as usize]
    }

    pub(crate) fn parts(&self) -> Range<u32> {
        0..self.snapshot.parts.len() as u32
    }

    /// Checks the deadline before a block is read, and charges the block's events at the mean event size of the part.
    pub(crate) fn charge(&mut self, part: u32, rows: &Range<u32>) -> Result<(), QueryError> {
        self.control.check()?;
        let bytes = rows.len() as u64 * self.part(part).event_bytes();
        self.stats.blocks_read += 1;
        self.stats.bytes_read += bytes;
        self.control.read(bytes)
    }

    /// Reads rows of one chunk. The deadline is checked here.
    pub(crate) fn read(&mut self, part: u32, rows: Range<u32>, columns: &Projection) -> Result<Batch, QueryError> {
        self.look_ahead(part, &rows);
        self.charge(part, &rows)?;
        let chunk = rows.start / CHUNK_ROWS;
        // There is no single block to share across chunks, so nothing is kept open.
        if rows.is_empty() || rows.end > chunk_end(rows.start).min(self.part(part).rows()) {
            return Ok(self.part(part).read(rows, columns)?);
        }
        let from = rows.start - chunk * CHUNK_ROWS;
        let Some(paged) = self.part(part).paged(chunk, columns) else {
            return Ok(self.chunk(part, chunk, columns)?.slice_of(from as usize, rows.len(), columns));
        };
        let whole = columns.without(&paged);
        // All columns are paged: reading the chunk would decode pages that no row needs.
        if whole.is_none() {
            return Ok(self.part(part).read(rows, &paged)?);
        }
        let batch = self.chunk(part, chunk, &whole)?.slice_of(from as usize, rows.len(), &whole);
        Ok(batch.joined(self.part(part).read(rows, &paged)?))
    }

    /// A whole chunk, with at least these columns.
    fn chunk(&mut self, part: u32, chunk: u32, columns: &Projection) -> Result<&Batch, QueryError> {
        let first = chunk * CHUNK_ROWS;
        let view = &self.snapshot.parts[part as usize];
        let rows = first..chunk_end(first).min(view.rows());
        let mut open = match self.open.iter().position(|o| o.part == part && o.chunk == chunk) {
            Some(at) => self.open.remove(at),
            None => {
                // Evict the oldest. Bounded, because a chunk of shapes may take many megabytes.
                self.open.drain(..(self.open.len() + 1).saturating_sub(OPEN_MAX));
                OpenChunk { part, chunk, batch: view.read(rows.clone(), columns)? }
            }
        };
        // Only the missing columns are read: the predicate's are often present when the result's are requested.
        if columns.columns().any(|column| open.batch.column(column).is_none()) {
            let mut missing = Projection::none(&self.layout);
            columns.columns().filter(|c| open.batch.column(*c).is_none()).for_each(|column| missing.add(column));
            open.batch = open.batch.joined(view.read(rows, &missing)?);
        }
        self.open.push(open);
        Ok(&self.open[self.open.len() - 1].batch)
    }

    /// The matching rows of a batch, restricted to `open` ones if some are not.
    fn evaluate(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Result<BooleanBuffer, QueryError> {
        let of = |batch: &Batch, open: Option<&BooleanBuffer>| match open {
            Some(open) => self.predicate.evaluate_open(batch, open),
            None => self.predicate.evaluate(batch),
        };
        // Expensive tests go in steps, so that a query with polygons or LIKE can be stopped and preempted in between.
        let (rows, step) = (batch.rows(), self.predicate.rows_at_once());
        if rows <= step {
            return Ok(of(batch, open));
        }
        let mut mask = BooleanBufferBuilder::new(rows);
        for from in (0..rows).step_by(step) {
            self.control.check()?;
            let length = step.min(rows - from);
            let open = open.map(|open| open.slice(from, length));
            mask.append_buffer(&of(&batch.slice(from, length), open.as_ref()));
        }
        Ok(mask.finish())
    }

    /// The rows of a run that match and are visible.
    pub(crate) fn test(&mut self, part: u32, run: &Run) -> Result<MatchedRows, QueryError> {
        let columns = self.test_columns.clone();
        self.test_with(part, run, &columns).map(|(found, _)| found)
    }

    /// The same, with the batch of the run with the predicate's columns and `columns`, if it was read.
    pub(crate) fn test_with(
        &mut self,
        part: u32,
        run: &Run,
        columns: &Projection,
    ) -> Result<(MatchedRows, Option<Batch>), QueryError> {
        self.control.check()?;
        self.look_ahead(part, &run.rows);
        let (mut mask, mut batch) = (None, None);
        let view = self.part(part);
        // In a collection of mode latest most rows are hidden and need not be read.
        if view.none_newer(run.rows.clone()) && view.dead_rows(run.rows.clone()).count() == run.rows.len() {
            return Ok((MatchedRows::Rows(Vec::new()), None));
        }
        if !run.whole {
            let open = self.sieve(part).map(|sieve| sieve.slice(run.rows.start as usize, run.rows.len()));
            let tested = open.as_ref().map_or(run.rows.len(), BooleanBuffer::count_set_bits);
            // The pieces rule out all rows, and none of them has been read.
            if tested == 0 {
                return Ok((MatchedRows::Rows(Vec::new()), None));
            }
            let mut read = self.read(part, run.rows.clone(), columns)?;
            if self.tests_made_ids {
                read = read.with_seqs(self.part(part).seqs(run.rows.clone())?);
            }
            self.stats.events_tested += tested as u64;
            mask = Some(self.evaluate(&read, open.as_ref())?);
            batch = Some(read);
        }
        let view = self.part(part);
        // Visibility last: it may need sequence numbers from disk, and most runs without a match never get here.
        if !view.all_visible(run.rows.clone()) && mask.as_ref().is_none_or(|m| m.has_true()) {
            let visible = view.visible(run.rows.clone())?;
            mask = Some(mask.map_or_else(|| visible.clone(), |m| &m & &visible));
        }
        let found = match mask {
            None => MatchedRows::Range(run.rows.clone()),
            Some(mask) => {
                let count = mask.count_set_bits();
                // A range instead of a list: later steps then slice columns without copying.
                if count == run.rows.len() {
                    MatchedRows::Range(run.rows.clone())
                } else {
                    let mut rows = Vec::with_capacity(count);
                    rows.extend(mask.set_indices().map(|i| run.rows.start + i as u32));
                    MatchedRows::Rows(rows)
                }
            }
        };
        self.stats.events_matched += found.len() as u64;
        Ok((found, batch))
    }

    /// The rows of a run that match and are visible, with the batch of the run; `None` if there are none.
    ///
    /// `columns` are those of [`Scan::columns_with`].
    pub(crate) fn matching(
        &mut self,
        part: u32,
        run: &Run,
        columns: &Projection,
    ) -> Result<Option<(MatchedRows, Batch)>, QueryError> {
        let (rows, batch) = self.test_with(part, run, columns)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let batch = match batch {
            Some(batch) => batch,
            None => self.read(part, run.rows.clone(), columns)?,
        };
        Ok(Some((rows, batch)))
    }

    /// The columns of the predicate and of `more`, which will be read for each run.
    pub(crate) fn columns_with(&mut self, more: &Projection) -> Projection {
        let mut columns = Projection::clone(&self.test_columns);
        columns.union(more);
        self.read_columns = Arc::new(columns.clone());
        columns
    }
}
