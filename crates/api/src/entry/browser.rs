//! Browsers that open a page: how they are recognized, and the pages that they get instead of problem documents.

use crate::html;
use crate::protocol::fields;
use crate::protocol::params::format::{self, Format, PAGES};
use crate::protocol::problem::PROBLEM_JSON;
use crate::response::respond;
use crate::response::whole::MemoryMark;
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::Response;
use memchr::memmem;
use meridian_admission::identity::Caller;
use serde_json::Value;

/// How a browser uses the requested resource.
pub static FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Max bytes of a problem document that is turned into a page; for a longer one the page omits the detail.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Returns whether a browser opens a page, by its address, a link or a form, as opposed to a script of a page.
pub fn opens_page(method: &Method, headers: &HeaderMap) -> bool {
    // Checked first, since programs do not list this type.
    let takes_pages = fields::first(headers, &header::ACCEPT)
        .is_some_and(|accept| memmem::find(accept.as_bytes(), b"text/html").is_some());
    if !takes_pages {
        return false;
    }
    let mode = headers.get(&FETCH_MODE);
    // Older browsers do not send the header; a program that claims to accept pages is then believed.
    let navigates = match mode {
        Some(mode) => mode == "navigate",
        None => matches!(*method, Method::GET | Method::HEAD),
    };
    navigates && !headers.contains_key(header::UPGRADE)
}

/// Returns whether a problem is to be shown as a page: to a browser that opens one, unless its address requests another
/// format.
pub fn reads_problems_as_pages(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    if !opens_page(method, headers) {
        return false;
    }
    let mut parameters = uri.query().unwrap_or_default().split('&');
    match parameters.find_map(|parameter| parameter.strip_prefix("f=")) {
        Some(format) => format == Format::Html.word(),
        None => matches!(format::choose(None, headers, PAGES), Ok(Format::Html)),
    }
}

/// Turns a problem document into a page with the same status and headers, as seen by the caller if it is known; leaves
/// other responses unchanged.
pub async fn shown(mut response: Response, id: &str, state: &AppState, caller: Option<Caller>) -> Response {
    if response.status() < StatusCode::BAD_REQUEST
        || response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind != PROBLEM_JSON)
    {
        return response;
    }
    let body = std::mem::take(response.body_mut());
    let bytes = axum::body::to_bytes(body, DOCUMENT_BYTES_MAX).await.unwrap_or_default();
    let problem = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let caller = caller.as_ref().unwrap_or(&state.callers.nobody);
    *response.body_mut() = respond::shown_to(state, caller, html::error::of(&problem, id)).into();
    // What was charged is dropped.
    response.extensions_mut().remove::<MemoryMark>();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    respond::set_document(headers);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    #[test]
    fn only_a_browser_that_opens_a_page_gets_one() {
        let of = |method: Method, uri: &'static str, accept: &'static str, mode: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            if !mode.is_empty() {
                headers.insert(&FETCH_MODE, HeaderValue::from_static(mode));
            }
            reads_problems_as_pages(&method, &Uri::from_static(uri), &headers)
        };
        assert!(of(Method::GET, "/x", BROWSER, "navigate") && of(Method::HEAD, "/x?f=html", BROWSER, ""));
        assert!(of(Method::POST, "/login", BROWSER, "navigate"), "a form");
        assert!(!of(Method::POST, "/login", BROWSER, ""));
        assert!(!of(Method::GET, "/x?a=1&f=json", BROWSER, "navigate"), "the address asks for JSON");
        assert!(!of(Method::GET, "/x", BROWSER, "cors"), "a script");
        assert!(!of(Method::GET, "/x", "*/*", "navigate") && !of(Method::GET, "/x", "application/json", ""));
        assert!(!of(Method::GET, "/x", "application/json, text/html;q=0.1", ""));
    }
}
