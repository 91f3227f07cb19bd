//! Responses that arrive from another server, in the memory for responses.
//!
//! The other server counts what it has not sent. This one counts the pieces that have arrived until they are written or
//! dropped, with what arrives meanwhile. Its client can be evicted like that of any other response. A piece that finds no
//! memory waits for it for a moment, as a query of this server does.

use super::unread::UnreadResponse;
use super::whole::{MemoryMark, Refusal, forced};
use crate::protocol::problem::Result;
use crate::request::overload::no_room;
use crate::state::AppState;
use crate::state::readers::{RETRY_INTERVAL, Registration};
use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Extensions;
use hyper::body::{Frame, SizeHint};
use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::{Duration, Instant, Sleep, sleep};

/// Bytes counted for a response of unknown length while nothing of it waits: the buffers of the other connection.
const STREAMED_BYTES: usize = 16 << 10;
/// How often a piece counts: itself, and the read that follows it. The library reads no further until that is taken.
const TIMES: usize = 2;
/// Max bytes of both. The library reads at most 408 KiB at a time.
const AHEAD_BYTES_MAX: usize = TIMES * (408 << 10);
/// How long a piece waits for memory. Clients that read nothing meanwhile become evictable.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Charges the response of another server, until its client has received it.
///
/// # Errors
/// 503 if there is no memory for it, and it may be refused.
pub fn charged<B>(
    body: B,
    refusal: Refusal,
    answers: &ByteBudget,
    state: &AppState,
    extensions: &mut Extensions,
) -> Result<Body>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let length = body.size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let bytes = length.map_or(STREAMED_BYTES, |length| length.min(AHEAD_BYTES_MAX));
    if bytes == 0 {
        return Ok(Body::new(body));
    }
    // Before the first byte: a client rather gets a refusal than a part.
    let share = match (state.readers.try_reserve(answers, bytes), refusal) {
        (Some(share), _) => share,
        (None, Refusal::Allowed) => return Err(no_room(state)),
        (None, Refusal::Excluded) => forced(answers, bytes),
    };
    let unread = Arc::new(UnreadResponse::new(answers, bytes));
    // Nothing waits for its client yet.
    unread.written();
    extensions.insert(MemoryMark::Evictable);
    extensions.insert(unread.hang_up.clone());
    Ok(Body::new(PassedBody {
        body,
        is_charged: length.is_some(),
        answers: answers.clone(),
        state: state.clone(),
        waiting: Arc::new(WaitingPieces {
            bytes: Mutex::new(0),
            share,
            _registration: state.readers.register(unread.clone()),
            unread,
        }),
        late: None,
        failed: false,
    }))
}

/// The body of another server's response.
struct PassedBody<B> {
    body: B,
    /// Whether its share covers all that may wait.
    is_charged: bool,
    answers: ByteBudget,
    state: AppState,
    waiting: Arc<WaitingPieces>,
    late: Option<LatePiece>,
    failed: bool,
}

/// A piece that has found no memory yet.
struct LatePiece {
    bytes: Bytes,
    until: Instant,
    retry: Pin<Box<Sleep>>,
}

/// The pieces of a response that its connection has not written yet.
struct WaitingPieces {
    bytes: Mutex<usize>,
    /// The share of the response itself.
    share: ByteShare,
    unread: Arc<UnreadResponse>,
    /// Keeps its client evictable.
    _registration: Registration,
}

/// A piece, until it is written or dropped.
struct WaitingPiece {
    bytes: Bytes,
    all: Arc<WaitingPieces>,
    _share: Option<ByteShare>,
}

impl<B> PassedBody<B> {
    /// Charges a piece; returns `None` if there is no memory for it.
    fn hold(&self, bytes: &Bytes) -> Option<Bytes> {
        // Only this task adds to it.
        let waiting = *self.waiting.bytes.lock() + bytes.len();
        let is_charged = self.is_charged || TIMES * waiting <= self.waiting.share.bytes();
        let share = match is_charged {
            true => None,
            false => Some(self.state.readers.try_reserve(&self.answers, TIMES * bytes.len())?),
        };
        let unread = &self.waiting.unread;
        let mut waiting = self.waiting.bytes.lock();
        *waiting += bytes.len();
        unread.frees(self.waiting.share.bytes() + if self.is_charged { 0 } else { TIMES * *waiting });
        unread.took(bytes.len());
        drop(waiting);
        Some(Bytes::from_owner(WaitingPiece { bytes: bytes.clone(), all: self.waiting.clone(), _share: share }))
    }
}

impl AsRef<[u8]> for WaitingPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for WaitingPiece {
    fn drop(&mut self) {
        let mut waiting = self.all.bytes.lock();
        *waiting -= self.bytes.len();
        if *waiting == 0 {
            self.all.unread.written();
        }
    }
}

