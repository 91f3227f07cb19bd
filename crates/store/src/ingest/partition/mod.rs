//! The core of a collection: a state machine over log, memory trees and segments, without its own threads.
//!
//! [`Partition::commit`] makes a group of writes durable and visible. Flushes and merges are jobs (`maintenance/`).
//! They are chosen and installed here, under the caller's lock of the partition, and run outside it. Readers never come
//! here: they load the published [`State`].

mod commit;
mod import;
mod lock;
mod manifest;
mod next;
mod sidecars;

pub(crate) use lock::PartitionLock;
pub(crate) use next::NextManifest;

use crate::catalog::lineage::Lineage;
use crate::error::{Problem, StoreError};
use crate::ingest::bodies::encode_events;
use crate::ingest::idempotency::{IdempotencyKeys, RememberedWrite};
use crate::ingest::stage::{Change, Events, Outcome};
use crate::ingest::tail::Tail;
use crate::manifest::{Manifest, SegmentEntry};
use crate::merge::choice::{RUNS_MERGED, tier};
use crate::merge::runs::merge_runs;
use crate::part::{Context, Entry, Part, PartView};
use crate::seams::WriteLog;
use crate::snapshot::SnapshotView;
use crate::snapshot::seen_of;
use crate::state::{Shared, State};
use meridian_model::{Mode, Seq};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Max rows of a merge that a writer does itself; larger merges are left to maintenance.
const INLINE_ROWS_MAX: u64 = 1 << 15;

/// Number of runs from which on a writer merges runs of any size, so that readers never see more.
const RUNS_MAX: usize = 48;
/// Divisor of the memory for writes: the max additional memory of a merge in memory.
const IN_MEMORY_PART: u64 = 4;

/// One partition of a collection.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) shared: Arc<Shared>,
    pub(crate) manifest: Manifest,
    /// Commits manifests.
    pub(crate) catalog: Arc<Lineage>,
    /// Whether a manifest is being committed, without the lock: no other may be made from the present one.
    pub(crate) is_committing: bool,
    /// Whether file numbers belong to an epoch that this process has committed.
    pub(crate) claimed: bool,
    /// Where the manifest of an ephemeral collection survives a restart; `None` if it is with the data.
    pub(crate) definition: Option<Lineage>,
    pub(crate) context: Arc<Context>,
    /// `None` for an ephemeral collection.
    pub(crate) log: Option<Box<dyn WriteLog>>,
    /// The tail of a collection that is followed with its log.
    pub(crate) tail: Option<Tail>,
    /// Segments first, then memory trees, oldest first.
    pub(crate) entries: Vec<Entry>,
    /// In a followed collection: segments that snapshots may still read, each with the version of the last manifest
    /// that named it.
    pub(crate) left: Vec<(u64, Weak<Part>)>,
    /// The manifest's entry of each open segment, by part number.
    pub(crate) segments: BTreeMap<u64, SegmentEntry>,
    /// Segments that could not be opened; they stay in the manifest.
    pub(crate) damaged: Vec<SegmentEntry>,
    pub(crate) problems: Vec<Problem>,
    /// Why a file that may be intact could not be read: the disk failed, or a newer program wrote it.
    pub(crate) unread: Option<StoreError>,
    /// Damage without loss: data served from another form.
    pub(crate) notes: Vec<Problem>,
    pub(crate) keys: IdempotencyKeys,
    pub(crate) position: u64,
    pub(crate) refuses: Option<String>,
    /// Whether writes are refused until it is reopened: its log is shared, and may hold more than is known here.
    pub(crate) reopens: bool,
    /// Whether files beside the manifest mention later writes.
    pub(crate) stale: bool,
    /// Parts that a running job works on.
    pub(crate) frozen: Vec<u64>,
    /// Segments that merges leave alone because they are damaged.
    pub(crate) unmergeable: Vec<u64>,
    /// Segments that could not be rebuilt.
    pub(crate) unmendable: Vec<u64>,
    /// Max runs over one period now, and the max once all merges are done.
    pub(crate) depth: (u32, u64),
    /// Whether a flush was requested and is not done yet.
    pub(crate) flush_wanted: bool,
    /// When the last group was committed, in microseconds of [`crate::seams::Clock::elapsed`].
    pub(crate) committed_at: i64,
}

/// A write as submitted by the queue.
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

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommittedWrite {
    /// Durable and visible.
    Stored(Outcome),
    /// Stored earlier under the same key.
    Duplicate(RememberedWrite),
}

