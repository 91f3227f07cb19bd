//! A call, and the requests derived from it.

use super::meter::Meter;
use super::status;
use crate::entry::Entry;
use crate::protocol::problem::{Kind, Problem};
use crate::request::ask::FlightOperation;
use crate::request::dispatch::Connection;
use crate::state::AppState;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use axum::response::Response;
use meridian_admission::identity::Caller;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::{Duration, Instant};
use tonic::Status;

/// Headers copied from a call to its requests. All others belong to gRPC or to browsers.
static PASSED: [HeaderName; 18] = [
    header::AUTHORIZATION,
    header::FORWARDED,
    header::HOST,
    header::ORIGIN,
    header::USER_AGENT,
    header::VIA,
    HeaderName::from_static("meridian-after"),
    HeaderName::from_static("meridian-tenant"),
    HeaderName::from_static("prefer"),
    HeaderName::from_static("priority"),
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-request-id"),
];
static GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
static TIMEOUT: HeaderName = HeaderName::from_static("meridian-timeout");

/// What is known about a call before its messages, as an extension of its request.
#[derive(Clone)]
pub struct CallContext {
    /// The connection that it arrived on.
    pub connection: Connection,
    /// Its caller.
    pub caller: Caller,
    /// Accounts for the memory of its messages.
    pub meter: Meter,
    /// Set once a request of it was sent.
    pub asked: Arc<AtomicBool>,
}

/// A call in progress.
#[derive(Clone)]
pub struct Call {
    /// The connection and the caller.
    pub arrived: CallContext,
    headers: HeaderMap,
    /// Its idempotency keys; its requests have keys derived from them.
    keys: Vec<HeaderValue>,
    /// When its client stops waiting, if known.
    deadline: Option<Instant>,
}

impl Call {
    /// Extracts the call from a request.
    ///
    /// # Errors
    /// A fault of the server.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Call, Status> {
        let arrived = request.extensions().get::<CallContext>().cloned();
        let arrived = arrived.ok_or_else(|| status::internal("a call that did not pass the entry point"))?;
        let all = request.metadata().clone().into_headers();
        let mut headers = HeaderMap::new();
        for name in &PASSED {
            for value in all.get_all(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        // If a client states both times, the shorter one is meant for this server.
        let of_grpc = all.get(&GRPC_TIMEOUT).and_then(grpc_timeout);
        let own = all.get(&TIMEOUT).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_millis);
        let timeout = [of_grpc, own].into_iter().flatten().min();
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let keys = all.get_all("idempotency-key").iter().cloned().collect();
        Ok(Call { arrived, headers, keys, deadline })
    }

    /// Returns the header with the credential.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.headers.get(header::AUTHORIZATION)
    }

    /// Returns the idempotency key in its metadata.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is more than one, or one that is not text.
    pub fn key(&self) -> Result<Option<String>, Status> {
        let wrong = || status::of_problem(&Problem::parameter("idempotency-key", "expected one, of printable ASCII"));
        let mut values = self.keys.iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(key), None) => key.to_str().map(|key| Some(key.to_owned())).map_err(|_| wrong()),
            (Some(_), Some(_)) => Err(wrong()),
        }
    }

    /// Sends a request to a route of the route table.
    ///
    /// # Errors
    /// The problem of the response, as a status.
    pub async fn ask(&self, entry: &Entry, target: &str, ask: FlightOperation) -> Result<Response, Status> {
        let mut request = self.request(Method::GET, target, Body::empty())?;
        request.extensions_mut().insert(ask);
        self.send(entry, request).await
    }

    /// Builds a request of this call.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the target is too long.
    pub fn request(&self, method: Method, target: &str, body: Body) -> Result<Request<Body>, Status> {
        let uri: Uri = target.parse().map_err(|_| {
            status::of_problem(&Problem::new(Kind::TargetTooLong, "the question is too long: shorten its filter"))
        })?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        if let Some(deadline) = self.deadline {
            // At least a millisecond: the request itself must detect that its time is over.
            let left = deadline.saturating_duration_since(Instant::now()).as_millis().max(1);
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            request.headers_mut().insert(TIMEOUT.clone(), left.into());
        }
        Ok(request)
    }

    /// Sends a request through the entry point.
    ///
    /// # Errors
    /// The problem of the response, as a status.
    pub async fn send(&self, entry: &Entry, request: Request<Body>) -> Result<Response, Status> {
        self.arrived.asked.store(true, Ordering::Relaxed);
        // Boxed, because the future of a request is large.
        let response = Box::pin(entry.answer(self.arrived.connection, request)).await;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(status::of_response(response).await),
        }
    }

    /// Returns the budget for response messages, as seen by the tenant.
    pub fn answers(&self, state: &AppState) -> meridian_admission::ByteBudget {
        state.answers.of(&self.arrived.caller.tenant)
    }
}

/// Parses `grpc-timeout`: at most eight digits and a unit. A malformed one counts as none.
fn grpc_timeout(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.len() > 8 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_grpc_are_read() {
        let of = |text: &'static str| grpc_timeout(&HeaderValue::from_static(text));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(of("7n"), Some(Duration::from_nanos(7)));
        for wrong in ["", "m", "1", "-1m", "+1m", "1x", "123456789m", "1 m"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
