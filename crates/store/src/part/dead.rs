//! Dead rows: which rows of a part a reader does not see, and since when.

use crate::codec::{Reader, put_bytes, put_u32, put_u64};
use crate::part::CHUNK_ROWS;
use meridian_model::Seq;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// From this many rows on, rows that die at once are kept as a bitmap.
const LAYER_ROWS_MIN: u64 = 64;
/// The end of a death that lasts.
const FOR_GOOD: u64 = u64::MAX;

/// A row that is dead from one write on, until another brings it back (in the view of mode `latest`), or for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Death {
    row: u32,
    from: u64,
    until: u64,
}

/// The dead rows of one part, each with the number of the write that killed it.
///
/// A value never changes once readers see it: a writer clones it (cheap: rows are kept by chunk, and chunks are
/// shared) and changes its copy. Rows that died together, or so long ago that no snapshot tells their deaths apart
/// ([`DeadRows::settle`]), cost a bit each at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeadRows {
    /// Single deaths in order, by chunk of [`CHUNK_ROWS`] rows; missing chunks at the end are empty.
    chunks: Vec<Option<Arc<Vec<Death>>>>,
    /// Rows that died together, by the number of the write.
    layers: BTreeMap<u64, Arc<RoaringBitmap>>,
    /// How many rows are dead by now.
    count: u64,
    /// Number of the last write that changed something here.
    last: u64,
}

impl Death {
    /// Whether all snapshots from `floor` on see this death, or none does.
    fn is_settled(&self, floor: u64) -> bool {
        self.from <= floor && (self.until == FOR_GOOD || self.until <= floor)
    }

    /// Whether a snapshot finds the row dead.
    fn holds(&self, seq: Seq) -> bool {
        self.from <= seq.0 && (self.until == FOR_GOOD || seq.0 < self.until)
    }
}

impl DeadRows {
    /// How many rows are dead by now.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Number of the last write that changed something here.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// How many rows died up to `last` and are dead by now.
    pub(crate) fn count_by(&self, last: u64) -> u64 {
        if self.last <= last {
            return self.count;
        }
        let layers: u64 = self.layers.range(..=last).map(|(_, rows)| rows.len()).sum();
        layers + self.singles().filter(|d| d.from <= last && d.until == FOR_GOOD).count() as u64
    }

    /// Marks a row dead from `seq` on; a row already dead keeps its first death. Says whether it was alive.
    pub(crate) fn kill(&mut self, row: u32, seq: u64) -> bool {
        if self.death(row).is_some() {
            return false;
        }
        self.insert(Death { row, from: seq, until: FOR_GOOD });
        self.count += 1;
        true
    }

    /// Marks rows dead from `seq` on; says how many were alive.
    pub(crate) fn kill_all(&mut self, mut rows: RoaringBitmap, seq: u64) -> u64 {
        if rows.len() < LAYER_ROWS_MIN {
            return rows.iter().map(|row| u64::from(self.kill(row, seq))).sum();
        }
        rows = self.alive_of(rows);
        let killed = rows.len();
        if killed > 0 {
            *Arc::make_mut(self.layers.entry(seq).or_default()) |= rows;
            self.count += killed;
            self.last = self.last.max(seq);
        }
        killed
    }

    /// Those of the rows that are not dead by now.
    pub(crate) fn alive_of(&self, mut rows: RoaringBitmap) -> RoaringBitmap {
        self.layers.values().for_each(|layer| rows -= layer.as_ref());
        if let (Some(first), Some(last)) = (rows.min(), rows.max()) {
            for death in self.singles_in(first..last.saturating_add(1)).filter(|d| d.until == FOR_GOOD) {
                rows.remove(death.row);
            }
        }
        rows
    }

