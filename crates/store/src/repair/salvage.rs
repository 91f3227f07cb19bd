//! Repairs a collection whose manifest is good but whose other files are damaged.
//!
//! The readable parts are kept: intact blocks of segments, recorded deaths, idempotency keys and records of the log.
//! Segments that cannot be opened are left out. All of it goes into segments, under a manifest that covers every
//! position that may have been acknowledged. Damaged files are set aside once it is written.

use super::{PartitionRepair, SEGMENTS};
use crate::catalog::disk::{MANIFEST, read_manifest};
use crate::catalog::sidecars::{dead_of_all, files_of, read_dead, read_hidden};
use crate::error::StoreError;
use crate::ingest::idempotency;
use crate::ingest::partition::Partition;
use crate::log::Log;
use crate::manifest::{Manifest, SegmentEntry, dead_name, keys_name, segment_name};
use crate::part::dead::DeadRows;
use crate::part::{CHUNK_ROWS, CacheFill};
use crate::recovery::leftovers::number_of;
use crate::recovery::log_dir;
use arrow_array::cast::AsArray;
use meridian_model::{Mode, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Positions left free behind the last known one of a damaged log, for lost writes: more than a log file holds.
const POSITIONS_LEFT_FREE: u64 = 1 << 26;

impl PartitionRepair<'_> {
    /// Replaces the manifest with one of the readable parts, and sets the rest aside.
    pub(super) fn salvage(&mut self) -> Result<(), StoreError> {
        let manifest = read_manifest(self.disk(), &self.dir.join(MANIFEST))?;
        // Earlier snapshots may have shown events that are gone.
        let dropped_seq = Seq::end_of(manifest.flushed).0;
        let mut partition = self.prepare(Manifest { copied: true, dropped_seq, ..manifest })?;
        partition.open_files(false)?;
        // Not damage: the disk failed or a newer program wrote the file, so it may be intact.
        partition.unread.take().map_or(Ok(()), Err)?;
        partition.problems.drain(..).for_each(|problem| self.report.done(problem.to_string()));
        self.leave_out_segments(&mut partition);
        self.leave_out_keys(&mut partition);
        let mut remarked = self.find_deaths(&mut partition)?;
        remarked |= self.cut_out(&mut partition)?;
        partition.manifest.segments = partition.segments.values().cloned().collect();
        if partition.manifest.schema.mode == Mode::Latest && remarked {
            partition.manifest.hidden = None;
            super::marks::hide(&mut partition)?;
        }
        partition.refuses = None;
        let cut = self.replay(&mut partition)?;
        self.keep_manifests()?;
        settle(&mut partition)?;
        self.report.done("a new manifest names what reads".to_owned());
        if cut {
            self.keep_copy(&log_dir(self.dir), "NEWEST")?;
            Log::cover(self.disk(), &log_dir(self.dir))?;
            self.set_aside("log", |name| name.ends_with(".log"))?;
        }
        let files = files_of(&partition.manifest);
        self.set_aside(SEGMENTS, |name| !files.contains(name))
    }

    fn leave_out_segments(&mut self, partition: &mut Partition) {
        for meta in std::mem::take(&mut partition.damaged) {
            let live = u64::from(meta.rows) - meta.dead.map_or(0, |(_, dead)| dead);
            self.report.missing(format!("the {live} events of segment {}", segment_name(meta.file)));
        }
    }

    fn leave_out_keys(&mut self, partition: &mut Partition) {
        let objects = partition.shared.objects.clone();
        let lost = |file| idempotency::read(objects.as_ref(), &keys_name(file)).is_err();
        partition.manifest.keys.retain(|entry| {
            let lost = lost(entry.file);
            if lost {
                let (count, name) = (entry.count, keys_name(entry.file));
                self.report.missing(format!(
                    "{count} idempotency keys of {name}: what is sent again under one of them may be stored twice"
                ));
            }
            !lost
        });
    }

    /// Computes the dead rows of segments whose file of them is unreadable: those in an older file, and rows whose id a
    /// later event has. Events deleted since that older file reappear. Returns true if any file of dead or hidden rows
    /// was unreadable.
    fn find_deaths(&mut self, partition: &mut Partition) -> Result<bool, StoreError> {
        let objects = partition.shared.objects.clone();
        let lost = |meta: &SegmentEntry| read_dead(objects.as_ref(), meta).is_err();
        let dead_of = |(number, meta): (&u64, &SegmentEntry)| lost(meta).then_some((*number, meta.dead?));
        // By part number: the file of its dead rows, and their number.
        let lost: BTreeMap<u64, (u64, u64)> = partition.segments.iter().filter_map(dead_of).collect();
        for (&number, &(file, expected)) in &lost {
            let Some(at) = partition.entries.iter().position(|entry| entry.part.number == number) else { continue };
            let Some(meta) = partition.segments.get_mut(&number) else { continue };
            meta.dead = None;
            let mut dead = self.older_deaths(meta, file)?;
            let name = segment_name(meta.file);
            kill_replaced(partition, at, &mut dead);
            let found = dead.count();
            partition.entries[at].dead = Arc::new(dead);
            self.report.done(format!("{found} of {expected} rows of {name} are known to be deleted or replaced"));
            if found < expected {
                let back = expected - found;
                self.report
                    .missing(format!("deaths of {back} events of {name}: those are back, see {}", dead_name(file)));
            }
        }
        Ok(!lost.is_empty() || read_hidden(objects.as_ref(), &partition.manifest).is_err())
    }

    /// Returns the deaths of a segment in the newest earlier file that has them: deaths are only ever added.
    fn older_deaths(&self, meta: &SegmentEntry, file: u64) -> Result<DeadRows, StoreError> {
        let dir = self.dir.join("segments");
        let mut older: Vec<u64> = crate::seams::files::names(self.disk(), &dir)?
            .iter()
            .filter(|name| name.ends_with(".dead"))
            .filter_map(|name| number_of(name).filter(|number| *number < file))
            .collect();
        older.sort_unstable();
        let objects = self.objects();
        let rows = |segment| (segment == meta.file).then_some(meta.rows);
        let read = |number: u64| dead_of_all(objects.as_ref(), &dead_name(number), rows).ok()?.remove(&meta.file);
        Ok(older.into_iter().rev().find_map(read).unwrap_or_default())
    }

    /// Replays the readable records of the log. Returns true if some are missing; then the files of the log are left as
    /// they are.
    fn replay(&mut self, partition: &mut Partition) -> Result<bool, StoreError> {
        let (disk, bytes) = (self.common.seams.disk.clone(), self.common.options.log_file_bytes);
        let flushed = partition.manifest.flushed;
        let (log, mut found) = Log::open(&disk, &log_dir(self.dir), bytes, flushed)?;
        if let Some(at) = found.damage.iter().position(|e| !e.is_damage()) {
            return Err(found.damage.swap_remove(at));
        }
        let gaps = found.gaps(flushed);
        partition.replay(std::mem::take(&mut found.records))?;
        if found.damage.is_empty() && partition.problems.is_empty() {
            partition.log = Some(Box::new(log));
            return Ok(false);
        }
        found.damage.iter().for_each(|e| self.report.done(e.to_string()));
        for (first, last) in gaps {
            self.report.missing(match last - first {
                0 => format!("the write {first}"),
                more => format!("{} writes, {first} to {last}", more + 1),
            });
        }
        let last = partition.position.max(found.claimed);
        if found.end_unknown {
            self.report.missing(format!("writes after {last}, if there were any: no file records them"));
        }
        // Records that cannot be replayed.
        partition.problems.drain(..).for_each(|problem| self.report.missing(problem.to_string()));
        partition.refuses = None;
        partition.position = last + POSITIONS_LEFT_FREE;
        self.report.done(format!(
            "the next write gets position {}, above all that were acknowledged",
            last + POSITIONS_LEFT_FREE + 1
        ));
        Ok(true)
    }
}

