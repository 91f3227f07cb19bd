//! Runs questions on blocking threads and carries their answers to clients, a bounded piece at a time.
//!
//! A question runs with a place of the [`crate::limiter::Limiter`], so the number of threads is bounded by the
//! number of places. Its pieces go through a short channel: a slow client makes the question wait, not the memory
//! grow. When the client goes away, the future (or body) that waits for the pieces is dropped, and that raises the
//! question's cancel flag at once, whether or not it has anything to say. An error after the first piece breaks
//! the transfer off, so that a cut answer never looks whole.

use crate::limiter::{BytesHeld, Permit};
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use meridian_query::{CancelFlag, Control};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Raises a question's cancel flag when whoever waits for the answer is gone.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// How a question may run: its time, its flag, its place.
pub struct Run {
    /// Time and cancellation for the query.
    pub control: Control,
    /// Time spent waiting for a place.
    pub admission: Duration,
    deadline: Instant,
    permit: Permit,
}

impl Run {
    /// Waits for a place to run until `deadline`.
    pub async fn admit(state: &AppState, deadline: Instant) -> Result<Run> {
        let asked = Instant::now();
        let permit = state.limiter.admit(deadline).await?;
        Ok(Run::holding(state, permit, asked.elapsed(), deadline))
    }

    /// A run with a place that was waited for already.
    pub fn holding(state: &AppState, permit: Permit, admission: Duration, deadline: Instant) -> Run {
        let left = deadline.saturating_duration_since(Instant::now());
        let control = Control::new(state.clock.clone(), left, CancelFlag::new());
        Run { control, admission, deadline, permit }
    }
}

/// Runs `work` on a blocking thread and waits for its result. When the caller is dropped, the work is cancelled.
pub async fn run<T: Send + 'static>(run: Run, work: impl FnOnce(&Control) -> Result<T> + Send + 'static) -> Result<T> {
    let Run { control, permit, .. } = run;
    let guard = CancelOnDrop(control.cancel_flag().clone());
    let outcome = tokio::task::spawn_blocking(move || {
        let outcome = work(&control);
        drop(permit);
        outcome
    })
    .await;
    let outcome = outcome.unwrap_or_else(|e| Err(Problem::internal(format!("a question panicked: {e}"))));
    drop(guard);
    outcome
}

/// What a question puts into the channel: each costs whoever waits a wake-up, so head and end travel with data.
struct Piece {
    /// With the first piece.
    head: Option<Box<HeaderMap>>,
    data: Bytes,
    /// Whether the answer is whole with it.
    last: bool,
}

/// Where a question puts its answer. Bytes are collected in [`Sink::buffer`] and leave as chunks.
pub struct Sink {
    /// The chunk being filled; append to it, then call [`Sink::offer`].
    pub buffer: Vec<u8>,
    pieces: mpsc::Sender<Piece>,
    runtime: Handle,
    deadline: Instant,
    chunk_bytes: usize,
    /// The head, until it leaves with the first bytes.
    head: Option<Box<HeaderMap>>,
    sent: bool,
}

impl Sink {
    /// Sets the answer's head. Call it once, before any data; an error before the first bytes leave is a clean refusal.
    pub fn begin(&mut self, headers: HeaderMap) {
        self.head = Some(Box::new(headers));
    }

    /// Sends what has been collected if it is worth a chunk. The first bytes leave at once: nobody knows how long it takes
    /// to find the next.
    pub fn offer(&mut self) -> Result<()> {
        if self.buffer.len() >= self.chunk_bytes || (!self.sent && !self.buffer.is_empty()) {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends what has been collected.
    pub fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() && self.head.is_none() {
            return Ok(());
        }
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.chunk_bytes * 5 / 4));
        self.send_all(buffer, false)
    }

    /// Sends the rest: the answer is whole.
    fn end(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.send_all(buffer, true)
    }

    fn send_all(&mut self, buffer: Vec<u8>, last: bool) -> Result<()> {
        self.sent = true;
        // A writer may append far more than a chunk at a time; the room in the channel is counted in chunks.
        let mut data = Bytes::from(buffer);
        while data.len() > 2 * self.chunk_bytes {
            let part = data.split_to(self.chunk_bytes);
            let head = self.head.take();
            self.send(Piece { head, data: part, last: false })?;
        }
        let head = self.head.take();
        self.send(Piece { head, data, last })
    }

    fn send(&self, piece: Piece) -> Result<()> {
        let gone = || Problem::new(Kind::Internal, "the client has gone");
        match self.pieces.try_send(piece) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(gone()),
            Err(mpsc::error::TrySendError::Full(piece)) => {
                let waited = async { tokio::time::timeout_at(self.deadline.into(), self.pieces.send(piece)).await };
                match self.runtime.block_on(waited) {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(_)) => Err(gone()),
                    Err(_) => Err(Problem::new(Kind::DeadlineExceeded, "the client took its answer too slowly")),
                }
            }
        }
    }
}

