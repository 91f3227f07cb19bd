//! The core of a collection: a state machine over log, memory trees and segments, without threads of its own.
//!
//! [`Partition::commit`] takes a group of writes to durability and visibility. Flushes and merges are jobs
//! (`maintenance.rs`): chosen and installed here, under the lock that the caller keeps around the partition, and worked
//! off outside of it. Readers never come here: they load the published [`State`].

use crate::catalog::lineage::Lineage;
use crate::catalog::manifest::{Manifest, SegmentEntry};
use crate::catalog::numbers::next_epoch;
use crate::collection::shared::{Shared, State, seen_of};
use crate::error::{Problem, StoreError, WriteError};
use crate::ingest::bodies::{encode_events, encode_expiry, encode_targets};
use crate::ingest::idempotency::{IdempotencyKeys, Remembered};
use crate::ingest::stage::{Change, Events, Outcome, Stage, Staging, kind_of};
use crate::log::{Kind, Record};
use crate::maintenance::choice::{RUNS_MERGED, tier};
use crate::maintenance::runs::merge_runs;
use crate::options::Settings;
use crate::part::{Context, Entry, PartView};
use crate::seams::{AppendError, CommitError, WriteLog};
use meridian_model::{Mode, Schema, Seq};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most rows of a merge that a writer does on its way; larger ones wait for maintenance.
const INLINE_ROWS_MAX: u64 = 1 << 15;
/// From this many runs on a writer merges whatever the size, so that readers never face more.
const RUNS_MAX: usize = 48;

/// One partition of a collection.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) shared: Arc<Shared>,
    pub(crate) manifest: Manifest,
    /// Commits the manifest.
    pub(crate) catalog: Lineage,
    /// Whether numbers of files are of an epoch that this process has committed.
    pub(crate) claimed: bool,
    /// Where the manifest of an ephemeral collection survives a restart; `None` where it lies with the data.
    pub(crate) definition: Option<Lineage>,
    pub(crate) context: Arc<Context>,
    /// `None` of an ephemeral collection.
    pub(crate) log: Option<Box<dyn WriteLog>>,
    /// Segments first, then memory trees, oldest first.
    pub(crate) entries: Vec<Entry>,
    /// What the manifest says of each open segment, by number of its part.
    pub(crate) segments: BTreeMap<u64, SegmentEntry>,
    /// Segments that could not be opened: they stay in the manifest.
    pub(crate) damaged: Vec<SegmentEntry>,
    pub(crate) problems: Vec<Problem>,
    /// Why a file did not read that may be whole: the disk refused, or a newer program wrote it.
    pub(crate) unread: Option<StoreError>,
    /// Damage that costs nothing: a copy of what is served from elsewhere.
    pub(crate) notes: Vec<Problem>,
    pub(crate) keys: IdempotencyKeys,
    pub(crate) position: u64,
    pub(crate) refuses: Option<String>,
    /// Files beside the manifest mention later writes.
    pub(crate) stale: bool,
    /// Parts that a job in hand works on.
    pub(crate) frozen: Vec<u64>,
    /// Segments that merges leave alone because they are damaged.
    pub(crate) unmergeable: Vec<u64>,
    /// Segments that could not be rebuilt.
    pub(crate) unmendable: Vec<u64>,
    /// Most runs over one stretch of time, and the most that there may be once all merges are done.
    pub(crate) depth: (u32, u64),
    /// Set by the first flush asked for, until it is done.
    pub(crate) flush_wanted: bool,
    /// When the last group was committed, in microseconds of [`crate::seams::Clock::elapsed`].
    pub(crate) committed_at: i64,
}

/// A write as the queue hands it over.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) change: Change,
    pub(crate) key: Option<Key>,
}

/// An idempotency key, and the digest of the batch that it names.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) batch: u64,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is durable and visible.
    Stored(Outcome),
    /// It was stored before under the same key.
    Duplicate(Remembered),
}

