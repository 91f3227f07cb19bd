//! The order in which the events of a collection were written.

use crate::read::{Changes, PriorEvents};
use meridian_model::{Positions, Seqs};
use meridian_store::StoreError;
use std::fmt::Debug;
/// The order in which the events of a collection were written.
pub trait History: Debug + Send + Sync {
    /// Position of the newest write of each partition.
    fn position(&self) -> Positions;

    /// The min number of any event that a partition may still hold; that of the next write if it is empty.
    fn oldest(&self) -> Seqs;

    /// Returns events written after `after`; if there are more than `max`, the oldest ones. Reads about `step_bytes` at
    /// a time. Each partition gets an equal share of `max`.
    fn changes_after(&self, after: &Seqs, max: usize, step_bytes: usize) -> Result<Box<dyn Changes>, StoreError>;

    /// Returns events written after position `after`, up to and including `upto`; if a partition has more than `max` of
    /// them, its newest ones.
    fn changes_between(&self, after: &Positions, upto: &Positions, max: usize) -> Result<Box<dyn Changes>, StoreError>;

    /// Returns the previous events of objects, as of now.
    fn prior_events(&self) -> Box<dyn PriorEvents>;
}
