//! Receives request bodies, within the limits on size, memory and time.

use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking;
use crate::request::dispatch::Lease;
use crate::request::overload::overloaded;
use crate::request::scope::Scope;
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use meridian_admission::ByteShare;
use meridian_model::unrepeated::Unrepeated;
use meridian_observe::{self as observe, Stage};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::pin::Pin;
use tokio::time::Instant;

/// Max size of a body that is parsed inline. That is cheaper than handing it to another thread, and delays other tasks
/// only acceptably.
pub const INLINE_BYTES: usize = 16 << 10;
/// Min share of a body in the memory budget, and the step by which it grows from there on. In between it doubles: a
/// client that sends few bytes and stops holds few.
const GROWTH_BYTES: (usize, usize) = (4 << 10, 1 << 20);

/// A body in memory, with its share of the memory for bodies.
#[derive(Debug)]
pub struct ReceivedBody {
    /// The bytes.
    pub bytes: Bytes,
    held: ByteShare,
}

impl ReceivedBody {
    /// Drops the body, and keeps so many bytes of memory for what was made of it.
    ///
    /// # Errors
    /// 503 if there is no memory for it.
    pub fn into_share(self, state: &Scope, bytes: usize) -> Result<ByteShare> {
        let mut held = self.held;
        if !held.try_grow(bytes) {
            return Err(no_memory(state));
        }
        held.shrink(held.bytes() - bytes);
        Ok(held)
    }
}

/// Reads a body to its end.
///
/// # Errors
/// 413 if it exceeds the limit, 408 if it stalls or trickles, 503 if all bodies together would take too much memory.
pub async fn receive(state: &Scope, headers: &HeaderMap, body: Body) -> Result<ReceivedBody> {
    receive_up_to(state, headers, body, state.body_bytes_max()).await
}

/// Reads a body of at most `limit` bytes to its end.
pub async fn receive_up_to(state: &Scope, headers: &HeaderMap, mut body: Body, limit: usize) -> Result<ReceivedBody> {
    let _body = observe::stage(Stage::Body);
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|n| n > limit as u64) {
        return Err(unread(too_large(limit)));
    }
    let mut held = state.bodies().empty();
    let mut bytes: Vec<u8> = Vec::new();
    // A small body arrives as one piece, which is kept without a copy.
    let mut whole = None;
    let begun = Instant::now();
    loop {
        let data = match tokio::time::timeout(state.config.body_stall, frame(&mut body)).await {
            Ok(None) => break,
            Ok(Some(Ok(data))) => data,
            Ok(Some(Err(e))) => {
                return Err(Problem::new(Kind::InvalidBody, format!("the body broke off: {e}")));
            }
            Err(_) => return Err(too_slow(&format!("nothing arrived for {:?}", state.config.body_stall))),
        };
        let arrived = bytes.len() + data.len();
        // A chunked body declares no length, so it is counted as it arrives.
        if arrived > limit {
            return Err(unread(too_large(limit)));
        }
        if arrived > held.bytes() {
            // Grown in steps as the bytes arrive: a client that only announces a large body takes no memory from
            // others.
            let step = match arrived < GROWTH_BYTES.1 {
                true => arrived.next_power_of_two().max(GROWTH_BYTES.0),
                false => arrived.next_multiple_of(GROWTH_BYTES.1),
            };
            let step = step.min(length.map_or(limit, |length| length as usize));
            if !held.try_grow(arrived.max(step)) {
                return Err(unread(no_memory(state)));
            }
        }
        if length == Some(data.len() as u64) && whole.is_none() {
            whole = Some(data);
            continue;
        }
        if arrived > bytes.capacity() {
            // A declared length is allocated at once: untouched pages take no memory, and nothing is copied. Otherwise
            // the capacity equals the share exactly, because the usual doubling would allocate memory that no share
            // covers.
            let capacity = length.map_or(held.bytes(), |length| length as usize);
            bytes.reserve_exact(capacity.max(arrived) - bytes.len());
        }
        bytes.extend_from_slice(&data);
        let taken = begun.elapsed();
        // The stall limit alone is not enough. A client that sends one byte at a time never stalls, and would hold its
        // share of memory indefinitely.
        let min_bytes = state.config.body_rate_min as f64 * taken.as_secs_f64();
        if taken > state.config.body_grace && (bytes.len() as f64) < min_bytes {
            return Err(too_slow(&format!(
                "{} bytes in {} s; at least {} a second are required",
                bytes.len(),
                taken.as_secs(),
                state.config.body_rate_min
            )));
        }
    }
    // A body may take long, and its sender's credential may have ended meanwhile.
    state.still_valid()?;
    Ok(ReceivedBody { bytes: whole.unwrap_or_else(|| bytes.into()), held })
}

