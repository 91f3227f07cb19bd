//! Compressed responses: which ones are compressed, and with which coding (RFC 9110, 8.4 and 12.5.3).
//!
//! A response is compressed while it is sent, after its handler and before it is charged, so the quota counts the bytes
//! sent. The processor time is charged to the tenant.
//!
//! The length of a compressed response reveals something about its text. A page of another site may make a browser send
//! text of its choice. If the response also contains a secret, repeated lengths reveal the secret (BREACH). The
//! following are therefore never compressed (docs/decisions/066):
//! - responses that no cache may store: tokens, sessions, forms with a token against forged requests;
//! - pages for a browser with cookies: they contain that token;
//! - responses fetched by a browser with credentials that it adds by itself, unless a page of this server sent the
//!   request.

mod accepted;
mod encoded;
mod encoder;

pub use accepted::Accepted;

use crate::protocol::tags;
use crate::response::whole::MemoryMark;
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use encoded::{Charge, EncodedBody};
use encoder::Encoder;
use meridian_admission::ByteBudget;
use meridian_admission::identity::Caller;

/// Smaller responses are not compressed: the frame of a coding and the work cost more than they save.
const BYTES_MIN: u64 = 1 << 10;
/// A complete response up to this size is compressed at once, and keeps a length.
const WHOLE_BYTES_MAX: u64 = 64 << 10;

/// The codings in order of preference, for clients without one. The order follows zstd's low processor time and
/// Brotli's small pages and tiles (`bench/compression`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Zstandard, with a window of 128 KiB (RFC 8878).
    Zstd,
    /// Brotli (RFC 7932).
    Brotli,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// Its name in `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }
}

/// Returns whether the coding of a response with these headers depends on `Accept-Encoding`.
pub fn is_negotiated(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_ENCODING) || is_of_codings(headers)
}

/// Returns whether a response with these headers may be compressed, if its client accepts that.
fn is_compressible(headers: &HeaderMap) -> bool {
    is_of_codings(headers)
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_RANGE)
}

/// Returns whether what a response shows may be compressed, also if the response is a part of it or says that it is
/// unchanged.
fn is_of_codings(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let cache = headers.get(header::CACHE_CONTROL).map_or(&b""[..], HeaderValue::as_bytes);
    shrinks(kind)
        && !cache.split(|byte| *byte == b',').any(|one| matches!(one.trim_ascii(), b"no-store" | b"no-transform"))
}

/// Returns whether content of a media type compresses well. Excluded are types that are already compressed, and streams
/// of events, whose readers wait for each event.
fn shrinks(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    match essence {
        b"text/event-stream" => false,
        b"application/json"
        | b"application/x-ndjson"
        | b"application/geo+json-seq"
        | b"application/javascript"
        | b"application/wasm"
        | b"application/vnd.apache.arrow.stream"
        | b"application/flatgeobuf"
        | b"application/vnd.mapbox-vector-tile"
        | b"application/x-protobuf"
        | b"image/svg+xml" => true,
        other => other.starts_with(b"text/") || other.ends_with(b"+json"),
    }
}

/// Returns the coding of a response to a client that accepts these; `None` if it is sent as it is.
pub fn chosen(response: &Response, accepted: &Accepted) -> Option<Coding> {
    let coding = accepted.coding()?;
    let (status, headers) = (response.status(), response.headers());
    let has_body = status.is_success() && status != StatusCode::NO_CONTENT;
    if !has_body || !is_compressible(headers) || accepted.protects(headers) {
        return None;
    }
    let is_small = response.body().size_hint().exact().is_some_and(|bytes| bytes < BYTES_MIN);
    (!is_small || accepted.refuses_plain()).then_some(coding)
}