impl Partition {
    /// Commits a group of writes: one append, one sync, one new snapshot. Answers each in its place.
    pub(crate) fn commit(&mut self, group: Vec<Request>) -> Vec<Result<Done, WriteError>> {
        // Wall time for keys, because they outlive the process; monotonic time for idleness, because a clock that is
        // set must not look like a pause.
        let now = self.shared.seams.clock.now();
        self.committed_at = self.shared.seams.clock.elapsed();
        self.keys.sweep(now, self.shared.options.keys_max);
        let mut answers: Vec<Result<Done, WriteError>> = Vec::with_capacity(group.len());
        if let Some(why) = &self.refuses {
            return group.iter().map(|_| Err(WriteError::Refused(why.clone()))).collect();
        }
        // The group is worked out against the parts of now. The caller holds the lock, so they cannot change before it is applied.
        let context = self.context.clone();
        let mut stage = Stage::new(&self.entries, &context, self.position + 1);
        let mut records = Vec::new();
        // Keys first used in this group: key to what its write came to.
        let mut fresh: HashMap<String, Remembered> = HashMap::new();
        // An ephemeral collection runs the same code without a log, so both kinds have the same semantics.
        let (durable, mut taken) = (self.log.is_some(), 0);
        for request in group {
            if let Some(key) = &request.key {
                // A retry may stand in the same group as its first try: keys of the group count as well.
                let known = fresh.get(&key.text).copied().or_else(|| self.keys.get(key.text.as_bytes(), now));
                if let Some(known) = known {
                    let (position, events) = (known.position, u64::from(known.events));
                    let reused = WriteError::KeyReused { position, events };
                    answers.push(if known.fits(key.batch) { Ok(Done::Duplicate(known)) } else { Err(reused) });
                    continue;
                }
                // A key that is forgotten early would let a retry be stored twice: with no room for one more, the write is refused.
                if self.keys.len() + fresh.len() >= self.shared.options.keys_max {
                    answers.push(Err(WriteError::Busy(format!(
                        "{} idempotency keys within {} s are as many as are remembered: send without a key, or later",
                        self.shared.options.keys_max,
                        self.shared.options.key_memory.as_secs()
                    ))));
                    continue;
                }
            }
            // A refused write takes no position and leaves the stage untouched, so the next request of the group is not
            // affected.
            let answer = stage_one(&mut stage, request.change);
            if let Ok((kind, outcome, body, bytes)) = answer {
                let events = outcome.written as u32;
                if let Some(key) = &request.key {
                    let what = Remembered { position: outcome.position, events, time: now, batch: key.batch };
                    fresh.insert(key.text.clone(), what);
                }
                let key = request.key.map_or_else(Vec::new, |key| key.text.into_bytes());
                // What the log takes of a write, its head apart; of a collection without a log what it takes in memory.
                taken += if body.is_empty() { bytes } else { (key.len() + body.len()) as u64 };
                records.push(Record { position: outcome.position, kind, time: now, events, key, body });
                answers.push(Ok(Done::Stored(outcome)));
            } else {
                answers.push(answer.map(|(_, outcome, _, _)| Done::Stored(outcome)));
            }
        }
        // Only duplicates and refusals: nothing changed, so neither a sync nor a new snapshot is needed.
        if records.is_empty() {
            return answers;
        }
        // Whatever can fail without the disk fails before the log has the group.
        let position = stage.next - 1;
        let written = if self.shared.listeners.any() { stage.written() } else { Vec::new() };
        let staging = match stage.finish(self.shared.cache.number_part()) {
            Ok(staging) => staging,
            Err(e) => return fail_stored(answers, || WriteError::Refused(e.to_string())),
        };
        if durable && let Some(log) = &mut self.log {
            match log.append(&records) {
                Ok(bytes) => {
                    self.shared.counters.add_log_bytes(bytes);
                    self.shared.counters.add_syncs(1);
                }
                Err(AppendError::Clean(e)) => {
                    if e.is_full() {
                        let text = format!("the disk is full ({e}); nothing of the write is stored");
                        return fail_stored(answers, || WriteError::Full(text.clone()));
                    }
                    let text = format!("{e}; nothing of the write is stored");
                    return fail_stored(answers, || WriteError::Busy(text.clone()));
                }
                Err(AppendError::Unknown(e)) => {
                    let why = format!("{e}: what is on disk is not known any more; restart once the disk is well");
                    // Poisoned until it is opened again: a later group could stand behind one that a restart does not find.
                    self.refuse(why.clone());
                    return fail_stored(answers, || WriteError::Failed(why.clone()));
                }
                Err(AppendError::Fenced(e)) => {
                    // Nothing of the group is stored, and what this process holds may be behind the new writer already.
                    let why = e.to_string();
                    self.refuse(why.clone());
                    return fail_stored(answers, || WriteError::Refused(why.clone()));
                }
            }
        }
        // From here on the group is durable, so nothing below may fail: keys, then parts, then the new state, then the subscribers.
        for (key, what) in fresh {
            self.keys.remember(key.as_bytes(), what);
        }
        self.shared.counters.add_bytes_taken(taken);
        self.shared.counters.add_groups(1);
        self.apply(staging, position);
        // Notified last: a subscriber that reads at once finds the events.
        self.shared.listeners.tell(&self.manifest, written);
        answers
    }

