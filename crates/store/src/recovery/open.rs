//! Creates and opens partitions.

use crate::catalog::disk::MANIFEST;
use crate::catalog::lineage::Lineage;
use crate::collection::MaintenanceSignal;
use crate::disk_storage::DiskStorage;
use crate::error::{Problem, StoreError};
use crate::extents::Extents;
use crate::ingest::idempotency::IdempotencyKeys;
use crate::ingest::partition::Partition;
use crate::manifest::Manifest;
use crate::options::{Durability, Options};
use crate::pace::Load;
use crate::part::Context;
use crate::part::cache::BlockCache;
use crate::seams::Bucket;
use crate::seams::{CommitError, Disk, MemoryDisk, Newest, PartitionStorage, Proof, Seams, Storage};
use crate::snapshot::SnapshotView;
use crate::snapshot::horizon::Horizon;
use crate::state::complete::Completeness;
use crate::state::listeners::Listeners;
use crate::state::memory::WriteMemory;
use crate::state::{Shared, State};
use crate::stats::Counters;
use arc_swap::ArcSwap;
use meridian_model::policy::owner::{CommitOutcome, Rules, Takeover, TakeoverStep};
use meridian_model::{Background, SeqLayout};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Caches and memory budgets that all stores of a process share.
#[derive(Debug, Clone)]
pub struct SharedResources {
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) memory_all: Arc<WriteMemory>,
    pub(crate) load: Arc<Load>,
    /// Lets one store make room in memory for another.
    pub(crate) wake: Arc<MaintenanceSignal>,
    /// The cache of objects' extents, once the first store has opened.
    extents: Arc<OnceLock<Arc<Extents>>>,
}

impl SharedResources {
    /// Creates the resources that these options give to one store.
    pub fn of(options: &Options) -> SharedResources {
        SharedResources {
            cache: Arc::new(BlockCache::new(options.cache_bytes, options.tree_bytes.unwrap_or(0))),
            memory_all: Arc::new(WriteMemory::new(options.memory_bytes)),
            load: Arc::default(),
            wake: Arc::default(),
            extents: Arc::default(),
        }
    }

    /// Returns the cache of a bucket's objects, of at most this many bytes; `None` if there is none. All stores that
    /// share it have one bucket.
    pub(crate) fn extents(&self, bucket: &Arc<dyn Bucket>, bytes: u64) -> Option<Arc<Extents>> {
        (bytes > 0).then(|| self.extents.get_or_init(|| Arc::new(Extents::new(bucket.clone(), bytes))).clone())
    }
}

/// State that all collections of a store share.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) seams: Seams,
    /// The place of the partitions' data.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Arc<Options>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) memory_all: Arc<WriteMemory>,
    /// Requests in flight.
    pub(crate) load: Arc<Load>,
    pub(crate) listeners: Arc<Listeners>,
    /// Charges tenants for maintenance, if set.
    pub(crate) background: Arc<OnceLock<Arc<dyn Background>>>,
    /// Whether this process may be behind the log or the catalog of any collection.
    pub(crate) outdated: Arc<AtomicBool>,
    /// Whether collections are only followed, not written here.
    pub(crate) read_only: bool,
    /// Time until which their owner keeps the rows of earlier snapshots, in microseconds of the clock's elapsed time.
    pub(crate) pinned_until: Arc<AtomicI64>,
}

impl Common {
    /// Returns true if this process may own a partition.
    pub(crate) fn has(&self, tenant: &str, name: &str, partition: u32) -> bool {
        self.storage.registry().is_none_or(|registry| registry.has(tenant, name, partition))
    }

    /// Returns the storage of the partition in a folder.
    pub(crate) fn storage_of(&self, dir: &Path) -> PartitionStorage {
        self.storage.partition(dir, self.options.log_file_bytes)
    }
}

pub(crate) fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Creates the folders of a partition, durably, and writes its first manifest, which makes it exist.
pub(crate) fn create(common: &Common, root: &Path, dir: &Path, manifest: &Manifest) -> Result<Partition, StoreError> {
    begin(common, root, dir, manifest)?;
    let mut partition = open(common, dir)?;
    // Of the processes that tried to create the collection only one succeeded: the first epoch belongs to this process.
    partition.claimed = true;
    Ok(partition)
}

/// Does the same without opening it.
pub(crate) fn begin(common: &Common, root: &Path, dir: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    // A storage with its own registry keeps nothing of a collection in the data folder.
    if common.storage.registry().is_none() {
        make_folders(common.seams.disk.as_ref(), root, dir)?;
    }
    // Follows version 0: of two processes that create the same collection, the second commit is refused.
    common.storage_of(dir).catalog.commit(0, manifest).map_err(|failed| match failed {
        CommitError::Stale { .. } => {
            StoreError::Exists { tenant: manifest.tenant.clone(), name: manifest.collection.clone() }
        }
        failed => failed.into(),
    })?;
    Ok(())
}

