//! Follows a collection: a position that moves through the writes.

use super::fence::{Fence, numbered};
use super::request::StreamRequest;
use super::streams::StreamSlot;
use crate::errors;
use crate::problem::{Problem, Result};
use crate::reproject::reproject;
use crate::scope::Scope;
use meridian_admission::gate::Account;
use meridian_backend::{Changes, Collection};
use meridian_formats::FeatureWriter;
use meridian_model::policy::quota::Quota;
use meridian_model::{Batch, Schema, Seq, When};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

/// Max events listed at a time, by their numbers: a megabyte.
const SEQS_MAX: usize = 1 << 16;
/// Target size of one read of events, in bytes.
const READ_BYTES: usize = 256 << 10;
/// Max reads with one permit, where few of the events match.
const READS_MAX: usize = 16;
/// Delay between two reads, so that writes in quick succession are read together.
const BATCH_DELAY: Duration = Duration::from_millis(5);
/// Interval of keep-alive messages: proxies close connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a read waits for a permit before it tries again.
const PERMIT_WAIT: Duration = Duration::from_secs(30);

/// An event for the client: its position, and its feature as JSON.
pub(super) type SentEvent = (Seq, Vec<u8>);

/// The next message of a stream.
pub(super) enum Update {
    /// Events, at least one.
    Events(Vec<SentEvent>),
    /// Nothing was written for a while: the client is sent the position of the stream.
    KeepAlive(Seq),
    /// Some files are damaged: events may be missing from here on.
    Missing(String),
    /// The stream is over.
    End(End),
}

/// Why a stream ends, and the position to resume after.
pub(super) struct End {
    pub(super) reason: &'static str,
    pub(super) detail: String,
    pub(super) after: Seq,
}

/// An open stream.
pub(super) struct Follower {
    state: Scope,
    /// The account that its reads are charged to.
    account: Account,
    collection: Arc<dyn Collection>,
    request: StreamRequest,
    writer: FeatureWriter,
    schema: Arc<Schema>,
    /// Set where the client asked for transitions of moving objects.
    fence: Option<Fence>,
    /// Everything up to this position was read.
    at: Seq,
    /// The read in progress: its rest is sent before anything newer is read.
    changes: Option<Box<dyn Changes>>,
    notifications: watch::Receiver<()>,
    ends: Instant,
    caught_up_at: Option<Instant>,
    reported_missing: bool,
    _slot: StreamSlot,
}

impl Follower {
    pub(super) fn new(
        state: Scope,
        account: Account,
        collection: Arc<dyn Collection>,
        mut request: StreamRequest,
        slot: StreamSlot,
    ) -> Result<Follower> {
        let schema = collection.schema();
        let writer = writer_of(&schema, &request)?;
        let notifications = state.live.subscribe(collection.name());
        let ends = Instant::now() + state.config.stream_lifetime;
        let at = request.after;
        let fence = request.when.take().map(|when| Fence::new(when, state.config.stream_objects_max));
        Ok(Follower {
            state,
            account,
            collection,
            request,
            writer,
            schema,
            fence,
            at,
            changes: None,
            notifications,
            ends,
            caught_up_at: None,
            reported_missing: false,
            _slot: slot,
        })
    }

    /// The position of the stream.
    pub(super) fn at(&self) -> Seq {
        self.at
    }

    /// An end at the current position.
    pub(super) fn end(&self, reason: &'static str, detail: impl Into<String>) -> End {
        End { reason, detail: detail.into(), after: self.at }
    }

