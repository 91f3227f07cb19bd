//! The caching headers of a response (RFC 9111): who may reuse it, and which request headers it depends on.

use axum::http::{HeaderMap, HeaderValue, header};

static BY_CALLER: HeaderValue = HeaderValue::from_static("Authorization, Cookie, Meridian-Tenant");
static BY_FORMAT_AND_CALLER: HeaderValue = HeaderValue::from_static("Accept, Authorization, Cookie, Meridian-Tenant");
static PRIVATE: HeaderValue = HeaderValue::from_static("private");
static PRIVATE_AND_CHECKED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Whether a request presents what may be a credential.
pub fn shows_credential(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key(header::COOKIE)
}

/// Marks a response, so that a shared cache never gives it to another caller. Static values only, as every response passes
/// here, including those of the near query. `negotiated`: whether the response depends on `Accept`.
pub fn mark(headers: &mut HeaderMap, shown: bool, negotiated: bool) {
    match headers.get(header::CACHE_CONTROL).map(HeaderValue::as_bytes) {
        // The handler decided that it is the same for everybody.
        Some(value) if value.starts_with(b"public") => return,
        // Revalidation alone would let a shared cache give it to everybody.
        Some(b"no-cache") if shown => _ = headers.insert(header::CACHE_CONTROL, PRIVATE_AND_CHECKED.clone()),
        None if shown => _ = headers.insert(header::CACHE_CONTROL, PRIVATE.clone()),
        _ => {}
    }
    // Also without a credential: an anonymous response must not be given to a caller who may read more.
    let vary = if negotiated { &BY_FORMAT_AND_CALLER } else { &BY_CALLER };
    headers.insert(header::VARY, vary.clone());
}