/// Creates the folders of a partition, durably.
pub(crate) fn make_folders(disk: &dyn Disk, root: &Path, dir: &Path) -> Result<(), StoreError> {
    for sub in [log_dir(dir), dir.join("segments")] {
        disk.create_dir(&sub).map_err(StoreError::io("create", &sub))?;
    }
    // Each name on the way down from the root, and then the two below.
    let way: Vec<&Path> = dir.ancestors().take_while(|a| a.starts_with(root)).collect();
    way.iter().rev().try_for_each(|folder| disk.sync_dir(folder).map_err(StoreError::io("sync", folder)))
}

/// Opens the partition in `dir`. Damage to segments or log is recorded and contained; damage to the manifest is an
/// error.
pub(crate) fn open(common: &Common, dir: &Path) -> Result<Partition, StoreError> {
    if !common.storage.is_shared() {
        let (mut partition, newest) = open_newest(common, dir)?;
        partition.sweep_leftovers(&newest.proof)?;
        partition.show(newest);
        return Ok(partition);
    }
    let (mut takeover, mut opened) = (Takeover::new(Rules::SERVER), None);
    loop {
        let step = takeover.step();
        let (mut partition, newest) = match (step, opened.take()) {
            (TakeoverStep::Busy, _) => {
                let detail = "other processes take the collection over again and again: try again later";
                return Err(StoreError::Busy(detail.to_owned()));
            }
            (TakeoverStep::Open, _) | (_, None) => open_newest(common, dir)?,
            (_, Some(opened)) => opened,
        };
        match step {
            // The log is fenced from here on.
            TakeoverStep::Open => takeover.opened(partition.refuses.is_none()),
            TakeoverStep::Look => {
                let now = partition.catalog.newest()?.map(|manifest| manifest.version());
                takeover.looked(now.is_some_and(|now| now != newest.manifest.version()));
            }
            TakeoverStep::Claim => match partition.claim_numbers() {
                Ok(()) => takeover.claimed(CommitOutcome::Stands),
                Err(CommitError::Stale { .. }) => takeover.claimed(CommitOutcome::Stale),
                Err(failed) => return Err(failed.into()),
            },
            TakeoverStep::Sweep => {
                partition.sweep_leftovers(&newest.proof)?;
                takeover.swept();
            }
            TakeoverStep::Serve | TakeoverStep::Show | TakeoverStep::Busy => {
                partition.show(newest);
                return Ok(partition);
            }
        }
        opened = Some((partition, newest));
    }
}

fn open_newest(common: &Common, dir: &Path) -> Result<(Partition, Newest), StoreError> {
    let Some(newest) = common.storage_of(dir).catalog.newest()? else {
        return Err(StoreError::corrupt(&dir.join(MANIFEST), "it is missing"));
    };
    let (layout, partitions) = (newest.manifest.seq_layout, usize::from(newest.manifest.settings.partitions));
    if layout != SeqLayout::of(partitions) || newest.manifest.partition as usize >= partitions {
        let detail =
            format!("it is partition {} of {partitions}, with another layout of numbers", newest.manifest.partition);
        return Err(StoreError::corrupt(&dir.join(MANIFEST), detail));
    }
    // Manifest and log are read first: both are needed to distinguish leftovers from acknowledged writes.
    Ok((open_with(common, dir, &newest.manifest)?, newest))
}

/// Opens the files that a manifest names, and replays the log after it.
fn open_with(common: &Common, dir: &Path, manifest: &Manifest) -> Result<Partition, StoreError> {
    let partition = open_as_is(common, dir, manifest.clone())?;
    // The log is replayed against the segments. Damage to a block shows only when the replay reads it. If that damage
    // could be repaired, the log is replayed again.
    let mended = partition.mend();
    if mended.is_empty() {
        return Ok(partition);
    }
    let mut partition = open_as_is(common, dir, manifest.clone())?;
    partition.notes.extend(mended);
    Ok(partition)
}

fn open_as_is(common: &Common, dir: &Path, manifest: Manifest) -> Result<Partition, StoreError> {
    let mut partition = prepare(common, dir, manifest)?;
    let ephemeral = partition.manifest.settings.durability == Durability::Ephemeral;
    // A bucket is tried again. The disk of a server may stay as it is, and what it does read is served.
    partition.open_files(common.storage.is_shared())?;
    if !ephemeral && !common.options.ephemeral {
        partition.open_log(common.storage_of(dir))?;
    }
    Ok(partition)
}

