//! Flushes and merges: chosen and installed under the partition's lock, worked off outside of it.
//!
//! Rules of choice:
//! - **Flush**: when asked for, when memory trees of all collections pass half of `memory_bytes` (the largest first),
//!   or when the log passes `log_bytes`. All memory trees go into segments together.
//! - **Merge of memory trees**: four of a like size that a writer found too large to merge on its way; and all of
//!   them once writers have been quiet for [`QUIET_US`] and [`QUIET_ROW_US`] a row, because questions meet every tree.
//!   The quiet asked for is several times what the merge takes, so a trickle of writes cannot keep it busy.
//! - **Merge of segments** (size-tiered): segments of one flush or merge over one range form a run. Where four runs
//!   of a like size (within a factor of four) cover one stretch of time, they are merged, together with all smaller
//!   ones in their range, and cut into ranges anew. A run of which a third is dead is written anew by itself (a memory
//!   tree as well), and a segment of which nothing is left is dropped without being read. Merges
//!   of more than [`MERGE_ROWS_MAX`] rows are not begun: runs beyond a quarter of that stay as they are.
//!
//! - **Rest**: a segment of `rest_rows_min` rows is written as GeoParquet once writers have been quiet for
//!   [`REST_QUIET_US`], or at once if no merge will touch it any more. Smaller ones only when somebody lists the files.
//!
//! So at any time a question meets at most three runs of each size, and an event is rewritten about once per factor of
//! four between a flush and the largest run: write amplification grows with the logarithm of the collection. The work
//! ends: the ranges of what a merge writes are apart, so no stretch of time is covered by more runs than before, and
//! the one that was chosen is covered by three fewer at least.

use crate::codec::{frame, put_bytes, put_u32, put_u64, read_file, replace_file, unframe};
use crate::dead::DeadRows;
use crate::error::{Problem, StoreError};
use crate::manifest::{Manifest, SegmentEntry, dead_name, hidden_name, keys_name, rest_name, rows_name, segment_name};
use crate::merge::{
    Merged, RowMaps, fold_into_segments, merge_runs_mapped, merge_to_segments, open_segments, remove_files,
};
use crate::part::{Context, Part};
use crate::partition::{Partition, Shared, entry, tier_of};
use crate::ranges::Range;
use crate::seams::Disk;
use crate::segment::RestFile;
use crate::stage::Entry;
use meridian_model::{Invalid, Mode, Seq};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs of a like size that are merged into one.
pub(crate) const RUNS_MERGED: usize = 4;
/// Most rows of one merge: it keeps four bytes of each in memory.
pub(crate) const MERGE_ROWS_MAX: u64 = 1 << 25;
/// Least quiet, in microseconds, before memory trees of different sizes become one.
const QUIET_US: i64 = 1_000_000;
/// Quiet asked for besides, for each row to merge: about ten times what merging it takes.
const QUIET_ROW_US: i64 = 5;
/// A run is written anew when one in so many of its rows is dead.
const DEAD_SHARE: u64 = 3;
/// Quiet, in microseconds, before segments that merges may still touch are put to rest.
pub(crate) const REST_QUIET_US: i64 = 10_000_000;
const DEAD_MAGIC: &[u8; 8] = b"MRDNDEAD";
const DEAD_VERSION: u32 = 2;
const HIDDEN_MAGIC: &[u8; 8] = b"MRDNHIDE";
const HIDDEN_VERSION: u32 = 1;

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Memory trees into segments.
    Flush {
        /// Everything up to this position is in the inputs.
        flushed: u64,
    },
    /// Memory trees into one.
    MergeRuns,
    /// Segments into larger ones.
    MergeSegments,
    /// One segment into what is alive at a number and what is dead by then.
    Fold {
        /// The number.
        at: u64,
        /// Time that the segment covers.
        range: Range,
    },
    /// What is beside the rows of one segment, from its rows at rest.
    Rebuild {
        /// Number of the segment's files.
        file: u64,
    },
    /// The rows of one segment into GeoParquet.
    Rest {
        /// Number of the segment's files.
        file: u64,
    },
}

/// Work on parts that the partition keeps frozen meanwhile.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) inputs: Vec<Entry>,
    floor: Option<u64>,
    pub(crate) context: Arc<Context>,
}

