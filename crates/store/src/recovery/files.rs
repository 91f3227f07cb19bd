//! Opens the files of a partition: segments and their indexes. Damage is contained, and repaired if a second copy
//! exists.

use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::error::{Problem, StoreError};
use crate::ingest::partition::Partition;
use crate::manifest::{SegmentEntry, rows_name, segment_name};
use crate::part::segment::{REBUILT, RowsFile, Segment, rebuild, rebuild_from_rows};
use crate::part::{Entry, Part};
use meridian_model::IdRole;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// Max segments opened at a time. Each waits for a few small reads in sequence, so a disk can serve more of them at
/// once than there are processors.
const OPENERS: usize = 16;

impl Partition {
    /// Opens the segments and their indexes. With `again` it may be tried again later: then a file that cannot be read
    /// for now is an error. Else it is contained as damage is.
    pub(crate) fn open_files(&mut self, again: bool) -> Result<(), StoreError> {
        // Served without it, deleted events would reappear, and writes be refused until the next start.
        let wait = |error: &StoreError| again && error.may_pass();
        let objects = self.shared.objects.clone();
        // Before anything is written: a repair below must not reuse the number of a file missing from the manifest.
        self.pass_numbers()?;
        let mut lost_dead = false;
        let hidden = read_hidden(objects.as_ref(), &self.manifest);
        let mut hidden = self.contained(hidden, again, &mut lost_dead)?;
        for (meta, opened, note) in self.open_segments(again) {
            self.notes.extend(note);
            match opened {
                Ok(part) if part.rows == meta.rows => {
                    // The segment is served anyway. Deleted events may reappear, so writes are refused below.
                    let dead = self.contained(read_dead(objects.as_ref(), &meta), again, &mut lost_dead)?;
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
                // Not damage: without the segment this older program would drop it.
                Err(StoreError::NewerFormat { path, found, supported }) => {
                    return Err(StoreError::NewerFormat { path, found, supported });
                }
                Err(e) if wait(&e) => return Err(e),
                Err(e) => {
                    self.note_bad(e);
                    self.damaged.push(meta);
                }
            }
        }
        // From here on the depth of runs is known, which decides whether merges pause for requests.
        self.measure();
        if lost_dead {
            // Further writes would make the loss permanent: deleted events would never be hidden again.
            self.refuses =
                Some("the record of deleted or superseded events is damaged; see the problems listed".to_owned());
        } else if !self.damaged.is_empty() && self.manifest.schema.id == IdRole::Given {
            let why = "a segment cannot be read, so whether an id is in use cannot be known; see the problems listed";
            self.refuses = Some(why.to_owned());
        }
        let mut bad_keys = self.keys.load(objects.as_ref(), &self.manifest.keys);
        if let Some(at) = bad_keys.iter().position(wait) {
            return Err(bad_keys.swap_remove(at));
        }
        if !bad_keys.is_empty() {
            bad_keys.into_iter().for_each(|e| self.note_bad(e));
            self.refuses.get_or_insert("the record of idempotency keys is damaged; see the problems listed".to_owned());
        }
        Ok(())
    }

    /// Returns what was read, or nothing where it is damaged: then `lost` is set.
    fn contained<T: Default>(
        &mut self,
        read: Result<T, StoreError>,
        again: bool,
        lost: &mut bool,
    ) -> Result<T, StoreError> {
        match read {
            Err(e) if !(again && e.may_pass()) => {
                self.note_bad(e);
                *lost = true;
                Ok(T::default())
            }
            read => read,
        }
    }

    /// Opens all segments: trees, footers and directories are read, [`OPENERS`] at a time. In a simulation they are
    /// opened one by one.
    fn open_segments(&self, again: bool) -> Vec<(SegmentEntry, Result<Part, StoreError>, Option<Problem>)> {
        let open = |meta: &SegmentEntry| {
            let (mut meta, mut note) = (meta.clone(), None);
            let opened = self.open_segment(&mut meta, again, &mut note);
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

    /// Opens a segment. Damaged files are rebuilt from its archive, or the archive from its Arrow rows. With `again` a
    /// file that cannot be read for now is left as it is.
    pub(super) fn open_segment(
        &self,
        meta: &mut SegmentEntry,
        again: bool,
        note: &mut Option<Problem>,
    ) -> Result<Part, StoreError> {
        let place = self.shared.place();
        let archive = meta.archive.map(|entry| {
            let archive = Segment::open_archive(&place, meta.file, entry)?;
            if archive.rows() == meta.rows {
                return Ok(archive);
            }
            let detail = format!("it holds {} events where the manifest says {}", archive.rows(), meta.rows);
            Err(StoreError::corrupt(archive.path(), detail))
        });
        let archive = match archive.transpose() {
            Ok(archive) => archive,
            Err(error) if again && error.may_pass() => return Err(error),
            Err(error) => {
                // The Arrow rows may be intact: then they are archived again.
                let Ok(part) = Part::open(&place, meta.file, None) else { return Err(error) };
                *note = Some(Problem::of(&error).and("it is rewritten from the rows as Arrow"));
                // The manifest that names the archive stays until the next commit; the archiving job then writes a new
                // one.
                meta.archive = None;
                return Ok(part);
            }
        };
        let opened = Part::open(&place, meta.file, archive.clone());
        match (opened, archive) {
            (Err(error), _) if again && error.may_pass() => Err(error),
            (Err(error @ (StoreError::Corrupt { .. } | StoreError::Io { .. })), Some(archive)) => {
                tracing::info!(segment = meta.file, rows = meta.rows, "a segment is rebuilt from its archive");
                // A missing one was deleted to save space, or was not part of a backup.
                if matches!(error, StoreError::Corrupt { .. }) {
                    *note = Some(Problem::of(&error).and("it is rebuilt from its archive"));
                }
                // The archive is the source of an archived segment, and every read of it is verified.
                rebuild(place.objects.as_ref(), meta.file, &archive, self.context.rule)?;
                Part::open(&place, meta.file, Some(archive))
            }
            (Err(error), None) if error.is_damage() => {
                let anew = || {
                    let rows = RowsFile::open(place.objects.as_ref(), &rows_name(meta.file), None)?;
                    let schema = &self.manifest.schema;
                    rebuild_from_rows(place.objects.as_ref(), meta.file, (&rows, schema), self.context.rule)?;
                    Part::open(&place, meta.file, None)
                };
                // If the rows are unreadable too, there is no second copy.
                let Ok(part) = anew() else { return Err(error) };
                tracing::warn!(%error, "a segment is rebuilt from its rows as Arrow");
                *note = Some(Problem::of(&error).and("it is rebuilt from its rows as Arrow"));
                Ok(part)
            }
            (opened, _) => {
                let given_up = opened.as_ref().ok().and_then(|part| part.segment()?.given_up.clone());
                *note = given_up.or(note.take());
                opened
            }
        }
    }

    /// Rebuilds the segments that the replay found damaged, and reports them.
    pub(super) fn mend(&self) -> Vec<Problem> {
        let mut mended = Vec::new();
        for e in &self.entries {
            let segment = e.part.segment().filter(|segment| segment.is_damaged());
            let file = self.segments.get(&e.part.number).map(|meta| meta.file);
            let (Some(segment), Some(file)) = (segment, file) else { continue };
            let path = segment.index.path.clone();
            match segment.rebuild(file, self.context.rule) {
                Ok(()) => {
                    tracing::warn!(path = %path.display(), "a damaged segment is rebuilt from its rows");
                    mended.push(Problem { path, detail: REBUILT.to_owned() });
                }
                Err(error) => tracing::error!(%error, "a damaged segment could not be rebuilt"),
            }
        }
        mended
    }
}
