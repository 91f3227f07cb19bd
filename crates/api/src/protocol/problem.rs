//! Refusals and failures as RFC 9457 problem details.

mod mistakes;

use super::retry_time::{unmeasured, whole_seconds};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_model::{Invalid, cut};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::time::Duration;

/// Media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The kind of a problem; determines status, title and `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A parameter's value cannot be parsed.
    InvalidParameter,
    /// The route does not know the parameter.
    UnknownParameter,
    /// The body cannot be accepted as it is.
    InvalidBody,
    /// The request has no `Host`, or more than one.
    InvalidHost,
    /// The proxies' headers about the client are malformed or contradictory.
    InvalidForwarding,
    /// The request is for another host.
    Misdirected,
    /// A page of another origin tries to change something.
    CrossOrigin,
    /// The request lacks a valid credential.
    Unauthorized,
    /// The caller may see the target, but not perform this action.
    Forbidden,
    /// A request by a session lacks the session's CSRF token.
    CsrfToken,
    /// Too many sign-in attempts.
    TooManyAttempts,
    /// The request's head is not valid HTTP.
    Malformed,
    /// The request's target is too long.
    TargetTooLong,
    /// The request's head is too large.
    HeadTooLarge,
    /// The body is well-formed but has values that the collection cannot store.
    NotKept,
    /// No such collection, event, tile or route.
    NotFound,
    /// The route has no such method.
    MethodNotAllowed,
    /// None of the client's accepted formats is available.
    NotAcceptable,
    /// The request arrived too slowly.
    TooSlow,
    /// The id or name is taken, or the change was not confirmed.
    Conflict,
    /// The target's state does not meet a condition of the request.
    PreconditionFailed,
    /// The requested part of a file does not exist.
    RangeNotSatisfiable,
    /// The request asks for something that this server does not implement.
    NotImplemented,
    /// The idempotency key was used with another body before.
    KeyReused,
    /// A page token is too old.
    Gone,
    /// The body exceeds the limit.
    TooLarge,
    /// The body's media type is not accepted here.
    UnsupportedMediaType,
    /// A quota of the caller's tenant is used up.
    QuotaExceeded,
    /// The issuer for signing in does not respond.
    #[cfg(feature = "openid")]
    IssuerUnavailable,
    /// More requests than the server can run.
    Overloaded,
    /// More searches than may run.
    TooManySearches,
    /// More is written to a collection than its log takes.
    TooManyWrites,
    /// The deadline passed before the response began.
    DeadlineExceeded,
    /// Data known to the client has not arrived at this server.
    Behind,
    /// The disk is full or read-only, or the store no longer accepts writes.
    StorageUnavailable,
    /// The collection exists but cannot be opened.
    Damaged,
    /// A fault of the server.
    Internal,
}

