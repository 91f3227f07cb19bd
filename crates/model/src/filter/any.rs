//! The alternatives of an OR, indexed by the region in which each can be true.
//!
//! A filter may be a thousand boxes or windows. Each alternative has a box in longitude, latitude and time outside of
//! which it cannot be true ([`Predicate::reach`]). A small tree over these boxes selects the few alternatives that a
//! node of an index or a row of a batch can touch. The others are not tested.

use super::outcomes::Outcomes;
use super::predicate::{Node, Predicate};
use super::region::Region;
use super::truth::{Truth, still_open};
use crate::batch::{Batch, FieldColumn};
use crate::bounds::Bounds;
use crate::planar::Sides;
use crate::schema::TimeRole;
use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use std::collections::BTreeMap;
use std::ops::Range;

/// Min number of alternatives for which a tree pays off.
const INDEXED_MIN: usize = 8;
/// Max alternatives in a leaf of the tree.
const LEAF: usize = 4;

/// The alternatives of an OR.
#[derive(Debug)]
pub(crate) struct AnyOf {
    pub(crate) parts: Vec<Predicate>,
    tree: Option<BoxTree>,
}

impl AnyOf {
    /// Alternatives for a context that only needs to know whether one is true.
    ///
    /// With a tree, an out-of-reach alternative counts as false even if it is unknown. This is correct below AND and
    /// OR, where both lead to the same matches, and wrong below NOT, which uses [`AnyOf::plain`].
    pub(crate) fn new(parts: Vec<Predicate>) -> AnyOf {
        let tree = (parts.len() >= INDEXED_MIN).then(|| BoxTree::new(parts.iter().map(Predicate::reach).collect()));
        AnyOf { parts, tree }
    }

    /// Alternatives without a tree: all are tested one by one.
    pub(crate) fn plain(parts: Vec<Predicate>) -> AnyOf {
        AnyOf { parts, tree: None }
    }

    /// Whether there are enough alternatives for a tree.
    pub(crate) fn is_indexed(&self) -> bool {
        self.tree.is_some()
    }

    pub(crate) fn outcomes(&self, region: &dyn Region) -> Outcomes {
        let Some(tree) = &self.tree else {
            return self.parts.iter().fold(Outcomes::FALSE, |o, p| o.or(p.outcomes(region)));
        };
        let mut outcomes = Outcomes::FALSE;
        tree.touching(&anywhere(region.bounds()), &mut |part| {
            outcomes = outcomes.or(self.parts[part as usize].outcomes(region));
            // One certainly true alternative decides an OR.
            outcomes != Outcomes::TRUE
        });
        outcomes
    }

    pub(crate) fn truth(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        let Some(tree) = &self.tree else {
            let mut truth = Truth::constant(false, batch.rows());
            for part in &self.parts {
                let rest = still_open(open, &truth.yes);
                truth = truth.or(part.truth(batch, Some(&rest)));
            }
            return truth;
        };
        // By row first: a row touches few alternatives, and each alternative is then tested for all its rows at once.
        let boxes = RowBoxes::of(batch);
        let mut rows_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in (0..batch.rows()).filter(|&row| open.is_none_or(|open| open.value(row))) {
            tree.touching(&boxes.at(row), &mut |part| {
                rows_of.entry(part).or_default().push(row as u32);
                true
            });
        }
        let mut yes = BooleanBufferBuilder::new(batch.rows());
        yes.append_n(batch.rows(), false);
        for (part, mut rows) in rows_of {
            // Rows that an earlier alternative matched need no further test.
            rows.retain(|row| !yes.get_bit(*row as usize));
            if rows.is_empty() {
                continue;
            }
            let found = self.parts[part as usize].truth(&batch.take(&rows), None).yes;
            found.set_indices().for_each(|i| yes.set_bit(rows[i] as usize, true));
        }
        // False and unknown are equivalent here: an OR with a tree is never below a NOT (`Predicate::plain`).
        Truth::of(yes.finish(), None)
    }
}

impl Predicate {
    /// A box that shares a place and an instant with every matching event. An event without geometry counts as
    /// everywhere, and one of a collection without time as at every instant. A filter that is always false is nowhere,
    /// within its tests of the time.
    pub fn reach(&self) -> Bounds {
        let place = |[west, south, east, north]: Sides| Bounds { west, south, east, north, ..Bounds::WORLD };
        let time = |(start, end): (i64, i64)| Bounds { start, end, ..Bounds::WORLD };
        match self.node() {
            Node::Constant(false) => Bounds { start: i64::MIN, end: i64::MAX, ..Bounds::EMPTY },
            // A matching event lies in the reach of every part, and so in their intersection.
            Node::And(parts) => parts.iter().fold(Bounds::WORLD, |all, part| {
                let reach = part.reach();
                Bounds {
                    west: all.west.max(reach.west),
                    south: all.south.max(reach.south),
                    east: all.east.min(reach.east),
                    north: all.north.min(reach.north),
                    start: all.start.max(reach.start),
                    end: all.end.min(reach.end),
                }
            }),
            Node::Or(any) => any.parts.iter().fold(Bounds::EMPTY, |all, part| all.union(&part.reach())),
            Node::Not(inner) => match inner.node() {
                // Only the negation of a time test is bounded: the outside of a box is nearly everywhere.
                Node::Temporal(test) => test.reach_of_contrary().map_or(Bounds::WORLD, time),
                _ => Bounds::WORLD,
            },
            Node::Bbox(test) => place(test.sides()),
            Node::Primary(interval) => time((interval.start, interval.end)),
            Node::Near(near) => place(near.sides()),
            Node::Spatial(test) => test.reach().map_or(Bounds::WORLD, place),
            Node::Temporal(test) => test.reach().map_or(Bounds::WORLD, time),
            _ => Bounds::WORLD,
        }
    }
}

