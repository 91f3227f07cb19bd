//! Making a partition, and opening one.

use crate::catalog::disk::MANIFEST;
use crate::catalog::lineage::Lineage;
use crate::catalog::manifest::{Manifest, SegmentEntry, rows_name, segment_name};
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::collection::shared::{Shared, State};
use crate::collection::stats::Counters;
use crate::error::{Problem, StoreError};
use crate::ingest::idempotency::IdempotencyKeys;
use crate::ingest::listeners::Listeners;
use crate::ingest::partition::Partition;
use crate::maintenance::pace::Load;
use crate::options::{Durability, Options};
use crate::part::cache::BlockCache;
use crate::part::dead::DeadRows;
use crate::part::segment::{RowsFile, Segment, rebuild, rebuild_from_rows};
use crate::part::{Context, Entry, Part};
use crate::seams::{Disk, DiskStorage, MemoryDisk, Newest, PartitionStorage, Proof, Seams, Storage};
use crate::snapshot::horizon::Horizon;
use arc_swap::ArcSwap;
use meridian_model::seq::SeqLayout;
use meridian_model::{IdRole, Invalid};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Segments that are opened at a time: each waits for a handful of small reads, one after the other, so a disk has more to do
/// at once than there are processors.
const OPENERS: usize = 16;

/// How often a partition is opened anew because the writer before it committed meanwhile.
const TAKEOVERS: usize = 8;

/// What is said of a segment whose damage showed when a block was read, and was mended.
pub(crate) const MADE_ANEW: &str = "a block of it was damaged; it is made anew from its rows";

/// What all collections of a store share.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) seams: Seams,
    /// Where partitions keep their data.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Arc<Options>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) memory_all: Arc<AtomicI64>,
    /// Requests in flight.
    pub(crate) load: Arc<Load>,
    pub(crate) listeners: Arc<Listeners>,
}

impl Common {
    /// The storage of the partition in a folder.
    pub(crate) fn storage_of(&self, dir: &Path) -> PartitionStorage {
        self.storage.partition(dir, self.options.log_file_bytes)
    }
}

pub(crate) fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Makes the folders of a partition, durably, and writes its first manifest: from then on it exists.
pub(crate) fn create(common: &Common, root: &Path, dir: &Path, manifest: &Manifest) -> Result<Partition, StoreError> {
    make_folders(common.seams.disk.as_ref(), root, dir)?;
    common.storage_of(dir).catalog.commit(0, manifest)?;
    let mut partition = open(common, dir)?;
    // Of those that tried to make the collection one succeeded: the first epoch is this process's.
    partition.claimed = true;
    Ok(partition)
}

/// Makes the folders of a partition, durably.
pub(crate) fn make_folders(disk: &dyn Disk, root: &Path, dir: &Path) -> Result<(), StoreError> {
    for sub in [log_dir(dir), dir.join("segments")] {
        disk.create_dir(&sub).map_err(StoreError::io("create", &sub))?;
    }
    // Each name on the way down from the root, and then the two below.
    let way: Vec<&Path> = dir.ancestors().take_while(|a| a.starts_with(root)).collect();
    way.iter().rev().try_for_each(|folder| disk.sync_dir(folder).map_err(StoreError::io("sync", folder)))
}

/// Opens the partition in `dir`. Damage to segments or log is noted and contained; damage to the manifest is an error.
pub(crate) fn open(common: &Common, dir: &Path) -> Result<Partition, StoreError> {
    let mut partition = open_newest(common, dir)?;
    for _ in 0..TAKEOVERS {
        if !common.storage.is_shared() || partition.claimed || partition.refuses.is_some() {
            break;
        }
        // The log is fenced already. Once this commit stands, the catalog is as well.
        match partition.claim_numbers() {
            // The writer before committed once more: what it flushed is in its manifest.
            Err(StoreError::Fenced(_)) => partition = open_newest(common, dir)?,
            claimed => claimed?,
        }
    }
    Ok(partition)
}

fn open_newest(common: &Common, dir: &Path) -> Result<Partition, StoreError> {
    let Some(Newest { manifest, proof }) = common.storage_of(dir).catalog.newest()? else {
        return Err(StoreError::corrupt(&dir.join(MANIFEST), "it is missing"));
    };
    if manifest.seq_layout != SeqLayout::Embedded {
        let detail = "its sequence numbers have room for partitions: it needs a server of a cluster";
        return Err(Invalid::new(detail).into());
    }
    let mut partition = open_with(common, dir, &manifest)?;
    partition.sweep_leftovers(&proof)?;
    partition.note_proof(proof, &manifest);
    partition.publish();
    Ok(partition)
}

/// Opens what a manifest names, and replays the log after it.
fn open_with(common: &Common, dir: &Path, manifest: &Manifest) -> Result<Partition, StoreError> {
    let partition = open_as_is(common, dir, manifest.clone())?;
    // The log is replayed against what segments hold: where that met damage that can be mended, it is done again.
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
    partition.open_files()?;
    if !ephemeral && !common.options.ephemeral {
        partition.open_log(common.storage_of(dir))?;
    }
    Ok(partition)
}

