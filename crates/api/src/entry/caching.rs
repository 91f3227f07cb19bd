//! Caching headers of responses (RFC 9111): who may reuse a response, and which request headers it depends on.

use crate::protocol::fields;
use axum::http::{HeaderMap, HeaderValue, header};

/// Values of `Vary`, indexed by whether the response also depends on `Accept`, and on `Accept-Encoding`.
static BY_CALLER: [[HeaderValue; 2]; 2] = [
    [
        HeaderValue::from_static("Authorization, Cookie, Meridian-Tenant"),
        HeaderValue::from_static("Accept-Encoding, Authorization, Cookie, Meridian-Tenant"),
    ],
    [
        HeaderValue::from_static("Accept, Authorization, Cookie, Meridian-Tenant"),
        HeaderValue::from_static("Accept, Accept-Encoding, Authorization, Cookie, Meridian-Tenant"),
    ],
];
static BY_CODING: HeaderValue = HeaderValue::from_static("Accept-Encoding");
static PRIVATE: HeaderValue = HeaderValue::from_static("private");
static PRIVATE_AND_CHECKED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Returns whether a request presents a possible credential.
pub fn shows_credential(headers: &HeaderMap) -> bool {
    fields::has_any(headers, &[header::AUTHORIZATION, header::COOKIE])
}

/// Marks a response so that a shared cache never serves it to another caller. Uses static values only, since every
/// response passes here, including those of the near query. `by_format` and `by_coding` state whether the response
/// depends on `Accept` and on `Accept-Encoding`.
pub fn mark(headers: &mut HeaderMap, shown: bool, by_format: bool, by_coding: bool) {
    match headers.get(header::CACHE_CONTROL).map(HeaderValue::as_bytes) {
        // The handler decided that it is the same for all callers.
        Some(value) if value.starts_with(b"public") => {
            if by_coding {
                headers.insert(header::VARY, BY_CODING.clone());
            }
            return;
        }
        // Revalidation alone would let a shared cache serve it to anyone.
        Some(b"no-cache") if shown => _ = headers.insert(header::CACHE_CONTROL, PRIVATE_AND_CHECKED.clone()),
        None if shown => _ = headers.insert(header::CACHE_CONTROL, PRIVATE.clone()),
        _ => {}
    }
    // Also without a credential: an anonymous response must not be served to a caller who may read more.
    let vary = &BY_CALLER[usize::from(by_format)][usize::from(by_coding)];
    headers.insert(header::VARY, vary.clone());
}
