//! The bounded queue of new events between the store and the matcher. No write waits for it.
//!
//! Each tenant has its own line. The matcher takes the same number of bytes from each line. When the queue is
//! full, the tenant with the most bytes loses its newest events. So a tenant loses none while its events take no more
//! than the queue's bytes divided by the number of tenants with events in it.

use super::fair_queue::FairQueue;
use meridian_model::{Subscriber, WrittenBatch};
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Receives the writes of tenants with saved searches.
#[derive(Debug)]
pub(crate) struct EventQueue {
    bytes_max: usize,
    /// Whether any tenant listens, for [`Subscriber::listens`], which every write calls.
    listening: AtomicBool,
    queue: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    writes: FairQueue<(u64, WrittenBatch)>,
    /// The tenants that listen, each with the number of its dropped events.
    tenants: HashMap<Arc<str>, u64>,
    /// Number of the newest write received.
    newest: u64,
    stopped: bool,
    received: u64,
    dropped: u64,
}

impl EventQueue {
    pub(crate) fn new(bytes_max: usize) -> EventQueue {
        let (listening, queue) = (AtomicBool::new(false), Mutex::default());
        EventQueue { bytes_max, listening, queue, changed: Condvar::new() }
    }

    /// Receives the events of a tenant from now on.
    pub(crate) fn listen(&self, tenant: &Arc<str>) {
        let mut queue = self.queue.lock();
        if !queue.stopped {
            queue.tenants.entry(tenant.clone()).or_default();
            self.listening.store(true, Ordering::Release);
        }
    }

    /// Receives no more events of a tenant, and drops its waiting ones.
    pub(crate) fn ignore(&self, tenant: &str) {
        let mut queue = self.queue.lock();
        queue.tenants.remove(tenant);
        queue.writes.clear(tenant);
        self.listening.store(!queue.tenants.is_empty() && !queue.stopped, Ordering::Release);
    }

    /// Number of the newest write received. A saved search created now needs later ones only.
    pub(crate) fn newest(&self) -> u64 {
        self.queue.lock().newest
    }

    /// Waits for the next write and its number; `None` once the queue is stopped and empty.
    pub(crate) fn next(&self) -> Option<(u64, WrittenBatch)> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(next) = queue.writes.pop() {
                return Some(next);
            }
            if queue.stopped {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Waits so long, or until the queue is stopped.
    pub(crate) fn pause(&self, length: Duration) {
        self.changed.wait_while_for(&mut self.queue.lock(), |queue| !queue.stopped, length);
    }

    /// Returns true once the queue is stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.queue.lock().stopped
    }

    /// Takes no more events.
    pub(crate) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopped = true;
        self.listening.store(false, Ordering::Release);
        drop(queue);
        self.changed.notify_all();
    }

    /// Counts events of a tenant that were taken from the queue and not processed.
    pub(crate) fn lose(&self, tenant: &str, events: u64) {
        self.queue.lock().lose(tenant, events);
    }

    /// Events of a tenant not processed since it began to listen.
    pub(crate) fn dropped(&self, tenant: &str) -> u64 {
        self.queue.lock().tenants.get(tenant).copied().unwrap_or(0)
    }

    /// Events received, and events not processed, of all tenants since the start.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let queue = self.queue.lock();
        (queue.received, queue.dropped)
    }

    /// Bytes of queued events.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.lock().writes.cost()
    }
}

impl QueueState {
    /// Makes room for a write; `false` if its tenant would then have the most bytes, and so must drop it.
    fn make_room(&mut self, tenant: &str, bytes: usize, bytes_max: usize) -> bool {
        while self.writes.cost() + bytes > bytes_max {
            // A single larger write is accepted, as the store accepted it too.
            let Some((largest, most)) = self.writes.largest() else { return true };
            if most <= self.writes.cost_of(tenant) + bytes {
                return false;
            }
            // The newest goes, so that events accepted first are processed, as for a tenant on its own.
            if let Some((_, newest)) = self.writes.take_newest(&largest) {
                self.lose(&largest, newest.batch.rows() as u64);
            }
        }
        true
    }

    fn lose(&mut self, tenant: &str, events: u64) {
        if self.dropped == 0 {
            tracing::warn!(tenant, "events for saved searches are dropped, and counted");
        }
        self.dropped += events;
        if let Some(dropped) = self.tenants.get_mut(tenant) {
            *dropped += events;
        }
    }
}

impl Subscriber for EventQueue {
    fn listens(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }

