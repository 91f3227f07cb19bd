//! Writes to a collection, and the memory that they wait for.

use crate::read::ReadPoint;
use crate::receipts::{DeleteReceipt, WriteReceipt};
use meridian_model::filter::Predicate;
use meridian_query::{Control, QueryError};
use meridian_store::{Write, WriteError};
use std::fmt::Debug;
use std::pin::Pin;
use tokio::time::{Duration, Instant};

/// A queued write. Dropping it cancels the write, unless it is being committed already.
pub type Append = Pin<Box<dyn Future<Output = Result<WriteReceipt, WriteError>> + Send>>;

/// A deletion that stopped early.
#[derive(Debug)]
pub struct PartialDelete {
    /// Events deleted permanently.
    pub deleted: u64,
    /// Events that matched; `None` if they were not counted, because the deletion did not reach all partitions or was
    /// by ids.
    pub matched: Option<u64>,
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

impl From<WriteError> for PartialDelete {
    fn from(error: WriteError) -> PartialDelete {
        PartialDelete { deleted: 0, matched: None, why: DeleteFault::Write(error) }
    }
}

impl From<QueryError> for PartialDelete {
    fn from(error: QueryError) -> PartialDelete {
        PartialDelete { deleted: 0, matched: None, why: DeleteFault::Query(error) }
    }
}

/// Writes to a collection, and the memory that they wait for.
pub trait Writes: Debug + Send + Sync {
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
    /// An invalid batch, or [`WriteError::Late`] if the queue is full.
    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError>;

    /// Writes a batch and waits until it is durable and visible.
    fn write(&self, write: Write) -> Result<WriteReceipt, WriteError>;

    /// Deletes the events with these ids; missing ones do not count. Those of one partition are deleted together.
    fn delete(&self, ids: &[String]) -> Result<DeleteReceipt, PartialDelete>;

    /// Deletes the events that match now, in steps that are each atomic. Events that another write replaces meanwhile
    /// stay.
    fn delete_matching(
        &self,
        predicate: &Predicate,
        at: ReadPoint,
        control: &Control,
    ) -> Result<DeleteReceipt, PartialDelete>;
}
