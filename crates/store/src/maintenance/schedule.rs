//! Flushes and merges: chosen under the partition's lock, run outside of it, and installed by `install.rs`.
//!
//! The schedule:
//! - **Flush**: on request, or when memory trees of all collections exceed half of `memory_bytes` (the largest first).
//!   Also when the log exceeds `log_bytes`, or a write is as old as `staleness_max`. Also when no write came for
//!   [`IDLE_US`] and the log has [`IDLE_BYTES`], so that an idle collection takes little memory and opens at once. Also
//!   immediately if the log has lost acknowledged writes. All memory trees go into segments together.
//! - **Merge of memory trees**, of at most a quarter of `memory_bytes`. It takes four of similar size that were too
//!   large for a writer to merge itself. Also all of them, once writers have been quiet for [`QUIET_US`] and
//!   [`QUIET_ROW_US`] per row, because queries read every tree. The required quiet is several times the duration of the
//!   merge, so a trickle of writes cannot keep it busy.
//! - **Merge of segments**: runs chosen by `choice.rs`. A run that is one third dead is rewritten alone, and so is such
//!   a memory tree. A segment without live rows is dropped without being read.
//! - **Rewriting**: if a rebuilt index cannot be kept under its name (in a bucket), its run is merged alone.
//! - **Archive**: a segment of `archive_rows_min` rows is written as GeoParquet once writers have been quiet for
//!   [`ARCHIVE_QUIET_US`]. If no merge will touch it again, it is written at once. Smaller segments are archived only
//!   when the files are listed.
//!
//! The work terminates: the output ranges of a merge are disjoint, so no period is covered by more runs than before.
//! The chosen period is covered by at least three fewer.

use super::job::{Job, Work, is_gone};
use crate::ingest::partition::Partition;
use crate::manifest::segment_name;
use crate::merge::choice::{self, DEEP, RUNS_MERGED, Run};
use crate::part::Entry;
use meridian_model::{Mode, Seq};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Min quiet, in microseconds, before memory trees of different sizes become one.
const QUIET_US: i64 = 1_000_000;
/// Additional quiet for each row to merge: about ten times the duration of merging it.
const QUIET_ROW_US: i64 = 5;
/// Quiet, in microseconds, before memory trees are flushed although there is room.
const IDLE_US: i64 = 60_000_000;
/// Min log bytes for an idle flush, so that a trickle of events does not create many small segments.
const IDLE_BYTES: u64 = 1 << 20;
/// A run is rewritten when one in this many of its rows is dead.
const DEAD_SHARE: u64 = 3;
/// Quiet, in microseconds, before segments that merges may still touch are archived.
pub(crate) const ARCHIVE_QUIET_US: i64 = 10_000_000;

impl Partition {
    /// Returns true if memory trees should be flushed because of the collection's own log and memory.
    fn flush_due(&self) -> bool {
        let tail = self.log.as_ref().map_or(0, |log| log.tail_bytes());
        // An idle collection is flushed too: otherwise every restart would replay its log, and it would hold memory
        // permanently.
        let idle = tail >= IDLE_BYTES && self.shared.seams.clock.elapsed() - self.committed_at >= IDLE_US;
        // Only the collection's own memory. The threads compare the sum of all collections and set `flush_wanted` on
        // the largest.
        let memory = self.shared.memory.load(Ordering::Acquire) as u64;
        let full = tail > self.shared.options.log_bytes || memory > self.shared.options.memory_bytes / 2;
        self.flush_wanted || full || idle || self.is_stale() || self.log_wants_flush()
    }

