//! Windows over rows in time order.
//!
//! For a query about time alone, each window is a contiguous range of rows in that order. The edges are searched for
//! in the times of the leaves. Between two edges lie whole leaves, counted from the fewest nodes above them, and rows
//! of the two cut leaves. Windows cost no separate descents, and windows without events are never visited.

use super::groups::Groups;
use crate::candidates::chunk_end;
use crate::error::QueryError;
use crate::ordered::{DeadRowsByTime, Ordered};
use crate::scan::Scan;
use crate::windows::{Finder, Window};
use meridian_index::{LEAF_ROWS, Summary, Tree};
use meridian_model::{Batch, FieldColumn, Interval, Projection, TimeRole};
use meridian_store::CHUNK_ROWS;
use std::ops::Range;

const LEAF: u32 = LEAF_ROWS as u32;
/// Number of windows between two checks of the deadline.
const WINDOWS_UNSEEN: usize = 256;

/// One part's time order being processed.
pub(crate) struct Timeline<'a> {
    part: u32,
    order: Ordered<'a>,
    tree: &'a Tree,
    dead: &'a DeadRowsByTime,
    columns: &'a Projection,
    /// The places read last, with their batch, for the leaves at both edges of a window.
    read: [Option<(Range<u32>, Batch)>; 2],
    /// The last leaf that was cut.
    cut: Option<u32>,
    /// Whether every node knows its sums, which is the case exactly if the root does.
    sums: bool,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(
        part: u32,
        order: Ordered<'a>,
        tree: &'a Tree,
        dead: &'a DeadRowsByTime,
        columns: &'a Projection,
    ) -> Timeline<'a> {
        Timeline { part, order, tree, dead, columns, read: [None, None], cut: None, sums: true }
    }

    /// Counts the events at some places that lie within an interval, each in its window.
    pub(crate) fn count(
        &mut self,
        scan: &mut Scan,
        places: Range<u32>,
        within: Interval,
        finder: &mut Option<Finder>,
        groups: &mut Groups,
    ) -> Result<(), QueryError> {
        // Float sums may be unknown if they overflow; the root answers for all nodes at once.
        self.sums = self.tree.root().is_none_or(|root| groups.knows_sums(|ordinal| self.tree.summary(root, ordinal)));
        let mut at = self.seek(scan, places.clone(), within.start)?;
        let end = match within.end.checked_add(1) {
            Some(end) => self.seek(scan, at..places.end, end)?,
            None => places.end,
        };
        let mut windows = 0usize;
        while at < end {
            let (window, next) = match finder {
                None => (None, end),
                Some(finder) => {
                    // Many windows may pass without a read, which would check.
                    windows += 1;
                    if windows.is_multiple_of(WINDOWS_UNSEEN) {
                        scan.control.check()?;
                    }
                    let window = finder.find(self.time_at(scan, at)?);
                    (Some(window), self.seek(scan, at..end, window.end)?)
                }
            };
            // A window contains the event that it was found for; if a damaged order violates this, the loop still
            // ends.
            let next = next.max(at + 1);
            self.add(scan, at..next, &mut Target { window, groups })?;
            at = next;
        }
        Ok(())
    }

    /// The first of some places whose time is not before an instant.
    fn seek(&mut self, scan: &mut Scan, places: Range<u32>, time: i64) -> Result<u32, QueryError> {
        if places.is_empty() {
            return Ok(places.start);
        }
        scan.stats.nodes_visited += 1;
        let (first, last) = (self.leaf_of(places.start), self.leaf_of(places.end - 1));
        let (starts, ends) = self.tree.leaf_times();
        let leaf = first + passed(&ends[first as usize..=last as usize], time) as u32;
        if leaf > last {
            return Ok(places.end);
        }
        let rows = self.rows_of(leaf);
        let rows = rows.start.max(places.start)..rows.end.min(places.end);
        // The edge is the leaf's own start, so its rows need not be read.
        if starts[leaf as usize] >= time {
            return Ok(rows.start);
        }
        let (first, batch) = self.leaf(scan, leaf)?;
        let times = &times_of(batch)[(rows.start - first) as usize..(rows.end - first) as usize];
        Ok(rows.start + times.partition_point(|t| *t < time) as u32)
    }

    fn time_at(&mut self, scan: &mut Scan, place: u32) -> Result<i64, QueryError> {
        let leaf = self.leaf_of(place);
        if self.rows_of(leaf).start == place {
            return Ok(self.tree.leaf_times().0[leaf as usize]);
        }
        let (first, batch) = self.leaf(scan, leaf)?;
        Ok(times_of(batch)[(place - first) as usize])
    }

    /// Counts consecutive events of one group: whole leaves from the nodes above them, and the rows of cut ones.
    fn add(&mut self, scan: &mut Scan, places: Range<u32>, target: &mut Target<'_>) -> Result<(), QueryError> {
        let all = self.tree.all_rows();
        let first = (places.start - all.start).div_ceil(LEAF);
        let last = if places.end == all.end { self.tree.leaves() } else { (places.end - all.start) / LEAF };
        if first > last {
            // All within one leaf.
            return self.add_cut(scan, places, target);
        }
        self.add_cut(scan, places.start..self.rows_of(first).start, target)?;
        self.add_whole(scan, first..last, target)?;
        self.add_cut(scan, self.rows_of(last).start..places.end, target)
    }

    /// Counts whole leaves. Rows are read only in leaves with dead rows.
    fn add_whole(&mut self, scan: &mut Scan, leaves: Range<u32>, target: &mut Target<'_>) -> Result<(), QueryError> {
        let (starts, ends) = self.tree.leaf_times();
        let mut from = leaves.start;
        while from < leaves.end {
            let clean = match self.dead.first_from(starts[from as usize]) {
                Some(time) => from + passed(&ends[from as usize..leaves.end as usize], time) as u32,
                None => leaves.end,
            };
            if from < clean {
                let tree = self.tree;
                let cover = tree.cover(from..clean);
                // Rare: the values were too large for node sums, so they are added one by one.
                if !self.sums && !target.groups.knows_sums(|ordinal| tree.summary_of(&cover, ordinal)) {
                    (from..clean).try_for_each(|leaf| self.add_cut(scan, self.rows_of(leaf), target))?;
                    from = clean;
                    continue;
                }
                let count = self.rows_of(clean).start - self.rows_of(from).start;
                target.add(count.into(), |_, ordinal| tree.summary_of(&cover, ordinal))?;
                scan.stats.nodes_visited += cover.nodes();
                scan.stats.nodes_whole += cover.nodes();
                scan.stats.events_matched += u64::from(count);
            }
            if clean < leaves.end {
                self.add_cut(scan, self.rows_of(clean), target)?;
            }
            from = clean + 1;
        }
        Ok(())
    }

    /// Counts rows of one leaf, without the dead ones.
    fn add_cut(&mut self, scan: &mut Scan, places: Range<u32>, target: &mut Target<'_>) -> Result<(), QueryError> {
        if places.is_empty() {
            return Ok(());
        }
        let leaf = self.leaf_of(places.start);
        let bounds = self.tree.leaf_times();
        let (start, end) = (bounds.0[leaf as usize], bounds.1[leaf as usize]);
        let mut dead = Vec::new();
        if self.dead.first_from(start).is_some_and(|time| time <= end) {
            let rows = self.order.rows(places.clone())?;
            dead.extend(places.clone().zip(rows).filter(|(_, row)| self.dead.holds(*row)).map(|(place, _)| place));
        }
        let (first, batch) = self.leaf(scan, leaf)?;
        let mut matched = 0;
        let mut from = places.start;
        // Between two dead rows all rows count, and are added as one stretch.
        for to in dead.into_iter().chain([places.end]) {
            if from < to {
                let rows = (from - first) as usize..(to - first) as usize;
                target.add(rows.len() as u64, |field, _| {
                    batch.field(field).map_or(Summary::INT, |column| Summary::of_rows(&column, rows.clone()))
                })?;
                matched += rows.len() as u64;
            }
            from = to + 1;
        }
        scan.stats.events_matched += matched;
        Ok(())
    }

    /// A batch with a leaf's rows, and its first place. Adjacent leaves are read together.
    fn leaf(&mut self, scan: &mut Scan, leaf: u32) -> Result<(u32, &Batch), QueryError> {
        // Counted once per leaf, though both windows at an edge read it.
        if self.cut.is_none_or(|last| last < leaf) {
            self.cut = Some(leaf);
            scan.stats.edge_blocks += 1;
        }
        let rows = self.rows_of(leaf);
        let holds = |(held, _): &(Range<u32>, Batch)| held.start <= rows.start && rows.end <= held.end;
        let follows = self.read.iter().flatten().any(|(held, _)| held.end == rows.start);
        if !self.read[0].as_ref().is_some_and(holds) {
            // The later batch stays. The other one is replaced if it does not hold the leaf either.
            self.read.swap(0, 1);
        }
        let read = match self.read[0].take().filter(holds) {
            Some(read) => read,
            None => {
                let end = chunk_end(rows.start).min(self.tree.all_rows().end).max(rows.end);
                let places = match (self.order.is_gathered(), follows) {
                    (true, false) => rows,
                    (true, true) => rows.start..end,
                    (false, _) => rows.start / CHUNK_ROWS * CHUNK_ROWS..end,
                };
                scan.charge(self.part, &places)?;
                let batch = self.order.read(places.clone(), self.columns)?;
                (places, batch)
            }
        };
        let (places, batch) = self.read[0].insert(read);
        Ok((places.start, batch))
    }

    fn leaf_of(&self, place: u32) -> u32 {
        (place - self.tree.all_rows().start) / LEAF
    }

    /// The places below a leaf; past the last leaf, an empty range at the end.
    fn rows_of(&self, leaf: u32) -> Range<u32> {
        let all = self.tree.all_rows();
        let first = all.start.saturating_add(leaf * LEAF).min(all.end);
        first..first.saturating_add(LEAF).min(all.end)
    }
}

/// The events of one window are counted here. Its group is created with the first of them.
struct Target<'a> {
    window: Option<Window>,
    groups: &'a mut Groups,
}

impl Target<'_> {
    fn add(&mut self, count: u64, summary: impl Fn(usize, usize) -> Summary) -> Result<(), QueryError> {
        let group = self.groups.group(self.window, 0)?;
        self.groups.add_all(group, count, summary);
        Ok(())
    }
}

/// Number of ascending times before an instant. Takes few comparisons if that is near the start.
fn passed(times: &[i64], time: i64) -> usize {
    // Doubling, then halving: windows are visited in order, so the next edge is usually near.
    let mut reach = 1;
    while reach < times.len() && times[reach - 1] < time {
        reach *= 2;
    }
    let from = reach / 2;
    let to = reach.min(times.len());
    from + times[from..to].partition_point(|t| *t < time)
}

/// The primary instants of a batch; empty if they were not read.
fn times_of(batch: &Batch) -> &[i64] {
    match batch.schema().time {
        TimeRole::Instant(field) => match batch.field(field) {
            Some(FieldColumn::Time(times)) => times.values(),
            _ => &[],
        },
        _ => &[],
    }
}
