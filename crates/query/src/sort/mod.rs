//! Events by the values of fields: a bounded heap, and trees walked best first.
//!
//! If the first sort key is a number or the time, a node's summary bounds the values below it. Nodes that cannot hold
//! a better event than the worst kept one are skipped: the ten strongest earthquakes cost a few nodes. Other keys
//! read every candidate once.

mod column;
mod kept;
mod pending_node;

use crate::candidates::{Candidates, Run, Step, search_step};
use crate::cursor::{SortValue, compare};
use crate::error::QueryError;
use crate::event_list::{EventList, find_ids};
use crate::matched_rows::{MatchedRows, Pick};
use crate::memory::Share;
use crate::scan::Scan;
use column::KeyColumn;
use kept::SortEntry;
use meridian_index::NodeRef;
use meridian_model::filter::region::{float_above, float_below};
use meridian_model::filter::{Region, Relation};
use meridian_model::{Batch, FieldType, Invalid, Projection, Schema, Seq, TimeRole};
use pending_node::PendingNode;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Texts and ids are ordered by this many of their first bytes, then by sequence number: a page token must stay
/// short.
pub const TEXT_BYTES_COMPARED: usize = 256;

/// Max number of sort keys of a query.
pub const SORT_KEYS_MAX: usize = 8;

/// Nodes up to this level (some 1,000 rows) are read in row order rather than best first, to read each block once.
const READ_LEVEL: u8 = 1;

/// The target of a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortTarget {
    /// A field, by index.
    Field(usize),
    /// The id; generated ids are in order of writing.
    Id,
}

/// One key of an order: a target and a direction. Events without a value come last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    /// The value to compare.
    pub target: SortTarget,
    /// Whether it descends.
    pub descending: bool,
}

impl SortKey {
    /// Parses the `sortby` parameter: names separated by commas, each optionally prefixed with `-` (descending) or
    /// `+`.
    pub fn parse(text: &str, schema: &Schema) -> Result<Vec<SortKey>, Invalid> {
        let mut keys: Vec<SortKey> = Vec::new();
        for part in text.split(',') {
            // A plus sign in a URL arrives as a space.
            let (descending, name) = match part.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, part.strip_prefix(['+', ' ']).unwrap_or(part)),
            };
            let target = match schema.field_index(name) {
                Some(field) => SortTarget::Field(field),
                None if name == schema.id_name || name == "id" => SortTarget::Id,
                None => {
                    return Err(Invalid::field("sortby", format!("{name:?} is not a property of this collection")));
                }
            };
            // A repeated key cannot break any remaining tie.
            if !keys.iter().any(|k| k.target == target) {
                keys.push(SortKey { target, descending });
            }
        }
        Ok(keys)
    }
}

/// A bit for each key, lowest bit first: set if it descends.
pub(crate) fn descending_of(keys: &[SortKey]) -> u16 {
    keys.iter().enumerate().fold(0, |bits, (i, key)| bits | u16::from(key.descending) << i)
}

/// Collects the first events of an order.
pub(crate) struct Sorter {
    keys: Vec<SortKey>,
    after: Option<(Vec<SortValue>, Seq)>,
    most: usize,
    /// The kept events, with the worst on top.
    kept: BinaryHeap<SortEntry>,
    /// Estimated bytes of the kept events.
    bytes: usize,
    share: Share,
    /// The columns of the predicate and of the keys.
    columns: Projection,
    bound: Bound,
}

/// How a node's summary bounds the first key.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// No bound.
    None,
    /// By the range of a numeric field.
    Number(usize),
    /// By the first (`false`) or last (`true`) instant of their box.
    Time(bool),
}

