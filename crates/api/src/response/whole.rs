//! Complete responses in the memory for responses.
//!
//! A streamed response is charged chunk by chunk. A complete one is charged as a whole, until its last byte is written or
//! dropped, and its client can be evicted like that of a stream. Bytes that others share are not charged: files that are
//! part of the program.

use crate::protocol::connection_control::HangUp;
use crate::protocol::problem::{Problem, Result};
use crate::request::body::frame;
use crate::request::overload::no_room;
use crate::state::AppState;
use crate::state::readers::{LEAVE_MAX, UnreadData};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, Version};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// A smaller response is charged over HTTP/2 alone, and its client is not evicted for it. Over HTTP/1.1 a connection has
/// one response at a time.
pub const SMALL_BYTES: usize = 16 << 10;
/// A smaller response is not charged: a stream of HTTP/2 takes more.
const TINY_BYTES: usize = 1 << 10;
/// Assumed speed in bytes per second: how much of a complete response has been written is unknown.
const TAKEN_PER_SECOND: u32 = 256 << 10;

/// Marks a response whose bytes are charged.
#[derive(Debug, Clone, Copy)]
pub struct Charged;

/// Whether a response may be replaced by a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It may: its request can be repeated.
    Allowed,
    /// It must be sent: it reports a change that was made.
    Excluded,
}

/// Charges a complete response. Leaves others, small ones, and those that are charged already unchanged.
///
/// Returns 503 instead if there is no memory for it.
pub fn charged(
    response: Response,
    version: Version,
    refusal: Refusal,
    answers: impl FnOnce() -> ByteBudget,
    state: &AppState,
) -> Response {
    let min = if version == Version::HTTP_2 { TINY_BYTES } else { SMALL_BYTES };
    let is_charged = || response.extensions().get::<Charged>().is_some();
    match response.body().size_hint().exact() {
        Some(bytes) if bytes >= min as u64 && !is_charged() => {
            charge(response, refusal, &answers(), state).unwrap_or_else(IntoResponse::into_response)
        }
        _ => response,
    }
}

fn charge(response: Response, refusal: Refusal, answers: &ByteBudget, state: &AppState) -> Result<Response> {
    let (mut parts, mut body) = response.into_parts();
    let bytes = match frame(&mut body).now_or_never() {
        Some(Some(Ok(bytes))) if body.is_end_stream() => bytes,
        _ => return Err(Problem::internal("a response of known length is not complete")),
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
        (None, Refusal::Excluded) => {
            let mut share = answers.empty();
            share.grow(bytes.capacity());
            share
        }
    };
    let body = evictable(of_share(bytes, share), answers, state, &mut parts.extensions);
    Ok(Response::from_parts(parts, body))
}

/// Returns bytes that return their share of the budget once they are written or dropped.
pub fn of_share(bytes: Vec<u8>, share: ByteShare) -> Bytes {
    Bytes::from_owner(Owned { bytes, _held: share })
}

/// Returns the body of a complete response whose bytes are charged. Its client can be evicted for it.
pub fn evictable(bytes: Bytes, answers: &ByteBudget, state: &AppState, extensions: &mut Extensions) -> Body {
    if bytes.len() >= TINY_BYTES {
        extensions.insert(Charged);
    }
    if bytes.len() < SMALL_BYTES {
        return Body::from(bytes);
    }
    let unread = Unread {
        answers: answers.clone(),
        bytes: bytes.len(),
        idle_from: Instant::now() + Duration::from_secs(bytes.len() as u64) / TAKEN_PER_SECOND,
        evicted: Mutex::default(),
        hang_up: HangUp::default(),
    };
    extensions.insert(unread.hang_up.clone());
    let registration = state.readers.register(Arc::new(unread));
    Body::from(Bytes::from_owner(Owned { bytes, _held: registration }))
}

/// Bytes with what is given back once they are written or dropped.
struct Owned<B, H> {
    bytes: B,
    _held: H,
}

impl<B: AsRef<[u8]>, H> AsRef<[u8]> for Owned<B, H> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// A complete response that its client has not received yet, as far as known.
struct Unread {
    answers: ByteBudget,
    bytes: usize,
    /// When its client should have received it.
    idle_from: Instant,
    /// When it was evicted.
    evicted: Mutex<Option<Instant>>,
    hang_up: HangUp,
}

impl UnreadData for Unread {
    fn answers(&self) -> &ByteBudget {
        &self.answers
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn idle(&self) -> Option<Duration> {
        self.evicted.lock().is_none().then(|| Instant::now().saturating_duration_since(self.idle_from))
    }

    fn is_leaving(&self) -> bool {
        // Not longer: its memory counts as about to be freed, and others wait for it.
        self.evicted.lock().is_some_and(|at| at.elapsed() < LEAVE_MAX)
    }

    fn evict(&self) -> bool {
        let evicts = self.evicted.lock().replace(Instant::now()).is_none();
        if evicts {
            self.hang_up.call();
        }
        evicts
    }
}
