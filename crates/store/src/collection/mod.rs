//! A collection, as its callers use it.
//!
//! `writing.rs` writes and deletes events, and `pending.rs` does so without a waiting thread. `since.rs` reads events
//! written after a position, `prior.rs` the earlier place of an object, and `files.rs` lists GeoParquet files.
//! `upkeep.rs` runs the jobs of `maintenance/`.

mod files;
pub(crate) mod pending;
pub(crate) mod prior;
pub(crate) mod since;
mod upkeep;
mod writing;

pub use upkeep::Work;
pub use writing::{DeleteReceipt, KEY_BYTES_MAX, OnConflict, Write, WriteReceipt};

use crate::error::{Problem, SnapshotGone, StoreError};
use crate::expiry;
use crate::ingest::partition::{CommittedWrite, Partition, PartitionLock, Request};
use crate::ingest::queue::Queue;
use crate::manifest::{ImportOrigin, Manifest};
use crate::options::{Definition, Settings};
use crate::panics::Panics;
use crate::part::PartView;
use crate::seams::Catalog;
use crate::snapshot::Snapshot;
use crate::snapshot::seen_of;
use crate::state::{Shared, State};
use crate::stats::CollectionStats;
use meridian_model::{Bounds, Invalid, Schema, Seq};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A named set of events with one schema. Shared between threads by `Arc`.
#[derive(Debug)]
pub struct Collection {
    tenant: String,
    name: String,
    created: i64,
    partition: u32,
    pub(crate) shared: Arc<Shared>,
    /// Shared with the collection of the earlier name, after a rename in memory.
    pub(crate) core: Arc<PartitionLock>,
    pub(crate) queue: Arc<Queue<Request, CommittedWrite>>,
    /// Notified whenever a job is done, so that writers waiting for memory check again.
    room: Condvar,
    room_lock: Mutex<()>,
    /// One flush or merge of memory trees at a time, and one merge of segments.
    memory_lane: Mutex<()>,
    pub(crate) segment_lane: Mutex<()>,
    /// When to next check for events past the retention, in microseconds of [`crate::seams::Clock::elapsed`].
    expiry_due: AtomicI64,
    /// The pauses of its background jobs that have panicked.
    pub(crate) panics: Panics,
    pub(crate) stop: AtomicBool,
    /// Whether the collection no longer exists. A collection that was only stopped exists, and can be reopened.
    pub(crate) dropped: AtomicBool,
    wake: Arc<MaintenanceSignal>,
}

/// Wakes the threads that flush and merge.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceSignal {
    calls: Mutex<u64>,
    changed: Condvar,
}

impl MaintenanceSignal {
    pub(crate) fn wake(&self) {
        *self.calls.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits for a call after those already seen, or until the timeout.
    pub(crate) fn wait(&self, seen: &mut u64, at_most: std::time::Duration) {
        let mut calls = self.calls.lock();
        // Compared under the lock: a call between the last check and this wait is not lost.
        if *calls == *seen {
            self.changed.wait_for(&mut calls, at_most);
        }
        *seen = *calls;
    }
}

impl Collection {
    pub(crate) fn new(tenant: &str, name: &str, partition: Partition, wake: Arc<MaintenanceSignal>) -> Arc<Collection> {
        let (created, number) = (partition.manifest.created, partition.manifest.partition);
        let shared = partition.shared.clone();
        Collection::over((tenant, name), (created, number), shared, Arc::new(PartitionLock::new(partition)), wake)
    }

    /// Returns the same partition under another name, with its definition in another place; for a collection whose
    /// events are in memory. This one takes no more work.
    pub(crate) fn renamed(&self, name: &str, definition: Arc<dyn Catalog>) -> Arc<Collection> {
        self.stop.store(true, Ordering::Release);
        // Its running jobs end early. The renamed collection runs the next one.
        drop(self.memory_lane.lock());
        drop(self.segment_lane.lock());
        {
            let mut core = self.core.lock();
            name.clone_into(&mut core.manifest.collection);
            core.definition = core.definition.as_ref().map(|former| former.moved(definition));
        }
        let of = (self.created, self.partition);
        Collection::over((&self.tenant, name), of, self.shared.clone(), self.core.clone(), self.wake.clone())
    }

    fn over(
        (tenant, name): (&str, &str),
        (created, partition): (i64, u32),
        shared: Arc<Shared>,
        core: Arc<PartitionLock>,
        wake: Arc<MaintenanceSignal>,
    ) -> Arc<Collection> {
        Arc::new(Collection {
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            created,
            partition,
            shared,
            core,
            queue: Queue::new(),
            room: Condvar::new(),
            room_lock: Mutex::new(()),
            memory_lane: Mutex::new(()),
            segment_lane: Mutex::new(()),
            expiry_due: AtomicI64::new(i64::MIN),
            panics: Panics::default(),
            stop: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            wake,
        })
    }

