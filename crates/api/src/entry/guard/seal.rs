//! The security headers of every response.

use super::Guard;
use crate::protocol::web_origin::WebOrigin;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use std::fmt::Write;
use std::time::Duration;

/// Returns the directive that lists the origins whose pages may embed the server's pages.
pub(super) fn directive(origins: &[WebOrigin]) -> String {
    let mut text = String::from("frame-ancestors");
    if origins.is_empty() {
        text.push_str(" 'none'");
    }
    for origin in origins {
        let _ = write!(text, " {origin}");
    }
    text
}

/// Returns the header that makes browsers use only https for this time. `None` for zero, because the header would
/// affect all ports of the name.
pub(super) fn hsts(time: Duration) -> Option<HeaderValue> {
    let seconds = time.as_secs();
    (seconds > 0).then(|| HeaderValue::from_str(&format!("max-age={seconds}")).ok()).flatten()
}

impl Guard {
    /// Forbids browsers to guess another media type, and adds the origins that may embed a page to its policy. `secure`
    /// tells whether the client uses TLS; without TLS, clients ignore `Strict-Transport-Security` (RFC 6797, 7.2).
    pub fn seal(&self, response: &mut Response, secure: bool) {
        let headers = response.headers_mut();
        if let Some(hsts) = self.hsts.as_ref().filter(|_| secure) {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let Some(policy) = headers.get(header::CONTENT_SECURITY_POLICY).and_then(|policy| policy.to_str().ok()) else {
            return;
        };
        // Origins are validated when parsed, so the text is always a valid header value.
        if let Ok(policy) = HeaderValue::from_str(&format!("{policy}; {}", self.frame_ancestors)) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
}
