//! Complete responses in the memory for responses.
//!
//! A streamed response is charged chunk by chunk. A complete one is charged as a whole until its last byte is written
//! or dropped. One that is smaller than its stream of HTTP/2 is charged as the stream, in a part of that memory. So is
//! one whose bytes others share: a file that is part of the program. Its client can be evicted like that of a stream. It
//! is sent in slices, so that a client that reads slowly is told from one that does not read.

use super::unread::UnreadResponse;
use crate::protocol::problem::Result;
use crate::request::body::frame;
use crate::request::overload::no_room;
use crate::state::AppState;
use crate::state::readers::Registration;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, Version};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, StreamExt};
use hyper::body::{Frame, SizeHint};
use meridian_admission::{ByteBudget, ByteShare};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A smaller response is charged over HTTP/2 alone. Over HTTP/1.1 a connection has one response at a time, for which its
/// own memory has room.
pub const SMALL_BYTES: usize = 16 << 10;
/// A smaller response over HTTP/2 is charged as its stream, which takes more, and never refused: a refusal is no smaller.
const TINY_BYTES: usize = 1 << 10;
/// What a stream of HTTP/2 takes while its response waits: its task, and what the library keeps of it.
const STREAM_BYTES: usize = 4 << 10;
/// Bytes that a connection takes at a time.
const SLICE_BYTES: usize = 64 << 10;

/// Marks a response whose memory counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryMark {
    /// Its bytes are charged.
    Counted,
    /// They are, and its client can be evicted.
    Evictable,
}

/// Whether a response may be replaced by a refusal. As an extension of a response it overrides that of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It may: its request can be repeated.
    Allowed,
    /// It must be sent: it reports a change, or an attempt, that was made.
    Excluded,
}

/// Charges a complete response. Leaves others, small ones over HTTP/1.1, and those that are charged already unchanged.
///
/// Returns 503 instead if there is no memory for one that may be refused.
pub fn charged(
    response: Response,
    version: Version,
    refusal: Refusal,
    answers: impl FnOnce() -> ByteBudget,
    state: &AppState,
) -> Response {
    let is_http2 = version == Version::HTTP_2;
    let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > 0) else { return response };
    let is_small = bytes < charged_from(is_http2) as u64;
    match response.extensions().get::<MemoryMark>() {
        Some(MemoryMark::Evictable) => response,
        _ if is_small && is_http2 => charge_stream(response, state),
        _ if is_small => response,
        None => charge(response, is_http2, refusal, &answers(), state).unwrap_or_else(IntoResponse::into_response),
        // A stream's only chunk. Over HTTP/2 a connection can leave many of them unread.
        Some(MemoryMark::Counted) => register(response, &answers(), state),
    }
}

/// Returns the min bytes of a response that is charged as itself.
fn charged_from(is_http2: bool) -> usize {
    if is_http2 { TINY_BYTES } else { SMALL_BYTES }
}

/// Charges a response whose stream takes more memory than its bytes.
fn charge_stream(response: Response, state: &AppState) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = match complete(body) {
        Ok(bytes) => {
            let budget = &state.small_answers;
            let share = state.readers.try_reserve(budget, STREAM_BYTES).unwrap_or_else(|| forced(budget, STREAM_BYTES));
            let bytes = Bytes::from_owner(OwnedBytes { bytes, _held: share });
            unread(bytes, STREAM_BYTES, budget, state, &mut parts.extensions)
        }
        Err(body) => body,
    };
    Response::from_parts(parts, body)
}

/// Takes a share even beyond the limit.
pub(super) fn forced(answers: &ByteBudget, bytes: usize) -> ByteShare {
    let mut share = answers.empty();
    share.grow(bytes);
    share
}

