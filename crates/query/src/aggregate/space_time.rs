//! Queries for a box and time, over rows in space-time order.
//!
//! The boxes of a node's children are tested together as plain numbers. Leaves at the edge of the query, or of its
//! windows, are collected. Adjacent ones in a chunk are read once and tested 64 rows at a time.

use super::groups::Groups;
use crate::candidates::{Run, chunk_end};
use crate::control::Stats;
use crate::error::QueryError;
use crate::scan::Scan;
use crate::windows::Finder;
use arrow_array::TimestampMicrosecondArray;
use meridian_index::{Node, Summary, Tree};
use meridian_model::filter::{Relation, SpaceTimeFilter};
use meridian_model::{Batch, FieldColumn, Projection, TimeRole};
use meridian_store::{CHUNK_ROWS, PartView};
use std::ops::Range;

/// One part being processed.
pub(crate) struct SpaceTimeWalk<'a> {
    part: u32,
    view: &'a PartView,
    filter: &'a SpaceTimeFilter,
    columns: &'a Projection,
    finder: &'a mut Option<Finder>,
    groups: &'a mut Groups,
    /// Whether the snapshot shows every row of the part.
    all_visible: bool,
    /// Whether every node knows its sums: true exactly if the first node does.
    sums: bool,
    /// Leaves to be read together.
    found: Option<Run>,
    /// The rows read last.
    read: Option<(Range<u32>, Batch)>,
    /// Matching rows of that batch.
    picked: Vec<u32>,
}

