//! Partitions in a bucket, and the list of collections.

use super::catalog::BucketCatalog;
use super::create::create;
use super::kind;
use super::log::{self, BucketLog};
use super::objects::{BucketObjects, DeletionQueue};
use super::patches::Patches;
use super::pins::Pins;
use super::reader::BucketReader;
use super::{Bucket, COLLECTIONS, Terms, lease_of};
use crate::error::StoreError;
use crate::extents::Extents;
use crate::options::Options;
use crate::paths::{number_of, partition_dir, partition_folder};
use crate::seams::{Catalog, Disk, LogReader, Objects, PartitionStorage, Registry, Seams, Storage, WriteLog};
use crate::stats::ExtentStats;
use crate::stream::{SharedLog, StreamLog, StreamReader, name_of, prefix_of};
use meridian_model::policy::groups::{Group, Groups};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Name of the file of extents in the data folder.
const EXTENTS: &str = "extents";
/// Maps partitions of a data folder to their places in a bucket.
///
/// A collection that is dropped and created again under its name has another *life*, with folders of its own. So late
/// writes to the former one reach no reader.
#[derive(Debug)]
pub struct BucketStorage {
    bucket: Arc<dyn Bucket>,
    seams: Seams,
    /// The data folder, the prefix of the paths of partitions.
    root: PathBuf,
    /// The groups whose partitions this process may own, each with the epoch of its lease; 0 without a lease.
    groups: Vec<(Group, u64)>,
    log: SharedLog,
    /// The bucket's id in stream names.
    id: String,
    /// The pins of readers in other processes.
    pins: Arc<Pins>,
    deletions: Arc<DeletionQueue>,
    patches: Arc<Patches>,
    extents: Option<Arc<Extents>>,
    /// Whether no other process uses the bucket, so that rebuilt objects are written under their own names.
    alone: bool,
    /// The life of each collection, by the folder of its partitions.
    lives: Mutex<HashMap<PathBuf, u64>>,
}

impl BucketStorage {
    /// Creates the storage of partitions below the data folder `root`.
    ///
    /// `term` is the epoch of this process's lease, 0 without one. `grace` is how long objects stay after the last
    /// manifest that names them.
    pub fn new(
        bucket: Arc<dyn Bucket>,
        seams: Seams,
        root: impl Into<PathBuf>,
        term: u64,
        grace: Duration,
    ) -> BucketStorage {
        let pins = Arc::new(Pins::new(bucket.clone(), seams.clock.clone(), grace));
        let deletions = Arc::new(DeletionQueue::new(bucket.clone(), seams.clock.clone(), grace, pins.clone()));
        BucketStorage {
            bucket,
            seams,
            root: root.into(),
            groups: vec![(Group::ONLY, term)],
            log: SharedLog::Bucket,
            id: String::new(),
            pins,
            deletions,
            patches: Arc::default(),
            extents: None,
            alone: false,
            lives: Mutex::default(),
        }
    }

    /// Uses another log. `id` is the bucket's id from its object `log`; stream names contain it.
    #[must_use]
    pub fn with_log(self, log: SharedLog, id: impl Into<String>) -> BucketStorage {
        BucketStorage { log, id: id.into(), ..self }
    }

    /// Keeps extents in the data folder too, which this process has locked.
    pub(crate) fn keep_on_disk(&self, disk: &Arc<dyn Disk>, options: &Options) {
        if let Some(extents) = self.extents.as_ref().filter(|_| options.extent_disk > 0) {
            extents.keep_on_disk(disk, &self.root.join(EXTENTS), options.extent_disk, options.background);
        }
    }

    /// Uses a cache of what is read.
    #[must_use]
    pub(crate) fn with_extents(self, extents: Option<Arc<Extents>>) -> BucketStorage {
        BucketStorage { extents, ..self }
    }

    /// Prepares for a restore, during which no other process uses the bucket.
    #[must_use]
    pub(crate) fn alone(self) -> BucketStorage {
        BucketStorage { alone: true, ..self }
    }

