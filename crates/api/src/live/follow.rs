//! A position that moves through what was written.

use super::fence::{Fence, numbered};
use super::news::Turn;
use super::request::Asked;
use crate::problem::{Problem, Result};
use crate::reproject::reproject;
use crate::snapshot as edge;
use crate::state::AppState;
use meridian_backend::{Changes, Collection};
use meridian_formats::FeatureWriter;
use meridian_model::{Batch, Schema, Seq, When};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Numbers of events noted at a time: a megabyte.
const NOTED_MAX: usize = 1 << 16;
/// About so many bytes of events are read in one look.
const LOOK_BYTES: usize = 256 << 10;
/// Reads of one look at most, where few of the events match.
const READS_MAX: usize = 16;
/// What is written shortly after another is looked at together with it.
const GATHER: Duration = Duration::from_millis(5);
/// Proxies cut connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a look waits for a place; when there is none it is tried again.
const PLACE_WAIT: Duration = Duration::from_secs(30);

/// An event for the client: its position, and its feature as JSON.
pub(super) type Sent = (Seq, Vec<u8>);

/// What comes of a wait.
pub(super) enum Next {
    /// Events, at least one.
    Events(Vec<Sent>),
    /// Nothing for a while: the client is told that the stream is alive, and where it stands.
    Alive(Seq),
    /// Some files are damaged: events may be missing from here on.
    Missing(String),
    /// The stream is over.
    End(End),
}

/// Why a stream ends, and where to go on.
pub(super) struct End {
    pub(super) reason: &'static str,
    pub(super) detail: String,
    pub(super) after: Seq,
}

/// A stream at work.
pub(super) struct Follower {
    state: AppState,
    collection: Arc<dyn Collection>,
    asked: Asked,
    writer: FeatureWriter,
    schema: Arc<Schema>,
    /// Where comings and leavings are to be told.
    fence: Option<Fence>,
    /// All up to this has been looked at.
    at: Seq,
    changes: Option<Box<dyn Changes>>,
    bell: watch::Receiver<()>,
    ends: Instant,
    looked: Option<Instant>,
    told_missing: bool,
    _turn: Turn,
}

impl Follower {
    pub(super) fn new(
        state: AppState,
        collection: Arc<dyn Collection>,
        mut asked: Asked,
        turn: Turn,
    ) -> Result<Follower> {
        let schema = collection.schema();
        let writer = writer_of(&schema, &asked)?;
        let bell = state.live.bell(collection.name());
        let ends = Instant::now() + state.config.stream_lifetime;
        let at = asked.after;
        let fence = asked.when.take().map(|when| Fence::new(when, state.config.stream_objects_max));
        Ok(Follower {
            state,
            collection,
            asked,
            writer,
            schema,
            fence,
            at,
            changes: None,
            bell,
            ends,
            looked: None,
            told_missing: false,
            _turn: turn,
        })
    }

    /// Where the stream stands.
    pub(super) fn at(&self) -> Seq {
        self.at
    }

    /// An end here.
    pub(super) fn end(&self, reason: &'static str, detail: impl Into<String>) -> End {
        End { reason, detail: detail.into(), after: self.at }
    }

