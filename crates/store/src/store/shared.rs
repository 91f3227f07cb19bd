//! A store whose collections lie in a bucket: the owner's, and those of servers that only read.

use crate::bucket::{Bucket, BucketStorage, PIN_TTL, ReadOnly, Terms, check_log, check_whole, lease_of, terms_of};
use crate::error::StoreError;
use crate::extents::ExtentStats;
use crate::options::Options;
use crate::part::opened::TreeStats;
use crate::recovery::SharedResources;
use crate::seams::{Disk, Seams, Storage};
use crate::store::following::Following;
use crate::store::{Inner, Opening, Store};
use crate::stream::SharedLog;
use meridian_model::Invalid;
use meridian_model::policy::complete::{Behind, Complete};
use meridian_model::policy::groups::{Group, Groups};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Max bytes of log that an owner leaves unflushed in a collection: what the next one reads before it serves.
const TAIL_BYTES: u64 = 64 << 20;
/// Where in a data folder the folders of groups are, each with what belongs to one store. That of the first group is the data folder itself.
pub(super) const GROUPS: &str = "groups";

impl Store {
    /// Opens the collections in a bucket as their owner, in the place of the previous owner. That one's writes fail from here
    /// on.
    ///
    /// The data folder keeps what belongs to this process: lock, records, audit log. Hold the lease `owner` first ([`crate::Lease`]): two
    /// processes without one take the collections from each other, but lose no data.
    ///
    /// # Errors
    /// As of [`Store::open`], and [`StoreError::Io`] where the bucket does not answer.
    pub fn open_shared(options: Options, seams: Seams, bucket: Arc<dyn Bucket>) -> Result<Store, StoreError> {
        Store::open_shared_over(options, seams, bucket, SharedLog::Bucket)
    }

    /// The same with the log elsewhere. The first owner of a bucket decides where; another choice is refused from then on.
    ///
    /// # Errors
    /// As of [`Store::open_shared`], and [`StoreError::Invalid`] where the log of these collections is another.
    pub fn open_shared_over(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
    ) -> Result<Store, StoreError> {
        let resources = SharedResources::of(&options);
        Store::open_group(options, seams, bucket, log, Group::ONLY, &resources)
    }

