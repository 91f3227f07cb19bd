//! Request bodies for signing in and out, as JSON or from a page's form, and the responses to them.

use super::{csrf, see_other};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Max bytes of a body.
const BODY_BYTES_MAX: usize = 16 << 10;
/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// A received body.
pub struct SubmittedForm {
    /// The JSON document, or a form's fields converted to one.
    document: Vec<u8>,
    is_form: bool,
    csrf_token: Option<String>,
}

impl SubmittedForm {
    /// Receives a body. The request accepts no parameters.
    pub async fn receive(state: &Scope, context: &Context, body: Body) -> Result<SubmittedForm> {
        Params::parse(context.query.as_deref())?.finish()?;
        let received = body::receive_up_to(state, &context.headers, body, BODY_BYTES_MAX).await?;
        let csrf_token = csrf::shown(&context.headers).map(str::to_owned);
        if !is_form(&context.headers) {
            return Ok(SubmittedForm { document: received.bytes.to_vec(), is_form: false, csrf_token });
        }
        let wrong = || Problem::new(Kind::InvalidBody, "the form cannot be read");
        // Forms are encoded like query strings.
        let text = std::str::from_utf8(&received.bytes).map_err(|_| wrong())?;
        let mut fields = Params::parse(Some(text)).map_err(|_| wrong())?;
        let csrf_token = fields.take("csrf_token").or(csrf_token);
        let fields: Map<String, Value> = fields.rest().into_iter().map(|(name, text)| (name, text.into())).collect();
        let document = serde_json::to_vec(&fields).map_err(Problem::internal)?;
        Ok(SubmittedForm { document, is_form: true, csrf_token })
    }

    /// Parses the document.
    pub fn read<T: DeserializeOwned>(&self, expected: &str) -> Result<T> {
        // Without the invalid text, which may be a password.
        let detail =
            || format!("the body cannot be read: expected an object such as {expected}, or a form with its members");
        serde_json::from_slice(&self.document).map_err(|_| Problem::new(Kind::InvalidBody, detail()))
    }

    /// Checks that the body comes from a page of this server, which knows the session's token.
    ///
    /// # Errors
    /// 403
    pub fn check_csrf(&self, session: &str) -> Result<()> {
        csrf::check(session, self.csrf_token.as_deref())
    }

    /// Returns the response after success: a form is redirected to a path.
    pub fn done(&self, path: &str, other: impl FnOnce() -> Result<Response>) -> Result<Response> {
        if self.is_form { Ok(see_other(path)) } else { other() }
    }

    /// Returns the response after a failure: a form is shown again, on a page with the error.
    pub fn refused(&self, problem: Problem, page: impl FnOnce(&str) -> String) -> Result<Response> {
        if self.is_form { Ok(explained(problem, page)) } else { Err(problem) }
    }
}

/// Returns a problem as a page that explains it.
pub fn explained(problem: Problem, page: impl FnOnce(&str) -> String) -> Response {
    let page = page(problem.detail());
    let mut response = problem.into_response();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    respond::set_document(response.headers_mut());
    *response.body_mut() = page.into();
    response
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
}