fn charge(
    response: Response,
    is_http2: bool,
    refusal: Refusal,
    answers: &ByteBudget,
    state: &AppState,
) -> Result<Response> {
    let (mut parts, body) = response.into_parts();
    let refusal = parts.extensions.get::<Refusal>().copied().unwrap_or(refusal);
    let bytes = match complete(body) {
        Ok(bytes) => bytes,
        Err(body) => return Ok(Response::from_parts(parts, body)),
    };
    if !bytes.is_unique() {
        // They take no memory of this response. Over HTTP/1.1 its connection is all that it holds.
        let shared = Response::from_parts(parts, Body::from(bytes));
        return Ok(if is_http2 { charge_stream(shared, state) } else { shared });
    }
    // Not a copy. Its capacity counts, which may be larger than its length.
    let mut bytes = Vec::from(bytes);
    if bytes.len() < bytes.capacity() / 2 {
        bytes.shrink_to_fit();
    }
    // Without a wait: what waits here is memory that is not charged.
    let share = match (state.readers.try_reserve(answers, bytes.capacity()), refusal) {
        (Some(share), _) => share,
        (None, Refusal::Allowed) => return Err(no_room(state)),
        (None, Refusal::Excluded) => forced(answers, bytes.capacity()),
    };
    let body = evictable(of_share(bytes, share), charged_from(is_http2), answers, state, &mut parts.extensions);
    Ok(Response::from_parts(parts, body))
}

fn register(response: Response, answers: &ByteBudget, state: &AppState) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = match complete(body) {
        Ok(bytes) => evictable(bytes, 0, answers, state, &mut parts.extensions),
        Err(body) => body,
    };
    Response::from_parts(parts, body)
}

/// Takes the bytes of a body that is one piece; returns others as they are.
fn complete(mut body: Body) -> std::result::Result<Bytes, Body> {
    let length = body.size_hint().exact();
    match frame(&mut body).now_or_never() {
        Some(Some(Ok(bytes))) if length == Some(bytes.len() as u64) => Ok(bytes),
        // More follows, or an error.
        Some(Some(first)) => {
            let first = futures_util::stream::iter([first]);
            Err(Body::from_stream(first.chain(body.into_data_stream())))
        }
        Some(None) => Err(Body::empty()),
        None => Err(body),
    }
}

/// Returns bytes that return their share of the budget once they are written or dropped.
pub fn of_share(bytes: Vec<u8>, share: ByteShare) -> Bytes {
    Bytes::from_owner(OwnedBytes { bytes, _held: share })
}

/// Returns the body of a complete response whose bytes are charged. Its client can be evicted for `min` bytes and more.
pub fn evictable(
    bytes: Bytes,
    min: usize,
    answers: &ByteBudget,
    state: &AppState,
    extensions: &mut Extensions,
) -> Body {
    if bytes.len() < min {
        extensions.insert(MemoryMark::Counted);
        return Body::from(bytes);
    }
    let weight = bytes.len();
    unread(bytes, weight, answers, state, extensions)
}

/// Returns the body of a response whose client can be evicted, which frees `weight` bytes.
fn unread(bytes: Bytes, weight: usize, answers: &ByteBudget, state: &AppState, extensions: &mut Extensions) -> Body {
    let unread = Arc::new(UnreadResponse::new(answers, weight));
    extensions.insert(MemoryMark::Evictable);
    extensions.insert(unread.hang_up.clone());
    let registration = UnreadGuard { unread: unread.clone(), _registration: state.readers.register(unread.clone()) };
    Body::new(SlicedBody { rest: Bytes::from_owner(OwnedBytes { bytes, _held: registration }), unread })
}

/// Bytes with what is given back once they are written or dropped.
struct OwnedBytes<B, H> {
    bytes: B,
    _held: H,
}

impl<B: AsRef<[u8]>, H> AsRef<[u8]> for OwnedBytes<B, H> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// The registration of an unread response, until all of its bytes are written or dropped.
struct UnreadGuard {
    unread: Arc<UnreadResponse>,
    _registration: Registration,
}

impl Drop for UnreadGuard {
    fn drop(&mut self) {
        // A late eviction would end the connection's next response.
        self.unread.written();
    }
}

