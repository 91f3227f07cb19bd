//! The partitions of a collection: created together, opened together, dropped together.
//!
//! The first partition decides whether the collection exists. Its first manifest records that the others are *being
//! made*. Once each of these has a manifest, the first partition's next manifest records that the collection exists. A
//! start that finds it being made creates what is missing: no write was acknowledged yet. A collection that exists
//! lacks no partition, so a missing one is damage. A drop begins with the first partition, whose mark is removed last.
//!
//! The partitions may have several owners (`model::policy::groups`). The owner of the first one creates and drops them
//! all. The others adopt the state of the first partition (`adopting.rs`).

use crate::catalog::disk::{DROPPED, MANIFEST};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::options::{PARTITIONS_MAX, Settings};
use crate::paths::number_of;
use crate::recovery;
use crate::seams::CommitError;
use crate::seams::files::names;
use crate::store::Inner;
use crate::store::folder::{FolderState, clear, clear_partition, standing};
use meridian_model::{IdRole, Invalid, Mode, Schema};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Max collections of a bucket, or partitions of one, opened at a time. Each waits for some eighty calls, most of them
/// sequential.
pub(super) const OPENERS: usize = 8;

/// A store's partitions of a collection, in order.
pub type Partitions = Arc<[Arc<Collection>]>;

/// Checks that a collection of this schema can have the number of partitions in its settings.
pub(crate) fn check(settings: &Settings, schema: &Schema) -> Result<(), Invalid> {
    let wrong = |detail: String| Err(Invalid::field("partitions", detail));
    if !(1..=PARTITIONS_MAX).contains(&settings.partitions) {
        return wrong(format!("{} partitions: expected 1 to {PARTITIONS_MAX}", settings.partitions));
    }
    // The id has to be unique, and the newest event of an object has to be found: one partition would have to hold
    // both.
    if settings.partitions > 1 && schema.mode == Mode::Latest && schema.id == IdRole::Given {
        return wrong(
            "a collection of mode latest whose events bring ids cannot have several partitions: an event has one by its id and one by its \
             object; leave the ids out, or use 1 partition"
                .to_owned(),
        );
    }
    Ok(())
}

impl Inner {
    /// Creates the partitions of a collection, beginning with this manifest of the first.
    pub(crate) fn make_partitions(&self, first: &Manifest) -> Result<Partitions, StoreError> {
        let (tenant, name) = (first.tenant.as_str(), first.collection.as_str());
        let dir = self.dir_of(tenant, name, 0);
        if first.settings.partitions == 1 {
            let partition = recovery::create(&self.common, &self.root, &dir, first)?;
            return Ok(Arc::new([Collection::new(tenant, name, partition, self.wake.clone())]));
        }
        let making = Manifest { making: true, ..first.clone() };
        recovery::begin(&self.common, &self.root, &dir, &making)?;
        let made = self.complete_making(tenant, name, making);
        let made = made.and_then(|first| self.open_partitions(tenant, name, &first));
        if let Err(error) = &made {
            if self.common.storage.registry().is_some() {
                // Never undone: another process may have completed it since, and may hold events in it. It is reopened
                // like any other.
                self.set_apart(tenant, name, error);
            } else {
                // A start would complete it, although its client got an error. If this fails too, a start does complete
                // it.
                let _ = self.end_first(&dir).and_then(|()| self.clear_dropped(tenant, name));
            }
        }
        made
    }

