//! One collection.

use crate::read::{At, Changes, Near, PriorEvents, Read, RowSink, Rows};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, Schema, Seq};
use meridian_query::{
    Aggregate, Aggregated, Control, Density, DensityCounts, Explanation, Items, Passages, PassagesAnswer, QueryError,
    Tile, TileAnswer, Track, TrackAnswer,
};
use meridian_store::seams::Random;
use meridian_store::{CollectionStats, Deleted, Files, Settings, StoreError, Write, WriteError, Written};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A write that is queued. Dropped, it is taken back, unless it is being committed already.
pub type Append = Pin<Box<dyn Future<Output = Result<Written, WriteError>> + Send>>;

/// A deletion by filter that did not come to its end.
#[derive(Debug)]
pub struct PartialDelete {
    /// Events that are deleted, for good.
    pub deleted: u64,
    /// Events that matched.
    pub matched: u64,
    /// Why it went no further.
    pub why: DeleteFault,
}

/// Why a deletion went no further.
#[derive(Debug)]
pub enum DeleteFault {
    /// What matches could not be found, or the time was over.
    Query(QueryError),
    /// What matched could not be deleted.
    Write(WriteError),
}

/// A named set of events with one schema.
pub trait Collection: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// When it was made, in microseconds since 1970: another of the same name has another time.
    fn created(&self) -> i64;

    /// The schema as of now.
    fn schema(&self) -> Arc<Schema>;

    /// What was chosen for it.
    fn settings(&self) -> Settings;

    /// The collection in numbers.
    fn stats(&self) -> CollectionStats;

    /// Position of the newest write.
    fn position(&self) -> u64;

    /// The min number of any event that may still be held; of the next write, where there is none.
    fn oldest(&self) -> Seq;

    /// Adds optional fields and changes the settings: both or, on an error, neither.
    fn change(&self, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError>;

    /// How many events these settings would remove.
    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError>;

    /// Whether there is room in memory for a write; where there is none, room is asked for. Returns at once.
    ///
    /// # Errors
    /// [`WriteError::Refused`] where no room will come, as the collection takes no writes.
    fn ask_for_room(&self) -> Result<bool, WriteError>;

    /// Whether there is room in memory for a write. Returns at once.
    fn has_room(&self) -> bool;

    /// How long a write waits for room when none is said with it.
    fn room_wait(&self) -> Duration;

    /// Queues a write. Computes here for as long as the batch is large, but waits for nothing: what it gives resolves
    /// when the write is durable and visible, or at the deadline. It must be awaited on a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with the batch, or [`WriteError::Busy`] where the queue is full.
    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError>;

    /// Writes a batch and waits until it is durable and visible.
    fn write(&self, write: Write) -> Result<Written, WriteError>;

    /// Deletes the events with these ids; those that are not there do not count.
    fn delete(&self, ids: &[String]) -> Result<Deleted, WriteError>;

    /// Deletes what matches as of now, in steps that are each atomic. What another write replaces meanwhile stays.
    fn delete_matching(&self, predicate: &Predicate, at: At, control: &Control) -> Result<Deleted, PartialDelete>;

    /// The event with this id and its number, from the history.
    fn event(&self, id: &str) -> Result<Read<Option<(Batch, Seq)>>, StoreError>;

    /// Events in an order, page by page or all at once.
    fn items(&self, at: At, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError>;

    /// How many events match, unless more than `tested_max` of them would have to be tested one by one.
    fn count(
        &self,
        at: At,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError>;

    /// What a question for events costs, and how it is answered.
    fn explain(&self, at: At, question: &Items, control: &Control) -> Result<Read<Explanation>, QueryError>;

    /// Numbers over the events, by window and field.
    fn aggregate(&self, at: At, question: &Aggregate, control: &Control) -> Result<Read<Aggregated>, QueryError>;

    /// Counts of the events in the cells of a grid.
    fn density(&self, at: At, question: &Density, control: &Control) -> Result<Read<DensityCounts>, QueryError>;

    /// A vector tile.
    fn tile(&self, at: At, question: &Tile, control: &Control) -> Result<Read<TileAnswer>, QueryError>;

    /// Where one object has been.
    fn track(&self, at: At, question: &Track, control: &Control) -> Result<Read<TrackAnswer>, QueryError>;

    /// Which objects passed, and when.
    fn passages(&self, at: At, question: &Passages, control: &Control) -> Result<Read<PassagesAnswer>, QueryError>;

    /// Gives the events in a circle to a sink, nearest first, with their number in all. Where more than `rows_max` rows
    /// would have to be read, says `false` and reads none, so that a caller can choose the thread for it.
    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError>;

    /// Gives a page of all events to a sink, in no order that means anything, with their number in all.
    fn page(&self, skip: u64, limit: usize, control: &Control, sink: &mut dyn RowSink) -> Result<(), QueryError>;

    /// Gives the event with this id to a sink; says whether there is one.
    fn find(&self, id: &str, sink: &mut dyn RowSink) -> Result<bool, StoreError>;

    /// Gives an event drawn by chance to a sink; says whether there is one.
    fn sample(&self, random: &dyn Random, control: &Control, sink: &mut dyn RowSink) -> Result<bool, QueryError>;

    /// What was written after the event `after`; of more than `most` events the oldest. About `step_bytes` are read at
    /// a time.
    fn changes_after(&self, after: Seq, most: usize, step_bytes: usize) -> Result<Box<dyn Changes>, StoreError>;

    /// What was written after position `after`, up to and with `upto`; of more than `most` events the newest.
    fn changes_between(&self, after: u64, upto: u64, most: usize) -> Result<Box<dyn Changes>, StoreError>;

    /// Where objects were before, as of now.
    fn prior_events(&self) -> Box<dyn PriorEvents>;

    /// Brings everything into GeoParquet files that hold exactly what one snapshot shows, and names them.
    fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError>;
}
