//! Reads rows of several parts in one order, a block of each at a time.

use crate::error::StoreError;
use crate::part::rows::{CHUNK_ROWS, slice_bytes};
use crate::part::{Context, Entry, PartView};
use meridian_index::{Grid, Key, LEAF_ROWS};
use meridian_model::{Batch, Projection, Seq};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

/// Target bytes that an input keeps in memory.
const LOAD_BYTES: u64 = 4 << 20;
/// Approximate bytes of rows assembled at a time: 4,096 large events could take a gigabyte.
const PIECE_BYTES: usize = 8 << 20;

/// The rows that a merge copies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick {
    /// All rows except those dead by this number; `None` for all.
    All(Option<u64>),
    /// Rows alive at this number.
    AliveAt(u64),
    /// Rows dead by the second number, but not by the first.
    DeadBetween(Option<u64>, u64),
}

impl Pick {
    fn takes(self, death: Option<u64>) -> bool {
        match self {
            Pick::All(floor) => floor.is_none_or(|floor| death.is_none_or(|death| death > floor)),
            Pick::AliveAt(seq) => death.is_none_or(|death| death > seq),
            Pick::DeadBetween(floor, seq) => {
                death.is_some_and(|death| death <= seq && floor.is_none_or(|floor| death > floor))
            }
        }
    }
}

/// Reads the rows of one input in order, a block at a time.
pub(super) struct Cursor<'a> {
    input: &'a Entry,
    view: PartView,
    grid: Grid,
    pick: Pick,
    /// Ranges of rows still to come, in reverse order.
    ranges: Vec<Range<u32>>,
    batch: Batch,
    keys: Vec<Key>,
    seqs: Vec<u64>,
    /// Mean bytes of a row of the batch.
    row_bytes: usize,
    /// Number of the batch's first row within the part.
    first: u32,
    /// Index of the current row in the batch.
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(input: &'a Entry, context: &Arc<Context>, pick: Pick, mut ranges: Vec<Range<u32>>) -> Self {
        ranges.reverse();
        // Shows all rows, including dead ones: `Pick` decides which are taken, not a snapshot.
        let view = PartView {
            part: input.part.clone(),
            dead: input.dead.clone(),
            seq: Seq(u64::MAX),
            context: context.clone(),
        };
        Cursor {
            input,
            view,
            grid: Grid::of(&context.schema),
            pick,
            ranges,
            batch: Batch::empty(context.schema.clone()),
            keys: Vec::new(),
            seqs: Vec::new(),
            row_bytes: 0,
            first: 0,
            at: 0,
        }
    }

    /// Moves to the next row that is not dropped; returns true if that is in a new batch.
    fn settle(&mut self) -> Result<bool, StoreError> {
        let mut fresh = false;
        loop {
            while self.at < self.keys.len() {
                let row = self.first + self.at as u32;
                if self.pick.takes(self.input.dead.death(row)) {
                    return Ok(fresh);
                }
                self.at += 1;
            }
            if !self.load()? {
                return Ok(fresh);
            }
            fresh = true;
        }
    }

    /// Reads the next block of rows; for large events only some pages of it.
    fn load(&mut self) -> Result<bool, StoreError> {
        let Some(range) = self.ranges.pop() else { return Ok(false) };
        if range.is_empty() {
            return self.load();
        }
        // Reads end at block borders, so nothing has to be concatenated.
        let chunk = range.start / CHUNK_ROWS;
        let border = (chunk + 1) * CHUNK_ROWS;
        let loads = self.view.chunk_bytes(chunk).div_ceil(LOAD_BYTES);
        let held = u64::from(border.min(self.view.rows()) - chunk * CHUNK_ROWS);
        let step = match held.checked_div(loads) {
            // A power of two of rows, so that reads end where pages do.
            Some(rows) if loads > 1 => (1 << rows.max(1).ilog2()).max(LEAF_ROWS as u32),
            _ => CHUNK_ROWS,
        };
        let end = range.end.min(border).min((range.start / step + 1) * step);
        if end < range.end {
            self.ranges.push(end..range.end);
        }
        let rows = range.start..end;
        self.batch = self.view.read_for_merge(rows.clone(), &Projection::all(self.view.layout()))?;
        self.seqs = self.view.part.seqs(rows.clone())?;
        self.keys = match self.view.keys(rows.clone()) {
            Some(keys) => keys.to_vec(),
            // Segments store no keys of the grid: they follow from the events.
            None => self.grid.keys(&self.batch),
        };
        self.row_bytes = self.batch.columns().iter().flatten().map(slice_bytes).sum::<usize>() / rows.len().max(1);
        self.first = rows.start;
        self.at = 0;
        Ok(true)
    }

    fn head(&self) -> Option<(Key, u64)> {
        Some((*self.keys.get(self.at)?, self.seqs[self.at]))
    }
}

/// Rows of several cursors, merged in one order.
pub(super) struct MergedRows<'a> {
    cursors: Vec<Cursor<'a>>,
    heads: BinaryHeap<Reverse<(Key, u64, usize)>>,
}

/// Rows to be written: a block or a piece of one.
pub(super) struct Chunk {
    pub(super) batch: Batch,
    pub(super) keys: Vec<Key>,
    pub(super) seqs: Vec<u64>,
    /// Input and row number of each.
    pub(super) sources: Vec<(usize, u32)>,
}