/// Creates a partition without any open file.
pub(crate) fn prepare(common: &Common, dir: &Path, mut manifest: Manifest) -> Result<Partition, StoreError> {
    // A rename of the collection only renames its folder, and leaves the manifest as it is.
    if let Some(name) = dir.parent().and_then(Path::file_name).and_then(OsStr::to_str) {
        name.clone_into(&mut manifest.collection);
    }
    let ephemeral = common.options.ephemeral || manifest.settings.durability == Durability::Ephemeral;
    let mut storage = common.storage_of(dir);
    let mut definition = None;
    // Only the definition is in the folder, on disk or not. The events are in a memory disk of their own, behind the
    // same seams as any other.
    if ephemeral {
        definition = Some(Lineage::after(storage.catalog, manifest.version()));
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::volatile());
        make_folders(disk.as_ref(), dir, dir)?;
        storage = DiskStorage(disk).partition(dir, common.options.log_file_bytes);
        manifest = Manifest { began: Some(common.seams.clock.now()), ..manifest.without_events() };
        storage.catalog.commit(0, &manifest)?;
    }
    let counters = Arc::new(Counters::default());
    let context = Context::of(&manifest, &counters);
    let elapsed = common.seams.clock.elapsed();
    let empty = State {
        position: manifest.flushed,
        context: context.clone(),
        settings: manifest.settings.clone(),
        history: Arc::new([]),
        views: Arc::new([]),
        seen: Arc::new(SnapshotView::of(&context, Arc::new([]), Arc::new([]), &common.load)),
        notes: Arc::new([]),
        refuses: None,
        reopens: false,
        log_tail_bytes: 0,
        behind: None,
        keys: 0,
        depth: (0, 0),
    };
    // Uses by other processes are learned late: each has a quarter of the time for that.
    let memory = common.options.snapshot_memory;
    let memory = if common.storage.is_shared() { memory + memory / 4 } else { memory };
    let shared = Arc::new(Shared {
        seams: common.seams.clone(),
        objects: storage.objects,
        removal: Arc::default(),
        dir: dir.to_owned(),
        options: common.options.clone(),
        cache: common.cache.clone(),
        counters,
        horizon: Horizon::new(memory, manifest.dropped_seq, elapsed),
        state: ArcSwap::from_pointee(empty),
        next_file: AtomicU64::new(manifest.next_file),
        tenant: manifest.tenant.as_str().into(),
        memory: AtomicI64::new(0),
        memory_all: common.memory_all.clone(),
        load: common.load.clone(),
        listeners: common.listeners.clone(),
        outdated: common.outdated.clone(),
        halted: AtomicBool::new(false),
        complete: match common.read_only {
            // By the clock of another machine, as are the owner's statements.
            true => Completeness::followed(manifest.created.saturating_sub(common.options.skew.as_micros() as i64)),
            false => Completeness::default(),
        },
        imported: manifest.imported.clone(),
        began: manifest.began.unwrap_or(manifest.created),
        pinned_until: common.pinned_until.clone(),
    });
    let keys = IdempotencyKeys::new(manifest.seed, common.options.key_memory);
    let position = manifest.flushed;
    Ok(Partition {
        shared,
        catalog: Arc::new(Lineage::after(storage.catalog, manifest.version())),
        is_committing: false,
        manifest,
        // Data in memory is not visible to other processes.
        claimed: ephemeral,
        definition,
        context,
        log: None,
        tail: None,
        entries: Vec::new(),
        left: Vec::new(),
        segments: Default::default(),
        damaged: Vec::new(),
        problems: Vec::new(),
        unread: None,
        notes: Vec::new(),
        keys,
        position,
        refuses: None,
        reopens: false,
        stale: false,
        frozen: Vec::new(),
        unmergeable: Vec::new(),
        unmendable: Vec::new(),
        depth: (0, 0),
        flush_wanted: false,
        committed_at: 0,
    })
}

impl Partition {
    /// Updates copies of the manifest and shows the partition to readers.
    fn show(&mut self, newest: Newest) {
        self.note_proof(newest.proof, &newest.manifest);
        self.publish();
    }

    /// Records an unreadable file.
    pub(super) fn note_bad(&mut self, error: StoreError) {
        self.problems.push(Problem::of(&error));
        if !error.is_damage() {
            self.unread.get_or_insert(error);
        }
    }

    /// Updates the copy of the manifest; reports it unless a crash alone left it behind.
    fn note_proof(&mut self, proof: Proof, manifest: &Manifest) {
        if matches!(proof, Proof::Never | Proof::Newest { behind: false }) {
            return;
        }
        let written = self.definition.as_ref().unwrap_or(&self.catalog).confirm(manifest);
        if let Err(e) = &written {
            tracing::warn!(collection = %manifest.collection, error = %e, "the copy of a manifest was not written");
        }
        if let Proof::Bad(problem) = proof {
            self.notes.push(problem.and(match written {
                Ok(()) => "the copy is rewritten from the manifest",
                Err(_) => "the copy could not be rewritten",
            }));
        }
    }

    pub(crate) fn open_log(&mut self, storage: PartitionStorage) -> Result<(), StoreError> {
        let mut log = storage.log;
        // Replaying also fences older writers of a shared log: from here on their appends fail.
        let found = log.replay(self.manifest.flushed, self.manifest.log)?;
        self.log = Some(log);
        if found.torn_bytes > 0 {
            tracing::info!(
                collection = %self.manifest.collection, bytes = found.torn_bytes,
                "the log ends in a write that was never acknowledged: it is left out"
            );
        }
        if !found.damage.is_empty() {
            self.problems.extend(found.damage.iter().map(Problem::of));
            // Still served: readable parts are shown, and responses name the missing ones. New writes could hide the
            // gap.
            self.refuses.get_or_insert(
                "the log is damaged, so acknowledged writes are missing; see the problems listed".to_owned(),
            );
        }
        self.replay(found.records)
    }
}