/// Bytes in slices: the connection takes the next one once it has written the one before.
struct SlicedBody {
    rest: Bytes,
    unread: Arc<UnreadResponse>,
}

impl HttpBody for SlicedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(SLICE_BYTES);
        let slice = self.rest.split_to(length);
        self.unread.took(length);
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::state::readers::{Readers, UnreadData};
    use meridian_backend::{Embedded, Seams};
    use meridian_store::{Options, Store};
    use tokio::time::Duration;

    fn sliced(bytes: usize) -> (SlicedBody, Arc<UnreadResponse>) {
        let answers = ByteBudget::new(1 << 20);
        let unread = Arc::new(UnreadResponse::new(&answers, bytes));
        let registration = Readers::default().register(unread.clone());
        let held = UnreadGuard { unread: unread.clone(), _registration: registration };
        (
            SlicedBody {
                rest: Bytes::from_owner(OwnedBytes { bytes: vec![7; bytes], _held: held }),
                unread: unread.clone(),
            },
            unread,
        )
    }

    #[tokio::test]
    async fn a_file_of_the_program_counts_as_its_stream_over_http_2() {
        static FILE: [u8; 100_000] = [7; 100_000];
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let charged = |version| {
            let response = Response::new(Body::from(&FILE[..]));
            super::charged(response, version, Refusal::Allowed, || state.answers.clone(), &state)
        };
        let held = || (state.small_answers.held(), state.answers.held());
        let before = charged(Version::HTTP_11);
        assert_eq!(held(), (0, 0));
        let unread = [charged(Version::HTTP_2), charged(Version::HTTP_2)];
        assert_eq!(held(), (2 * STREAM_BYTES, 0));
        for response in unread.into_iter().chain([before]) {
            assert_eq!(response.body().size_hint().exact(), Some(FILE.len() as u64));
            assert!(axum::body::to_bytes(response.into_body(), FILE.len()).await.unwrap() == FILE[..]);
        }
        assert_eq!(held(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_told_from_one_that_does_not() {
        let (body, unread) = sliced(3 * SLICE_BYTES);
        let mut body = Body::new(body);
        let second = Duration::from_secs(1);
        let mut slices = Vec::new();
        for left in (0..3).rev() {
            tokio::time::advance(4 * second).await;
            assert!(unread.idle().unwrap() > 3 * second);
            slices.push(frame(&mut body).await.unwrap().unwrap());
            assert_eq!(unread.idle(), Some(Duration::ZERO));
            assert_eq!(body.size_hint().exact(), Some((left * SLICE_BYTES) as u64));
        }
        assert!(body.is_end_stream() && slices.concat() == vec![7; 3 * SLICE_BYTES]);
        tokio::time::advance(9 * second).await;
        assert!(unread.idle().unwrap() > 8 * second, "the last slice is not written");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_written_evicts_nobody() {
        let (body, unread) = sliced(100);
        drop(body);
        assert!(!unread.evict() && unread.idle().is_none() && !unread.is_leaving());
        let (body, unread) = sliced(100);
        assert!(unread.evict() && !unread.evict() && unread.is_leaving());
        drop(body);
        assert!(unread.is_leaving(), "its connection is about to end");
    }

    #[tokio::test]
    async fn only_a_body_of_one_piece_is_complete() {
        let whole = complete(Body::from("abc")).unwrap();
        assert_eq!(&whole[..], b"abc");
        let pieces = || [Ok::<_, Infallible>(Bytes::from("ab")), Ok(Bytes::from("c"))];
        let now = Body::from_stream(futures_util::stream::iter(pieces()));
        let later = Body::from_stream(futures_util::stream::iter(pieces()).then(|piece| async {
            tokio::task::yield_now().await;
            piece
        }));
        for body in [now, later] {
            let rest = complete(body).unwrap_err();
            assert_eq!(&axum::body::to_bytes(rest, 9).await.unwrap()[..], b"abc");
        }
    }
}