    pub(crate) fn log_wants_flush(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.wants_flush())
    }

    /// Returns true if a write has waited for its flush for the max age: readers of flushed data may be behind by that
    /// much.
    fn is_stale(&self) -> bool {
        let (Some(most), Some(taken)) = (self.shared.options.staleness_max, self.behind()) else { return false };
        // By the machine's clock: an earlier process may have taken the write.
        let age = self.shared.seams.clock.now().saturating_sub(taken);
        age >= i64::try_from(most.as_micros()).unwrap_or(i64::MAX)
    }

    /// Returns the next job on memory trees, with its inputs frozen; `None` if there is nothing to do.
    pub(crate) fn next_memory_job(&mut self, flush: bool) -> Option<Job> {
        self.next_flush(flush).or_else(|| self.next_run_merge())
    }

    /// Returns a flush, if one is due or `flush` asks for it, with its inputs frozen.
    pub(crate) fn next_flush(&mut self, flush: bool) -> Option<Job> {
        let runs = self.loose_runs();
        // Runs frozen by a running job would be missing from a flush, which must take all.
        let all_loose = self.entries.iter().filter(|e| e.part.run().is_some()).count() == runs.len();
        if !(flush || self.flush_due()) || !all_loose || self.refuses.is_some() {
            return None;
        }
        // A flush without rows still advances the manifest, so that a log of deletions can be released. The same holds
        // if the log needs a manifest to continue.
        if !runs.is_empty() || self.position > self.manifest.flushed || self.log_wants_flush() {
            return Some(self.freeze(Work::Flush { flushed: self.position }, &runs));
        }
        // Nothing to flush: unless the request is cleared, the thread would ask again immediately, forever.
        self.flush_wanted = false;
        None
    }

    /// Returns a merge of memory trees, with its inputs frozen.
    pub(crate) fn next_run_merge(&mut self) -> Option<Job> {
        if self.is_halted() {
            return None;
        }
        let runs = self.loose_runs();
        let mut by_tier: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for i in runs {
            by_tier.entry(choice::tier(u64::from(self.entries[i].part.rows))).or_default().push(i);
        }
        let all: Vec<usize> = by_tier.values().flatten().copied().collect();
        // Similar sizes first: each row is then merged a logarithmic number of times.
        let chosen = match by_tier.into_values().find(|runs| runs.len() >= RUNS_MERGED) {
            Some(crowded) => crowded,
            None if all.len() > 1 && self.is_quiet(&all) => all,
            None => self.rotten_run(&all).into_iter().collect(),
        };
        let fits = !chosen.is_empty() && self.may_merge_in_memory(&chosen);
        fits.then(|| self.freeze(Work::MergeRuns, &chosen))
    }

    /// Returns a memory tree with enough dead rows for a rebuild.
    fn rotten_run(&self, runs: &[usize]) -> Option<usize> {
        let floor = self.floor();
        let rotten = |e: &Entry| {
            // Counted twice: a sum of all deaths is cheap and excludes most parts; deaths below the floor need a
            // search.
            let wanted = u64::from(e.part.rows).div_ceil(DEAD_SHARE).max(1);
            e.dead.count() >= wanted && e.dead.count_by(floor) >= wanted
        };
        runs.iter().copied().find(|i| rotten(&self.entries[*i]))
    }

    /// Returns true if writers have been quiet long enough for these memory trees to become one.
    fn is_quiet(&self, runs: &[usize]) -> bool {
        let rows: i64 = runs.iter().map(|&i| i64::from(self.entries[i].part.rows)).sum();
        self.shared.seams.clock.elapsed() - self.committed_at >= QUIET_US + rows * QUIET_ROW_US
    }

    /// Returns the next job on segments, with its inputs frozen: a merge, else a repair or an archive.
    pub(crate) fn next_segment_job(&mut self) -> Option<Job> {
        self.next_segment_merge().or_else(|| self.next_repair_or_archive())
    }

    /// Returns the next merge of segments, with its inputs frozen.
    pub(crate) fn next_segment_merge(&mut self) -> Option<Job> {
        // A collection that accepts no writes may have lost data: merging could drop files that a repair needs.
        if self.refuses.is_some() {
            return None;
        }
        self.sweep_listed();
        // Segments without a live row cost nothing to drop, so they go before any merge.
        let gone = self.gone_segments();
        let chosen = if gone.is_empty() { self.choose_segments() } else { Some(gone) };
        chosen.map(|chosen| self.freeze(Work::MergeSegments, &chosen))
    }

    /// Returns the next repair or archive of a segment, with its input frozen.
    pub(crate) fn next_repair_or_archive(&mut self) -> Option<Job> {
        // As for merges.
        if self.refuses.is_some() {
            return None;
        }
        // In order of risk: a damaged archive first, as its Arrow rows are the only good copy, then damaged indexes,
        // then new archives.
        self.next_unarchiving()
            .or_else(|| self.next_rebuild())
            .or_else(|| self.next_rewrite())
            .or_else(|| self.next_archiving())
    }

    /// Returns the segments without rows that a snapshot needs: their files are removed without being read.
    fn gone_segments(&self) -> Vec<usize> {
        let floor = self.floor();
        let gone = |e: &Entry| {
            self.segments.contains_key(&e.part.number) && !self.frozen.contains(&e.part.number) && is_gone(e, floor)
        };
        (0..self.entries.len()).filter(|i| gone(&self.entries[*i])).collect()
    }

    /// Returns the number up to which no snapshot needs dead rows.
    fn floor(&self) -> u64 {
        self.shared.horizon.floor(self.shared.seams.clock.elapsed(), Seq::end_of(self.position).0)
    }

    /// Returns the segments grouped by run; without `all`, only those that can be merged now.
    fn runs(&self, all: bool) -> Vec<Run> {
        let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
        for (i, e) in self.entries.iter().enumerate() {
            let Some(meta) = self.segments.get(&e.part.number) else { continue };
            // `all` is for measuring: a query reads frozen and damaged runs like any other.
            if !all && (self.frozen.contains(&e.part.number) || self.unmergeable.contains(&e.part.number)) {
                continue;
            }
            let run = runs.entry(meta.run).or_insert(Run { segments: Vec::new(), rows: 0, dead: 0, range: meta.range });
            run.segments.push(i);
            run.rows += u64::from(meta.rows);
            run.dead += e.dead.count();
        }
        runs.into_values().collect()
    }

    /// Counts the runs that a query may read, and the max. Called after every change of segments.
    pub(crate) fn measure(&mut self) {
        let runs = self.runs(true);
        let rows = runs.iter().map(|run| run.rows).sum();
        self.depth = (choice::depth(&runs), choice::depth_bound(rows, self.shared.options.merge_rows_max));
    }

    fn choose_segments(&self) -> Option<Vec<usize>> {
        let (runs, most) = (self.runs(false), self.shared.options.merge_rows_max);
        // Crowded runs before dead rows: every query reads the runs, and a merge of them drops dead rows on the way.
        if let Some(chosen) = choice::choose(&runs, most) {
            return Some(chosen.iter().flat_map(|run| run.segments.iter().copied()).collect());
        }
        // Only rows that no snapshot needs any more can be dropped.
        let floor = self.floor();
        let rotten = runs.iter().find(|r| {
            let gone = || r.segments.iter().map(|i| self.entries[*i].dead.count_by(floor)).sum::<u64>();
            r.dead * DEAD_SHARE >= r.rows && r.rows <= most && gone() * DEAD_SHARE >= r.rows
        });
        rotten.map(|r| r.segments.clone())
    }

    /// Returns the next run to rewrite under other names, because the rebuilt index of a segment cannot be kept in its
    /// place.
    fn next_rewrite(&mut self) -> Option<Job> {
        let provisional = |i: &usize| {
            let meta = self.segments.get(&self.entries[*i].part.number);
            meta.is_some_and(|meta| self.shared.objects.is_provisional(&segment_name(meta.file)))
        };
        let most = self.shared.options.merge_rows_max;
        let found = self.runs(false).into_iter().find(|r| r.rows <= most && r.segments.iter().any(provisional))?;
        Some(self.freeze(Work::MergeSegments, &found.segments))
    }

    pub(crate) fn freeze(&mut self, work: Work, entries: &[usize]) -> Job {
        // Frozen parts are in one job at a time. Writes may still kill rows of them; the install carries those deaths
        // over.
        let inputs: Vec<Entry> = entries.iter().map(|i| self.entries[*i].clone()).collect();
        self.frozen.extend(inputs.iter().map(|e| e.part.number));
        // Fixed now: the job drops rows that only snapshots below the floor show, so those are refused from here on.
        let floor = self.floor_for(&inputs);
        if self.manifest.schema.mode == Mode::Latest {
            // Collapses old deaths of hidden rows, of which there are always some.
            let current = Seq::end_of(self.position).0;
            self.shared.horizon.drop_below(self.shared.seams.clock.elapsed(), current);
        }
        let urgent = match work {
            Work::Flush { .. } | Work::MergeRuns | Work::Fold { .. } => true,
            // Past this depth queries suffer more from the runs than from a merge that does not pause.
            Work::MergeSegments | Work::Rebuild { .. } | Work::Unarchive | Work::Archive { .. } => self.depth.0 >= DEEP,
        };
        Job { work, inputs, floor, urgent, context: self.context.clone() }
    }
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

    /// Events that are replaced or deleted while a job works on their parts must not reappear when it is done.
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
