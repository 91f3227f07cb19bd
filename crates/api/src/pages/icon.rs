//! The icon of the pages, in every build: also of pages that the server renders without the output of `web/`.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

const ICON: &str = include_str!("../../../../web/src/favicon.svg");

/// `GET /favicon.svg`, which the pages name, and `GET /favicon.ico`, which browsers request beside documents that name
/// no icon, such as JSON.
pub async fn get() -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400")),
    ];
    (headers, ICON).into_response()
}
