//! Reading and testing the rows that trees lead to.
//!
//! Every question has the same three steps: nodes are ruled out, taken whole or descended into
//! ([`crate::candidates::Candidates`]); the rows of what is left are tested a run at a time ([`Scan::test`]); the rows
//! found are read and put in order ([`Scan::read_picks`]). A run never leaves one chunk of the store, so
//! reading it shares the cached block, and deadline and cancellation are checked before each.

use crate::candidates::{Run, chunk_end};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::matched::{Matched, Pick};
use crate::reach::Reach;
use arrow_buffer::BooleanBuffer;
use meridian_index::{Grid, Key, LEAF_ROWS};
use meridian_model::filter::Predicate;
use meridian_model::layout::GeometryColumns;
use meridian_model::{Batch, IdRole, Layout, Projection, Schema, Seq};
use meridian_store::{CHUNK_ROWS, PartView, Snapshot};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A running question: its snapshot, its predicate, and its cost so far.
pub(crate) struct Scan {
    pub(crate) snapshot: Snapshot,
    pub(crate) layout: Arc<Layout>,
    pub(crate) predicate: Predicate,
    pub(crate) reach: Reach,
    pub(crate) control: Control,
    pub(crate) stats: Stats,
    pub(crate) grid: Grid,
    /// Columns that the predicate reads.
    test_columns: Arc<Projection>,
    /// Whether the predicate tests ids that are made of sequence numbers.
    tests_made_ids: bool,
    /// Columns that keys are made of.
    key_columns: Arc<Projection>,
    /// The predicate on pieces of long lines; `None` where it does not concern places.
    of_pieces: Option<Predicate>,
    /// For each part, the rows that may match by its pieces, computed on first use.
    sieves: Arc<[OnceLock<Option<Arc<BooleanBuffer>>>]>,
    /// The chunks read last, the newest at the end: a question reads a chunk leaf by leaf.
    open: Vec<Open>,
}

/// A chunk with the columns read so far.
struct Open {
    part: u32,
    chunk: u32,
    batch: Batch,
}

/// Max ratio of rows read to rows wanted before rows are copied out one chunk at a time.
const SCATTERED: usize = 4;

/// Max chunks held at a time: few parts overlap in time.
const OPEN_MAX: usize = 4;

impl Scan {
    pub(crate) fn new(snapshot: &Snapshot, predicate: &Predicate, control: &Control) -> Scan {
        let schema = snapshot.schema.clone();
        let layout = snapshot.layout.clone();
        let mut test_columns = Projection::none(&layout);
        predicate.add_columns(&layout, &schema, &mut test_columns);
        let mut key_columns = Projection::none(&layout);
        key_columns.add_boxes(&layout);
        key_columns.add_time(&layout, &schema);
        let stats = Stats { parts: snapshot.parts.len() as u64, ..Stats::default() };
        Scan {
            snapshot: snapshot.clone(),
            grid: Grid::of(&schema),
            layout,
            predicate: predicate.clone(),
            reach: Reach::of(predicate),
            control: control.clone(),
            stats,
            test_columns: Arc::new(test_columns),
            tests_made_ids: snapshot.schema.id == IdRole::Made && predicate.reads_id(),
            key_columns: Arc::new(key_columns),
            of_pieces: predicate.of_pieces(),
            sieves: snapshot.parts.iter().map(|_| OnceLock::new()).collect(),
            open: Vec::new(),
        }
    }

    /// The rows of a part that may match by the pieces of its long lines, where the predicate concerns places.
    pub(crate) fn sieve(&mut self, part: u32) -> Option<Arc<BooleanBuffer>> {
        let predicate = self.of_pieces.as_ref()?;
        let view = &self.snapshot.parts[part as usize];
        let pieces = view.pieces()?;
        let sift = || {
            // Sifted once for a whole part: its pieces have a tree of their own, in another order than the rows.
            let (rows, visited) = pieces.sift(&mut |region| predicate.relation(region));
            self.stats.nodes_visited += visited;
            Some(Arc::new(rows))
        };
        self.sieves[part as usize].get_or_init(sift).clone()
    }

    /// Max rows of a part that are tested at a time. Where shapes are stored in pages that is one page: it is read without
    /// a copy, while joining several pages copies them.
    pub(crate) fn stretch(&self, part: u32) -> u32 {
        match self.layout.geometry {
            Some(GeometryColumns::Shapes { wkb }) if self.test_columns.has(wkb) => self.part(part).page_rows(wkb),
            _ => CHUNK_ROWS,
        }
    }

    /// A scan of the same question for another thread, with its own cost.
    pub(crate) fn fork(&self) -> Scan {
        Scan {
            snapshot: self.snapshot.clone(),
            layout: self.layout.clone(),
            predicate: self.predicate.clone(),
            reach: self.reach,
            control: self.control.clone(),
            stats: Stats::default(),
            grid: self.grid,
            test_columns: self.test_columns.clone(),
            tests_made_ids: self.tests_made_ids,
            key_columns: self.key_columns.clone(),
            of_pieces: self.of_pieces.clone(),
            // Shared, so that of several threads one sifts and the others wait for its result.
            sieves: self.sieves.clone(),
            // Not shared: each thread walks other chunks.
            open: Vec::new(),
        }
    }