impl<'a> MergedRows<'a> {
    pub(super) fn new(mut cursors: Vec<Cursor<'a>>) -> Result<Self, StoreError> {
        let mut heads = BinaryHeap::new();
        // The input's number breaks ties in the heap, so the order of a merge is deterministic.
        for (i, cursor) in cursors.iter_mut().enumerate() {
            cursor.settle()?;
            heads.extend(cursor.head().map(|(key, seq)| Reverse((key, seq, i))));
        }
        Ok(MergedRows { cursors, heads })
    }

    /// Returns the next rows, at most `room`; fewer if they are large or the last ones. Whole leaves, except the last.
    pub(super) fn next_piece(&mut self, room: u32) -> Result<Option<Chunk>, StoreError> {
        let (rows, mut bytes) = (room as usize, 0);
        let mut batches: Vec<Batch> = Vec::new();
        // Current batch of each cursor, among `batches`.
        let mut held: Vec<Option<usize>> = vec![None; self.cursors.len()];
        let mut picks = Vec::with_capacity(rows);
        let (mut keys, mut seqs) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut sources = Vec::with_capacity(rows);
        // The heap holds the next row of each input. Replacing its head in place costs one sift, not two.
        while picks.len() < rows && (bytes < PIECE_BYTES || !picks.len().is_multiple_of(LEAF_ROWS)) {
            let Some(mut head) = self.heads.peek_mut() else { break };
            let Reverse((key, seq, i)) = *head;
            let cursor = &mut self.cursors[i];
            let batch = *held[i].get_or_insert_with(|| {
                batches.push(cursor.batch.clone());
                batches.len() - 1
            });
            picks.push((batch, cursor.at));
            bytes += cursor.row_bytes;
            sources.push((i, cursor.first + cursor.at as u32));
            keys.push(key);
            seqs.push(seq);
            cursor.at += 1;
            // The cursor has replaced its batch; rows already picked keep the old one alive through `batches`.
            if cursor.settle()? {
                held[i] = None;
            }
            match cursor.head() {
                Some((key, seq)) => *head = Reverse((key, seq, i)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(head);
                }
            }
        }
        if picks.is_empty() {
            return Ok(None);
        }
        let parts: Vec<&Batch> = batches.iter().collect();
        let batch = Batch::interleave(&parts, &picks)?;
        Ok(Some(Chunk { batch, keys, seqs, sources }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::{ManualClock, MemoryDisk, Seams, SeededRandom};
    use crate::{Options, Settings, Store, Write};
    use meridian_model::builder::Value;
    use meridian_model::{BatchBuilder, Field, FieldColumn, FieldType, IdRole, Schema};

    const EVENTS: usize = 200;
    const BYTES: usize = 50_000;

    fn note(id: usize) -> String {
        format!("{id} {}", "x".repeat(BYTES))
    }

    #[test]
    fn large_events_are_merged_in_pieces() {
        let seams = Seams {
            disk: Arc::new(MemoryDisk::new()),
            clock: Arc::new(ManualClock::new(0)),
            random: Arc::new(SeededRandom::new(1)),
        };
        let store = Store::open(Options { background: false, ..Options::at("/data") }, seams).unwrap();
        let field = Field { name: "note".into(), kind: FieldType::Text, required: true, title: None };
        let schema = Schema { fields: vec![field], id: IdRole::Given, ..Schema::default() };
        let c = store.create("t", "c", schema, Settings::default()).unwrap();
        for round in 0..4 {
            let mut builder = BatchBuilder::new(c.schema());
            for id in round * EVENTS..(round + 1) * EVENTS {
                builder.set_id(id.to_string()).unwrap();
                builder.set(0, Value::Text(note(id))).unwrap();
                builder.end_event().unwrap();
            }
            c.write(Write::new(builder.finish().unwrap())).unwrap();
            c.flush().unwrap();
        }
        let (inputs, context) = {
            let core = c.core.lock();
            (core.entries.clone(), core.context.clone())
        };
        let cursors =
            inputs.iter().map(|e| Cursor::new(e, &context, Pick::All(None), std::iter::once(0..e.part.rows).collect()));
        let (mut rows, mut left) = (MergedRows::new(cursors.collect()).unwrap(), 4 * EVENTS);
        assert_eq!(rows.cursors.len(), 4);
        while let Some(piece) = rows.next_piece(CHUNK_ROWS).unwrap() {
            left -= piece.seqs.len();
            assert!(piece.batch.bytes() < PIECE_BYTES + (LEAF_ROWS + 1) * BYTES, "{}", piece.batch.bytes());
            assert!(left == 0 || piece.seqs.len().is_multiple_of(LEAF_ROWS));
            // One load plus the rest of the previous one.
            assert!(rows.cursors.iter().all(|cursor| cursor.keys.len() <= LEAF_ROWS * 2));
        }
        assert_eq!(left, 0);
        assert!(c.maintain_segments().unwrap());
        assert_eq!(c.core.lock().entries.len(), 1);
        assert_eq!(store.check(), []);
        let snapshot = c.snapshot();
        for id in [0, 63, 64, 257, 4 * EVENTS - 1] {
            let (part, row) = snapshot.find(&id.to_string()).unwrap().unwrap();
            let found = part.read(row..row + 1, &Projection::all(part.layout())).unwrap();
            let Some(FieldColumn::Text(notes)) = found.field(0) else { panic!("not text") };
            assert_eq!(notes.value(0), note(id));
        }
    }
}