    /// Assigns the group that this process owns.
    #[must_use]
    pub fn of_group(self, group: Group) -> BucketStorage {
        let groups = self.groups.iter().map(|(_, term)| (group, *term)).collect();
        BucketStorage { groups, ..self }
    }

    /// Assigns all groups, in order, with the epochs of their leases.
    #[must_use]
    pub(crate) fn of_groups(self, groups: Groups, terms: &[u64]) -> BucketStorage {
        BucketStorage { groups: groups.all().zip(terms.iter().copied()).collect(), ..self }
    }

    /// Returns the epoch in which this process may write to the partition in a folder.
    fn term(&self, dir: &Path) -> u64 {
        let below: Vec<&str> = self.below(dir).iter().filter_map(|part| part.to_str()).collect();
        let has = |group: Group| match below.as_slice() {
            [.., tenant, name, partition] => number_of(partition).is_some_and(|number| group.has(tenant, name, number)),
            _ => false,
        };
        self.groups.iter().find(|(group, _)| group.is_all() || has(*group)).map_or(0, |(_, term)| *term)
    }

    /// Returns the folder of a partition in the bucket, given its folder below the data folder.
    pub(crate) fn place_of(&self, dir: &Path) -> String {
        self.folder(dir, self.life(dir))
    }

    /// Returns the folder of a partition relative to the data folder.
    fn below<'a>(&self, dir: &'a Path) -> &'a Path {
        dir.strip_prefix(&self.root).unwrap_or(dir)
    }

    fn log(&self, dir: &Path, life: u64) -> Box<dyn WriteLog> {
        let term = self.term(dir);
        match &self.log {
            SharedLog::Bucket => {
                let folder = format!("{}/wal/", self.folder(dir, life));
                let (clock, writer) = (self.seams.clock.clone(), self.seams.random.next_u64());
                Box::new(BucketLog::new(self.bucket.clone(), clock, folder, writer, term))
            }
            SharedLog::Streams { streams, accept_loss } => {
                let prefix = prefix_of(&self.id, self.below(dir), life);
                Box::new(StreamLog::new(streams.clone(), *accept_loss, &self.seams, prefix, term))
            }
        }
    }

    /// Returns the folder of a partition in the bucket.
    fn folder(&self, dir: &Path, life: u64) -> String {
        let below = self.below(dir);
        let parts: Vec<_> = below.iter().filter_map(|part| part.to_str()).filter(|part| *part != "/").collect();
        format!("{}/{life:08x}", parts.join("/"))
    }

    /// Returns the life of a listed collection.
    pub(super) fn life(&self, dir: &Path) -> u64 {
        self.lives.lock().get(collection_of(dir)).copied().unwrap_or(0)
    }

    fn catalog(&self, dir: &Path, life: u64) -> BucketCatalog {
        let folder = format!("{}/manifests/", self.folder(dir, life));
        BucketCatalog::new(self.bucket.clone(), self.seams.clock.clone(), folder, self.seams.random.next_u64())
    }

    fn objects(&self, dir: &Path, life: u64, committed: Arc<AtomicU64>) -> BucketObjects {
        let (folder, kept) = (self.folder(dir, life), (self.deletions.clone(), self.patches.clone()));
        BucketObjects::new(self.bucket.clone(), folder, committed, kept, self.extents.clone(), self.alone)
    }

    fn failed(&self, action: &'static str, name: &str) -> impl FnOnce(std::io::Error) -> StoreError {
        let path = Path::new(&self.bucket.place()).join(name);
        move |source| StoreError::Io { action, path, source }
    }

    /// Returns the newest life of a collection, starting from a known one; `None` if it has none.
    fn newest_life(&self, tenant: &str, name: &str, known: Option<u64>) -> Result<Option<u64>, StoreError> {
        // Lives are numbered without gaps and never deleted, so no listing is needed.
        let mut newest = known;
        loop {
            let next = newest.map_or(0, |life| life + 1);
            let marker = marker(tenant, name, next);
            match self.bucket.len(&marker) {
                Ok(_) => newest = Some(next),
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(newest),
                Err(e) => return Err(self.failed("read", &marker)(e)),
            }
        }
    }
}

