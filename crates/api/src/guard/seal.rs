//! The security headers that every response gets.

use super::{Guard, WebOrigin};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use std::fmt::Write;

/// The directive with the origins whose pages may embed the server's pages.
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

impl Guard {
    /// Forbids browsers to guess another media type; adds to a page's policy which origins may embed it.
    pub fn seal(&self, response: &mut Response) {
        let headers = response.headers_mut();
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