    /// Returns the name of the collection.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns which of the partitions this is, from 0. One of several holds a part of the events.
    pub fn partition(&self) -> u32 {
        self.partition
    }

    /// Returns the tenant that owns it.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the current schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.state().context.schema.clone()
    }

    /// Returns its settings.
    pub fn settings(&self) -> Settings {
        self.state().settings.clone()
    }

    /// Returns when it was created, in microseconds since 1970.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// Returns when its content began, in microseconds since 1970: when it was created or restored, or at the start of
    /// an ephemeral one. Two contents that assign the same numbers to different events differ in it.
    pub fn began(&self) -> i64 {
        self.shared.began
    }

    /// Returns which of its events a restore divided among another number of partitions, if any.
    pub fn imported(&self) -> Option<ImportOrigin> {
        self.shared.imported.clone()
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.shared.state.load_full()
    }

    /// Returns a snapshot of now: everything acknowledged before the call. Does not wait for writers.
    pub fn snapshot(&self) -> Snapshot {
        // The state is loaded inside, so that a merge cannot raise the floor above it between the two. It is borrowed,
        // because all threads contend for its reference count.
        let state = self.shared.horizon.take(self.shared.seams.clock.elapsed(), || {
            let state = self.shared.state.load();
            (Seq::end_of(state.position).0, state)
        });
        self.snapshot_of(&state, Seq::end_of(state.position))
    }

    /// Returns what [`Collection::snapshot`] does, with every live event; in mode `latest` that includes events that
    /// are not their object's newest.
    pub fn history(&self) -> Snapshot {
        let seq = self.snapshot().seq;
        self.history_of(seq)
    }

    /// Returns what [`Collection::snapshot_at`] does, with every live event.
    pub fn history_at(&self, seq: Seq) -> Result<Snapshot, SnapshotGone> {
        self.snapshot_at(seq).map(|snapshot| self.history_of(snapshot.seq))
    }

    /// Returns the history up to a number just marked as in use. The current parts still have everything it sees.
    fn history_of(&self, seq: Seq) -> Snapshot {
        let state = self.state();
        let parts: Arc<[PartView]> = state.history.iter().map(|v| PartView { seq, ..v.clone() }).collect();
        self.snapshot_of(&state, seq).with_parts(seen_of(&parts))
    }

    /// Returns the state at the end of a write, by [`Snapshot::seq`] of an earlier snapshot. It is available for five
    /// minutes after its last use, and longer as long as no merge has dropped rows it shows.
    pub fn snapshot_at(&self, seq: Seq) -> Result<Snapshot, SnapshotGone> {
        let (newest, now) = (Seq::end_of(self.state().position), self.shared.seams.clock.elapsed());
        if seq > newest
            // Once the owner of the collection no longer receives this reader's pins, rows of earlier snapshots may be
            // gone.
            || (seq < newest && now >= self.shared.pinned_until.load(Ordering::Acquire))
            // A future number comes from another collection, or from before a restore: it is refused like an expired
            // one.
            || !self.shared.horizon.take_again(now, seq.0)
        {
            return Err(SnapshotGone { seq });
        }
        // The parts loaded before the use was recorded may have been merged past it, so load them again.
        let state = self.state();
        // A recorded use stops merges here, but not those of the owner of a followed collection.
        if seq.0 < self.shared.horizon.dropped() {
            return Err(SnapshotGone { seq });
        }
        Ok(self.snapshot_of(&state, seq))
    }

    /// Records that another process now shows the snapshot of this number, so that it stays as long as one taken here.
    /// Returns false if it is gone.
    pub fn note_use(&self, seq: Seq) -> bool {
        seq <= Seq::end_of(self.state().position)
            && self.shared.horizon.take_again(self.shared.seams.clock.elapsed(), seq.0)
    }

    fn snapshot_of(&self, state: &State, seq: Seq) -> Snapshot {
        // The newest snapshot is by far the most frequent: its filtered list of parts is computed once per write, not
        // per request.
        let newest = Snapshot {
            seq,
            taken_at: self.shared.complete.of(seq.position(), self.shared.seams.clock.now()),
            seen: state.seen.clone(),
            reading: Some(self.shared.load.enter()),
        };
        if seq == Seq::end_of(state.position) {
            return newest;
        }
        newest.with_parts(seen_of(&state.views.iter().map(|v| PartView { seq, ..v.clone() }).collect()))
    }

    /// Returns the position of the newest write.
    pub fn position(&self) -> u64 {
        self.state().position
    }

    /// Returns true if anything was ever written to it.
    pub(crate) fn was_written(&self) -> bool {
        self.position() != 0
    }