    /// The same of one group of the partitions, whose lease is [`lease_of`] it. A process that owns several opens a store for each, and gives
    /// them the same resources. Partitions that are made later are taken up by [`Store::adopt`].
    ///
    /// # Errors
    /// As of [`Store::open_shared_over`].
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
        Store::open_cached(options, seams, Arc::new(storage), resources, Opening::All)
    }

    /// The same of all groups at once, for a command that has taken the lease of each.
    ///
    /// # Errors
    /// As of [`Store::open_shared_over`].
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
        Store::open_cached(options, seams, Arc::new(storage), &resources, Opening::All)
    }

    /// Opens the collections in a bucket to read what the owner has flushed so far. [`Store::refresh`] loads what it flushes later; call it
    /// about once a second. Writes are refused. The only thing written to the bucket is a pin, which tells the owner what is in use here.
    ///
    /// # Errors
    /// As of [`Store::open_shared`].
    pub fn open_read_only(options: Options, seams: Seams, bucket: Arc<dyn Bucket>) -> Result<Store, StoreError> {
        Store::open_to_follow(options, seams, bucket, SharedLog::Bucket, Opening::Following)
    }

    /// The same with the log that the owners share, which [`Options::follow_log`] reads on. With another one than theirs nothing is followed, and a warning is logged.
    ///
    /// # Errors
    /// As of [`Store::open_shared`].
    pub fn open_read_only_over(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
    ) -> Result<Store, StoreError> {
        Store::open_to_follow(options, seams, bucket, log, Opening::Following)
    }

    /// The same, but collections are opened one by one, with [`Store::follow`].
    pub(crate) fn open_to_follow_some(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
    ) -> Result<Store, StoreError> {
        Store::open_to_follow(options, seams, bucket, SharedLog::Bucket, Opening::FollowingSome)
    }

    fn open_to_follow(
        options: Options,
        seams: Seams,
        bucket: Arc<dyn Bucket>,
        log: SharedLog,
        opening: impl FnOnce(Following) -> Opening,
    ) -> Result<Store, StoreError> {
        check(&options)?;
        check_whole(bucket.as_ref())?;
        let resources = SharedResources::of(&options);
        let storage = storage(&options, &seams, Arc::new(ReadOnly(bucket.clone())), 0, &resources);
        // Without the bucket's id: it may be said later, by the first owner.
        let storage = Arc::new(storage.with_log(log, ""));
        let following = Following::new(bucket, &seams, storage.clone(), options.skew);
        Store::open_cached(options, seams, storage, &resources, opening(following))
    }

    fn open_cached(
        options: Options,
        seams: Seams,
        storage: Arc<BucketStorage>,
        resources: &SharedResources,
        opening: Opening,
    ) -> Result<Store, StoreError> {
        // Past the watcher: without room for extents a server answers as before, so its readiness does not depend on that.
        let (disk, own) = (seams.disk.clone(), options.clone());
        let begin = |_: Arc<dyn Disk>| -> Arc<dyn Storage> {
            // The folder is locked by now.
            storage.keep_on_disk(&disk, &own);
            storage
        };
        Store::open_as(options, seams, begin, resources, opening)
    }

    /// The cache of a bucket's objects; `None`: there is none.
    pub fn extents(&self) -> Option<ExtentStats> {
        self.inner.common.storage.extents()
    }

    /// The segments that were opened for queries; all zero where they are opened with their manifest.
    pub fn trees(&self) -> TreeStats {
        self.inner.common.cache.opened.stats()
    }

    /// Up to when the flushed writes here are complete. An owner says that of its partitions to its followers, while it holds the lease
    /// ([`crate::Lease::say`]). `None`: that is not known, as another process may have taken over, or the store is closing.
    pub fn complete(&self) -> Option<Complete> {
        let inner = &self.inner;
        // The time first: what was acknowledged before it is covered by the reads below.
        let now = inner.common.seams.clock.now();
        let of = |tenant: &str, name: &str, time| {
            let (tenant, collection) = (tenant.to_owned(), name.to_owned());
            Behind { tenant, collection, time }
        };
        // What the log of one holds that could not be opened is unknown. Before the others: one that is opened meanwhile is among those.
        let unopened: Vec<(String, String)> = inner.damaged.lock().keys().cloned().collect();
        let mut behind: Vec<Behind> = unopened.iter().map(|(tenant, name)| of(tenant, name, i64::MIN)).collect();
        behind.extend(self.collections().iter().filter_map(|c| {
            let state = c.state();
            // When the missing part was acknowledged is unknown.
            let hurt = state.refuses.is_some() || !state.seen.missing.is_empty();
            // No later than now: the clock may have been set back since a write was accepted.
            let time = if hurt { i64::MIN } else { state.behind?.min(now) };
            Some(of(c.tenant(), c.name(), time))
        }));
        // Last: a store that closes has let go of its collections by the time that it has flushed them.
        let known = !inner.common.read_only && !self.is_outdated() && !inner.closed.load(Ordering::Acquire);
        // A collection is as far as the last of its partitions.
        let mut earliest: BTreeMap<(String, String), i64> = BTreeMap::new();
        for Behind { tenant, collection, time } in behind {
            earliest.entry((tenant, collection)).and_modify(|known| *known = time.min(*known)).or_insert(time);
        }
        let behind = earliest.into_iter().map(|((tenant, collection), time)| Behind { tenant, collection, time });
        known.then(|| Complete::at(now, behind.collect()))
    }

    /// Whether the state here may differ from the bucket: another process may have taken a collection over, or the outcome of a write is
    /// unknown. Close the store, and open it again once it is this process's turn.
    pub fn is_outdated(&self) -> bool {
        self.inner.common.outdated.load(Ordering::Acquire)
    }

    /// Whether it was opened to read only.
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

/// The epoch of the newest term of a lease; 0: there is none.
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
    // A query that began just before an object was dropped, a page token that names a snapshot before that, and a reader whose pin ends.
    let grace = options.query_max + options.snapshot_memory + PIN_TTL;
    let extents = resources.extents(&bucket, options.extent_memory);
    BucketStorage::new(bucket, seams.clone(), &options.data, term, grace).with_extents(extents)
}

impl Inner {
    /// Whether collections may be made and dropped here.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match self.common.read_only {
            true => Err(Invalid::new("this server only reads: create and drop collections at a gateway").into()),
            false => Ok(()),
        }
    }
}
