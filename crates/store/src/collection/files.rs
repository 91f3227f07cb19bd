//! Lists a collection as GeoParquet files for other programs.

use super::{Collection, Work};
use crate::error::StoreError;
use crate::maintenance::archive::Files;
use meridian_model::Invalid;
use meridian_observe as observe;
use std::time::Instant;

impl Collection {
    /// Archives everything written so far as GeoParquet, without dead rows, and lists the files.
    ///
    /// Writers and readers continue; merges wait. It takes as long as archiving the remaining segments. `cancelled`
    /// is called between segments. `deadline` limits the wait for a running merge, which holds no processor slot.
    pub fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        if !self.is_durable() {
            let detail = "the collection is ephemeral: its events are in memory only, and no file can be listed";
            return Err(Invalid::new(detail).into());
        }
        // Without the slot, or requests that only wait for a merge would keep all others out.
        let lane = observe::away(cancelled, || self.segment_lane.try_lock_until(deadline));
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
                None => return self.core.lock_to_commit().list(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::Seams;
    use crate::{Options, Settings, Store, Write};
    use meridian_model::{BatchBuilder, Schema};
    use observe::Slot;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    /// A slot, and whether it is given back.
    #[derive(Debug, Default)]
    struct Held {
        rests: AtomicBool,
    }

    impl Slot for Held {
        fn rest(&self) {
            self.rests.store(true, Ordering::SeqCst);
        }

        fn wake(&self, _: &dyn Fn() -> bool) {
            self.rests.store(false, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_listing_holds_no_slot_while_it_waits_for_a_merge() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::at(folder.path()) };
        let store = Store::open(options, Seams::real()).unwrap();
        let c = store.create("t", "c", Schema::default(), Settings::default()).unwrap();
        let mut builder = BatchBuilder::new(c.schema());
        builder.end_event().unwrap();
        c.write(Write::new(builder.finish().unwrap())).unwrap();
        let slot = Arc::new(Held::default());
        let listed = std::thread::scope(|scope| {
            let merge = c.segment_lane.lock();
            let listing = scope.spawn(|| {
                let work = observe::WorkContext::default().holding(&slot);
                work.run(|| c.files(crate::seams::wait::deadline(Duration::from_secs(60)), &|| false))
            });
            while !slot.rests.load(Ordering::SeqCst) {
                assert!(!listing.is_finished(), "it waits for the merge");
                std::thread::yield_now();
            }
            drop(merge);
            listing.join().unwrap().unwrap()
        });
        assert!(!slot.rests.load(Ordering::SeqCst) && listed.paths.len() == 1, "{listed:?}");
    }
}
