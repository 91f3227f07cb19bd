//! The part of a filter that can be tested on the pieces of a long line.

use super::expr::SpatialOp;
use super::predicate::{Node, Predicate};

impl Predicate {
    /// A predicate to test on the pieces of a geometry before the geometry itself.
    ///
    /// Suppose that this predicate is true of an event, and that several boxes together cover its geometry. Then for at
    /// least one box with the event's time, [`Predicate::relation`] of the result is not [`super::Relation::None`].
    /// `None` if there is no condition on the geometry, or one on the geometry as a whole.
    pub fn of_pieces(&self) -> Option<Predicate> {
        match self.node() {
            Node::Constant(false) | Node::Bbox(_) | Node::Near(_) => Some(self.clone()),
            Node::Spatial(test) if matches!(test.op, SpatialOp::Intersects | SpatialOp::Within) => Some(self.clone()),
            // Different pieces may satisfy different spatial conditions, so only one can be tested; the time is
            // common to all.
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
