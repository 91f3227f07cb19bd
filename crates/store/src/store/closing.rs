//! Closes a store: flushes memory trees, and ends the threads.

use crate::error::StoreError;
use crate::store::Store;
use crate::store::following::FollowState;
use std::sync::atomic::Ordering;

impl Store {
    /// Flushes everything, ends the threads and releases the folder. Writes from now on are refused.
    pub fn close(&self) -> Result<(), StoreError> {
        // The lock is released last, so that another process finds everything this one wrote.
        let result = self.shut(true);
        self.lock.lock().take();
        result
    }

    /// Ends the threads and releases the folder without flushing: another process has the collections by now. Reads
    /// continue on the snapshots they hold. So the folder can be reopened while such a read holds this store.
    pub fn abandon(&self) {
        // A failure here concerns nothing that was to be kept.
        let _ = self.shut(false);
        self.lock.lock().take();
    }

    fn shut(&self, flush: bool) -> Result<(), StoreError> {
        // First, so that the threads do not start another job on a collection that is being closed.
        self.inner.closed.store(true, Ordering::Release);
        let mut result = Ok(());
        let collections = {
            // A collection being created is closed as well: it is listed once the lock is free.
            let _changing = self.inner.changing.lock();
            self.inner.collections.clear()
        };
        self.inner.following.iter().for_each(FollowState::release);
        for collection in &collections {
            if let Err(e) = collection.close(flush)
                && result.is_ok()
            {
                result = Err(e);
            }
        }
        self.inner.wake.wake();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
        result
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // No flush: a drop may be a panic unwinding, and the log already has every acknowledged write.
        let _ = self.shut(false);
    }
}