    /// Waits for the next update. If the wait is dropped nothing is lost: the client reconnects at its last position.
    pub(super) async fn next(self) -> (Follower, Update) {
        let mut follower = self;
        let alive = Instant::now() + KEEP_ALIVE;
        loop {
            if follower.state.live.is_closed() {
                let end = follower.end("closing", "the server is shutting down: reconnect");
                return (follower, Update::End(end));
            }
            if Instant::now() >= follower.ends {
                let end = follower.end("lifetime", "the stream reached its max duration: reconnect");
                return (follower, Update::End(end));
            }
            // Marked as seen before the position is read, so that a write after that read notifies again.
            follower.notifications.mark_unchanged();
            let pending = follower.changes.is_some() || follower.at < Seq::end_of(follower.collection.position());
            if !pending {
                if Instant::now() >= alive {
                    let next = follower.check_collection();
                    return (follower, next);
                }
                let until = alive.min(follower.ends);
                let notified = tokio::time::timeout_at(until, follower.notifications.changed()).await.is_ok();
                let pending = follower.at < Seq::end_of(follower.collection.position());
                if notified
                    && !pending
                    && let next @ Update::End(_) = follower.check_collection()
                {
                    // Notified without a new event: the write went to another collection of this name.
                    return (follower, next);
                }
                continue;
            }
            // Only a stream that has caught up delays its read. One that is behind reads at full speed.
            if let Some(at) = follower.caught_up_at.filter(|_| follower.changes.is_none()) {
                tokio::time::sleep_until(at + BATCH_DELAY).await;
            }
            // A permit for each read and none while idle, so that thousands of quiet streams leave the permits to
            // queries.
            let resumed =
                follower.state.gate.resume(&follower.account, Duration::ZERO, Instant::now() + PERMIT_WAIT).await;
            let Ok(permit) = resumed else { continue };
            let read = tokio::task::spawn_blocking(move || {
                permit.meter().begin();
                let read = follower.read();
                drop(permit);
                (follower, read)
            });
            // A read that panics ends its stream: the client reconnects at its last position.
            let read = match read.await {
                Ok((back, read)) => {
                    follower = back;
                    read
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            match read {
                Ok(Some(next)) => return (follower, next),
                Ok(None) if Instant::now() >= alive => {
                    let next = Update::KeepAlive(follower.at);
                    return (follower, next);
                }
                Ok(None) => {}
                Err(problem) => {
                    let end = follower.end("error", problem.detail());
                    return (follower, Update::End(end));
                }
            }
        }
    }

    /// Checks that the collection is still the followed one.
    fn check_collection(&self) -> Update {
        let now = self.state.view().collection(self.collection.name());
        match now {
            // By the time of creation: a new collection may have the old name.
            Some(now) if now.created() == self.collection.created() => Update::KeepAlive(self.at),
            _ => Update::End(self.end("gone", "the collection was removed or renamed")),
        }
    }

    /// Reads on from the position. The position moves past every event read, whether or not it matches.
    fn read(&mut self) -> Result<Option<Update>> {
        // Bounded, so that a stream with a narrow filter gives its permit back between reads.
        for _ in 0..READS_MAX {
            let mut changes = match self.changes.take() {
                Some(changes) => changes,
                None => self.collection.changes_after(self.at, SEQS_MAX, READ_BYTES).map_err(errors::store_problem)?,
            };
            if let Some(problem) = changes.missing().first().filter(|_| !self.reported_missing) {
                self.reported_missing = true;
                return Ok(Some(Update::Missing(problem.to_string())));
            }
            let Some((batch, seqs)) = changes.read().map_err(errors::store_problem)? else {
                // Not the last event read: writes without an event, such as deletions, also move the position.
                self.at = changes.upto();
                self.caught_up_at = Some(Instant::now());
                return Ok(None);
            };
            self.account.ledger.charge(Quota::ScannedBytesPerSecond, batch.bytes() as u64);
            // The client may take long to read this, and maintenance should not wait for it.
            changes.park();
            self.changes = Some(changes);
            if !Arc::ptr_eq(batch.schema(), &self.schema) {
                // Fields were added to the collection.
                self.schema = batch.schema().clone();
                self.writer = writer_of(&self.schema, &self.request)?;
            }
            let predicate = &self.request.predicate;
            let batch = numbered(batch, &seqs, predicate);
            let selected: Vec<(u32, Option<When>)> = match &mut self.fence {
                None => predicate.evaluate(&batch).set_indices().map(|row| (row as u32, None)).collect(),
                Some(fence) => {
                    let transitions = fence.transitions(self.collection.as_ref(), predicate, &batch, &seqs)?;
                    transitions.into_iter().map(|(row, when)| (row, Some(when))).collect()
                }
            };
            let sent = self.write(&batch, &seqs, &selected)?;
            // Also past events that did not match: otherwise a stream with a narrow filter would read the same events
            // again after each reconnect.
            self.at = seqs.last().copied().unwrap_or(self.at);
            if !sent.is_empty() {
                self.state.live.sent.fetch_add(sent.len() as u64, Ordering::Relaxed);
                return Ok(Some(Update::Events(sent)));
            }
        }
        Ok(None)
    }

    /// Encodes the selected events.
    fn write(&self, batch: &Batch, seqs: &[Seq], selected: &[(u32, Option<When>)]) -> Result<Vec<SentEvent>> {
        if selected.is_empty() {
            return Ok(Vec::new());
        }
        let (rows, seqs): (Vec<u32>, Vec<Seq>) = selected.iter().map(|(row, _)| (*row, seqs[*row as usize])).unzip();
        let picked = reproject(&batch.take(&rows), self.request.crs)?;
        let features = self.writer.rows(&picked, &seqs);
        let one = |(row, (seq, (_, when))): (usize, (&Seq, &(u32, Option<When>)))| {
            let mut feature = Vec::with_capacity(256);
            features.feature_with(row, &mut feature, |out| {
                let mut member = |name: &str, value: &str| {
                    for piece in [",\"", name, "\":\"", value, "\""] {
                        out.extend_from_slice(piece.as_bytes());
                    }
                };
                member("position", &seq.to_id());
                if let Some(when) = when {
                    member("when", when.word());
                }
            });
            (*seq, feature)
        };
        Ok(seqs.iter().zip(selected).enumerate().map(one).collect())
    }

    /// Max time for a client to receive this many bytes.
    pub(super) fn send_timeout(&self, bytes: usize) -> Duration {
        let config = &self.state.config;
        let at_rate = (bytes as u64).checked_div(config.answer_rate_min).map(Duration::from_secs);
        config.write_stall.saturating_add(at_rate.unwrap_or(Duration::from_secs(u64::from(u32::MAX))))
    }

    /// The end for a client that reads too slowly; it resumes after the last event it received.
    pub(super) fn too_slow(&self, after: Seq) -> End {
        self.state.live.slow.fetch_add(1, Ordering::Relaxed);
        let detail = "the client reads more slowly than it may: reconnect";
        tracing::info!(collection = self.collection.name(), %after, "a reader of a stream was disconnected: it reads too slowly");
        End { reason: "slow", detail: detail.to_owned(), after }
    }
}

fn writer_of(schema: &Schema, request: &StreamRequest) -> Result<FeatureWriter> {
    let fields: Option<Vec<String>> = request
        .properties
        .as_ref()
        .map(|names| names.iter().filter(|name| schema.field_index(name).is_some()).cloned().collect());
    FeatureWriter::new(schema, fields.as_deref()).map_err(|e| Problem::invalid_parameter("properties", e))
}
