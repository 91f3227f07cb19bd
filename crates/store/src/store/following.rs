//! Follows the collections of owners: their statements, and the pin that shows them what is read here.

use crate::bucket::{Announcement, BucketStorage, OWNER, Pin, Terms, said_groups, terms_of};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::seams::Bucket;
use crate::seams::Seams;
use meridian_model::Seq;
use meridian_model::policy::complete::Complete;
use meridian_model::policy::groups::Groups;
use meridian_model::policy::pins::InUse;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The state of a read-only store.
#[derive(Debug)]
pub(crate) struct FollowState {
    storage: Arc<BucketStorage>,
    bucket: Arc<dyn Bucket>,
    owners: Mutex<Owners>,
    pin: Pin,
    /// Max difference between the clocks of two machines, in microseconds.
    skew: i64,
}

/// The leases of all groups, once their number is known.
#[derive(Debug, Default)]
struct Owners {
    /// Each lease with the number of the newest term seen.
    leases: Vec<(Terms, u64)>,
}

/// The last statement of each group's owner.
#[derive(Debug, Default)]
pub(crate) struct Statements(Vec<Option<Complete>>);

impl FollowState {
    /// Creates the state for reading `bucket`, to which only the pin is written.
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        seams: &Seams,
        storage: Arc<BucketStorage>,
        skew: Duration,
    ) -> FollowState {
        let pin = Pin::new(bucket.clone(), seams.clock.clone(), seams.random.next_u64());
        let skew = i64::try_from(skew.as_micros()).unwrap_or(i64::MAX);
        FollowState { storage, bucket, owners: Mutex::default(), pin, skew }
    }

    /// Returns the time until which the pin holds, in microseconds of the clock's elapsed time.
    pub(crate) fn pinned_until(&self) -> Arc<AtomicI64> {
        self.pin.until()
    }

    /// Returns the last statements of the owners. They hold for manifests that are read after this.
    ///
    /// # Errors
    /// Returned if a lease cannot be read, or is gone: nothing else may be concluded from the bucket then.
    pub(crate) fn statements(&self) -> Result<Statements, StoreError> {
        let mut owners = self.owners.lock();
        if owners.leases.is_empty() {
            owners.leases = self.leases()?;
        }
        let newest = |(terms, known): &mut (Terms, u64)| {
            let Some((number, term)) = terms.newest_from(*known)? else { return Ok(None) };
            *known = number;
            Ok(term.complete)
        };
        owners.leases.iter_mut().map(newest).collect::<Result<_, StoreError>>().map(Statements)
    }

    /// Returns the leases; empty while there was no owner yet.
    fn leases(&self) -> Result<Vec<(Terms, u64)>, StoreError> {
        let groups = match said_groups(self.bucket.as_ref())? {
            Some(groups) => groups,
            // An older bucket has no such object.
            None if Terms::new(&self.bucket, OWNER).newest()?.is_some() => Groups::ONE,
            None => return Ok(Vec::new()),
        };
        Ok(terms_of(&self.bucket, groups).into_iter().map(|terms| (terms, 0)).collect())
    }

    /// Returns the time up to which a partition that was just loaded is complete, by statements read before; `None` if
    /// its owner has made none.
    pub(crate) fn time_of(&self, said: &Statements, collection: &Collection) -> Option<i64> {
        let groups = Groups::new(u16::try_from(said.0.len()).ok()?)?;
        let (tenant, name) = (collection.tenant(), collection.name());
        let of = said.0.get(usize::from(groups.of(tenant, name, collection.partition()).number()))?.as_ref()?;
        Some(of.time_of(tenant, name).saturating_sub(self.skew))
    }

    /// Returns true if a pin was ever written.
    pub(crate) fn has_pin(&self) -> bool {
        self.pin.until().load(Ordering::Acquire) != i64::MIN
    }

    /// Renews the pin if due. Returns false if it cannot be written: earlier snapshots are then served until it
    /// expires.
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

    /// Returns the number of this reader among all of the bucket.
    pub(crate) fn reader(&self) -> u64 {
        self.pin.reader()
    }

    /// Makes the pin announce this process to gateways.
    pub(crate) fn announce(&self, announcement: Announcement) {
        self.pin.announce(announcement);
    }

    /// Releases the pin.
    pub(crate) fn release(&self) {
        self.pin.release();
    }
}
