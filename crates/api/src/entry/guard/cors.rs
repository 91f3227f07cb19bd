//! Responses to pages of the origins in the settings (CORS, Fetch Standard, section 3.2).
//!
//! Such a page presents a token of its own. `Access-Control-Allow-Credentials` is never sent, so a browser hides
//! responses that it fetched with its user's session (docs/decisions/065).

use super::Guard;
use crate::entry::Entry;
use crate::protocol::vary;
use axum::http::{HeaderMap, HeaderValue, header};

/// The request headers that a page may set, besides those that need no preflight.
static REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Crs, Content-Encoding, Content-Type, Idempotency-Key, If-Match, If-Modified-Since, \
     If-None-Match, If-Range, If-Unmodified-Since, Last-Event-ID, Meridian-After, Meridian-Tenant, Meridian-Timeout, \
     Prefer, Priority, Range, Traceparent, Tracestate, X-Request-Id",
);

/// The response headers that a page may read, besides those readable by every page.
static RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Accept-Ranges, Age, Allow, Content-Crs, Content-Range, ETag, Link, Location, Meridian-Consistency, \
     Meridian-Missing, Meridian-Position, Meridian-Snapshot, Meridian-Tile, Preference-Applied, RateLimit, \
     RateLimit-Policy, Retry-After, Server-Timing, Traceparent, WWW-Authenticate, X-Request-Id",
);

/// Seconds for which a browser need not repeat a preflight. Shorter than the browsers' own cap: an origin that an
/// operator removes should lose its access soon.
static MAX_AGE: HeaderValue = HeaderValue::from_static("600");

impl Entry {
    /// Lets a listed page read a refusal that is made before the request is handled. `asked` is what was read of the
    /// request's fields.
    pub fn share(&self, asked: &HeaderMap, response: &mut HeaderMap) {
        self.guard.share(response, self.guard.foreign_page(asked).cloned());
    }
}

impl Guard {
    /// Returns the `Origin` of the page that sent the request, if the settings list it.
    pub fn foreign_page<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        if self.origins.is_empty() {
            return None;
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (first, second) = (origins.next()?, origins.next());
        let is_listed = self.origins.iter().any(|ours| ours.is(first.as_bytes()));
        (second.is_none() && is_listed).then_some(first)
    }

    /// Returns the headers of a response to OPTIONS at a path with the methods `allow`. A listed page that asks for one
    /// of them is permitted to send it.
    pub fn options(&self, headers: &HeaderMap, allow: HeaderValue) -> HeaderMap {
        let mut response = HeaderMap::new();
        let asked = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD).filter(|_| self.foreign_page(headers).is_some());
        let is_allowed = |method: &HeaderValue| {
            allow.as_bytes().split(|byte| *byte == b',').any(|one| one.trim_ascii() == method.as_bytes())
        };
        if asked.is_some_and(is_allowed) {
            response.insert(header::ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
            response.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS.clone());
            response.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE.clone());
        }
        response.insert(header::ALLOW, allow);
        response
    }

    /// Lets a listed page read the response with these headers, even a refusal.
    pub fn share(&self, headers: &mut HeaderMap, page: Option<HeaderValue>) {
        if self.origins.is_empty() {
            return;
        }
        // Also set on a response without permission: a cache must not serve it to a page that has it.
        vary::on(headers, "Origin");
        if let Some(page) = page {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS.clone());
        }
    }
}