/// What came of a job.
pub(crate) enum Output {
    Segments(Merged, Vec<Part>),
    Run(Box<Option<Part>>, RowMaps),
    Rest(Arc<RestFile>),
    Rebuilt(Box<Part>),
}

impl Job {
    /// Does the work. Takes time and memory, no lock.
    pub(crate) fn run(&self, shared: &Shared, stop: &AtomicBool) -> Result<Output, StoreError> {
        match self.work {
            Work::MergeRuns => {
                let (part, maps) = merge_runs_mapped(shared, &self.context, &self.inputs, self.floor)?;
                Ok(Output::Run(Box::new(part), maps))
            }
            Work::Rebuild { file } => self.rebuild(shared, file).map(|part| Output::Rebuilt(Box::new(part))),
            Work::Rest { file } => self.write_rest(shared, file, stop).map(Output::Rest),
            Work::MergeSegments if self.nothing_is_left() => {
                Ok(Output::Segments(Merged { segments: Vec::new(), maps: Vec::new() }, Vec::new()))
            }
            Work::Flush { .. } | Work::MergeSegments | Work::Fold { .. } => {
                let (context, inputs, floor) = (&self.context, &self.inputs, self.floor);
                let merged = match self.work {
                    Work::Fold { at, range } => fold_into_segments(shared, context, inputs, (floor, at, range), stop)?,
                    _ => merge_to_segments(shared, context, inputs, floor, stop)?,
                };
                let parts = match open_segments(shared, &merged) {
                    Ok(parts) => parts,
                    Err(e) => {
                        discard(shared, &merged);
                        return Err(e);
                    }
                };
                let bytes = merged.segments.iter().map(|(_, _, w)| w.bytes).sum();
                match self.work {
                    Work::Flush { .. } => shared.counters.add_flush_bytes(bytes),
                    _ => shared.counters.add_merge_bytes(bytes),
                }
                Ok(Output::Segments(merged, parts))
            }
        }
    }
}

impl Job {
    /// Whether all rows of the inputs may be dropped.
    fn nothing_is_left(&self) -> bool {
        self.floor.is_some_and(|floor| self.inputs.iter().all(|e| is_gone(e, floor)))
    }
}

/// Whether all rows of a part were dead by `floor`.
fn is_gone(entry: &Entry, floor: u64) -> bool {
    entry.dead.count() == u64::from(entry.part.rows) && entry.dead.all_dead(entry.part.rows, Seq(floor))
}

/// Removes files that no manifest names.
fn discard(shared: &Shared, merged: &Merged) {
    remove_files(shared, &merged.segments.iter().map(|(file, _, _)| *file).collect::<Vec<_>>());
}

impl Partition {
    /// Whether memory trees should be flushed for what the collection itself holds.
    fn flush_due(&self) -> bool {
        let log_full = self.log.as_ref().is_some_and(|log| log.tail_bytes() > self.shared.options.log_bytes);
        let memory = self.shared.memory.load(Ordering::Acquire) as u64;
        self.flush_wanted || log_full || memory > self.shared.options.memory_bytes / 2
    }

    /// The next job on memory trees, its inputs frozen; `None` if there is nothing to do.
    pub(crate) fn next_memory_job(&mut self, flush: bool) -> Option<Job> {
        let runs = self.loose_runs();
        // Runs frozen by a job in hand would be missing from a flush, which must take all.
        let all_loose = self.entries.iter().filter(|e| e.part.run().is_some()).count() == runs.len();
        if (flush || self.flush_due()) && all_loose && self.refuses.is_none() {
            // A flush without rows still moves the manifest on, so that a log of deletions can go.
            if !runs.is_empty() || self.position > self.manifest.flushed {
                return Some(self.freeze(Work::Flush { flushed: self.position }, &runs));
            }
            self.flush_wanted = false;
        }
        let mut by_tier: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for i in runs {
            by_tier.entry(tier_of(self.entries[i].part.rows)).or_default().push(i);
        }
        let all: Vec<usize> = by_tier.values().flatten().copied().collect();
        let chosen = match by_tier.into_values().find(|runs| runs.len() >= RUNS_MERGED) {
            Some(crowded) => crowded,
            None if all.len() > 1 && self.is_quiet(&all) => all,
            None => self.rotten_run(&all).into_iter().collect(),
        };
        (!chosen.is_empty()).then(|| self.freeze(Work::MergeRuns, &chosen))
    }