    /// Returns the collection's statistics.
    pub fn stats(&self) -> CollectionStats {
        let state = self.state();
        let counters = &self.shared.counters;
        let (install_us, install_us_max) = counters.installs_us();
        let mut stats = CollectionStats {
            position: state.position,
            log_tail_bytes: state.log_tail_bytes,
            keys: state.keys,
            refuses: state.refuses.clone().filter(|_| !state.reopens),
            blocks_read: counters.blocks_read(),
            cache_hits: counters.cache_hits(),
            cache_misses: counters.cache_misses(),
            bytes_read: counters.bytes_read(),
            bytes_taken: counters.bytes_taken(),
            log_bytes: counters.log_bytes(),
            flush_bytes: counters.flush_bytes(),
            merge_bytes: counters.merge_bytes(),
            rest_written_bytes: counters.rest_bytes(),
            sidecar_bytes: counters.sidecar_bytes(),
            flush_rows: counters.flush_rows(),
            merge_rows: counters.merge_rows(),
            depth: u64::from(state.depth.0),
            depth_bound: state.depth.1,
            expired: counters.expired(),
            syncs: counters.syncs(),
            groups: counters.groups(),
            job_panics: counters.job_panics(),
            install_us,
            install_us_max,
            ..CollectionStats::default()
        };
        let mut bounds: Option<Bounds> = None;
        for view in state.views.iter() {
            let rows = u64::from(view.rows());
            stats.events += rows - view.dead.count();
            if view.in_memory() {
                stats.runs += 1;
                stats.memory_rows += rows;
                stats.memory_bytes += view.part.bytes();
            } else {
                stats.segments += 1;
                let segment = view.part.segment();
                stats.rest_bytes += segment.and_then(|s| s.archive()).map_or(0, |archive| archive.entry.bytes);
                stats.rows_bytes += segment.and_then(|s| s.rows_held()).map_or(0, |(bytes, _)| bytes);
                let closed = view.part.closed();
                stats.rest_bytes += closed.map_or(0, |closed| closed.archive_bytes());
                stats.rows_bytes += closed.map_or(0, |closed| closed.rows_bytes());
                stats.bytes += view.part.bytes();
            }
        }
        stats.dead_rows = state.history.iter().map(|v| v.dead.count()).sum();
        for view in state.seen.parts.iter() {
            let extent = view.part.extent();
            bounds = Some(bounds.map_or(extent, |b| b.union(&extent)));
        }
        stats.bounds = bounds;
        stats
    }

    /// Returns the number of live events; in mode `latest` including the history.
    pub(crate) fn history_events(&self) -> u64 {
        self.state().history.iter().map(|view| u64::from(view.rows()) - view.dead.count()).sum()
    }

    /// Returns the damage: parts missing from responses ([`SnapshotView::missing`](crate::SnapshotView::missing)), and
    /// files served from another form.
    pub fn problems(&self) -> Vec<Problem> {
        let state = self.state();
        state.seen.missing.iter().chain(state.notes.iter()).cloned().collect()
    }

    /// Appends optional fields to the schema.
    pub fn add_fields(&self, fields: Vec<meridian_model::Field>) -> Result<Arc<Schema>, StoreError> {
        self.change(fields, None)?;
        Ok(self.schema())
    }

    /// Changes the settings, except the durability, which is fixed at creation.
    pub fn set_settings(&self, settings: Settings) -> Result<(), StoreError> {
        self.change(Vec::new(), Some(settings))
    }

    /// Appends optional fields and changes the settings; on an error neither happens.
    pub fn change(&self, fields: Vec<meridian_model::Field>, settings: Option<Settings>) -> Result<(), StoreError> {
        self.change_from(None, fields, settings)
    }

    /// As [`Collection::change`], only if the collection has the definition `seen`, where one is given.
    ///
    /// # Errors
    /// [`StoreError::Changed`] if it has another one.
    pub fn change_from(
        &self,
        seen: Option<&Definition>,
        fields: Vec<meridian_model::Field>,
        settings: Option<Settings>,
    ) -> Result<(), StoreError> {
        if fields.is_empty() && settings.is_none() {
            return Ok(());
        }
        // One lock from reading the schema to committing the change, so that concurrent changes do not undo each other.
        let mut core = self.core.lock_to_commit();
        let Manifest { schema, settings: current, .. } = &core.manifest;
        if seen.is_some_and(|seen| seen.schema != *schema || seen.settings != *current) {
            return Err(StoreError::Changed);
        }
        let mut schema = schema.clone();
        for field in fields {
            if field.required {
                return Err(Invalid::field(&field.name, "a field added later cannot be required").into());
            }
            // Only at the end: columns are identified by number in the log and in segments.
            schema.fields.push(field);
        }
        schema.validate()?;
        if let Some(settings) = &settings {
            settings.may_follow(&core.manifest.settings)?;
            expiry::check(settings, &schema)?;
        }
        core.change(Some(schema), settings)?;
        // The next check follows the new settings at once.
        self.expiry_due.store(i64::MIN, Ordering::Release);
        Ok(())
    }
}
