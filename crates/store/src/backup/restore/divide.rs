//! Restores a collection with another number of partitions: its events are divided by their keys, as writes are.
//!
//! Events keep their numbers, and so the ids generated from them. A number up to the last position at the restore no
//! longer identifies the partition of its event. The manifests record that (`ImportOrigin`), and a lookup of such an id
//! asks every partition. The partitions continue behind that position with numbers of their own, so no number is
//! assigned twice.
//!
//! Not restored: dead events, earlier snapshots, and idempotency keys, because a retried batch would be divided
//! differently.

use super::super::SavedPartition;
use super::adopt::settings_there;
use super::source::Source;
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::manifest::{FIRST_FILE, ImportOrigin, Manifest};
use crate::options::Settings;
use crate::part::segment::PlainRows;
use crate::store::{Store, partitions};
use meridian_model::{Batch, Invalid, Schema, Seq, SeqLayout, partition_of, partitions_of_rows};
use std::sync::Arc;

/// Fraction of the memory for writes that events waiting to be written may use; they briefly exist twice.
const WAITING_PART: u64 = 4;

/// Checks that a collection can have the wanted number of partitions.
pub(super) fn check(saved: &SavedPartition, wanted: u16) -> Result<(), StoreError> {
    let settings = Settings { partitions: wanted, ..saved.manifest.settings.clone() };
    let named = |e: Invalid| Invalid::field("partitions", format!("the collection {}: {}", saved.name(), e.detail));
    Ok(partitions::check(&settings, &saved.manifest.schema).map_err(named)?)
}

/// Creates a collection of `wanted` partitions from these, which are all of the original.
pub(super) fn divide(
    source: &Source,
    store: &Store,
    saved: &[SavedPartition],
    wanted: u16,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let (Some(first), inner) = (saved.first(), store.inner()) else { return Ok(()) };
    let (tenant, name) = (first.tenant(), first.name());
    // A schema change may have reached only some of the partitions.
    let longest = saved.iter().map(|saved| &saved.manifest.schema).max_by_key(|schema| schema.fields.len());
    let schema = longest.unwrap_or(&first.manifest.schema).clone();
    let settings = Settings { partitions: wanted, ..settings_there(store, &first.manifest.settings) };
    let upto = saved.iter().map(SavedPartition::position).max().unwrap_or(0);
    let from = saved.iter().map(SavedPartition::position).collect();
    inner.discard(tenant, name)?;
    inner.make_room(tenant, name, wanted)?;
    let made = inner.make_partitions(&Manifest {
        partition: 0,
        schema: schema.clone(),
        settings,
        seed: inner.common.seams.random.next_u64(),
        began: Some(inner.common.seams.clock.now()),
        flushed: upto,
        // Dead events are not restored: no earlier snapshot can be served.
        dropped_seq: Seq::end_of(upto).0,
        next_file: FIRST_FILE,
        segments: Vec::new(),
        keys: Vec::new(),
        listed: Vec::new(),
        hidden: None,
        log: None,
        seq_layout: SeqLayout::of(usize::from(wanted)),
        imported: (upto > 0).then_some(ImportOrigin { upto, from }),
        making: false,
        copied: true,
        ..first.manifest.clone()
    })?;
    let mut waiting = PendingEvents::new(&made, inner.common.options.memory_bytes / WAITING_PART);
    for one in saved {
        for file in &one.files {
            source.read(file, &mut |piece| {
                progress(piece.len() as u64);
                Ok(())
            })?;
        }
        read(source, one, &schema, &mut waiting)?;
    }
    waiting.write()?;
    let (events, expected) = (waiting.events, saved.iter().map(SavedPartition::events).sum::<u64>());
    if events != expected {
        let detail = format!("the collection {name} came out with {events} events, where the backup says {expected}");
        return Err(StoreError::corrupt(&inner.dir_of(tenant, name, 0), detail));
    }
    made.iter().try_for_each(|partition| partition.close(false))
}

