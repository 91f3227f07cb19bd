//! Retries collections of an owner that could not be opened for a temporary reason. For example, the log's servers
//! elect a leader, or the bucket does not answer.
//!
//! Only damage sets a collection aside permanently. The others are retried while open ones are served, each after a
//! pause that doubles up to a limit.

use super::{Inner, Store};
use crate::error::StoreError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pause before the first retry, in microseconds.
const PAUSE_US: i64 = 500_000;
/// Max pause between two retries.
const PAUSE_MAX_US: i64 = 8_000_000;

/// Collections to be retried, by tenant and name.
pub(super) type Retries = BTreeMap<(String, String), Retry>;

/// When a collection is retried, in microseconds of the clock's elapsed time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    due: i64,
    pause: i64,
}

impl Store {
    /// Retries the due collections whose log or bucket did not answer the last time. Returns how many are open now, or
    /// gone. Called by simulators and the store's threads.
    pub fn open_due(&self) -> usize {
        self.inner.open_due()
    }
}

impl Inner {
    /// Schedules a retry of a collection that could not be opened.
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
        // One of two callers is enough, and no collection is opened twice.
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

    /// Returns true if this process is still the owner, as far as is known: opening a collection would take it from the
    /// next one.
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

    /// Retries a collection that is set aside. No other call creates or drops it meanwhile, because its name is taken.
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
        // Only now: opening takes long, and others create and drop collections meanwhile.
        let _changing = self.changing.lock();
        if let Some(collection) = opened {
            if self.check_open().is_err() {
                // The store has closed only the collections that it knew.
                collection.iter().for_each(|partition| drop(partition.close(false)));
                return false;
            }
            self.collections.insert(tenant, name, collection);
        }
        tracing::info!(%tenant, collection = %name, "a collection that could not be opened is open now, or gone");
        let at = (tenant.to_owned(), name.to_owned());
        // After its insertion, so that at no time it is in neither map.
        self.damaged.lock().remove(&at);
        self.retries.lock().remove(&at);
        true
    }
}
