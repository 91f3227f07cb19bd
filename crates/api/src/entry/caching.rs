//! The caching headers of a response (RFC 9111): who may reuse it, and which request headers it depends on.

use crate::fields;
use axum::http::{HeaderMap, HeaderValue, header};

/// The value of `Vary`, by whether the response depends on `Accept` too, and on `Accept-Encoding`.
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

/// Whether a request presents what may be a credential.
pub fn shows_credential(headers: &HeaderMap) -> bool {
    fields::has_any(headers, &[header::AUTHORIZATION, header::COOKIE])
}

/// Marks a response, so that a shared cache never gives it to another caller. Static values only, as every response passes
/// here, including those of the near query. `by_format`, `by_coding`: whether the response depends on `Accept`, and on
/// `Accept-Encoding`.
pub fn mark(headers: &mut HeaderMap, shown: bool, by_format: bool, by_coding: bool) {
    match headers.get(header::CACHE_CONTROL).map(HeaderValue::as_bytes) {
        // The handler decided that it is the same for everybody.
        Some(value) if value.starts_with(b"public") => {
            if by_coding {
                headers.insert(header::VARY, BY_CODING.clone());
            }
            return;
        }
        // Revalidation alone would let a shared cache give it to everybody.
        Some(b"no-cache") if shown => _ = headers.insert(header::CACHE_CONTROL, PRIVATE_AND_CHECKED.clone()),
        None if shown => _ = headers.insert(header::CACHE_CONTROL, PRIVATE.clone()),
        _ => {}
    }
    // Also without a credential: an anonymous response must not be given to a caller who may read more.
    let vary = &BY_CALLER[usize::from(by_format)][usize::from(by_coding)];
    headers.insert(header::VARY, vary.clone());
}
