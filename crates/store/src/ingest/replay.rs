//! Replay of the log: the writes after the manifest are staged and applied, as when they were accepted.

use super::bodies::{decode_events, decode_expiry, decode_targets};
use super::digest;
use super::idempotency::Remembered;
use super::partition::Partition;
use super::stage::{Events, Stage};
use crate::error::Problem;
use crate::error::StoreError;
use crate::log::{Kind, Record};
use crate::maintenance::expiry::Expiry;
use crate::part::Context;
use std::collections::HashMap;
use std::sync::Arc;

/// Max bytes of events replayed into one memory tree.
const REPLAY_BYTES: usize = 32 << 20;

impl Partition {
    /// Replays what the log held beyond the manifest.
    pub(crate) fn replay(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let context = self.context.clone();
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let mut stage = Stage::new(&self.entries, &context, self.position + 1);
            let mut remembered = Vec::new();
            // Many small writes become one memory tree: one tree per record would make the first queries after a start
            // slow.
            while stage.bytes() < REPLAY_BYTES {
                let Some(record) = records.next() else { break };
                // After damage a position may be missing; its number stays unused.
                stage.next = record.position;
                let (position, events, time, key) = (record.position, record.events, record.time, record.key.clone());
                let replayed = replay_one(&mut stage, &context, record, !self.damaged.is_empty(), self.manifest.seed);
                if !key.is_empty() {
                    // A write that failed to replay keeps its key: it was acknowledged, and a retry under it must not
                    // store it again.
                    let batch = *replayed.as_ref().unwrap_or(&digest::UNKNOWN);
                    remembered.push((key, Remembered { position, events, time, batch }));
                }
                if let Err(detail) = replayed {
                    // Replay continues after the damage: later acknowledged writes are still served, but no new ones are
                    // accepted.
                    stage.next = position + 1;
                    self.problems.push(Problem { path: self.shared.dir.join("log"), detail });
                    let why = "an acknowledged write could not be replayed; see the problems listed";
                    // The first reason is kept, because later failures often follow from it.
                    self.refuses.get_or_insert(why.to_owned());
                }
            }
            let position = stage.next - 1;
            let staging = stage.finish(self.shared.cache.number_part())?;
            // Keys are restored with their writes: a retry after the restart is recognised as one.
            for (key, what) in remembered {
                self.keys.remember(&key, what);
            }
            // No snapshot exists yet, so staged writes are applied piece by piece.
            staging.apply(&mut self.entries);
            self.position = self.position.max(position);
            self.merge_small_runs();
        }
        Ok(())
    }
}

/// Stages the change of a record. Returns the digest of its batch if it has a key. `partly`: some segments cannot be
/// read.
fn replay_one(
    stage: &mut Stage<'_>,
    context: &Arc<Context>,
    record: Record,
    partly: bool,
    seed: u64,
) -> Result<u64, String> {
    let mut digest = digest::UNKNOWN;
    let named = |e: String| format!("the write at position {} cannot be replayed: {e}", record.position);
    match record.kind {
        Kind::Delete => {
            let targets = decode_targets(&record.body).map_err(named)?;
            let outcome = stage.delete(&targets).map_err(|e| named(e.to_string()))?;
            // A flush would remove the record, and the events would be back once their segment can be read.
            if partly && outcome.killed < targets.len() as u64 {
                return Err(named("events that it deletes are in a segment that cannot be read".to_owned()));
            }
        }
        Kind::Expire => {
            let before = decode_expiry(&record.body).map_err(named)?;
            // Rows are searched again. The record does not name them, and the parts of that time may have been merged
            // since.
            stage.expire(&Expiry { before, found: HashMap::new() }).map_err(|e| named(e.to_string()))?;
        }
        Kind::Write | Kind::Replace => {
            let batch = decode_events(context, &record.body).map_err(named)?;
            if !record.key.is_empty() {
                // Computed here because records do not store it; only batches with a key pay for it.
                digest = digest::of(seed, &batch).map_err(named)?;
            }
            // Ids of a plain write were free when it was accepted. Replacing has the same effect, and tolerates ids
            // that damage has hidden.
            let events = Events::of(context, batch, true).map_err(|e| named(format!("{} ids stand twice", e.len())))?;
            stage.write(events).map_err(|e| named(e.to_string()))?;
        }
    }
    Ok(digest)
}
