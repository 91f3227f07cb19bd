//! Complete responses in the memory for responses.
//!
//! A streamed response is charged chunk by chunk. A complete one is charged as a whole until its last byte is written
//! or dropped. Its client can be evicted like that of a stream. It is sent in slices, so that a client that reads slowly
//! is told from one that does not read.
//!
//! A response that takes less than its stream of HTTP/2 is not charged. Such are small ones, and those whose bytes others
//! share: files that are part of the program. The number of streams of a connection bounds them (docs/security.md).

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
/// A smaller response is not charged over HTTP/2 either: its stream takes more, and so would a refusal.
pub const TINY_BYTES: usize = 1 << 10;
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

/// Charges a complete response. Leaves others, small ones, and those that are charged already unchanged.
///
/// Returns 503 instead if there is no memory for one that may be refused.
pub fn charged(
    response: Response,
    version: Version,
    refusal: Refusal,
    answers: impl FnOnce() -> ByteBudget,
    state: &AppState,
) -> Response {
    let min = if version == Version::HTTP_2 { TINY_BYTES } else { SMALL_BYTES };
    if response.body().size_hint().exact().is_none_or(|bytes| bytes < min as u64) {
        return response;
    }
    match response.extensions().get::<MemoryMark>() {
        None => charge(response, min, refusal, &answers(), state).unwrap_or_else(IntoResponse::into_response),
        // A stream's only chunk. Over HTTP/2 a connection can leave many of them unread.
        Some(MemoryMark::Counted) => register(response, &answers(), state),
        Some(MemoryMark::Evictable) => response,
    }
}

/// Takes a share even beyond the limit.
pub(super) fn forced(answers: &ByteBudget, bytes: usize) -> ByteShare {
    let mut share = answers.empty();
    share.grow(bytes);
    share
}

fn charge(
    response: Response,
    min: usize,
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
        return Ok(Response::from_parts(parts, Body::from(bytes)));
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
    let body = evictable(of_share(bytes, share), min, answers, state, &mut parts.extensions);
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
    let unread = Arc::new(UnreadResponse::new(answers, bytes.len()));
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
    use crate::state::readers::{Readers, UnreadData};
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
