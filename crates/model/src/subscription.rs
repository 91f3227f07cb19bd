//! Subscriptions to new events.

use crate::batch::Batch;
use crate::seq::{Seq, SeqLayout};
use std::fmt::Debug;
use std::sync::Arc;

/// The events of one write, durable and visible.
#[derive(Debug, Clone)]
pub struct WrittenBatch {
    /// Tenant of the collection.
    pub tenant: Arc<str>,
    /// The collection written to.
    pub collection: Arc<str>,
    /// When the collection was created, in microseconds since 1970: another collection of its name has its own
    /// numbers.
    pub made: i64,
    /// Number of partitions of the collection.
    pub partitions: u16,
    /// Sequence number of the first event; the rest follow consecutively.
    pub first: Seq,
    /// The events, in the order of their numbers, with all columns.
    pub batch: Batch,
}

impl WrittenBatch {
    /// The partition written to.
    pub fn partition(&self) -> usize {
        usize::from(SeqLayout::of(usize::from(self.partitions)).partition(self.first))
    }

    /// Sequence numbers of the events, by row.
    pub fn seqs(&self) -> Vec<Seq> {
        (0..self.batch.rows()).map(|row| Seq(self.first.0 + row as u64)).collect()
    }
}

/// A subscriber to new events.
///
/// The store notifies it of each acknowledged write, from any source, once and in the order of the collection;
/// deletions are not reported. A write waits for [`Subscriber::notify`], which must therefore return at once: it
/// neither blocks nor fails. A subscriber counts the events that it has to drop.
pub trait Subscriber: Send + Sync + Debug {
    /// Whether it wants events at present; if not, it is not notified.
    fn listens(&self) -> bool;

    /// Receives a write.
    fn notify(&self, written: WrittenBatch);
}
