//! Refuses a request without a valid credential: a browser gets the sign-in page, a page's script or a program gets
//! 401.

use super::browser;
use crate::protocol::problem::{Kind, Problem};
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

static CSRF_TOKEN: HeaderName = HeaderName::from_static("x-csrf-token");
/// Characters that need no encoding in the value of a parameter.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns the response to a request that ends with a problem.
pub fn respond(problem: Problem, state: &AppState, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    // Without users and issuers there is no way to sign in; the challenge then makes a browser ask for a token.
    if problem.kind() != Kind::Unauthorized || !state.registry.signs_in() {
        return problem.into_response();
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if reads && browser::opens_page(method, headers) && !headers.contains_key(header::AUTHORIZATION) {
        let asked = uri.path_and_query().map_or("/", |asked| asked.as_str());
        let page = format!("/login?next={}", utf8_percent_encode(asked, PLAIN));
        let mut response = StatusCode::SEE_OTHER.into_response();
        crate::response::respond::insert(response.headers_mut(), header::LOCATION, &page);
        // After sign-in the same URL shows a page, so no cache may keep the redirect.
        crate::response::respond::insert(response.headers_mut(), header::CACHE_CONTROL, "no-store");
        return response;
    }
    let by_script = headers.contains_key(&browser::FETCH_MODE) || headers.contains_key(&CSRF_TOKEN);
    let mut response = problem.into_response();
    if by_script {
        // For `Basic` a browser would open a password dialogue over the page, whose script handles the 401.
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"meridian\""));
    }
    response
}