    /// Drops what can be read again, and the mark that maintenance yields to.
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

    /// Reads rows of one chunk. The deadline is checked here.
    pub(crate) fn read(&mut self, part: u32, rows: Range<u32>, columns: &Projection) -> Result<Batch, QueryError> {
        self.control.check()?;
        self.stats.blocks_read += 1;
        let chunk = rows.start / CHUNK_ROWS;
        // Across chunks there is no single block to share, so nothing is kept open.
        if rows.is_empty() || rows.end > chunk_end(rows.start).min(self.part(part).rows()) {
            return Ok(self.part(part).read(rows, columns)?);
        }
        let from = rows.start - chunk * CHUNK_ROWS;
        let Some(paged) = self.part(part).paged(chunk, columns) else {
            return Ok(self.chunk(part, chunk, columns)?.slice_of(from as usize, rows.len(), columns));
        };
        let whole = columns.without(&paged);
        // All columns are paged: reading the chunk would decode pages that nobody needs.
        if whole.is_none() {
            return Ok(self.part(part).read(rows, &paged)?);
        }
        let batch = self.chunk(part, chunk, &whole)?.slice_of(from as usize, rows.len(), &whole);
        Ok(batch.joined(self.part(part).read(rows, &paged)?))
    }

    /// A whole chunk, with these columns at least.
    fn chunk(&mut self, part: u32, chunk: u32, columns: &Projection) -> Result<&Batch, QueryError> {
        let first = chunk * CHUNK_ROWS;
        let view = &self.snapshot.parts[part as usize];
        let rows = first..chunk_end(first).min(view.rows());
        let mut open = match self.open.iter().position(|o| o.part == part && o.chunk == chunk) {
            Some(at) => self.open.remove(at),
            None => {
                // The oldest go. Bounded, because a chunk of shapes may take many megabytes.
                self.open.drain(..(self.open.len() + 1).saturating_sub(OPEN_MAX));
                Open { part, chunk, batch: view.read(rows.clone(), columns)? }
            }
        };
        // Only the missing columns are read: the predicate's are often there already when the result's are wanted.
        if columns.columns().any(|column| open.batch.column(column).is_none()) {
            let mut missing = Projection::none(&self.layout);
            columns.columns().filter(|c| open.batch.column(*c).is_none()).for_each(|column| missing.add(column));
            open.batch = open.batch.joined(view.read(rows, &missing)?);
        }
        self.open.push(open);
        Ok(&self.open[self.open.len() - 1].batch)
    }

    /// The rows of a run that match and are visible.
    pub(crate) fn test(&mut self, part: u32, run: &Run) -> Result<Matched, QueryError> {
        let columns = self.test_columns.clone();
        self.test_with(part, run, &columns).map(|(found, _)| found)
    }

