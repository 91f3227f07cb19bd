//! A store whose collections are in a bucket: the owner's, and those of read-only servers.

use crate::bucket::{BucketStorage, PIN_TTL, ReadOnly, Terms, check_log, check_whole, lease_of, terms_of};
use crate::error::StoreError;
use crate::options::Options;
use crate::part::open_parts::TreeStats;
use crate::recovery::SharedResources;
use crate::seams::Bucket;
use crate::seams::{Disk, Seams, Storage};
use crate::stats::ExtentStats;
use crate::store::following::FollowState;
use crate::store::{Inner, OpenScope, Store};
use crate::stream::SharedLog;
use meridian_model::Invalid;
use meridian_model::policy::complete::{Complete, UnflushedCollection};
use meridian_model::policy::groups::{Group, Groups};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Max bytes of log that an owner leaves unflushed in a collection, which the next owner replays before it serves.
const TAIL_BYTES: u64 = 64 << 20;
/// Folder in a data folder for the folders of groups, each with the state of one store. That of the first group is the
/// data folder itself.
pub(super) const GROUPS: &str = "groups";

impl Store {
    /// Opens the collections in a bucket as their owner, in place of the previous one, whose writes fail from here on.
    ///
    /// The data folder keeps the state of this process: lock, records, audit log. Hold the lease `owner` first
    /// ([`crate::Lease`]): two processes without one take the collections from each other, but lose no data.
    ///
    /// # Errors
    /// Those of [`Store::open`], and [`StoreError::Io`] if the bucket does not answer.
    pub fn open_shared(options: Options, seams: Seams, bucket: Arc<dyn Bucket>) -> Result<Store, StoreError> {
        Store::open_shared_over(options, seams, bucket, SharedLog::Bucket)
    }

    /// Like [`Store::open_shared`], with an external log. The first owner of a bucket decides on the log; another
    /// choice is refused from then on.
    ///
    /// # Errors
    /// Those of [`Store::open_shared`], and [`StoreError::Invalid`] if these collections have another log.
    pub fn open_shared_over(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
    ) -> Result<Store, StoreError> {
        let resources = SharedResources::of(&options);
        Store::open_group(options, seams, bucket, log, Group::ONLY, &resources)
    }

    /// Opens one group of the partitions, whose lease is named by [`lease_of`]. A process that owns several groups
    /// opens a store for each, with the same resources. Partitions created later are opened by [`Store::adopt`].
    ///
    /// # Errors
    /// Those of [`Store::open_shared_over`].
    pub fn open_group(
        mut options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
        group: Group,
        resources: &SharedResources,
    ) -> Result<Store, StoreError> {
        check(&options)?;
        check_whole(bucket.as_ref())?;
        let id = check_log(bucket.as_ref(), &seams, &log)?;
        options.log_bytes = options.log_bytes.min(TAIL_BYTES);
        let term = epoch(&Terms::new(&bucket, &lease_of(group)))?;
        if group.number() > 0 {
            options.data = options.data.join(GROUPS).join(group.number().to_string());
        }
        let storage = storage(&options, &seams, bucket, term, resources).with_log(log, id).of_group(group);
        Store::open_cached(options, seams, Arc::new(storage), resources, OpenScope::All)
    }

    /// Opens all groups at once, for a command that has taken the lease of each.
    ///
    /// # Errors
    /// Those of [`Store::open_shared_over`].
    pub fn open_groups(
        mut options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
        groups: Groups,
    ) -> Result<Store, StoreError> {
        check(&options)?;
        check_whole(bucket.as_ref())?;
        let id = check_log(bucket.as_ref(), &seams, &log)?;
        options.log_bytes = options.log_bytes.min(TAIL_BYTES);
        let terms = terms_of(&bucket, groups).iter().map(epoch).collect::<Result<Vec<_>, _>>()?;
        let resources = SharedResources::of(&options);
        let storage = storage(&options, &seams, bucket, 0, &resources).with_log(log, id).of_groups(groups, &terms);
        Store::open_cached(options, seams, Arc::new(storage), &resources, OpenScope::All)
    }

    /// Opens the collections in a bucket to read what the owner has flushed so far. [`Store::refresh`] loads later
    /// flushes; call it about once a second. Writes are refused. Only a pin is written to the bucket, which shows the
    /// owner what is in use here.
    ///
    /// # Errors
    /// Those of [`Store::open_shared`].
    pub fn open_read_only(options: Options, seams: Seams, bucket: Arc<dyn Bucket>) -> Result<Store, StoreError> {
        Store::open_to_follow(options, seams, bucket, SharedLog::Bucket, OpenScope::Following)
    }

    /// Like [`Store::open_read_only`], with the log that the owners share, which [`Options::follow_log`] follows. With
    /// a different log nothing is followed, and a warning is logged.
    ///
    /// # Errors
    /// Those of [`Store::open_shared`].
    pub fn open_read_only_over(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
    ) -> Result<Store, StoreError> {
        Store::open_to_follow(options, seams, bucket, log, OpenScope::Following)
    }

    /// Does the same, but collections are opened one by one, with [`Store::follow`].
    pub(crate) fn open_to_follow_some(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
    ) -> Result<Store, StoreError> {
        Store::open_to_follow(options, seams, bucket, SharedLog::Bucket, OpenScope::FollowingSome)
    }