/// A condition without a spatial part touches every place, since it may match by time alone. The time of a collection
/// without time is 0 and must touch every time.
fn anywhere(bounds: Bounds) -> Bounds {
    let Bounds { start, end, .. } = bounds;
    let (start, end) = if start == 0 && end == 0 { (i64::MIN, i64::MAX) } else { (start, end) };
    if bounds.is_nowhere() { Bounds { start, end, ..Bounds::WORLD } } else { Bounds { start, end, ..bounds } }
}

/// The boxes of a batch's rows. Columns that were not read count as anywhere and always.
struct RowBoxes<'a> {
    batch: &'a Batch,
    time: bool,
}

impl RowBoxes<'_> {
    fn of(batch: &Batch) -> RowBoxes<'_> {
        let read = |field: usize| matches!(batch.field(field), Some(FieldColumn::Time(_)));
        let time = match batch.schema().time {
            TimeRole::None => false,
            TimeRole::Instant(field) => {
                matches!(batch.field(field), Some(FieldColumn::Time(times)) if times.null_count() == 0)
            }
            TimeRole::Interval { start, end } => read(start) && read(end),
        };
        RowBoxes { batch, time }
    }

    fn at(&self, row: usize) -> Bounds {
        let bounds = anywhere(self.batch.bounds(row));
        if self.time { bounds } else { Bounds { start: i64::MIN, end: i64::MAX, ..bounds } }
    }
}

/// A tree of boxes, packed by splitting at the widest side.
#[derive(Debug)]
struct BoxTree {
    /// Nodes in preorder: each before its descendants.
    nodes: Vec<BoxNode>,
    /// Numbers of the boxes, in the order of the nodes.
    items: Vec<u32>,
    /// The boxes, by number.
    boxes: Vec<Bounds>,
}

#[derive(Debug)]
struct BoxNode {
    bounds: Bounds,
    /// Range in `items`; empty for an inner node.
    items: Range<u32>,
    /// The first node that is not a descendant of this one.
    next: u32,
}

impl BoxTree {
    fn new(boxes: Vec<Bounds>) -> BoxTree {
        let centres: Vec<[f64; 3]> = boxes.iter().map(centre).collect();
        let mut tree = BoxTree { nodes: Vec::new(), items: (0..boxes.len() as u32).collect(), boxes };
        tree.split(0..tree.items.len(), &centres);
        tree
    }

    fn split(&mut self, range: Range<usize>, centres: &[[f64; 3]]) {
        let bounds = self.items[range.clone()].iter().fold(Bounds::EMPTY, |b, &i| b.union(&self.boxes[i as usize]));
        let at = self.nodes.len();
        let leaf = range.len() <= LEAF;
        let items = if leaf { range.start as u32..range.end as u32 } else { 0..0 };
        self.nodes.push(BoxNode { bounds, items, next: 0 });
        if !leaf {
            let middle = range.start + range.len() / 2;
            let spread = |axis: usize| {
                let of = self.items[range.clone()].iter().map(|&i| centres[i as usize][axis]);
                of.clone().fold(f64::NEG_INFINITY, f64::max) - of.fold(f64::INFINITY, f64::min)
            };
            // Days and degrees share one scale: all that matters is that some axis separates the boxes.
            let axis = (0..3).max_by(|&a, &b| spread(a).total_cmp(&spread(b))).unwrap_or(0);
            // A median split needs no full sort, and keeps the tree balanced however the boxes cluster.
            self.items[range.clone()].select_nth_unstable_by(range.len() / 2, |&a, &b| {
                centres[a as usize][axis].total_cmp(&centres[b as usize][axis])
            });
            self.split(range.start..middle, centres);
            self.split(middle..range.end, centres);
        }
        self.nodes[at].next = self.nodes.len() as u32;
    }

    /// Calls `visit` with the number of each box that touches the given one, until it returns `false`.
    fn touching(&self, bounds: &Bounds, visit: &mut dyn FnMut(u32) -> bool) {
        let touches = |other: &Bounds| other.touches_in_space(bounds) && other.touches_in_time(bounds);
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            if !touches(&node.bounds) {
                // Nodes are in preorder, so one index skips a whole subtree without a stack.
                at = node.next as usize;
                continue;
            }
            for &item in &self.items[node.items.start as usize..node.items.end as usize] {
                if touches(&self.boxes[item as usize]) && !visit(item) {
                    return;
                }
            }
            at += 1;
        }
    }
}

/// Longitude and latitude in degrees, and days.
fn centre(bounds: &Bounds) -> [f64; 3] {
    let days = (bounds.start as f64 * 0.5 + bounds.end as f64 * 0.5) / 86_400e6;
    [(bounds.west + bounds.east) * 0.5, (bounds.south + bounds.north) * 0.5, days]
}
