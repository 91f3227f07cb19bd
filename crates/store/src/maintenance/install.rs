//! Installs the outcome of a flush or merge in place of its inputs.
//!
//! The manifest names the outcome before any reader sees it. It is made under the partition's lock and committed
//! without it; then the outcome is put in place under the lock again. Changes made while the job ran, or during the
//! commit, are carried over.

use crate::error::{Problem, StoreError};
use crate::ingest::partition::{NextManifest, Partition, PartitionLock};
use crate::maintenance::job::{Job, Output, Work};
use crate::manifest::ranges::Range;
use crate::manifest::{Manifest, SegmentEntry, archive_name, segment_name};
use crate::merge::runs::RowMaps;
use crate::merge::segments::{MergeOutcome, discard};
use crate::part::dead::DeadRows;
use crate::part::removal::{Pin, delete};
use crate::part::segment::Archive;
use crate::part::{Entry, Part};
use crate::seams::{CommitError, LogPlace};
use crate::state::Shared;
use meridian_model::{Mode, Seq};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// An outcome whose manifest is being committed.
pub(crate) struct Installing {
    job: Job,
    pub(crate) next: NextManifest,
    /// The segments by that manifest.
    segments: BTreeMap<u64, SegmentEntry>,
    outcome: Outcome,
}

/// What takes the place of a job's inputs.
pub(super) enum Outcome {
    Segments(MergedSegments),
    Archive(Arc<Archive>),
    /// Nothing takes the place of this archive.
    Unarchived(Arc<Archive>),
}

/// A manifest, the segments that it names by part number, and what takes the place of the inputs.
pub(super) type Next = (NextManifest, BTreeMap<u64, SegmentEntry>, Outcome);

/// Segments, with the dead and hidden rows that their inputs had when the manifest was made.
pub(super) struct MergedSegments {
    merged: MergeOutcome,
    entries: Vec<Entry>,
    inputs: Vec<Entry>,
}

impl Outcome {
    /// Removes its files, which no manifest names and no reader has.
    fn discard(&self, shared: &Shared) {
        match self {
            Outcome::Segments(segments) => discard(shared, &segments.merged),
            Outcome::Archive(archive) => delete(shared.objects.as_ref(), &archive.name),
            Outcome::Unarchived(_) => {}
        }
    }
}

/// Replaces the inputs of a job with its outcome. On an error the inputs stay.
pub(crate) fn install(core: &PartitionLock, job: Job, output: Result<Output, StoreError>) -> Result<(), StoreError> {
    let _commits = core.lock_commits();
    let mut held = HeldTime(0);
    let begun = held.of(core, |partition| {
        let begun = partition.begin_install(job, output)?;
        Ok(begun.map(|installing| (installing, partition.shared.clone(), partition.catalog.clone())))
    });
    let installed = begun.and_then(|begun| {
        let Some((installing, shared, catalog)) = begun else { return Ok(()) };
        let committed = installing.next.commit(&shared, &catalog);
        match held.of(core, |partition| partition.end_install(installing, committed))? {
            Some((flushed, named)) => release(core, &mut held, flushed, named),
            None => Ok(()),
        }
    });
    core.lock().shared.counters.add_install(held.0);
    installed
}

/// Releases what the log has up to `flushed`: the manifest that covers it names this place in the log.
fn release(core: &PartitionLock, held: &mut HeldTime, flushed: u64, named: Option<LogPlace>) -> Result<(), StoreError> {
    // An error loses nothing: the manifest covers these records, and the next flush releases them again.
    while let Some(remove) = held.of(core, |partition| match &mut partition.log {
        Some(log) => log.release(flushed, named),
        None => Ok(None),
    })? {
        remove()?;
        held.of(core, |partition| partition.log.iter_mut().for_each(|log| log.removed()));
    }
    // With the log's new length.
    held.of(core, Partition::publish);
    Ok(())
}

/// The microseconds for which an install has held the partition's lock: writers wait for it.
struct HeldTime(u64);

