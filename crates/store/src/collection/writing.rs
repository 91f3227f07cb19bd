//! Writes to a collection, and deletions from it.

use super::Collection;
use crate::error::{StoreError, WriteError};
use crate::ingest::digest;
use crate::ingest::partition::{CommittedWrite, Key, Request, body_of};
use crate::ingest::stage::{Change, Events, Target};
use crate::options::Durability;
use crate::part::{CHUNK_ROWS, PartView};
use crate::seams::wait;
use meridian_model::{Batch, IdRole, Invalid, Numbering, Seq};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The rule for ids that already exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Refuses the whole batch, reporting the ids.
    #[default]
    Refuse,
    /// Replaces their events.
    Replace,
    /// Replaces only the event with this sequence number, for a read-modify-write of one event.
    ReplaceOnly(Seq),
}

/// A batch to be written.
#[derive(Debug, Clone)]
pub struct Write {
    /// The events, with all columns.
    pub batch: Batch,
    /// Idempotency key. A second write with the same key changes nothing if its events are the same, and is refused if
    /// they differ.
    pub key: Option<String>,
    /// The rule for ids that already exist.
    pub on_conflict: OnConflict,
    /// When to stop waiting for room; `None` for the default, `Options::write_wait`.
    pub deadline: Option<Instant>,
}

impl Write {
    /// Creates a plain write: without a key, refusing existing ids.
    pub fn new(batch: Batch) -> Write {
        Write { batch, key: None, on_conflict: OnConflict::Refuse, deadline: None }
    }

    /// Sets an idempotency key.
    pub fn with_key(self, key: impl Into<String>) -> Write {
        Write { key: Some(key.into()), ..self }
    }

    /// Makes it replace the event of this number and nothing else.
    pub fn replacing_only(self, seq: Seq) -> Write {
        Write { on_conflict: OnConflict::ReplaceOnly(seq), ..self }
    }

    /// Makes it replace events with existing ids.
    pub fn replacing(self) -> Write {
        Write { on_conflict: OnConflict::Replace, ..self }
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteReceipt {
    /// Events stored.
    pub written: u64,
    /// Events that were replaced.
    pub replaced: u64,
    /// Events that were stored by an earlier write with the same key; then nothing else happened.
    pub duplicates: u64,
    /// Position of the write in the log (of the earlier one, for duplicates).
    pub position: u64,
    /// Sequence number of the first event; the others follow consecutively.
    pub first: Seq,
}

impl WriteReceipt {
    pub(crate) fn of(done: CommittedWrite, numbering: Numbering) -> WriteReceipt {
        match done {
            CommittedWrite::Stored(outcome) => WriteReceipt {
                written: outcome.written,
                replaced: outcome.killed,
                duplicates: 0,
                position: outcome.position,
                first: numbering.seq(outcome.position, 0),
            },
            CommittedWrite::Duplicate(known) => WriteReceipt {
                written: 0,
                replaced: 0,
                duplicates: u64::from(known.events),
                position: known.position,
                first: numbering.seq(known.position, 0),
            },
        }
    }
}

/// The outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteReceipt {
    /// Events that were deleted.
    pub deleted: u64,
    /// Position of the deletion in the log.
    pub position: u64,
}

/// Max wait of a queued write behind full groups, before others are refused. Including the running group and its own,
/// an accepted write may wait a few times as long.
const QUEUE_WAIT_MAX: Duration = Duration::from_millis(500);
/// Max bytes of an idempotency key.
pub const KEY_BYTES_MAX: usize = 255;

impl Collection {
    /// Stores a batch completely or not at all. Returns once it is durable (as the collection's settings require) and
    /// visible.
    ///
    /// Blocks for the disk, for earlier writes, and, until the deadline, for room in memory.
    pub fn write(&self, write: Write) -> Result<WriteReceipt, WriteError> {
        let deadline = write.deadline;
        let (request, bytes) = self.request_of(write)?;
        let numbering = self.numbering();
        self.commit_in_turn(request, bytes, deadline).map(|done| WriteReceipt::of(done, numbering))
    }

    /// Checks a batch and prepares it for the queue: returns the request and its bytes.
    pub(crate) fn request_of(&self, write: Write) -> Result<(Request, usize), WriteError> {
        let rows = write.batch.rows() as u64;
        if rows == 0 {
            return Err(WriteError::Invalid(vec![Invalid::new("the batch holds no event")]));
        }
        let rows_max = self.numbering().layout.batch_events_max();
        if rows > rows_max as u64 {
            let most = format!("a batch of {rows} events is too large: at most {rows_max}");
            return Err(WriteError::Invalid(vec![Invalid::new(most)]));
        }
        // Column buffers may be larger than their content. Beyond twice the limit, the content exceeds it too.
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
        // The schema may grow before the commit; the stage then widens the batch, so this work is not done under the
        // lock.
        let context = self.state().context.clone();
        let replace = write.on_conflict != OnConflict::Refuse;
        let mut events = Events::of(&context, write.batch, replace).map_err(WriteError::Invalid)?;
        if let OnConflict::ReplaceOnly(seq) = write.on_conflict {
            events.only = Some(seq.0);
        }
        if self.is_durable() {
            // Encoded by the writer's own thread: the leader of a group only copies bytes.
            events.body = body_of(&events).map_err(|e| WriteError::Refused(e.to_string()))?;
        }
        let seed = context.rule.seed;
        let key = write.key.map(|text| digest::of(seed, &events.batch).map(|batch| Key { text, batch }));
        let key = key.transpose().map_err(WriteError::Refused)?;
        Ok((Request { change: Change::Write(events), key }, bytes as usize))
    }

