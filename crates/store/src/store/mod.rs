//! The store: a folder of collections, locked by one process.
//!
//! Start here. `folder.rs` knows the layout of a data folder, and `opening.rs` opens it. `retrying.rs` retries
//! collections that cannot be opened. `making.rs`, `renaming.rs` and `retyping.rs` change the set of collections.
//! `records.rs` keeps small records for other crates.

mod adopting;
pub(crate) mod candidate;
mod closing;
mod directory;
pub(crate) mod folder;
mod follower;
mod following;
pub(crate) mod full;
mod making;
mod opening;
pub(crate) mod partitions;
pub(crate) mod records;
mod renaming;
mod retrying;
mod retyping;
mod shared;
mod threads;

use crate::audit::{self, AuditLog};
use crate::collection::{Collection, MaintenanceSignal};
use crate::disk_storage::DiskStorage;
use crate::error::damaged::Damaged;
use crate::error::{Problem, StoreError};
use crate::options::Options;
use crate::panics::Panics;
use crate::paths::partition_dir;
use crate::recovery::{Common, SharedResources};
use crate::seams::{Disk, DiskLock, MemoryDisk, Seams, Storage};
use crate::store::directory::Directory;
use crate::store::folder::{LOCK, MARKER, check_marker, make_root};
use crate::store::following::FollowState;
use crate::store::full::{FullDisk, WatchedDisk};
use crate::store::partitions::Partitions;
use crate::store::records::{COPIES, Records, RepairedRecords};
pub use crate::store::renaming::KEEPS_NAME;
use crate::store::retrying::Retries;
pub use crate::store::retyping::Retyped;
use meridian_model::{Background, Subscriber};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;

/// An open data folder (or, ephemeral, a store in memory).
///
/// Dropping it closes it without a flush: nothing acknowledged is lost, because the next start replays the log.
#[derive(Debug)]
pub struct Store {
    inner: Arc<Inner>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<Box<dyn DiskLock>>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) common: Common,
    pub(crate) root: PathBuf,
    pub(crate) collections: Directory,
    /// Held while a collection is created, renamed or removed, and while the store closes.
    pub(crate) changing: Mutex<()>,
    /// Collections that could not be opened.
    pub(crate) damaged: Mutex<BTreeMap<(String, String), Damaged>>,
    /// The damaged ones above that are retried, and when.
    retries: Mutex<Retries>,
    /// Held during a retry.
    retrying: Mutex<()>,
    /// The pauses of work that has panicked and belongs to no collection.
    panics: Panics,
    /// Problems of the folder itself.
    problems: Vec<Problem>,
    /// Records that were damaged and have been repaired.
    mended: RepairedRecords,
    audit: Arc<AuditLog>,
    pub(crate) wake: Arc<MaintenanceSignal>,
    /// Present in a read-only store.
    following: Option<FollowState>,
    closed: AtomicBool,
    /// The given disk; the next field records whether it is full.
    bare: Arc<dyn Disk>,
    full: Arc<FullDisk>,
}

/// The set of collections to open.
pub(crate) enum OpenScope {
    /// All collections.
    All,
    /// All, followed instead of written here.
    Following(FollowState),
    /// The collections that [`Store::follow`] names, followed.
    FollowingSome(FollowState),
    /// None yet: a restore creates them. The folder is marked as being restored.
    Restoring,
}

impl Store {
    /// Opens the folder and every collection in it; creates the folder if it is absent.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::ReadOnly`], [`StoreError::NewerFormat`] for the folder as a whole, or the
    /// error of the disk. A collection that is damaged or of a newer format is not an error: see [`Store::damaged`].
    pub fn open(options: Options, seams: Seams) -> Result<Store, StoreError> {
        Store::open_over(options, seams, |disk| Arc::new(DiskStorage(disk)))
    }

    /// Opens a store like [`Store::open`], with partitions in another storage. `storage` receives the disk of the data
    /// folder, which holds the lock, the marker and the records.
    pub fn open_over(
        options: Options,
        seams: Seams,
        storage: impl FnOnce(Arc<dyn Disk>) -> Arc<dyn Storage>,
    ) -> Result<Store, StoreError> {
        let resources = SharedResources::of(&options);
        Store::open_as(options, seams, storage, &resources, OpenScope::All)
    }

