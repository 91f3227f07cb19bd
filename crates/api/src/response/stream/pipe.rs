//! The chunks of one response, between the query that produces them and the connection that sends them.
//!
//! Neither side holds a thread for the other. The query puts chunks in until the pipe is full, and is then parked. The
//! connection takes them out, and wakes the query when half of the capacity is free. A pipe whose memory is needed
//! elsewhere can be cut: its chunks are freed at once, and the transfer is aborted.

use crate::protocol::problem::{Kind, Problem};
use crate::state::readers::UnreadData;
use axum::http::HeaderMap;
use bytes::Bytes;
use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

/// A bounded queue of chunks with one writer and one reader.
pub(super) struct Pipe {
    state: Mutex<State>,
    /// Number of bytes at which the pipe counts as full.
    capacity: usize,
    /// The budget of its chunks.
    answers: ByteBudget,
    /// Notifies the writer of free space, of a cut, and of a disconnected reader.
    room: Notify,
}

struct State {
    head: Option<Box<HeaderMap>>,
    /// Whether the reader has taken the head.
    begun: bool,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    end: End,
    /// The bytes held by the parked query, charged to the memory for responses.
    parked: Option<ByteShare>,
    reader: Option<Waker>,
    reader_gone: bool,
    /// When the reader last took a chunk.
    taken_at: Instant,
}

/// How far the writer has come. `Open` can become any other state; a cut also turns `Complete` into `Broken`, since
/// chunks are lost.
enum End {
    /// More chunks may follow.
    Open,
    /// The chunks in the queue complete the response.
    Complete,
    /// An error or a cut after the head: the transfer is aborted. Holds the kind of the error; `None` for a cut.
    Broken(Option<Kind>),
    /// An error before the head: the client gets the problem instead of a response.
    Refused(Problem),
}

/// There is no reader any more: it disconnected, or the response has ended.
#[derive(Debug)]
pub(super) struct ReaderGone;

/// Ends a transfer abruptly, because of a problem of this kind; `None` for a client that read nothing.
#[derive(Debug, thiserror::Error)]
#[error("the response was broken off")]
pub struct BrokenOff(pub Option<Kind>);

/// Why a wait for room ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wakeup {
    Room,
    ReaderGone,
    Cut,
}

impl Pipe {
    /// Creates a pipe that is full at `capacity` bytes.
    pub(super) fn new(capacity: usize, answers: ByteBudget) -> Pipe {
        let state = State {
            head: None,
            begun: false,
            chunks: VecDeque::new(),
            bytes: 0,
            end: End::Open,
            parked: None,
            reader: None,
            reader_gone: false,
            taken_at: Instant::now(),
        };
        Pipe { state: Mutex::new(state), capacity, answers, room: Notify::new() }
    }

    /// Returns the budget from which its chunks are taken.
    pub(super) fn answers(&self) -> &ByteBudget {
        &self.answers
    }

    /// Puts chunks in, with the head before the first of them.
    pub(super) fn put(
        &self,
        head: Option<Box<HeaderMap>>,
        chunks: impl Iterator<Item = Bytes>,
        last: bool,
    ) -> Result<(), ReaderGone> {
        let mut state = self.state.lock();
        // A cut pipe accepts nothing more: bytes put in after the cut would use the memory that the cut has freed.
        if state.reader_gone || !matches!(state.end, End::Open) {
            return Err(ReaderGone);
        }
        if head.is_some() {
            state.head = head;
        }
        // The time of an empty queue does not count as idle time of the reader.
        if state.chunks.is_empty() {
            state.taken_at = Instant::now();
        }
        for chunk in chunks.filter(|chunk| !chunk.is_empty()) {
            state.bytes += chunk.len();
            state.chunks.push_back(chunk);
        }
        if last {
            state.end = End::Complete;
        }
        // Woken outside the lock, which the reader takes at once.
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Ends the response with an error. Returns the problem if it is too late to send it to the client.
    pub(super) fn fail(&self, problem: Problem) -> Option<Problem> {
        let mut state = self.state.lock();
        // Once the reader has the head, a problem can no longer replace the response.
        let (unsent, chunks) = if !matches!(state.end, End::Open) || state.begun {
            if matches!(state.end, End::Open) {
                state.end = End::Broken(Some(problem.kind()));
            }
            (Some(problem), VecDeque::new())
        } else {
            state.end = End::Refused(problem);
            state.head = None;
            state.bytes = 0;
            (None, std::mem::take(&mut state.chunks))
        };
        state.parked = None;
        let reader = state.reader.take();
        drop(state);
        // Freed outside the lock, as in `cut`.
        drop(chunks);
        reader.into_iter().for_each(Waker::wake);
        unsent
    }

    /// Returns whether the response has ended, complete or not.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.state.lock().end, End::Open)
    }