    pub(crate) fn numbering(&self) -> Numbering {
        self.state().context.numbering
    }

    pub(crate) fn is_durable(&self) -> bool {
        !self.shared.options.ephemeral && self.state().settings.durability != Durability::Ephemeral
    }

    /// Deletes the events with these ids; absent ones do not count.
    pub fn delete(&self, ids: &[String]) -> Result<DeleteReceipt, WriteError> {
        self.delete_change(Change::DeleteIds(ids.to_vec()))
    }

    /// Deletes rows that a snapshot showed; rows that are gone meanwhile do not count.
    pub fn delete_rows(&self, rows: &[(PartView, Vec<u32>)]) -> Result<DeleteReceipt, WriteError> {
        let mut targets = Vec::new();
        for (view, rows) in rows {
            let chunk = |a: &u32, b: &u32| a / CHUNK_ROWS == b / CHUNK_ROWS;
            for rows in rows.chunk_by(chunk) {
                targets_of(view, rows, &mut targets).map_err(|e| WriteError::Refused(e.to_string()))?;
            }
        }
        self.delete_change(Change::DeleteRows(targets))
    }

    fn delete_change(&self, change: Change) -> Result<DeleteReceipt, WriteError> {
        match self.commit_in_turn(Request { change, key: None }, 1024, None)? {
            CommittedWrite::Stored(outcome) => {
                Ok(DeleteReceipt { deleted: outcome.killed, position: outcome.position })
            }
            CommittedWrite::Duplicate(known) => Ok(DeleteReceipt { deleted: 0, position: known.position }),
        }
    }

    fn commit_in_turn(
        &self,
        request: Request,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<CommittedWrite, WriteError> {
        let deadline = deadline.unwrap_or_else(|| wait::deadline(self.shared.options.write_wait));
        // Counts as a request in flight, so that merges yield while this write waits.
        let _writing = self.shared.load.enter();
        self.wait_for_room(deadline)?;
        self.commit(request, bytes, deadline)
    }

    /// Queues a change and waits until it is committed.
    pub(super) fn commit(
        &self,
        request: Request,
        bytes: usize,
        deadline: Instant,
    ) -> Result<CommittedWrite, WriteError> {
        self.queue.push(request, bytes)?.wait(deadline, |group| self.commit_group(group))
    }

    /// Commits what the leader took from the queue.
    pub(crate) fn commit_group(&self, group: Vec<Request>) -> Vec<Result<CommittedWrite, WriteError>> {
        if self.stop.load(Ordering::Acquire) {
            let dropped = self.dropped.load(Ordering::Acquire);
            let refused = || if dropped { WriteError::Closed } else { WriteError::closes() };
            return group.iter().map(|_| Err(refused())).collect();
        }
        // One lock for the whole group, held over the sync: positions are assigned in the order in which they are
        // logged.
        let done = self.core.lock().commit(group);
        if self.memory_is_short() {
            self.wake.wake();
        }
        done
    }

    /// Returns true if a write would not wait, neither for a flush to make room in memory nor for a late queue.
    pub fn has_room(&self) -> bool {
        self.has_memory() && !self.queue.is_late(QUEUE_WAIT_MAX)
    }

    fn has_memory(&self) -> bool {
        self.shared.memory_all.has_room(&self.shared.tenant)
    }

    /// Refuses a write that would wait long behind others. The refusal comes early, before it costs more.
    pub(crate) fn refuse_if_late(&self) -> Result<(), WriteError> {
        match self.queue.is_late(QUEUE_WAIT_MAX) {
            true => Err(WriteError::late()),
            false => Ok(()),
        }
    }

    /// Does the same for a caller that waits itself. If there is no room, it requests a flush.
    ///
    /// # Errors
    /// [`WriteError::Refused`] if waiting is useless, because the collection accepts no writes. [`WriteError::Late`] if
    /// the queue is late.
    pub fn ask_for_room(&self) -> Result<bool, WriteError> {
        self.refuse_if_late()?;
        // Without background maintenance the write itself flushes.
        if self.has_memory() || !self.shared.options.background {
            return Ok(true);
        }
        let state = self.state();
        if let Some(why) = &state.refuses {
            return Err(WriteError::refused(why, state.reopens));
        }
        self.wake.wake();
        Ok(false)
    }

    /// Returns how long a write without a deadline waits for room.
    pub fn room_wait(&self) -> Duration {
        self.shared.options.write_wait
    }

    fn memory_is_short(&self) -> bool {
        let all = self.shared.memory_all.bytes();
        let tail = self.shared.state.load().log_tail_bytes;
        all > self.shared.options.memory_bytes / 2 || tail > self.shared.options.log_bytes
    }

    /// Waits until flushes have made room in memory.
    fn wait_for_room(&self, deadline: Instant) -> Result<(), WriteError> {
        if self.has_memory() {
            return Ok(());
        }
        // A simulator has no threads: the writer does their work.
        if !self.shared.options.background {
            // No thread will make room.
            let _ = self.flush();
            return Ok(());
        }
        // Its own lock, not the partition's: the flush that makes room needs that one.
        let mut lock = self.room_lock.lock();
        while !self.has_memory() {
            let state = self.state();
            if let Some(why) = &state.refuses {
                return Err(WriteError::refused(why, state.reopens));
            }
            self.wake.wake();
            // A flush of another collection makes room too, but does not notify this one.
            let soon = wait::deadline(Duration::from_millis(50));
            self.room.wait_until(&mut lock, soon.min(deadline));
            if wait::left(deadline).is_none() {
                return Err(WriteError::no_room());
            }
        }
        Ok(())
    }
}

/// Collects the ids or sequence numbers of some rows of one block.
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
