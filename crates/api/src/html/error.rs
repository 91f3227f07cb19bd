//! The page of a refusal or failure: the content of a problem document, for people.

use super::{Page, escape, facts, page};
use serde_json::Value;

/// Renders a problem document (RFC 9457) as a page; `id` is the request id, which also appears in the server's log.
pub fn of(problem: &Value, id: &str) -> Page {
    let text = |name: &str| problem[name].as_str().unwrap_or_default();
    let mut detail = text("detail").chars();
    let first = detail.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if detail.as_str().ends_with(['.', '?', '!']) { "" } else { "." };
    let mut body = format!(
        "<p class=\"status\">Error {}</p><p class=\"lead\" role=\"alert\">{}{}{end}</p>",
        problem["status"],
        escape(&first),
        escape(detail.as_str())
    );
    let mut rows = Vec::new();
    if problem["field"].is_string() {
        rows.push(("Field", format!("<code>{}</code>", escape(text("field")))));
    }
    if let Some(line) = problem["line"].as_u64() {
        rows.push(("Line", line.to_string()));
    }
    if let Some(seconds) = problem["retry_after_seconds"].as_u64() {
        rows.push(("Try again", format!("in {seconds} s")));
    }
    rows.push(("Request", format!("<code>{}</code>", escape(id))));
    body.push_str(&facts(&rows));
    body.push_str("<ul class=\"actions\"><li><a class=\"first\" href=\"/\">Start page</a></li><li><a href=\"/collections\">Collections</a></li><li><a href=\"/api\">API</a></li>");
    if problem["status"] == 401 {
        body.push_str("<li><a href=\"/login\">Sign in</a></li>");
    }
    body.push_str("</ul>");
    page(text("title"), &[], &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_says_what_the_document_says_as_text() {
        let problem =
            json!({"title": "Invalid parameter", "status": 400, "detail": "bbox: <b> is no number", "field": "bbox"});
        let page = of(&problem, "r1").plain();
        assert!(page.contains("<h1>Invalid parameter</h1>") && page.contains("Error 400"), "{page}");
        assert!(page.contains("Bbox: &lt;b&gt; is no number.") && page.contains("<code>bbox</code>"), "{page}");
        assert!(page.contains("<code>r1</code>") && !page.contains("<b>") && !page.contains("href=\"/login\""));
        let refused = of(&json!({"title": "Credential needed", "status": 401, "detail": "a"}), "r").plain();
        assert!(refused.contains("/login"));
    }
}