/// Kills the rows of an entry whose id a later event has, each from that event on. Unreadable rows are skipped.
fn kill_replaced(partition: &Partition, at: usize, dead: &mut DeadRows) {
    let (context, part) = (&partition.context, &partition.entries[at].part);
    let Some(column) = context.layout.id else { return };
    for from in (0..part.rows).step_by(CHUNK_ROWS as usize) {
        let rows = from..part.rows.min(from + CHUNK_ROWS);
        let (ids, seqs) = (part.column(column, rows.clone(), CacheFill::Pass), part.seqs(rows.clone()));
        let (Ok(Some(ids)), Ok(seqs)) = (ids, seqs) else { continue };
        let Some(ids) = ids.as_string_opt::<i32>() else { continue };
        for (i, seq) in seqs.into_iter().enumerate() {
            let mut replaced = None;
            for entry in &partition.entries {
                let found = entry.part.find(context.rule, &context.layout, ids.value(i)).unwrap_or_default();
                replaced = found.into_iter().map(|(_, other)| other).filter(|other| *other > seq).chain(replaced).min();
            }
            replaced.map(|by| dead.kill(rows.start + i as u32, by));
        }
    }
}

/// Flushes everything in memory into segments, under a new manifest.
fn settle(partition: &mut Partition) -> Result<(), StoreError> {
    if let Some(job) = partition.next_memory_job(true) {
        let output = job.run(&partition.shared, &AtomicBool::new(false));
        return partition.install(job, output);
    }
    let mut segments = partition.segments.clone();
    let saved = partition.save(&partition.entries, &mut segments, partition.manifest.flushed);
    partition.manifest = saved?;
    Ok(())
}
