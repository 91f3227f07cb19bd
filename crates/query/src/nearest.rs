//! Events by distance, best first.
//!
//! One heap covers all trees of all parts. It holds nodes by a lower bound of the distance to their box, and events by
//! their distance. The method is from Hjaltason and Samet, "Distance browsing in spatial databases" (1999). The top of
//! the heap is final. So the ten nearest cost a few leaves however many events there are, and the stream continues
//! without any sorting.

use crate::candidates::{Candidates, Step};
use crate::distance::{NearQuestion, geometry_columns, measure};
use crate::error::QueryError;
use crate::matched_rows::Pick;
use crate::memory::Share;
use crate::scan::Scan;
use meridian_index::Node;
use meridian_model::Projection;
use meridian_model::filter::{Region, Relation, distance_to_box_m};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The heap and its query.
pub(crate) struct Nearest {
    heap: BinaryHeap<Entry>,
    sought: NearQuestion,
    columns: Projection,
    /// The shortest distances found so far, as many as requested. Anything farther than the longest is excluded.
    best: BinaryHeap<Metres>,
    share: Share,
}

/// A totally ordered distance.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Metres(f64);

impl Eq for Metres {}

impl Ord for Metres {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Metres {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Max number of distances kept to exclude farther events.
const BEST_MAX: usize = 1 << 14;

/// A node or an event in the heap.
struct Entry {
    distance_m: f64,
    what: Target,
}

enum Target {
    Node { part: u32, tree: usize, node: Node, whole: bool },
    Event(Pick),
}

impl Entry {
    /// Nodes before events at one distance: an event below may have that distance and a lower number.
    fn rank(&self) -> (bool, u64) {
        match &self.what {
            Target::Node { .. } => (false, 0),
            Target::Event(pick) => (true, pick.seq.0),
        }
    }
}

impl Ord for Entry {
    /// Reversed: the heap returns the nearest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance_m.total_cmp(&self.distance_m).then_with(|| other.rank().cmp(&self.rank()))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl Nearest {
    /// Starts with the roots of all trees.
    pub(crate) fn new(scan: &mut Scan, sought: &NearQuestion) -> Nearest {
        let geometry = geometry_columns(scan);
        let columns = scan.columns_with(&geometry);
        let share = scan.control.share();
        let mut nearest = Nearest { heap: BinaryHeap::new(), sought: *sought, columns, best: BinaryHeap::new(), share };
        for part in scan.parts() {
            for tree in 0..scan.part(part).trees().len() {
                if let Some(root) = scan.part(part).trees()[tree].root() {
                    nearest.push(scan, part, tree, root, false);
                }
            }
        }
        nearest
    }

    /// The next events with their distances, at most `want`; fewer only if there are no more.
    pub(crate) fn fill(&mut self, scan: &mut Scan, want: usize) -> Result<(Vec<Pick>, Vec<f64>), QueryError> {
        let (mut picks, mut distances) = (Vec::new(), Vec::new());
        while picks.len() < want
            && let Some(entry) = self.heap.pop()
        {
            match entry.what {
                Target::Event(pick) => {
                    picks.push(pick);
                    distances.push(entry.distance_m);
                }
                Target::Node { part, tree, node, whole } => {
                    self.open(scan, part, tree, node, whole)?;
                    // After each node: the heap grows with the events around the position, not with the page.
                    self.share.reach(self.held())?;
                }
            }
        }
        Ok((picks, distances))
    }

    /// Bytes of the events found but not returned yet.
    pub(crate) fn held(&self) -> usize {
        self.heap.capacity() * size_of::<Entry>() + self.best.capacity() * size_of::<Metres>()
    }

    /// The distance beyond which no event is needed: one more than fits the page shows whether there is another page.
    fn most(&self) -> f64 {
        match (self.sought.limit, self.best.peek()) {
            (Some(limit), Some(farthest)) if self.best.len() > limit => farthest.0,
            _ => f64::INFINITY,
        }
    }

    /// Adds a node, unless nothing below it can match.
    fn push(&mut self, scan: &mut Scan, part: u32, tree: usize, node: Node, whole: bool) {
        scan.stats.nodes_visited += 1;
        let region = scan.part(part).trees()[tree].node_ref(node);
        // The predicate rules out most nodes, and costs less than a distance.
        let relation = if whole { Relation::All } else { scan.predicate.relation(&region) };
        let distance_m = match relation {
            Relation::None => f64::INFINITY,
            _ => distance_to_box_m(self.sought.lon, self.sought.lat, &region.bounds()),
        };
        if distance_m.is_infinite() || distance_m > self.most() {
            scan.stats.nodes_pruned += 1;
            return;
        }
        scan.stats.nodes_whole += u64::from(relation == Relation::All && !whole);
        let whole = relation == Relation::All;
        self.heap.push(Entry { distance_m, what: Target::Node { part, tree, node, whole } });
    }

    /// Replaces a node by its children, or a leaf by its events.
    fn open(&mut self, scan: &mut Scan, part: u32, tree: usize, node: Node, whole: bool) -> Result<(), QueryError> {
        let owner = scan.part(part).trees()[tree].clone();
        if !owner.is_leaf(node) {
            let limits = scan.bounds;
            for child in limits.touched(&owner, node, whole, &mut scan.stats) {
                self.push(scan, part, tree, child, whole);
            }
            return Ok(());
        }
        // A leaf may cross the end of a chunk: then it is two runs.
        let mut leaf = Candidates::below(&owner, node, whole);
        while let Some(run) = leaf.next(&mut crate::control::Stats::default(), &mut |_, whole| Step::Rows { whole }) {
            let mut most = self.most();
            let (heap, best, sought) = (&mut self.heap, &mut self.best, &self.sought);
            let room = sought.limit.filter(|limit| *limit < BEST_MAX).map(|limit| limit + 1);
            measure(scan, part, &run, &self.columns, sought, most, |distance_m, pick| {
                if distance_m > most || !sought.wants(distance_m, pick.seq) {
                    return;
                }
                heap.push(Entry { distance_m, what: Target::Event(pick) });
                let Some(room) = room else { return };
                // The best distances so far bound a page: farther nodes need not enter the heap at all.
                best.push(Metres(distance_m));
                if best.len() > room {
                    best.pop();
                }
                if best.len() == room {
                    most = best.peek().map_or(most, |farthest| farthest.0);
                }
            })?;
        }
        Ok(())
    }
}