    fn notify(&self, written: WrittenBatch) {
        // At least one, so that every write has a cost.
        let (bytes, events) = (written.batch.bytes().max(1), written.batch.rows() as u64);
        let mut queue = self.queue.lock();
        // The store notifies of all tenants.
        if queue.stopped || !queue.tenants.contains_key(&written.tenant) {
            return;
        }
        // Dropped writes are numbered too, so that numbers compare with `SavedSearch::since`.
        queue.newest += 1;
        queue.received += events;
        let (number, tenant) = (queue.newest, written.tenant.clone());
        if !queue.make_room(&tenant, bytes, self.bytes_max) {
            queue.lose(&tenant, events);
            return;
        }
        queue.writes.push(&tenant, bytes, (number, written));
        // Unlocked before the notification, so that the matcher does not wake into a held lock.
        drop(queue);
        self.changed.notify_one();
    }
}

/// Forwards new events to the queue of the saved searches that run here. Subscribed once, as subscriptions do not end.
#[derive(Debug, Default)]
pub(super) struct Feed(RwLock<Option<Arc<EventQueue>>>);

impl Feed {
    /// Forwards events to this queue from now on.
    pub(super) fn begin(&self, queue: &Arc<EventQueue>) {
        *self.0.write() = Some(queue.clone());
    }

    /// Stops forwarding events to this queue.
    pub(super) fn end(&self, queue: &Arc<EventQueue>) {
        self.0.write().take_if(|current| Arc::ptr_eq(current, queue));
    }
}

impl Subscriber for Feed {
    fn listens(&self) -> bool {
        self.0.read().as_ref().is_some_and(|queue| queue.listens())
    }

    fn notify(&self, written: WrittenBatch) {
        if let Some(queue) = &*self.0.read() {
            queue.notify(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::builder::Value;
    use meridian_model::{BatchBuilder, Seq, schema_spec};

    /// A write of one event of a tenant.
    fn written(tenant: &str, position: u64) -> WrittenBatch {
        let schema = Arc::new(schema_spec::parse("title:String,*geom:Point:srid=4326").unwrap());
        let mut builder = BatchBuilder::new(schema);
        builder.set(0, Value::Text("x".repeat(1_000))).unwrap();
        builder.set_point(0.0, 0.0).unwrap();
        builder.end_event().unwrap();
        let (first, batch) = (Seq::new(position, 0), builder.finish().unwrap());
        WrittenBatch { tenant: tenant.into(), collection: "events".into(), made: 1, partitions: 1, first, batch }
    }

    #[test]
    fn a_flood_of_one_tenant_drops_its_own_events_and_waits_for_no_other() {
        let one = written("a", 0).batch.bytes();
        let queue = EventQueue::new(20 * one);
        queue.listen(&"a".into());
        queue.listen(&"b".into());
        for n in 0..100 {
            queue.notify(written("a", n));
        }
        // A tenant that is alone has the whole queue.
        assert_eq!((queue.bytes(), queue.dropped("a")), (20 * one, 80));
        queue.notify(written("unknown", 0));
        for n in 0..10 {
            queue.notify(written("b", n));
            queue.notify(written("a", 100 + n));
        }
        assert_eq!((queue.bytes(), queue.dropped("a"), queue.dropped("b")), (20 * one, 100, 0));
        // Both have the same now: each drops its own.
        queue.notify(written("b", 10));
        assert_eq!((queue.dropped("a"), queue.dropped("b"), queue.counts()), (100, 1, (121, 101)));
        let mut taken: Vec<(Arc<str>, u64)> = Vec::new();
        for _ in 0..20 {
            let (_, next) = queue.next().expect("a write");
            taken.push((next.tenant, next.first.position()));
        }
        for (n, pair) in taken.chunks(2).enumerate() {
            let (a, b) = (("a".into(), n as u64), ("b".into(), n as u64));
            assert!(pair.contains(&a) && pair.contains(&b), "{n}: {pair:?}");
        }
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn a_tenant_that_does_not_listen_costs_nothing() {
        let queue = EventQueue::new(1 << 20);
        assert!(!queue.listens());
        queue.listen(&"a".into());
        queue.listen(&"b".into());
        queue.notify(written("a", 0));
        queue.notify(written("b", 0));
        queue.ignore("a");
        queue.notify(written("a", 1));
        assert!(queue.listens());
        assert_eq!((queue.next().map(|(_, next)| next.tenant), queue.bytes()), (Some("b".into()), 0));
        queue.ignore("b");
        assert!(!queue.listens());
        queue.stop();
        queue.listen(&"a".into());
        assert!(!queue.listens() && queue.next().is_none());
    }
}
