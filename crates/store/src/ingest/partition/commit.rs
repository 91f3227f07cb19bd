//! Commits a group of writes: staged, logged, then visible.

use super::{CommittedWrite, Key, Partition, Request};
use crate::error::{StoreError, WriteError};
use crate::ingest::bodies::{encode_expiry, encode_targets};
use crate::ingest::idempotency::RememberedWrite;
use crate::ingest::stage::{Change, Outcome, Stage, StagedGroup, kind_of};
use crate::options::Options;
use crate::seams::{AppendError, Kind, Record};
use meridian_observe as observe;
use std::collections::HashMap;

impl Partition {
    /// Commits a group of writes: one append, one sync, one new snapshot. Returns the outcomes in order.
    pub(crate) fn commit(&mut self, group: Vec<Request>) -> Vec<Result<CommittedWrite, WriteError>> {
        // Wall time for keys, because they outlive the process; monotonic time for idleness, because a clock that is
        // set must not look like a pause.
        let now = self.shared.seams.clock.now();
        self.committed_at = self.shared.seams.clock.elapsed();
        self.keys.sweep(now, self.shared.options.keys_max);
        let mut answers: Vec<Result<CommittedWrite, WriteError>> = Vec::with_capacity(group.len());
        if let Some(why) = &self.refuses {
            return group.iter().map(|_| Err(WriteError::refused(why, self.reopens))).collect();
        }
        // The group is computed against the current parts. The caller holds the lock, so they cannot change before it
        // is applied.
        let context = self.context.clone();
        let mut stage = Stage::new(&self.entries, &context, self.position + 1);
        let mut records = Vec::new();
        // Keys first used in this group, each with the outcome of its write.
        let mut fresh: HashMap<String, RememberedWrite> = HashMap::new();
        let mut taken = 0;
        for request in group {
            if let Some(known) = request.key.as_ref().and_then(|key| self.recall(key, &fresh, now)) {
                answers.push(known);
                continue;
            }
            // A refused write takes no position and leaves the stage untouched, so the next request of the group is not
            // affected.
            let answer = stage_one(&mut stage, request.change);
            if let Ok((kind, outcome, body, bytes)) = answer {
                let events = outcome.written as u32;
                if let Some(key) = &request.key {
                    let what = RememberedWrite { position: outcome.position, events, time: now, batch: key.batch };
                    fresh.insert(key.text.clone(), what);
                }
                let key = request.key.map_or_else(Vec::new, |key| key.text.into_bytes());
                // The bytes that the log stores for a write, without the record's head; without a log, the bytes it
                // takes in memory.
                taken += if body.is_empty() { bytes } else { (key.len() + body.len()) as u64 };
                records.push(Record { position: outcome.position, kind, time: now, events, key, body });
                answers.push(Ok(CommittedWrite::Stored(outcome)));
            } else {
                answers.push(answer.map(|(_, outcome, _, _)| CommittedWrite::Stored(outcome)));
            }
        }
        // Only duplicates and refusals: nothing changed, so neither a sync nor a new snapshot is needed.
        if records.is_empty() {
            return answers;
        }
        // Everything that can fail without the disk fails before the log has the group.
        let position = stage.next - 1;
        let written = if self.shared.listeners.any() { stage.written() } else { Vec::new() };
        let staging = match stage.finish(self.shared.cache.number_part()) {
            Ok(staging) => staging,
            Err(e) => return fail_stored(answers, || WriteError::Refused(e.to_string())),
        };
        if let Err(error) = self.make_durable(&records) {
            return fail_stored(answers, error);
        }
        // From here on the group is durable, so nothing below may fail: keys, then parts, then the new state, then the
        // subscribers.
        for (key, what) in fresh {
            self.keys.remember(key.as_bytes(), what);
        }
        self.shared.counters.add_bytes_taken(taken);
        self.shared.counters.add_groups(1);
        let apply = observe::stage(observe::Stage::Apply);
        self.apply(staging, position);
        drop(apply);
        // Notified last: a subscriber that reads at once finds the events.
        self.shared.listeners.tell(&self.manifest, written);
        answers
    }

    /// Returns the outcome of a write under a known key, or its refusal if no more keys can be remembered. The result
    /// is `None` for a write to stage.
    fn recall(
        &self,
        key: &Key,
        fresh: &HashMap<String, RememberedWrite>,
        now: i64,
    ) -> Option<Result<CommittedWrite, WriteError>> {
        // A retry may be in the same group as its first attempt, so keys of the group count as well.
        if let Some(known) = fresh.get(&key.text).copied().or_else(|| self.keys.get(key.text.as_bytes(), now)) {
            let (position, events) = (known.position, u64::from(known.events));
            let reused = WriteError::KeyReused { position, partition: None, events };
            return Some(if known.fits(key.batch) { Ok(CommittedWrite::Duplicate(known)) } else { Err(reused) });
        }
        // Forgetting a key early would let a retry be stored twice: with no room for one more, the write is refused.
        let Options { keys_max, key_memory, .. } = self.shared.options.as_ref();
        (self.keys.len() + fresh.len() >= *keys_max).then(|| {
            Err(WriteError::Busy(format!(
                "{keys_max} idempotency keys within {} s are as many as are remembered: send without a key, or later",
                key_memory.as_secs()
            )))
        })
    }