/// A partition of which no file is open yet.
pub(crate) fn prepare(common: &Common, dir: &Path, mut manifest: Manifest) -> Result<Partition, StoreError> {
    let ephemeral = common.options.ephemeral || manifest.settings.durability == Durability::Ephemeral;
    let mut storage = common.storage_of(dir);
    let mut definition = None;
    if ephemeral && !common.options.ephemeral {
        definition = Some(Lineage::after(storage.catalog, manifest.version()));
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::volatile());
        make_folders(disk.as_ref(), dir, dir)?;
        storage = DiskStorage(disk).partition(dir, common.options.log_file_bytes);
        manifest = manifest.without_events();
        storage.catalog.commit(0, &manifest)?;
    }
    let counters = Arc::new(Counters::default());
    let context = Context::of(Arc::new(manifest.schema.clone()), manifest.seed, &counters);
    let elapsed = common.seams.clock.elapsed();
    let empty = State {
        position: manifest.flushed,
        context: context.clone(),
        settings: manifest.settings.clone(),
        history: Arc::new([]),
        views: Arc::new([]),
        seen: Arc::new([]),
        missing: Arc::new([]),
        notes: Arc::new([]),
        refuses: None,
        log_tail_bytes: 0,
        keys: 0,
        depth: (0, 0),
    };
    let shared = Arc::new(Shared {
        seams: common.seams.clone(),
        objects: storage.objects,
        removal: Arc::default(),
        dir: dir.to_owned(),
        options: common.options.clone(),
        cache: common.cache.clone(),
        counters,
        horizon: Horizon::new(common.options.snapshot_memory, manifest.dropped_seq, elapsed),
        state: ArcSwap::from_pointee(empty),
        next_file: AtomicU64::new(manifest.next_file),
        memory: AtomicI64::new(0),
        memory_all: common.memory_all.clone(),
        load: common.load.clone(),
        listeners: common.listeners.clone(),
    });
    let keys = IdempotencyKeys::new(manifest.seed, common.options.key_memory);
    let position = manifest.flushed;
    Ok(Partition {
        shared,
        catalog: Lineage::after(storage.catalog, manifest.version()),
        manifest,
        // What is kept in memory no other process sees.
        claimed: ephemeral,
        definition,
        context,
        log: None,
        entries: Vec::new(),
        segments: Default::default(),
        damaged: Vec::new(),
        problems: Vec::new(),
        unread: None,
        notes: Vec::new(),
        keys,
        position,
        refuses: None,
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
    /// Notes a file that does not read.
    fn note_bad(&mut self, error: StoreError) {
        self.problems.push(Problem::of(&error));
        if !error.is_damage() {
            self.unread.get_or_insert(error);
        }
    }

    /// Brings the copy of the manifest up to date; says so unless a crash alone left it behind.
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
                Ok(()) => "the copy is written anew from the manifest",
                Err(_) => "the copy could not be written anew",
            }));
        }
    }

    /// Opens the segments and what is beside them.
    pub(crate) fn open_files(&mut self) -> Result<(), StoreError> {
        let objects = self.shared.objects.clone();
        self.pass_numbers()?;
        let mut lost_dead = false;
        let mut hidden = read_hidden(objects.as_ref(), &self.manifest).unwrap_or_else(|e| {
            self.note_bad(e);
            lost_dead = true;
            Default::default()
        });
        for (meta, opened, note) in self.open_segments() {
            self.notes.extend(note);
            match opened {
                Ok(part) if part.rows == meta.rows => {
                    let dead = read_dead(objects.as_ref(), &meta).unwrap_or_else(|e| {
                        self.note_bad(e);
                        lost_dead = true;
                        DeadRows::default()
                    });
                    let hidden = hidden.remove(&meta.file).unwrap_or_default();
                    self.segments.insert(part.number, meta);
                    self.entries.push(Entry::of(part, dead, hidden));
                }
                Ok(part) => {
                    let path = objects.path(&segment_name(meta.file));
                    let detail = format!("it holds {} events where the manifest says {}", part.rows, meta.rows);
                    self.problems.push(Problem { path, detail });
                    self.damaged.push(meta);
                }
                Err(StoreError::NewerFormat { path, found, supported }) => {
                    return Err(StoreError::NewerFormat { path, found, supported });
                }
                Err(e) => {
                    self.note_bad(e);
                    self.damaged.push(meta);
                }
            }
        }
        self.measure();
        if lost_dead {
            // Writing on would save the loss: events that were deleted would be back for good.
            self.refuses =
                Some("the record of deleted or superseded events is damaged; see the problems listed".to_owned());
        } else if !self.damaged.is_empty() && self.manifest.schema.id == IdRole::Given {
            let why = "a segment cannot be read, so whether an id is in use cannot be known; see the problems listed";
            self.refuses = Some(why.to_owned());
        }
        let bad_keys = self.keys.load(objects.as_ref(), &self.manifest.keys);
        if !bad_keys.is_empty() {
            bad_keys.into_iter().for_each(|e| self.note_bad(e));
            self.refuses.get_or_insert("the record of idempotency keys is damaged; see the problems listed".to_owned());
        }
        Ok(())
    }

    /// Opens all segments: trees, footers and directories are read, [`OPENERS`] at a time but in a simulation, where calls
    /// come one by one.
    fn open_segments(&self) -> Vec<(SegmentEntry, Result<Part, StoreError>, Option<Problem>)> {
        let open = |meta: &SegmentEntry| {
            let (mut meta, mut note) = (meta.clone(), None);
            let opened = self.open_segment(&mut meta, &mut note);
            (meta, opened, note)
        };
        let segments = &self.manifest.segments;
        let openers = OPENERS.min(segments.len());
        let together = self.shared.options.background && openers > 1;
        let pool = together.then(|| ThreadPoolBuilder::new().num_threads(openers).build().ok());
        match pool.flatten() {
            Some(openers) => openers.install(|| segments.par_iter().map(open).collect()),
            None => segments.iter().map(open).collect(),
        }
    }

    /// Opens a segment. What is damaged of it is made anew from its rows at rest, or these from what is beside them.
    fn open_segment(&self, meta: &mut SegmentEntry, note: &mut Option<Problem>) -> Result<Part, StoreError> {
        let place = self.shared.place();
        let rest = meta.rest.map(|entry| {
            let rest = Segment::open_rest(&place, meta.file, entry)?;
            if rest.rows() == meta.rows {
                return Ok(rest);
            }
            let detail = format!("it holds {} events where the manifest says {}", rest.rows(), meta.rows);
            Err(StoreError::corrupt(rest.path(), detail))
        });
        let rest = match rest.transpose() {
            Ok(rest) => rest,
            Err(error) => {
                // The rows as Arrow may be whole: then they are put to rest again.
                let Ok(part) = Part::open(&place, meta.file, None) else { return Err(error) };
                *note = Some(Problem::of(&error).and("it is written anew from the rows as Arrow"));
                meta.rest = None;
                return Ok(part);
            }
        };
        let opened = Part::open(&place, meta.file, rest.clone());
        match (opened, rest) {
            (Err(error @ (StoreError::Corrupt { .. } | StoreError::Io { .. })), Some(rest)) => {
                tracing::info!(segment = meta.file, rows = meta.rows, "a segment is made anew from its rows at rest");
                // One that is missing was deleted to save room, or never came along with a backup.
                if matches!(error, StoreError::Corrupt { .. }) {
                    *note = Some(Problem::of(&error).and("it is made anew from its rows at rest"));
                }
                rebuild(place.objects.as_ref(), meta.file, &rest, self.context.rule)?;
                Part::open(&place, meta.file, Some(rest))
            }
            (Err(error), None) if error.is_damage() => {
                let anew = || {
                    let rows = RowsFile::open(place.objects.as_ref(), &rows_name(meta.file))?;
                    let schema = &self.manifest.schema;
                    rebuild_from_rows(place.objects.as_ref(), meta.file, (&rows, schema), self.context.rule)?;
                    Part::open(&place, meta.file, None)
                };
                // Where the rows do not read either, nothing is there twice.
                let Ok(part) = anew() else { return Err(error) };
                tracing::warn!(%error, "a segment is made anew from its rows as Arrow");
                *note = Some(Problem::of(&error).and("it is made anew from its rows as Arrow"));
                Ok(part)
            }
            (opened, _) => {
                let given_up = opened.as_ref().ok().and_then(|part| part.segment()?.given_up.clone());
                *note = given_up.or(note.take());
                opened
            }
        }
    }

    /// Makes anew the segments that the replay found damaged, and says which.
    fn mend(&self) -> Vec<Problem> {
        let mut mended = Vec::new();
        for e in &self.entries {
            let segment = e.part.segment().filter(|segment| segment.is_sick());
            let file = self.segments.get(&e.part.number).map(|meta| meta.file);
            let (Some(segment), Some(file)) = (segment, file) else { continue };
            let path = segment.index.path.clone();
            match segment.rebuild(file, self.context.rule) {
                Ok(()) => {
                    tracing::warn!(path = %path.display(), "a damaged segment is made anew from its rows");
                    mended.push(Problem { path, detail: MADE_ANEW.to_owned() });
                }
                Err(error) => tracing::error!(%error, "a damaged segment could not be made anew"),
            }
        }
        mended
    }

    pub(crate) fn open_log(&mut self, storage: PartitionStorage) -> Result<(), StoreError> {
        let mut log = storage.log;
        let found = log.replay(self.manifest.flushed)?;
        self.log = Some(log);
        if found.torn_bytes > 0 {
            tracing::info!(
                collection = %self.manifest.collection, bytes = found.torn_bytes,
                "the log ends in a write that was never acknowledged: it is left out"
            );
        }
        if !found.damage.is_empty() {
            self.problems.extend(found.damage.iter().map(Problem::of));
            self.refuses.get_or_insert(
                "the log is damaged, so acknowledged writes are missing; see the problems listed".to_owned(),
            );
        }
        self.replay(found.records)
    }
}
