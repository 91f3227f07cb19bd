//! The open streams of events and packets, and how those of events are notified of new writes.

use crate::state::readers::{RETRY_INTERVAL, Readers};
use meridian_admission::{ByteBudget, ByteShare, QuotaPermit};
use meridian_model::policy::pool::Pool;
use meridian_model::{Subscriber, WrittenBatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The open streams.
#[derive(Debug)]
pub struct EventStreams {
    /// One notifier per followed collection. It carries no events: streams read them from the store.
    notifiers: Mutex<HashMap<CollectionKey, watch::Sender<()>>>,
    /// Slots, by tenant.
    slots: Mutex<Pool<Arc<str>>>,
    /// The queues of streams that wait to read, by tenant: a waiting tenant must not hold up the others.
    lines: Mutex<HashMap<Arc<str>, ReadQueue>>,
    open: AtomicUsize,
    closed: AtomicBool,
    /// Number of events sent since the start.
    pub sent: AtomicU64,
    /// Number of clients disconnected since the start because they read too slowly.
    pub slow: AtomicU64,
}

/// The tenant and the name of a collection.
type CollectionKey = (Arc<str>, Arc<str>);

/// One of the [`crate::ServerConfig::streams_max`] slots for open streams, freed when dropped.
pub struct StreamSlot {
    streams: Arc<EventStreams>,
    tenant: Arc<str>,
    _held: QuotaPermit,
}

/// The queue in which the streams of a tenant wait to read. It limits how many of them hold memory for a read at a
/// time. It also limits how many wait at the gate, where each counts as a started request.
#[derive(Debug, Clone)]
pub struct ReadQueue {
    turns: Arc<Semaphore>,
    /// Held by the stream that waits for memory, so that small messages do not overtake a large one forever.
    first: Arc<tokio::sync::Mutex<()>>,
    /// Whether that stream is still short of memory.
    short: Arc<AtomicBool>,
}

/// Marks that a stream waits for memory until dropped, even if the wait is abandoned.
struct MemoryWait<'a>(&'a AtomicBool);

impl<'a> MemoryWait<'a> {
    fn begin(short: &'a AtomicBool) -> MemoryWait<'a> {
        short.store(true, Ordering::Relaxed);
        MemoryWait(short)
    }
}

impl Drop for MemoryWait<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The permission to read, with memory for a message.
pub struct ReadTurn {
    pub share: ByteShare,
    _turn: OwnedSemaphorePermit,
}

impl ReadQueue {
    fn new(turns: usize) -> ReadQueue {
        ReadQueue { turns: Arc::new(Semaphore::new(turns.max(1))), first: Arc::default(), short: Arc::default() }
    }

    /// Waits for a turn and for a message's memory, for which idle clients are evicted. A size beyond what the tenant
    /// could ever have is reduced to that.
    pub async fn turn(&self, readers: &Readers, answers: &ByteBudget, bytes: usize) -> ReadTurn {
        // Both are fair, so the wait is a queue. A stream that interrupts its wait, for a keep-alive, goes to the end.
        let Ok(turn) = self.turns.clone().acquire_owned().await else {
            // Unreachable: the semaphore is never closed.
            return std::future::pending().await;
        };
        let _first = self.first.lock().await;
        let mut short = None;
        loop {
            if let Some(share) = readers.try_reserve(answers, bytes) {
                return ReadTurn { share, _turn: turn };
            }
            short.get_or_insert_with(|| MemoryWait::begin(&self.short));
            // Polled, because a client becomes idle by the passing of time alone, which notifies no one.
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Returns whether a stream waits for memory.
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.streams.open.fetch_sub(1, Ordering::AcqRel);
        self.streams.slots.lock().give_back(self.tenant.clone(), 1);
    }
}

impl EventStreams {
    /// Creates an empty set; `streams_max` is the max number of streams.
    pub fn new(streams_max: usize) -> EventStreams {
        EventStreams {
            notifiers: Mutex::default(),
            slots: Mutex::new(Pool::new(streams_max)),
            lines: Mutex::default(),
            open: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            slow: AtomicU64::new(0),
        }
    }