/// Parses a body as a JSON document that is kept while its request waits. Its memory, which may be many times the
/// text's, is added to the body's share. A document that repeats a member is refused.
///
/// # Errors
/// 503 if there is no memory for it.
pub async fn document(
    state: &Scope,
    lease: &Lease,
    received: &mut ReceivedBody,
    deadline: Instant,
) -> Result<serde_json::Result<Value>> {
    let read = json(state, lease, &received.bytes, deadline).await?.map(|Unrepeated(value)| value);
    if let Ok(value) = &read {
        let bytes = received.bytes.len() + weight(value);
        if !received.held.try_grow(bytes) {
            return Err(no_memory(state));
        }
    }
    Ok(read)
}

/// Estimates the bytes taken by the parts of a JSON value.
pub fn weight(value: &Value) -> usize {
    // A member takes its key, its value and a hash, and about two slots of a table. The min allocation is four.
    const MEMBER_BYTES: usize = size_of::<String>() + size_of::<Value>() + 4 * size_of::<u64>();
    match value {
        Value::String(text) => text.capacity(),
        Value::Array(list) => list.capacity() * size_of::<Value>() + list.iter().map(weight).sum::<usize>(),
        Value::Object(members) if members.is_empty() => 0,
        Value::Object(members) => {
            let texts = members.iter().map(|(key, value)| key.capacity() + weight(value)).sum::<usize>();
            members.len().next_power_of_two().max(4) * MEMBER_BYTES + texts
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Parses a body as JSON. A large body is parsed on a blocking thread with a permit, so that it does not delay other
/// tasks.
pub async fn json<T: DeserializeOwned + Send + 'static>(
    state: &AppState,
    lease: &Lease,
    bytes: &Bytes,
    deadline: Instant,
) -> Result<serde_json::Result<T>> {
    if bytes.len() <= INLINE_BYTES {
        return Ok(serde_json::from_slice(bytes));
    }
    let bytes = bytes.clone();
    blocking::run(lease.run(state, deadline).await?, move |_| Ok(serde_json::from_slice(&bytes))).await
}

/// Returns the next piece of data; skips trailers.
pub async fn frame(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    loop {
        let next = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match next {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(e) => return Some(Err(e)),
        }
    }
}

/// Turns a problem into the refusal of a request whose body is not read to its end.
fn unread(problem: Problem) -> Problem {
    problem.header(header::CONNECTION, HeaderValue::from_static("close"))
}

/// Refuses a body, or its events, for lack of memory.
pub fn no_memory(state: &Scope) -> Problem {
    overloaded(
        state,
        "the request bodies being read use all the memory set aside for them: try again".to_owned(),
        state.config.requests_running_max,
    )
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Kind::TooLarge, format!("the body is over the limit of {limit} bytes: send less at once"))
        .with("limit_bytes", limit)
}

fn too_slow(how: &str) -> Problem {
    unread(Problem::new(Kind::TooSlow, format!("the body arrived too slowly: {how}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use futures_util::{StreamExt as _, stream};
    use meridian_admission::Ledger;
    use meridian_admission::gate::{Account, Class};
    use meridian_admission::identity::Identity;
    use meridian_backend::{Embedded, Seams};
    use meridian_model::policy::access::{Grant, Role};
    use meridian_store::{Options, Store};
    use serde::de::IgnoredAny;
    use serde::{Deserialize, Deserializer};
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use std::thread::ThreadId;
    use tokio::time::Duration;

    /// The thread on which it was read.
    struct ReadOn(ThreadId);

    impl<'de> Deserialize<'de> for ReadOn {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReadOn, D::Error> {
            IgnoredAny::deserialize(deserializer).map(|_| ReadOn(std::thread::current().id()))
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_holds_about_as_much_as_arrived() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let caller = Identity::new("default", Grant::over_all(Role::Admin), "me");
        let scope = Scope::new(state.clone(), Arc::new(caller));
        for (arrived, declared, held_max) in
            [(1, None, 4 << 10), (1, Some("60000000"), 4 << 10), (70_000, None, 140_000), (3 << 20, None, 4 << 20)]
        {
            let headers = HeaderMap::from_iter(declared.map(|n| (header::CONTENT_LENGTH, HeaderValue::from_static(n))));
            let first = stream::iter(vec![Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; arrived]))]);
            let body = Body::from_stream(first.chain(stream::pending()));
            let mut receiving = Box::pin(receive_up_to(&scope, &headers, body, 64 << 20));
            assert!(receiving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let held = state.bodies.held();
            assert!((arrived..=held_max).contains(&held), "{arrived} bytes hold {held}");
            drop(receiving);
            assert_eq!(state.bodies.held(), 0);
        }
    }

    #[tokio::test]
    async fn a_document_counts_until_its_body_is_dropped() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let config = ServerConfig { body_bytes_total: 1 << 20, ..ServerConfig::default() };
        let state = AppState::new(Embedded::new(store), &seams, config).unwrap();
        let caller = Identity::new("default", Grant::over_all(Role::Admin), "me");
        let scope = Scope::new(state.clone(), Arc::new(caller));
        let account = Account { ledger: scope.caller().ledger.clone(), class: Class::Interactive, is_write: false };
        let (lease, deadline) =
            (Lease::new(state.gate.clone(), account, None), Instant::now() + Duration::from_secs(60));
        let text = format!("[{}{{\"a\":\"b\"}}]", "[0],".repeat(1_000));
        let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, text.len().into())]);
        let mut received = receive_up_to(&scope, &headers, Body::from(text.clone()), 64 << 10).await.unwrap();
        assert_eq!(state.bodies.held(), text.len());
        let value = document(&scope, &lease, &mut received, deadline).await.unwrap().unwrap();
        assert!(state.bodies.held() >= text.len() + 4_000 * size_of::<Value>(), "{}", state.bodies.held());
        drop(value);
        assert!(state.bodies.held() > text.len(), "a question that waits holds its share");
        drop(received);
        assert_eq!(state.bodies.held(), 0);
    }

    #[tokio::test]
    async fn a_large_document_is_read_on_another_thread() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let account = Account { ledger: Arc::new(Ledger::new("default")), class: Class::Interactive, is_write: false };
        let lease = Lease::new(state.gate.clone(), account, None);
        let here = std::thread::current().id();
        for (length, same) in [(INLINE_BYTES - 2, true), (INLINE_BYTES, false)] {
            let text = Bytes::from(format!("\"{}\"", "x".repeat(length)));
            let deadline = Instant::now() + Duration::from_secs(60);
            let read: ReadOn = json(&state, &lease, &text, deadline).await.unwrap().unwrap();
            assert_eq!(read.0 == here, same, "{length}");
        }
        assert!(json::<ReadOn>(&state, &lease, &Bytes::from_static(b"{"), Instant::now()).await.unwrap().is_err());
    }
}
