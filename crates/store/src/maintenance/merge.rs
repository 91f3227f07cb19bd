//! Merging parts: memory trees into larger ones, and anything into segments.

use crate::catalog::manifest::{rows_name, segment_name};
use crate::catalog::ranges::{Range as TimeRange, bin_of, cut};
use crate::error::StoreError;
use crate::ingest::partition::{Shared, entry};
use crate::ingest::stage::{Entry, widen};
use crate::maintenance::pace::Pace;
use crate::part::dead::DeadRows;
use crate::part::run;
use crate::part::segment::{Segment, SegmentWriter, Written, rows_max};
use crate::part::{CHUNK_ROWS, Context, PartView};
use meridian_index::{Grid, Key};
use meridian_model::{Batch, Projection, Schema, Seq};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stands for a row that was dropped.
pub(crate) const DROPPED: u32 = u32::MAX;

/// Where the rows of the inputs went: for each input and row its place among all rows of the outputs.
pub(crate) type RowMaps = Vec<Vec<u32>>;

/// Merges memory trees in memory; rows dead by `floor` are dropped. `None` if nothing is left.
pub(crate) fn merge_runs(
    shared: &Shared,
    context: &Context,
    inputs: &[Entry],
    floor: Option<u64>,
) -> Result<Option<Entry>, StoreError> {
    let (merged, maps) = merge_runs_mapped(shared, context, inputs, floor)?;
    Ok(merged.map(|part| {
        let rows = [part.rows];
        let dead = DeadRows::moved(inputs.iter().map(|e| e.dead.as_ref()), &maps, &rows).pop();
        let hidden = DeadRows::moved(inputs.iter().map(|e| e.hidden.as_ref()), &maps, &rows).pop();
        entry(part, dead.unwrap_or_default(), hidden.unwrap_or_default())
    }))
}

/// As [`merge_runs`], with the map of rows instead of the dead.
pub(crate) fn merge_runs_mapped(
    shared: &Shared,
    context: &Context,
    inputs: &[Entry],
    floor: Option<u64>,
) -> Result<(Option<crate::part::Part>, RowMaps), StoreError> {
    let mut rows: Vec<(Key, u64, u32, u32)> = Vec::new();
    let mut batches = Vec::with_capacity(inputs.len());
    for (i, input) in inputs.iter().enumerate() {
        let Some(run) = input.part.run() else { continue };
        batches.push(widen(run.batch.clone(), &context.schema, &context.layout)?);
        let gone = |row: u32| floor.is_some_and(|f| input.dead.death(row).is_some_and(|death| death <= f));
        let all = run.keys.iter().zip(&run.seqs).zip(0u32..).map(|((key, seq), row)| (*key, *seq, i as u32, row));
        if input.dead.count() == 0 {
            rows.extend(all);
        } else {
            rows.extend(all.filter(|(_, _, _, row)| !gone(*row)));
        }
    }
    let mut maps: RowMaps = inputs.iter().map(|e| vec![DROPPED; e.part.rows as usize]).collect();
    if rows.is_empty() {
        return Ok((None, maps));
    }
    // A stable sort finds the sorted stretches and merges them.
    rows.sort();
    for (place, (_, _, input, row)) in rows.iter().enumerate() {
        maps[*input as usize][*row as usize] = place as u32;
    }
    let picks: Vec<(usize, usize)> = rows.iter().map(|(_, _, i, row)| (*i as usize, *row as usize)).collect();
    let sources: Vec<&Batch> = batches.iter().collect();
    let batch = Batch::interleave(&sources, &picks)?;
    let (keys, seqs) = rows.iter().map(|(key, seq, _, _)| (*key, *seq)).unzip();
    run::build(shared.cache.number_part(), batch, keys, seqs).map(|part| (Some(part), maps))
}

/// Rows of each time unit of a part, in row order: `(unit, rows)`.
fn stretches(context: &Context, part: &crate::part::Part) -> Vec<(i64, Range<u32>)> {
    let mut found: Vec<(i64, Range<u32>)> = Vec::new();
    let mut add = |bin: i64, from: u32| {
        if let Some((_, rows)) = found.last_mut() {
            rows.end = from;
        }
        if found.last().is_none_or(|(last, _)| *last != bin) {
            found.push((bin, from..from));
        }
    };
    match (part.run(), part.segment()) {
        (Some(run), _) => {
            let mut last = None;
            for (key, row) in run.keys.iter().zip(0..) {
                let at = (key.class(), key.bucket());
                if last != Some(at) {
                    last = Some(at);
                    add(bin_of(&context.schema, *key), row);
                }
            }
        }
        (_, Some(segment)) => {
            for (class, bucket, row) in &segment.footer.buckets {
                add(bin_of(&context.schema, Key::new(*class, *bucket, 0)), *row);
            }
        }
        _ => {}
    }
    if let Some((_, rows)) = found.last_mut() {
        rows.end = part.rows;
    }
    found
}

