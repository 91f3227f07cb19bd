//! Following the collections of an owner: what the owner says of them, and the pin that tells it what is read here.

use crate::bucket::{Announcement, Bucket, BucketStorage, InUse, Pin, Terms};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::seams::Seams;
use meridian_model::Seq;
use meridian_model::policy::complete::Complete;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// What a store has that only reads.
#[derive(Debug)]
pub(crate) struct Following {
    storage: Arc<BucketStorage>,
    terms: Terms,
    /// Number of the newest term of the owner's lease that was seen.
    term: AtomicU64,
    pin: Pin,
    /// How far the clocks of two machines may be apart, in microseconds.
    skew: i64,
}

impl Following {
    /// `bucket`: the one that is read; the pin is the only thing that is written to it. `terms`: of the owner's lease.
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        seams: &Seams,
        storage: Arc<BucketStorage>,
        terms: Terms,
        skew: Duration,
    ) -> Following {
        let pin = Pin::new(bucket, seams.clock.clone(), seams.random.next_u64());
        let skew = i64::try_from(skew.as_micros()).unwrap_or(i64::MAX);
        Following { storage, terms, term: AtomicU64::new(0), pin, skew }
    }

    /// Until when the pin holds, in microseconds of the clock's elapsed time.
    pub(crate) fn pinned_until(&self) -> Arc<AtomicI64> {
        self.pin.until()
    }

    /// What the owner has said last. Manifests that are read after this hold what it says.
    ///
    /// # Errors
    /// If the owner's lease cannot be read, or is gone since: nothing else may be concluded from the bucket then.
    pub(crate) fn statement(&self) -> Result<Option<Complete>, StoreError> {
        // Relaxed: a hint where to read on.
        let Some((number, term)) = self.terms.newest_from(self.term.load(Ordering::Relaxed))? else { return Ok(None) };
        self.term.store(number, Ordering::Relaxed);
        Ok(term.complete)
    }

    /// Up to when a collection that was just taken up is complete, by a statement read before.
    pub(crate) fn time_of(&self, said: &Complete, collection: &Collection) -> i64 {
        said.time_of(collection.tenant(), collection.name()).saturating_sub(self.skew)
    }

    /// Whether a pin was ever written.
    pub(crate) fn has_pin(&self) -> bool {
        self.pin.until().load(Ordering::Acquire) != i64::MIN
    }

    /// Renews the pin, if that is due. Returns `false` if it cannot be written: then earlier snapshots are served until it ends.
    pub(crate) fn renew(&self, collections: impl FnOnce() -> Vec<Arc<Collection>>) -> bool {
        let in_use = || collections().iter().map(|collection| self.in_use(collection)).collect();
        let renewed = self.pin.renew(in_use);
        if let Err(error) = &renewed {
            tracing::warn!(%error, "the pin of this reader could not be written: trying again");
        }
        renewed.is_ok()
    }

    fn in_use(&self, collection: &Collection) -> InUse {
        let shared = &collection.shared;
        let mut core = collection.core.lock();
        let (now, current) = (shared.seams.clock.elapsed(), Seq::end_of(core.position).0);
        InUse {
            folder: self.storage.place_of(&shared.dir),
            manifest: core.oldest_in_use(),
            seq: shared.horizon.floor(now, current),
        }
    }

    /// The number of this reader among all of the bucket.
    pub(crate) fn reader(&self) -> u64 {
        self.pin.reader()
    }

    /// Lets the pin say that this process answers gateways.
    pub(crate) fn announce(&self, announcement: Announcement) {
        self.pin.announce(announcement);
    }

    /// Lets go of the pin.
    pub(crate) fn release(&self) {
        self.pin.release();
    }
}
