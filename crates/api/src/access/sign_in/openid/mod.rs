//! Signing in at an issuer: OpenID Connect Core 1.0, by the authorization code flow with PKCE (RFC 6749, RFC 7636).
//!
//! `GET /login/{issuer}` leads the browser to the issuer. The issuer leads it back to `GET /login/{issuer}/callback`
//! with a code, which `exchange.rs` exchanges for an ID token. The rules for the issuer's tokens determine the rights
//! granted by its claims, and the session is like any other. The browser keeps the state of an attempt in a cookie.

mod exchange;

use super::{CHALLENGE, acts, cookie, forms, next, see_other, take_over, unstored, ways};
use crate::access;
use crate::html;
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::{Dispatch, Path};
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::change_queues::Origin;
use axum::Extension;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use meridian_admission::identity::jwt::{Endpoints, Issuer, SignInSettings};
use meridian_admission::identity::{Session, SignInAttempt, Unknown, equal};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// Max bytes of the path to continue at: it is encoded in a cookie, and browsers store cookies of about 4,000 bytes.
const NEXT_BYTES_MAX: usize = 1_000;

/// `GET /login/{issuer}`
pub async fn begin(
    state: Scope,
    Extension(dispatch): Extension<Dispatch>,
    Path(name): Path<String>,
    context: Context,
) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let next = next::local(params.take("next").as_deref());
    params.finish()?;
    let (issuer, sign_in) = named(&state, &name)?;
    let endpoints = match endpoints(issuer, sign_in) {
        Ok(endpoints) => endpoints,
        Err(problem) => return Ok(unstored(page(&state, &next, problem))),
    };
    let attempt = SignInAttempt::new(state.now()).map_err(Problem::internal)?;
    let url = exchange::authorization_url(issuer, sign_in, &endpoints, &attempt, redirect(&context, &name))?;
    let mut response = see_other(&url);
    let next = if next.len() <= NEXT_BYTES_MAX { &*next } else { "/" };
    let kept = format!("{}.{}", attempt.text(), crate::contract::links::escape(next));
    let set = cookie::ATTEMPT.set(dispatch.arrival.secure, &kept);
    respond::insert(response.headers_mut(), header::SET_COOKIE, &set);
    Ok(unstored(response))
}

/// `GET /login/{issuer}/callback`
pub async fn callback(
    method: Method,
    state: Scope,
    Extension(dispatch): Extension<Dispatch>,
    Path(name): Path<String>,
    context: Context,
) -> Result<Response> {
    let at = named(&state, &name)?;
    if method != Method::GET {
        // This GET has an effect, and only once. Programs that check links with HEAD must not use up the attempt.
        let detail = "HEAD does not sign in: expected GET";
        return Err(Problem::new(Kind::MethodNotAllowed, detail).header(header::ALLOW, HeaderValue::from_static("GET")));
    }
    let secure = dispatch.arrival.secure;
    let kept = cookie::ATTEMPT.read(secure, &context.headers).and_then(|kept| kept.split_once('.'));
    let next = kept.and_then(|(_, next)| percent_decode_str(next).decode_utf8().ok());
    // Checked again: over plain HTTP another host may have planted the cookie.
    let next = next::local(next.as_deref());
    let attempt = kept.and_then(|(attempt, _)| SignInAttempt::read(attempt, state.now()));
    let done = match finish(&state, &dispatch, &context, at, attempt).await {
        Ok((session, text)) => take_over(&state, &dispatch, &context.headers, (&session, &text)).await.map(|()| text),
        Err(problem) => {
            acts::refused(&state, &dispatch, acts::SIGN_IN, None, &problem);
            Err(problem)
        }
    };
    // An attempt ends with its first callback, whatever the outcome.
    let mut cookies = vec![cookie::ATTEMPT.unset(secure)];
    let mut response = match done {
        Ok(text) => {
            cookies.push(cookie::SESSION.set(secure, &text));
            see_other(&next)
        }
        Err(problem) => page(&state, &next, problem),
    };
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(unstored(response))
}

/// Exchanges the code, and starts a session for the user named by the ID token.
async fn finish(
    state: &Scope,
    dispatch: &Dispatch,
    context: &Context,
    (issuer, sign_in): (&Issuer, &SignInSettings),
    attempt: Option<SignInAttempt>,
) -> Result<(Arc<Session>, String)> {
    let (settings, client) = (issuer.settings(), dispatch.arrival.client);
    let attempt = attempt.ok_or_else(|| refused("this browser began no sign-in, or too long ago: sign in again"))?;
    let endpoints = endpoints(issuer, sign_in)?;
    let code = code(context, (issuer, sign_in), &endpoints, &attempt)?;
    // From here on, each attempt makes the server call the issuer. Failed attempts are slowed down like wrong
    // passwords.
    state.throttle.check(client, state.now()).map_err(|wait| super::too_many(state, wait))?;
    let back = redirect(context, &settings.name);
    let token = exchange::id_token(state, (issuer, sign_in), &endpoints, &attempt, (code, back)).await;
    let begun = match token {
        Ok(token) => begin_session(state, (issuer, sign_in), token, &attempt).await,
        Err(problem) => Err(problem),
    };
    let (session, text) = begun.inspect_err(|problem| {
        // Other problems are inconclusive: the issuer does not respond, or the session cannot be stored.
        if problem.kind() == Kind::Unauthorized {
            state.throttle.fail(client, state.now());
        }
    })?;
    tracing::info!(user = session.user(), client = client.map(tracing::field::display), "signed in");
    Ok((session, text))
}

