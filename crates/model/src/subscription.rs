//! Subscriptions to new events: what a subscriber is told of each write.

use crate::batch::Batch;
use crate::seq::Seq;
use std::fmt::Debug;
use std::sync::Arc;

/// The events of one write, durable and visible.
#[derive(Debug, Clone)]
pub struct WrittenBatch {
    /// Tenant of the collection.
    pub tenant: Arc<str>,
    /// The collection that they were written to.
    pub collection: Arc<str>,
    /// When that was made, in microseconds since 1970: another collection of its name has numbers of its own.
    pub made: i64,
    /// Sequence number of the first event; those after it follow one by one.
    pub first: Seq,
    /// The events, in the order of their numbers, with all columns.
    pub batch: Batch,
}

impl WrittenBatch {
    /// Sequence numbers of the events, by row.
    pub fn seqs(&self) -> Vec<Seq> {
        (0..self.batch.rows()).map(|row| Seq(self.first.0 + row as u64)).collect()
    }
}

/// A listener to new events.
///
/// Whoever keeps events tells of each write that is acknowledged, by whatever way it came, once and in the order of its
/// collection; of deletions it tells nothing. A write waits for [`Subscriber::hear`], so that must return at once,
/// whatever happens to what was heard: it neither waits nor fails. What cannot be taken is the subscriber's to count.
pub trait Subscriber: Send + Sync + Debug {
    /// Whether there is anything to listen for: where not, it is not told.
    fn listens(&self) -> bool;

    /// Takes note of a write.
    fn notify(&self, written: WrittenBatch);
}
