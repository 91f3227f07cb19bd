//! Small responses: JSON documents, pages, and the headers common to reads and writes.

use crate::html::{Account, Page, Viewer};
use crate::protocol::params::format::Format;
use crate::protocol::problem::{Problem, Result};
use crate::protocol::tags;
use crate::request::scope::Scope;
use crate::state::AppState;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_admission::identity::Caller;
use meridian_backend::Head;
use meridian_model::Seqs;
use meridian_model::policy::access::{Action, Decision, Target};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The snapshot that a response was read from.
pub static SNAPSHOT: HeaderName = HeaderName::from_static("meridian-snapshot");
/// The consistency of the response; `immediate` if it shows every acknowledged write.
pub static CONSISTENCY: HeaderName = HeaderName::from_static("meridian-consistency");
/// The log position of a write.
pub static POSITION: HeaderName = HeaderName::from_static("meridian-position");
/// Set if some events could not be read because files are damaged: the response is incomplete.
pub static MISSING: HeaderName = HeaderName::from_static("meridian-missing");
static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Capacity for the headers of a read: those that its handler sets, and those that are added to every response.
pub const HEADERS: usize = 16;

/// Responds with a JSON document of this media type.
pub fn json(media_type: &'static str, document: &impl Serialize) -> Result<Response> {
    let bytes = serde_json::to_vec(document).map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))], bytes).into_response())
}

/// Responds with a JSON document tagged by its bytes, for documents that are read repeatedly.
pub fn document(media_type: &'static str, document: &impl Serialize) -> Result<Response> {
    let bytes = serde_json::to_vec(document).map_err(Problem::internal)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    tags::of_bytes(&mut headers, &bytes);
    Ok((headers, bytes).into_response())
}

/// Policy of server-rendered pages: they load the server's own style, scripts and fonts, and contain none of these
/// inline. Text in an event can therefore never become a script. The origins that may embed pages are added to every
/// policy in one place (`entry/guard`).
const DOCUMENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'";

/// Responds with an HTML page.
pub fn html(page: String) -> Response {
    let mut response = page.into_response();
    set_document(response.headers_mut());
    response
}

/// Responds with a page as seen by the caller.
pub fn page(state: &Scope, page: Page) -> Response {
    html(shown(state, page))
}

/// Renders a page as seen by the caller.
pub fn shown(state: &Scope, page: Page) -> String {
    shown_to(state, state.caller(), page)
}

/// Renders a page as seen by a caller.
pub fn shown_to(state: &AppState, caller: &Caller, page: Page) -> String {
    let account = match caller.user() {
        Some(user) => Account::User(user),
        // Without users and issuers there is no sign-in page.
        None if !state.registry.signs_in() => Account::Unknown,
        None => Account::SignedOut,
    };
    let is_operator = caller.grant.decide(Action::Read, Target::Server) == Decision::Allowed;
    page.seen_by(Viewer { account, is_operator })
}

/// Sets the headers of a server-rendered page.
pub fn set_document(headers: &mut HeaderMap) {
    set_page(headers, DOCUMENT_POLICY);
    // The page may name its user. Some pages have stricter headers already.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private"));
}

/// Sets the headers of a page: its type, what it may load, and that other sites get no `Referer`.
pub fn set_page(headers: &mut HeaderMap, policy: &'static str) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Format::Html.media_type()));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// The media type of Server-Sent Events.
const EVENTS: &str = "text/event-stream";

/// Responds with a stream of Server-Sent Events, which proxies must neither cache nor buffer.
pub fn events(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(EVENTS)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// Returns whether a response is a stream of Server-Sent Events.
pub fn is_events(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|media_type| media_type.as_bytes() == EVENTS.as_bytes())
}

/// Sets the headers for the snapshot and its age, in whole seconds.
pub fn set_snapshot(headers: &mut HeaderMap, snapshot: &Seqs, age: Duration, consistency: &'static str) {
    insert(headers, SNAPSHOT.clone(), &snapshot.to_id());
    headers.insert(header::AGE, HeaderValue::from(seconds(age, consistency)));
    headers.insert(CONSISTENCY.clone(), HeaderValue::from_static(consistency));
}

/// Returns an age as stated in the header. The age of a response that may miss newer writes is rounded up: rounded
/// down, it would claim to include writes of the last second.
fn seconds(age: Duration, consistency: &str) -> u64 {
    let begun = consistency == "eventual" && age.subsec_nanos() > 0;
    age.as_secs() + u64::from(begun)
}

/// Sets the headers of every read: the snapshot, its age, and missing parts.
pub fn set_read_headers(headers: &mut HeaderMap, head: &Head, now: i64, consistency: &'static str) {
    let age = Duration::from_micros(now.saturating_sub(head.taken_at).max(0) as u64);
    set_snapshot(headers, &head.seq, age, consistency);
    if !head.missing.is_empty() {
        insert(headers, MISSING.clone(), &format!("{} damaged files", head.missing.len()));
    }
}

/// Writes `Server-Timing`: the time of each stage, if known.
pub fn set_timing(headers: &mut HeaderMap, stages: &[(&str, Option<Duration>)]) {
    let mut text = String::new();
    for (name, took) in stages {
        if let Some(took) = took {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{name};dur={}", millis(*took));
        }
    }
    insert(headers, SERVER_TIMING.clone(), &text);
}

fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

/// Sets a header from text that is known to be printable.
pub fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Returns a response without a body.
pub fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::Seq;

    #[test]
    fn an_answer_claims_no_write_that_it_may_miss() {
        for (micros, eventual, immediate) in [(0, 0, 0), (1, 1, 0), (2_900_000, 3, 2), (3_000_000, 3, 3)] {
            let of = |consistency| {
                let mut headers = HeaderMap::new();
                set_snapshot(&mut headers, &Seqs::one(Seq(7)), Duration::from_micros(micros), consistency);
                headers[header::AGE].to_str().unwrap().parse::<u64>().unwrap()
            };
            assert_eq!((of("eventual"), of("immediate")), (eventual, immediate), "{micros} us");
        }
    }
}
