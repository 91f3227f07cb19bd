//! The box and interval that contain all matches of a query, tested against several nodes at once.
//!
//! A node outside them has no match, whatever else the predicate requires. A few branchless comparisons rule out most
//! children of a node before the predicate is evaluated.

use crate::control::Stats;
use meridian_index::{Children, Node, Tree};
use meridian_model::Bounds;
use meridian_model::filter::Predicate;

/// A box (west, south, east, north) and the first and last instants, as far as the predicate limits them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PredicateBounds {
    place: Option<[f64; 4]>,
    time: Option<(i64, i64)>,
}

impl PredicateBounds {
    pub(crate) fn of(predicate: &Predicate) -> PredicateBounds {
        let Bounds { west, south, east, north, start, end } = predicate.reach();
        let world = Bounds::WORLD;
        // If location does not matter, an event may have none, and no box contains it. A circle may reach beyond a
        // pole.
        let anywhere = west <= world.west && south <= world.south && east >= world.east && north >= world.north;
        let always = (start, end) == (world.start, world.end);
        PredicateBounds {
            place: (!anywhere).then_some([west, south, east, north]),
            time: (!always).then_some((start, end)),
        }
    }

    /// The children of a node that touch these bounds; the others count as pruned. `whole`: all below the node match.
    pub(crate) fn touched(
        &self,
        tree: &Tree,
        node: Node,
        whole: bool,
        stats: &mut Stats,
    ) -> impl DoubleEndedIterator<Item = Node> + use<> {
        let children = tree.children(node);
        let touched = if whole { u64::MAX } else { self.bits(tree, &children) };
        let ruled_out = (0..children.len()).filter(|i| touched >> i & 1 == 0).count() as u64;
        stats.nodes_visited += ruled_out;
        stats.nodes_pruned += ruled_out;
        children.enumerate().filter(move |(i, _)| touched >> i & 1 == 1).map(|(_, child)| child)
    }

    /// A bit for each given node that touches these bounds, lowest bit first.
    fn bits(&self, tree: &Tree, children: &Children) -> u64 {
        let mut touched = u64::MAX;
        if let Some([west, south, east, north]) = self.place
            && tree.knows_place()
        {
            let at = tree.places(children);
            let sides = at.west.iter().zip(at.south).zip(at.east.iter().zip(at.north));
            touched &= bits(sides, |((w, s), (e, n))| (*w <= east) & (west <= *e) & (*s <= north) & (south <= *n));
        }
        if let Some((from, to)) = self.time {
            let (starts, ends) = tree.times(children);
            // The time of a collection without time is 0, and then the predicate decides.
            touched &= bits(starts.iter().zip(ends), |(s, e)| ((*s <= to) & (from <= *e)) | ((*s == 0) & (*e == 0)));
        }
        touched
    }
}

fn bits<T>(values: impl Iterator<Item = T>, test: impl Fn(T) -> bool) -> u64 {
    values.enumerate().fold(0, |bits, (i, value)| bits | u64::from(test(value)) << i)
}
