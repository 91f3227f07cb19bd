//! Archives of segments: writes them, and lists them for other programs.

use crate::error::{Problem, StoreError};
use crate::ingest::partition::Partition;
use crate::maintenance::install::{Next, Outcome};
use crate::maintenance::job::{Job, Work};
use crate::maintenance::schedule::ARCHIVE_QUIET_US;
use crate::manifest::{SegmentEntry, archive_name};
use crate::merge::choice::RUNS_MERGED;
use crate::part::Entry;
use crate::part::removal::delete;
use crate::part::segment::REBUILT;
use crate::part::segment::same_rows;
use crate::part::segment::{Archive, Segment, write_archive};
use crate::part::{Part, PartView};
use crate::state::Shared;
use meridian_model::{Invalid, Seq};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The GeoParquet files of a collection, as other programs may read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The snapshot that the files show: each event once, and nothing replaced or deleted.
    pub seq: Seq,
    /// Their paths, in order of creation.
    pub paths: Vec<PathBuf>,
    /// Time until which they stay, in microseconds since 1970, regardless of later writes and merges.
    pub kept_until: i64,
}

impl Job {
    /// Writes the rows of the one input as GeoParquet.
    pub(crate) fn write_archive(
        &self,
        shared: &Shared,
        file: u64,
        stop: &AtomicBool,
    ) -> Result<Arc<Archive>, StoreError> {
        let Some(input) = self.inputs.first() else { return Err(StoreError::Closed) };
        let view = PartView {
            part: input.part.clone(),
            dead: Arc::default(),
            seq: Seq(u64::MAX),
            context: self.context.clone(),
        };
        let (objects, name) = (shared.objects.as_ref(), archive_name(file));
        // An earlier attempt or a damaged archive may have taken the name. No manifest names either.
        let taken = objects.open(&name).is_ok();
        if taken {
            objects.delete(&name).map_err(StoreError::io("remove", &objects.path(&name)))?;
        }
        let written = write_archive(objects, &name, &view, (stop, self.pace(shared))).and_then(|entry| {
            shared.sync_objects()?;
            shared.counters.add_archive_bytes(entry.bytes);
            let archive = Segment::open_archive(&shared.place(), file, entry)?;
            // The new source is read once first: from then on the other copy may be removed.
            same_rows(&input.part, &archive).map(|()| archive)
        });
        // Deleted at once rather than at the next start: a failed archive is as large as its segment.
        if written.is_err() {
            let _ = objects.delete(&name);
        }
        written
    }
}

impl Job {
    /// Rebuilds the sidecars of the one input.
    pub(crate) fn rebuild(&self, shared: &Shared, file: u64) -> Result<Part, StoreError> {
        let Some(old) = self.inputs.first().and_then(|input| input.part.segment()) else {
            return Err(StoreError::Closed);
        };
        old.rebuild(file, self.context.rule)?;
        let part = Part::open(&shared.place(), file, old.archive())?;
        shared.counters.add_archive_bytes(part.segment().map_or(0, |s| s.index.bytes));
        Ok(part)
    }
}

impl Job {
    /// Verifies the files that serve the one input, bypassing all caches.
    pub(crate) fn verify_serving(&self) -> Result<(), StoreError> {
        let segment = self.inputs.first().and_then(|input| input.part.segment());
        let (Some(segment), Some(rows)) = (segment, segment.and_then(Segment::rows_file)) else {
            return Err(StoreError::Closed);
        };
        let bad = segment.index.verify(&segment.footer.blocks).into_iter().chain(rows.verify()).next();
        bad.map_or(Ok(()), Err)
    }
}

impl Partition {
    /// Returns a job for a segment with a damaged archive that still has its Arrow rows.
    pub(crate) fn next_unarchiving(&mut self) -> Option<Job> {
        let sick = |e: &Entry| {
            e.part.segment().is_some_and(Segment::is_archive_damaged)
                && !self.frozen.contains(&e.part.number)
                && !self.unmergeable.contains(&e.part.number)
        };
        let found = self.entries.iter().position(sick)?;
        Some(self.freeze(Work::Unarchive, &[found]))
    }

