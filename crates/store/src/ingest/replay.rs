//! Replay of the log: the writes after the manifest are staged and applied, as when they were accepted.

use super::bodies::{decode_events, decode_expiry, decode_targets};
use super::digest::{self, UNKNOWN};
use super::idempotency::RememberedWrite;
use super::partition::Partition;
use super::stage::{Change, Events, Stage};
use crate::error::Problem;
use crate::error::StoreError;
use crate::expiry::Expiry;
use crate::part::Context;
use crate::seams::Kind;
use crate::seams::Record;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of records decoded at a time.
const DECODED_BYTES: usize = 32 << 20;
/// Max writes in one stage: each searches the previous ones for its ids, so the time grows with the square of their
/// number.
const STAGED_MAX: usize = 32;

/// A record with its body decoded. Decoding takes most of the time, and needs only the schema of the collection.
pub(super) struct DecodedRecord {
    pub(super) position: u64,
    events: u32,
    time: i64,
    key: Vec<u8>,
    /// Digest of its batch, if it has a key.
    digest: u64,
    pub(super) change: Result<Change, String>,
}

impl Partition {
    /// Replays the records of the log that the manifest does not cover.
    pub(crate) fn replay(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let (context, seed) = (self.context.clone(), self.manifest.seed);
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let (mut some, mut bytes) = (Vec::new(), 0);
            while bytes < DECODED_BYTES
                && let Some(record) = records.next()
            {
                bytes += record.body.len();
                some.push(record);
            }
            // On all processors: a process that takes over serves no request until this is done.
            let decoded: Vec<DecodedRecord> =
                some.into_par_iter().map(|record| decode(&context, seed, record)).collect();
            let mut decoded = decoded.into_iter().peekable();
            while decoded.peek().is_some() {
                self.replay_stage(&context, decoded.by_ref().take(STAGED_MAX))?;
            }
        }
        Ok(())
    }

    /// Replays some records into one memory tree: one tree per record would make the first queries after a start slow.
    fn replay_stage(
        &mut self,
        context: &Arc<Context>,
        records: impl Iterator<Item = DecodedRecord>,
    ) -> Result<(), StoreError> {
        let mut stage = Stage::new(&self.entries, context, self.position + 1);
        let mut remembered = Vec::new();
        for DecodedRecord { position, events, time, key, digest, change } in records {
            // After damage a position may be missing; its number stays unused.
            stage.next = position;
            let replayed = change.and_then(|change| replay_one(&mut stage, change, !self.damaged.is_empty()));
            if !key.is_empty() {
                // A write that failed to replay keeps its key: it was acknowledged, and a retry under it must not
                // store it again.
                let batch = if replayed.is_ok() { digest } else { UNKNOWN };
                remembered.push((key, RememberedWrite { position, events, time, batch }));
            }
            if let Err(why) = replayed {
                // Replay continues after the damage: later acknowledged writes are still served, but no new ones are
                // accepted.
                stage.next = position + 1;
                let detail = format!("the write at position {position} cannot be replayed: {why}");
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
        Ok(())
    }
}

/// Decodes the body of a record.
pub(super) fn decode(context: &Context, seed: u64, record: Record) -> DecodedRecord {
    let Record { position, kind, time, events, key, body } = record;
    let mut known = UNKNOWN;
    let change = match kind {
        Kind::Delete => decode_targets(&body).map(Change::DeleteRows),
        // Rows are searched again. The record does not name them, and the parts of that time may have been merged
        // since.
        Kind::Expire => decode_expiry(&body).map(|before| Change::Expire(Expiry { before, found: HashMap::new() })),
        Kind::Write | Kind::Replace => decode_events(context, &body).and_then(|batch| {
            if !key.is_empty() {
                // Computed here because records do not store it; only batches with a key pay for it.
                known = digest::of(seed, &batch)?;
            }
            // Ids of a plain write were free when it was accepted. Replacing has the same effect, and tolerates ids
            // that damage has hidden.
            let events = Events::of(context, batch, true).map_err(|e| format!("{} ids stand twice", e.len()))?;
            Ok(Change::Write(events))
        }),
    };
    DecodedRecord { position, events, time, key, digest: known, change }
}

/// Stages the change of a record. `partly` means that some segments cannot be read.
fn replay_one(stage: &mut Stage<'_>, change: Change, partly: bool) -> Result<(), String> {
    match change {
        Change::DeleteRows(targets) => {
            let outcome = stage.delete(&targets).map_err(|e| e.to_string())?;
            // A flush would remove the record, and the events would reappear once their segment can be read.
            if partly && outcome.killed < targets.len() as u64 {
                return Err("events that it deletes are in a segment that cannot be read".to_owned());
            }
        }
        Change::Expire(expiry) => {
            stage.expire(&expiry).map_err(|e| e.to_string())?;
        }
        Change::Write(events) => {
            stage.write(events).map_err(|e| e.to_string())?;
        }
        Change::DeleteIds(_) => return Err("a record of ids, which no log holds".to_owned()),
    }
    Ok(())
}
