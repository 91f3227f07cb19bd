//! The pieces of one answer between the question that makes them and the connection that takes them.
//!
//! Neither side holds a thread for the other. The question puts pieces in until the pipe is full and then rests; the
//! connection takes them out, and wakes the question when half of them have gone. A pipe whose bytes are needed
//! elsewhere can be cut: its pieces go at once, and the transfer breaks off.

use super::readers::Ticket;
use crate::problem::Problem;
use axum::http::HeaderMap;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use meridian_admission::ByteShare;
use meridian_query::CancelFlag;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A bounded queue of pieces with one writer and one reader.
pub(super) struct Pipe {
    state: Mutex<State>,
    /// Bytes from which on the writer rests.
    capacity: usize,
    /// Tells the writer that there is room, or that nobody reads.
    room: Notify,
}

struct State {
    head: Option<Box<HeaderMap>>,
    /// Whether the reader has the head.
    begun: bool,
    pieces: VecDeque<Bytes>,
    bytes: usize,
    end: End,
    /// What the resting question holds, counted against the memory for answers.
    resting: Option<ByteShare>,
    reader: Option<Waker>,
    gone: bool,
    /// When the reader last took a piece.
    taken_at: Instant,
}

enum End {
    Open,
    Whole,
    Broken,
    /// Nothing had left: the client gets the reason.
    Refused(Problem),
}

/// The reader has gone.
#[derive(Debug)]
pub(super) struct Gone;

/// Why a wait for room is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Room,
    Gone,
    Cut,
}

impl Pipe {
    /// A pipe in which `capacity` bytes wait before the writer rests.
    pub(super) fn new(capacity: usize) -> Pipe {
        let state = State {
            head: None,
            begun: false,
            pieces: VecDeque::new(),
            bytes: 0,
            end: End::Open,
            resting: None,
            reader: None,
            gone: false,
            taken_at: Instant::now(),
        };
        Pipe { state: Mutex::new(state), capacity, room: Notify::new() }
    }

    /// Puts pieces in, with the head before the first of them.
    pub(super) fn put(
        &self,
        head: Option<Box<HeaderMap>>,
        pieces: impl Iterator<Item = Bytes>,
        last: bool,
    ) -> Result<(), Gone> {
        let mut state = self.state.lock();
        if state.gone || !matches!(state.end, End::Open) {
            return Err(Gone);
        }
        if head.is_some() {
            state.head = head;
        }
        // A reader for whom nothing was there has not been idle.
        if state.pieces.is_empty() {
            state.taken_at = Instant::now();
        }
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            state.bytes += piece.len();
            state.pieces.push_back(piece);
        }
        if last {
            state.end = End::Whole;
        }
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Ends the answer with an error. The problem comes back where the client cannot be told any more.
    pub(super) fn fail(&self, problem: Problem) -> Option<Problem> {
        let mut state = self.state.lock();
        let told = if !matches!(state.end, End::Open) || state.begun || state.head.is_some() {
            if matches!(state.end, End::Open) {
                state.end = End::Broken;
            }
            Some(problem)
        } else {
            state.end = End::Refused(problem);
            None
        };
        state.resting = None;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        told
    }

