//! What every answer tells the browser that shows it.

use super::{Doors, WebOrigin};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use std::fmt::Write;

/// The directive that says which origins' pages may embed ours.
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

impl Doors {
    /// Forbids browsers to guess another type than the one told; adds to a page's policy who may embed it.
    pub fn seal(&self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let Some(policy) = headers.get(header::CONTENT_SECURITY_POLICY).and_then(|policy| policy.to_str().ok()) else {
            return;
        };
        // Origins are checked where they are read, so that the text is always one that a header can have.
        if let Ok(policy) = HeaderValue::from_str(&format!("{policy}; {}", self.frame_ancestors)) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
}