    /// Opens a store with this set of collections.
    pub(crate) fn open_as(
        options: Options,
        mut seams: Seams,
        storage: impl FnOnce(Arc<dyn Disk>) -> Arc<dyn Storage>,
        resources: &SharedResources,
        opening: OpenScope,
    ) -> Result<Store, StoreError> {
        if options.ephemeral {
            seams.disk = Arc::new(MemoryDisk::volatile());
        }
        let root = options.data.clone();
        let (bare, full) = (seams.disk, Arc::<FullDisk>::default());
        // Every call passes through the watcher: readiness must notice a full disk, whichever code found it.
        seams.disk = Arc::new(WatchedDisk { disk: bare.clone(), full: full.clone() });
        let disk = seams.disk.clone();
        let unwritable = |e: StoreError| folder::unwritable(&root, e);
        // The lock before anything is read: concurrent writes of another process would be read only in part.
        make_root(disk.as_ref(), &root).map_err(unwritable)?;
        let lock = folder::lock(disk.as_ref(), &root, LOCK)?;
        let problem = match opening {
            OpenScope::Restoring => None,
            _ => check_marker(&seams, &root).map_err(unwritable)?,
        };
        let problems = problem.into_iter().collect();
        let opens = matches!(opening, OpenScope::All | OpenScope::Following(_));
        let following = match opening {
            OpenScope::Following(following) | OpenScope::FollowingSome(following) => Some(following),
            OpenScope::All | OpenScope::Restoring => None,
        };
        let audit = Arc::new(AuditLog::open(&seams, &root, options.audit_bytes, options.ephemeral));
        let (background, read_only) = (options.background, following.is_some());
        let pinned_until = following.as_ref().map(FollowState::pinned_until);
        let common = Common {
            storage: storage(seams.disk.clone()),
            seams,
            cache: resources.cache.clone(),
            memory_all: resources.memory_all.clone(),
            options: Arc::new(options),
            load: resources.load.clone(),
            listeners: Arc::default(),
            background: Arc::default(),
            outdated: Arc::default(),
            read_only,
            pinned_until: pinned_until.unwrap_or_else(|| Arc::new(AtomicI64::new(i64::MAX))),
        };
        let inner = Arc::new(Inner {
            common,
            root: root.clone(),
            collections: Directory::default(),
            changing: Mutex::default(),
            damaged: Mutex::default(),
            retries: Mutex::default(),
            retrying: Mutex::default(),
            panics: Panics::default(),
            problems,
            mended: RepairedRecords::default(),
            audit,
            wake: resources.wake.clone(),
            following,
            closed: AtomicBool::new(false),
            bare,
            full,
        });
        // Before the threads start: a flush or merge must not run on a partition that is half open.
        if opens {
            inner.open_all().map_err(unwritable)?;
        }
        let threads = if background && !read_only { inner.start_threads()? } else { Vec::new() };
        Ok(Store { inner, threads: Mutex::new(threads), lock: Mutex::new(Some(lock)) })
    }

    /// Returns the collection of this name; of several partitions, the first that this store has.
    pub fn collection(&self, tenant: &str, name: &str) -> Option<Arc<Collection>> {
        self.partitions(tenant, name)?.first().cloned()
    }

    /// Returns this store's partitions of the collection of this name: all of them, except at the owner of a group.
    pub fn partitions(&self, tenant: &str, name: &str) -> Option<Partitions> {
        self.inner.collections.get(tenant, name)
    }

    /// Returns the collections of a tenant in order of name, each with its partitions.
    pub fn all_of(&self, tenant: &str) -> Vec<Partitions> {
        self.inner.collections.of(tenant)
    }

    /// Returns the collections of a tenant that could not be opened, in order of name: they are neither absent nor
    /// served.
    pub fn damaged(&self, tenant: &str) -> Vec<Damaged> {
        self.inner.damaged.lock().values().filter(|damaged| damaged.tenant == tenant).cloned().collect()
    }

    /// Returns why the collection of this name could not be opened; `None` if it could, or does not exist.
    pub fn why_damaged(&self, tenant: &str, name: &str) -> Option<Damaged> {
        self.inner.damaged.lock().get(&(tenant.to_owned(), name.to_owned())).cloned()
    }

    /// Returns the collections of a tenant in order of name, partition by partition.
    pub fn list(&self, tenant: &str) -> Vec<Arc<Collection>> {
        self.all_of(tenant).iter().flat_map(|partitions| partitions.iter().cloned()).collect()
    }

    /// Returns all collections in order of tenant and name, partition by partition.
    pub fn collections(&self) -> Vec<Arc<Collection>> {
        self.inner.collections.all()
    }

