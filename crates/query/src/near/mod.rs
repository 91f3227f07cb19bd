//! The near kernel of the places profile: the number of places in a circle, and the nearest of them.
//!
//! One walk over the trees sorts nodes into three: outside the circle, wholly inside, and cut by its edge. Inside
//! nodes are counted from the tree, and read only while they may hold one of the nearest; cut leaves are tested row
//! by row. Nodes are compared with the circle's box before any trigonometry. Rows are compared by the haversine of
//! their distance, so only returned places cost a square root.

mod chunks;
mod circle;

pub use chunks::Chunks;
pub use circle::Circle;

use arrow_array::Array;
use meridian_index::{FANOUT, LEAF_ROWS, Node, Tree};
use meridian_model::Projection;
use meridian_model::sphere::EARTH_RADIUS_M;
use meridian_store::{Snapshot, StoreError};
use std::borrow::Cow;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A place found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Great-circle distance in metres.
    pub distance_m: f64,
    /// Which part of the snapshot.
    pub part: usize,
    /// Its row there.
    pub row: u32,
}

/// An unread node wholly inside the circle, nearest first.
struct InsideNode {
    /// Lower bound of the haversine of the distance.
    nearest: f64,
    part: usize,
    tree: usize,
    node: Node,
}

impl PartialEq for InsideNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for InsideNode {}

impl PartialOrd for InsideNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InsideNode {
    /// Reversed: the heap returns the nearest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.nearest.total_cmp(&self.nearest)
    }
}

/// The result of a walk over the trees: no row has been read yet.
pub struct Walk {
    circle: Circle,
    /// Leaves cut by the edge: part and rows.
    cut: Vec<(usize, Range<u32>)>,
    inside: Vec<InsideNode>,
}

impl Walk {
    /// Classifies the nodes of a snapshot by their relation to a circle. The snapshot must be open for it: see
    /// [`Circle::bounds`].
    pub fn new(snapshot: &Snapshot, circle: Circle) -> Walk {
        let mut walk = Walk { circle, cut: Vec::new(), inside: Vec::new() };
        // One stack for all trees, large enough for any depth: the kernel allocates as little as possible.
        let mut stack = Vec::with_capacity(64);
        for (part, view) in snapshot.parts.iter().enumerate() {
            for (number, tree) in view.trees().iter().enumerate() {
                let Some(root) = tree.root() else { continue };
                if walk.circle.touches(&tree.bounds(root)) {
                    walk.reach(part, number, tree, root, &mut stack);
                }
                while let Some(node) = stack.pop() {
                    walk.below(part, number, tree, node, &mut stack);
                }
            }
        }
        walk
    }

    /// Finds the children of a node that the circle's boxes touch.
    fn below(&mut self, part: usize, number: usize, tree: &Tree, node: Node, stack: &mut Vec<Node>) {
        let children = tree.children(node);
        let places = tree.places(&children);
        // One bit per child, computed for all at once: most of a walk is finding that a node is elsewhere.
        let mut touched = 0u32;
        for [west, south, east, north] in self.circle.boxes.iter().flatten() {
            for at in 0..places.west.len().min(FANOUT) {
                let near = (places.west[at] <= *east)
                    & (*west <= places.east[at])
                    & (places.south[at] <= *north)
                    & (*south <= places.north[at]);
                touched |= u32::from(near) << at;
            }
        }
        for (at, child) in children.enumerate() {
            if touched >> at & 1 == 1 {
                self.reach(part, number, tree, child, stack);
            }
        }
    }

    /// Classifies a node that the circle's boxes touch.
    fn reach(&mut self, part: usize, number: usize, tree: &Tree, node: Node, stack: &mut Vec<Node>) {
        let circle = &self.circle;
        let bounds = tree.bounds(node);
        if circle.holds(&bounds) {
            // Counted without a read. Whether its rows are among the nearest is decided once the cut leaves are
            // known.
            self.inside.push(InsideNode { nearest: circle.nearest(&bounds), part, tree: number, node });
        } else if tree.is_leaf(node) {
            self.cut.push((part, tree.rows(node)));
        } else {
            stack.push(node);
        }
    }

    /// Approximate number of rows that the next step reads for the `k` nearest.
    pub fn rows_to_read(&self, k: usize) -> usize {
        self.cut.iter().map(|(_, rows)| rows.len()).sum::<usize>() + k
    }

