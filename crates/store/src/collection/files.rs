//! Lists a collection as GeoParquet files for other programs.

use super::{Collection, Work};
use crate::error::StoreError;
use crate::maintenance::archive::Files;
use meridian_model::Invalid;
use std::time::Instant;

impl Collection {
    /// Archives everything written so far as GeoParquet, without dead rows, and lists the files.
    ///
    /// Writers and readers continue; merges wait. It takes as long as archiving the remaining segments. `cancelled`
    /// is called between segments. `deadline` limits the wait for a running merge.
    pub fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        if !self.is_durable() {
            let detail = "the collection is ephemeral: its events are in memory only, and no file can be listed";
            return Err(Invalid::new(detail).into());
        }
        let lane = self.segment_lane.try_lock_until(deadline);
        let Some(_lane) = lane else { return Err(StoreError::Busy("a merge is at work: try again later".to_owned())) };
        // The lane keeps merges out until the list is made, so no file of it is retired meanwhile.
        self.flush()?;
        let at = self.core.lock().flushed_whole()?;
        loop {
            if cancelled() {
                return Err(StoreError::Closed);
            }
            // The lock is held only for the choice; `at` stays fixed, so that all files show the same moment.
            let job = self.core.lock().next_listing_job(at);
            match job {
                Some(job) => self.work(Work::of(job))?,
                None => return self.core.lock().list(at),
            }
        }
    }
}
