//! Opens, retires and repairs segments.

use super::archive::Archive;
use super::blocks::{BlockFile, BlockRef};
use super::fields::{row_field, seq_field};
use super::rebuild::{rebuild, rebuild_from_rows};
use super::rows::RowsFile;
use super::{Footer, MAGIC};
use crate::error::{Problem, StoreError};
use crate::manifest::ArchiveEntry;
use crate::manifest::FileEnd;
use crate::manifest::{Sketch, archive_name, rows_name, segment_name};
use crate::part::cache::BlockCache;
use crate::part::removal::{Pin, Removal};
use crate::part::rows::KeyRule;
use crate::seams::Objects;
use crate::stats::Counters;
use arc_swap::ArcSwapOption;
use arrow_buffer::Buffer;
use arrow_schema::Field;
use meridian_index::Forest;
use meridian_model::Layout;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is needed to read a segment.
#[derive(Debug, Clone)]
pub(crate) struct SegmentAccess {
    pub(crate) objects: Arc<dyn Objects>,
    /// Receives obsolete names; `None` if nothing may be deleted, because another process writes the collection.
    pub(crate) removal: Option<Arc<Removal>>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
}

/// An open segment: its index, and the rows as Arrow, archived, or both.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) place: SegmentAccess,
    pub(crate) index: BlockFile,
    /// Number in this process, never reused.
    pub(crate) number: u64,
    pub(crate) footer: Footer,
    pub(super) layout: Layout,
    pub(super) seq_field: Arc<Field>,
    pub(super) row_field: Arc<Field>,
    pub(super) rows: ArcSwapOption<RowsFile>,
    pub(super) archive: ArcSwapOption<Archive>,
    /// The error of a file of rows that was given up.
    pub(crate) given_up: Option<Problem>,
    /// Set at every use of the rows' file from a counter shared by all segments: the min is the least recently used.
    pub(super) used: AtomicU64,
    /// Set once a block beside the rows turned out to be damaged.
    pub(super) sick: Arc<AtomicBool>,
}

/// Facts about a segment before it is opened.
#[derive(Debug, Clone)]
pub(crate) struct SegmentFacts {
    /// Its number in this process.
    pub(crate) number: u64,
    /// Set once it turned out to be damaged.
    pub(crate) sick: Arc<AtomicBool>,
    pub(crate) sketch: Option<Sketch>,
}

impl SegmentFacts {
    /// Returns no facts, with a new number.
    pub(crate) fn nothing(cache: &BlockCache) -> SegmentFacts {
        // A new number at each opening: blocks cached under the former one are not found again.
        SegmentFacts { number: cache.number_part(), sick: Arc::default(), sketch: None }
    }
}

/// Returns the max sequence number of a segment file.
pub(crate) fn seq_max_of(objects: &dyn Objects, name: &str) -> Result<u64, StoreError> {
    let (file, footer) = BlockFile::open(objects, name, MAGIC, None)?;
    Footer::decode(&footer).map(|footer| footer.seq_max).map_err(|e| StoreError::corrupt(&file.path, e))
}

impl Segment {
    /// Opens the segment of this number: checks headers, footers and trees. A missing or damaged file of rows is no
    /// error if there is an archive. The trees are returned separately, as every kind of part has them.
    pub(crate) fn open(
        place: &SegmentAccess,
        file: u64,
        archive: Option<Arc<Archive>>,
        known: SegmentFacts,
    ) -> Result<(Segment, Forest), StoreError> {
        let SegmentFacts { number, sick, sketch } = known;
        let end = sketch.as_ref().map(|sketch| &sketch.index);
        let (index, footer) = BlockFile::open(place.objects.as_ref(), &segment_name(file), MAGIC, end)?;
        let corrupt = |detail: String| StoreError::corrupt(&index.path, detail);
        let footer = Footer::decode(&footer).map_err(|e| corrupt(format!("its footer does not read: {e}")))?;
        // Trees stay in memory: every query walks them.
        let trees = index.fetch(footer.blocks[footer.forest_block as usize], "the trees")?;
        let trees = forest_of(&trees, footer.rows).map_err(corrupt)?;
        let mut given_up = None;
        let end = sketch.as_ref().map(|sketch| &sketch.rows);
        let rows = match open_rows(place.objects.as_ref(), &rows_name(file), end, footer.rows) {
            Ok(rows) => Some(rows),
            // Not replaced by the archive: a newer program wrote it, and this one must not delete it.
            Err(e @ StoreError::NewerFormat { .. }) => return Err(e),
            Err(e) if archive.is_none() => return Err(e),
            Err(e) => {
                given_up = give_up_rows(place, rows_name(file), &e);
                None
            }
        };
        let segment = Segment {
            place: place.clone(),
            index,
            number,
            layout: Layout::of(&footer.schema),
            seq_field: seq_field(),
            row_field: row_field(),
            footer,
            rows: ArcSwapOption::new(rows.map(Arc::new)),
            archive: ArcSwapOption::new(archive),
            given_up,
            used: AtomicU64::new(0),
            sick,
        };
        Ok((segment, trees))
    }