    /// Makes the manifest by which the Arrow rows are the source again: it records that first, then they are archived
    /// again.
    pub(super) fn next_unarchived(&mut self, job: &Job) -> Result<Option<Next>, StoreError> {
        let part = job.inputs.first().map(|e| e.part.clone());
        let Some((part, segment)) = part.as_ref().and_then(|part| Some((part, part.segment()?))) else {
            return Ok(None);
        };
        let (mut segments, Some(archive)) = (self.segments.clone(), segment.archive()) else { return Ok(None) };
        // Checked again under the lock: the archive may have been dropped while the job verified.
        let Some(meta) = segments.get_mut(&part.number).filter(|_| segment.is_archive_damaged()) else {
            return Ok(None);
        };
        meta.archive = None;
        let next = self.next_manifest(&self.entries, &mut segments, self.manifest.flushed)?;
        Ok(Some((next, segments, Outcome::Unarchived(archive))))
    }

    /// Drops the archive, as the manifest no longer names it.
    pub(super) fn end_unarchived(&mut self, job: &Job, archive: &Archive) {
        tracing::warn!(path = %archive.path().display(), "an archive is damaged: it is rewritten from the Arrow rows");
        let detail = "a checksum of it is wrong; it is rewritten from the rows as Arrow".to_owned();
        self.notes.push(Problem { path: archive.path().to_owned(), detail });
        // After the manifest: a restart in between still finds either the archive or the rows named, never neither.
        if let Some(segment) = job.inputs.first().and_then(|e| e.part.segment()) {
            segment.drop_archive();
        }
    }

    /// Returns a job for a segment whose damage can be repaired.
    pub(crate) fn next_rebuild(&mut self) -> Option<Job> {
        let sick = |e: &Entry| {
            e.part.segment().is_some_and(Segment::is_damaged)
                && !self.frozen.contains(&e.part.number)
                && !self.unmendable.contains(&e.part.number)
        };
        let found = self.entries.iter().position(sick)?;
        let file = self.segments.get(&self.entries[found].part.number)?.file;
        Some(self.freeze(Work::Rebuild { file }, &[found]))
    }

    /// Serves a rebuilt segment, with the same rows in the same places.
    pub(crate) fn install_rebuilt(&mut self, job: &Job, part: Part) {
        let Some(old) = job.inputs.first().map(|e| e.part.number) else { return };
        let Some(entry) = self.entries.iter_mut().find(|e| e.part.number == old) else { return };
        let number = part.number;
        if let Some(segment) = part.segment() {
            self.notes.push(Problem { path: segment.index.path.clone(), detail: REBUILT.to_owned() });
        }
        entry.part = Arc::new(part);
        self.unmergeable.retain(|unmergeable| *unmergeable != old);
        // Parts are renumbered when they are reopened; the manifest's entry follows the new number.
        if let Some(meta) = self.segments.remove(&old) {
            self.segments.insert(number, meta);
        }
    }
    /// Returns the number up to which everything is in segments; an error if a segment is unreadable.
    pub(crate) fn flushed_whole(&self) -> Result<Seq, StoreError> {
        // A list must be complete: other programs would take a partial one for the whole collection.
        if let Some(why) = &self.refuses {
            return Err(Invalid::new(format!("the collection is read-only: {why}")).into());
        }
        if let Some(problem) = self.damaged.first().and(self.problems.first()) {
            return Err(StoreError::corrupt(&problem.path, format!("{}; the files would lack it", problem.detail)));
        }
        if self.segments.keys().any(|number| self.frozen.contains(number)) {
            return Err(StoreError::Busy("a merge is at work: try again later".to_owned()));
        }
        Ok(Seq::end_of(self.manifest.flushed))
    }

    /// Returns the segments with live rows at this number, and their manifest entries.
    fn listable(&self, at: Seq) -> impl Iterator<Item = (usize, &Entry, &SegmentEntry, bool)> {
        self.entries.iter().enumerate().filter_map(move |(i, e)| {
            let meta = self.segments.get(&e.part.number)?;
            // Deaths up to `at` only: later ones belong to writes that the list does not show.
            let dead = e.dead.count_by(at.0);
            // No merge runs meanwhile: later flushes are in separate segments.
            (e.part.seq_min <= at.0 && dead < u64::from(e.part.rows)).then_some((i, e, meta, dead > 0))
        })
    }

    /// Returns the next segment to rewrite without dead rows, or to archive, for a list at this number.
    pub(crate) fn next_listing_job(&mut self, at: Seq) -> Option<Job> {
        let (i, work) = self.listable(at).find_map(|(i, _, meta, dead)| {
            // Folded before archiving: an archive has all rows of its segment, so the dead ones must be in another one.
            let fold = dead.then_some(Work::Fold { at: at.0, range: meta.range });
            let archive = meta.archive.is_none().then_some(Work::Archive { file: meta.file });
            fold.or(archive).map(|work| (i, work))
        })?;
        Some(self.freeze(work, &[i]).urgently())
    }