    /// Counts the places in the circle and finds the `k` nearest, ordered by distance, then by sequence number.
    pub fn finish(self, snapshot: &Snapshot, k: usize) -> Result<(u64, Vec<Hit>), StoreError> {
        let Walk { circle, cut, inside } = self;
        let mut columns = Projection::none(&snapshot.layout);
        columns.add_geometry(&snapshot.layout);
        // Small initial capacity: another server may request any number.
        let best = BinaryHeap::with_capacity(k.min(ROOM) + 1);
        snapshot.load(&cut, &columns);
        let mut reader = Reader { snapshot, chunks: Chunks::new(columns), best, k, circle };
        let mut total = 0;
        for (part, rows) in cut {
            // Cut leaves first: they must be read in any case, and they limit which inside nodes have to be opened.
            total += reader.leaf(part, rows)?;
        }
        for entry in &inside {
            let view = &snapshot.parts[entry.part];
            let rows = view.trees()[entry.tree].rows(entry.node);
            total += if view.all_visible(rows.clone()) {
                rows.len() as u64
            } else {
                view.visible(rows)?.count_set_bits() as u64
            };
        }
        let mut heap = BinaryHeap::from(inside);
        while let Some(entry) = heap.pop() {
            // The heap is ordered, so every other node is at least as far.
            if is_full_below(&reader.best, k, entry.nearest) {
                break;
            }
            let tree = &snapshot.parts[entry.part].trees()[entry.tree];
            if tree.is_leaf(entry.node) {
                reader.leaf(entry.part, tree.rows(entry.node))?;
                continue;
            }
            for node in tree.children(entry.node) {
                heap.push(InsideNode { nearest: circle.nearest(&tree.bounds(node)), node, ..entry });
            }
        }
        Ok((total, reader.hits()))
    }
}

/// Max initial capacity for places.
const ROOM: usize = 1024;

/// A place among the nearest so far; the max is evicted first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    haversine: f64,
    seq: u64,
    part: usize,
    row: u32,
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Ties by sequence number: of equal distances the event written first, whichever part holds it.
        self.haversine.total_cmp(&other.haversine).then(self.seq.cmp(&other.seq))
    }
}

/// Whether nothing at this haversine or farther can be among the `k` nearest.
fn is_full_below(best: &BinaryHeap<Candidate>, k: usize, haversine: f64) -> bool {
    best.len() == k && best.peek().is_none_or(|worst| worst.haversine < haversine)
}

struct Reader<'a> {
    snapshot: &'a Snapshot,
    chunks: Chunks,
    best: BinaryHeap<Candidate>,
    k: usize,
    circle: Circle,
}

impl Reader<'_> {
    /// Tests the rows of a leaf; returns how many lie in the circle.
    fn leaf(&mut self, part: usize, rows: Range<u32>) -> Result<u64, StoreError> {
        let view = &self.snapshot.parts[part];
        let visible = if view.all_visible(rows.clone()) { None } else { Some(view.visible(rows.clone())?) };
        let circle = self.circle;
        let mut seqs: Option<Cow<'_, [u64]>> = None;
        let mut total = 0;
        let mut haversines = [0.0; LEAF_ROWS];
        // A leaf may span two blocks.
        let mut start = rows.start;
        while start < rows.end {
            let (batch, first) = self.chunks.get(part, view, start)?;
            let end = rows.end.min(first + batch.rows() as u32).min(start + LEAF_ROWS as u32);
            let Some((lons, lats)) = batch.points() else { return Ok(total) };
            let at = (start - first) as usize..(end.max(start) - first) as usize;
            let (lons_at, lats_at) = (&lons.values()[at.clone()], &lats.values()[at.clone()]);
            start = end.max(start + 1);
            // Comparisons alone first, so few that the processor prefetches the whole leaf. They suffice for most
            // leaves that a small circle cuts.
            if !circle.boxes_hold_any(lons_at, lats_at) {
                continue;
            }
            let found = &mut haversines[..at.len()];
            circle.haversines(lons_at, lats_at, found);
            for (i, &haversine) in found.iter().enumerate() {
                if haversine > circle.reach || lons.is_null(at.start + i) {
                    continue;
                }
                let row = first + (at.start + i) as u32;
                if visible.as_ref().is_some_and(|v| !v.value((row - rows.start) as usize)) {
                    continue;
                }
                total += 1;
                // Counted but not kept: sequence numbers are read only for rows that may be returned.
                if is_full_below(&self.best, self.k, haversine) {
                    continue;
                }
                let seqs = match &mut seqs {
                    Some(seqs) => seqs,
                    none => none.insert(match view.seqs_at_hand(rows.clone()) {
                        Some(seqs) => Cow::Borrowed(seqs),
                        None => Cow::Owned(view.seqs(rows.clone())?),
                    }),
                };
                self.best.push(Candidate { haversine, seq: seqs[(row - rows.start) as usize], part, row });
                if self.best.len() > self.k {
                    self.best.pop();
                }
            }
        }
        Ok(total)
    }

    fn hits(self) -> Vec<Hit> {
        let metres = |h: f64| 2.0 * EARTH_RADIUS_M * h.sqrt().min(1.0).asin();
        let sorted = self.best.into_sorted_vec();
        sorted.iter().map(|c| Hit { distance_m: metres(c.haversine), part: c.part, row: c.row }).collect()
    }
}
