//! Request bodies for signing in and out, as JSON or from a page's form, and the responses to them.

use super::{csrf, see_other};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::whole::Refusal;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use meridian_admission::ByteShare;
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
    /// The memory of the document and of what is read from it, while the request waits for its turns.
    _held: ByteShare,
}

impl SubmittedForm {
    /// Receives a body. The request accepts no parameters.
    pub async fn receive(state: &Scope, context: &Context, body: Body) -> Result<SubmittedForm> {
        Params::parse(context.query.as_deref())?.finish()?;
        SubmittedForm::take(state, &context.headers, body).await
    }

    async fn take(state: &Scope, headers: &HeaderMap, body: Body) -> Result<SubmittedForm> {
        let received = body::receive_up_to(state, headers, body, BODY_BYTES_MAX).await?;
        let csrf_token = csrf::shown(headers).map(str::to_owned);
        let is_form = is_form(headers);
        let (document, sent) = if is_form { split(&received.bytes)? } else { (received.bytes.to_vec(), None) };
        // Twice: the members are read from the document and kept beside it.
        let held = received.into_share(state, 2 * document.capacity())?;
        Ok(SubmittedForm { document, is_form, csrf_token: sent.or(csrf_token), _held: held })
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

/// Returns a problem as a page that explains it. It is shown even while memory is short: an attempt was made, which a
/// reload cannot repeat.
pub fn explained(problem: Problem, page: impl FnOnce(&str) -> String) -> Response {
    let page = page(problem.detail());
    let mut response = problem.into_response();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    respond::set_document(response.headers_mut());
    *response.body_mut() = page.into();
    response.extensions_mut().insert(Refusal::Excluded);
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
    use crate::config::ServerConfig;
    use crate::contract::bodies::PasswordChange;
    use crate::contract::members;
    use crate::response::whole;
    use crate::state::AppState;
    use axum::http::{HeaderValue, StatusCode, Version};
    use meridian_admission::identity::Identity;
    use meridian_backend::{Embedded, Seams};
    use meridian_model::policy::access::{Grant, Role};
    use meridian_store::{Options, Store};
    use std::sync::Arc;

    /// Encodes a form with these fields, and splits it.
    fn split_form(names: impl IntoIterator<Item = String>) -> (Vec<u8>, Option<String>) {
        let fields: Vec<String> = names.into_iter().map(|name| format!("{name}=of+{name}")).collect();
        split(fields.join("&").as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn a_sign_in_holds_memory_until_it_ends() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let config = ServerConfig { body_bytes_total: 256 << 10, ..ServerConfig::default() };
        let state = AppState::new(Embedded::new(store), &seams, config).unwrap();
        let caller = Identity::new("default", Grant::over_all(Role::Reader), "me");
        let scope = Scope::new(state.clone(), Arc::new(caller));
        let kind = |kind| HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        // A byte of a form may take six of its document.
        for (kind, text, held_min) in [
            (kind("application/json"), format!("{{\"next\":\"/{}\"}}", "x".repeat(10_000)), 10_000),
            (kind(FORM), format!("next=/{}", "\u{1}".repeat(4_000)), 24_000),
        ] {
            let sent = SubmittedForm::take(&scope, &kind, Body::from(text.clone())).await.unwrap();
            assert!(state.bodies.held() >= held_min, "{} for {}", state.bodies.held(), text.len());
            // Another one of many finds no room while they wait.
            let mut waiting = vec![sent];
            let refused = loop {
                assert!(waiting.len() < 40, "they do not count");
                match SubmittedForm::take(&scope, &kind, Body::from(text.clone())).await {
                    Ok(sent) => waiting.push(sent),
                    Err(problem) => break problem,
                }
            };
            assert_eq!(refused.kind(), Kind::Overloaded);
            assert!(state.bodies.held() <= 256 << 10);
            drop(waiting);
            assert_eq!(state.bodies.held(), 0);
        }
    }

    #[tokio::test]
    async fn a_failed_sign_in_is_explained_even_while_memory_is_short() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let answers = state.answers.of(&"default".into());
        let _all = answers.try_take(answers.limit()).unwrap();
        let sent =
            |response| whole::charged(response, Version::HTTP_2, whole::Refusal::Allowed, || answers.clone(), &state);
        let page = |wrong: &str| format!("<p>{wrong}</p>{}", "x".repeat(3_000));
        let of_any_page = sent(respond::html(page("")));
        assert_eq!(of_any_page.status(), StatusCode::SERVICE_UNAVAILABLE);
        let refused = sent(explained(Problem::new(Kind::Unauthorized, "another issuer answered"), page));
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        let body = axum::body::to_bytes(refused.into_body(), 8_000).await.unwrap();
        assert!(body.starts_with(b"<p>another issuer answered</p>"));
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
