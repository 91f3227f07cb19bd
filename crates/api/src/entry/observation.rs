//! Observes a request for metrics, logs and traces, from its arrival to the head of its response.

use super::Row;
use crate::entry::tracked::TrackedRequest;
use crate::protocol::fields;
use crate::protocol::problem::Result;
use crate::state::AppState;
use crate::state::metrics::Active;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use meridian_admission::identity::Caller;
use meridian_observe::{Kind as SpanKind, Parent, RequestId, Span, TRACEPARENT, TRACESTATE, WorkContext};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::Instant;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static PARENT: HeaderName = HeaderName::from_static(TRACEPARENT);
static STATE: HeaderName = HeaderName::from_static(TRACESTATE);

/// A request without a response yet.
pub struct Observation<'a> {
    state: &'a AppState,
    /// Counts the request as running until its head is ready: the body may take as long as its client.
    _active: Active<'a>,
    /// When the request's head had been read.
    pub arrived: Instant,
    /// The address of the client, once known.
    pub client: Option<IpAddr>,
    /// The number of its path in the route table, once known.
    pub path: Option<usize>,
    /// The outcome if its caller was identified before its route was known.
    pub early: Option<Result<Caller>>,
    method: Method,
    id: Option<HeaderValue>,
    trace: Option<HeaderValue>,
    span: Span,
    /// The work to which log lines refer.
    current: WorkContext,
    /// Its target, for log lines.
    uri: Uri,
}

impl<'a> Observation<'a> {
    /// Records that a request arrived at this time. Returns its work, within the trace named by the request if its
    /// caller `is_known`.
    pub fn begin(
        state: &'a AppState,
        arrived: Instant,
        (method, uri, headers): (&Method, &Uri, &HeaderMap),
        is_known: impl FnOnce() -> bool,
    ) -> (Observation<'a>, WorkContext) {
        // A client's own id is kept, so that its logs can be joined with the server's.
        let given = fields::first(headers, &REQUEST_ID).filter(|id| is_request_id(id));
        let request = match given.and_then(|id| id.to_str().ok()) {
            Some(text) => RequestId::Given(text.into()),
            None => RequestId::Made(state.next_request_id()),
        };
        let id = match &request {
            RequestId::Made(number) => HeaderValue::from_bytes(&hexadecimal(*number)).ok(),
            RequestId::Given(_) => given.cloned(),
        };
        let (trace, span) = state.tracer.begin(|| parent(headers).filter(|_| is_known()), "request", SpanKind::Server);
        let current = WorkContext { request: Some(request), trace, ..WorkContext::default() };
        let observation = Observation {
            state,
            _active: state.metrics.begin(),
            arrived,
            client: None,
            path: None,
            early: None,
            method: method.clone(),
            id,
            current: current.clone(),
            trace: fields::first(headers, &PARENT).filter(|_| parent(headers).is_some()).cloned(),
            span,
            uri: uri.clone(),
        };
        (observation, current)
    }

    /// Returns the request's id.
    pub fn id(&self) -> &str {
        self.id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default()
    }

    /// Starts measuring the work, once its route and caller are known.
    pub fn track(&mut self, row: &Row, caller: &Caller, uri: &Uri) -> TrackedRequest {
        let span = std::mem::replace(&mut self.span, Span::none());
        TrackedRequest::begin(self.state, row.route, caller, self.arrived, uri, span)
    }

    /// Records that the head of the response is ready, and adds the request's id to it.
    pub fn end(&mut self, response: &mut Response) {
        let Observation { state, arrived, client, path, method, span, uri, .. } = self;
        let elapsed = arrived.elapsed();
        let status = response.status();
        state.metrics.end(*path, method, status, elapsed);
        if span.is_recorded() {
            // Requests without a route, and the near query.
            let route = state.metrics.path(*path);
            span.rename(|| format!("{method} {route}").into());
            span.set("http.request.method", Arc::<str>::from(method.as_str()));
            span.set("http.route", route);
            span.set("http.response.status_code", u64::from(status.as_u16()));
            if status.is_server_error() {
                span.fail();
            }
        }
        let client = client.map(tracing::field::display);
        let (ms, code) = (elapsed.as_millis() as u64, status.as_u16());
        std::mem::take(&mut self.current).run(|| match status {
            // Two call sites, so that a flood of refusals does not suppress the log line of a failure.
            StatusCode::SERVICE_UNAVAILABLE => {
                tracing::warn!(client, %method, path = uri.path(), status = code, ms, "a request was refused");
            }
            _ if status.is_server_error() => {
                tracing::warn!(client, %method, path = uri.path(), status = code, ms, "a request failed");
            }
            _ => tracing::debug!(client, %method, path = uri.path(), status = code, ms, "answered"),
        });
        let headers = response.headers_mut();
        if let Some(id) = self.id.take() {
            headers.insert(REQUEST_ID.clone(), id);
        }
        if let Some(trace) = self.trace.take() {
            headers.insert(PARENT.clone(), trace);
        }
    }
}

/// Parses the caller's span. Two headers count as none, since it is unknown which one is meant.
fn parent(headers: &HeaderMap) -> Option<Parent> {
    match fields::only(headers, &PARENT) {
        Some((parent, false)) => Parent::parse(parent.as_bytes(), headers.get(&STATE).map(HeaderValue::as_bytes)),
        _ => None,
    }
}

/// Formats a number as 16 hexadecimal digits, like [`RequestId`]. Every response has one, and the standard formatting
/// is slower.
fn hexadecimal(number: u64) -> [u8; 16] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (60 - 4 * at) & 0xf) as usize])
}

/// Returns whether a client's request id is short and printable, since it is logged.
fn is_request_id(value: &HeaderValue) -> bool {
    (1..=128).contains(&value.len())
        && value.as_bytes().iter().all(|b| b.is_ascii_alphanumeric() || b"-_.:/+=".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_id_of_the_log_line() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(hexadecimal(number), RequestId::Made(number).to_string().as_bytes());
        }
    }

    #[test]
    fn only_well_formed_names_are_echoed() {
        let value = |text: &'static str| HeaderValue::from_static(text);
        assert!(is_request_id(&value("a-1:b/c")));
        assert!(!is_request_id(&value("a b")));
    }
}