    fn open_to_follow(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
        opening: impl FnOnce(FollowState) -> OpenScope,
    ) -> Result<Store, StoreError> {
        check(&options)?;
        check_whole(bucket.as_ref())?;
        let resources = SharedResources::of(&options);
        let storage = storage(&options, &seams, Arc::new(ReadOnly(bucket.clone())), 0, &resources);
        // Without the bucket's id, which the first owner may only record later.
        let storage = Arc::new(storage.with_log(log, ""));
        let following = FollowState::new(bucket, &seams, storage.clone(), options.skew);
        Store::open_cached(options, seams, storage, &resources, opening(following))
    }

    fn open_cached(
        options: Options,
        seams: Seams,
        storage: Arc<BucketStorage>,
        resources: &SharedResources,
        opening: OpenScope,
    ) -> Result<Store, StoreError> {
        // Bypasses the watcher: without space for extents a server still answers, so its readiness does not depend on
        // that.
        let (disk, own) = (seams.disk.clone(), options.clone());
        let begin = |_: Arc<dyn Disk>| -> Arc<dyn Storage> {
            // The folder is locked by now.
            storage.keep_on_disk(&disk, &own);
            storage
        };
        Store::open_as(options, seams, begin, resources, opening)
    }

    /// Returns the statistics of the cache of a bucket's objects; `None` without one.
    pub fn extents(&self) -> Option<ExtentStats> {
        self.inner.common.storage.extents()
    }

    /// Returns the statistics of segments opened for queries; all zero if segments are opened with their manifest.
    pub fn trees(&self) -> TreeStats {
        self.inner.common.cache.opened.stats()
    }

    /// Returns the time up to which flushed writes are complete. An owner states this for its partitions to its
    /// followers, while it holds the lease ([`crate::Lease::say`]). `None` if it is unknown, because another process
    /// may have taken over, or the store is closing.
    pub fn complete(&self) -> Option<Complete> {
        let inner = &self.inner;
        // The time first: anything acknowledged before it is covered by the reads below.
        let now = inner.common.seams.clock.now();
        let of = |tenant: &str, name: &str, time| {
            let (tenant, collection) = (tenant.to_owned(), name.to_owned());
            UnflushedCollection { tenant, collection, time }
        };
        // The log content of a collection that could not be opened is unknown. Checked before the others: one that is
        // opened meanwhile is then among those.
        let unopened: Vec<(String, String)> = inner.damaged.lock().keys().cloned().collect();
        let mut behind: Vec<UnflushedCollection> =
            unopened.iter().map(|(tenant, name)| of(tenant, name, i64::MIN)).collect();
        behind.extend(self.collections().iter().filter_map(|c| {
            let state = c.state();
            // It is unknown when the missing part was acknowledged.
            let hurt = state.refuses.is_some() || !state.seen.missing.is_empty();
            // No later than now: the clock may have been set back since a write was accepted.
            let time = if hurt { i64::MIN } else { state.behind?.min(now) };
            Some(of(c.tenant(), c.name(), time))
        }));
        // Last: a closing store releases its collections once it has flushed them.
        let known = !inner.common.read_only && !self.is_outdated() && !inner.closed.load(Ordering::Acquire);
        // A collection is only as complete as its least complete partition.
        let mut earliest: BTreeMap<(String, String), i64> = BTreeMap::new();
        for UnflushedCollection { tenant, collection, time } in behind {
            earliest.entry((tenant, collection)).and_modify(|known| *known = time.min(*known)).or_insert(time);
        }
        let behind =
            earliest.into_iter().map(|((tenant, collection), time)| UnflushedCollection { tenant, collection, time });
        known.then(|| Complete::at(now, behind.collect()))
    }

    /// Returns true if the state here may differ from the bucket. Another process may have taken over a collection, or
    /// the outcome of a write is unknown. Close the store, and reopen it once this process holds the lease again.
    pub fn is_outdated(&self) -> bool {
        self.inner.common.outdated.load(Ordering::Acquire)
    }

    /// Returns true if it was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.inner.common.read_only
    }
}

fn check(options: &Options) -> Result<(), StoreError> {
    match options.ephemeral {
        true => Err(Invalid::field("data", "a store in memory keeps nothing in a bucket: name a data folder").into()),
        false => Ok(()),
    }
}

/// Returns the epoch of the newest term of a lease; 0 without one.
fn epoch(terms: &Terms) -> Result<u64, StoreError> {
    Ok(terms.newest()?.map_or(0, |(_, term)| term.epoch))
}

fn storage(
    options: &Options,
    seams: &Seams,
    bucket: Arc<dyn Bucket>,
    term: u64,
    resources: &SharedResources,
) -> BucketStorage {
    // Covers a query that began just before an object was dropped, a page token for a snapshot before that, and a
    // reader whose pin expires.
    let grace = options.query_max + options.snapshot_memory + PIN_TTL;
    let extents = resources.extents(&bucket, options.extent_memory);
    BucketStorage::new(bucket, seams.clone(), &options.data, term, grace).with_extents(extents)
}

impl Inner {
    /// Checks that collections may be created and dropped here.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match self.common.read_only {
            true => Err(Invalid::new("this server only reads: create and drop collections at a gateway").into()),
            false => Ok(()),
        }
    }
}
