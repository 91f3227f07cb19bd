//! An owner tries again to open what did not open for now: the log's servers elect a leader, or the bucket does not answer.
//!
//! Only damage sets a collection apart for good. The others are tried again beside what is open, each after a pause that doubles up to a limit.

use super::{Inner, Store};
use crate::error::StoreError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pause before the second try, in microseconds.
const PAUSE_US: i64 = 500_000;
/// Max pause between two tries.
const PAUSE_MAX_US: i64 = 8_000_000;

/// Collections that are tried again, by tenant and name.
pub(super) type Retries = BTreeMap<(String, String), Retry>;

/// When a collection is tried again, in microseconds of the clock's elapsed time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    due: i64,
    pause: i64,
}

impl Store {
    /// Tries to open the collections whose log or bucket did not answer when they were tried last, and that are due. Returns how many are open now,
    /// or gone. For a simulator, and for the threads of the store.
    pub fn open_due(&self) -> usize {
        self.inner.open_due()
    }
}

impl Inner {
    /// Notes when a collection is tried again that could not be opened.
    pub(super) fn retry_later(&self, at: (String, String), error: &StoreError) {
        let mut retries = self.retries.lock();
        if !error.may_pass() {
            retries.remove(&at);
            return;
        }
        let pause = retries.get(&at).map_or(PAUSE_US, |retry| retry.pause.saturating_mul(2).min(PAUSE_MAX_US));
        let due = self.common.seams.clock.elapsed().saturating_add(pause);
        retries.insert(at, Retry { due, pause });
    }

    pub(super) fn open_due(&self) -> usize {
        // Of two callers one is enough, and no collection is opened twice.
        let Some(_retrying) = self.retrying.try_lock() else { return 0 };
        let due: Vec<(String, String)> = {
            let (now, retries) = (self.common.seams.clock.elapsed(), self.retries.lock());
            retries.iter().filter(|(_, retry)| retry.due <= now).map(|(at, _)| at.clone()).collect()
        };
        if due.is_empty() || !self.is_current() {
            return 0;
        }
        let opened = AtomicUsize::new(0);
        self.for_each_of(due.into_iter(), |tenant, name| {
            if self.open_again(tenant, name) {
                // Relaxed: read once all threads have ended.
                opened.fetch_add(1, Ordering::Relaxed);
            }
        });
        opened.into_inner()
    }

    /// Whether this process still is the owner, as far as is known: opening a collection would take it from the next one.
    fn is_current(&self) -> bool {
        let Some(registry) = self.common.storage.registry() else { return false };
        match registry.is_current() {
            Ok(current) => current,
            Err(error) => {
                tracing::debug!(%error, "the owner's lease could not be read: collections are opened later");
                false
            }
        }
    }

    /// Tries to open a collection that is set apart. No other call makes or drops it meanwhile, as its name is taken.
    fn open_again(&self, tenant: &str, name: &str) -> bool {
        if self.check_open().is_err() {
            return false;
        }
        let opened = match self.open_one(tenant, name) {
            Ok(opened) => opened,
            Err(error) => {
                self.set_apart(tenant, name, &error);
                return false;
            }
        };
        // Only now: opening takes long, and others make and drop collections meanwhile.
        let _changing = self.changing.lock();
        if let Some(collection) = opened {
            if self.check_open().is_err() {
                // The store has closed the collections that it knew.
                collection.iter().for_each(|partition| drop(partition.close(false)));
                return false;
            }
            self.collections.insert(tenant, name, collection);
        }
        tracing::info!(%tenant, collection = %name, "a collection that could not be opened is open now, or gone");
        let at = (tenant.to_owned(), name.to_owned());
        // After its insertion: at no time is it in neither map.
        self.damaged.lock().remove(&at);
        self.retries.lock().remove(&at);
        true
    }
}
