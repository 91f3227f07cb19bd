//! Queries that read one snapshot of a collection.

use crate::read::{Head, ReadPoint, ReadResult, Rows};
use meridian_model::filter::Predicate;
use meridian_query::partial::Partial;
use meridian_query::wire::Question;
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Passages, PassagesResult,
    QueryError, Tile, TileResult, Track, TrackResult,
};
use std::fmt::Debug;
/// Queries that read one snapshot of a collection.
pub trait Queries: Debug + Send + Sync {
    /// Returns whether its queries end at the limits of [`Control::brief`], because they run in this process only.
    fn may_be_brief(&self) -> bool {
        false
    }

    /// Returns the snapshot that a query would read; `None` if only the query itself can tell.
    fn head(&self, _at: &ReadPoint) -> Option<Head> {
        None
    }

    /// Returns events in an order, one page or all of them.
    fn items(&self, at: ReadPoint, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError>;

    /// Returns cuts that divide all events in natural order into at most `parts` parts of about equal size. The cuts
    /// are for [`Items::after`] and [`Items::until`]: ascending, fewer than `parts`.
    fn cuts(&self, at: ReadPoint, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError>;

    /// Returns the number of events that match; `None` if more than `tested_max` of them would have to be tested one by
    /// one.
    fn count(
        &self,
        at: ReadPoint,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError>;

    /// Returns the collection's partial result of a query for one value. Another server merges and finishes it.
    fn partial(&self, at: ReadPoint, question: &Question, control: &Control)
    -> Result<ReadResult<Partial>, QueryError>;

    /// Returns the cost of a query for events, and how it is executed.
    fn explain(
        &self,
        at: ReadPoint,
        question: &Items,
        control: &Control,
    ) -> Result<ReadResult<Explanation>, QueryError>;

    /// Returns aggregates of the events, by window and field.
    fn aggregate(
        &self,
        at: ReadPoint,
        question: &Aggregate,
        control: &Control,
    ) -> Result<ReadResult<Aggregated>, QueryError>;

    /// Returns counts of the events in the cells of a grid.
    fn density(
        &self,
        at: ReadPoint,
        question: &Density,
        control: &Control,
    ) -> Result<ReadResult<DensityCounts>, QueryError>;

    /// Returns a vector tile.
    fn tile(&self, at: ReadPoint, question: &Tile, control: &Control) -> Result<ReadResult<TileResult>, QueryError>;

    /// Returns the track of one object.
    fn track(&self, at: ReadPoint, question: &Track, control: &Control) -> Result<ReadResult<TrackResult>, QueryError>;

    /// Returns which objects passed, and when.
    fn passages(
        &self,
        at: ReadPoint,
        question: &Passages,
        control: &Control,
    ) -> Result<ReadResult<PassagesResult>, QueryError>;
}
