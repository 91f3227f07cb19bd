//! A collection as its users hold it.

use crate::error::{Gone, Problem, StoreError, WriteError};
use crate::expiry::{self, EXPIRY_EVERY_US, Expired, Expiry};
use crate::maintenance::{Job, Output};
use crate::options::{Durability, Settings};
use crate::part::{CHUNK_ROWS, PartView};
use crate::partition::{Done, Partition, Request, Shared, State, body_of, seen_of};
use crate::queue::Queue;
use crate::snapshot::Snapshot;
use crate::stage::{Change, Events, Target};
use crate::stats::CollectionStats;
use meridian_model::seq::BATCH_EVENTS_MAX;
use meridian_model::{Batch, Bounds, IdRole, Invalid, Schema, Seq};
use parking_lot::{Condvar, Mutex};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Instant;

/// What a write does with ids that the collection holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Refuses the whole batch, naming them.
    #[default]
    Refuse,
    /// Replaces their events.
    Replace,
    /// Replaces the event of this number, and nothing else: for one event that was read, changed and is written back.
    ReplaceOnly(Seq),
}

/// A batch to be written.
#[derive(Debug, Clone)]
pub struct Write {
    /// The events, with all columns.
    pub batch: Batch,
    /// Idempotency key: a second write with the same key changes nothing.
    pub key: Option<String>,
    /// What to do with ids that are there.
    pub on_conflict: OnConflict,
    /// When to give up waiting for room; `None`: after `Options::write_wait`.
    pub deadline: Option<Instant>,
}

impl Write {
    /// A plain write: no key, ids that are there are refused.
    pub fn new(batch: Batch) -> Write {
        Write { batch, key: None, on_conflict: OnConflict::Refuse, deadline: None }
    }

    /// The same with an idempotency key.
    pub fn with_key(self, key: impl Into<String>) -> Write {
        Write { key: Some(key.into()), ..self }
    }

    /// The same, replacing the event of this number and nothing else.
    pub fn replacing_only(self, seq: Seq) -> Write {
        Write { on_conflict: OnConflict::ReplaceOnly(seq), ..self }
    }

    /// The same, replacing events whose ids are there.
    pub fn replacing(self) -> Write {
        Write { on_conflict: OnConflict::Replace, ..self }
    }
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Events stored.
    pub written: u64,
    /// Events that they took the place of.
    pub replaced: u64,
    /// Events that were stored by an earlier write with the same key; then nothing else happened.
    pub duplicates: u64,
    /// Position of the write in the log (of the earlier one, for duplicates).
    pub position: u64,
    /// Sequence number of the first event; those after it follow one by one.
    pub first: Seq,
}

impl Written {
    pub(crate) fn of(done: Done) -> Written {
        match done {
            Done::Stored(outcome) => Written {
                written: outcome.written,
                replaced: outcome.killed,
                duplicates: 0,
                position: outcome.position,
                first: Seq::new(outcome.position, 0),
            },
            Done::Duplicate(known) => Written {
                written: 0,
                replaced: 0,
                duplicates: u64::from(known.events),
                position: known.position,
                first: Seq::new(known.position, 0),
            },
        }
    }
}

/// What a deletion came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// Events that are gone.
    pub deleted: u64,
    /// Position of the deletion in the log.
    pub position: u64,
}

/// A flush or merge in hand: begun, worked off, then installed. [`Collection::maintain`] does all three in one go.
pub struct Work {
    job: Job,
    output: Option<Result<Output, StoreError>>,
}

impl Work {
    pub(crate) fn of(job: Job) -> Work {
        Work { job, output: None }
    }
}