    /// Opens the archive that the manifest names.
    pub(crate) fn open_archive(
        place: &SegmentAccess,
        file: u64,
        entry: ArchiveEntry,
    ) -> Result<Arc<Archive>, StoreError> {
        Archive::open(place.objects.as_ref(), &archive_name(file), entry).map(Arc::new)
    }

    /// Retires the segment of this number, which no manifest names any more. Its files are deleted once no snapshot
    /// pins them; the index goes with the part.
    pub(crate) fn retire(&self, file: u64, part: Pin) {
        self.doom(segment_name(file), part);
        if let Some(rows) = self.rows.load().as_ref() {
            self.doom_rows(rows);
        }
        if let Some(archive) = self.archive.load_full() {
            self.doom(archive.name.clone(), pin_of(&archive));
        }
    }

    pub(super) fn doom_rows(&self, rows: &Arc<RowsFile>) {
        self.doom(rows.name.clone(), pin_of(rows));
    }

    pub(super) fn doom(&self, name: String, pin: Pin) {
        if let Some(removal) = &self.place.removal {
            removal.doom(name, pin);
        }
    }

    /// Records that the rows are archived too, once the manifest names the archive.
    pub(crate) fn set_archive(&self, archive: Arc<Archive>) {
        self.archive.store(Some(archive));
    }

    /// Makes the Arrow rows the source again.
    pub(crate) fn drop_archive(&self) {
        self.archive.store(None);
    }

    /// Returns the archive, if it exists.
    pub(crate) fn archive(&self) -> Option<Arc<Archive>> {
        self.archive.load_full()
    }

    /// Returns the bytes of the Arrow rows, and when they were last used; `None` if there are none.
    pub(crate) fn rows_held(&self) -> Option<(u64, u64)> {
        self.rows.load().as_ref().map(|rows| (rows.file.bytes, self.used.load(Ordering::Relaxed)))
    }

    /// Returns the Arrow rows, if there are any.
    pub(crate) fn rows_file(&self) -> Option<Arc<RowsFile>> {
        self.rows.load_full()
    }

    /// Drops the Arrow rows: rows are read from the archive from now on.
    pub(crate) fn drop_rows(&self) {
        if let Some(rows) = self.rows.swap(None) {
            self.doom_rows(&rows);
        }
    }

    /// Returns the approximate bytes in memory of the footers.
    pub(crate) fn footer_bytes(&self) -> u64 {
        let rows = self.rows.load().as_ref().map_or(0, |rows| rows.footer_bytes());
        let footer = &self.footer;
        let fences = footer.key_fences.len() * 8 + footer.objects.as_ref().map_or(0, |o| o.fences.len() * 16);
        rows + (fences + footer.blocks.len() * size_of::<BlockRef>() + footer.buckets.len() * 24) as u64
    }