impl Sorter {
    /// Keeps the first `most` events after a position.
    pub(crate) fn new(
        scan: &mut Scan,
        keys: &[SortKey],
        after: Option<(Vec<SortValue>, Seq)>,
        most: usize,
    ) -> Result<Sorter, Invalid> {
        let schema = &scan.schema().clone();
        if keys.is_empty() || keys.len() > SORT_KEYS_MAX {
            return Err(Invalid::field("sortby", format!("expected 1 to {SORT_KEYS_MAX} properties to sort by")));
        }
        for key in keys {
            if let SortTarget::Field(field) = key.target {
                let spec = schema.fields.get(field).ok_or_else(|| Invalid::field("sortby", "no such property"))?;
                if spec.kind == FieldType::TextList {
                    return Err(Invalid::field("sortby", format!("{:?} is a list, which has no order", spec.name)));
                }
            }
        }
        let key_columns = key_columns(scan, keys);
        let columns = scan.columns_with(&key_columns);
        let bound = match keys[0].target {
            SortTarget::Field(field) if schema.fields[field].kind.is_numeric() => Bound::Number(field),
            SortTarget::Field(field) => match schema.time {
                TimeRole::Instant(time) if time == field => Bound::Time(keys[0].descending),
                // Open ends make the far side of a box useless, and the other side belongs to another field.
                TimeRole::Interval { start, .. } if start == field && !keys[0].descending => Bound::Time(false),
                TimeRole::Interval { end, .. } if end == field && keys[0].descending => Bound::Time(true),
                _ => Bound::None,
            },
            SortTarget::Id => Bound::None,
        };
        let kept = BinaryHeap::with_capacity(most.min(1024));
        Ok(Sorter { keys: keys.to_vec(), after, most, kept, bytes: 0, share: scan.control.share(), columns, bound })
    }

    /// Takes the events with these ids.
    pub(crate) fn ids(&mut self, scan: &mut Scan, ids: &[String]) -> Result<(), QueryError> {
        for (part, run) in find_ids(scan, ids)? {
            self.read(scan, part, &run)?;
        }
        Ok(())
    }

    /// Takes all events.
    pub(crate) fn all(&mut self, scan: &mut Scan) -> Result<(), QueryError> {
        let mut heap: BinaryHeap<PendingNode> = BinaryHeap::new();
        for part in scan.parts() {
            for tree in 0..scan.part(part).trees().len() {
                if let Some(root) = scan.part(part).trees()[tree].root() {
                    self.push(
                        scan,
                        &mut heap,
                        PendingNode { best: None, descending: false, part, tree, node: root, whole: false },
                    );
                }
            }
        }
        while let Some(open) = heap.pop() {
            if self.is_hopeless(open.best.as_ref()) {
                // Best first: the rest is no better.
                scan.stats.nodes_pruned += 1 + heap.len() as u64;
                break;
            }
            let tree = scan.part(open.part).trees()[open.tree].clone();
            if open.node.level() > READ_LEVEL {
                for node in tree.children(open.node) {
                    self.push(scan, &mut heap, PendingNode { node, best: None, ..open });
                }
                continue;
            }
            let mut candidates =
                Candidates::below(&tree, open.node, open.whole).in_stretches(scan.stretches(open.part));
            let predicate = scan.predicate.clone();
            while let Some(run) =
                candidates.next(&mut scan.stats, &mut |node, whole| match search_step(&predicate, node, whole) {
                    // Also if all rows match: the leaves have their own bounds, and most of them are hopeless.
                    Step::Rows { whole } if !node.is_leaf() => Step::Descend { whole },
                    _ if self.is_hopeless(self.best_of(node).as_ref()) => Step::Skip,
                    step => step,
                })
            {
                self.read(scan, open.part, &run)?;
            }
        }
        Ok(())
    }

    /// The kept events, in order.
    pub(crate) fn finish(self) -> EventList {
        let picks = self.kept.into_sorted_vec().into_iter().map(|k| k.pick).collect();
        EventList::new(picks, Vec::new(), self.share)
    }

    fn push(&self, scan: &mut Scan, heap: &mut BinaryHeap<PendingNode>, mut open: PendingNode) {
        scan.stats.nodes_visited += 1;
        let node = scan.part(open.part).trees()[open.tree].node_ref(open.node);
        if !open.whole {
            open.whole = match scan.predicate.relation(&node) {
                Relation::None => {
                    scan.stats.nodes_pruned += 1;
                    return;
                }
                Relation::All => true,
                Relation::Some => false,
            };
        }
        // Only for nodes that may match: the summary of one that is ruled out is never needed.
        open.best = self.best_of(&node);
        open.descending = self.keys[0].descending;
        heap.push(open);
    }