impl Kind {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Kind::InvalidParameter => (StatusCode::BAD_REQUEST, "invalid-parameter", "Invalid parameter"),
            Kind::UnknownParameter => (StatusCode::BAD_REQUEST, "unknown-parameter", "Unknown parameter"),
            Kind::InvalidBody => (StatusCode::BAD_REQUEST, "invalid-body", "Invalid body"),
            Kind::InvalidHost => (StatusCode::BAD_REQUEST, "invalid-host", "Invalid Host"),
            Kind::InvalidForwarding => (StatusCode::BAD_REQUEST, "invalid-forwarding", "Invalid forwarding header"),
            Kind::Misdirected => (StatusCode::MISDIRECTED_REQUEST, "misdirected", "Misdirected request"),
            Kind::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "Credential needed"),
            Kind::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "Not allowed"),
            Kind::CsrfToken => (StatusCode::FORBIDDEN, "csrf-token", "CSRF token needed"),
            Kind::TooManyAttempts => (StatusCode::TOO_MANY_REQUESTS, "too-many-attempts", "Too many attempts"),
            Kind::CrossOrigin => (StatusCode::FORBIDDEN, "cross-origin", "Request from another origin"),
            Kind::Malformed => (StatusCode::BAD_REQUEST, "malformed-request", "Malformed request"),
            Kind::TargetTooLong => (StatusCode::URI_TOO_LONG, "target-too-long", "Request target too long"),
            Kind::HeadTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head-too-large", "Request head too large")
            }
            Kind::NotKept => (StatusCode::UNPROCESSABLE_ENTITY, "not-kept", "Cannot be kept"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not-found", "Not found"),
            Kind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed"),
            Kind::NotAcceptable => (StatusCode::NOT_ACCEPTABLE, "not-acceptable", "No acceptable format"),
            Kind::TooSlow => (StatusCode::REQUEST_TIMEOUT, "request-too-slow", "Request arrived too slowly"),
            Kind::Conflict => (StatusCode::CONFLICT, "conflict", "Conflict"),
            Kind::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, "precondition-failed", "Precondition failed"),
            Kind::RangeNotSatisfiable => {
                (StatusCode::RANGE_NOT_SATISFIABLE, "range-not-satisfiable", "Range not satisfiable")
            }
            Kind::NotImplemented => (StatusCode::NOT_IMPLEMENTED, "not-implemented", "Not implemented"),
            Kind::KeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "key-reused", "Key used for another body"),
            Kind::Gone => (StatusCode::GONE, "gone", "No longer available"),
            Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Body too large"),
            Kind::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type")
            }
            Kind::QuotaExceeded => (StatusCode::TOO_MANY_REQUESTS, "quota-exceeded", "Quota exceeded"),
            #[cfg(feature = "openid")]
            Kind::IssuerUnavailable => (StatusCode::SERVICE_UNAVAILABLE, "issuer-unavailable", "Issuer unavailable"),
            Kind::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Server overloaded"),
            Kind::TooManySearches => (StatusCode::TOO_MANY_REQUESTS, "too-many-searches", "Too many searches"),
            Kind::TooManyWrites => (StatusCode::TOO_MANY_REQUESTS, "too-many-writes", "Too many writes"),
            Kind::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "deadline-exceeded", "Deadline exceeded"),
            Kind::Behind => (StatusCode::SERVICE_UNAVAILABLE, "behind", "Not there yet"),
            Kind::StorageUnavailable => {
                (StatusCode::INSUFFICIENT_STORAGE, "storage-unavailable", "Storage unavailable")
            }
            Kind::Damaged => (StatusCode::SERVICE_UNAVAILABLE, "damaged", "Collection damaged"),
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }
}

