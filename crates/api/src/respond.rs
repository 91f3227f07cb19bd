//! Small answers: JSON documents, pages, and the headers that reads and writes share.

use crate::params::format::Format;
use crate::problem::{Problem, Result};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_model::Seq;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The snapshot that an answer was read from.
pub static SNAPSHOT: HeaderName = HeaderName::from_static("meridian-snapshot");
/// Whether the answer shows every acknowledged write (`immediate`).
pub static CONSISTENCY: HeaderName = HeaderName::from_static("meridian-consistency");
/// The log position of a write.
pub static POSITION: HeaderName = HeaderName::from_static("meridian-position");
/// The system that the coordinates of an answer are in.
pub static CONTENT_CRS: HeaderName = HeaderName::from_static("content-crs");
static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A JSON document of this media type.
pub fn json(media_type: &'static str, document: &impl Serialize) -> Result<Response> {
    let bytes = serde_json::to_vec(document).map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))], bytes).into_response())
}

/// What pages made on the server may load: nothing. They carry no script at all, so that nothing in an event's text can
/// ever become one. Who may embed them is added to every policy in one place (`doors`).
const PLAIN_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'; base-uri 'none'";

/// A page of HTML.
pub fn html(page: String) -> Response {
    let mut response = page.into_response();
    set_page(response.headers_mut(), PLAIN_POLICY);
    response
}

/// Sets the headers of a page: its type, what it may load, and that its address is no other site's business.
pub fn set_page(headers: &mut HeaderMap, policy: &'static str) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Format::Html.media_type()));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// A stream of Server-Sent Events, which nobody on the way is to keep or to gather.
pub fn events(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// Says which snapshot was read and how old it is.
pub fn set_snapshot(headers: &mut HeaderMap, snapshot: Seq, age: Duration, consistency: &'static str) {
    insert(headers, SNAPSHOT.clone(), &snapshot.to_id());
    headers.insert(header::AGE, HeaderValue::from(age.as_secs()));
    headers.insert(CONSISTENCY.clone(), HeaderValue::from_static(consistency));
}

/// Phases of a request in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Waiting for a place to run.
    pub admission: Duration,
    /// Planning, once known.
    pub plan: Option<Duration>,
    /// Scanning, once known (not in the head of a streamed answer).
    pub scan: Option<Duration>,
    /// Writing the answer, once known.
    pub encode: Option<Duration>,
}

/// Writes `Server-Timing`.
pub fn set_timing(headers: &mut HeaderMap, timing: &Timing) {
    let mut text = format!("admission;dur={}", millis(timing.admission));
    for (name, duration) in [("plan", timing.plan), ("scan", timing.scan), ("encode", timing.encode)] {
        if let Some(duration) = duration {
            let _ = write!(text, ", {name};dur={}", millis(duration));
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

/// An answer without a body.
pub fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
