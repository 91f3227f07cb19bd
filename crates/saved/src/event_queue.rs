//! The bounded queue of new events between the store and the matcher. No write waits for it.

use meridian_model::{Subscriber, WrittenBatch};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Receives the writes of one tenant.
#[derive(Debug)]
pub(crate) struct EventQueue {
    tenant: String,
    bytes_max: usize,
    listening: AtomicBool,
    queue: Mutex<Waiting>,
    changed: Condvar,
    received: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    waiting: VecDeque<(u64, WrittenBatch)>,
    bytes: usize,
    /// Number of the newest write received.
    newest: u64,
    stopped: bool,
}

impl EventQueue {
    pub(crate) fn new(tenant: String, bytes_max: usize) -> EventQueue {
        EventQueue {
            tenant,
            bytes_max,
            listening: AtomicBool::new(false),
            queue: Mutex::default(),
            changed: Condvar::new(),
            received: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Whether any saved search needs events.
    pub(crate) fn listen(&self, on: bool) {
        self.listening.store(on, Ordering::Release);
    }

    /// Number of the newest write received. A saved search created now needs those after it.
    pub(crate) fn newest(&self) -> u64 {
        self.queue.lock().newest
    }

    /// Waits for the next write and its number; `None` once the queue is stopped and empty.
    pub(crate) fn next(&self) -> Option<(u64, WrittenBatch)> {
        let mut queue = self.queue.lock();
        loop {
            if let Some((number, written)) = queue.waiting.pop_front() {
                queue.bytes -= written.batch.bytes();
                return Some((number, written));
            }
            if queue.stopped {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Whether the queue takes no more events.
    pub(crate) fn is_stopped(&self) -> bool {
        self.queue.lock().stopped
    }

    /// Takes no more events.
    pub(crate) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.listening.store(false, Ordering::Release);
        self.changed.notify_all();
    }

    /// Events received, and events dropped because the queue was full.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.received.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }

    /// Bytes of queued events.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.lock().bytes
    }
}

impl Subscriber for EventQueue {
    fn listens(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }

    fn notify(&self, written: WrittenBatch) {
        // The store notifies of all tenants.
        if *written.tenant != *self.tenant {
            return;
        }
        let (bytes, events) = (written.batch.bytes(), written.batch.rows() as u64);
        let mut queue = self.queue.lock();
        if queue.stopped {
            return;
        }
        // Dropped writes are numbered too, so that numbers compare with `SavedSearch::since`.
        queue.newest += 1;
        self.received.fetch_add(events, Ordering::Relaxed);
        // A single larger write is accepted, as the store accepted it too.
        if queue.bytes + bytes > self.bytes_max && !queue.waiting.is_empty() {
            if self.dropped.fetch_add(events, Ordering::Relaxed) == 0 {
                tracing::warn!(
                    "events arrive faster than saved searches process them: the excess is dropped and counted"
                );
            }
            return;
        }
        queue.bytes += bytes;
        let number = queue.newest;
        queue.waiting.push_back((number, written));
        // Unlocked before the notification, so that the matcher does not wake into a held lock.
        drop(queue);
        self.changed.notify_one();
    }
}