    /// Creates the partitions that a collection being made lacks, and records that it exists.
    pub(super) fn complete_making(&self, tenant: &str, name: &str, making: Manifest) -> Result<Manifest, StoreError> {
        for partition in 1..u32::from(making.settings.partitions) {
            let dir = self.dir_of(tenant, name, partition);
            if self.common.storage_of(&dir).catalog.newest()?.is_some() {
                continue;
            }
            // Partitions number their files independently: the seed distinguishes these in a backup.
            let seed = self.common.seams.random.next_u64();
            let manifest = Manifest { partition, seed, making: false, ..making.clone() };
            match recovery::begin(&self.common, &self.root, &dir, &manifest) {
                // Another process completes it too.
                Ok(()) | Err(StoreError::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let dir = self.dir_of(tenant, name, 0);
        let made = Manifest { making: false, next_file: making.next_file + 1, ..making.clone() };
        match self.common.storage_of(&dir).catalog.commit(making.version(), &made) {
            Ok(_) => Ok(made),
            Err(CommitError::Stale { .. }) => match self.common.storage_of(&dir).catalog.newest()? {
                Some(newest) if !newest.manifest.making => Ok(newest.manifest),
                _ => Err(StoreError::Busy("another process makes or drops the collection: try again".to_owned())),
            },
            Err(failed) => Err(failed.into()),
        }
    }

    /// Opens all partitions of an existing collection that this process may own, by a manifest of the first.
    pub(super) fn open_partitions(&self, tenant: &str, name: &str, first: &Manifest) -> Result<Partitions, StoreError> {
        let partitions = u32::from(first.settings.partitions);
        let together = self.common.options.background && self.common.storage.is_shared();
        let own: Vec<u32> = (0..partitions).filter(|partition| self.common.has(tenant, name, *partition)).collect();
        let openers = if together { OPENERS.min(own.len()) } else { 1 };
        let (next, opened) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = || {
            // Relaxed: each number is taken once, and nothing else depends on it.
            loop {
                let Some(partition) = own.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return };
                let result = self.open_partition(tenant, name, (partition, partitions));
                opened.lock().insert(partition, result);
            }
        };
        std::thread::scope(|scope| {
            // Without a thread, or with fewer threads, the others open the rest.
            (1..openers).for_each(|_| drop(Builder::new().spawn_scoped(scope, work)));
            work();
        });
        let opened: Vec<Arc<Collection>> = opened.into_inner().into_values().collect::<Result<_, _>>()?;
        align(&opened)?;
        Ok(opened.into())
    }

    /// Opens an existing partition.
    fn open_partition(
        &self,
        tenant: &str,
        name: &str,
        (partition, partitions): (u32, u32),
    ) -> Result<Arc<Collection>, StoreError> {
        let dir = self.dir_of(tenant, name, partition);
        let there = partition == 0
            || match self.common.storage.registry() {
                Some(_) => self.common.storage_of(&dir).catalog.newest()?.is_some(),
                None => self.is_made(&dir)?,
            };
        if !there {
            return Err(missing(&dir, (partition, partitions)));
        }
        let partition = recovery::open(&self.common, &dir)?;
        Ok(Collection::new(tenant, name, partition, self.wake.clone()))
    }

    /// Returns true if a folder holds a partition.
    fn is_made(&self, dir: &Path) -> Result<bool, StoreError> {
        match standing(self.common.seams.disk.as_ref(), dir)? {
            FolderState::Made => Ok(true),
            FolderState::Empty => Ok(self.common.storage_of(dir).catalog.newest()?.is_some()),
            FolderState::Dropped => Ok(false),
            FolderState::Lost(problem) => Err(StoreError::corrupt(&problem.path, problem.detail)),
        }
    }

    /// Returns the partitions that have a folder, except for the first.
    pub(crate) fn others_there(&self, tenant: &str, name: &str) -> Result<Vec<u32>, StoreError> {
        let dir = self.root.join("tenants").join(tenant).join(name);
        let found = names(self.common.seams.disk.as_ref(), &dir)?;
        Ok(found.iter().filter_map(|name| number_of(name)).filter(|partition| *partition > 0).collect())
    }

    /// Marks the first partition in a data folder as dropped: from here on the collection does not exist.
    pub(super) fn end_first(&self, dir: &Path) -> Result<(), StoreError> {
        let disk = self.common.seams.disk.as_ref();
        // The rename is the drop: from here on a crash leaves a folder that the next start clears.
        let (from, to) = (dir.join(MANIFEST), dir.join(DROPPED));
        disk.rename(&from, &to).map_err(StoreError::io("rename", &from))?;
        disk.sync_dir(dir).map_err(StoreError::io("sync", dir))
    }

    /// Removes a collection that a restore has begun, in any state.
    pub(crate) fn discard(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let dir = self.dir_of(tenant, name, 0);
        if let Some(registry) = self.common.storage.registry() {
            // This finds its life as well.
            registry.collections()?;
            let catalog = self.common.storage_of(&dir).catalog;
            let Some(newest) = catalog.newest()? else { return Ok(()) };
            catalog.end(newest.manifest.version())?;
            return registry.clear(&dir);
        }
        let disk = self.common.seams.disk.as_ref();
        for partition in self.others_there(tenant, name)? {
            clear_partition(disk, &self.dir_of(tenant, name, partition))?;
        }
        if disk.list(&dir).is_ok() { clear(disk, &dir) } else { Ok(()) }
    }

    /// Removes the remains of a collection whose first partition is marked as dropped.
    pub(super) fn clear_dropped(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let dir = self.dir_of(tenant, name, 0);
        if let Some(registry) = self.common.storage.registry() {
            return registry.clear(&dir);
        }
        let disk = self.common.seams.disk.as_ref();
        for partition in self.others_there(tenant, name)? {
            clear_partition(disk, &self.dir_of(tenant, name, partition))?;
        }
        clear(disk, &dir)
    }
}

/// Returns the error for a collection that lacks the partition in a folder although its first one exists.
pub(super) fn missing(dir: &Path, (partition, partitions): (u32, u32)) -> StoreError {
    StoreError::corrupt(&dir.join(MANIFEST), format!("partition {partition} of {partitions} is missing"))
}

/// Gives all partitions the settings of the last one, which a change reaches first, and the fields of the one with the
/// most. A crash may have come in between, or a repair may have found an older manifest.
pub(crate) fn align(partitions: &[Arc<Collection>]) -> Result<(), StoreError> {
    let Some(last) = partitions.last() else { return Ok(()) };
    let settings = last.settings();
    let longest = partitions.iter().map(|partition| partition.schema()).max_by_key(|schema| schema.fields.len());
    let schema = longest.unwrap_or_else(|| last.schema());
    for other in partitions.iter().rev() {
        let known = other.schema().fields.len();
        let fields = schema.fields.get(known..).unwrap_or_default().to_vec();
        let changed = (other.settings() != settings).then(|| settings.clone());
        // A partition that refuses changes is served as it is.
        if other.stats().refuses.is_none() {
            other.change(fields, changed)?;
        }
    }
    Ok(())
}
