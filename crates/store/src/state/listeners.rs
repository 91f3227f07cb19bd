//! Subscribers to writes.

use crate::manifest::Manifest;
use meridian_model::{Batch, Subscriber, WrittenBatch};
use parking_lot::RwLock;
use std::sync::Arc;

/// The subscribers of every write, in all collections of a store.
#[derive(Debug, Default)]
pub(crate) struct Listeners(RwLock<Vec<Arc<dyn Subscriber>>>);

impl Listeners {
    pub(crate) fn add(&self, subscriber: Arc<dyn Subscriber>) {
        self.0.write().push(subscriber);
    }

    /// Returns true if there are subscribers.
    pub(crate) fn any(&self) -> bool {
        !self.0.read().is_empty()
    }

    /// Publishes writes to a collection at these positions. A subscriber that is added while a write is made durable
    /// receives it.
    pub(crate) fn tell(&self, of: &Manifest, written: Vec<(u64, Batch)>) {
        // Most collections have no subscriber: without one, a write pays for one read lock and no clone.
        if written.is_empty() || !self.0.read().iter().any(|subscriber| subscriber.listens()) {
            return;
        }
        let (tenant, collection): (Arc<str>, Arc<str>) = (of.tenant.as_str().into(), of.collection.as_str().into());
        for (position, batch) in written {
            let (partitions, first) = (of.settings.partitions, of.numbering().seq(position, 0));
            let (tenant, collection) = (tenant.clone(), collection.clone());
            // Batches share their columns, so each subscriber gets a handle, not a copy.
            let write = WrittenBatch { tenant, collection, made: of.created, partitions, first, batch };
            for subscriber in self.0.read().iter().filter(|subscriber| subscriber.listens()) {
                subscriber.notify(write.clone());
            }
        }
    }
}
