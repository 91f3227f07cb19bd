//! Who follows, and that something was written.

use crate::state::AppState;
use meridian_model::{Heard, Subscriber};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::watch;

/// The open streams.
#[derive(Debug, Default)]
pub struct Live {
    /// A bell for each collection that is followed, by its name; the events themselves are read from the store.
    bells: Mutex<HashMap<Arc<str>, watch::Sender<()>>>,
    open: AtomicUsize,
    closed: AtomicBool,
    /// Events sent, since the start.
    pub sent: AtomicU64,
    /// Clients let go because they read too slowly, since the start.
    pub slow: AtomicU64,
}

/// A place among the open streams; left when dropped.
pub struct Turn(AppState);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.live.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Live {
    /// Streams open now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// A place, if there are not as many as may be.
    pub(super) fn enter(&self, state: &AppState) -> Option<Turn> {
        let more = |open: usize| (open < state.config.streams_max).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Turn(state.clone()))
    }

    /// A bell that rings for writes to collections of this name, and when the server closes. Look for what was written
    /// after it was taken: what comes later rings.
    pub(super) fn bell(&self, collection: &str) -> watch::Receiver<()> {
        let mut bells = self.bells.lock();
        // Bells without a listener are removed when a new one comes.
        bells.retain(|_, bell| bell.receiver_count() > 0);
        match bells.get(collection) {
            Some(bell) => bell.subscribe(),
            None => {
                let (bell, ear) = watch::channel(());
                bells.insert(collection.into(), bell);
                ear
            }
        }
    }

    /// Ends all streams: their clients are told where to go on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.bells.lock().values().for_each(|bell| bell.send_replace(()));
    }

    /// Whether the server is closing.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Subscriber for Live {
    fn listens(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    fn hear(&self, heard: Heard) {
        if let Some(bell) = self.bells.lock().get(&heard.collection) {
            bell.send_replace(());
        }
    }
}