    /// The same, and the batch of the run with the predicate's columns and `columns`, if it was read.
    pub(crate) fn test_with(
        &mut self,
        part: u32,
        run: &Run,
        columns: &Projection,
    ) -> Result<(Matched, Option<Batch>), QueryError> {
        self.control.check()?;
        let (mut mask, mut batch) = (None, None);
        let view = self.part(part);
        // In a collection of mode latest most rows are hidden and need not be read.
        if view.none_newer(run.rows.clone()) && view.dead_rows(run.rows.clone()).count() == run.rows.len() {
            return Ok((Matched::Rows(Vec::new()), None));
        }
        if !run.whole {
            let open = self.sieve(part).map(|sieve| sieve.slice(run.rows.start as usize, run.rows.len()));
            let tested = open.as_ref().map_or(run.rows.len(), BooleanBuffer::count_set_bits);
            // The pieces rule out all rows, and none of them has been read.
            if tested == 0 {
                return Ok((Matched::Rows(Vec::new()), None));
            }
            let mut read = self.read(part, run.rows.clone(), columns)?;
            if self.tests_made_ids {
                read = read.with_seqs(self.part(part).seqs(run.rows.clone())?);
            }
            self.stats.events_tested += tested as u64;
            mask = Some(match open {
                Some(open) => self.predicate.evaluate_open(&read, &open),
                None => self.predicate.evaluate(&read),
            });
            batch = Some(read);
        }
        let view = self.part(part);
        // Visibility last: it may need sequence numbers from disk, and most runs without a match never get here.
        if !view.all_visible(run.rows.clone()) && mask.as_ref().is_none_or(|m| m.has_true()) {
            let visible = view.visible(run.rows.clone())?;
            mask = Some(mask.map_or_else(|| visible.clone(), |m| &m & &visible));
        }
        let found = match mask {
            None => Matched::Range(run.rows.clone()),
            Some(mask) => {
                let count = mask.count_set_bits();
                // A range instead of a list: later steps then slice columns and copy nothing.
                if count == run.rows.len() {
                    Matched::Range(run.rows.clone())
                } else {
                    let mut rows = Vec::with_capacity(count);
                    rows.extend(mask.set_indices().map(|i| run.rows.start + i as u32));
                    Matched::Rows(rows)
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
    ) -> Result<Option<(Matched, Batch)>, QueryError> {
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

    /// The columns of the predicate and of `more`.
    pub(crate) fn columns_with(&self, more: &Projection) -> Projection {
        let mut columns = Projection::clone(&self.test_columns);
        columns.union(more);
        columns
    }

    /// What keys, boxes and times are made of.
    pub(crate) fn key_columns(&self) -> &Arc<Projection> {
        &self.key_columns
    }

    /// Sequence numbers of rows found.
    pub(crate) fn seqs(&self, part: u32, rows: &Matched) -> Result<Vec<u64>, QueryError> {
        // One read over the span: sequence numbers are one block a chunk.
        let span = rows.span();
        let all = self.part(part).seqs(span.clone())?;
        Ok(match rows {
            Matched::Range(_) => all,
            Matched::Rows(rows) => rows.iter().map(|r| all[(r - span.start) as usize]).collect(),
        })
    }

    /// Keys of rows found.
    pub(crate) fn keys(&mut self, part: u32, rows: &Matched) -> Result<Vec<Key>, QueryError> {
        let span = rows.span();
        // Memory trees keep their keys; those of segments are computed from the events.
        if let Some(keys) = self.part(part).keys(span.clone()) {
            return Ok(rows.iter().map(|r| keys[(r - span.start) as usize]).collect());
        }
        let columns = self.key_columns.clone();
        let batch = self.read(part, span.clone(), &columns)?;
        Ok(rows.iter().map(|r| self.grid.key(&batch.bounds((r - span.start) as usize))).collect())
    }

    /// Keys of events, in the order given.
    pub(crate) fn keys_of(&mut self, picks: &[Pick]) -> Result<Vec<Key>, QueryError> {
        let columns = self.key_columns.clone();
        let batch = self.read_picks(picks, &columns)?;
        Ok((0..picks.len()).map(|row| self.grid.key(&batch.bounds(row))).collect())
    }

    /// Key and sequence number of one row.
    pub(crate) fn place_of(&mut self, part: u32, row: u32) -> Result<(Key, Seq), QueryError> {
        let one = Matched::Range(row..row + 1);
        let (keys, seqs) = (self.keys(part, &one)?, self.seqs(part, &one)?);
        match (keys.first(), seqs.first()) {
            (Some(&key), Some(&seq)) => Ok((key, Seq(seq))),
            _ => Err(meridian_model::Invalid::new("a row that was counted could not be read").into()),
        }
    }

    /// The part and row of the event with this id.
    pub(crate) fn find(&self, id: &str) -> Result<Option<(u32, u32)>, QueryError> {
        for part in self.parts() {
            if let Some(row) = self.part(part).find_id(id)? {
                return Ok(Some((part, row)));
            }
        }
        Ok(None)
    }

    /// The first row of a part that stands after a place in the order of the collection.
    pub(crate) fn seek(&mut self, part: u32, after: (Key, Seq)) -> Result<u32, QueryError> {
        // A tree holds the rows of one size class, which is the key's highest part: only one tree needs a search.
        let class = after.0.class();
        let (mut low, mut high) = (0, 0);
        for tree in self.part(part).trees() {
            match tree.class().cmp(&class) {
                std::cmp::Ordering::Less => (low, high) = (tree.all_rows().end, tree.all_rows().end),
                std::cmp::Ordering::Equal => (low, high) = (tree.all_rows().start, tree.all_rows().end),
                std::cmp::Ordering::Greater => break,
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            // Each probe reads one row, some twenty in all, and only once per part and page.
            if self.place_of(part, middle)? <= after {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Reads events in the order given.
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

    /// Reads events in the order given: each stretch of `grain` rows in use once, over the rows wanted of it.
    fn gather(&mut self, picks: &[Pick], columns: &Projection, grain: u32) -> Result<Batch, QueryError> {
        let stretch_of = |pick: &Pick| (pick.part, pick.row / grain);
        let mut numbers: HashMap<(u32, u32), usize> = HashMap::new();
        let mut spans: Vec<(u32, Range<u32>)> = Vec::new();
        let mut runs = Vec::new();
        for run in picks.chunk_by(|a, b| stretch_of(a) == stretch_of(b)) {
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
        // A batch may keep alive the whole chunk that it is a slice of. Where few rows of many chunks are wanted, as in a
        // sorted answer, they are copied out at once: one chunk is held at a time instead of all.
        let scattered = spans.iter().map(|(_, span)| span.len()).sum::<usize>() > SCATTERED * picks.len();
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
            // The usual case of a stream: rows of one chunk, often all of a stretch.
            if batch.rows() == picks.len() && picks.is_sorted_by(|a, b| a.row < b.row) {
                return Ok(batch.clone());
            }
            return Ok(batch.take(&picks.iter().map(|pick| pick.row - span.start).collect::<Vec<_>>()));
        }
        Ok(Batch::interleave(&batches.iter().collect::<Vec<_>>(), &places)?)
    }
}