impl HeldTime {
    /// Takes one step under the lock.
    fn of<T>(&mut self, core: &PartitionLock, step: impl FnOnce(&mut Partition) -> T) -> T {
        let mut partition = core.lock();
        let clock = partition.shared.seams.clock.clone();
        let begun = clock.elapsed();
        let done = step(&mut partition);
        self.0 += (clock.elapsed() - begun).max(0) as u64;
        done
    }
}

impl Partition {
    fn thaw(&mut self, job: &Job) {
        self.frozen.retain(|number| job.inputs.iter().all(|e| e.part.number != *number));
    }

    /// Does the same for a repair, which has the partition to itself.
    pub(crate) fn install(&mut self, job: Job, output: Result<Output, StoreError>) -> Result<(), StoreError> {
        let Some(installing) = self.begin_install(job, output)? else { return Ok(()) };
        let committed = installing.next.commit(&self.shared, &self.catalog);
        let covered = self.end_install(installing, committed)?;
        let (Some((flushed, named)), Some(log)) = (covered, &mut self.log) else { return Ok(()) };
        while let Some(remove) = log.release(flushed, named)? {
            remove()?;
            log.removed();
        }
        Ok(())
    }

    /// Makes the manifest with a job's outcome; `None` if there is nothing to commit. The inputs stay frozen until
    /// [`Partition::end_install`].
    fn begin_install(
        &mut self,
        job: Job,
        output: Result<Output, StoreError>,
    ) -> Result<Option<Installing>, StoreError> {
        if self.is_halted() {
            // The next start removes its files, which no manifest names.
            return Err(StoreError::Closed);
        }
        match &output {
            Err(StoreError::Corrupt { path, .. }) => self.set_aside(&job, path),
            // There is no room for a rebuilt index, and a retry would find none either.
            Err(StoreError::Io { path, source, .. }) if source.kind() == ErrorKind::Unsupported => {
                self.set_aside(&job, path);
            }
            _ => {}
        }
        match output.and_then(|output| self.begin_output(&job, output)) {
            Ok(Some((next, segments, outcome))) => {
                self.is_committing = true;
                Ok(Some(Installing { job, next, segments, outcome }))
            }
            done => {
                // Also after an error: the inputs are free for the next attempt.
                self.thaw(&job);
                self.publish();
                done.map(|_| None)
            }
        }
    }

    fn begin_output(&mut self, job: &Job, output: Output) -> Result<Option<Next>, StoreError> {
        match output {
            Output::Archive(archive) => self.next_archived(job, archive),
            Output::Unarchived => self.next_unarchived(job),
            Output::Rebuilt(part) => {
                self.install_rebuilt(job, *part);
                Ok(None)
            }
            Output::Run(part, maps) => {
                let rows: Vec<u32> = part.iter().map(|p| p.rows).collect();
                let mut marks = self.marks_now(job, &maps, &rows);
                self.entries.retain(|e| job.inputs.iter().all(|i| i.part.number != e.part.number));
                self.entries.extend(part.map(|p| {
                    let (dead, hidden) = marks.pop().unwrap_or_default();
                    Entry::of(p, dead, hidden)
                }));
                Ok(None)
            }
            Output::Segments(merged, parts) => self.next_merged(job, merged, parts).map(Some),
        }
    }

    /// Puts an outcome in place if its manifest was committed. Returns what the log may release.
    fn end_install(
        &mut self,
        installing: Installing,
        committed: Result<(), CommitError>,
    ) -> Result<Option<(u64, Option<LogPlace>)>, StoreError> {
        self.is_committing = false;
        if self.is_halted() {
            // A restart finds the manifest, and the files that it names are there.
            return Err(StoreError::Closed);
        }
        self.thaw(&installing.job);
        let result = match committed {
            Ok(()) => Ok(self.put_in_place(installing)),
            Err(failed) => {
                // If either manifest may be the one that a restart finds, the files of both stay.
                if !failed.is_unknown() {
                    installing.outcome.discard(&self.shared);
                }
                Err(self.after_failed_commit(failed))
            }
        };
        self.publish();
        result
    }