    /// Returns the files at this number, which are kept for `files_memory` from now on.
    pub(crate) fn list(&mut self, at: Seq) -> Result<Files, StoreError> {
        self.flushed_whole()?;
        let mut files: Vec<u64> = self.listable(at).map(|(_, _, meta, _)| meta.file).collect();
        files.sort_unstable();
        let memory = self.shared.options.files_memory.as_micros();
        let kept_until = self.shared.seams.clock.now().saturating_add(i64::try_from(memory).unwrap_or(i64::MAX));
        // The promise to keep the files is durable before other programs get the list.
        let mut manifest = self.manifest.clone();
        // A manifest takes a number of its own, which shows the newer of two.
        manifest.next_file = self.shared.number_file() + 1;
        // A file that is listed again is kept until the later time.
        manifest.listed.retain(|(file, _)| !files.contains(file));
        manifest.listed.extend(files.iter().map(|file| (*file, kept_until)));
        self.write_manifest(&manifest)?;
        self.manifest = manifest;
        let paths = files.iter().map(|file| self.shared.objects.path(&archive_name(*file))).collect();
        Ok(Files { seq: at, paths, kept_until })
    }

    /// Forgets expired lists, and releases the files that only they kept.
    pub(crate) fn sweep_listed(&mut self) {
        let now = self.shared.seams.clock.now();
        let (kept, over) = self.manifest.listed.iter().partition(|(_, until)| *until > now);
        self.manifest.listed = kept;
        let over: Vec<(u64, i64)> = over;
        for (file, _) in over {
            let name = archive_name(file);
            let is_live = self.segments.values().chain(&self.damaged).any(|meta| meta.file == file);
            // A file retired by a merge of this process is already scheduled for removal, with its pin.
            if !is_live && !self.shared.removal.holds(&name) {
                self.shared.removal.doom_unpinned(name);
            }
        }
    }

    /// Returns objects that no manifest names, no snapshot pins and no list has. The caller deletes them, outside the
    /// lock.
    pub(crate) fn take_removable(&self) -> Vec<String> {
        let listed: Vec<String> = self.manifest.listed.iter().map(|(file, _)| archive_name(*file)).collect();
        self.shared.removal.take_free(|name| listed.iter().any(|listed| listed == name))
    }

    /// Returns a job for a segment that no merge will touch again; while writers are quiet, for any segment.
    pub(crate) fn next_archiving(&mut self) -> Option<Job> {
        // An ephemeral collection is never archived.
        self.log.as_ref()?;
        // Archiving a segment that will soon be merged is wasted, so small ones wait until the writers pause.
        let quiet = self.shared.seams.clock.elapsed() - self.committed_at >= ARCHIVE_QUIET_US;
        let rows_max = self.shared.options.merge_rows_max / RUNS_MERGED as u64;
        let due = |e: &Entry, meta: &SegmentEntry| {
            meta.archive.is_none()
                && meta.rows >= self.shared.options.archive_rows_min
                && (quiet || u64::from(meta.rows) > rows_max)
                && !self.frozen.contains(&e.part.number)
                && !self.unmergeable.contains(&e.part.number)
        };
        let found = self.entries.iter().enumerate().find_map(|(i, e)| {
            let meta = self.segments.get(&e.part.number).filter(|meta| due(e, meta))?;
            Some((i, Work::Archive { file: meta.file }))
        });
        let (i, work) = found?;
        Some(self.freeze(work, &[i]))
    }

    /// Makes the manifest by which the archive is the segment's source.
    pub(super) fn next_archived(&mut self, job: &Job, archive: Arc<Archive>) -> Result<Option<Next>, StoreError> {
        let mut segments = self.segments.clone();
        let input = job.inputs.first().map(|e| e.part.number);
        let Some(meta) = input.and_then(|number| segments.get_mut(&number)) else { return Ok(None) };
        meta.archive = Some(archive.entry);
        match self.next_manifest(&self.entries, &mut segments, self.manifest.flushed) {
            Ok(next) => Ok(Some((next, segments, Outcome::Archive(archive)))),
            Err(e) => {
                delete(self.shared.objects.as_ref(), &archive.name);
                Err(e)
            }
        }
    }

    /// Serves the archive. Named first, served next: until the manifest names it, the Arrow rows are the source.
    pub(super) fn end_archived(&mut self, job: &Job, archive: Arc<Archive>) {
        // The note reported this file as damaged; the new archive has its name.
        self.notes.retain(|note| note.path != archive.path());
        if let Some(segment) = job.inputs.first().and_then(|e| e.part.segment()) {
            segment.set_archive(archive);
        }
    }
}