    /// A lower bound, in sort order, of the first keys below a node: null (last of all) if there is no value below.
    /// `None` if unknown.
    fn best_of(&self, node: &NodeRef<'_>) -> Option<SortValue> {
        match self.bound {
            Bound::None => None,
            Bound::Number(field) => node.field_range(field).map(|range| {
                let best = if self.keys[0].descending { range.max } else { range.min };
                if range.min > range.max { SortValue::Null } else { SortValue::Float(best) }
            }),
            Bound::Time(last) => {
                let bounds = node.bounds();
                Some(SortValue::Int(if last { bounds.end } else { bounds.start }))
            }
        }
    }

    /// Whether no event whose first key is not before `best` can be kept.
    fn is_hopeless(&self, best: Option<&SortValue>) -> bool {
        let (Some(best), true) = (best, self.kept.len() >= self.most) else { return false };
        let Some(worst) = self.kept.peek().and_then(|kept| kept.values.first()) else { return false };
        let descending = self.keys[0].descending;
        match (worst, best) {
            // The range of a node is in floats, rounded outwards.
            (SortValue::Int(n), SortValue::Float(x)) if descending => *x < float_below(*n),
            (SortValue::Int(n), SortValue::Float(x)) => *x > float_above(*n),
            (worst, best) => compare(best, worst, descending) == Ordering::Greater,
        }
    }

    fn read(&mut self, scan: &mut Scan, part: u32, run: &Run) -> Result<(), QueryError> {
        let (rows, batch) = scan.test_with(part, run, &self.columns)?;
        if rows.is_empty() {
            return Ok(());
        }
        let span = rows.span();
        let batch = match batch {
            Some(batch) => batch.slice((span.start - run.rows.start) as usize, span.len()),
            None => scan.read(part, span.clone(), &self.columns)?,
        };
        let seqs = scan.part(part).seqs(span.clone())?;
        self.offer(part, &rows, span.start, &batch, &seqs)
    }

    fn offer(
        &mut self,
        part: u32,
        rows: &MatchedRows,
        first: u32,
        batch: &Batch,
        seqs: &[u64],
    ) -> Result<(), QueryError> {
        let columns: Vec<KeyColumn<'_>> = self.keys.iter().map(|k| KeyColumn::of(k, batch, seqs)).collect();
        let descending = descending_of(&self.keys);
        let order = |row: usize, values: &[SortValue], seq: Seq| {
            let keys = columns.iter().zip(values).enumerate();
            let mut orders = keys.map(|(i, (c, v))| c.compare(row, v, descending >> i & 1 == 1));
            let order = orders.find(|o| *o != Ordering::Equal).unwrap_or(Ordering::Equal);
            order.then_with(|| Seq(seqs[row]).cmp(&seq))
        };
        for row in rows.iter() {
            let i = (row - first) as usize;
            if self.after.as_ref().is_some_and(|(values, seq)| order(i, values, *seq) != Ordering::Greater) {
                continue;
            }
            if self.kept.len() >= self.most {
                match self.kept.peek() {
                    Some(worst) if order(i, &worst.values, worst.pick.seq) == Ordering::Less => {}
                    _ => continue,
                }
                // The worst one leaves first, so the heap never exceeds the limit reserved for it.
                self.bytes -= self.kept.pop().map_or(0, |kept| kept.bytes());
            }
            let values = columns.iter().map(|c| c.value(i)).collect();
            let kept = SortEntry { values, pick: Pick { part, row, seq: Seq(seqs[i]) }, descending };
            self.bytes += kept.bytes();
            self.share.reach(self.bytes)?;
            self.kept.push(kept);
        }
        Ok(())
    }
}

fn key_columns(scan: &Scan, keys: &[SortKey]) -> Projection {
    let mut columns = Projection::none(&scan.layout);
    for key in keys {
        match key.target {
            SortTarget::Field(field) => columns.add(scan.layout.field(field)),
            SortTarget::Id => columns.add_id(&scan.layout),
        }
    }
    columns
}

/// The values by which events are sorted.
pub(crate) fn values_of(scan: &mut Scan, keys: &[SortKey], picks: &[Pick]) -> Result<Vec<Vec<SortValue>>, QueryError> {
    let batch = scan.read_picks(picks, &key_columns(scan, keys))?;
    let seqs: Vec<u64> = picks.iter().map(|pick| pick.seq.0).collect();
    let columns: Vec<KeyColumn<'_>> = keys.iter().map(|key| KeyColumn::of(key, &batch, &seqs)).collect();
    Ok((0..picks.len()).map(|row| columns.iter().map(|column| column.value(row)).collect()).collect())
}