    /// Notifies a subscriber of every write from now on, in any collection.
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber>) {
        self.inner.common.listeners.add(subscriber);
    }

    /// Returns the small records of this kind that a caller keeps in the data folder, possibly empty.
    pub fn records(&self, name: &'static str) -> Records {
        let records = self.inner.records_of(name);
        records.keep_private();
        records
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &Arc<AuditLog> {
        &self.inner.audit
    }

    /// Returns true if a file found no space on the disk, and [`Store::full_disk`] has found none since then.
    pub fn met_full_disk(&self) -> bool {
        self.inner.full.is_noted()
    }

    /// Returns the file that found no space on the disk, if there still is none. A trial file is written to find out.
    pub fn full_disk(&self) -> Option<PathBuf> {
        self.inner.full.still(self.inner.bare.as_ref(), &self.inner.root.join(MARKER).with_added_extension("new"))
    }

    /// Returns all records that callers keep, each kind with the name of its folder.
    pub(crate) fn all_records(&self) -> Vec<(String, Records)> {
        self.inner.all_records()
    }

    /// Returns the damage found when the folder was opened.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.problems_beside();
        problems.extend(self.collections().iter().flat_map(|collection| collection.problems()));
        problems
    }

    /// Returns the damage found when the folder was opened, without that of open collections.
    fn problems_beside(&self) -> Vec<Problem> {
        let mut problems = self.inner.problems.clone();
        problems.extend(self.inner.mended.lock().iter().cloned());
        problems.extend(self.unopened(|_| true));
        problems
    }

    /// Reads everything and verifies every checksum, tree and sidecar; returns the damage. Takes as long as reading the
    /// whole folder.
    pub fn check(&self) -> Vec<Problem> {
        let (mut problems, all) = (self.problems_beside(), self.collections());
        for partitions in all.chunk_by(|a, b| (a.tenant(), a.name()) == (b.tenant(), b.name())) {
            let mut found: Vec<Problem> = partitions.iter().flat_map(|partition| partition.problems()).collect();
            found.extend(partitions.iter().flat_map(|partition| crate::recovery::check::check(partition)));
            // Its owner may have dropped it meanwhile, first partition first: what is gone then is not lost.
            let is_dropped = |first: &Arc<Collection>| first.core.lock().catalog.is_ended().unwrap_or(false);
            if found.is_empty() || !partitions.first().is_some_and(is_dropped) {
                problems.extend(found);
            }
        }
        problems.extend(self.all_records().iter().flat_map(|(_, records)| records.verify()));
        problems.extend(self.inner.audit.verify());
        problems.extend(self.inner.mended.lock().iter().cloned());
        let mut seen = BTreeSet::new();
        // Opening and checking find the same damage.
        problems.retain(|p| seen.insert((p.path.clone(), p.detail.clone())));
        problems
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Returns the data folder.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Returns true if all collections are kept in memory only.
    pub fn is_ephemeral(&self) -> bool {
        self.inner.common.options.ephemeral
    }

    /// Returns the collections that could not be opened, of the tenants for which `of` is true.
    pub(crate) fn unopened(&self, of: impl Fn(&str) -> bool) -> Vec<Problem> {
        let damaged = self.inner.damaged.lock();
        damaged.values().filter(|damaged| of(&damaged.tenant)).map(|damaged| damaged.problem.clone()).collect()
    }

    /// Returns microseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.inner.common.seams.clock.now()
    }

    /// Runs all maintenance from now on through this, for the tenant of the collection. Only the first call counts.
    pub fn charge_to(&self, background: Arc<dyn Background>) {
        let _ = self.inner.common.background.set(background);
    }

    /// Guarantees each tenant a share of the memory for writes, by its weight.
    pub fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.inner.common.memory_all.guarantee(weights);
    }

    /// Returns the bytes of the block cache, and of the memory trees of all collections.
    pub fn memory(&self) -> (u64, u64) {
        let common = &self.inner.common;
        (common.cache.bytes(), common.memory_all.bytes())
    }

    /// Returns the bytes of the memory trees of a tenant's collections.
    pub fn memory_of(&self, tenant: &str) -> u64 {
        self.inner.common.memory_all.bytes_of(tenant)
    }

    /// Removes Arrow rows of archived segments, least recently used first, until the served files fit into
    /// `Options::serving_bytes`. Called by simulators and the store's threads.
    pub fn trim_serving(&self) {
        self.inner.trim_serving();
    }
}

impl Inner {
    pub(crate) fn dir_of(&self, tenant: &str, name: &str, partition: u32) -> PathBuf {
        partition_dir(&self.root, tenant, name, partition)
    }

    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::closes()) } else { Ok(()) }
    }

    /// Returns the records that other crates keep. Each kind has a folder beside the collections, whose name comes
    /// first.
    fn all_records(&self) -> Vec<(String, Records)> {
        let disk = &self.common.seams.disk;
        let names = disk.list(&self.root).unwrap_or_default();
        let other = ["tenants", "lost+found", audit::FOLDER, shared::GROUPS, folder::ANSWERS];
        let folders = names.into_iter().filter(|name| !other.contains(&name.as_str()));
        let records = folders.filter(|name| disk.list(&self.root.join(name)).is_ok());
        // A removed folder may still have copies.
        let records = records.map(|name| name.strip_suffix(COPIES).map(ToOwned::to_owned).unwrap_or(name));
        let records: BTreeSet<String> = records.collect();
        records.into_iter().map(|name| (name.clone(), self.records_of(&name))).collect()
    }

    fn records_of(&self, name: &str) -> Records {
        Records::new(self.common.seams.disk.clone(), &self.root, name, self.mended.clone())
    }
}