/// Longest idempotency key in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// A named set of events with one schema. Shared between threads by `Arc`.
#[derive(Debug)]
pub struct Collection {
    tenant: String,
    name: String,
    created: i64,
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: Mutex<Partition>,
    pub(crate) queue: Arc<Queue<Request, Done>>,
    /// Woken whenever a job is done: writers that wait for memory look again.
    room: Condvar,
    room_lock: Mutex<()>,
    /// One flush or merge of memory trees at a time, and one merge of segments.
    memory_lane: Mutex<()>,
    pub(crate) segment_lane: Mutex<()>,
    /// When to look for events past the retention next, in microseconds of [`crate::seams::Clock::elapsed`].
    expiry_due: AtomicI64,
    pub(crate) stop: AtomicBool,
    wake: Arc<Wake>,
}

/// Wakes the threads that flush and merge.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    calls: Mutex<u64>,
    changed: Condvar,
}

impl Wake {
    pub(crate) fn wake(&self) {
        *self.calls.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits for a call that came after those seen, or a while.
    pub(crate) fn wait(&self, seen: &mut u64, at_most: std::time::Duration) {
        let mut calls = self.calls.lock();
        if *calls == *seen {
            self.changed.wait_for(&mut calls, at_most);
        }
        *seen = *calls;
    }
}

impl Collection {
    pub(crate) fn new(tenant: &str, name: &str, partition: Partition, wake: Arc<Wake>) -> Arc<Collection> {
        Arc::new(Collection {
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            created: partition.manifest.created,
            shared: partition.shared.clone(),
            core: Mutex::new(partition),
            queue: Queue::new(),
            room: Condvar::new(),
            room_lock: Mutex::new(()),
            memory_lane: Mutex::new(()),
            segment_lane: Mutex::new(()),
            expiry_due: AtomicI64::new(i64::MIN),
            stop: AtomicBool::new(false),
            wake,
        })
    }

    /// Name of the collection.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tenant it belongs to.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// What it holds, as of now.
    pub fn schema(&self) -> Arc<Schema> {
        self.state().context.schema.clone()
    }

    /// What was chosen for it.
    pub fn settings(&self) -> Settings {
        self.state().settings.clone()
    }

    /// When it was made, in microseconds since 1970.
    pub fn created(&self) -> i64 {
        self.created
    }

    fn state(&self) -> Arc<State> {
        self.shared.state.load_full()
    }

    /// Stores a batch, whole or not at all. Returns once it is durable (as the collection's settings say) and visible.
    ///
    /// Blocks: for the disk, for writes before it, and, until the deadline, for room in memory.
    pub fn write(&self, write: Write) -> Result<Written, WriteError> {
        let deadline = write.deadline;
        let (request, bytes) = self.request_of(write)?;
        self.commit_in_turn(request, bytes, deadline).map(Written::of)
    }

    /// Checks a batch and makes it ready for the queue: the request and its bytes.
    pub(crate) fn request_of(&self, write: Write) -> Result<(Request, usize), WriteError> {
        let rows = write.batch.rows() as u64;
        if rows == 0 {
            return Err(WriteError::Invalid(vec![Invalid::new("the batch holds no event")]));
        }
        if rows > BATCH_EVENTS_MAX as u64 {
            let most = format!("a batch of {rows} events is too large: at most {BATCH_EVENTS_MAX}");
            return Err(WriteError::Invalid(vec![Invalid::new(most)]));
        }
        // Column buffers may be larger than their content; twice the limit is a batch that truly passes it.
        let (bytes, limit) = (write.batch.bytes() as u64, self.shared.options.batch_bytes);
        if bytes > limit.saturating_mul(2) {
            return Err(WriteError::TooLarge { bytes, limit });
        }
        if let Some(key) = &write.key
            && (key.is_empty() || key.len() > KEY_BYTES_MAX)
        {
            let detail = format!("an idempotency key must be 1 to {KEY_BYTES_MAX} bytes");
            return Err(WriteError::Invalid(vec![Invalid::field("Idempotency-Key", detail)]));
        }
        let context = self.state().context.clone();
        let replace = write.on_conflict != OnConflict::Refuse;
        let mut events = Events::of(&context, write.batch, replace).map_err(WriteError::Invalid)?;
        if let OnConflict::ReplaceOnly(seq) = write.on_conflict {
            events.only = Some(seq.0);
        }
        if self.is_durable() {
            events.body = body_of(&events).map_err(|e| WriteError::Refused(e.to_string()))?;
        }
        Ok((Request { change: Change::Write(events), key: write.key }, bytes as usize))
    }

