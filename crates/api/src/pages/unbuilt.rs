//! The style of the pages in a program without the output of `web/`: the same sources, without the fonts that they
//! name.

use crate::protocol::problem::{Problem, Result};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

const STYLE: &str =
    concat!(include_str!("../../../../web/src/theme.css"), include_str!("../../../../web/src/document.css"));

/// Returns a file of `/assets/`.
///
/// # Errors
/// 404
pub fn asset(file: &str) -> Result<Response> {
    let (kind, text) = match file {
        "pages.css" => ("text/css; charset=utf-8", STYLE),
        // The pages work without it.
        "pages.js" => ("text/javascript; charset=utf-8", ""),
        _ => return Err(Problem::not_found(format!("there is no file {:?}", format!("assets/{file}")))),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((headers, text).into_response())
}