/// The least range that holds all events of a segment.
pub(crate) fn range_of(schema: &Schema, part: &crate::part::Part) -> TimeRange {
    let buckets = part.segment().map_or(&[][..], |segment| &segment.footer.buckets);
    let bins = || buckets.iter().map(|(class, bucket, _)| bin_of(schema, Key::new(*class, *bucket, 0)));
    TimeRange::covering(bins().min().unwrap_or(0), bins().max().unwrap_or(0))
}

/// Which rows a merge takes over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick {
    /// All but those that were dead by this number; `None`: all.
    All(Option<u64>),
    /// Those that were alive at this number.
    AliveAt(u64),
    /// Those that were dead by the second number, and not yet by the first.
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

/// What a merge into segments made.
pub(crate) struct Merged {
    pub(crate) segments: Vec<(u64, TimeRange, Written)>,
    pub(crate) maps: RowMaps,
}

/// Merges parts into segments of bounded ranges of time. Memory: a block of each input, and what a writer keeps.
///
/// On an error, files begun are removed; `stop` ends the work with an error of its own.
pub(crate) fn merge_to_segments(
    shared: &Shared,
    context: &Arc<Context>,
    inputs: &[Entry],
    floor: Option<u64>,
    (stop, pace): (&AtomicBool, Pace<'_>),
) -> Result<Merged, StoreError> {
    let mut writing = Writing::new(shared, context, inputs, (stop, pace));
    let result = writing.cut_into_segments(Pick::All(floor));
    writing.end(result)
}

/// Parts what is alive at a number from what is dead by then, into segments of the same range of time. What was dead
/// by the floor is dropped.
pub(crate) fn fold_into_segments(
    shared: &Shared,
    context: &Arc<Context>,
    inputs: &[Entry],
    (floor, at, range): (Option<u64>, u64, TimeRange),
    (stop, pace): (&AtomicBool, Pace<'_>),
) -> Result<Merged, StoreError> {
    let mut writing = Writing::new(shared, context, inputs, (stop, pace));
    let result = writing
        .segments_of(range, Pick::AliveAt(at))
        .and_then(|()| writing.segments_of(range, Pick::DeadBetween(floor, at)));
    writing.end(result)
}

/// Segments on their way to disk.
struct Writing<'a> {
    shared: &'a Shared,
    context: &'a Arc<Context>,
    inputs: &'a [Entry],
    stretches: Vec<Vec<(i64, Range<u32>)>>,
    stop: &'a AtomicBool,
    pace: Pace<'a>,
    dir: PathBuf,
    merged: Merged,
    /// Numbers of all segments begun.
    begun: Vec<u64>,
    /// Rows written so far.
    place: u32,
}

impl<'a> Writing<'a> {
    fn new(
        shared: &'a Shared,
        context: &'a Arc<Context>,
        inputs: &'a [Entry],
        (stop, pace): (&'a AtomicBool, Pace<'a>),
    ) -> Self {
        let maps = inputs.iter().map(|e| vec![DROPPED; e.part.rows as usize]).collect();
        let stretches = inputs.iter().map(|e| stretches(context, &e.part)).collect();
        let merged = Merged { segments: Vec::new(), maps };
        let dir = shared.segments_dir();
        Writing { shared, context, inputs, stretches, stop, pace, dir, merged, begun: Vec::new(), place: 0 }
    }

    /// Writes the rows picked, cut by time.
    fn cut_into_segments(&mut self, pick: Pick) -> Result<(), StoreError> {
        let mut bins: BTreeMap<i64, u64> = BTreeMap::new();
        for (bin, rows) in self.stretches.iter().flatten() {
            *bins.entry(*bin).or_default() += rows.len() as u64;
        }
        let bins: Vec<(i64, u64)> = bins.into_iter().collect();
        let ranges = cut(&bins, u64::from(self.shared.options.segment_rows_min));
        ranges.into_iter().try_for_each(|range| self.segments_of(range, pick))
    }

    /// Writes the rows picked that lie in one range of time.
    fn segments_of(&mut self, range: TimeRange, pick: Pick) -> Result<(), StoreError> {
        let context = self.context;
        let rows_max = rows_max(&context.schema, self.shared.options.segment_rows_max);
        let cursors = self.inputs.iter().zip(&self.stretches).map(|(input, stretches)| {
            let rows = stretches.iter().filter(|(bin, _)| range.has(*bin)).map(|(_, rows)| rows.clone());
            Cursor::new(input, context, pick, rows.collect())
        });
        let mut rows = MergedRows::new(cursors.collect())?;
        let mut writer: Option<(u64, SegmentWriter)> = None;
        while let Some(chunk) = rows.next_chunk()? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(StoreError::Closed);
            }
            for (input, row) in &chunk.sources {
                self.merged.maps[*input][*row as usize] = self.place;
                self.place += 1;
            }
            let (_, open) = match &mut writer {
                Some(open) => open,
                None => {
                    let file = self.shared.number_file();
                    self.begun.push(file);
                    let disk = self.shared.disk.as_ref();
                    let made = SegmentWriter::create(disk, &self.dir, file, &context.schema, context.rule)?;
                    writer.insert((file, made))
                }
            };
            open.push(&chunk.batch, &chunk.keys, &chunk.seqs)?;
            if open.rows() + CHUNK_ROWS > rows_max
                && let Some((file, full)) = writer.take()
            {
                self.merged.segments.push((file, range, full.finish()?));
            }
            self.pace.block();
        }
        if let Some((file, last)) = writer {
            self.merged.segments.push((file, range, last.finish()?));
        }
        Ok(())
    }

    /// Makes the names durable, or clears away what was begun.
    fn end(self, result: Result<(), StoreError>) -> Result<Merged, StoreError> {
        let synced = || self.shared.disk.sync_dir(&self.dir).map_err(StoreError::io("sync", &self.dir));
        match result.and_then(|()| synced()) {
            Ok(()) => Ok(self.merged),
            Err(e) => {
                remove_files(self.shared, &self.begun);
                Err(e)
            }
        }
    }
}