impl<'a> SpaceTimeWalk<'a> {
    pub(crate) fn new(
        part: u32,
        view: &'a PartView,
        filter: &'a SpaceTimeFilter,
        columns: &'a Projection,
        finder: &'a mut Option<Finder>,
        groups: &'a mut Groups,
    ) -> SpaceTimeWalk<'a> {
        let all_visible = view.all_visible(0..view.rows());
        let (found, read, picked) = (None, None, Vec::new());
        SpaceTimeWalk { part, view, filter, columns, finder, groups, all_visible, sums: true, found, read, picked }
    }

    /// Counts the matching events below a node.
    pub(crate) fn count(&mut self, scan: &mut Scan, tree: &Tree, node: Node) -> Result<(), QueryError> {
        scan.control.check()?;
        // Nodes, each with whether all below match. Nodes without a match are never pushed.
        let mut open: Vec<(Node, bool)> = Vec::new();
        self.sums = self.knows_sums(tree, node);
        let bounds = tree.bounds(node);
        let sides = [bounds.west, bounds.south, bounds.east, bounds.north];
        self.push(&mut scan.stats, &mut open, node, self.filter.relation(sides, bounds.start, bounds.end));
        while let Some((node, whole)) = open.pop() {
            if whole && self.take(&mut scan.stats, tree, node)? {
                continue;
            }
            if tree.is_leaf(node) {
                self.leaf(scan, Run { rows: tree.rows(node), whole })?;
                continue;
            }
            let children = tree.children(node);
            let (places, (starts, ends)) = (tree.places(&children), tree.times(&children));
            for (i, child) in children.enumerate().rev() {
                let relation = match whole {
                    true => Relation::All,
                    false => {
                        let sides = [places.west[i], places.south[i], places.east[i], places.north[i]];
                        self.filter.relation(sides, starts[i], ends[i])
                    }
                };
                self.push(&mut scan.stats, &mut open, child, relation);
            }
        }
        self.look(scan)
    }

    fn knows_sums(&self, tree: &Tree, node: Node) -> bool {
        self.groups.knows_sums(|ordinal| tree.summary(node, ordinal))
    }

    fn push(&self, stats: &mut Stats, open: &mut Vec<(Node, bool)>, node: Node, relation: Relation) {
        stats.nodes_visited += 1;
        match relation {
            Relation::None => stats.nodes_pruned += 1,
            Relation::All => open.push((node, true)),
            Relation::Some => open.push((node, false)),
        }
    }

    /// Counts a whole node from its summary, if its events lie in one window and are visible.
    fn take(&mut self, stats: &mut Stats, tree: &Tree, node: Node) -> Result<bool, QueryError> {
        let rows = tree.rows(node);
        if !self.all_visible && !self.view.all_visible(rows.clone()) {
            return Ok(false);
        }
        // A float sum that overflowed may be known further down, where fewer values are added.
        if !self.sums && !self.knows_sums(tree, node) {
            return Ok(false);
        }
        let group = match self.finder {
            None => self.groups.group(None, 0)?,
            Some(finder) => {
                let bounds = tree.bounds(node);
                if bounds.end >= finder.find(bounds.start).end {
                    return Ok(false);
                }
                self.groups.group_at(finder, bounds.start)?
            }
        };
        self.groups.add_all(group, rows.len() as u64, |_, ordinal| tree.summary(node, ordinal));
        stats.nodes_whole += 1;
        stats.events_matched += rows.len() as u64;
        Ok(true)
    }

    /// Appends a leaf to the pending ones, or reads these first.
    fn leaf(&mut self, scan: &mut Scan, leaf: Run) -> Result<(), QueryError> {
        scan.stats.edge_blocks += 1;
        if let Some(run) = &mut self.found
            && run.rows.end == leaf.rows.start
            && run.whole == leaf.whole
            && chunk_end(run.rows.start) >= leaf.rows.end
        {
            run.rows.end = leaf.rows.end;
            return Ok(());
        }
        self.look(scan)?;
        // Not read yet: the next leaf may extend it.
        self.found = Some(leaf);
        Ok(())
    }

    /// Counts the matching rows of the pending leaves.
    fn look(&mut self, scan: &mut Scan) -> Result<(), QueryError> {
        let Some(run) = self.found.take() else { return Ok(()) };
        scan.control.check()?;
        let visible = match self.all_visible || self.view.all_visible(run.rows.clone()) {
            true => None,
            false => Some(self.view.visible(run.rows.clone())?),
        };
        if visible.as_ref().is_some_and(|visible| !visible.has_true()) {
            return Ok(());
        }
        let (held, batch) = self.read(scan, &run.rows)?;
        let first = held.start;
        let rows = (run.rows.start - first) as usize..(run.rows.end - first) as usize;
        if run.whole && visible.is_none() && self.finder.is_none() {
            let group = self.groups.group(None, 0)?;
            scan.stats.events_matched += rows.len() as u64;
            self.groups.add_all(group, rows.len() as u64, |field, _| {
                batch.field(field).map_or(Summary::INT, |column| Summary::of_rows(&column, rows.clone()))
            });
            self.read = Some((held, batch));
            return Ok(());
        }
        let starts = instants(&batch);
        self.picked.clear();
        for from in rows.clone().step_by(64) {
            let block = from..rows.end.min(from + 64);
            let mut bits = u64::MAX >> (64 - block.len());
            if !run.whole {
                scan.stats.events_tested += block.len() as u64;
                if let Some((lon, lat)) = batch.points() {
                    bits &= self.filter.points(&lon.values()[block.clone()], &lat.values()[block.clone()]);
                }
                if let Some(starts) = starts {
                    bits &= self.filter.instants(&starts.values()[block.clone()]);
                }
            }
            if let Some(visible) = &visible {
                bits &= (block.clone().enumerate())
                    .fold(0, |bits, (i, row)| bits | u64::from(visible.value(row - rows.start)) << i);
            }
            if bits == 0 {
                continue;
            }
            scan.stats.events_matched += u64::from(bits.count_ones());
            if let Some(group) = self.group_of_all(starts.map(|starts| &starts.values()[block.clone()]))? {
                self.groups.add_block(group, &batch, block, bits);
                continue;
            }
            while bits != 0 {
                self.picked.push(from as u32 + bits.trailing_zeros());
                // Clears the lowest bit: only matching rows are visited.
                bits &= bits - 1;
            }
        }
        self.groups.add_rows(&self.picked, &batch, self.finder.as_mut().zip(starts), &[])?;
        self.read = Some((held, batch));
        Ok(())
    }

    /// The group of all rows with these start instants, if they share one.
    fn group_of_all(&mut self, starts: Option<&[i64]>) -> Result<Option<u32>, QueryError> {
        Ok(match (&mut self.finder, starts) {
            (None, _) => Some(self.groups.group(None, 0)?),
            (Some(_), None) => None,
            (Some(finder), Some(starts)) => {
                let (first, last) =
                    starts.iter().fold((i64::MAX, i64::MIN), |(first, last), &t| (first.min(t), last.max(t)));
                match last < finder.find(first).end {
                    true => Some(self.groups.group_at(finder, first)?),
                    false => None,
                }
            }
        })
    }

    /// A batch that contains the given rows, with its row range: the whole chunk, as the next leaves are often in it.
    fn read(&mut self, scan: &mut Scan, rows: &Range<u32>) -> Result<(Range<u32>, Batch), QueryError> {
        match self.read.take() {
            Some((held, batch)) if held.start <= rows.start && rows.end <= held.end => Ok((held, batch)),
            _ => {
                let chunk = rows.start / CHUNK_ROWS * CHUNK_ROWS..chunk_end(rows.end - 1).min(self.view.rows());
                let batch = scan.read(self.part, chunk.clone(), self.columns)?;
                Ok((chunk, batch))
            }
        }
    }
}

/// The primary instants of a batch, if they were read; never null.
fn instants(batch: &Batch) -> Option<&TimestampMicrosecondArray> {
    match batch.schema().time {
        TimeRole::Instant(field) => match batch.field(field) {
            Some(FieldColumn::Time(times)) => Some(times),
            _ => None,
        },
        _ => None,
    }
}