    /// Appends a group to the log. An ephemeral collection has none, and runs the same code otherwise, so both kinds
    /// have the same semantics.
    ///
    /// # Errors
    /// A constructor of the error that each write of the group fails with.
    fn make_durable(&mut self, records: &[Record]) -> Result<(), Box<dyn Fn() -> WriteError>> {
        let Some(log) = &mut self.log else { return Ok(()) };
        // Charged to the write that leads the group, since its thread works for all of them.
        let sync = observe::stage(observe::Stage::Sync);
        let (appended, shared) = (log.append(records), log.is_shared());
        drop(sync);
        match appended {
            Ok(bytes) => {
                self.shared.counters.add_log_bytes(bytes);
                self.shared.counters.add_syncs(1);
                Ok(())
            }
            Err(AppendError::Clean(e)) if e.is_full() => {
                let what = if shared { "log" } else { "disk" };
                let text = format!("the {what} is full ({e}); nothing of the write is stored");
                Err(Box::new(move || WriteError::Full(text.clone())))
            }
            Err(AppendError::Clean(e)) => {
                let text = format!("{e}; nothing of the write is stored");
                Err(Box::new(move || WriteError::Busy(text.clone())))
            }
            // The next process that opens the collection determines the outcome.
            Err(AppendError::Unknown(e)) if shared => {
                let why = format!("the log of the cluster does not answer: {e}");
                self.outdate(why.clone());
                Err(Box::new(move || WriteError::Unknown(why.clone())))
            }
            Err(AppendError::Unknown(e)) => {
                let why = format!("{e}: the content of the disk is unknown; restart once the disk works");
                // Refuses writes until it is reopened: a later group could follow one that a restart does not find.
                self.outdate(why.clone());
                Err(Box::new(move || WriteError::Failed(why.clone())))
            }
            Err(AppendError::Fenced(e)) => {
                // Nothing of the group is stored, and the state of this process may already be behind the new writer.
                let why = e.to_string();
                self.outdate(why.clone());
                Err(Box::new(move || WriteError::refused(&why, shared)))
            }
        }
    }

    /// Makes a staged group visible.
    fn apply(&mut self, staging: StagedGroup, position: u64) {
        // Parts first, then the position: a state with the new position must have the events of that position.
        staging.apply(&mut self.entries);
        self.position = position;
        self.merge_small_runs();
        self.publish();
    }
}

type StagedRecord = (Kind, Outcome, Vec<u8>, u64);

fn stage_one(stage: &mut Stage<'_>, change: Change) -> Result<StagedRecord, WriteError> {
    let unseen = |e: StoreError| WriteError::Refused(format!("whether the events are there cannot be seen: {e}"));
    let targets = match change {
        Change::Write(events) => {
            let (kind, bytes) = (kind_of(&events), events.batch.bytes() as u64);
            let outcome = stage.write(events)?;
            return Ok((kind, outcome, stage.take_body(), bytes));
        }
        Change::DeleteIds(ids) => stage.targets(&ids).map_err(unseen)?,
        // Rows come from a snapshot that may be old: only those still alive go into the log, so a replay kills the same
        // ones.
        Change::DeleteRows(targets) => stage.alive(targets).map_err(unseen)?,
        Change::Expire(expiry) => {
            let outcome = stage.expire(&expiry).map_err(unseen)?;
            // The log has the instant, not the rows: a replay finds the same rows, and a record has a few bytes for a
            // million events.
            return Ok((Kind::Expire, outcome, encode_expiry(expiry.before), 0));
        }
    };
    let outcome = stage.delete(&targets).map_err(unseen)?;
    Ok((Kind::Delete, outcome, encode_targets(&targets), 0))
}

/// Turns the outcomes of writes that would have been stored into errors.
fn fail_stored(
    answers: Vec<Result<CommittedWrite, WriteError>>,
    error: impl Fn() -> WriteError,
) -> Vec<Result<CommittedWrite, WriteError>> {
    // A duplicate of a write in this group must fail with it. A duplicate of an older write need not, but a retry of
    // it is harmless.
    answers.into_iter().map(|answer| answer.and_then(|_| Err(error()))).collect()
}