    pub(crate) fn is_durable(&self) -> bool {
        !self.shared.options.ephemeral && self.state().settings.durability != Durability::Ephemeral
    }

    /// Deletes the events with these ids; those that are not there do not count.
    pub fn delete(&self, ids: &[String]) -> Result<Deleted, WriteError> {
        self.delete_change(Change::DeleteIds(ids.to_vec()))
    }

    /// Deletes rows that a snapshot showed; those that are gone meanwhile do not count.
    pub fn delete_rows(&self, rows: &[(PartView, Vec<u32>)]) -> Result<Deleted, WriteError> {
        let mut targets = Vec::new();
        for (view, rows) in rows {
            let chunk = |a: &u32, b: &u32| a / CHUNK_ROWS == b / CHUNK_ROWS;
            for rows in rows.chunk_by(chunk) {
                targets_of(view, rows, &mut targets).map_err(|e| WriteError::Refused(e.to_string()))?;
            }
        }
        self.delete_change(Change::DeleteRows(targets))
    }

    fn delete_change(&self, change: Change) -> Result<Deleted, WriteError> {
        match self.commit_in_turn(Request { change, key: None }, 1024, None)? {
            Done::Stored(outcome) => Ok(Deleted { deleted: outcome.killed, position: outcome.position }),
            Done::Duplicate(known) => Ok(Deleted { deleted: 0, position: known.position }),
        }
    }

    fn commit_in_turn(&self, request: Request, bytes: usize, deadline: Option<Instant>) -> Result<Done, WriteError> {
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.shared.options.write_wait);
        let _writing = self.shared.load.enter();
        self.wait_for_room(deadline)?;
        self.commit(request, bytes, deadline)
    }

    /// Queues a change and waits until it is committed.
    fn commit(&self, request: Request, bytes: usize, deadline: Instant) -> Result<Done, WriteError> {
        self.queue.push(request, bytes)?.wait(deadline, |group| self.commit_group(group))
    }

    /// Commits what the leader took from the queue.
    pub(crate) fn commit_group(&self, group: Vec<Request>) -> Vec<Result<Done, WriteError>> {
        if self.stop.load(Ordering::Acquire) {
            return group.iter().map(|_| Err(WriteError::Closed)).collect();
        }
        let done = self.core.lock().commit(group);
        if self.memory_is_short() {
            self.wake.wake();
        }
        done
    }

    /// Whether a write need not wait for a flush to make room in memory.
    pub fn has_room(&self) -> bool {
        self.shared.memory_all.load(Ordering::Acquire) as u64 <= self.shared.options.memory_bytes
    }

    fn memory_is_short(&self) -> bool {
        let all = self.shared.memory_all.load(Ordering::Acquire) as u64;
        let tail = self.shared.state.load().log_tail_bytes;
        all > self.shared.options.memory_bytes / 2 || tail > self.shared.options.log_bytes
    }

