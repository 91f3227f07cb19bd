//! Selects the partition an event is written to: the one its key belongs to (`model::split`). Events without a key all
//! go to one partition per write.

use meridian_model::{Batch, Invalid, Schema, SeqLayout, partition_of, partitions_of_rows};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Max number of mistakes named in a refusal.
const NAMED_MAX: usize = 100;
/// Next partition for writes that no key assigns, in turns.
static TURN: AtomicU64 = AtomicU64::new(0);

/// A part of a batch, and its partition.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) partition: usize,
    pub(super) batch: Batch,
}

/// Splits a batch among partitions, each share in the order of the batch. The share of the first event comes first.
/// `key`: the idempotency key of the write, so that a repetition is split in the same way.
pub(super) fn split(batch: Batch, schema: &Schema, partitions: usize, key: Option<&str>) -> Vec<Share> {
    let turn = || match key {
        // A repetition must reach the partition that remembers the key.
        Some(key) => partition_of(key.as_bytes(), partitions),
        // Relaxed: any partition will do.
        None => (TURN.fetch_add(1, Ordering::Relaxed) % partitions as u64) as usize,
    };
    // A single turn for everything in a write that no key assigns.
    let other = OnceCell::new();
    let of_rows = partitions_of_rows(&batch, schema, partitions, |_| *other.get_or_init(turn));
    match of_rows {
        Some(of_rows) => by_row(batch, &of_rows, partitions),
        None => in_turn(batch, turn(), partitions),
    }
}

fn by_row(batch: Batch, of_rows: &[usize], partitions: usize) -> Vec<Share> {
    let Some(&first) = of_rows.first() else { return vec![Share { partition: 0, batch }] };
    if of_rows.iter().all(|partition| *partition == first) {
        return vec![Share { partition: first, batch }];
    }
    let mut rows = vec![Vec::new(); partitions];
    for (row, partition) in of_rows.iter().enumerate() {
        if let Some(rows) = rows.get_mut(*partition) {
            rows.push(row as u32);
        }
    }
    let share = |(partition, rows): (usize, Vec<u32>)| Share { partition, batch: batch.take(&rows) };
    let mut shares: Vec<Share> = rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()).map(share).collect();
    // The sort is stable: the others stay in the order of their partitions.
    shares.sort_by_key(|share| share.partition != first);
    shares
}

/// Returns the whole batch for one partition, or in pieces for several if it is too large for one.
fn in_turn(batch: Batch, first: usize, partitions: usize) -> Vec<Share> {
    let most = SeqLayout::Partitioned.batch_events_max();
    let pieces = batch.rows().div_ceil(most).clamp(1, partitions);
    if pieces == 1 {
        return vec![Share { partition: first, batch }];
    }
    let each = batch.rows().div_ceil(pieces);
    let piece = |n: usize| Share {
        partition: (first + n) % partitions,
        batch: batch.slice(n * each, each.min(batch.rows() - n * each)),
    };
    (0..pieces).map(piece).collect()
}

/// Returns the ids that occur twice in a batch. Called before the split, so that no part of such a batch is written.
pub(super) fn twice(batch: &Batch, schema: &Schema) -> Vec<Invalid> {
    let Some(ids) = batch.ids() else { return Vec::new() };
    let (mut seen, mut wrong) = (HashMap::with_capacity(batch.rows()), Vec::new());
    for (row, id) in ids.iter().enumerate() {
        let first = *seen.entry(id.unwrap_or_default()).or_insert(row);
        if first != row && wrong.len() < NAMED_MAX {
            let id = meridian_model::error::shorten(id.unwrap_or_default());
            let detail = format!("the id {id:?} is also that of event {}: an id may stand once", first + 1);
            wrong.push(Invalid::field(schema.id_name.as_str(), detail).at_line(row as u64 + 1));
        }
    }
    wrong
}