impl Partition {
    /// Keeps the number of memory trees logarithmic by merging the newest trees of similar size.
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
            // A writer pays for small merges only, or all writers would wait for one; beyond the max number of runs
            // readers would.
            if tail.len() < RUNS_MERGED || (rows > INLINE_ROWS_MAX && !crowded) || !self.may_merge_in_memory(&tail) {
                return;
            }
            let inputs: Vec<Entry> = tail.iter().rev().map(|i| self.entries[*i].clone()).collect();
            match merge_runs(&self.shared, &self.context, &inputs, self.floor_for(&inputs)) {
                Ok(merged) => {
                    self.entries.retain(|e| inputs.iter().all(|i| i.part.number != e.part.number));
                    // Appended last, because the inputs were the newest: entries stay in order of age, which the
                    // search for ids relies on.
                    self.entries.extend(merged);
                }
                Err(e) => {
                    // The columns are too large to be concatenated: the trees stay as they are until the flush.
                    tracing::warn!(error = %e, "memory trees were not merged");
                    return;
                }
            }
        }
    }

    /// Returns true if these memory trees may be merged in memory, where both copies exist meanwhile. The flush merges
    /// larger ones.
    pub(crate) fn may_merge_in_memory(&self, runs: &[usize]) -> bool {
        let bytes: u64 = runs.iter().map(|i| self.entries[*i].part.bytes()).sum();
        bytes <= self.shared.options.memory_bytes / IN_MEMORY_PART
    }

    /// Returns the memory trees that no job works on, oldest first.
    pub(crate) fn loose_runs(&self) -> Vec<usize> {
        (0..self.entries.len())
            .filter(|i| {
                let part = &self.entries[*i].part;
                part.run().is_some() && !self.frozen.contains(&part.number)
            })
            .collect()
    }

    /// Returns the number up to which dead rows may be dropped from these parts; `None` if they hold none.
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
        let seen = SnapshotView::of(&self.context, seen_of(&views), self.problems.as_slice().into(), &self.shared.load);
        let memory: i64 = self.entries.iter().filter(|e| e.part.run().is_some()).map(|e| e.part.bytes() as i64).sum();
        // Both sums before the state: a writer that sees the new state must not find the room of the old one.
        let before = self.shared.memory.swap(memory, Ordering::AcqRel);
        self.shared.memory_all.change(&self.shared.tenant, before, memory);
        self.shared.state.store(Arc::new(State {
            position: self.position,
            context: self.context.clone(),
            settings: self.manifest.settings.clone(),
            history,
            views,
            seen: Arc::new(seen),
            notes: self.notes.as_slice().into(),
            refuses: self.refuses.clone(),
            reopens: self.reopens,
            log_tail_bytes: self.log.as_ref().map_or(0, |log| log.tail_bytes()),
            behind: self.behind(),
            keys: self.keys.len() as u64,
            depth: self.depth,
        }));
    }

    /// Returns when the oldest write not covered by a manifest was taken, in microseconds since 1970, if the log knows.
    pub(crate) fn behind(&self) -> Option<i64> {
        self.log.as_ref()?.oldest(self.manifest.flushed)
    }

    /// Returns true if nothing is missing and writes are accepted.
    pub(crate) fn is_sound(&self) -> bool {
        self.refuses.is_none() && self.damaged.is_empty() && !self.stale
    }

    /// Returns true if it has unreadable rows. Reads all rows.
    pub(crate) fn has_lost_blocks(&self) -> bool {
        let segments = self.entries.iter().filter_map(|entry| entry.part.segment());
        segments.into_iter().any(|segment| !segment.lost_blocks().is_empty())
    }

    /// Refuses writes from now on: the state here may differ from that of log and catalog.
    pub(crate) fn outdate(&mut self, why: String) {
        self.shared.outdated.store(true, Ordering::Release);
        self.reopens = self.log.as_ref().is_some_and(|log| log.is_shared());
        self.refuse(why);
    }

    /// Refuses writes from now on.
    pub(crate) fn refuse(&mut self, why: String) {
        tracing::error!(collection = %self.manifest.collection, why = %why, "the collection accepts no more writes");
        self.refuses = Some(why);
        self.publish();
    }

    /// Takes no more changes, flushes and merges, after a panic that may have left one half made. What was committed is
    /// whole, so a restart finds all of it. Readers keep the state that was published last.
    fn halt(&mut self) {
        // One that is followed is read anew from what its writer has committed.
        if self.shared.complete.is_followed() || self.shared.halted.swap(true, Ordering::AcqRel) {
            return;
        }
        let why = "a fault of the program interrupted a change of it: restart the server, and report the fault";
        tracing::error!(collection = %self.manifest.collection, why, "the collection accepts no more writes");
        self.refuses = Some(why.to_owned());
        self.reopens = false;
        // Nothing flushes its trees before the restart: writers elsewhere must not wait for their room.
        self.shared.release_memory();
        let last = self.shared.state.load_full();
        let halted = State { refuses: self.refuses.clone(), reopens: false, ..State::clone(&last) };
        self.shared.state.store(Arc::new(halted));
    }

    /// Returns whether a panic has interrupted a change.
    pub(crate) fn is_halted(&self) -> bool {
        self.shared.halted.load(Ordering::Acquire)
    }
}

/// Encodes the events of a write for the log.
pub(crate) fn body_of(events: &Events) -> Result<Vec<u8>, StoreError> {
    Ok(encode_events(&events.batch).map_err(meridian_model::Invalid::new)?)
}
