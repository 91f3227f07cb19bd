//! What is read: of which snapshot, and the shapes in which answers come.

use meridian_model::{Batch, Layout, Projection, Schema, Seq};
use meridian_query::{Hits, Place, QueryError, Stats};
use meridian_store::{Problem, Snapshot, StoreError};
use std::sync::Arc;

/// Which state of a collection a question reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// The snapshot that an earlier answer's [`Head::seq`] named; `None`: the newest.
    pub seq: Option<Seq>,
    /// In mode `latest` also the events that are not their object's newest.
    pub history: bool,
}

impl At {
    /// Everything that was acknowledged before the call.
    pub fn newest() -> At {
        At::default()
    }

    /// The same with all of the history.
    pub fn history() -> At {
        At { seq: None, history: true }
    }
}

/// What an answer was read from.
#[derive(Debug, Clone)]
pub struct Head {
    /// The answer shows what was written up to and with this number.
    pub seq: Seq,
    /// The schema that its events are in.
    pub schema: Arc<Schema>,
    /// When the snapshot was taken, in microseconds since 1970.
    pub taken_at: i64,
    /// What is missing because it is damaged: an answer that may need it must say so.
    pub missing: Arc<[Problem]>,
    /// An upper bound of the events that there are.
    pub rows: u64,
}

impl Head {
    pub(crate) fn of(snapshot: &Snapshot) -> Head {
        Head {
            seq: snapshot.seq,
            schema: snapshot.schema.clone(),
            taken_at: snapshot.taken_at,
            missing: snapshot.missing.clone(),
            rows: snapshot.rows(),
        }
    }
}

/// A value and what it was read from.
#[derive(Debug, Clone)]
pub struct Read<T> {
    /// The snapshot.
    pub head: Head,
    /// What was read.
    pub value: T,
}

/// Events on their way: an iterator that blocks. After an error it ends.
pub trait Rows: Iterator<Item = Result<Hits, QueryError>> + Send {
    /// What they are read from.
    fn head(&self) -> &Head;

    /// What the question has cost so far.
    fn stats(&self) -> Stats;

    /// How many events match over all pages, where that came for free.
    fn number_matched(&self) -> Option<u64>;

    /// Where the next page begins, once the iterator has ended: `None` if there is no further event.
    fn next_page(&self) -> Option<&Place>;

    /// Whether the page's last events have been given, as far as is known without a search for more.
    fn is_over(&self) -> bool;

    /// Later batches hold at most so many events.
    fn at_most(&mut self, events: usize);

    /// Releases what can be read again before a wait of unknown length; gives the bytes that are still held.
    fn rest(&mut self) -> usize;
}

/// Takes rows of answers that are a few rows of many batches, without a copy of them.
pub trait RowSink {
    /// Comes first: the schema, how many events there are in all, how many rows come. Gives the columns wanted.
    fn begin(&mut self, schema: &Schema, layout: &Layout, total: u64, rows: usize) -> Projection;

    /// One event: a row of a batch that has these columns or more. `seq` comes where ids are made of it,
    /// `distance_m` where the order is by distance.
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

/// What was written after a position, in the order of writing. What was deleted or replaced since is not among it.
pub trait Changes: Send {
    /// The next events with all columns, and their numbers; `None` when all were given. Blocks.
    ///
    /// # Errors
    /// What the disk said, or [`StoreError::Corrupt`]: then no more can be had.
    fn read(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, StoreError>;

    /// Everything up to this number was given, or is no more, once all were read.
    fn upto(&self) -> Seq;

    /// Events that were left out because more were written than asked for.
    fn left_out(&self) -> u64;

    /// What is missing because it is damaged: events may have been in it.
    fn missing(&self) -> &[Problem];

    /// The reader waits for something else: maintenance need not yield to it.
    fn rest(&mut self);
}

/// Where objects were before an event of theirs was written.
pub trait PriorEvents {
    /// A number for the object of a row; `None` where it has none. Nobody can choose two objects with one number.
    fn object(&self, batch: &Batch, row: usize) -> Option<u64>;

    /// The newest event of a row's object among those written before a number: a batch of it alone with these columns.
    ///
    /// # Errors
    /// What the disk said, or [`StoreError::Corrupt`].
    fn before(
        &self,
        batch: &Batch,
        row: usize,
        before: Seq,
        columns: &Projection,
    ) -> Result<Option<(Batch, Seq)>, StoreError>;
}