/// A refusal or failure, as sent to the client.
#[derive(Debug, Clone)]
pub struct Problem(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    kind: Kind,
    status: StatusCode,
    detail: String,
    extensions: Map<String, Value>,
    retry_after: Option<Duration>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

/// The result of a handler.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    /// Creates a problem of this kind; `detail` is a sentence. A long one is shortened to both its ends.
    pub fn new(kind: Kind, detail: impl Display) -> Problem {
        Problem(Box::new(Details {
            kind,
            status: kind.parts().0,
            detail: cut(detail),
            extensions: Map::new(),
            retry_after: None,
            headers: Vec::new(),
        }))
    }

    /// Creates a problem for a parameter whose value cannot be parsed.
    pub fn parameter(name: &str, detail: impl Display) -> Problem {
        Problem::new(Kind::InvalidParameter, detail).with("field", name)
    }

    /// Creates a problem for a mistake in the parameter `name`; a field named by the mistake stays in the detail.
    pub fn invalid_parameter(name: &str, invalid: Invalid) -> Problem {
        let detail = match invalid.field {
            Some(field) if field != name => format!("{field}: {}", invalid.detail),
            _ => invalid.detail,
        };
        Problem::parameter(name, detail)
    }

    /// Creates a problem for a resource that does not exist.
    pub fn not_found(detail: impl Display) -> Problem {
        Problem::new(Kind::NotFound, detail)
    }

    /// Creates a problem for a fault of the server: the cause is logged, and the client gets a sentence without it.
    pub fn internal(cause: impl Display) -> Problem {
        // Only logged: the cause may contain paths and other details that are not meant for clients.
        tracing::error!(%cause, "request failed");
        Problem::new(Kind::Internal, "the server failed while it handled this request; its log has the cause")
    }

    /// Adds a member.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.0.extensions.insert(name.to_owned(), value.into());
        self
    }

    /// Replaces the kind's status.
    pub fn with_status(mut self, status: StatusCode) -> Problem {
        self.0.status = status;
        self
    }

    /// Prepends a sentence about what was already done to the detail.
    pub fn prefix(mut self, done: &str) -> Problem {
        self.0.detail.insert_str(0, done);
        self
    }

    /// Sets when the client may retry, as measured. A 503 without it gets a time of its own.
    pub fn retry_after(mut self, wait: Duration) -> Problem {
        self.0.retry_after = Some(wait);
        self
    }

    /// Sets a retry time that nobody measured: `min`, or up to a quarter and 2 s later.
    pub fn retry_about(self, min: Duration) -> Problem {
        self.retry_after(unmeasured(min))
    }

    /// Sets the retry time of a 503 that has none. Its cause, such as an owner that moves, measured no time, and clients
    /// must not return at once.
    pub fn settled(self) -> Problem {
        match self.0.status == StatusCode::SERVICE_UNAVAILABLE && self.0.retry_after.is_none() {
            true => self.retry_about(Duration::from_secs(1)),
            false => self,
        }
    }

    /// Returns the seconds after which the client may retry, if that is known.
    pub fn retry_seconds(&self) -> Option<u64> {
        self.0.retry_after.map(whole_seconds)
    }

    /// Adds a header to the response.
    pub fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Problem {
        self.0.headers.push((name, value));
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the document.
    pub fn document(&self) -> Value {
        let Details { kind, status, detail, extensions, .. } = &*self.0;
        let (_, name, title) = kind.parts();
        let mut document = Map::new();
        document.insert("type".into(), format!("urn:meridian:problem:{name}").into());
        document.insert("title".into(), title.into());
        document.insert("status".into(), status.as_u16().into());
        document.insert("detail".into(), detail.as_str().into());
        document.extend(extensions.clone());
        if let Some(seconds) = self.retry_seconds() {
            document.insert("retry_after_seconds".into(), seconds.into());
        }
        Value::Object(document)
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the detail, a sentence.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let problem = self.settled();
        let mut response = (problem.status(), Json(problem.document())).into_response();
        let answer = response.headers_mut();
        answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        // A refusal depends on the moment, so a cache must not serve it to others.
        answer.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = problem.retry_seconds() {
            answer.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        for (name, value) in problem.0.headers {
            answer.insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_refusal_for_the_moment_always_says_when_to_return() {
        let told = |problem: Problem| {
            let response = problem.into_response();
            let wait = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
            wait.parse::<u64>().ok()
        };
        let spread: BTreeSet<_> = (0..100).map(|_| told(Problem::new(Kind::Overloaded, "busy"))).collect();
        assert_eq!(spread, BTreeSet::from([Some(1), Some(2), Some(3)]));
        assert_eq!(told(Problem::new(Kind::Overloaded, "busy").retry_after(Duration::from_secs(9))), Some(9));
        assert_eq!(told(Problem::new(Kind::NotFound, "absent")), None);
        let full = || Problem::new(Kind::StorageUnavailable, "full").retry_about(Duration::from_secs(10));
        let spread: BTreeSet<_> = (0..100).map(|_| told(full())).collect();
        assert!(spread.len() > 1 && spread.iter().all(|told| (Some(10)..=Some(14)).contains(told)), "{spread:?}");
    }

    #[tokio::test]
    async fn header_and_document_name_the_same_wait() {
        for _ in 0..3 {
            let response = Problem::new(Kind::Overloaded, "busy").into_response();
            let header: Value = response.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
            let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            let document: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(document["retry_after_seconds"], header);
        }
    }

    #[tokio::test]
    async fn a_retry_is_never_invited_at_once() {
        let response = Problem::new(Kind::Overloaded, "busy").retry_after(Duration::from_millis(5)).into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    }
}