    /// A memory tree of which so much is dead that it is worth being built anew.
    fn rotten_run(&self, runs: &[usize]) -> Option<usize> {
        let floor = self.floor();
        let rotten = |e: &Entry| {
            let least = u64::from(e.part.rows).div_ceil(DEAD_SHARE).max(1);
            e.dead.count() >= least && e.dead.count_by(floor) >= least
        };
        runs.iter().copied().find(|i| rotten(&self.entries[*i]))
    }

    /// Whether writers have been away long enough for these memory trees to become one.
    fn is_quiet(&self, runs: &[usize]) -> bool {
        let rows: i64 = runs.iter().map(|&i| i64::from(self.entries[i].part.rows)).sum();
        self.shared.seams.clock.elapsed() - self.committed_at >= QUIET_US + rows * QUIET_ROW_US
    }

    /// The next merge of segments, its inputs frozen.
    pub(crate) fn next_segment_job(&mut self) -> Option<Job> {
        if self.refuses.is_some() {
            return None;
        }
        self.sweep_listed();
        let gone = self.gone_segments();
        let chosen = if gone.is_empty() { self.choose_segments() } else { Some(gone) };
        match chosen {
            Some(chosen) => Some(self.freeze(Work::MergeSegments, &chosen)),
            None => self.next_rebuild().or_else(|| self.next_rest()),
        }
    }

    /// Segments of which nothing is left that a snapshot needs: their files go without being read.
    fn gone_segments(&self) -> Vec<usize> {
        let floor = self.floor();
        let gone = |e: &Entry| {
            self.segments.contains_key(&e.part.number) && !self.frozen.contains(&e.part.number) && is_gone(e, floor)
        };
        (0..self.entries.len()).filter(|i| gone(&self.entries[*i])).collect()
    }

    /// The number up to which no snapshot needs what is dead.
    fn floor(&self) -> u64 {
        self.shared.horizon.floor(self.shared.seams.clock.elapsed(), Seq::end_of(self.position).0)
    }

    fn choose_segments(&self) -> Option<Vec<usize>> {
        struct Run {
            entries: Vec<usize>,
            rows: u64,
            dead: u64,
            range: Range,
        }
        let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
        for (i, e) in self.entries.iter().enumerate() {
            let Some(meta) = self.segments.get(&e.part.number) else { continue };
            if self.frozen.contains(&e.part.number) || self.unmergeable.contains(&e.part.number) {
                continue;
            }
            let run = runs.entry(meta.run).or_insert(Run { entries: Vec::new(), rows: 0, dead: 0, range: meta.range });
            run.entries.push(i);
            run.rows += u64::from(meta.rows);
            run.dead += e.dead.count();
        }
        let runs: Vec<Run> = runs.into_values().collect();
        let tier = |run: &Run| run.rows.max(1).ilog2() / RUNS_MERGED.ilog2();
        // Narrow ranges first: what is put right there need not be looked at again further up.
        let mut ranges: Vec<Range> = runs.iter().map(|r| r.range).collect();
        ranges.sort_unstable();
        ranges.dedup();
        for range in ranges {
            let over: Vec<&Run> = runs.iter().filter(|r| r.range.holds(&range)).collect();
            let mut tiers: BTreeMap<u32, usize> = BTreeMap::new();
            over.iter().for_each(|r| *tiers.entry(tier(r)).or_default() += 1);
            for (crowded, _) in tiers.iter().filter(|(_, n)| **n >= RUNS_MERGED) {
                let widest = over.iter().filter(|r| tier(r) <= *crowded).map(|r| r.range).max().unwrap_or(range);
                let taken: Vec<&Run> = runs
                    .iter()
                    .filter(|r| {
                        let chosen = tier(r) <= *crowded && r.range.holds(&range);
                        chosen || (tier(r) < *crowded && widest.holds(&r.range))
                    })
                    .collect();
                if taken.iter().map(|r| r.rows).sum::<u64>() <= MERGE_ROWS_MAX {
                    return Some(taken.iter().flat_map(|r| r.entries.iter().copied()).collect());
                }
            }
        }
        // Only what no snapshot needs any more can be dropped.
        let floor = self.floor();
        let rotten = runs.iter().find(|r| {
            let gone = || r.entries.iter().map(|i| self.entries[*i].dead.count_by(floor)).sum::<u64>();
            r.dead * DEAD_SHARE >= r.rows && r.rows <= MERGE_ROWS_MAX && gone() * DEAD_SHARE >= r.rows
        });
        rotten.map(|r| r.entries.clone())
    }

