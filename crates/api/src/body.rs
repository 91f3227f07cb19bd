//! Receives request bodies, within the limits on size, memory and time.

use crate::entry::Lease;
use crate::overload::overloaded;
use crate::problem::{Kind, Problem, Result};
use crate::scope::Scope;
use crate::state::AppState;
use crate::stream;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use meridian_admission::ByteShare;
use meridian_observe::{self as observe, Stage};
use serde::de::DeserializeOwned;
use std::pin::Pin;
use tokio::time::Instant;

/// Bodies up to this size are parsed where they arrive. That takes less time than handing them to another thread, and
/// delays other tasks no longer than is acceptable.
pub const INLINE_BYTES: usize = 16 << 10;
/// Step by which the share of the memory budget grows.
const GROWTH_BYTES: usize = 1 << 20;

/// A body in memory, and its share of the memory for bodies.
#[derive(Debug)]
pub struct Received {
    /// The bytes.
    pub bytes: Bytes,
    _held: ByteShare,
}

/// Reads a body to its end.
///
/// 413 when it is over the limit, 408 when it stalls or trickles, 503 when all bodies together would take too much
/// memory.
pub async fn receive(state: &Scope, headers: &HeaderMap, body: Body) -> Result<Received> {
    receive_up_to(state, headers, body, state.body_bytes_max()).await
}

/// Reads a body of at most `limit` bytes to its end.
pub async fn receive_up_to(state: &Scope, headers: &HeaderMap, mut body: Body, limit: usize) -> Result<Received> {
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
            // In steps, as the bytes arrive: a sender that only announces a large body takes nothing from the others.
            let step = length.map_or(usize::MAX, |length| length as usize).min(held.bytes() + GROWTH_BYTES);
            if !held.try_grow(arrived.max(step)) {
                return Err(unread(no_memory(state)));
            }
        }
        if length == Some(data.len() as u64) && whole.is_none() {
            whole = Some(data);
            continue;
        }
        if arrived > bytes.capacity() {
            // All of a declared length at once: pages not written yet take no memory, and nothing is copied. Else
            // exactly as much as was taken: the usual doubling would allocate memory that no share covers.
            let capacity = length.map_or(held.bytes(), |length| length as usize);
            bytes.reserve_exact(capacity.max(arrived) - bytes.len());
        }
        bytes.extend_from_slice(&data);
        let taken = begun.elapsed();
        // The stall limit alone is not enough: a client that sends one byte at a time never stalls, and would hold its
        // share of memory for as long as it likes.
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
    // A body may take its time, and its sender's credential may have ended meanwhile.
    state.still_valid()?;
    Ok(Received { bytes: whole.unwrap_or_else(|| bytes.into()), _held: held })
}

/// Parses a body as JSON. A large one is parsed on a blocking thread with a permit, so that other tasks do not wait.
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
    stream::run(lease.run(state, deadline).await?, move |_| Ok(serde_json::from_slice(&bytes))).await
}

/// The next piece of data; trailers are skipped.
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

/// The refusal of a request whose body is not read to its end.
fn unread(problem: Problem) -> Problem {
    problem.header(header::CONNECTION, HeaderValue::from_static("close"))
}

/// The refusal of a body, or of the events in it, for which there is no memory now.
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
    use meridian_admission::Ledger;
    use meridian_admission::gate::{Account, Class};
    use meridian_backend::{Embedded, Seams};
    use meridian_store::{Options, Store};
    use serde::de::IgnoredAny;
    use serde::{Deserialize, Deserializer};
    use std::sync::Arc;
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
    async fn a_large_document_is_read_on_another_thread() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let account = Account { ledger: Arc::new(Ledger::new("default")), class: Class::Interactive };
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