/// Starts a session for the user named by an ID token.
async fn begin_session(
    state: &Scope,
    (issuer, sign_in): (&Issuer, &SignInSettings),
    token: String,
    attempt: &SignInAttempt,
) -> Result<(Arc<Session>, String)> {
    let (settings, title) = (issuer.settings(), &sign_in.title);
    let (registry, limits, now) = (state.registry.clone(), state.config.session, state.now());
    let (name, nonce) = (settings.name.clone(), attempt.nonce());
    let begin = move || registry.begin_session_at(&name, &token, &nonce, &limits, now);
    // In turn, since it waits for other changes of the registry.
    let begun = access::in_turn(state, Origin::SignIn, begin).await?;
    begun.map_err(errors::access_problem)?.map_err(|why| {
        tracing::warn!(issuer = &*settings.name, ?why, "an ID token is refused");
        refused(match why {
            Unknown::NoRule => format!("{title} signed you in, but your account has no access here"),
            Unknown::Suspended => "your tenant is suspended, or does not exist".to_owned(),
            _ => format!("the answer of {title} cannot be trusted: sign in again"),
        })
    })
}

/// Returns the code in an issuer's response, if the response belongs to this attempt.
fn code(
    context: &Context,
    (issuer, sign_in): (&Issuer, &SignInSettings),
    endpoints: &Endpoints,
    attempt: &SignInAttempt,
) -> Result<String> {
    let (settings, title) = (issuer.settings(), &sign_in.title);
    // Issuers add parameters of their own, which are ignored.
    let mut params = Params::parse(context.query.as_deref())?;
    let [code, given, from, error] = ["code", "state", "iss", "error"].map(|name| params.take(name));
    if !given.is_some_and(|given| equal(&given, &attempt.state(&settings.name))) {
        return Err(refused("this does not belong to the last sign-in that this browser began: sign in again"));
    }
    // RFC 9207: an issuer that identifies itself must be the one that was asked.
    if from.as_ref().map_or(endpoints.names_itself, |from| *from != settings.issuer) {
        return Err(refused(format!("another issuer than {title} answered: sign in again")));
    }
    match (error, code) {
        (None, Some(code)) => Ok(code),
        (error, _) => {
            // Error codes are short words (RFC 6749, 4.1.2.1); any other text could be an attacker's message.
            let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
            let error = error.filter(|error| error.len() <= 40 && error.chars().all(is_word));
            tracing::warn!(issuer = &*settings.name, error, "an issuer did not sign a user in");
            let why = error.map(|error| format!(" ({error})")).unwrap_or_default();
            Err(refused(format!("{title} did not sign you in{why}: sign in again")))
        }
    }
}

/// Returns the issuer of this name, if users sign in there.
fn named<'s>(state: &'s Scope, name: &str) -> Result<(&'s Issuer, &'s SignInSettings)> {
    let mut issuers = state.registry.issuers().with_sign_in();
    let found = issuers.find(|(issuer, _)| issuer.settings().name == name);
    found.ok_or_else(|| Problem::not_found(format!("there is no issuer {name:?} to sign in at: see /login")))
}

fn endpoints(issuer: &Issuer, sign_in: &SignInSettings) -> Result<Arc<Endpoints>> {
    issuer.endpoints().ok_or_else(|| {
        issuer.want_keys();
        unavailable(sign_in)
    })
}

/// Returns the URL to which the issuer leads the browser back.
fn redirect(context: &Context, issuer: &str) -> String {
    context.url(&format!("/login/{}/callback", crate::contract::links::escape(issuer)))
}

/// Returns the sign-in page with the error.
fn page(state: &Scope, next: &str, problem: Problem) -> Response {
    forms::explained(problem, |wrong| respond::shown(state, html::login::form(&ways(state), next, "", Some(wrong))))
}

fn refused(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::Unauthorized, detail.into()).header(header::WWW_AUTHENTICATE, CHALLENGE.clone())
}

fn unavailable(sign_in: &SignInSettings) -> Problem {
    Problem::new(Kind::IssuerUnavailable, format!("{} does not answer: try again later", sign_in.title))
}
