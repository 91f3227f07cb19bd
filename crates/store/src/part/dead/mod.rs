//! Dead rows: the rows of a part that a reader does not see, and the write that killed each.

mod codec;

use crate::part::rows::CHUNK_ROWS;
use meridian_model::Seq;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The placeholder for a row that a merge dropped.
pub(crate) const DROPPED: u32 = u32::MAX;
/// Min number of rows that die at once to be kept as a bitmap.
const LAYER_ROWS_MIN: u64 = 64;
/// The end of a permanent death.
const FOR_GOOD: u64 = u64::MAX;

/// A row that is dead from one write on, until another revives it (in the view of mode `latest`), or permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DeadInterval {
    row: u32,
    from: u64,
    until: u64,
}

/// The dead rows of one part, each with the number of the write that killed it.
///
/// A value never changes once readers see it: a writer changes a clone. Clones are cheap, since rows are kept by chunk
/// and chunks are shared. Rows that died together cost at most a bit each. So do rows that died so long ago that no
/// snapshot distinguishes their deaths ([`DeadRows::settle`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct DeadRows {
    /// Single deaths in order, by chunk of [`CHUNK_ROWS`] rows; missing chunks at the end are empty.
    chunks: Vec<Option<Arc<Vec<DeadInterval>>>>,
    /// Rows that died together, by the number of the write.
    layers: BTreeMap<u64, Arc<RoaringBitmap>>,
    /// Number of rows that are dead now.
    count: u64,
    /// Number of the last write that changed anything here.
    last: u64,
}

impl DeadInterval {
    /// Returns true if all snapshots from `floor` on agree on this death: either all see it, or none does.
    fn is_settled(&self, floor: u64) -> bool {
        self.from <= floor && (self.until == FOR_GOOD || self.until <= floor)
    }

    /// Returns true if a snapshot finds the row dead.
    fn holds(&self, seq: Seq) -> bool {
        self.from <= seq.0 && (self.until == FOR_GOOD || seq.0 < self.until)
    }
}

impl DeadRows {
    /// Returns the number of rows that are dead now.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of the last write that changed anything here.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of rows that died up to `last` and are dead now.
    pub(crate) fn count_by(&self, last: u64) -> u64 {
        if self.last <= last {
            return self.count;
        }
        let layers: u64 = self.layers.range(..=last).map(|(_, rows)| rows.len()).sum();
        layers + self.singles().filter(|d| d.from <= last && d.until == FOR_GOOD).count() as u64
    }

    /// Marks a row dead from `seq` on. A row already dead keeps its first death. Returns true if it was alive.
    pub(crate) fn kill(&mut self, row: u32, seq: u64) -> bool {
        if self.death(row).is_some() {
            return false;
        }
        self.insert(DeadInterval { row, from: seq, until: FOR_GOOD });
        self.count += 1;
        true
    }

    /// Marks rows dead from `seq` on. Returns how many were alive.
    pub(crate) fn kill_all(&mut self, mut rows: RoaringBitmap, seq: u64) -> u64 {
        // A bitmap has a fixed cost at each lookup; a few rows are cheaper in the sorted lists of their chunks.
        if rows.len() < LAYER_ROWS_MIN {
            return rows.iter().map(|row| u64::from(self.kill(row, seq))).sum();
        }
        // Rows that are already dead keep the number of their death: an older snapshot must not see them again.
        rows = self.alive_of(rows);
        let killed = rows.len();
        if killed > 0 {
            *Arc::make_mut(self.layers.entry(seq).or_default()) |= rows;
            self.count += killed;
            self.last = self.last.max(seq);
        }
        killed
    }

    /// Returns the rows among these that are not dead now.
    pub(crate) fn alive_of(&self, mut rows: RoaringBitmap) -> RoaringBitmap {
        self.layers.values().for_each(|layer| rows -= layer.as_ref());
        if let (Some(first), Some(last)) = (rows.min(), rows.max()) {
            for death in self.singles_in(first..last.saturating_add(1)).filter(|d| d.until == FOR_GOOD) {
                rows.remove(death.row);
            }
        }
        rows
    }

