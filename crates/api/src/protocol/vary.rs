//! `Vary`: the request headers that a response depends on (RFC 9110, 12.5.5).

use axum::http::{HeaderMap, HeaderValue, header};

/// Adds the name of a request header to `Vary`.
pub fn on(headers: &mut HeaderMap, name: &'static str) {
    let value = match headers.get(header::VARY).and_then(|value| value.to_str().ok()) {
        Some(others) if others.split(',').any(|other| other.trim().eq_ignore_ascii_case(name)) => return,
        Some(others) => HeaderValue::from_str(&format!("{name}, {others}")),
        None => Ok(HeaderValue::from_static(name)),
    };
    // Both parts are valid header values, and so is their list.
    if let Ok(value) = value {
        headers.insert(header::VARY, value);
    }
}
