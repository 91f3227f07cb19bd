//! Closing a store: memory trees are flushed, and the threads end.

use crate::error::StoreError;
use crate::store::Store;
use crate::store::following::Following;
use std::sync::atomic::Ordering;

impl Store {
    /// Flushes everything, ends the threads and releases the folder. Writes from now on are refused.
    pub fn close(&self) -> Result<(), StoreError> {
        // The lock is released last: another process then finds everything that this one wrote.
        let result = self.shut(true);
        self.lock.lock().take();
        result
    }

    /// Ends the threads and releases the folder, and flushes nothing: another process has the collections by now. Reads go on over the snapshots
    /// that they have. So the folder can be opened again while such a read holds this.
    pub fn abandon(&self) {
        // What failed was not to be kept.
        let _ = self.shut(false);
        self.lock.lock().take();
    }

    fn shut(&self, flush: bool) -> Result<(), StoreError> {
        // First: the threads must not start another job on a collection that is being closed.
        self.inner.closed.store(true, Ordering::Release);
        let mut result = Ok(());
        let collections = {
            // A collection that is being created is closed as well: it is listed once the lock is free.
            let _changing = self.inner.changing.lock();
            self.inner.collections.clear()
        };
        self.inner.following.iter().for_each(Following::release);
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
