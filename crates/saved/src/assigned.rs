//! The saved searches of a process, which runs them always or only while they are assigned to it.
//!
//! In a cluster they are assigned to one gateway at a time. It opens them from their records as a start does, and drops
//! them like a crash when they move to another one. So one protocol serves starts, crashes and takeovers: the
//! checkpoint and its catch-up.

use super::claim::{AssignmentCheck, Claim};
use super::event_queue::Feed;
use super::parts::SlotParts;
use super::registry::SavedSearches;
use meridian_backend::StoreError;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The saved searches of a process, or those of a slot.
pub struct AssignedSearches {
    parts: SlotParts,
    feed: Arc<Feed>,
    current: RwLock<Arc<SavedSearches>>,
    /// Whether the process is stopping. Held while they are opened, dropped or stopped.
    stopped: Mutex<bool>,
    /// The last epoch in which they ran here; 0 for none. Accessed under the lock.
    ran: AtomicU64,
}

impl AssignedSearches {
    /// Opens them if [`super::SavedSettings::enabled`], for a process that has them to itself. Otherwise there are none
    /// until [`AssignedSearches::take`].
    pub(super) fn open(parts: SlotParts) -> AssignedSearches {
        let feed = Arc::new(Feed::default());
        parts.parts.backend.subscribe(feed.clone());
        let current = SavedSearches::open(&parts, &feed);
        AssignedSearches {
            parts,
            feed,
            current: RwLock::new(current),
            stopped: Mutex::new(false),
            ran: AtomicU64::new(0),
        }
    }

    /// Returns the saved searches; none while they are assigned to another process.
    pub fn current(&self) -> Arc<SavedSearches> {
        self.current.read().clone()
    }

    /// Opens and runs them while `holds`, once they are assigned to this process in this epoch. Blocks; needs the
    /// runtime.
    ///
    /// # Errors
    /// Those of the records and of the backend: nothing is lost, so retry. [`StoreError::Busy`]: another process has
    /// taken over.
    pub fn take(&self, epoch: u64, holds: AssignmentCheck) -> Result<(), StoreError> {
        let stopped = self.stopped.lock();
        if *stopped {
            return Err(StoreError::Closed);
        }
        // A lease that expired and was taken by no other process is renewed in the same epoch.
        let has_run = self.ran.load(Ordering::Relaxed) == epoch;
        let claim = Claim::make(&self.parts.records(), epoch, has_run, self.parts.parts.clock.now())?;
        let opened = SavedSearches::open_claimed(&self.parts, &self.feed, claim, holds)?;
        // Before the first packet is sent.
        self.ran.store(epoch, Ordering::Relaxed);
        opened.run().map_err(|e| StoreError::Busy(format!("saved searches need a thread: {e}")))?;
        let former = std::mem::replace(&mut *self.current.write(), opened);
        former.abandon();
        Ok(())
    }

    /// Ends them for another process, which continues their packets and numbers: processes the remaining events, and
    /// writes the clean state. Blocks. After an error the other process continues as after a crash.
    ///
    /// # Errors
    /// Those of the records.
    pub fn pass_on(&self) -> Result<(), StoreError> {
        let stopped = {
            let _stopped = self.stopped.lock();
            self.current().stop()
        };
        self.lose();
        stopped
    }

    /// Drops them, because they are assigned to another process. Their readers' streams end.
    pub fn lose(&self) {
        let _stopped = self.stopped.lock();
        let none = SavedSearches::none(&self.parts);
        let former = std::mem::replace(&mut *self.current.write(), none);
        self.feed.end(&former.event_queue);
        former.abandon();
    }

    /// Ends readers, because the process stops.
    pub fn close(&self) {
        self.current().close();
    }

    /// Processes the remaining events and writes the clean state. Blocks.
    ///
    /// # Errors
    /// Errors of the disk; the next start is then like one after a crash.
    pub fn stop(&self) -> Result<(), StoreError> {
        let mut stopped = self.stopped.lock();
        *stopped = true;
        self.current().stop()
    }
}