    /// Whether the answer has ended, in whatever way.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.state.lock().end, End::Open)
    }

    /// Lets go of all bytes at once and breaks the transfer off; `false` if there was nothing to let go of.
    pub(super) fn cut(&self) -> bool {
        let mut state = self.state.lock();
        if state.pieces.is_empty() && state.resting.is_none() || matches!(state.end, End::Refused(_)) {
            return false;
        }
        state.end = End::Broken;
        state.resting = None;
        let pieces = std::mem::take(&mut state.pieces);
        state.bytes = 0;
        let reader = state.reader.take();
        drop(state);
        drop(pieces);
        self.room.notify_one();
        if let Some(reader) = reader {
            reader.wake();
        }
        true
    }

    /// Whether the writer is to rest.
    pub(super) fn is_full(&self) -> bool {
        self.state.lock().bytes >= self.capacity
    }

    /// Bytes that wait for the reader.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Keeps what the resting question holds until [`Pipe::wake`], or until the pipe is cut.
    pub(super) fn rest(&self, held: ByteShare) {
        self.state.lock().resting = Some(held);
    }

    /// The question goes on.
    pub(super) fn wake(&self) {
        self.state.lock().resting = None;
    }

    /// How long the reader has taken nothing, where something waits for it.
    pub(super) fn idle(&self) -> Option<Duration> {
        let state = self.state.lock();
        let waits = !state.pieces.is_empty() || state.resting.is_some();
        waits.then(|| state.taken_at.elapsed())
    }

    /// Waits until half of the pipe is free, so that a turn of the question is worth its while.
    pub(super) async fn room(&self) -> Woken {
        loop {
            {
                let state = self.state.lock();
                match state.end {
                    _ if state.gone => return Woken::Gone,
                    End::Broken | End::Refused(_) => return Woken::Cut,
                    _ if state.bytes <= self.capacity / 2 => return Woken::Room,
                    _ => {}
                }
            }
            // A permit left by `notify_one` is kept, so nothing is missed between the look and the wait.
            self.room.notified().await;
        }
    }

    fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<Box<HeaderMap>, Problem>> {
        let mut state = self.state.lock();
        if let Some(head) = state.head.take() {
            state.begun = true;
            return Poll::Ready(Ok(head));
        }
        match std::mem::replace(&mut state.end, End::Broken) {
            End::Open => {
                state.end = End::Open;
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            End::Refused(problem) => Poll::Ready(Err(problem)),
            End::Whole | End::Broken => Poll::Ready(Err(Problem::internal("a question ended without an answer"))),
        }
    }

    fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut state = self.state.lock();
        if let Some(piece) = state.pieces.pop_front() {
            state.bytes -= piece.len();
            state.taken_at = Instant::now();
            let room = state.bytes <= self.capacity / 2;
            drop(state);
            if room {
                self.room.notify_one();
            }
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.end {
            End::Whole => Poll::Ready(None),
            End::Open => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            End::Broken | End::Refused(_) => Poll::Ready(Some(Err(BrokenOff))),
        }
    }

    /// All of a small answer, if it is one piece at most.
    fn take_whole(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        if !matches!(state.end, End::Whole) || state.pieces.len() > 1 {
            return None;
        }
        state.bytes = 0;
        Some(state.pieces.pop_front().unwrap_or_default())
    }

    fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.pieces.is_empty() && matches!(state.end, End::Whole)
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        state.gone = true;
        state.resting = None;
        let pieces = std::mem::take(&mut state.pieces);
        state.bytes = 0;
        drop(state);
        drop(pieces);
        self.room.notify_one();
    }
}

/// The reading end: the body of a streamed answer. Dropped, it calls the question off.
pub(super) struct Reader {
    pipe: Arc<Pipe>,
    cancel: CancelFlag,
    /// Keeps the pipe among those that may have to give way.
    ticket: Option<Ticket>,
    /// Bytes still to come, where that is known.
    left: Option<u64>,
    broken: bool,
}

impl Reader {
    pub(super) fn new(pipe: Arc<Pipe>, cancel: CancelFlag) -> Reader {
        Reader { pipe, cancel, ticket: None, left: None, broken: false }
    }

    /// Waits for the head of the answer, or for why there is none.
    pub(super) async fn head(&self) -> Result<Box<HeaderMap>, Problem> {
        std::future::poll_fn(|cx| self.pipe.poll_head(cx)).await
    }

    /// All of the answer, if it is one piece at most and there already.
    pub(super) fn whole(&self) -> Option<Bytes> {
        self.pipe.take_whole()
    }

    /// The same with a ticket.
    pub(super) fn with(mut self, ticket: Ticket) -> Reader {
        self.ticket = Some(ticket);
        self
    }