/// Removes the files of segments that no manifest names.
pub(crate) fn remove_files(shared: &Shared, numbers: &[u64]) {
    let dir = shared.segments_dir();
    for name in numbers.iter().flat_map(|number| [segment_name(*number), rows_name(*number)]) {
        let _ = shared.disk.remove(&dir.join(name));
    }
}

/// Opens what a merge wrote.
pub(crate) fn open_segments(shared: &Shared, merged: &Merged) -> Result<Vec<crate::part::Part>, StoreError> {
    let (place, dir) = (shared.place(), shared.segments_dir());
    merged.segments.iter().map(|(file, _, _)| Segment::open(&place, &dir, *file, None)).collect()
}

/// Reads the rows of one input in order, a block at a time.
struct Cursor<'a> {
    input: &'a Entry,
    view: PartView,
    grid: Grid,
    pick: Pick,
    /// Rows still to come, first ones last.
    ranges: Vec<Range<u32>>,
    batch: Batch,
    keys: Vec<Key>,
    seqs: Vec<u64>,
    /// Row in the part of the batch's first.
    first: u32,
    /// Place in the batch.
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(input: &'a Entry, context: &Arc<Context>, pick: Pick, mut ranges: Vec<Range<u32>>) -> Self {
        ranges.reverse();
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
            first: 0,
            at: 0,
        }
    }

    /// Goes to the next row that is not dropped; `true` if that is in a new batch.
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

    /// Reads the next block's worth of rows.
    fn load(&mut self) -> Result<bool, StoreError> {
        let Some(range) = self.ranges.pop() else { return Ok(false) };
        if range.is_empty() {
            return self.load();
        }
        let end = range.end.min((range.start / CHUNK_ROWS + 1) * CHUNK_ROWS);
        if end < range.end {
            self.ranges.push(end..range.end);
        }
        let rows = range.start..end;
        self.batch = self.view.read_for_merge(rows.clone(), &Projection::all(self.view.layout()))?;
        self.seqs = self.view.part.seqs(rows.clone())?;
        self.keys = match self.view.keys(rows.clone()) {
            Some(keys) => keys.to_vec(),
            None => self.grid.keys(&self.batch),
        };
        self.first = rows.start;
        self.at = 0;
        Ok(true)
    }

    fn head(&self) -> Option<(Key, u64)> {
        Some((*self.keys.get(self.at)?, self.seqs[self.at]))
    }
}

/// Rows of several cursors in one order.
struct MergedRows<'a> {
    cursors: Vec<Cursor<'a>>,
    heads: BinaryHeap<Reverse<(Key, u64, usize)>>,
}

/// Rows of one block to be written.
struct Chunk {
    batch: Batch,
    keys: Vec<Key>,
    seqs: Vec<u64>,
    /// Input and row of each.
    sources: Vec<(usize, u32)>,
}

impl<'a> MergedRows<'a> {
    fn new(mut cursors: Vec<Cursor<'a>>) -> Result<Self, StoreError> {
        let mut heads = BinaryHeap::new();
        for (i, cursor) in cursors.iter_mut().enumerate() {
            cursor.settle()?;
            heads.extend(cursor.head().map(|(key, seq)| Reverse((key, seq, i))));
        }
        Ok(MergedRows { cursors, heads })
    }

    /// The next block, or fewer rows at the end.
    fn next_chunk(&mut self) -> Result<Option<Chunk>, StoreError> {
        let rows = CHUNK_ROWS as usize;
        let mut batches: Vec<Batch> = Vec::new();
        // Batch in hand of each cursor, among `batches`.
        let mut held: Vec<Option<usize>> = vec![None; self.cursors.len()];
        let mut picks = Vec::with_capacity(rows);
        let (mut keys, mut seqs) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut sources = Vec::with_capacity(rows);
        while picks.len() < rows {
            let Some(mut head) = self.heads.peek_mut() else { break };
            let Reverse((key, seq, i)) = *head;
            let cursor = &mut self.cursors[i];
            let batch = *held[i].get_or_insert_with(|| {
                batches.push(cursor.batch.clone());
                batches.len() - 1
            });
            picks.push((batch, cursor.at));
            sources.push((i, cursor.first + cursor.at as u32));
            keys.push(key);
            seqs.push(seq);
            cursor.at += 1;
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