    /// Brings a row back from `seq` on; says whether it was dead.
    pub(crate) fn revive(&mut self, row: u32, seq: u64) -> bool {
        let layer = self.layers.iter_mut().find(|(_, rows)| rows.contains(row));
        if let Some((&from, rows)) = layer {
            let rows = Arc::make_mut(rows);
            rows.remove(row);
            if rows.is_empty() {
                self.layers.remove(&from);
            }
            self.insert(Death { row, from, until: seq });
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

    fn insert(&mut self, death: Death) {
        // Killed and brought back by one write: nobody saw it.
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

    /// When a row died, if it is dead by now.
    pub(crate) fn death(&self, row: u32) -> Option<u64> {
        let single = self.singles_in(row..row + 1).find(|d| d.until == FOR_GOOD).map(|d| d.from);
        single.or_else(|| self.layers.iter().find(|(_, rows)| rows.contains(row)).map(|(seq, _)| *seq))
    }

    /// Whether a row is dead in the eyes of a snapshot.
    pub(crate) fn is_dead(&self, row: u32, seq: Seq) -> bool {
        !self.all_alive(row..row + 1, seq)
    }

    /// Rows of a range that are dead in the eyes of a snapshot, in order.
    pub(crate) fn range(&self, rows: Range<u32>, seq: Seq) -> impl Iterator<Item = u32> + '_ {
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
            if sources > 1 {
                dead.sort_unstable();
            }
            dead
        })
    }

    /// Whether no row of the range is dead in the eyes of a snapshot.
    pub(crate) fn all_alive(&self, rows: Range<u32>, seq: Seq) -> bool {
        self.is_empty()
            || (!self.singles_in(rows.clone()).any(|d| d.holds(seq))
                && self.layers.range(..=seq.0).all(|(_, layer)| layer.range(rows.clone()).next().is_none()))
    }

    /// Whether all of a part's rows are dead in the eyes of a snapshot; `false` is not certain.
    pub(crate) fn all_dead(&self, part_rows: u32, seq: Seq) -> bool {
        self.count == u64::from(part_rows) && self.last <= seq.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.layers.is_empty()
    }