    /// Waits until flushes have made room in memory.
    fn wait_for_room(&self, deadline: Instant) -> Result<(), WriteError> {
        if self.has_room() {
            return Ok(());
        }
        if !self.shared.options.background {
            // Nobody else will make room.
            let _ = self.flush();
            return Ok(());
        }
        let mut lock = self.room_lock.lock();
        while !self.has_room() {
            if let Some(why) = &self.state().refuses {
                return Err(WriteError::Refused(why.clone()));
            }
            self.wake.wake();
            // A flush of another collection makes room as well and does not wake this one.
            let soon = Instant::now() + std::time::Duration::from_millis(50);
            self.room.wait_until(&mut lock, soon.min(deadline));
            if Instant::now() >= deadline {
                return Err(WriteError::Busy(
                    "memory for new events is full and its flush to disk lags behind: try again later".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// The collection as of now: everything that was acknowledged before the call. Waits for nobody.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.shared.horizon.take(self.shared.seams.clock.elapsed(), || {
            let state = self.state();
            (Seq::end_of(state.position).0, state)
        });
        self.snapshot_of(&state, Seq::end_of(state.position))
    }

    /// As [`Collection::snapshot`], with every live event: in mode `latest` also those that are not their object's
    /// newest.
    pub fn history(&self) -> Snapshot {
        let seq = self.snapshot().seq;
        self.history_of(seq)
    }

    /// As [`Collection::snapshot_at`], with every live event.
    pub fn history_at(&self, seq: Seq) -> Result<Snapshot, Gone> {
        self.snapshot_at(seq).map(|snapshot| self.history_of(snapshot.seq))
    }

    /// The history up to a number that was just noted as in use: the parts of now still have all that it sees.
    fn history_of(&self, seq: Seq) -> Snapshot {
        let state = self.state();
        let parts: Arc<[PartView]> = state.history.iter().map(|v| PartView { seq, ..v.clone() }).collect();
        Snapshot { parts: seen_of(&parts), ..self.snapshot_of(&state, seq) }
    }

    /// The collection as it was at the end of a write: what [`Snapshot::seq`] of an earlier snapshot says. It can be
    /// had for five minutes after its last use, and longer while no merge has dropped what it shows.
    pub fn snapshot_at(&self, seq: Seq) -> Result<Snapshot, Gone> {
        let state = self.state();
        if seq > Seq::end_of(state.position)
            || !self.shared.horizon.take_again(self.shared.seams.clock.elapsed(), seq.0)
        {
            return Err(Gone { seq });
        }
        // Loaded before the use was noted, the parts may have been merged past it: load again.
        Ok(self.snapshot_of(&self.state(), seq))
    }

    fn snapshot_of(&self, state: &State, seq: Seq) -> Snapshot {
        let parts = if seq == Seq::end_of(state.position) {
            state.seen.clone()
        } else {
            seen_of(&state.views.iter().map(|v| PartView { seq, ..v.clone() }).collect())
        };
        Snapshot {
            seq,
            schema: state.context.schema.clone(),
            layout: state.context.layout.clone(),
            parts,
            taken_at: self.shared.seams.clock.now(),
            missing: state.missing.clone(),
            _reading: Arc::new(self.shared.load.enter()),
        }
    }

    /// Position of the newest write.
    pub fn position(&self) -> u64 {
        self.state().position
    }

    /// The collection in numbers.
    pub fn stats(&self) -> CollectionStats {
        let state = self.state();
        let counters = &self.shared.counters;
        let mut stats = CollectionStats {
            position: state.position,
            log_tail_bytes: state.log_tail_bytes,
            keys: state.keys,
            refuses: state.refuses.clone(),
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
                stats.rest_bytes += segment.and_then(|s| s.rest()).map_or(0, |rest| rest.entry.bytes);
                stats.rows_bytes += segment.and_then(|s| s.rows_held()).map_or(0, |(bytes, _)| bytes);
                stats.bytes += view.part.bytes();
            }
        }
        stats.dead_rows = state.history.iter().map(|v| v.dead.count()).sum();
        for view in state.seen.iter() {
            bounds = Some(bounds.map_or(view.bounds(), |b| b.union(&view.bounds())));
        }
        stats.bounds = bounds;
        stats
    }

    /// Live events, in mode `latest` those of the history.
    pub(crate) fn history_events(&self) -> u64 {
        self.state().history.iter().map(|view| u64::from(view.rows()) - view.dead.count()).sum()
    }

    /// What is damaged: what answers lack ([`Snapshot::missing`]), and files that are served from elsewhere.
    pub fn problems(&self) -> Vec<Problem> {
        let state = self.state();
        state.missing.iter().chain(state.notes.iter()).cloned().collect()
    }

    /// Adds optional fields at the end of the schema.
    pub fn add_fields(&self, fields: Vec<meridian_model::Field>) -> Result<Arc<Schema>, StoreError> {
        self.change(fields, None)?;
        Ok(self.schema())
    }

    /// Changes the settings; the durability stays what it was made with.
    pub fn set_settings(&self, settings: Settings) -> Result<(), StoreError> {
        self.change(Vec::new(), Some(settings))
    }

    /// Adds optional fields and changes the settings: both or, on an error, neither.
    pub fn change(&self, fields: Vec<meridian_model::Field>, settings: Option<Settings>) -> Result<(), StoreError> {
        if fields.is_empty() && settings.is_none() {
            return Ok(());
        }
        let mut core = self.core.lock();
        let mut schema = core.manifest.schema.clone();
        for field in fields {
            if field.required {
                return Err(Invalid::field(&field.name, "a field added later cannot be required").into());
            }
            schema.fields.push(field);
        }
        schema.validate()?;
        if let Some(settings) = &settings {
            if settings.durability != core.manifest.settings.durability {
                return Err(Invalid::field("durability", "the durability of a collection cannot be changed").into());
            }
            expiry::check(settings, &schema)?;
        }
        core.change(Some(schema), settings)?;
        // The next look follows the new settings at once.
        self.expiry_due.store(i64::MIN, Ordering::Release);
        Ok(())
    }

    /// Lets go of the events that are past the collection's retention; `None` if there are none.
    pub fn expire(&self) -> Result<Option<Expired>, StoreError> {
        let state = self.state();
        if state.refuses.is_some() {
            return Ok(None);
        }
        let Some(before) = expiry::line(&state.settings, &state.history, self.shared.seams.clock.now()) else {
            return Ok(None);
        };
        let mut found = HashMap::new();
        for view in state.history.iter() {
            found.insert(view.part.number, expiry::expired_rows(&state.context, &view.part, &view.dead, before)?);
        }
        if found.values().all(RoaringBitmap::is_empty) {
            return Ok(None);
        }
        let request = Request { change: Change::Expire(Expiry { before, found }), key: None };
        let deadline = Instant::now() + self.shared.options.write_wait;
        match self.commit(request, 1024, deadline) {
            Ok(Done::Stored(outcome)) => {
                self.shared.counters.add_expired(outcome.killed);
                Ok(Some(Expired { before, expired: outcome.killed, position: outcome.position }))
            }
            Ok(Done::Duplicate(_)) => Ok(None),
            Err(WriteError::Closed) => Err(StoreError::Closed),
            Err(e) => Err(Invalid::new(format!("events past the retention stay for now: {e}")).into()),
        }
    }

    /// As [`Collection::expire`], if a look is due; says whether something was let go.
    pub fn maintain_retention(&self) -> Result<bool, StoreError> {
        let settings = &self.state().settings;
        let now = self.shared.seams.clock.elapsed();
        if (settings.retention.is_none() && settings.retention_bytes.is_none())
            || now < self.expiry_due.load(Ordering::Acquire)
        {
            return Ok(false);
        }
        self.expiry_due.store(now + EXPIRY_EVERY_US, Ordering::Release);
        Ok(self.expire()?.is_some())
    }

    /// Moves all memory trees into segments, and waits for it.
    pub fn flush(&self) -> Result<(), StoreError> {
        let _lane = self.memory_lane.lock();
        let job = {
            let mut core = self.core.lock();
            core.flush_wanted = true;
            core.next_memory_job(true)
        };
        match job {
            Some(job) => self.work(Work::of(job)),
            None => Ok(()),
        }
    }

    /// Does the most urgent flush or merge of memory trees; says whether there was one. For a simulator, and for the
    /// threads of the store.
    pub fn maintain_memory(&self, flush: bool) -> Result<bool, StoreError> {
        let Some(_lane) = self.memory_lane.try_lock() else { return Ok(false) };
        self.begin_memory(flush).map_or(Ok(false), |work| self.work(work).map(|()| true))
    }

    /// Does the most urgent merge of segments; says whether there was one.
    pub fn maintain_segments(&self) -> Result<bool, StoreError> {
        let Some(_lane) = self.segment_lane.try_lock() else { return Ok(false) };
        self.begin_segments().map_or(Ok(false), |work| self.work(work).map(|()| true))
    }

    /// Chooses the most urgent flush or merge of memory trees without doing it: [`Collection::run`] and
    /// [`Collection::install`] do. So a simulator can let writes come in between, as threads would.
    pub fn begin_memory(&self, flush: bool) -> Option<Work> {
        let job = self.core.lock().next_memory_job(flush)?;
        Some(Work::of(job))
    }

    /// Chooses the most urgent merge of segments without doing it.
    pub fn begin_segments(&self) -> Option<Work> {
        let job = self.core.lock().next_segment_job()?;
        Some(Work::of(job))
    }

    /// Works off what was begun. Readers and writers go on meanwhile.
    pub fn run(&self, work: &mut Work) {
        work.output = Some(work.job.run(&self.shared, &self.stop));
    }

    /// Puts the outcome in place; on an error everything stays as it was.
    pub fn install(&self, mut work: Work) -> Result<(), StoreError> {
        let output = work.output.take().unwrap_or_else(|| work.job.run(&self.shared, &self.stop));
        let result = self.core.lock().install(work.job, output);
        self.wake.wake();
        let _lock = self.room_lock.lock();
        self.room.notify_all();
        result
    }

    /// Lets go of what is past the retention, flushes and merges until there is nothing left to do.
    pub fn maintain(&self) -> Result<(), StoreError> {
        while self.maintain_retention()? || self.maintain_memory(false)? || self.maintain_segments()? {}
        Ok(())
    }

    pub(crate) fn work(&self, mut work: Work) -> Result<(), StoreError> {
        self.run(&mut work);
        self.install(work)
    }

    /// Takes no more work; jobs in hand end early.
    pub(crate) fn close(&self, flush: bool) -> Result<(), StoreError> {
        let flushed = if flush && self.is_durable() && self.state().refuses.is_none() { self.flush() } else { Ok(()) };
        self.stop.store(true, Ordering::Release);
        // Whoever is at work is through once the lanes and the core can be had.
        drop(self.memory_lane.lock());
        drop(self.segment_lane.lock());
        let memory = self.shared.memory.swap(0, Ordering::AcqRel);
        self.shared.memory_all.fetch_sub(memory, Ordering::AcqRel);
        flushed
    }
}

/// What names the events of some rows of one block.
fn targets_of(view: &PartView, rows: &[u32], targets: &mut Vec<Target>) -> Result<(), StoreError> {
    let (Some(first), Some(last)) = (rows.iter().min(), rows.iter().max().filter(|row| **row < view.rows())) else {
        return Ok(());
    };
    let span = *first..*last + 1;
    let seqs = view.seqs(span.clone())?;
    let mut wanted = meridian_model::Projection::none(view.layout());
    let mut ids = None;
    if view.context.rule.role == IdRole::Given {
        wanted.add_id(view.layout());
        ids = Some(view.read(span, &wanted)?);
    }
    for row in rows {
        let at = (row - first) as usize;
        let id = ids.as_ref().map_or_else(String::new, |batch| batch.id_of(at, Seq(seqs[at])));
        targets.push(Target { seq: seqs[at], id });
    }
    Ok(())
}
