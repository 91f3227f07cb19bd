//! Making a partition, and opening one.

use crate::catalog::manifest::{Manifest, SegmentEntry, Twin, rows_name, segment_name};
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::collection::shared::{Shared, State};
use crate::collection::stats::Counters;
use crate::error::{Problem, StoreError};
use crate::ingest::idempotency::IdempotencyKeys;
use crate::ingest::listeners::Listeners;
use crate::ingest::partition::Partition;
use crate::log::Log;
use crate::maintenance::pace::Load;
use crate::options::{Durability, Options};
use crate::part::cache::BlockCache;
use crate::part::dead::DeadRows;
use crate::part::segment::{RowsFile, Segment, rebuild, rebuild_from_rows};
use crate::part::{Context, Entry, Part};
use crate::seams::{Disk, MemoryDisk, Seams};
use crate::snapshot::horizon::Horizon;
use arc_swap::ArcSwap;
use meridian_model::IdRole;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Segments that are opened at a time: each waits for a handful of small reads, one after the other, so a disk has more to do
/// at once than there are processors.
const OPENERS: usize = 16;

/// What is said of a segment whose damage showed when a block was read, and was mended.
pub(crate) const MADE_ANEW: &str = "a block of it was damaged; it is made anew from its rows";

/// What all collections of a store share.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) seams: Seams,
    pub(crate) options: Arc<Options>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) memory_all: Arc<AtomicI64>,
    /// Requests in flight.
    pub(crate) load: Arc<Load>,
    pub(crate) listeners: Arc<Listeners>,
}

pub(crate) fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Makes the folders of a partition, durably, and writes its first manifest: from then on it exists.
pub(crate) fn create(common: &Common, root: &Path, dir: &Path, manifest: &Manifest) -> Result<Partition, StoreError> {
    make_folders(common.seams.disk.as_ref(), root, dir)?;
    manifest.write(common.seams.disk.as_ref(), dir)?;
    open(common, dir)
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
    let disk = common.seams.disk.as_ref();
    let (manifest, twin) = Manifest::read_both(disk, dir)?;
    let mut partition = open_with(common, dir, &manifest)?;
    partition.sweep_leftovers(&twin)?;
    partition.note_twin(twin, disk, dir, &manifest);
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
        partition.open_log()?;
    }
    Ok(partition)
}

/// A partition of which no file is open yet.
pub(crate) fn prepare(common: &Common, dir: &Path, mut manifest: Manifest) -> Result<Partition, StoreError> {
    let ephemeral = common.options.ephemeral || manifest.settings.durability == Durability::Ephemeral;
    let mut disk = common.seams.disk.clone();
    let mut definition = None;
    if ephemeral && !common.options.ephemeral {
        definition = Some((disk, dir.to_owned()));
        disk = Arc::new(MemoryDisk::volatile());
        make_folders(disk.as_ref(), dir, dir)?;
        manifest = Manifest {
            flushed: 0,
            segments: Vec::new(),
            keys: Vec::new(),
            listed: Vec::new(),
            hidden: None,
            ..manifest
        };
        manifest.write(disk.as_ref(), dir)?;
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
        disk,
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
        manifest,
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
    fn note_twin(&mut self, twin: Twin, disk: &dyn Disk, dir: &Path, manifest: &Manifest) {
        if matches!(twin, Twin::Never | Twin::Proof { behind: false }) {
            return;
        }
        let written = manifest.write_copy(disk, dir);
        if let Err(e) = &written {
            tracing::warn!(collection = %manifest.collection, error = %e, "the copy of a manifest was not written");
        }
        if let Twin::Bad(problem) = twin {
            self.notes.push(problem.and(match written {
                Ok(()) => "the copy is written anew from the manifest",
                Err(_) => "the copy could not be written anew",
            }));
        }
    }

    /// Opens the segments and what is beside them.
    pub(crate) fn open_files(&mut self) -> Result<(), StoreError> {
        let disk = self.shared.disk.clone();
        let dir = self.shared.segments_dir();
        self.pass_numbers()?;
        let mut lost_dead = false;
        let mut hidden = read_hidden(disk.as_ref(), &dir, &self.manifest).unwrap_or_else(|e| {
            self.note_bad(e);
            lost_dead = true;
            Default::default()
        });
        for (meta, opened, note) in self.open_segments() {
            self.notes.extend(note);
            match opened {
                Ok(part) if part.rows == meta.rows => {
                    let dead = read_dead(disk.as_ref(), &dir, &meta).unwrap_or_else(|e| {
                        self.note_bad(e);
                        lost_dead = true;
                        DeadRows::default()
                    });
                    let hidden = hidden.remove(&meta.file).unwrap_or_default();
                    self.segments.insert(part.number, meta);
                    self.entries.push(Entry::of(part, dead, hidden));
                }
                Ok(part) => {
                    let path = dir.join(segment_name(meta.file));
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
        let bad_keys = self.keys.load(disk.as_ref(), &dir, &self.manifest.keys);
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
        let (place, dir) = (self.shared.place(), self.shared.segments_dir());
        let rest = meta.rest.map(|entry| {
            let rest = Segment::open_rest(&place, &dir, meta.file, entry)?;
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
                let Ok(part) = Part::open(&place, &dir, meta.file, None) else { return Err(error) };
                *note = Some(Problem::of(&error).and("it is written anew from the rows as Arrow"));
                meta.rest = None;
                return Ok(part);
            }
        };
        let opened = Part::open(&place, &dir, meta.file, rest.clone());
        match (opened, rest) {
            (Err(error @ (StoreError::Corrupt { .. } | StoreError::Io { .. })), Some(rest)) => {
                tracing::info!(segment = meta.file, rows = meta.rows, "a segment is made anew from its rows at rest");
                // One that is missing was deleted to save room, or never came along with a backup.
                if matches!(error, StoreError::Corrupt { .. }) {
                    *note = Some(Problem::of(&error).and("it is made anew from its rows at rest"));
                }
                rebuild(place.disk.as_ref(), &dir, meta.file, &rest, self.context.rule)?;
                Part::open(&place, &dir, meta.file, Some(rest))
            }
            (Err(error), None) if error.is_damage() => {
                let anew = || {
                    let rows = RowsFile::open(&place.disk, &dir.join(rows_name(meta.file)))?;
                    let schema = &self.manifest.schema;
                    rebuild_from_rows(place.disk.as_ref(), &dir, meta.file, (&rows, schema), self.context.rule)?;
                    Part::open(&place, &dir, meta.file, None)
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
            match segment.rebuild(&self.shared.segments_dir(), file, self.context.rule) {
                Ok(()) => {
                    tracing::warn!(path = %path.display(), "a damaged segment is made anew from its rows");
                    mended.push(Problem { path, detail: MADE_ANEW.to_owned() });
                }
                Err(error) => tracing::error!(%error, "a damaged segment could not be made anew"),
            }
        }
        mended
    }

    pub(crate) fn open_log(&mut self) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let (log, found) =
            Log::open(&shared.disk, &log_dir(&shared.dir), shared.options.log_file_bytes, self.manifest.flushed)?;
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
