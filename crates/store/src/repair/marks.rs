//! Recomputes which rows of segments are dead or hidden.

use super::PartitionRepair;
use crate::catalog::sidecars::dead_of_all;
use crate::error::StoreError;
use crate::ingest::partition::Partition;
use crate::ingest::stage::newest::{Object, object_in};
use crate::part::Entry;
use crate::part::dead::DeadRows;
use crate::part::{CHUNK_ROWS, PartView};
use crate::recovery::leftovers::number_of;
use crate::seams::files::names;
use meridian_model::{Mode, Projection, Seq};
use roaring::RoaringTreemap;
use std::collections::HashMap;
use std::sync::Arc;

/// The end of an event and its sequence number: the max among an object's events is its newest.
type Age = (i64, u64);

impl PartitionRepair<'_> {
    /// Marks the dead rows of a partition's segments, and the rows hidden by mode `latest`.
    pub(super) fn mark(&mut self, partition: &mut Partition) -> Result<(), StoreError> {
        self.read_dead(partition)?;
        let twice = kill_copies(partition)?;
        if twice > 0 {
            self.report.done(format!(
                "{twice} events stand in two segments, of a merge that was broken off or not cleared away: each is kept once"
            ));
            self.report
                .missing("deletions that such a merge had dealt with, if any: those events may be back".to_owned());
        }
        if partition.manifest.schema.mode == Mode::Latest {
            hide(partition)?;
        }
        Ok(())
    }

    /// Reads the dead rows of each segment from the newest file that has them: deaths are only ever added.
    fn read_dead(&mut self, partition: &mut Partition) -> Result<(), StoreError> {
        let rows: HashMap<u64, u32> = partition.segments.values().map(|meta| (meta.file, meta.rows)).collect();
        let (dir, objects) = (self.dir.join("segments"), self.objects());
        let mut files: Vec<String> = names(self.disk(), &dir)?.into_iter().filter(|n| n.ends_with(".dead")).collect();
        files.sort_by_key(|name| std::cmp::Reverse(number_of(name)));
        let mut dead: HashMap<u64, DeadRows> = HashMap::new();
        for name in files {
            match dead_of_all(objects.as_ref(), &name, |segment| rows.get(&segment).copied()) {
                Ok(found) => found.into_iter().for_each(|(segment, rows)| {
                    dead.entry(segment).or_insert(rows);
                }),
                // Not damage: a newer program wrote it, and a repair would lose its content.
                Err(newer @ StoreError::NewerFormat { .. }) => return Err(newer),
                Err(e) => {
                    self.report.missing(format!("deletions, so that deleted or replaced events may be back: {e}"))
                }
            }
        }
        for entry in &mut partition.entries {
            let file = partition.segments.get(&entry.part.number).map(|meta| meta.file);
            entry.dead = Arc::new(file.and_then(|file| dead.remove(&file)).unwrap_or_default());
        }
        let marked: u64 = partition.entries.iter().map(|entry| entry.dead.count()).sum();
        self.report.done(format!("{marked} events are deleted or replaced"));
        Ok(())
    }
}

/// Calls `each` with the row and sequence number of each row of an entry, a chunk at a time.
fn for_each_row(entry: &Entry, mut each: impl FnMut(u32, u64)) -> Result<(), StoreError> {
    for from in (0..entry.part.rows).step_by(CHUNK_ROWS as usize) {
        let rows = from..entry.part.rows.min(from + CHUNK_ROWS);
        rows.clone().zip(entry.part.seqs(rows)?).for_each(|(row, seq)| each(row, seq));
    }
    Ok(())
}

/// Keeps one copy of an event that is in several segments, in the newest segment; it is dead if any copy is. Returns
/// the number of excess copies.
fn kill_copies(partition: &mut Partition) -> Result<u64, StoreError> {
    let mut gone = RoaringTreemap::new();
    for entry in partition.entries.iter().filter(|entry| entry.dead.count() > 0) {
        for_each_row(entry, |row, seq| {
            if entry.dead.death(row).is_some() {
                gone.insert(seq);
            }
        })?;
    }
    let segments = &partition.segments;
    partition.entries.sort_by_key(|entry| segments.get(&entry.part.number).map(|meta| meta.file));
    let (mut seen, mut copies) = (RoaringTreemap::new(), 0);
    // Newest file first: it is the output of the merge, and the older copies are its inputs.
    for entry in partition.entries.iter_mut().rev() {
        let mut dead = entry.dead.as_ref().clone();
        for_each_row(entry, |row, seq| {
            let first = seen.insert(seq);
            copies += u64::from(!first);
            // A row that is dead in one copy is dead in all: the marks of the other copy may be the damaged ones.
            if !first || gone.contains(seq) {
                dead.kill(row, seq);
            }
        })?;
        entry.dead = Arc::new(dead);
    }
    Ok(copies)
}

/// Hides all rows but the newest live one of each object.
pub(super) fn hide(partition: &mut Partition) -> Result<(), StoreError> {
    let mut newest: HashMap<Object, Age> = HashMap::new();
    for entry in &partition.entries {
        for_each_object(partition, entry, |row, object, age| {
            if entry.dead.death(row).is_none() {
                newest.entry(object).and_modify(|best| *best = age.max(*best)).or_insert(age);
            }
        })?;
    }
    let mut all = Vec::with_capacity(partition.entries.len());
    for entry in &partition.entries {
        let mut hidden = entry.dead.as_ref().clone();
        for_each_object(partition, entry, |row, object, age| {
            if newest.get(&object) != Some(&age) {
                hidden.kill(row, age.1);
            }
        })?;
        all.push(Arc::new(hidden));
    }
    partition.entries.iter_mut().zip(all).for_each(|(entry, hidden)| entry.hidden = hidden);
    Ok(())
}

fn for_each_object(
    partition: &Partition,
    entry: &Entry,
    mut each: impl FnMut(u32, Object, Age),
) -> Result<(), StoreError> {
    let context = partition.context.clone();
    let Some(field) = context.schema.object else { return Ok(()) };
    let view = PartView { part: entry.part.clone(), dead: Arc::default(), seq: Seq(u64::MAX), context };
    let mut wanted = Projection::none(view.layout());
    wanted.add(view.layout().field(field));
    wanted.add_time(view.layout(), view.schema());
    for from in (0..entry.part.rows).step_by(CHUNK_ROWS as usize) {
        let rows = from..entry.part.rows.min(from + CHUNK_ROWS);
        let batch = view.read_for_merge(rows.clone(), &wanted)?;
        let Some(column) = batch.field(field) else { continue };
        for (i, seq) in view.part.seqs(rows.clone())?.into_iter().enumerate() {
            if let Some(object) = object_in(&column, i) {
                each(rows.start + i as u32, object, (batch.interval(i).1, seq));
            }
        }
    }
    Ok(())
}