    /// Makes a staged group visible.
    fn apply(&mut self, staging: Staging, position: u64) {
        // Parts first, then the position: a state with the new position must have the events of that position.
        staging.apply(&mut self.entries);
        self.position = position;
        self.merge_small_runs();
        self.publish();
    }

    /// Keeps the number of memory trees logarithmic: the youngest of a like size become one.
    pub(super) fn merge_small_runs(&mut self) {
        loop {
            // Frozen runs are excluded: a job reads them now and removes them when it is installed.
            let runs = self.loose_runs();
            let Some((&last, _)) = runs.split_last() else { return };
            let own = tier(u64::from(self.entries[last].part.rows));
            let tail: Vec<usize> =
                runs.iter().rev().copied().take_while(|i| tier(u64::from(self.entries[*i].part.rows)) <= own).collect();
            let rows: u64 = tail.iter().map(|i| u64::from(self.entries[*i].part.rows)).sum();
            let crowded = runs.len() >= RUNS_MAX;
            // A writer pays for small merges only, or all writers would wait for one; past the max number of runs readers would.
            if tail.len() < RUNS_MERGED || (rows > INLINE_ROWS_MAX && !crowded) {
                return;
            }
            let inputs: Vec<Entry> = tail.iter().rev().map(|i| self.entries[*i].clone()).collect();
            match merge_runs(&self.shared, &self.context, &inputs, self.floor_for(&inputs)) {
                Ok(merged) => {
                    self.entries.retain(|e| inputs.iter().all(|i| i.part.number != e.part.number));
                    // Appended last, because the inputs were the youngest: entries stay in order of age, which the
                    // search for ids relies on.
                    self.entries.extend(merged);
                }
                Err(e) => {
                    // Columns too large to be concatenated: they stay as they are until the flush.
                    tracing::warn!(error = %e, "memory trees were not merged");
                    return;
                }
            }
        }
    }

    /// Memory trees that no job works on, oldest first.
    pub(crate) fn loose_runs(&self) -> Vec<usize> {
        (0..self.entries.len())
            .filter(|i| {
                let part = &self.entries[*i].part;
                part.run().is_some() && !self.frozen.contains(&part.number)
            })
            .collect()
    }

    /// The number up to which dead rows may be dropped from these parts; `None` if they hold none.
    pub(crate) fn floor_for(&self, inputs: &[Entry]) -> Option<u64> {
        if inputs.iter().all(|e| e.dead.count() == 0) {
            return None;
        }
        // Rows that died below this number are invisible to every snapshot and page token that is still valid.
        let current = Seq::end_of(self.position).0;
        Some(self.shared.horizon.drop_below(self.shared.seams.clock.elapsed(), current))
    }

    /// Publishes the current state to readers.
    pub(crate) fn publish(&mut self) {
        let seq = Seq::end_of(self.position);
        // Parts are shared, not copied: publishing costs a few reference counts per part, whatever the number of
        // events.
        let view =
            |e: &Entry| PartView { part: e.part.clone(), dead: e.dead.clone(), seq, context: self.context.clone() };
        let history: Arc<[PartView]> = self.entries.iter().map(view).collect();
        let views = match self.manifest.schema.mode {
            Mode::History => history.clone(),
            Mode::Latest => self.entries.iter().map(|e| PartView { dead: e.hidden.clone(), ..view(e) }).collect(),
        };
        let seen = seen_of(&views);
        let memory: i64 = self.entries.iter().filter(|e| e.part.run().is_some()).map(|e| e.part.bytes() as i64).sum();
        // Both sums before the state: a writer that sees the new state must not find the room of the old one.
        let before = self.shared.memory.swap(memory, Ordering::AcqRel);
        self.shared.memory_all.fetch_add(memory - before, Ordering::AcqRel);
        self.shared.state.store(Arc::new(State {
            position: self.position,
            context: self.context.clone(),
            settings: self.manifest.settings.clone(),
            history,
            views,
            seen,
            missing: self.problems.as_slice().into(),
            notes: self.notes.as_slice().into(),
            refuses: self.refuses.clone(),
            log_tail_bytes: self.log.as_ref().map_or(0, |log| log.tail_bytes()),
            keys: self.keys.len() as u64,
            depth: self.depth,
        }));
    }