    /// Returns the bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        let rows = self.rows.load().as_ref().map_or(0, |rows| rows.file.bytes);
        let archive = self.archive.load().as_ref().map_or(0, |archive| archive.entry.bytes);
        self.index.bytes + rows + archive
    }

    /// Records that the index is damaged.
    pub(super) fn note_damage(&self, error: &StoreError) {
        if matches!(error, StoreError::Corrupt { .. }) {
            tracing::warn!(%error, "a segment is damaged and will be rebuilt from its rows");
            self.sick.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if the archive is damaged and can be rewritten from the Arrow rows.
    pub(crate) fn is_archive_damaged(&self) -> bool {
        self.archive.load().as_ref().is_some_and(|archive| archive.is_damaged()) && self.rows.load().is_some()
    }

    /// Returns true if the index is damaged and can be rebuilt.
    pub(crate) fn is_damaged(&self) -> bool {
        self.sick.load(Ordering::Relaxed)
    }

    /// Rebuilds the index.
    pub(crate) fn rebuild(&self, file: u64, rule: KeyRule) -> Result<(), StoreError> {
        let objects = self.place.objects.as_ref();
        match (self.archive(), self.rows_file()) {
            (Some(archive), _) => rebuild(objects, file, &archive, rule),
            (None, Some(rows)) => rebuild_from_rows(objects, file, (&rows, &self.footer.schema), rule),
            (None, None) => Err(self.corrupt("its rows are gone")),
        }
    }

    pub(super) fn corrupt(&self, detail: &str) -> StoreError {
        StoreError::corrupt(&self.index.path, detail)
    }

    /// Returns true if a file of the segment has this path.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        self.index.path == path
            || self.rows.load().as_ref().is_some_and(|rows| rows.file.path == path)
            || self.archive.load().as_ref().is_some_and(|archive| archive.path() == path)
    }

    /// Returns the damaged blocks of rows of which no other file of the segment has a copy.
    pub(crate) fn lost_blocks(&self) -> Vec<StoreError> {
        let (rows, archive) = (self.rows.load(), self.archive.load());
        match (rows.as_ref(), archive.as_ref()) {
            (Some(rows), None) => rows.verify(),
            (None, Some(archive)) => archive.verify(),
            // With both files, a block is lost only if both copies of it are bad.
            (Some(rows), Some(archive)) if !archive.verify().is_empty() => rows.verify(),
            _ => Vec::new(),
        }
    }

    /// Verifies every checksum of every file, bypassing the cache.
    pub(crate) fn verify_blocks(&self) -> Vec<StoreError> {
        let mut bad = self.index.verify(&self.footer.blocks);
        bad.iter().for_each(|error| self.note_damage(error));
        bad.extend(self.rows.load().iter().flat_map(|rows| rows.verify()));
        bad.extend(self.archive.load().iter().flat_map(|archive| archive.verify()));
        bad
    }
}

pub(super) fn forest_of(bytes: &Buffer, rows: u32) -> Result<Forest, String> {
    let forest = Forest::decode_shared(bytes).map_err(|e| e.to_string())?;
    if forest.rows() == rows { Ok(forest) } else { Err("its trees do not fit its rows".to_owned()) }
}

/// Returns the pin of a file, which its readers share.
fn pin_of<T: Send + Sync + 'static>(file: &Arc<T>) -> Pin {
    let file: Arc<dyn std::any::Any + Send + Sync> = file.clone();
    Arc::downgrade(&file)
}

fn open_rows(objects: &dyn Objects, name: &str, end: Option<&FileEnd>, expected: u32) -> Result<RowsFile, StoreError> {
    let rows = RowsFile::open(objects, name, end)?;
    if rows.rows == expected {
        return Ok(rows);
    }
    let detail = format!("it holds {} events where the segment has {expected}", rows.rows);
    Err(StoreError::corrupt(&rows.file.path, detail))
}

/// Drops damaged Arrow rows that the archive has too, and returns the error. A missing file is not damage, and one that
/// cannot be read for now may be intact.
fn give_up_rows(place: &SegmentAccess, name: String, error: &StoreError) -> Option<Problem> {
    if let StoreError::Io { source, .. } = error {
        if source.kind() != ErrorKind::NotFound {
            tracing::warn!(%error, "Arrow rows cannot be read: their events are read from GeoParquet");
        }
        return None;
    }
    tracing::warn!(%error, "Arrow rows do not read: they are read from GeoParquet from now on");
    place.removal.as_ref()?.doom_unpinned(name);
    Some(Problem::of(error).and("it is removed: its events are read from the archive"))
}