    /// The same of an answer of so many bytes.
    pub(super) fn of_length(mut self, bytes: u64) -> Reader {
        self.left = Some(bytes);
        self
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The flag first: it is up when the question finds that nobody listens.
        self.cancel.cancel();
        self.pipe.leave();
    }
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if self.broken {
            return Poll::Ready(None);
        }
        let piece = ready!(self.pipe.poll_piece(cx));
        match &piece {
            Some(Ok(piece)) => self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64)),
            Some(Err(_)) => self.broken = true,
            None => {}
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.broken || self.pipe.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Ends a transfer abruptly.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
pub(super) struct BrokenOff;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Kind;
    use hyper::body::Body;

    fn piece(length: usize) -> std::iter::Once<Bytes> {
        std::iter::once(Bytes::from(vec![b'x'; length]))
    }

    async fn next(reader: &mut Reader) -> Option<Result<Bytes, BrokenOff>> {
        std::future::poll_fn(|cx| Pin::new(&mut *reader).poll_frame(cx))
            .await
            .map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    fn pipe(capacity: usize) -> (Arc<Pipe>, Reader, CancelFlag) {
        let (pipe, flag) = (Arc::new(Pipe::new(capacity)), CancelFlag::new());
        (pipe.clone(), Reader::new(pipe, flag.clone()), flag)
    }

    #[tokio::test]
    async fn a_writer_rests_until_half_is_taken() {
        let (pipe, mut reader, _) = pipe(100);
        pipe.put(Some(Box::default()), piece(60), false).unwrap();
        assert!(!pipe.is_full());
        pipe.put(None, piece(60), false).unwrap();
        assert!(pipe.is_full());
        reader.head().await.unwrap();
        let room = tokio::spawn({
            let pipe = pipe.clone();
            async move { pipe.room().await }
        });
        assert_eq!(next(&mut reader).await.unwrap().unwrap().len(), 60);
        assert!(!room.is_finished() && pipe.bytes() == 60);
        next(&mut reader).await.unwrap().unwrap();
        assert_eq!(room.await.unwrap(), Woken::Room);
        pipe.put(None, std::iter::empty(), true).unwrap();
        assert!(next(&mut reader).await.is_none());
    }

    #[tokio::test]
    async fn a_cut_frees_the_bytes_at_once_and_never_looks_whole() {
        let (pipe, mut reader, _) = pipe(100);
        assert!(!pipe.cut(), "there is nothing to let go of");
        pipe.put(Some(Box::default()), piece(200), true).unwrap();
        reader.head().await.unwrap();
        assert!(pipe.idle().is_some() && pipe.cut() && pipe.bytes() == 0);
        assert_eq!(pipe.room().await, Woken::Cut);
        assert!(next(&mut reader).await.unwrap().is_err());
        assert!(pipe.put(None, piece(1), false).is_err());
    }

    #[tokio::test]
    async fn an_error_is_a_refusal_until_the_head_has_left() {
        let (first, reader, _) = pipe(100);
        assert!(first.fail(Problem::new(Kind::Gone, "too old")).is_none());
        assert_eq!(reader.head().await.unwrap_err().kind(), Kind::Gone);
        let (second, mut reader, _) = pipe(100);
        second.put(Some(Box::default()), piece(5), false).unwrap();
        assert!(!second.has_ended());
        assert!(second.fail(Problem::new(Kind::Gone, "too old")).is_some());
        assert!(first.has_ended() && second.has_ended());
        reader.head().await.unwrap();
        next(&mut reader).await.unwrap().unwrap();
        assert!(next(&mut reader).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_reader_that_leaves_calls_the_question_off() {
        let (pipe, reader, flag) = pipe(10);
        pipe.put(Some(Box::default()), piece(50), false).unwrap();
        drop(reader);
        assert!(flag.is_cancelled() && pipe.put(None, piece(1), false).is_err());
        assert_eq!(pipe.room().await, Woken::Gone);
    }
}
