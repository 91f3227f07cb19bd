//! One partition of a collection.

use crate::collection::Collection;
use crate::read::{At, Head};
use meridian_query::partial::RowStream;
use meridian_query::{Control, Items, QueryError};
use meridian_store::Imported;

/// One partition of a collection, in this or another process.
pub trait Part: Collection {
    /// Returns events in an order, each with its place in it. Returns one more than the limit, if there are as many.
    ///
    /// # Errors
    /// As [`Collection::items`].
    fn rows(
        &self,
        at: At,
        question: &Items,
        control: &Control,
    ) -> Result<(Head, Box<dyn RowStream + Send>), QueryError>;

    /// Returns which of its events a restore has divided among a different number of partitions, if any.
    fn imported(&self) -> Option<Imported>;

    /// Records that another process shows this snapshot now. It is kept for as long as a page token that names it,
    /// unless it is gone already.
    fn note_use(&self, seq: Seq);

    /// Returns the number of existing events with positions after `after`, up to and including `upto`.
    fn count_between(&self, after: u64, upto: u64) -> Result<u64, StoreError>;
}
