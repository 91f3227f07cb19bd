//! Merges parts into segments.

use super::cursor::{Cursor, MergedRows, Pick};
use super::runs::RowMaps;
use crate::error::StoreError;
use crate::manifest::ranges::{Range as TimeRange, bin_of, cut};
use crate::manifest::{rows_name, segment_name};
use crate::pace::Pace;
use crate::part::dead::DROPPED;
use crate::part::segment::{SegmentTotals, SegmentWriter, rows_max};
use crate::part::{CHUNK_ROWS, Context, Entry, Part};
use crate::state::Shared;
use meridian_index::Key;
use meridian_model::Schema;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the rows of each time unit of a part, in row order: `(unit, rows)`.
fn stretches(context: &Context, part: &Part) -> Vec<(i64, Range<u32>)> {
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
                // Rows are sorted by class and bucket first, so each bucket is one stretch, and finding them costs one
                // comparison per row.
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

/// Returns the smallest range that holds all events of a segment.
pub(crate) fn range_of(schema: &Schema, part: &Part) -> TimeRange {
    let buckets = part.segment().map_or(&[][..], |segment| &segment.footer.buckets);
    let bins = || buckets.iter().map(|(class, bucket, _)| bin_of(schema, Key::new(*class, *bucket, 0)));
    TimeRange::covering(bins().min().unwrap_or(0), bins().max().unwrap_or(0))
}

/// The result of a merge into segments.
pub(crate) struct MergeOutcome {
    pub(crate) segments: Vec<(u64, TimeRange, SegmentTotals)>,
    pub(crate) maps: RowMaps,
}

/// Merges parts into segments of bounded ranges of time. Uses memory for some blocks of each input, the rows being
/// written, and the state of a writer.
///
/// On an error, the files begun are removed; `stop` ends the work with its own error.
pub(crate) fn merge_to_segments(
    shared: &Shared,
    context: &Arc<Context>,
    inputs: &[Entry],
    floor: Option<u64>,
    (stop, pace): (&AtomicBool, Pace<'_>),
) -> Result<MergeOutcome, StoreError> {
    let mut writing = SegmentsWriter::new(shared, context, inputs, (stop, pace));
    let result = writing.cut_into_segments(Pick::All(floor));
    writing.end(result)
}

/// Separates rows alive at a number from rows dead by then, into segments of the same range of time. Rows dead by the
/// floor are dropped.
pub(crate) fn fold_into_segments(
    shared: &Shared,
    context: &Arc<Context>,
    inputs: &[Entry],
    (floor, at, range): (Option<u64>, u64, TimeRange),
    (stop, pace): (&AtomicBool, Pace<'_>),
) -> Result<MergeOutcome, StoreError> {
    let mut writing = SegmentsWriter::new(shared, context, inputs, (stop, pace));
    let result = writing
        .segments_of(range, Pick::AliveAt(at))
        .and_then(|()| writing.segments_of(range, Pick::DeadBetween(floor, at)));
    writing.end(result)
}

/// Segments being written to disk.
struct SegmentsWriter<'a> {
    shared: &'a Shared,
    context: &'a Arc<Context>,
    inputs: &'a [Entry],
    stretches: Vec<Vec<(i64, Range<u32>)>>,
    stop: &'a AtomicBool,
    pace: Pace<'a>,
    merged: MergeOutcome,
    /// Numbers of all segments begun.
    begun: Vec<u64>,
    /// Number of rows written so far.
    place: u32,
}

impl<'a> SegmentsWriter<'a> {
    fn new(
        shared: &'a Shared,
        context: &'a Arc<Context>,
        inputs: &'a [Entry],
        (stop, pace): (&'a AtomicBool, Pace<'a>),
    ) -> Self {
        // Every row counts as dropped until it is written: rows omitted by the merge need no mark.
        let maps = inputs.iter().map(|e| vec![DROPPED; e.part.rows as usize]).collect();
        let stretches = inputs.iter().map(|e| stretches(context, &e.part)).collect();
        let merged = MergeOutcome { segments: Vec::new(), maps };
        SegmentsWriter { shared, context, inputs, stretches, stop, pace, merged, begun: Vec::new(), place: 0 }
    }

    /// Writes the picked rows, cut by time.
    fn cut_into_segments(&mut self, pick: Pick) -> Result<(), StoreError> {
        let mut bins: BTreeMap<i64, u64> = BTreeMap::new();
        // Counted before anything is read: ranges depend on the distribution of all rows, and files are written once.
        for (bin, rows) in self.stretches.iter().flatten() {
            *bins.entry(*bin).or_default() += rows.len() as u64;
        }
        let bins: Vec<(i64, u64)> = bins.into_iter().collect();
        let ranges = cut(&bins, u64::from(self.shared.options.segment_rows_min));
        ranges.into_iter().try_for_each(|range| self.segments_of(range, pick))
    }

    /// Writes the picked rows that lie in one range of time.
    fn segments_of(&mut self, range: TimeRange, pick: Pick) -> Result<(), StoreError> {
        let context = self.context;
        let rows_max = rows_max(&context.schema, self.shared.options.segment_rows_max);
        let cursors = self.inputs.iter().zip(&self.stretches).map(|(input, stretches)| {
            let rows = stretches.iter().filter(|(bin, _)| range.has(*bin)).map(|(_, rows)| rows.clone());
            Cursor::new(input, context, pick, rows.collect())
        });
        let mut rows = MergedRows::new(cursors.collect())?;
        let mut writer: Option<(u64, SegmentWriter)> = None;
        let room = |open: &Option<(u64, SegmentWriter)>| {
            CHUNK_ROWS - open.as_ref().map_or(0, |(_, writer)| writer.rows() % CHUNK_ROWS)
        };
        while let Some(chunk) = rows.next_piece(room(&writer))? {
            // A store that closes does not wait for a long merge, whose files then become leftovers.
            if self.stop.load(Ordering::Relaxed) {
                return Err(StoreError::Closed);
            }
            // Records where each row went: the map carries over rows that die during the merge.
            for (input, row) in &chunk.sources {
                self.merged.maps[*input][*row as usize] = self.place;
                self.place += 1;
            }
            let (_, open) = match &mut writer {
                Some(open) => open,
                None => {
                    let file = self.shared.number_file();
                    // Noted before the file exists, so that a failure during its creation removes it too.
                    self.begun.push(file);
                    let objects = self.shared.objects.as_ref();
                    let made = SegmentWriter::create(objects, file, &context.schema, context.rule)?;
                    writer.insert((file, made))
                }
            };
            open.push(&chunk.batch, &chunk.keys, &chunk.seqs)?;
            // Full segments end at a chunk's border: a row keeps its chunk and place in all files of its segment.
            if open.rows().is_multiple_of(CHUNK_ROWS)
                && open.rows() + CHUNK_ROWS > rows_max
                && let Some((file, full)) = writer.take()
            {
                self.merged.segments.push((file, range, full.finish()?));
            }
            // Once per chunk or piece: a pause between them holds no lock and no half-written block.
            self.pace.block();
        }
        if let Some((file, last)) = writer {
            self.merged.segments.push((file, range, last.finish()?));
        }
        Ok(())
    }

    /// Makes the names durable, or removes the files begun.
    fn end(self, result: Result<(), StoreError>) -> Result<MergeOutcome, StoreError> {
        match result.and_then(|()| self.shared.sync_objects()) {
            Ok(()) => Ok(self.merged),
            Err(e) => {
                remove_files(self.shared, &self.begun);
                Err(e)
            }
        }
    }
}

/// Removes the files of a merge that no manifest names.
pub(crate) fn discard(shared: &Shared, merged: &MergeOutcome) {
    remove_files(shared, &merged.segments.iter().map(|(file, _, _)| *file).collect::<Vec<_>>());
}

/// Removes the files of segments that no manifest names.
pub(crate) fn remove_files(shared: &Shared, numbers: &[u64]) {
    for name in numbers.iter().flat_map(|number| [segment_name(*number), rows_name(*number)]) {
        let _ = shared.objects.delete(&name);
    }
}

/// Opens the segments written by a merge.
pub(crate) fn open_segments(shared: &Shared, merged: &MergeOutcome) -> Result<Vec<Part>, StoreError> {
    let place = shared.place();
    merged.segments.iter().map(|(file, _, _)| Part::open(&place, *file, None)).collect()
}
