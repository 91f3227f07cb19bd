//! What a filter asks of the pieces of a long line.

use super::expr::SpatialOp;
use super::predicate::{Node, Predicate};

impl Predicate {
    /// What pieces of a geometry may be held against before the geometry is.
    ///
    /// If this is true of an event and its geometry lies in several boxes together, then for at least one of the boxes,
    /// with the event's time, [`Predicate::relation`] of the answer is not [`super::Relation::None`]. No answer where
    /// this says nothing of the place, or speaks of the geometry as a whole.
    pub fn of_pieces(&self) -> Option<Predicate> {
        match self.node() {
            Node::Constant(false) | Node::Bbox(_) | Node::Near(_) => Some(self.clone()),
            Node::Spatial(test) if matches!(test.op, SpatialOp::Intersects | SpatialOp::Within) => Some(self.clone()),
            // Each place may be met by another piece, so only one can be asked for; the time is that of all pieces.
            Node::And(parts) => {
                let place = parts.iter().find_map(Predicate::of_pieces)?;
                let times = parts.iter().filter(|part| matches!(part.node(), Node::Primary(_))).cloned();
                Some(Predicate::and(times.chain([place]).collect()))
            }
            Node::Or(any) => Some(Predicate::or(any.parts.iter().map(Predicate::of_pieces).collect::<Option<_>>()?)),
            _ => None,
        }
    }
}
