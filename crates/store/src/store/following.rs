//! Following the collections of owners: what the owners say of them, and the pin that tells them what is read here.

use crate::bucket::{Announcement, Bucket, BucketStorage, OWNER, Pin, Terms, said_groups, terms_of};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::seams::Seams;
use meridian_model::Seq;
use meridian_model::policy::complete::Complete;
use meridian_model::policy::groups::Groups;
use meridian_model::policy::pins::InUse;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The state of a store that only reads.
#[derive(Debug)]
pub(crate) struct Following {
    storage: Arc<BucketStorage>,
    bucket: Arc<dyn Bucket>,
    owners: Mutex<Owners>,
    pin: Pin,
    /// How far the clocks of two machines may be apart, in microseconds.
    skew: i64,
}

/// The leases of all groups, once it is known how many there are.
#[derive(Debug, Default)]
struct Owners {
    /// Each with the number of the newest term that was seen.
    leases: Vec<(Terms, u64)>,
}

/// The last statement of each group's owner.
#[derive(Debug, Default)]
pub(crate) struct Statements(Vec<Option<Complete>>);

impl Following {
    /// `bucket`: the one that is read; the pin is the only thing that is written to it.
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        seams: &Seams,
        storage: Arc<BucketStorage>,
        skew: Duration,
    ) -> Following {
        let pin = Pin::new(bucket.clone(), seams.clock.clone(), seams.random.next_u64());
        let skew = i64::try_from(skew.as_micros()).unwrap_or(i64::MAX);
        Following { storage, bucket, owners: Mutex::default(), pin, skew }
    }

    /// Until when the pin holds, in microseconds of the clock's elapsed time.
    pub(crate) fn pinned_until(&self) -> Arc<AtomicI64> {
        self.pin.until()
    }

    /// The last statements of the owners. Manifests that are read after this hold what they say.
    ///
    /// # Errors
    /// If a lease cannot be read, or is gone since: nothing else may be concluded from the bucket then.
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

    /// The leases; none while no owner was there yet.
    fn leases(&self) -> Result<Vec<(Terms, u64)>, StoreError> {
        let groups = match said_groups(self.bucket.as_ref())? {
            Some(groups) => groups,
            // A bucket from before says nothing.
            None if Terms::new(&self.bucket, OWNER).newest()?.is_some() => Groups::ONE,
            None => return Ok(Vec::new()),
        };
        Ok(terms_of(&self.bucket, groups).into_iter().map(|terms| (terms, 0)).collect())
    }

    /// Up to when a partition that was just taken up is complete, by statements read before; `None`: its owner has not said.
    pub(crate) fn time_of(&self, said: &Statements, collection: &Collection) -> Option<i64> {
        let groups = Groups::new(u16::try_from(said.0.len()).ok()?)?;
        let (tenant, name) = (collection.tenant(), collection.name());
        let of = said.0.get(usize::from(groups.of(tenant, name, collection.partition()).number()))?.as_ref()?;
        Some(of.time_of(tenant, name).saturating_sub(self.skew))
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