    /// Guarantees each tenant slots by its weight.
    pub fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.slots.lock().guarantee(weights);
    }

    /// Returns the number of open streams.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Takes a slot for a tenant, whose own quota is held by `held`; `None` if the server has no more slots for it.
    pub fn take(self: &Arc<Self>, tenant: &Arc<str>, held: QuotaPermit) -> Option<StreamSlot> {
        if !self.slots.lock().take(tenant.clone(), 1) {
            return None;
        }
        // Counted before the stream subscribes: the store publishes nothing while `listens` finds this count at zero.
        self.open.fetch_add(1, Ordering::AcqRel);
        Some(StreamSlot { streams: self.clone(), tenant: tenant.clone(), _held: held })
    }

    /// Subscribes to writes to a tenant's collections of this name, and to the server's shutdown. Check for writes
    /// after the call: later ones are notified.
    pub fn subscribe(&self, tenant: &Arc<str>, collection: &str) -> watch::Receiver<()> {
        let key = (tenant.clone(), collection.into());
        let mut notifiers = self.notifiers.lock();
        // A notifier outlives its last stream, so each new stream removes unused ones.
        notifiers.retain(|_, notifier| notifier.receiver_count() > 0);
        match notifiers.get(&key) {
            Some(notifier) => notifier.subscribe(),
            None => {
                let (notifier, notifications) = watch::channel(());
                notifiers.insert(key, notifier);
                notifications
            }
        }
    }

    /// Lets the streams of a tenant's collections of this name check whether theirs is still there: it was removed,
    /// renamed or made again.
    pub fn check(&self, tenant: &Arc<str>, collection: &str) {
        self.wake(&(tenant.clone(), collection.into()));
    }

    fn wake(&self, key: &CollectionKey) {
        if let Some(notifier) = self.notifiers.lock().get(key) {
            notifier.send_replace(());
        }
    }

    /// Returns the queue of a tenant, in which `turns` streams have their turn at once.
    pub fn line(&self, tenant: &Arc<str>, turns: usize) -> ReadQueue {
        let mut lines = self.lines.lock();
        // A queue outlives its last stream, so each new stream removes unused ones.
        lines.retain(|_, line| Arc::strong_count(&line.first) > 1);
        lines.entry(tenant.clone()).or_insert_with(|| ReadQueue::new(turns)).clone()
    }

    /// Ends all streams. Their clients are sent the position after which to resume.
    pub fn close(&self) {
        // Before the notification: a stream that it wakes must find the flag set, or it would wait again.
        self.closed.store(true, Ordering::Release);
        self.notifiers.lock().values().for_each(|notifier| notifier.send_replace(()));
    }

    /// Returns whether the server is closing.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Completes when the server is closing. Consumes the notifications of writes meanwhile.
    pub async fn closed(&self, notifications: &mut watch::Receiver<()>) {
        while !self.is_closed() {
            // A notifier exists as long as it has a subscriber.
            if notifications.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Subscriber for EventStreams {
    fn listens(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    fn notify(&self, written: WrittenBatch) {
        // A `watch` channel holds one value, so a burst of writes causes one wakeup and no queue can overflow, however
        // slow a stream is.
        self.wake(&(written.tenant, written.collection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::{BatchBuilder, Schema, Seq};

    #[test]
    fn a_write_wakes_no_stream_of_another_tenant() {
        let streams = EventStreams::new(2);
        let [red, blue]: [Arc<str>; 2] = ["red", "blue"].map(Into::into);
        let (of_red, of_blue) = (streams.subscribe(&red, "ships"), streams.subscribe(&blue, "ships"));
        let batch = BatchBuilder::new(Arc::new(Schema::default())).finish().unwrap();
        let collection = "ships".into();
        streams.notify(WrittenBatch { tenant: red, collection, made: 1, partitions: 1, first: Seq::new(0, 0), batch });
        assert!(of_red.has_changed().unwrap() && !of_blue.has_changed().unwrap());
        streams.check(&blue, "ships");
        assert!(of_blue.has_changed().unwrap());
    }
}
