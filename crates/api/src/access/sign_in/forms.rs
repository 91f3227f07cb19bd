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
        let (document, sent) = split(&received.bytes)?;
        Ok(SubmittedForm { document, is_form: true, csrf_token: sent.or(csrf_token) })
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

/// Splits a form into the JSON document of its fields, and its CSRF token.
fn split(form: &[u8]) -> Result<(Vec<u8>, Option<String>)> {
    let wrong = || Problem::new(Kind::InvalidBody, "the form cannot be read");
    // Forms are encoded like query strings.
    let text = std::str::from_utf8(form).map_err(|_| wrong())?;
    let mut fields = Params::parse(Some(text)).map_err(|_| wrong())?;
    let csrf_token = fields.take("csrf_token");
    let fields: Map<String, Value> = fields.rest().into_iter().map(|(name, text)| (name, text.into())).collect();
    Ok((serde_json::to_vec(&fields).map_err(Problem::internal)?, csrf_token))
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::bodies::PasswordChange;
    use crate::contract::members;

    /// Encodes a form with these fields, and splits it.
    fn split_form(names: impl IntoIterator<Item = String>) -> (Vec<u8>, Option<String>) {
        let fields: Vec<String> = names.into_iter().map(|name| format!("{name}=of+{name}")).collect();
        split(fields.join("&").as_bytes()).unwrap()
    }

    #[test]
    fn the_described_members_of_a_form_are_taken() {
        let (document, token) = split_form(members("PasswordChange"));
        let asked: PasswordChange = serde_json::from_slice(&document).unwrap();
        assert_eq!((asked.password.as_str(), asked.new.as_str()), ("of password", "of new"));
        assert_eq!(token.as_deref(), Some("of csrf_token"));
        let (rest, token) = split_form(members("SignOut"));
        assert_eq!((rest.as_slice(), token.as_deref()), (&b"{}"[..], Some("of csrf_token")));
    }

    #[test]
    fn another_member_of_a_form_is_refused() {
        let (document, _) = split_form(["password", "new", "old"].map(str::to_owned));
        assert!(serde_json::from_slice::<PasswordChange>(&document).is_err());
    }
}
