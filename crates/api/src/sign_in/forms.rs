//! The bodies that are sent to sign in and out: JSON, or a form.

use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::respond;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use meridian_model::Invalid;
use serde::de::DeserializeOwned;

/// Max bytes of a body.
pub const BODY_BYTES_MAX: usize = 16 << 10;
/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// Whether a request carries a form.
pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
}

/// The body of a form, which is written as a query string is.
pub fn pairs(bytes: &[u8]) -> Result<Params> {
    let wrong = || Problem::new(Kind::InvalidBody, "the form cannot be read");
    Params::parse(Some(std::str::from_utf8(bytes).map_err(|_| wrong())?)).map_err(|_| wrong())
}

/// A field of a form.
pub fn field(pairs: &mut Params, name: &'static str) -> Result<String> {
    pairs.take(name).ok_or_else(|| Problem::invalid_body(Invalid::field(name, "the form has no such field")))
}

/// A JSON body.
pub fn of_json<T: DeserializeOwned>(bytes: &[u8], expected: &str) -> Result<T> {
    // Without what is wrong in the text: it may be a password.
    let wrong =
        |_| Problem::new(Kind::InvalidBody, format!("the body cannot be read: expected an object such as {expected}"));
    serde_json::from_slice(bytes).map_err(wrong)
}

/// The page of a form again, which says what is wrong.
pub fn refused(problem: Problem, page: String) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    respond::set_plain_page(response.headers_mut());
    *response.body_mut() = page.into();
    response
}