/// Returns the folder of a collection, given that of one of its partitions.
fn collection_of(dir: &Path) -> &Path {
    dir.parent().unwrap_or(dir)
}

fn marker(tenant: &str, name: &str, life: u64) -> String {
    format!("{COLLECTIONS}{tenant}/{name}/{life:08x}")
}

impl Storage for BucketStorage {
    fn partition(&self, dir: &Path, _: u64) -> PartitionStorage {
        let life = self.life(dir);
        let catalog = self.catalog(dir, life);
        PartitionStorage {
            log: self.log(dir, life),
            objects: Arc::new(self.objects(dir, life, catalog.committed())),
            catalog: Arc::new(catalog),
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn registry(&self) -> Option<&dyn Registry> {
        Some(self)
    }

    fn tend(&self) {
        self.deletions.tend();
    }

    fn extents(&self) -> Option<ExtentStats> {
        self.extents.as_ref().map(|extents| extents.stats())
    }

    fn log_reader(&self, dir: &Path) -> Result<Option<Box<dyn LogReader>>, StoreError> {
        let (kind, id) = kind::said(self.bucket.as_ref())?;
        if kind != self.log.kind() {
            let place = self.place_of(dir);
            tracing::warn!(%place, "its log is not followed: expected --log {kind} here, as its owners have it");
            return Ok(None);
        }
        Ok(Some(match &self.log {
            SharedLog::Bucket => {
                let folder = format!("{}/wal/", self.place_of(dir));
                Box::new(BucketReader::new(BucketLog::new(self.bucket.clone(), self.seams.clock.clone(), folder, 0, 0)))
            }
            SharedLog::Streams { streams, .. } => {
                Box::new(StreamReader::new(streams.clone(), prefix_of(&id, self.below(dir), self.life(dir))))
            }
        }))
    }

    fn pinned(&self, dir: &Path) -> Option<u64> {
        self.pins.min_seq(&self.place_of(dir))
    }
}

impl Registry for BucketStorage {
    fn collections(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        let names = self.bucket.list(COLLECTIONS).map_err(self.failed("list", COLLECTIONS))?;
        let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
        for path in &names {
            let mut parts = path.strip_prefix(COLLECTIONS).unwrap_or(path).split('/');
            let (Some(tenant), Some(name), Some(life)) = (parts.next(), parts.next(), parts.next()) else { continue };
            let Ok(life) = u64::from_str_radix(life, 16) else { continue };
            let newest = found.entry((tenant.to_owned(), name.to_owned())).or_default();
            *newest = life.max(*newest);
        }
        for ((tenant, name), life) in &found {
            let life = self.newest_life(tenant, name, Some(*life))?.unwrap_or(*life);
            self.live(&partition_dir(&self.root, tenant, name, 0), life);
        }
        Ok(found.into_keys().collect())
    }

    fn enroll(&self, tenant: &str, name: &str, partitions: u16) -> Result<(), StoreError> {
        let dir = partition_dir(&self.root, tenant, name, 0);
        let life = match self.newest_life(tenant, name, None)? {
            None => 0,
            Some(life) if self.catalog(&dir, life).is_ended()? => life + 1,
            Some(life) => life,
        };
        if let SharedLog::Streams { streams, .. } = &self.log {
            // Before the first manifest: a collection without its stream counts as having lost it.
            for partition in 0..u32::from(partitions) {
                let dir = partition_dir(&self.root, tenant, name, partition);
                let stream = name_of(&self.id, self.below(&dir), life, 0);
                streams.create(&stream).map_err(|source| {
                    let path = Path::new(&streams.place()).join(&stream);
                    StoreError::Io { action: "create", path, source }
                })?;
            }
        }
        let marker = marker(tenant, name, life);
        // Two processes that create one collection may both create its marker: the first manifest decides.
        create(self.bucket.as_ref(), self.seams.clock.as_ref(), &marker, b"")
            .map_err(|failure| self.failed("create", &marker)(failure.into_error()))?;
        self.live(&dir, life);
        Ok(())
    }

    fn clear(&self, dir: &Path) -> Result<(), StoreError> {
        let life = self.life(dir);
        // Without a manifest there is only a stream. Another process may be about to commit the first manifest, and
        // needs the stream.
        if !self.catalog(dir, life).is_ended()? {
            return Ok(());
        }
        for other in self.other_partitions(dir)? {
            self.clear_partition(&other, life)?;
        }
        self.clear_partition(dir, life)
    }

    fn has(&self, tenant: &str, name: &str, partition: u32) -> bool {
        self.groups.iter().any(|(group, _)| group.has(tenant, name, partition))
    }

    fn find(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        let dir = partition_dir(&self.root, tenant, name, 0);
        let known = self.lives.lock().get(collection_of(&dir)).copied();
        let life = self.newest_life(tenant, name, known)?;
        life.iter().for_each(|life| self.live(&dir, *life));
        Ok(life.is_some())
    }

    fn is_current(&self) -> Result<bool, StoreError> {
        for (group, own) in &self.groups {
            let newest = Terms::new(&self.bucket, &lease_of(*group)).newest()?;
            if newest.is_some_and(|(_, term)| term.epoch > *own) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl BucketStorage {
    /// Records the life of a collection, given the folder of one of its partitions.
    fn live(&self, dir: &Path, life: u64) {
        self.lives.lock().insert(collection_of(dir).to_owned(), life);
    }

    /// Returns the folders of a collection's partitions that hold anything, except the first.
    fn other_partitions(&self, dir: &Path) -> Result<BTreeSet<PathBuf>, StoreError> {
        let below = self.below(collection_of(dir));
        let parts: Vec<_> = below.iter().filter_map(|part| part.to_str()).filter(|part| *part != "/").collect();
        let folder = format!("{}/", parts.join("/"));
        let names = self.bucket.list(&folder).map_err(self.failed("list", &folder))?;
        let number = |name: &String| number_of(name.strip_prefix(&folder)?.split('/').next()?);
        let numbers: BTreeSet<u32> = names.iter().filter_map(number).filter(|partition| *partition > 0).collect();
        Ok(numbers.into_iter().map(|partition| dir.with_file_name(partition_folder(partition))).collect())
    }

    /// Removes the objects and the log of a partition of a dropped collection.
    fn clear_partition(&self, dir: &Path, life: u64) -> Result<(), StoreError> {
        // No manifest names them any more: whatever a reader has pinned is older.
        let objects = self.objects(dir, life, Arc::new(AtomicU64::new(u64::MAX)));
        let names = objects.list().map_err(self.failed("list", &self.folder(dir, life)))?;
        for name in names {
            // Snapshots of this and other processes may still read them.
            objects.delete(&name).map_err(self.failed("remove", &name))?;
        }
        // The log is removed at once, except for its fences, as no process replays it. Fences and manifests stay: no
        // former owner can write to the collection or revive it.
        if let SharedLog::Streams { streams, .. } = &self.log {
            let prefix = prefix_of(&self.id, self.below(dir), life);
            let names = streams.names(&prefix).and_then(|names| names.iter().try_for_each(|name| streams.delete(name)));
            let path = Path::new(&streams.place()).join(&prefix);
            return names.map_err(StoreError::io("remove", &path));
        }
        let folder = format!("{}/wal/", self.folder(dir, life));
        log::clear(self.bucket.as_ref(), &folder).map_err(self.failed("remove", &folder))
    }
}
