//! Installs the outcome of a flush or merge in place of its inputs, under the partition's lock. Changes made while the
//! job ran are carried over, and the manifest names the outcome before any reader sees it.

use crate::error::{Problem, StoreError};
use crate::ingest::idempotency;
use crate::ingest::partition::Partition;
use crate::maintenance::job::{Job, Output, Work};
use crate::manifest::ranges::Range;
use crate::manifest::{Manifest, SegmentEntry, archive_name, segment_name};
use crate::merge::runs::RowMaps;
use crate::merge::segments::{MergeOutcome, discard};
use crate::part::Entry;
use crate::part::Part;
use crate::part::dead::DeadRows;
use crate::part::removal::Pin;
use crate::seams::CommitError;
use meridian_model::{Mode, Seq};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Partition {
    fn thaw(&mut self, job: &Job) {
        self.frozen.retain(|number| job.inputs.iter().all(|e| e.part.number != *number));
    }

    /// Replaces the inputs of a job with its outcome. On an error the inputs stay.
    pub(crate) fn install(&mut self, job: Job, output: Result<Output, StoreError>) -> Result<(), StoreError> {
        if self.is_halted() {
            // The next start removes its files, which no manifest names.
            return Err(StoreError::Closed);
        }
        // Thawed first: on an error the inputs are free for the next attempt.
        self.thaw(&job);
        match &output {
            Err(StoreError::Corrupt { path, .. }) => self.set_aside(&job, path),
            // There is no room for a rebuilt index, and a retry would find none either.
            Err(StoreError::Io { path, source, .. }) if source.kind() == ErrorKind::Unsupported => {
                self.set_aside(&job, path);
            }
            _ => {}
        }
        let result = match output? {
            Output::Archive(archive) => self.install_archive(&job, archive),
            Output::Unarchived => self.install_unarchived(&job),
            Output::Rebuilt(part) => {
                self.install_rebuilt(&job, *part);
                Ok(())
            }
            Output::Run(part, maps) => {
                let rows: Vec<u32> = part.iter().map(|p| p.rows).collect();
                let mut marks = self.marks_now(&job, &maps, &rows);
                self.entries.retain(|e| job.inputs.iter().all(|i| i.part.number != e.part.number));
                self.entries.extend(part.map(|p| {
                    let (dead, hidden) = marks.pop().unwrap_or_default();
                    Entry::of(p, dead, hidden)
                }));
                Ok(())
            }
            Output::Segments(merged, parts) => self.install_segments(&job, merged, parts),
        };
        self.publish();
        result
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
        let now: HashMap<u64, &Entry> = self.entries.iter().map(|e| (e.part.number, e)).collect();
        let inputs: Vec<&Entry> = job.inputs.iter().map(|e| now.get(&e.part.number).copied().unwrap_or(e)).collect();
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

    fn install_segments(&mut self, job: &Job, merged: MergeOutcome, parts: Vec<Part>) -> Result<(), StoreError> {
        let rows: Vec<u32> = parts.iter().map(|p| p.rows).collect();
        let marks = self.marks_now(job, &merged.maps, &rows);
        let is_input = |e: &Entry| job.inputs.iter().any(|i| i.part.number == e.part.number);
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
        // Outputs replace the inputs; parts written during the job stay behind them.
        let kept = self.entries.iter().filter(|e| !is_input(e)).cloned();
        let mut entries: Vec<Entry> = fresh.into_iter().chain(kept).collect();
        if self.manifest.schema.mode == Mode::Latest {
            // In mode `latest` most rows become hidden: old ones cost a bit each.
            let settled = self.settled();
            entries.iter_mut().filter(|e| e.hidden.can_settle(settled)).for_each(|e| {
                Arc::make_mut(&mut e.hidden).settle(settled);
            });
        }
        // Only a flush advances the manifest in the log: a merge holds no write that was not in a segment.
        let flushed = match job.work {
            Work::Flush { flushed } => flushed,
            _ => self.manifest.flushed,
        };
        let saved = self.save(&entries, &mut segments, flushed);
        let manifest = match saved {
            Ok(manifest) => manifest,
            Err(failed) => {
                // If either manifest may be the one that a restart finds, the files of both stay.
                if !failed.is_unknown() {
                    discard(&self.shared, &merged);
                }
                return Err(self.after_failed_commit(failed));
            }
        };
        // The manifest is committed: from here on a restart finds the outputs, not the inputs.
        let old = std::mem::replace(&mut self.manifest, manifest);
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
        self.entries = entries;
        self.segments = segments;
        self.measure();
        self.remove_sidecars(&old);
        if let Work::Flush { flushed } = job.work {
            // The log is released last: until the manifest was committed, only the log had these writes.
            self.keys.saved(flushed);
            self.flush_wanted = false;
            if let Some(log) = &mut self.log {
                // An error here loses nothing: the manifest covers these records, and the next flush releases them
                // again.
                log.release(flushed)?;
            }
        }
        Ok(())
    }

    /// Writes dead rows, idempotency keys and the manifest of these entries.
    pub(crate) fn save(
        &self,
        entries: &[Entry],
        segments: &mut BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<Manifest, CommitError> {
        let clean = CommitError::Clean;
        let mut put = self.save_dead(entries, segments, flushed).map_err(clean)?;
        let hidden = self.save_hidden(entries, segments, flushed).map_err(clean)?;
        let hidden_put = hidden.is_some();
        // Wall time: files of keys expire across restarts.
        let now = self.shared.seams.clock.now();
        // Taken even if no keys are written: the number is the manifest's version.
        let file = self.shared.number_file();
        // Only a flush moves keys from the log to a file; a merge leaves them alone and writes less.
        let keys = if flushed == self.manifest.flushed {
            self.manifest.keys.clone()
        } else {
            let objects = self.shared.objects.as_ref();
            let keys = self.keys.save(objects, &self.manifest.keys, flushed, now, file).map_err(clean)?;
            put |= keys.iter().any(|k| k.file == file);
            let fresh = keys.iter().filter(|k| k.file == file).map(|k| idempotency::file_bytes(k.count)).sum();
            self.shared.counters.add_sidecar_bytes(fresh);
            keys
        };
        let manifest = Manifest {
            flushed,
            dropped_seq: self.shared.horizon.dropped(),
            next_file: self.shared.next_file.load(Ordering::Relaxed),
            // Damaged segments stay named: dropping them here would make a repair impossible.
            segments: segments.values().chain(&self.damaged).cloned().collect(),
            keys,
            hidden,
            log: match flushed == self.manifest.flushed && !self.log_wants_flush() {
                true => self.manifest.log,
                false => self.log.as_ref().and_then(|log| log.place(flushed)),
            },
            ..self.manifest.clone()
        };
        // Objects first, then the manifest that names them: a crash in between leaves leftovers, never a name without
        // its object.
        if put || hidden_put {
            self.shared.sync_objects().map_err(clean)?;
        }
        self.write_manifest(&manifest).map(|()| manifest)
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