    /// Waits for the next that the client is to be told. Dropped while it waits, nothing is lost.
    pub(super) async fn next(self) -> (Follower, Next) {
        let mut follower = self;
        let alive = Instant::now() + KEEP_ALIVE;
        loop {
            if follower.state.live.is_closed() {
                let end = follower.end("closing", "the server is shutting down: come back");
                return (follower, Next::End(end));
            }
            if Instant::now() >= follower.ends {
                let end = follower.end("lifetime", "a stream lasts no longer: come back");
                return (follower, Next::End(end));
            }
            // Marked as seen before the position is read: a write after that rings again.
            follower.bell.mark_unchanged();
            let news = follower.changes.is_some() || follower.at < Seq::end_of(follower.collection.position());
            if !news {
                if Instant::now() >= alive {
                    let next = follower.look_round();
                    return (follower, next);
                }
                let until = alive.min(follower.ends);
                let rung = tokio::time::timeout_at(until.into(), follower.bell.changed()).await.is_ok();
                let news = follower.at < Seq::end_of(follower.collection.position());
                if rung
                    && !news
                    && let next @ Next::End(_) = follower.look_round()
                {
                    // What was written went to another collection of this name.
                    return (follower, next);
                }
                continue;
            }
            if let Some(looked) = follower.looked.filter(|_| follower.changes.is_none()) {
                tokio::time::sleep_until((looked + GATHER).into()).await;
            }
            let Ok(permit) = follower.state.limiter.again(Instant::now() + PLACE_WAIT).await else { continue };
            let looked = tokio::task::spawn_blocking(move || {
                let looked = follower.look();
                drop(permit);
                (follower, looked)
            });
            // A look that panics takes its stream with it: the client comes back to where it was.
            let looked = match looked.await {
                Ok((back, looked)) => {
                    follower = back;
                    looked
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            match looked {
                Ok(Some(next)) => return (follower, next),
                Ok(None) if Instant::now() >= alive => {
                    let next = Next::Alive(follower.at);
                    return (follower, next);
                }
                Ok(None) => {}
                Err(problem) => {
                    let end = follower.end("error", problem.detail());
                    return (follower, Next::End(end));
                }
            }
        }
    }

    /// Whether the collection is still the one that is followed.
    fn look_round(&self) -> Next {
        let now = self.state.backend.collection(&self.state.config.tenant, self.collection.name());
        match now {
            Some(now) if now.created() == self.collection.created() => Next::Alive(self.at),
            _ => Next::End(self.end("gone", "the collection was removed or renamed")),
        }
    }

    /// Reads on. Every number that was read is behind the stream, whether or not its event matches.
    fn look(&mut self) -> Result<Option<Next>> {
        for _ in 0..READS_MAX {
            let mut changes = match self.changes.take() {
                Some(changes) => changes,
                None => self.collection.changes_after(self.at, NOTED_MAX, LOOK_BYTES).map_err(edge::store_problem)?,
            };
            if let Some(problem) = changes.missing().first().filter(|_| !self.told_missing) {
                self.told_missing = true;
                return Ok(Some(Next::Missing(problem.to_string())));
            }
            let Some((batch, seqs)) = changes.read().map_err(edge::store_problem)? else {
                self.at = changes.upto();
                self.looked = Some(Instant::now());
                return Ok(None);
            };
            // The client may take long for what is sent now.
            changes.rest();
            self.changes = Some(changes);
            if !Arc::ptr_eq(batch.schema(), &self.schema) {
                // Fields were added.
                self.schema = batch.schema().clone();
                self.writer = writer_of(&self.schema, &self.asked)?;
            }
            let predicate = &self.asked.predicate;
            let batch = numbered(batch, &seqs, predicate);
            let told: Vec<(u32, Option<When>)> = match &mut self.fence {
                None => predicate.evaluate(&batch).set_indices().map(|row| (row as u32, None)).collect(),
                Some(fence) => {
                    let told = fence.told(self.collection.as_ref(), predicate, &batch, &seqs)?;
                    told.into_iter().map(|(row, when)| (row, Some(when))).collect()
                }
            };
            let sent = self.write(&batch, &seqs, &told)?;
            self.at = seqs.last().copied().unwrap_or(self.at);
            if !sent.is_empty() {
                self.state.live.sent.fetch_add(sent.len() as u64, Ordering::Relaxed);
                return Ok(Some(Next::Events(sent)));
            }
        }
        Ok(None)
    }

    /// Some of the events as the client gets them.
    fn write(&self, batch: &Batch, seqs: &[Seq], told: &[(u32, Option<When>)]) -> Result<Vec<Sent>> {
        if told.is_empty() {
            return Ok(Vec::new());
        }
        let (rows, seqs): (Vec<u32>, Vec<Seq>) = told.iter().map(|(row, _)| (*row, seqs[*row as usize])).unzip();
        let picked = reproject(&batch.take(&rows), self.asked.crs)?;
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
        Ok(seqs.iter().zip(told).enumerate().map(one).collect())
    }

    /// How long a client may take for so many bytes.
    pub(super) fn patience(&self, bytes: usize) -> Duration {
        let config = &self.state.config;
        let at_rate = (bytes as u64).checked_div(config.answer_rate_min).map(Duration::from_secs);
        config.write_stall.saturating_add(at_rate.unwrap_or(Duration::from_secs(u64::from(u32::MAX))))
    }

    /// The end of a client that takes too little; it goes on after what it took.
    pub(super) fn too_slow(&self, after: Seq) -> End {
        self.state.live.slow.fetch_add(1, Ordering::Relaxed);
        let detail = "the client reads more slowly than it may: come back";
        tracing::info!(collection = self.collection.name(), %after, "a reader of a stream was let go: it reads too slowly");
        End { reason: "slow", detail: detail.to_owned(), after }
    }
}

fn writer_of(schema: &Schema, asked: &Asked) -> Result<FeatureWriter> {
    let fields: Option<Vec<String>> = asked
        .properties
        .as_ref()
        .map(|names| names.iter().filter(|name| schema.field_index(name).is_some()).cloned().collect());
    FeatureWriter::new(schema, fields.as_deref()).map_err(|e| Problem::invalid_parameter("properties", e))
}