    /// Frees all bytes at once and aborts the transfer; returns false if there was nothing to free.
    pub(super) fn cut(&self) -> bool {
        let mut state = self.state.lock();
        // A refusal holds no memory and is still to be sent: cutting it would lose the reason.
        if state.chunks.is_empty() && state.parked.is_none() || matches!(state.end, End::Refused(_)) {
            return false;
        }
        state.end = End::Broken(None);
        state.parked = None;
        let chunks = std::mem::take(&mut state.chunks);
        state.bytes = 0;
        let reader = state.reader.take();
        // Freed outside the lock: a dropped chunk takes the budget's lock to return its share.
        drop(state);
        drop(chunks);
        self.room.notify_one();
        reader.into_iter().for_each(Waker::wake);
        true
    }

    /// Returns whether the writer must wait for the reader.
    pub(super) fn is_full(&self) -> bool {
        self.state.lock().bytes >= self.capacity
    }

    /// Returns the bytes that wait for the reader.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Keeps the memory share of a parked query until [`Pipe::unpark`], or until the pipe is cut.
    pub(super) fn park(&self, share: ByteShare) {
        self.state.lock().parked = Some(share);
    }

    /// Releases the memory share of a query that runs again.
    pub(super) fn unpark(&self) {
        self.state.lock().parked = None;
    }

    /// Returns how long the reader has taken nothing; `None` if nothing waits for it.
    pub(super) fn idle(&self) -> Option<Duration> {
        let state = self.state.lock();
        // A client is idle only while something waits for it: a slow query is not its fault.
        let waits = !state.chunks.is_empty() || state.parked.is_some();
        waits.then(|| state.taken_at.elapsed())
    }

    /// Waits until half of the pipe is free, so that resuming the query pays off.
    pub(super) async fn room(&self) -> Wakeup {
        loop {
            {
                let state = self.state.lock();
                match state.end {
                    _ if state.reader_gone => return Wakeup::ReaderGone,
                    End::Broken(_) | End::Refused(_) => return Wakeup::Cut,
                    _ if state.bytes <= self.capacity / 2 => return Wakeup::Room,
                    _ => {}
                }
            }
            // `notify_one` stores a permit, so a notification between the check and this wait is not lost.
            self.room.notified().await;
        }
    }

    pub(super) fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<Box<HeaderMap>, Problem>> {
        let mut state = self.state.lock();
        if let Some(head) = state.head.take() {
            state.begun = true;
            return Poll::Ready(Ok(head));
        }
        // The problem is moved out by value, so `Broken` replaces it; an open end is put back.
        match std::mem::replace(&mut state.end, End::Broken(None)) {
            End::Open => {
                state.end = End::Open;
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            End::Refused(problem) => Poll::Ready(Err(problem)),
            End::Complete | End::Broken(_) => Poll::Ready(Err(Problem::internal("a query ended without a response"))),
        }
    }

    pub(super) fn poll_chunk(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut state = self.state.lock();
        if let Some(chunk) = state.chunks.pop_front() {
            state.bytes -= chunk.len();
            state.taken_at = Instant::now();
            // At half, not at any free space: each run of the query costs a permit and a thread.
            let room = state.bytes <= self.capacity / 2;
            drop(state);
            if room {
                self.room.notify_one();
            }
            return Poll::Ready(Some(Ok(chunk)));
        }
        match state.end {
            End::Complete => Poll::Ready(None),
            End::Open => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            End::Broken(why) => Poll::Ready(Some(Err(BrokenOff(why)))),
            End::Refused(_) => Poll::Ready(Some(Err(BrokenOff(None)))),
        }
    }

    /// Takes an entire small response, if it is complete and at most one chunk.
    pub(super) fn take_complete(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        if !matches!(state.end, End::Complete) || state.chunks.len() > 1 {
            return None;
        }
        state.bytes = 0;
        Some(state.chunks.pop_front().unwrap_or_default())
    }

    pub(super) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.chunks.is_empty() && matches!(state.end, End::Complete)
    }

    /// Frees the chunks and notifies the writer, because the reader has disconnected.
    pub(super) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.reader_gone = true;
        state.parked = None;
        let chunks = std::mem::take(&mut state.chunks);
        state.bytes = 0;
        // Freed outside the lock: a dropped chunk takes the budget's lock to return its share.
        drop(state);
        drop(chunks);
        self.room.notify_one();
    }
}

impl UnreadData for Pipe {
    fn answers(&self) -> &ByteBudget {
        Pipe::answers(self)
    }

    fn bytes(&self) -> usize {
        Pipe::bytes(self)
    }

    fn idle(&self) -> Option<Duration> {
        Pipe::idle(self)
    }

    fn is_leaving(&self) -> bool {
        // A cut frees everything at once.
        false
    }

    fn evict(&self) -> bool {
        self.cut()
    }
}