    fn put_in_place(&mut self, installing: Installing) -> Option<(u64, Option<LogPlace>)> {
        let Installing { job, next, segments, outcome } = installing;
        // Expired lists may have been forgotten meanwhile.
        let listed = std::mem::take(&mut self.manifest.listed);
        // The manifest is committed: from here on a restart finds the outcome, not the inputs.
        let old = std::mem::replace(&mut self.manifest, Manifest { listed, ..next.manifest });
        match outcome {
            Outcome::Archive(archive) => self.end_archived(&job, archive),
            Outcome::Unarchived(archive) => self.end_unarchived(&job, &archive),
            Outcome::Segments(merged) => self.end_merged(&job, merged),
        }
        self.segments = segments;
        self.measure();
        self.remove_sidecars(&old);
        // Only a flush covers more of the log.
        let Work::Flush { flushed } = job.work else { return None };
        self.keys.saved(flushed);
        self.flush_wanted = false;
        // The log is released last: until the manifest was committed, only the log had these writes.
        Some((flushed, self.manifest.log))
    }

    /// Excludes a damaged segment from merges. Its good blocks stay served, and the merge is not retried pointlessly.
    fn set_aside(&mut self, job: &Job, path: &Path) {
        // An archive that differs from its segment fails the job as well, although the segment itself is good.
        let resting = matches!(job.work, Work::Archive { .. });
        for input in &job.inputs {
            let damaged = input.part.segment().is_some_and(|s| s.has_file(path));
            if !damaged && !resting {
                continue;
            }
            // Until the next start or a rebuild: the same merge would fail the same way and cost its reads each time.
            self.unmergeable.push(input.part.number);
            if matches!(job.work, Work::Rebuild { .. }) {
                self.unmendable.push(input.part.number);
            }
            let path = path.to_owned();
            if damaged {
                let detail = "part of it is damaged, found by a merge; the intact part stays served".to_owned();
                self.problems.push(Problem { path, detail });
            } else {
                let detail = "the result differs from the segment; that stays served unchanged".to_owned();
                self.notes.push(Problem { path, detail });
            }
        }
        self.publish();
    }

    /// Returns the dead and hidden rows of the outputs: the current ones of the inputs, including changes during the
    /// job.
    fn marks_now(&self, job: &Job, maps: &RowMaps, rows: &[u32]) -> Vec<(DeadRows, DeadRows)> {
        // The job worked on copies of the entries: rows killed meanwhile are only in the current ones.
        let inputs = self.inputs_now(job);
        let mut dead = DeadRows::moved(inputs.iter().map(|e| e.dead.as_ref()), maps, rows);
        let mut hidden = DeadRows::moved(inputs.iter().map(|e| e.hidden.as_ref()), maps, rows);
        // Old deaths collapse to one number, or the marks of a long-lived segment would grow with every write.
        let settled = self.settled();
        dead.iter_mut().chain(&mut hidden).for_each(|marks| marks.settle(settled));
        dead.into_iter().zip(hidden).collect()
    }

    /// Returns the number up to which deaths need not be distinguished. Settled deaths share one number, which must not
    /// pass what the manifest keeps: the log has the rest.
    fn settled(&self) -> u64 {
        self.shared.horizon.dropped().min(Seq::end_of(self.manifest.flushed).0)
    }

    /// Makes the manifest with the segments of a flush or merge.
    fn next_merged(&mut self, job: &Job, merged: MergeOutcome, parts: Vec<Part>) -> Result<Next, StoreError> {
        let rows: Vec<u32> = parts.iter().map(|p| p.rows).collect();
        let marks = self.marks_now(job, &merged.maps, &rows);
        // Segments of one output range share a run number, so that choosing and measuring treat them as one run.
        let mut runs: HashMap<Range, u64> = HashMap::new();
        let mut segments = self.segments.clone();
        segments.retain(|number, _| job.inputs.iter().all(|i| i.part.number != *number));
        let mut fresh = Vec::new();
        for (((file, range, written), part), (dead, hidden)) in merged.segments.iter().zip(parts).zip(marks) {
            let mut run = *runs.entry(*range).or_insert(*file);
            if matches!(job.work, Work::Fold { .. }) {
                // Dead rows are removed separately, as soon as no snapshot needs them.
                run = *file;
            }
            let meta = SegmentEntry {
                file: *file,
                run,
                rows: written.rows,
                bytes: written.bytes,
                range: *range,
                dead: None,
                archive: None,
                sketch: written.sketch,
            };
            segments.insert(part.number, meta);
            fresh.push(Entry::of(part, dead, hidden));
        }
        // Only a flush advances the manifest in the log: a merge holds no write that was not in a segment.
        let flushed = match job.work {
            Work::Flush { flushed } => flushed,
            _ => self.manifest.flushed,
        };
        match self.next_manifest(&self.with(&fresh, job), &mut segments, flushed) {
            Ok(next) => {
                let outcome = MergedSegments { merged, entries: fresh, inputs: self.inputs_now(job) };
                Ok((next, segments, Outcome::Segments(outcome)))
            }
            Err(e) => {
                discard(&self.shared, &merged);
                Err(e)
            }
        }
    }

