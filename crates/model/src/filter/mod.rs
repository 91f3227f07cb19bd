//! Filters: CQL2 expressions and the predicates bound from them.
//!
//! [`parse_text()`] and [`parse_json()`] read a CQL2 filter (OGC 21-065r2) into an [`Expr`], which is independent of
//! any collection; [`Predicate::bind`] checks it against a schema. [`Predicate`] is the one form that queries run: it
//! tests rows a column at a time ([`Predicate::evaluate`]) and tree nodes by their bounds ([`Predicate::relation`]).

mod any;
mod bands;
mod bind;
mod booleans;
mod expr;
pub mod globe;
mod lexer;
mod like;
mod literal;
mod near;
mod numbers;
mod outcomes;
mod parse_json;
mod parse_text;
mod pieces;
mod place;
mod predicate;
pub mod region;
mod shape;
mod space_time;
mod spatial;
mod temporal;
mod texts;
mod truth;
mod wire;
mod write;

pub use expr::{ArrayOp, Comparison, Expr, IntervalEnd, Operand, SpatialOp, TemporalOp};
pub use globe::{distance_to_box_m, distance_to_geometry_m, farthest_in_box_m};
pub use lexer::TEXT_BYTES_MAX;
pub use near::{box_around, distances_m};
pub use parse_json::{VALUES_MAX, parse_json};
pub use parse_text::{DEPTH_MAX, is_bare_name, parse_text};
pub use predicate::{Predicate, RegionVerdict};
pub use region::{FieldRange, Region, Relation};
pub use space_time::SpaceTimeFilter;
pub use write::{to_json, to_text};

#[cfg(test)]
pub(crate) mod tests;