    /// Whether it is all there, and takes writes.
    pub(crate) fn is_sound(&self) -> bool {
        self.refuses.is_none() && self.damaged.is_empty() && !self.stale
    }

    /// Whether it has rows that do not read. Reads all of them.
    pub(crate) fn has_lost_blocks(&self) -> bool {
        let segments = self.entries.iter().filter_map(|entry| entry.part.segment());
        segments.into_iter().any(|segment| !segment.lost_blocks().is_empty())
    }

    /// Takes no more writes from here on.
    pub(crate) fn refuse(&mut self, why: String) {
        tracing::error!(collection = %self.manifest.collection, why = %why, "the collection accepts no more writes");
        self.refuses = Some(why);
        self.publish();
    }

    /// Changes the schema (by adding optional fields) or the settings, durably.
    pub(crate) fn change(&mut self, schema: Option<Schema>, settings: Option<Settings>) -> Result<(), StoreError> {
        if let Some(why) = &self.refuses {
            return Err(StoreError::Invalid(meridian_model::Invalid::new(format!(
                "the collection is read-only: {why}"
            ))));
        }
        let mut changed = self.manifest.clone();
        changed.schema = schema.unwrap_or(changed.schema);
        changed.settings = settings.unwrap_or(changed.settings);
        // A manifest takes a number of its own: the newer of two is known by it.
        changed.next_file = self.shared.number_file() + 1;
        // Durable before visible: a write in the new schema may be acknowledged as soon as the context is replaced.
        self.write_manifest(&changed)?;
        self.context = Context::of(Arc::new(changed.schema.clone()), changed.seed, &self.shared.counters);
        self.manifest = changed;
        self.publish();
        Ok(())
    }

    /// Takes an epoch of file numbers for this process: before it names its first file.
    pub(crate) fn claim_numbers(&mut self) -> Result<(), StoreError> {
        if self.claimed {
            return Ok(());
        }
        // The max of both, because failed jobs may have used numbers that no manifest has.
        let next_file = next_epoch(self.manifest.next_file.max(self.shared.next_file.load(Ordering::Relaxed)));
        let manifest = Manifest { next_file, ..self.manifest.clone() };
        match self.write_manifest(&manifest) {
            Ok(()) => {
                self.shared.next_file.store(next_file, Ordering::Relaxed);
                self.manifest = manifest;
                self.claimed = true;
                Ok(())
            }
            // Both manifests name the same files: whichever stands, the next try follows it.
            Err(CommitError::Unknown(error)) => Err(error),
            Err(failed) => Err(self.after_failed_commit(failed)),
        }
    }

    /// Writes a manifest, and its copy where an ephemeral collection keeps its definition.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<(), CommitError> {
        // The catalog decides who owns the collection: a commit that does not follow the current version is refused
        // there.
        let bytes = self.catalog.commit(manifest)?;
        self.shared.counters.add_sidecar_bytes(bytes);
        if let Some(definition) = &self.definition
            && (manifest.schema != self.manifest.schema || manifest.settings != self.manifest.settings)
        {
            definition.commit(&manifest.without_events())?;
        }
        Ok(())
    }
}

type Staged = (Kind, Outcome, Vec<u8>, u64);

fn stage_one(stage: &mut Stage<'_>, change: Change) -> Result<Staged, WriteError> {
    let unseen = |e: StoreError| WriteError::Refused(format!("whether the events are there cannot be seen: {e}"));
    let targets = match change {
        Change::Write(events) => {
            let (kind, bytes) = (kind_of(&events), events.batch.bytes() as u64);
            let outcome = stage.write(events)?;
            return Ok((kind, outcome, stage.take_body(), bytes));
        }
        Change::DeleteIds(ids) => stage.targets(&ids).map_err(unseen)?,
        // Rows come from a snapshot that may be old: only those still alive go into the log, so a replay kills the
        // same ones.
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

/// Answers with an error what would have been stored.
fn fail_stored(
    answers: Vec<Result<Done, WriteError>>,
    error: impl Fn() -> WriteError,
) -> Vec<Result<Done, WriteError>> {
    // A duplicate of a write in this very group fails with it; one of an older write would not have to, but tells the
    // sender nothing wrong by being asked to come again.
    answers.into_iter().map(|answer| answer.and_then(|_| Err(error()))).collect()
}

/// Encodes the events of a write for the log.
pub(crate) fn body_of(events: &Events) -> Result<Vec<u8>, StoreError> {
    Ok(encode_events(&events.batch).map_err(meridian_model::Invalid::new)?)
}