/// Reads the live events of a partition.
fn read(
    source: &Source,
    saved: &SavedPartition,
    schema: &Schema,
    waiting: &mut PendingEvents<'_>,
) -> Result<(), StoreError> {
    let objects = source.objects(saved);
    let mut hidden = read_hidden(&objects, &saved.manifest)?;
    for meta in &saved.manifest.segments {
        let (rows, dead) = (PlainRows::open(&objects, meta, schema)?, read_dead(&objects, meta)?);
        if rows.rows() != meta.rows {
            let detail = format!("a segment of {} holds {} events, not {}", saved.name(), rows.rows(), meta.rows);
            return Err(Invalid::new(detail).into());
        }
        let hidden = hidden.remove(&meta.file).unwrap_or_default();
        for chunk in rows.chunks() {
            let (first, batch, seqs) = chunk?;
            let alive: Vec<u32> = (0..seqs.len() as u32).filter(|row| dead.death(first + row).is_none()).collect();
            let kept = alive.iter().map(|row| seqs[*row as usize]).collect();
            let hides = alive.iter().map(|row| hidden.death(first + row).is_some()).collect();
            let batch = if alive.len() == seqs.len() { batch } else { batch.take(&alive) };
            waiting.take(Share { batch, seqs: kept, hidden: hides })?;
        }
    }
    Ok(())
}

/// Events with their numbers, and whether mode `latest` hides them.
struct Share {
    batch: Batch,
    seqs: Vec<u64>,
    hidden: Vec<bool>,
}

/// Events waiting to be written, by partition.
struct PendingEvents<'a> {
    made: &'a [Arc<Collection>],
    shares: Vec<Vec<Share>>,
    bytes: u64,
    bytes_max: u64,
    events: u64,
}

impl<'a> PendingEvents<'a> {
    fn new(made: &'a [Arc<Collection>], bytes_max: u64) -> PendingEvents<'a> {
        PendingEvents { made, shares: made.iter().map(|_| Vec::new()).collect(), bytes: 0, bytes_max, events: 0 }
    }

    /// Divides events among the partitions.
    fn take(&mut self, all: Share) -> Result<(), StoreError> {
        let partitions = self.made.len();
        self.events += all.seqs.len() as u64;
        self.bytes += all.batch.bytes() as u64;
        // Without a key, the events of one write stay together, as they do when written.
        let other = |row: usize| partition_of(&Seq(all.seqs[row]).position().to_le_bytes(), partitions);
        let decided = partitions_of_rows(&all.batch, all.batch.schema(), partitions, other);
        let of_rows = decided.unwrap_or_else(|| (0..all.seqs.len()).map(other).collect());
        for (partition, shares) in self.shares.iter_mut().enumerate() {
            let rows: Vec<u32> = (0..all.seqs.len() as u32).filter(|row| of_rows[*row as usize] == partition).collect();
            if !rows.is_empty() {
                let seqs = rows.iter().map(|row| all.seqs[*row as usize]).collect();
                let hidden = rows.iter().map(|row| all.hidden[*row as usize]).collect();
                shares.push(Share { batch: all.batch.take(&rows), seqs, hidden });
            }
        }
        if self.bytes >= self.bytes_max { self.write() } else { Ok(()) }
    }

    /// Writes the waiting events into segments.
    fn write(&mut self) -> Result<(), StoreError> {
        for (partition, shares) in self.made.iter().zip(&mut self.shares) {
            let shares = std::mem::take(shares);
            // Events from before a schema change have fewer columns.
            for alike in shares.chunk_by(|a, b| a.batch.columns().len() == b.batch.columns().len()) {
                let batches: Vec<Batch> = alike.iter().map(|share| share.batch.clone()).collect();
                let seqs: Vec<u64> = alike.iter().flat_map(|share| share.seqs.iter().copied()).collect();
                let hidden: Vec<bool> = alike.iter().flat_map(|share| share.hidden.iter().copied()).collect();
                partition.core.lock().import(Batch::concat(&batches)?, &seqs, &hidden)?;
            }
            partition.flush()?;
        }
        self.bytes = 0;
        Ok(())
    }
}