impl<B> HttpBody for PassedBody<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        if self.failed {
            return Poll::Ready(None);
        }
        let (bytes, mut until) = match self.late.take() {
            Some(mut late) => match late.retry.as_mut().poll(cx) {
                Poll::Ready(()) => (late.bytes, Some(late.until)),
                Poll::Pending => {
                    self.late = Some(late);
                    return Poll::Pending;
                }
            },
            None => match ready!(Pin::new(&mut self.body).poll_frame(cx)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if data.is_empty() => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Ok(Ok(data))) => (data, None),
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            },
        };
        loop {
            if let Some(piece) = self.hold(&bytes) {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let end = *until.get_or_insert_with(|| Instant::now() + WAIT_MAX);
            if Instant::now() >= end {
                self.failed = true;
                return Poll::Ready(Some(Err("no memory for the response of another server".into())));
            }
            // Polled: its connection cannot await the budget's notification, which evicts nobody.
            let mut retry = Box::pin(sleep(RETRY_INTERVAL));
            if retry.as_mut().poll(cx).is_pending() {
                self.late = Some(LatePiece { bytes, until: end, retry });
                return Poll::Pending;
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.failed || self.late.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::protocol::connection_control::HangUp;
    use crate::protocol::problem::Kind;
    use crate::request::body::frame;
    use futures_util::{StreamExt, stream};
    use meridian_backend::{Embedded, Seams};
    use meridian_store::{Options, Store};
    use std::io;
    use std::task::Waker;

    const PIECE: usize = 32 << 10;

    fn state() -> AppState {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let config = ServerConfig { answer_bytes_total: 1 << 20, ..ServerConfig::default() };
        AppState::new(Embedded::new(store), &seams, config).unwrap()
    }

    /// A response without an end.
    fn endless() -> Body {
        let pieces = stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from(vec![7; PIECE])));
        Body::from_stream(pieces.take(100).chain(stream::pending()))
    }

    fn is_hung_up(extensions: &Extensions) -> bool {
        let hang_up = extensions.get::<HangUp>().unwrap();
        hang_up.poll_called(&Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn pieces_of_another_server_count_until_they_are_written() {
        let state = state();
        let answers = state.answers.of(&"default".into());
        let mut body = charged(endless(), Refusal::Allowed, &answers, &state, &mut Extensions::new()).unwrap();
        assert_eq!(answers.held(), STREAMED_BYTES);
        let piece = frame(&mut body).await.unwrap().unwrap();
        assert_eq!((piece.len(), answers.held()), (PIECE, STREAMED_BYTES + TIMES * PIECE));
        drop(piece);
        assert_eq!(answers.held(), STREAMED_BYTES);
        tokio::time::pause();
        let mut unread = Vec::new();
        let error = loop {
            match frame(&mut body).await.expect("it has no end") {
                Ok(piece) => unread.push(piece),
                Err(error) => break error,
            }
        };
        assert_eq!(unread.len(), (answers.limit() - STREAMED_BYTES) / (TIMES * PIECE));
        assert!(error.to_string().contains("no memory"), "{error}");
        assert!(frame(&mut body).await.is_none());
        drop((unread, body));
        assert_eq!(answers.held(), 0);
    }

    #[tokio::test]
    async fn a_piece_that_finds_no_memory_waits_for_it_a_moment() {
        let state = state();
        let answers = state.answers.of(&"default".into());
        tokio::time::pause();
        let mut body = charged(endless(), Refusal::Allowed, &answers, &state, &mut Extensions::new()).unwrap();
        let rest = || state.readers.try_reserve(&answers, answers.limit() - answers.held()).unwrap();
        let (others, begun) = (rest(), Instant::now());
        let frees = async move {
            sleep(WAIT_MAX / 2).await;
            drop(others);
        };
        let (piece, ()) = tokio::join!(frame(&mut body), frees);
        assert_eq!(piece.unwrap().unwrap().len(), PIECE);
        assert!(begun.elapsed() >= WAIT_MAX / 2 && begun.elapsed() < WAIT_MAX);
        let (_others, begun) = (rest(), Instant::now());
        assert!(!body.is_end_stream());
        let error = frame(&mut body).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("no memory for the response of another server"), "{error}");
        assert!(begun.elapsed() >= WAIT_MAX && begun.elapsed() < 2 * WAIT_MAX);
        assert!(frame(&mut body).await.is_none());
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_of_another_servers_response_gives_way() {
        let state = state();
        let answers = state.answers.of(&"default".into());
        tokio::time::pause();
        let mut extensions = Extensions::new();
        let mut body = charged(endless(), Refusal::Allowed, &answers, &state, &mut extensions).unwrap();
        let demand = || state.readers.try_reserve(&answers, answers.limit()).is_some();
        // Nothing waits for its client, however long nothing arrives.
        drop(frame(&mut body).await);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!demand() && !is_hung_up(&extensions));
        let unread = frame(&mut body).await;
        assert!(!demand() && !is_hung_up(&extensions), "its client may still read it");
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(!demand() && is_hung_up(&extensions));
        drop((unread, body));
        assert!(demand());
    }

    #[tokio::test]
    async fn a_response_of_known_length_is_charged_before_it_begins_or_refused() {
        let state = state();
        let answers = state.answers.of(&"default".into());
        let all = state.readers.try_reserve(&answers, answers.limit()).unwrap();
        let of = |bytes: usize, refusal| {
            charged(Body::from(vec![7; bytes]), refusal, &answers, &state, &mut Extensions::new())
        };
        assert_eq!(of(100_000, Refusal::Allowed).unwrap_err().kind(), Kind::Overloaded);
        // Nothing is needed for nothing.
        assert!(of(0, Refusal::Allowed).is_ok());
        let report = of(100_000, Refusal::Excluded).unwrap();
        assert_eq!(answers.held(), answers.limit() + 100_000);
        drop((all, report));
        let mut body = of(100_000, Refusal::Allowed).unwrap();
        assert_eq!((answers.held(), body.size_hint().exact()), (100_000, Some(100_000)));
        let piece = frame(&mut body).await.unwrap().unwrap();
        assert_eq!((piece.len(), answers.held()), (100_000, 100_000));
        drop(body);
        assert_eq!(answers.held(), 100_000, "it is not written yet");
        drop(piece);
        assert_eq!(answers.held(), 0);
    }
}