    fn singles(&self) -> impl Iterator<Item = Death> + '_ {
        self.chunks.iter().flatten().flat_map(|chunk| chunk.iter().copied())
    }

    fn singles_in(&self, rows: Range<u32>) -> impl Iterator<Item = Death> + '_ {
        let first = ((rows.start / CHUNK_ROWS) as usize).min(self.chunks.len());
        let last = (rows.end.div_ceil(CHUNK_ROWS) as usize).clamp(first, self.chunks.len());
        self.chunks[first..last].iter().flatten().flat_map(move |chunk| {
            let from = chunk.partition_point(|d| d.row < rows.start);
            let to = chunk.partition_point(|d| d.row < rows.end);
            chunk[from..to.max(from)].iter().copied()
        })
    }

    /// Whether [`DeadRows::settle`] would change something.
    pub(crate) fn can_settle(&self, floor: u64) -> bool {
        self.layers.range(..=floor).count() > 1 || self.singles().any(|d| d.is_settled(floor))
    }

    /// Forgets what only snapshots below `floor` could tell: older deaths become one layer.
    pub(crate) fn settle(&mut self, floor: u64) {
        if !self.can_settle(floor) {
            return;
        }
        let settled = |d: &Death| d.is_settled(floor);
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

    /// The dead rows of the parts that others were merged into: `maps` has for each input and row its place among all
    /// rows of the outputs, or [`crate::maintenance::merge::DROPPED`].
    pub(crate) fn moved<'a>(
        inputs: impl Iterator<Item = &'a DeadRows>,
        maps: &[Vec<u32>],
        output_rows: &[u32],
    ) -> Vec<DeadRows> {
        let mut outputs = vec![DeadRows::default(); output_rows.len()];
        let mut singles: Vec<Death> = Vec::new();
        let mut layers: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (dead, map) in inputs.zip(maps) {
            let place =
                |row: u32| map.get(row as usize).copied().filter(|place| *place != crate::maintenance::merge::DROPPED);
            singles.extend(dead.singles().filter_map(|d| Some(Death { row: place(d.row)?, ..d })));
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
                dead.insert(Death { row: death.row - first, ..death });
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

    /// What was so up to `last`, as bytes for a file.
    pub(crate) fn encode(&self, last: Seq) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let layers: Vec<_> = self.layers.range(..=last.0).collect();
        put_u32(&mut bytes, layers.len() as u32);
        for (seq, rows) in layers {
            put_u64(&mut bytes, *seq);
            let mut packed = Vec::with_capacity(rows.serialized_size());
            rows.serialize_into(&mut packed).map_err(|e| e.to_string())?;
            put_bytes(&mut bytes, &packed);
        }
        let singles: Vec<Death> = self.singles().filter(|d| d.from <= last.0).collect();
        put_u64(&mut bytes, singles.len() as u64);
        singles.iter().for_each(|d| put_u32(&mut bytes, d.row));
        singles.iter().for_each(|d| put_u64(&mut bytes, d.from));
        singles.iter().for_each(|d| put_u64(&mut bytes, if d.until <= last.0 { d.until } else { FOR_GOOD }));
        Ok(bytes)
    }

    /// Reads what [`DeadRows::encode`] wrote for a part of so many rows.
    pub(crate) fn decode(bytes: &[u8], part_rows: u32) -> Result<DeadRows, String> {
        let mut reader = Reader::new(bytes);
        let mut dead = DeadRows::default();
        let fits = |row: u32| if row < part_rows { Ok(()) } else { Err(format!("dead row {row} of {part_rows}")) };
        for _ in 0..reader.u32()? {
            let seq = reader.u64()?;
            let rows = RoaringBitmap::deserialize_from(reader.bytes()?).map_err(|e| e.to_string())?;
            rows.max().map_or(Ok(()), fits)?;
            dead.count += rows.len();
            dead.last = dead.last.max(seq);
            dead.layers.insert(seq, Arc::new(rows));
        }
        let count = reader.u64()?;
        if count.saturating_mul(20) > reader.left() as u64 {
            return Err(format!("{count} deaths are more than the bytes hold"));
        }
        let rows = (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
        let from = (0..count).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        for (row, from) in rows.into_iter().zip(from) {
            fits(row)?;
            let until = reader.u64()?;
            dead.count += u64::from(until == FOR_GOOD);
            dead.insert(Death { row, from, until });
        }
        reader.end()?;
        if dead.count > u64::from(part_rows) {
            return Err(format!("{} dead rows of {part_rows}", dead.count));
        }
        Ok(dead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintenance::merge::DROPPED;

    fn dead_at(dead: &DeadRows, rows: u32, seq: u64) -> Vec<u32> {
        let found: Vec<u32> = dead.range(0..rows, Seq(seq)).collect();
        let one_by_one: Vec<u32> = (0..rows).filter(|row| dead.is_dead(*row, Seq(seq))).collect();
        assert_eq!(found, one_by_one);
        assert_eq!(found.is_empty(), dead.all_alive(0..rows, Seq(seq)));
        found
    }

    #[test]
    fn deaths_are_seen_by_snapshots_that_come_after_them() {
        let mut dead = DeadRows::default();
        assert!(dead.kill(5, 100));
        assert!(!dead.kill(5, 200));
        assert!(dead.kill(9000, 300));
        assert_eq!(dead.death(5), Some(100));
        assert!(dead.all_alive(0..10_000, Seq(99)));
        assert!(dead.all_alive(6..9000, Seq(1000)));
        assert!(dead.all_alive(6..6, Seq(1000)));
        assert!(dead.all_alive(20_000..30_000, Seq(1000)));
        assert_eq!(dead_at(&dead, 10_000, 99), [0; 0]);
        assert_eq!(dead_at(&dead, 10_000, 100), [5]);
        assert_eq!(dead_at(&dead, 10_000, 300), [5, 9000]);
        assert_eq!((dead.count(), dead.count_by(299)), (2, 1));
        let back = DeadRows::decode(&dead.encode(Seq(100)).unwrap(), 10_000).unwrap();
        assert_eq!(dead_at(&back, 10_000, 1000), [5]);
        assert!(DeadRows::decode(&dead.encode(Seq(1000)).unwrap(), 9000).is_err());
    }

    #[test]
    fn a_clone_does_not_see_later_deaths() {
        let mut dead = DeadRows::default();
        dead.kill(1, 1);
        let before = dead.clone();
        dead.kill(2, 2);
        dead.kill_all((0..500).collect(), 3);
        assert_eq!(before.death(2), None);
        assert_eq!(dead_at(&before, 1000, 9), [1]);
        assert_eq!(dead.death(2), Some(2));
        assert_eq!(dead.count(), 500);
    }

    /// Random deaths and returns, alone and together, settled, written, read and moved: as in a plain table.
    #[test]
    fn deaths_agree_with_a_table() {
        use crate::seams::{Random, SeededRandom};
        const ROWS: u32 = 9000;
        for seed in 0..20 {
            let random = SeededRandom::new(seed);
            let below = |n: u64| random.next_u64() % n;
            let mut dead = DeadRows::default();
            // For each row the writes that changed it: killed (true) or brought back.
            let mut table: Vec<Vec<(u64, bool)>> = vec![Vec::new(); ROWS as usize];
            let is_dead = |changes: &[(u64, bool)], seq: u64| {
                changes.iter().rfind(|(at, _)| *at <= seq).is_some_and(|(_, dead)| *dead)
            };
            let mut floor = 0;
            for seq in 1..60u64 {
                match below(8) {
                    0..=2 => {
                        let row = below(u64::from(ROWS)) as u32;
                        let alive = !is_dead(&table[row as usize], seq);
                        assert_eq!(dead.kill(row, seq), alive);
                        if alive {
                            table[row as usize].push((seq, true));
                        }
                    }
                    3 => {
                        let from = below(u64::from(ROWS)) as u32;
                        let rows: RoaringBitmap = (from..ROWS.min(from + below(3000) as u32)).collect();
                        let mut killed = 0;
                        for row in &rows {
                            if !is_dead(&table[row as usize], seq) {
                                table[row as usize].push((seq, true));
                                killed += 1;
                            }
                        }
                        assert_eq!(dead.kill_all(rows, seq), killed);
                    }
                    4 | 5 => {
                        let all: Vec<u32> = dead.range(0..ROWS, Seq(seq)).collect();
                        for _ in 0..below(20).min(all.len() as u64) {
                            let row = all[below(all.len() as u64) as usize];
                            let was = is_dead(&table[row as usize], seq);
                            assert_eq!(dead.revive(row, seq), was);
                            if was {
                                table[row as usize].push((seq, false));
                            }
                        }
                    }
                    6 => {
                        floor = below(seq).max(floor);
                        dead.settle(floor);
                    }
                    _ => dead = DeadRows::decode(&dead.encode(Seq(seq)).unwrap(), ROWS).unwrap(),
                }
                let at = floor + below(seq - floor + 1);
                let expected: Vec<u32> = (0..ROWS).filter(|row| is_dead(&table[*row as usize], at)).collect();
                assert_eq!(dead_at(&dead, ROWS, at), expected, "seed {seed}, at {at} of {seq}");
                let now = table.iter().filter(|changes| is_dead(changes, seq)).count() as u64;
                assert_eq!(dead.count(), now);
            }
            // Every second row goes, the others fall into two parts.
            let map: Vec<u32> = (0..ROWS).map(|row| if row % 2 == 0 { row / 2 } else { DROPPED }).collect();
            let moved = DeadRows::moved([&dead].into_iter(), &[map], &[1000, ROWS / 2 - 1000]);
            for at in floor..60 {
                let expected: Vec<u32> = dead.range(0..ROWS, Seq(at)).filter(|r| r % 2 == 0).map(|r| r / 2).collect();
                let mut found = dead_at(&moved[0], 1000, at);
                found.extend(dead_at(&moved[1], ROWS / 2 - 1000, at).iter().map(|row| row + 1000));
                assert_eq!(found, expected);
            }
        }
    }
}
