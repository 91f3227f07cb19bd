//! One collection, and one partition of a collection.

use crate::read::{At, Changes, Head, Near, PriorEvents, Read, RowSink, Rows};
use crate::written::{Deleted, Files, Written};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, Positions, Schema, Seq, Seqs};
use meridian_query::partial::{Partial, RowStream};
use meridian_query::wire::Question;
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Passages, PassagesResult,
    QueryError, Tile, TileResult, Track, TrackResult,
};
use meridian_store::seams::Random;
use meridian_store::{CollectionStats, Imported, Settings, StoreError, Write, WriteError};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// A queued write. Dropping it cancels the write, unless it is being committed already.
pub type Append = Pin<Box<dyn Future<Output = Result<Written, WriteError>> + Send>>;

/// A deletion by filter that stopped early.
#[derive(Debug)]
pub struct PartialDelete {
    /// Events deleted permanently.
    pub deleted: u64,
    /// Events that matched.
    pub matched: u64,
    /// Why it stopped.
    pub why: DeleteFault,
}

/// Why a deletion stopped.
#[derive(Debug)]
pub enum DeleteFault {
    /// The matching events could not be found, or the deadline passed.
    Query(QueryError),
    /// The matching events could not be deleted.
    Write(WriteError),
}

/// A named set of events with one schema.
pub trait Collection: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Creation time in microseconds since 1970. It distinguishes collections of the same name.
    fn created(&self) -> i64;

    /// Start of its content, in microseconds since 1970: its creation or restore, or the process start for an ephemeral
    /// one. Two contents that give the same numbers to different events differ in this.
    fn began(&self) -> i64;

    /// The current schema.
    fn schema(&self) -> Arc<Schema>;

    /// Its settings.
    fn settings(&self) -> Settings;

    /// Its statistics.
    fn stats(&self) -> CollectionStats;

    /// Position of the newest write of each partition.
    fn position(&self) -> Positions;

    /// The min number of any event that a partition may still hold; that of the next write if it is empty.
    fn oldest(&self) -> Seqs;

    /// Returns one of its partitions, counted from 0; `None` if there is no such partition.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the server that has it cannot be reached.
    fn part(&self, number: usize) -> Result<Option<Arc<dyn Part>>, StoreError>;

    /// Adds optional fields and changes the settings: both, or neither on an error.
    fn change(&self, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError>;

    /// Returns the number of events that these settings would remove.
    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError>;

    /// Returns true if there is memory for a write. Otherwise requests a flush. Returns at once.
    ///
    /// [`WriteError::Refused`] if the collection accepts no writes, since then waiting for memory is pointless.
    fn request_room(&self) -> Result<bool, WriteError>;

    /// Returns true if there is memory for a write. Returns at once.
    fn has_room(&self) -> bool;

    /// How long a write waits for memory by default.
    fn room_wait(&self) -> Duration;

    /// Queues a write. Encodes the batch on the caller's thread, but waits for nothing. The future resolves when the
    /// write is durable and visible, or at the deadline. It must be awaited on a tokio runtime.
    ///
    /// An invalid batch, or [`WriteError::Busy`] if the queue is full.
    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError>;

    /// Writes a batch and waits until it is durable and visible.
    fn write(&self, write: Write) -> Result<Written, WriteError>;

    /// Deletes the events with these ids; missing ones do not count.
    fn delete(&self, ids: &[String]) -> Result<Deleted, WriteError>;

    /// Deletes the events that match now, in steps that are each atomic. Events that another write replaces meanwhile
    /// stay.
    fn delete_matching(&self, predicate: &Predicate, at: At, control: &Control) -> Result<Deleted, PartialDelete>;

    /// Returns the snapshot that a query would read; `None` if only the query itself can tell.
    fn head(&self, _at: &At) -> Option<Head> {
        None
    }

    /// Returns the event with this id and its number, from the history.
    fn event(&self, id: &str) -> Result<Read<Option<(Batch, Seq)>>, StoreError>;

    /// Returns events in an order, one page or all of them.
    fn items(&self, at: At, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError>;

    /// Returns cuts that divide all events in natural order into at most `parts` parts of about equal size, for
    /// [`Items::after`] and [`Items::until`]: ascending, fewer than `parts`.
    fn cuts(&self, at: At, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError>;

    /// Returns the number of events that match; `None` if more than `tested_max` of them would have to be tested one by
    /// one.
    fn count(
        &self,
        at: At,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError>;

    /// Returns the collection's partial result of a query for one value. Another server merges and finishes it.
    fn partial(&self, at: At, question: &Question, control: &Control) -> Result<Read<Partial>, QueryError>;

    /// Returns the cost of a query for events, and how it is executed.
    fn explain(&self, at: At, question: &Items, control: &Control) -> Result<Read<Explanation>, QueryError>;

    /// Returns aggregates of the events, by window and field.
    fn aggregate(&self, at: At, question: &Aggregate, control: &Control) -> Result<Read<Aggregated>, QueryError>;

    /// Returns counts of the events in the cells of a grid.
    fn density(&self, at: At, question: &Density, control: &Control) -> Result<Read<DensityCounts>, QueryError>;

    /// Returns a vector tile.
    fn tile(&self, at: At, question: &Tile, control: &Control) -> Result<Read<TileResult>, QueryError>;

    /// Returns the track of one object.
    fn track(&self, at: At, question: &Track, control: &Control) -> Result<Read<TrackResult>, QueryError>;

    /// Returns which objects passed, and when.
    fn passages(&self, at: At, question: &Passages, control: &Control) -> Result<Read<PassagesResult>, QueryError>;

    /// Passes the events in a circle to a sink, nearest first, with their total number. If more than `rows_max` rows
    /// would have to be read, returns `false` and reads none, so that the caller can run it on another thread.
    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError>;

    /// Passes a page of all events to a sink, in no particular order, with their total number.
    fn page(&self, skip: u64, limit: usize, control: &Control, sink: &mut dyn RowSink) -> Result<(), QueryError>;

    /// Passes the event with this id to a sink; returns whether it exists.
    fn find(&self, id: &str, sink: &mut dyn RowSink) -> Result<bool, StoreError>;

    /// Passes a random event to a sink; returns whether there is one.
    fn sample(&self, random: &dyn Random, control: &Control, sink: &mut dyn RowSink) -> Result<bool, QueryError>;

    /// Returns events written after `after`; if there are more than `max`, the oldest ones. Reads about `step_bytes` at
    /// a time. Each partition gets an equal share of `max`.
    fn changes_after(&self, after: &Seqs, max: usize, step_bytes: usize) -> Result<Box<dyn Changes>, StoreError>;

    /// Returns events written after position `after`, up to and including `upto`; if a partition has more than `max` of
    /// them, its newest ones.
    fn changes_between(&self, after: &Positions, upto: &Positions, max: usize) -> Result<Box<dyn Changes>, StoreError>;

    /// Returns the previous events of objects, as of now.
    fn prior_events(&self) -> Box<dyn PriorEvents>;

    /// Writes everything to GeoParquet files that hold exactly what one snapshot shows, and returns their names.
    fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError>;
}

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
