//! Lookups in a collection that need no plan: by id, by nearness, by page, at random.

use crate::read::{Near, ReadResult, RowSink};
use meridian_model::{Batch, Seq};
use meridian_query::{Control, QueryError};
use meridian_store::StoreError;
use meridian_store::seams::Random;
use std::fmt::Debug;
/// Lookups in a collection that need no plan: by id, by nearness, by page, at random.
pub trait Lookups: Debug + Send + Sync {
    /// Returns the event with this id and its number, from the history.
    fn event(&self, id: &str) -> Result<ReadResult<Option<(Batch, Seq)>>, StoreError>;

    /// Passes the events in a circle to a sink, nearest first, with their total number. If more than `rows_max` rows
    /// would have to be read, returns `false` and reads none, so that the caller can run it on another thread.
    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError>;

    /// Passes a page of all events to a sink, in no particular order, with their total number.
    fn page(&self, skip: u64, limit: usize, control: &Control, sink: &mut dyn RowSink) -> Result<(), QueryError>;

    /// Passes the event with this id to a sink; returns whether it exists.
    fn find(&self, id: &str, sink: &mut dyn RowSink) -> Result<bool, StoreError>;

    /// Passes a random event to a sink; returns whether there is one.
    fn sample(&self, random: &dyn Random, control: &Control, sink: &mut dyn RowSink) -> Result<bool, QueryError>;
}