/// Runs `work` on a blocking thread and answers with what it puts into its sink, as it puts it there.
///
/// Waits for the head of the answer, so that an error before it is a proper refusal.
pub async fn stream(
    state: &AppState,
    run: Run,
    arrived: Instant,
    work: impl FnOnce(&mut Sink, &Control) -> Result<()> + Send + 'static,
) -> Result<Response> {
    let Run { control, deadline, permit, .. } = run;
    let (sender, mut pieces) = mpsc::channel(state.config.chunks_waiting_max.max(1));
    // Declared after the channel and so dropped before it: the flag is up when the question finds nobody listening.
    let guard = CancelOnDrop(control.cancel_flag().clone());
    let chunk_bytes = state.config.chunk_bytes.max(1024);
    let mut sink = Sink {
        buffer: Vec::with_capacity(chunk_bytes * 5 / 4),
        pieces: sender,
        runtime: Handle::current(),
        deadline,
        chunk_bytes,
        head: None,
        sent: false,
    };
    let (failed, failure) = tokio::sync::oneshot::channel();
    let shared = state.clone();
    tokio::task::spawn_blocking(move || {
        let outcome = work(&mut sink, &control).and_then(|()| sink.end());
        match outcome {
            Ok(()) => {}
            Err(_) if control.cancel_flag().is_cancelled() => {
                shared.metrics.clients_gone.fetch_add(1, Ordering::Relaxed);
            }
            // Nobody listens for the reason once the head has gone: then it is the log's.
            Err(problem) => {
                if let Err(problem) = failed.send(problem) {
                    shared.metrics.streams_broken.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(detail = problem.detail(), "a streamed answer was broken off");
                }
            }
        }
        shared.metrics.streams.record(arrived.elapsed());
        drop(permit);
    });
    let Some(Piece { head: Some(headers), data, last }) = pieces.recv().await else {
        return Err(failure.await.unwrap_or_else(|_| Problem::internal("a question ended without an answer")));
    };
    let body = match last {
        true => Body::from(data),
        false => Body::new(Pieces { first: Some(data), pieces, _guard: guard, ended: false }),
    };
    let mut response = body.into_response();
    *response.headers_mut() = *headers;
    Ok(response)
}

/// The body of a streamed answer.
struct Pieces {
    /// First, and so dropped before the channel: the flag is up when the question finds nobody listening.
    _guard: CancelOnDrop,
    /// Came with the head.
    first: Option<Bytes>,
    pieces: mpsc::Receiver<Piece>,
    ended: bool,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(first) = self.first.take().filter(|data| !data.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match std::task::ready!(self.pieces.poll_recv(cx)) {
            Some(Piece { data, last, .. }) => {
                self.ended = last;
                Poll::Ready((!last || !data.is_empty()).then(|| Ok(Frame::data(data))))
            }
            // The question stopped without saying that it was done.
            None => {
                self.ended = true;
                Poll::Ready(Some(Err(BrokenOff)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Ends a transfer abruptly.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
struct BrokenOff;

/// A finished answer that counts against the memory for answers until the client has taken it (or left).
pub fn finished(state: &AppState, headers: HeaderMap, bytes: Vec<u8>) -> Result<Response> {
    let held = state.answers.take(bytes.len()).ok_or_else(|| {
        crate::limiter::overloaded(
            "the answers that clients have not taken yet fill the memory set aside for them: try again".to_owned(),
            state.config.requests_running_max,
        )
    })?;
    let mut response = Body::from(Bytes::from_owner(Answer { bytes, _held: held })).into_response();
    *response.headers_mut() = headers;
    Ok(response)
}

/// Bytes that give their share of the memory back when the connection lets go of them.
struct Answer {
    bytes: Vec<u8>,
    _held: BytesHeld,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