    /// Revives a row from `seq` on. Returns true if it was dead.
    pub(crate) fn revive(&mut self, row: u32, seq: u64) -> bool {
        let layer = self.layers.iter_mut().find(|(_, rows)| rows.contains(row));
        if let Some((&from, rows)) = layer {
            let rows = Arc::make_mut(rows);
            rows.remove(row);
            if rows.is_empty() {
                self.layers.remove(&from);
            }
            self.insert(DeadInterval { row, from, until: seq });
        } else {
            let Some(chunk) = self.chunks.get_mut((row / CHUNK_ROWS) as usize).and_then(Option::as_mut) else {
                return false;
            };
            let Some(at) = chunk.iter().position(|d| d.row == row && d.until == FOR_GOOD) else { return false };
            Arc::make_mut(chunk)[at].until = seq;
        }
        self.last = self.last.max(seq);
        self.count -= 1;
        true
    }

    fn insert(&mut self, death: DeadInterval) {
        // Killed and revived by the same write: no reader saw the death.
        if death.from >= death.until {
            return;
        }
        let chunk = (death.row / CHUNK_ROWS) as usize;
        if self.chunks.len() <= chunk {
            self.chunks.resize(chunk + 1, None);
        }
        let deaths = Arc::make_mut(self.chunks[chunk].get_or_insert_default());
        let at = deaths.partition_point(|d| *d < death);
        deaths.insert(at, death);
        self.last = self.last.max(if death.until == FOR_GOOD { death.from } else { death.until });
    }

    /// Returns when a row died, if it is dead now.
    pub(crate) fn death(&self, row: u32) -> Option<u64> {
        let single = self.singles_in(row..row + 1).find(|d| d.until == FOR_GOOD).map(|d| d.from);
        single.or_else(|| self.layers.iter().find(|(_, rows)| rows.contains(row)).map(|(seq, _)| *seq))
    }

    /// Returns true if a row is dead for a snapshot.
    pub(crate) fn is_dead(&self, row: u32, seq: Seq) -> bool {
        !self.all_alive(row..row + 1, seq)
    }

