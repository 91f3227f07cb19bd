//! Reads: which snapshot they use, and the types of their results.

use meridian_model::{Batch, Layout, Projection, Schema, Seq, Seqs};
use meridian_query::{Cursor, Hits, QueryError, Stats};
use meridian_store::{Problem, Snapshot, StoreError};
use std::sync::Arc;

/// The state of a collection that a query reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadPoint {
    /// The snapshot that [`Head::seq`] of an earlier result named; `None`: the newest.
    pub seq: Option<Seqs>,
    /// In mode `latest`, also the events that are not the newest of their object.
    pub history: bool,
    /// Allows servers other than the owner to respond; `None` shows every acknowledged write.
    pub eventual: Option<Eventual>,
}

/// A read that may miss the newest writes. If there are scan servers, one of them serves it; otherwise it is a read
/// like any other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Eventual {
    /// The type of scan, which selects its profile of scan servers.
    pub scan_type: Option<Arc<str>>,
}

impl ReadPoint {
    /// Everything acknowledged before the call.
    pub fn newest() -> ReadPoint {
        ReadPoint::default()
    }

    /// [`ReadPoint::newest`] with all of the history.
    pub fn history() -> ReadPoint {
        ReadPoint { history: true, ..ReadPoint::default() }
    }
}

/// The snapshot that a result was read from.
#[derive(Debug, Clone)]
pub struct Head {
    /// The result shows the writes up to and including this number, in each partition.
    pub seq: Seqs,
    /// The schema of its events.
    pub schema: Arc<Schema>,
    /// The result shows every write acknowledged before this time, in microseconds since 1970. It is the time of the
    /// snapshot, or one reported by the process that writes the collection.
    pub taken_at: i64,
    /// Damaged parts that are missing: a result that may need them must report them.
    pub missing: Arc<[Problem]>,
    /// An upper bound on the number of events.
    pub rows: u64,
}

impl Head {
    pub(crate) fn of(snapshot: &Snapshot) -> Head {
        Head {
            seq: Seqs::one(snapshot.seq),
            schema: snapshot.schema.clone(),
            taken_at: snapshot.taken_at,
            missing: snapshot.missing.clone(),
            rows: snapshot.rows(),
        }
    }
}

/// A value and the snapshot that it was read from.
#[derive(Debug, Clone)]
pub struct ReadResult<T> {
    /// The snapshot.
    pub head: Head,
    /// The amount read.
    pub value: T,
}

/// A stream of events: a blocking iterator, which ends after an error.
pub trait Rows: Iterator<Item = Result<Hits, QueryError>> + Send {
    /// The snapshot that they are read from.
    fn head(&self) -> &Head;

    /// The cost of the query so far.
    fn stats(&self) -> Stats;

    /// The number of events that match over all pages, if it is known at no extra cost.
    fn number_matched(&self) -> Option<u64>;

    /// The start of the next page, once the iterator has ended; `None` if there are no more events.
    fn next_page(&self) -> Option<&Cursor>;

    /// Whether the last events of the page were returned, as far as is known without a search for more.
    fn is_over(&self) -> bool;

    /// Limits the number of events in later batches.
    fn limit_batches(&mut self, events: usize);

    /// Releases memory that can be read again, before a wait of unknown length. Returns the bytes still held.
    fn park(&mut self) -> usize;
}

/// Receives rows of results that are a few rows of many batches, without copying them.
pub trait RowSink {
    /// Called first, with the schema, the total number of events and the number of rows that follow. Returns the
    /// columns wanted.
    fn begin(&mut self, schema: &Schema, layout: &Layout, total: u64, rows: usize) -> Projection;

    /// Receives one event: a row of a batch that has these columns or more. `seq` is set if ids are made from it,
    /// `distance_m` if the order is by distance.
    fn row(&mut self, batch: &Batch, row: usize, seq: Option<Seq>, distance_m: Option<f64>);
}

/// A page of the events in a circle, nearest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// Longitude of the centre in degrees.
    pub lon: f64,
    /// Latitude of the centre in degrees.
    pub lat: f64,
    /// Radius in metres.
    pub radius_m: f64,
    /// Events of earlier pages.
    pub skip: usize,
    /// Events of a page.
    pub limit: usize,
}

/// The events written after a position, without those deleted or replaced since; those of a partition are in the order
/// of writing.
pub trait Changes: Send {
    /// The next events of a partition with all columns, and their numbers; `None` at the end. Blocks.
    ///
    /// The disk's error, or [`StoreError::Corrupt`]: after that, no more can be read.
    fn read(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, StoreError>;

    /// After the end: everything up to this was returned, or no longer exists.
    fn upto(&self) -> Seqs;

    /// Events left out because more were written than requested.
    fn left_out(&self) -> u64;

    /// Damaged parts that are missing; they may have held events.
    fn missing(&self) -> &[Problem];

    /// Bytes taken by the list of numbers.
    fn bytes(&self) -> usize;

    /// The reader is about to wait for something else, so maintenance need not yield to it.
    fn park(&mut self);
}

/// The state of objects before one of their events was written.
pub trait PriorEvents {
    /// A number for the object of a row; `None` if it has none. Two objects may share a number, but clients cannot
    /// construct such a pair.
    fn object(&self, batch: &Batch, row: usize) -> Option<u64>;

    /// Returns the newest event of a row's object among events with lower numbers, which in its partition were written
    /// before. Returns a batch of that one event with these columns.
    ///
    /// # Errors
    /// The disk's error, or [`StoreError::Corrupt`].
    fn before(
        &self,
        batch: &Batch,
        row: usize,
        before: Seq,
        columns: &Projection,
    ) -> Result<Option<(Batch, Seq)>, StoreError>;
}