    pub(crate) fn freeze(&mut self, work: Work, entries: &[usize]) -> Job {
        let inputs: Vec<Entry> = entries.iter().map(|i| self.entries[*i].clone()).collect();
        self.frozen.extend(inputs.iter().map(|e| e.part.number));
        let floor = self.floor_for(&inputs);
        if self.manifest.schema.mode == Mode::Latest {
            // Lets hidden rows settle, of which there are always some.
            let current = Seq::end_of(self.position).0;
            self.shared.horizon.drop_below(self.shared.seams.clock.elapsed(), current);
        }
        Job { work, inputs, floor, context: self.context.clone() }
    }

    fn thaw(&mut self, job: &Job) {
        self.frozen.retain(|number| job.inputs.iter().all(|e| e.part.number != *number));
    }

    /// Puts the outcome of a job in the place of its inputs. On an error the inputs stay.
    pub(crate) fn install(&mut self, job: Job, output: Result<Output, StoreError>) -> Result<(), StoreError> {
        self.thaw(&job);
        if let Err(StoreError::Corrupt { path, .. }) = &output {
            self.set_aside(&job, path);
        }
        let result = match output? {
            Output::Rest(rest) => self.install_rest(&job, rest),
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
                    entry(p, dead, hidden)
                }));
                Ok(())
            }
            Output::Segments(merged, parts) => self.install_segments(&job, merged, parts),
        };
        self.publish();
        result
    }

    /// Leaves a segment that turned out to be damaged out of merges: its good blocks stay served where they are, and
    /// the merge is not tried again and again.
    fn set_aside(&mut self, job: &Job, path: &Path) {
        let resting = matches!(job.work, Work::Rest { .. });
        for input in &job.inputs {
            let damaged = input.part.segment().is_some_and(|s| s.has_file(path));
            if !damaged && !resting {
                continue;
            }
            self.unmergeable.push(input.part.number);
            let path = path.to_owned();
            if damaged {
                let detail = "part of it is damaged, found by a merge; what is good stays served".to_owned();
                self.problems.push(Problem { path, detail });
            } else {
                let detail = "it did not come out as the segment is; that stays served as it was".to_owned();
                self.notes.push(Problem { path, detail });
            }
        }
        self.publish();
    }

    /// Dead and hidden rows of the outputs: those of the inputs as they are now, what changed during the job included.
    fn marks_now(&self, job: &Job, maps: &RowMaps, rows: &[u32]) -> Vec<(DeadRows, DeadRows)> {
        let now: HashMap<u64, &Entry> = self.entries.iter().map(|e| (e.part.number, e)).collect();
        let inputs: Vec<&Entry> = job.inputs.iter().map(|e| now.get(&e.part.number).copied().unwrap_or(e)).collect();
        let mut dead = DeadRows::moved(inputs.iter().map(|e| e.dead.as_ref()), maps, rows);
        let mut hidden = DeadRows::moved(inputs.iter().map(|e| e.hidden.as_ref()), maps, rows);
        let settled = self.settled();
        dead.iter_mut().chain(&mut hidden).for_each(|marks| marks.settle(settled));
        dead.into_iter().zip(hidden).collect()
    }

    /// The number up to which deaths need not be told apart. What is settled has one number, and must not pass what the
    /// manifest keeps: the log has the rest.
    fn settled(&self) -> u64 {
        self.shared.horizon.dropped().min(Seq::end_of(self.manifest.flushed).0)
    }

    fn install_segments(&mut self, job: &Job, merged: Merged, parts: Vec<Part>) -> Result<(), StoreError> {
        let rows: Vec<u32> = parts.iter().map(|p| p.rows).collect();
        let marks = self.marks_now(job, &merged.maps, &rows);
        let is_input = |e: &Entry| job.inputs.iter().any(|i| i.part.number == e.part.number);
        let mut runs: HashMap<Range, u64> = HashMap::new();
        let mut segments = self.segments.clone();
        segments.retain(|number, _| job.inputs.iter().all(|i| i.part.number != *number));
        let mut fresh = Vec::new();
        for (((file, range, written), part), (dead, hidden)) in merged.segments.iter().zip(parts).zip(marks) {
            let mut run = *runs.entry(*range).or_insert(*file);
            if matches!(job.work, Work::Fold { .. }) {
                // What is dead already is to go by itself, as soon as no snapshot needs it.
                run = *file;
            }
            let meta = SegmentEntry {
                file: *file,
                run,
                rows: written.rows,
                bytes: written.bytes,
                range: *range,
                dead: None,
                rest: None,
            };
            segments.insert(part.number, meta);
            fresh.push(entry(part, dead, hidden));
        }
        let kept = self.entries.iter().filter(|e| !is_input(e)).cloned();
        let mut entries: Vec<Entry> = fresh.into_iter().chain(kept).collect();
        if self.manifest.schema.mode == Mode::Latest {
            // In mode latest most rows come to be hidden: what is old enough costs a bit each.
            let settled = self.settled();
            entries.iter_mut().filter(|e| e.hidden.can_settle(settled)).for_each(|e| {
                Arc::make_mut(&mut e.hidden).settle(settled);
            });
        }
        let flushed = match job.work {
            Work::Flush { flushed } => flushed,
            _ => self.manifest.flushed,
        };
        let saved = self.save(&entries, &mut segments, flushed);
        let manifest = match saved {
            Ok(manifest) => manifest,
            Err(failed) => {
                if failed.unknown {
                    // Either manifest may be the one that a restart finds: the files of both stay.
                    self.refuse(format!("{}: restart once the disk is well", failed.error));
                } else {
                    discard(&self.shared, &merged);
                }
                return Err(failed.error);
            }
        };
        let old = std::mem::replace(&mut self.manifest, manifest);
        for input in &job.inputs {
            let (Some(segment), Some(meta)) = (input.part.segment(), self.segments.get(&input.part.number)) else {
                continue;
            };
            segment.retire(self.manifest.listed.iter().any(|(file, _)| *file == meta.file));
        }
        self.entries = entries;
        self.segments = segments;
        self.remove_sidecars(&old);
        if let Work::Flush { flushed } = job.work {
            self.keys.saved(flushed);
            self.flush_wanted = false;
            if let Some(log) = &mut self.log {
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
    ) -> Result<Manifest, SaveError> {
        let disk = self.shared.disk.as_ref();
        let clean = |error: StoreError| SaveError { error, unknown: false };
        self.save_dead(entries, segments, flushed).map_err(clean)?;
        let hidden = self.save_hidden(entries, segments, flushed).map_err(clean)?;
        let now = self.shared.seams.clock.now();
        let file = self.shared.number_file();
        let keys = if flushed == self.manifest.flushed {
            self.manifest.keys.clone()
        } else {
            let dir = self.shared.segments_dir();
            self.keys.save(disk, &dir, &self.manifest.keys, flushed, now, file).map_err(clean)?
        };
        let manifest = Manifest {
            flushed,
            dropped_seq: self.shared.horizon.dropped(),
            next_file: self.shared.next_file.load(Ordering::Relaxed),
            segments: segments.values().chain(&self.damaged).cloned().collect(),
            keys,
            hidden,
            ..self.manifest.clone()
        };
        match self.write_manifest(&manifest) {
            Ok(()) => Ok(manifest),
            Err(error) => {
                // Once the new manifest may stand in its place, nobody knows which one a crash would leave.
                let unknown = match Manifest::read(disk, &self.shared.dir) {
                    Ok(found) => found != self.manifest,
                    Err(_) => true,
                };
                Err(SaveError { error, unknown })
            }
        }
    }

    /// Writes the dead rows of segments that changed since they were last written, all into one file.
    fn save_dead(
        &self,
        entries: &[Entry],
        segments: &mut BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<(), StoreError> {
        let last = Seq::end_of(flushed);
        let mut changed = Vec::new();
        for e in entries.iter().filter(|e| e.dead.count() > 0) {
            let Some(meta) = segments.get(&e.part.number) else { continue };
            let count = e.dead.count_by(last.0);
            if count != meta.dead.map_or(0, |(_, count)| count) {
                changed.push((e, count));
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        let file = self.shared.number_file();
        let mut content = Vec::new();
        put_u32(&mut content, changed.len() as u32);
        for (e, count) in changed {
            let Some(meta) = segments.get_mut(&e.part.number) else { continue };
            put_u64(&mut content, meta.file);
            put_bytes(&mut content, &e.dead.encode(last).map_err(Invalid::new)?);
            meta.dead = Some((file, count));
        }
        let path = self.shared.segments_dir().join(dead_name(file));
        replace_file(self.shared.disk.as_ref(), &path, &frame(DEAD_MAGIC, DEAD_VERSION, &content))
    }

    /// Writes the hidden rows of all segments into one file, in collections of mode `latest`.
    fn save_hidden(
        &self,
        entries: &[Entry],
        segments: &BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<Option<u64>, StoreError> {
        let some: Vec<_> = entries
            .iter()
            .filter(|e| !e.hidden.is_empty())
            .filter_map(|e| Some((segments.get(&e.part.number)?.file, &e.hidden)))
            .collect();
        if some.is_empty() {
            return Ok(None);
        }
        let mut content = Vec::new();
        put_u32(&mut content, some.len() as u32);
        for (segment, hidden) in some {
            put_u64(&mut content, segment);
            put_bytes(&mut content, &hidden.encode(Seq::end_of(flushed)).map_err(Invalid::new)?);
        }
        let file = self.shared.number_file();
        let path = self.shared.segments_dir().join(hidden_name(file));
        replace_file(self.shared.disk.as_ref(), &path, &frame(HIDDEN_MAGIC, HIDDEN_VERSION, &content))?;
        Ok(Some(file))
    }

    /// Removes files of dead rows and keys that the manifest does not name any more.
    pub(crate) fn remove_sidecars(&self, old: &Manifest) {
        let named = sidecars(&self.manifest);
        for name in sidecars(old).difference(&named) {
            let path = self.shared.segments_dir().join(name);
            if let Err(e) = self.shared.disk.remove(&path) {
                tracing::warn!(path = %path.display(), error = %e, "could not remove a file that is not needed any more");
            }
        }
    }
}

pub(crate) struct SaveError {
    pub(crate) error: StoreError,
    /// Whether the new manifest may be in place.
    pub(crate) unknown: bool,
}

/// Files of dead rows and keys that a manifest names.
pub(crate) fn sidecars(manifest: &Manifest) -> BTreeSet<String> {
    let dead = manifest.segments.iter().filter_map(|s| s.dead).map(|(file, _)| dead_name(file));
    let hidden = manifest.hidden.map(hidden_name);
    dead.chain(manifest.keys.iter().map(|k| keys_name(k.file))).chain(hidden).collect()
}

/// All files in the folder of segments that a manifest names at this time.
pub(crate) fn files_of(manifest: &Manifest, now: i64) -> BTreeSet<String> {
    let mut files = sidecars(manifest);
    files.extend(manifest.segments.iter().flat_map(|s| [segment_name(s.file), rows_name(s.file)]));
    files.extend(manifest.segments.iter().filter(|s| s.rest.is_some()).map(|s| rest_name(s.file)));
    files.extend(manifest.listed.iter().filter(|(_, until)| *until > now).map(|(file, _)| rest_name(*file)));
    files
}

/// Reads the hidden rows of all segments, by file.
pub(crate) fn read_hidden(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
) -> Result<HashMap<u64, DeadRows>, StoreError> {
    let Some(file) = manifest.hidden else { return Ok(HashMap::new()) };
    let path = dir.join(hidden_name(file));
    let bytes = read_file(disk, &path)?;
    let content = unframe(&path, HIDDEN_MAGIC, HIDDEN_VERSION, &bytes)?;
    let parse = || -> Result<HashMap<u64, DeadRows>, String> {
        let mut reader = crate::codec::Reader::new(content);
        let mut found = HashMap::new();
        for _ in 0..reader.u32()? {
            let (segment, bytes) = (reader.u64()?, reader.bytes()?);
            let meta = manifest.segments.iter().find(|s| s.file == segment);
            let meta = meta.ok_or_else(|| format!("the manifest has no segment {}", segment_name(segment)))?;
            found.insert(segment, DeadRows::decode(bytes, meta.rows)?);
        }
        reader.end()?;
        Ok(found)
    };
    parse().map_err(|e| StoreError::corrupt(&path, e))
}

/// Reads the dead rows of one segment from the file that its manifest names.
pub(crate) fn read_dead(disk: &dyn Disk, dir: &Path, meta: &SegmentEntry) -> Result<DeadRows, StoreError> {
    let Some((file, count)) = meta.dead else { return Ok(DeadRows::default()) };
    let path = dir.join(dead_name(file));
    let bytes = read_file(disk, &path)?;
    let content = unframe(&path, DEAD_MAGIC, DEAD_VERSION, &bytes)?;
    let parse = || -> Result<DeadRows, String> {
        let mut reader = crate::codec::Reader::new(content);
        for _ in 0..reader.u32()? {
            let (segment, bytes) = (reader.u64()?, reader.bytes()?);
            if segment == meta.file {
                let dead = DeadRows::decode(bytes, meta.rows)?;
                let found = dead.count();
                return if found == count { Ok(dead) } else { Err(format!("{found} dead rows instead of {count}")) };
            }
        }
        Err(format!("the segment {} is not in it", segment_name(meta.file)))
    };
    parse().map_err(|e| StoreError::corrupt(&path, e))
}

#[cfg(test)]
mod tests {
    use crate::seams::{ManualClock, MemoryDisk, Seams, SeededRandom};
    use crate::{Options, Settings, Store, Write};
    use meridian_model::builder::Value;
    use meridian_model::{Batch, BatchBuilder, Field, FieldType, IdRole, Schema, TimeRole};
    use std::sync::Arc;

    fn batch(schema: &Arc<Schema>, ids: std::ops::Range<i64>) -> Batch {
        let mut builder = BatchBuilder::new(schema.clone());
        for id in ids {
            builder.set_id(id.to_string()).unwrap();
            builder.set(0, Value::Time(id * 86_400_000_000)).unwrap();
            builder.end_event().unwrap();
        }
        builder.finish().unwrap()
    }

    /// Events that are replaced or deleted while a job has their parts in hand must not come back when it is done.
    #[test]
    fn deaths_during_a_job_are_carried_over() {
        let seams = Seams {
            disk: Arc::new(MemoryDisk::new()),
            clock: Arc::new(ManualClock::new(0)),
            random: Arc::new(SeededRandom::new(1)),
        };
        let options = Options { background: false, segment_rows_min: 16, ..Options::at("/data") };
        let store = Store::open(options.clone(), seams.clone()).unwrap();
        let at = Field { name: "at".into(), kind: FieldType::Time, required: true, title: None };
        let schema = Schema { fields: vec![at], time: TimeRole::Instant(0), id: IdRole::Given, ..Schema::default() };
        let c = store.create("t", "c", schema, Settings::default()).unwrap();
        // A flush, then a merge of segments.
        for round in 0..2 {
            let first = round * 1000;
            c.write(Write::new(batch(&c.schema(), first..first + 500))).unwrap();
            if round == 1 {
                for _ in 0..4 {
                    c.flush().unwrap();
                    c.write(Write::new(batch(&c.schema(), first..first + 500)).replacing()).unwrap();
                }
                c.flush().unwrap();
            }
            let job = match round {
                0 => c.core.lock().next_memory_job(true),
                _ => c.core.lock().next_segment_job(),
            };
            let job = job.unwrap();
            let output = job.run(&c.shared, &c.stop);
            c.write(Write::new(batch(&c.schema(), first + 100..first + 200)).replacing()).unwrap();
            let gone: Vec<String> = (first + 150..first + 300).map(|id| id.to_string()).collect();
            assert_eq!(c.delete(&gone).unwrap().deleted, 150);
            let before = c.snapshot();
            c.core.lock().install(job, output).unwrap();
            for snapshot in [before, c.snapshot()] {
                for id in first..first + 500 {
                    let there = snapshot.find(&id.to_string()).unwrap().is_some();
                    assert_eq!(there, !(first + 150..first + 300).contains(&id), "{id} in round {round}");
                }
            }
            assert_eq!(c.stats().events, 350 * (round as u64 + 1));
        }
        drop((store, c));
        let store = Store::open(options, seams).unwrap();
        assert_eq!(store.collection("t", "c").unwrap().stats().events, 700);
        assert_eq!(store.check(), []);
    }
}