    /// Returns the rows of a range that are dead for a snapshot, in order.
    pub(crate) fn range(&self, rows: Range<u32>, seq: Seq) -> impl Iterator<Item = u32> + '_ {
        // The common case, a part without dead rows, costs nothing.
        let chunks = if self.is_empty() { 0..0 } else { rows.start / CHUNK_ROWS..rows.end.div_ceil(CHUNK_ROWS) };
        chunks.flat_map(move |chunk| {
            let first = chunk * CHUNK_ROWS;
            let within = rows.start.max(first)..rows.end.min(first.saturating_add(CHUNK_ROWS));
            let singles = self.singles_in(within.clone()).filter(|d| d.holds(seq));
            let mut dead: Vec<u32> = singles.map(|d| d.row).collect();
            let mut sources = u32::from(!dead.is_empty());
            for (_, layer) in self.layers.range(..=seq.0) {
                let before = dead.len();
                dead.extend(layer.range(within.clone()));
                sources += u32::from(dead.len() > before);
            }
            // Each source is sorted on its own.
            if sources > 1 {
                dead.sort_unstable();
            }
            dead
        })
    }

    /// Returns true if no row of the range is dead for a snapshot.
    pub(crate) fn all_alive(&self, rows: Range<u32>, seq: Seq) -> bool {
        self.is_empty()
            || (!self.singles_in(rows.clone()).any(|d| d.holds(seq))
                && self.layers.range(..=seq.0).all(|(_, layer)| layer.range(rows.clone()).next().is_none()))
    }

    /// Returns true if all rows of a part are dead for a snapshot; false is inconclusive.
    pub(crate) fn all_dead(&self, part_rows: u32, seq: Seq) -> bool {
        self.count == u64::from(part_rows) && self.last <= seq.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.layers.is_empty()
    }

    fn singles(&self) -> impl Iterator<Item = DeadInterval> + '_ {
        self.chunks.iter().flatten().flat_map(|chunk| chunk.iter().copied())
    }

    fn singles_in(&self, rows: Range<u32>) -> impl Iterator<Item = DeadInterval> + '_ {
        let first = ((rows.start / CHUNK_ROWS) as usize).min(self.chunks.len());
        let last = (rows.end.div_ceil(CHUNK_ROWS) as usize).clamp(first, self.chunks.len());
        self.chunks[first..last].iter().flatten().flat_map(move |chunk| {
            let from = chunk.partition_point(|d| d.row < rows.start);
            let to = chunk.partition_point(|d| d.row < rows.end);
            chunk[from..to.max(from)].iter().copied()
        })
    }

    /// Returns true if [`DeadRows::settle`] would change anything.
    pub(crate) fn can_settle(&self, floor: u64) -> bool {
        self.layers.range(..=floor).count() > 1 || self.singles().any(|d| d.is_settled(floor))
    }

    /// Drops distinctions that only snapshots below `floor` need: older deaths become one layer.
    pub(crate) fn settle(&mut self, floor: u64) {
        if !self.can_settle(floor) {
            return;
        }
        let settled = |d: &DeadInterval| d.is_settled(floor);
        let newer = self.layers.split_off(&floor.saturating_add(1));
        let old = std::mem::replace(&mut self.layers, newer);
        let mut rows = RoaringBitmap::new();
        let mut newest = 0;
        for (seq, layer) in old {
            newest = newest.max(seq);
            rows |= layer.as_ref();
        }
        for slot in &mut self.chunks {
            let Some(chunk) = slot.as_mut().filter(|c| c.iter().any(settled)) else { continue };
            let mut kept = chunk.as_ref().clone();
            kept.retain(|d| {
                if settled(d) && d.until == FOR_GOOD {
                    newest = newest.max(d.from);
                    rows.insert(d.row);
                }
                !settled(d)
            });
            *slot = (!kept.is_empty()).then(|| Arc::new(kept));
        }
        while self.chunks.last().is_some_and(Option::is_none) {
            self.chunks.pop();
        }
        if !rows.is_empty() {
            rows.optimize();
            *Arc::make_mut(self.layers.entry(newest).or_default()) |= rows;
        }
    }

    /// Returns the dead rows of the outputs of a merge. `maps` has for each input and row its place among all output
    /// rows, or [`DROPPED`].
    pub(crate) fn moved<'a>(
        inputs: impl Iterator<Item = &'a DeadRows>,
        maps: &[Vec<u32>],
        output_rows: &[u32],
    ) -> Vec<DeadRows> {
        let mut outputs = vec![DeadRows::default(); output_rows.len()];
        let mut singles: Vec<DeadInterval> = Vec::new();
        let mut layers: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (dead, map) in inputs.zip(maps) {
            let place = |row: u32| map.get(row as usize).copied().filter(|place| *place != DROPPED);
            singles.extend(dead.singles().filter_map(|d| Some(DeadInterval { row: place(d.row)?, ..d })));
            for (seq, rows) in &dead.layers {
                layers.entry(*seq).or_default().extend(rows.iter().filter_map(place));
            }
        }
        // In order of rows, so that each lands at the end of its chunk.
        singles.sort_unstable();
        let (mut output, mut first) = (0, 0u32);
        for death in singles {
            while output < output_rows.len() && death.row - first >= output_rows[output] {
                first += output_rows[output];
                output += 1;
            }
            if let Some(dead) = outputs.get_mut(output) {
                dead.count += u64::from(death.until == FOR_GOOD);
                dead.insert(DeadInterval { row: death.row - first, ..death });
            }
        }
        for (seq, mut places) in layers {
            places.sort_unstable();
            let (mut from, mut first) = (0, 0u32);
            for (dead, rows) in outputs.iter_mut().zip(output_rows) {
                let to = places.partition_point(|place| *place < first + rows);
                let here: RoaringBitmap = places[from..to].iter().map(|place| place - first).collect();
                (from, first) = (to, first + rows);
                if !here.is_empty() {
                    dead.count += here.len();
                    dead.last = dead.last.max(seq);
                    dead.layers.insert(seq, Arc::new(here));
                }
            }
        }
        outputs
    }
}

#[cfg(test)]
mod tests;
