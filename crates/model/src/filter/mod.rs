//! Filters: CQL2 expressions and the predicates that they become.
//!
//! [`Predicate`] is the one form that queries run: it tests rows a column at a time ([`Predicate::evaluate`]) and
//! tree nodes by their bounds ([`Predicate::relation`]).

pub mod globe;
mod near;
mod outcomes;
mod place;
mod planar;
mod predicate;
pub mod region;
mod temporal;
mod truth;

pub use globe::{distance_to_box_m, distance_to_geometry_m, farthest_in_box_m};
pub use near::distances_m;
pub use predicate::Predicate;
pub use region::{FieldRange, Region, Relation};