    /// Serves the segments of a flush or merge.
    fn end_merged(&mut self, job: &Job, outcome: MergedSegments) {
        let MergedSegments { merged, mut entries, inputs } = outcome;
        let same = |(a, b): (&Entry, &Entry)| Arc::ptr_eq(&a.dead, &b.dead) && Arc::ptr_eq(&a.hidden, &b.hidden);
        // Rows may have died during the commit. The log has those deaths, as it is kept beyond the manifest.
        if !inputs.iter().zip(&self.inputs_now(job)).all(same) {
            let rows: Vec<u32> = entries.iter().map(|e| e.part.rows).collect();
            let marks = self.marks_now(job, &merged.maps, &rows);
            for (entry, (dead, hidden)) in entries.iter_mut().zip(marks) {
                (entry.dead, entry.hidden) = (Arc::new(dead), Arc::new(hidden));
            }
        }
        for input in &job.inputs {
            let (Some(segment), Some(meta)) = (input.part.segment(), self.segments.get(&input.part.number)) else {
                continue;
            };
            // The committed manifest no longer names its files: only snapshots may need them.
            segment.retire(meta.file, Arc::downgrade(&input.part) as Pin);
            let files = [archive_name, segment_name].map(|name| self.shared.objects.path(&name(meta.file)));
            self.notes.retain(|note| !files.contains(&note.path));
        }
        // One assignment under the lock: no snapshot can see both an input and its output.
        self.entries = self.with(&entries, job);
    }

    /// Returns the inputs of a job with their dead and hidden rows of now.
    fn inputs_now(&self, job: &Job) -> Vec<Entry> {
        let now: HashMap<u64, &Entry> = self.entries.iter().map(|e| (e.part.number, e)).collect();
        job.inputs.iter().map(|e| now.get(&e.part.number).copied().unwrap_or(e).clone()).collect()
    }

    /// Returns all entries, with these in place of a job's inputs. Parts written during the job stay behind them.
    fn with(&self, fresh: &[Entry], job: &Job) -> Vec<Entry> {
        let is_input = |e: &Entry| job.inputs.iter().any(|i| i.part.number == e.part.number);
        let mut entries: Vec<Entry> =
            fresh.iter().chain(self.entries.iter().filter(|e| !is_input(e))).cloned().collect();
        if self.manifest.schema.mode == Mode::Latest {
            // In mode `latest` most rows become hidden: old ones cost a bit each.
            let settled = self.settled();
            entries.iter_mut().filter(|e| e.hidden.can_settle(settled)).for_each(|e| {
                Arc::make_mut(&mut e.hidden).settle(settled);
            });
        }
        entries
    }

    /// Applies the consequence of a failed commit: the partition refuses writes, unless nothing took effect.
    pub(crate) fn after_failed_commit(&mut self, failed: CommitError) -> StoreError {
        let (why, error) = match failed {
            CommitError::Clean(error) => return error,
            CommitError::Unknown(error) => match self.log.as_ref().is_some_and(|log| log.is_shared()) {
                true => (format!("the bucket does not answer: {error}"), error),
                false => (format!("{error}: restart once the disk works"), error),
            },
            stale @ CommitError::Stale { .. } => {
                let error = StoreError::from(stale);
                (error.to_string(), error)
            }
        };
        self.outdate(why);
        error
    }
}
