//! Filters: CQL2 expressions and the predicates that they become.

pub mod region;

pub use region::{FieldRange, Region, Relation};