/// Encodes the response with the coding that was [`chosen`] for its client. Leaves it unchanged if it would not become
/// smaller, or if there is no memory for the work.
pub async fn apply(
    response: Response,
    coding: Coding,
    accepted: &Accepted,
    caller: &Caller,
    state: &AppState,
) -> Response {
    let size = response.body().size_hint().exact();
    // An encoder keeps its memory as long as its client does not read, and no eviction frees it. So all of them have at most
    // a part of the memory for responses; beyond that, a response is sent as it is.
    let take = |budget: &ByteBudget| budget.of(&caller.tenant).try_take(Encoder::bytes(coding));
    let (Some(part), Some(share)) = (take(&state.encoders), take(&state.answers)) else { return response };
    let Ok(encoder) = Encoder::new(coding) else { return response };
    let (ledger, gate) = (caller.ledger.clone(), state.gate.clone());
    let charge: Charge = Box::new(move |work| gate.run_for(&ledger, work));
    let (mut parts, body) = response.into_parts();
    let body = match size.is_some_and(|bytes| bytes <= WHOLE_BYTES_MAX) {
        false => Body::new(EncodedBody::new(body, encoder, [part, share], charge)),
        true => {
            // Already in memory, so this does not wait.
            let whole = match axum::body::to_bytes(body, WHOLE_BYTES_MAX as usize).await {
                Ok(whole) => whole,
                Err(error) => return Response::from_parts(parts, Body::new(encoded::FailedBody(Some(error)))),
            };
            match encoded::whole(encoder, &whole, &charge) {
                Some(coded) if coded.len() < whole.len() || accepted.refuses_plain() => {
                    // What was charged is dropped.
                    parts.extensions.remove::<MemoryMark>();
                    Body::from(coded)
                }
                _ => return Response::from_parts(parts, Body::from(whole)),
            }
        }
    };
    let headers = &mut parts.headers;
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    headers.remove(header::CONTENT_LENGTH);
    // Ranges refer to the uncompressed bytes.
    headers.remove(header::ACCEPT_RANGES);
    tags::mark(headers, coding.name());
    Response::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::entry::guard::Guard;
    use meridian_admission::identity::Identity;
    use meridian_backend::{Embedded, Seams};
    use meridian_model::policy::access::{Grant, Role};
    use meridian_store::{Options, Store};
    use std::sync::Arc;

    fn of(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[tokio::test]
    async fn encoders_whose_clients_do_not_read_leave_memory_for_other_responses() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let config = ServerConfig { answer_bytes_total: 32 << 20, ..ServerConfig::default() };
        let state = AppState::new(Embedded::new(store), &seams, config).unwrap();
        let caller = Arc::new(Identity::new("default", Grant::over_all(Role::Admin), "me"));
        let guard = Guard::new(&ServerConfig::default(), "127.0.0.1:7117".parse().unwrap());
        let accepted = Accepted::of(&of(&[("accept-encoding", "br")]), &guard);
        let mut unread = Vec::new();
        for _ in 0..40 {
            let body = Body::from("x".repeat(1 << 20));
            let mut response = Response::new(body);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            unread.push(apply(response, Coding::Brotli, &accepted, &caller, &state).await);
        }
        let coded = unread.iter().filter(|response| response.headers().contains_key(header::CONTENT_ENCODING)).count();
        assert_eq!(coded, 4, "a quarter of the memory, by 2 MiB");
        assert_eq!(state.answers.held(), 8 << 20);
        drop(unread);
        assert_eq!((state.answers.held(), state.encoders.held()), (0, 0));
    }

    #[test]
    fn what_is_compressed_or_secret_stays_as_it_is() {
        for kind in [
            "application/json",
            "application/geo+json",
            "text/html; charset=utf-8",
            "application/vnd.oai.openapi+json;version=3.0",
            "application/vnd.mapbox-vector-tile",
            "application/flatgeobuf",
        ] {
            assert!(is_compressible(&of(&[("content-type", kind)])), "{kind}");
        }
        for kind in [
            "application/vnd.apache.parquet",
            "application/geopackage+sqlite3",
            "image/png",
            "text/event-stream",
            "application/x-tar",
            "font/woff2",
            "",
        ] {
            assert!(!is_compressible(&of(&[("content-type", kind)])), "{kind}");
        }
        // The whole of a part is compressed for a client that accepts it.
        assert!(is_negotiated(&of(&[("content-type", "text/css"), ("content-range", "bytes 0-1/2")])));
        assert!(!is_negotiated(&of(&[("content-type", "image/png"), ("content-range", "bytes 0-1/2")])));
        for (name, value) in [
            ("content-encoding", "br"),
            ("content-range", "bytes 0-1/2"),
            ("cache-control", "no-store"),
            ("cache-control", "private, no-transform"),
        ] {
            assert!(!is_compressible(&of(&[("content-type", "text/css"), (name, value)])), "{name}: {value}");
        }
    }
}
