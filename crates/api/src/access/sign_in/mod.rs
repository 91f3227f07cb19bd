//! Signing in, sessions, and signing out.
//!
//! `GET /login` is a page with a plain form, and `POST /login` starts a session. `GET /session` returns its user, `POST
//! /logout` ends it, and `POST /password` changes its user's password (`change.rs`). Users of an issuer sign in there
//! (`openid/`). The session's secret is in a cookie (`cookie.rs`). A request with that cookie that may change something
//! also requires the session's CSRF token (`csrf.rs`).

mod acts;
mod change;
pub mod cookie;
pub mod csrf;
mod forms;
pub mod next;
#[cfg(feature = "openid")]
pub mod openid;
#[cfg(any(test, not(feature = "openid")))]
pub mod openid_absent;

#[cfg(not(feature = "openid"))]
pub use openid_absent as openid;

pub use change::change;

use crate::access;
use crate::contract::Session as SessionInfo;
use crate::contract::bodies::SignIn;
use crate::html;
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Dispatch;
use crate::request::errors;
use crate::request::overload;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::AppState;
use crate::state::change_queues::Origin;
use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forms::SubmittedForm;
use meridian_admission::identity::{Login, Password, PasswordDigest, Session};
use meridian_model::time;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// The challenge after a wrong password. Without `Basic`, for which browsers would open a dialogue.
static CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"meridian\"");
const WRONG: &str = "the name or the password is wrong";

const EXPECTED: &str = "{\"name\":\"anna\",\"password\":\"…\"}";

/// How often sessions are tended.
const INTERVAL: Duration = Duration::from_secs(60);

/// Removes expired sessions, and records when the others were last used. Runs until dropped.
pub async fn tend(state: AppState) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (registry, limits, now) = (state.registry.clone(), state.config.session, state.now());
        // On a blocking thread, since it syncs files.
        let tended = tokio::task::spawn_blocking(move || registry.tend_sessions(&limits, now)).await;
        if let Ok(Err(e)) = tended {
            tracing::warn!(error = %e, "sessions could not be recorded");
        }
    }
}

/// `GET /login`
pub async fn page(state: Scope, Extension(dispatch): Extension<Dispatch>, context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let next = next::local(params.take("next").as_deref());
    params.finish()?;
    let signed_in = current(&state, &dispatch, &context.headers);
    let page = match &signed_in {
        Some((session, text)) => {
            let (user, token) = (session.user(), csrf::token(text));
            match session.login() {
                Some(_) => html::login::signed_in(user, &token, &next, None),
                None => html::login::signed_in_elsewhere(user, &token, &next),
            }
        }
        None => html::login::form(&ways(&state), &next, "", None),
    };
    let mut response = unstored(respond::page(&state, page));
    if signed_in.is_none() && cookie::SESSION.read(dispatch.arrival.secure, &context.headers).is_some() {
        // The cookie belongs to a session that has ended, so its requests were refused. Without it, the browser can
        // read what is open to everyone.
        respond::insert(response.headers_mut(), header::SET_COOKIE, &cookie::SESSION.unset(dispatch.arrival.secure));
    }
    Ok(response)
}

/// Returns the available ways to sign in.
fn ways(state: &AppState) -> html::login::SignInOptions {
    let issuers = state.registry.issuers().with_sign_in();
    let issuers = issuers.map(|(issuer, sign_in)| (issuer.settings().name.clone(), sign_in.title.clone())).collect();
    html::login::SignInOptions { passwords: state.registry.has_users(), issuers }
}

/// `POST /login`
pub async fn post(
    state: Scope,
    Extension(dispatch): Extension<Dispatch>,
    context: Context,
    body: Body,
) -> Result<Response> {
    let sent = SubmittedForm::receive(&state, &context, body).await?;
    let asked: SignIn = sent.read(EXPECTED)?;
    let next = next::local(asked.next.as_deref());
    let (session, text) = match begin(&state, &dispatch, &asked).await {
        Ok(begun) => begun,
        Err(problem) => {
            acts::refused(&state, &dispatch, acts::SIGN_IN, Login::typed(&asked.name).as_ref(), &problem);
            let form = |wrong: &str| html::login::form(&ways(&state), &next, &asked.name, Some(wrong));
            return sent.refused(problem, |wrong| respond::shown(&state, form(wrong)));
        }
    };
    take_over(&state, &dispatch, &context.headers, (&session, &text)).await?;
    let document = || respond::json("application/json", &info(&state, Some((&session, &text))));
    let mut response = sent.done(&next, document)?;
    let set = cookie::SESSION.set(dispatch.arrival.secure, &text);
    respond::insert(response.headers_mut(), header::SET_COOKIE, &set);
    Ok(unstored(response))
}

/// Hands a new session to the browser.
async fn take_over(
    state: &Scope,
    dispatch: &Dispatch,
    headers: &HeaderMap,
    (session, text): (&Session, &str),
) -> Result<()> {
    if let Err(problem) = acts::record(state, dispatch, acts::SIGN_IN, session).await {
        // No session may exist without its audit line.
        end(state, Origin::SignIn, text.to_owned()).await?;
        return Err(problem);
    }
    // A browser has only one session, so the previous one ends: it may belong to another user.
    match cookie::SESSION.read(dispatch.arrival.secure, headers) {
        Some(before) => end(state, Origin::SignIn, before.to_owned()).await,
        None => Ok(()),
    }
}

/// Checks name and password, and starts a session.
async fn begin(state: &Scope, dispatch: &Dispatch, asked: &SignIn) -> Result<(Arc<Session>, String)> {
    let (login, client) = (Login::typed(&asked.name), dispatch.arrival.client);
    let digest = checked(state, client, login.as_ref(), &asked.password).await?;
    // An unknown name takes as long as a wrong password up to this point, and gets the same response.
    let login = login.ok_or_else(wrong)?;
    let (session, text) = begin_session(state, login, digest).await?;
    tracing::info!(user = session.user(), client = client.map(tracing::field::display), "signed in");
    Ok((session, text))
}

/// Refuses an attempt that came too early.
fn too_many(state: &Scope, wait: Duration) -> Problem {
    let detail = "too many attempts to sign in: try again later";
    Problem::new(Kind::TooManyAttempts, detail).retry_after(overload::spread(state, wait))
}

/// Checks a user's password, and returns its stored digest.
async fn checked(
    state: &Scope,
    client: Option<IpAddr>,
    login: Option<&Login>,
    password: &str,
) -> Result<PasswordDigest> {
    let attempt = state.throttle.begin(login.map(Login::as_str), client, state.now());
    let attempt = attempt.map_err(|wait| too_many(state, wait))?;
    let known = state.registry.password(login);
    let Some(password) = Password::typed(password) else { return Err(wrong()) };
    let (digest, check) = (known.clone(), move || password.has(&known));
    // Determined by the typed text alone: if unknown names waited elsewhere, the length of the wait would reveal which
    // users exist. Nonexistent tenants share one queue, or a client could open any number of them.
    let tenant = login.map(Login::tenant).filter(|tenant| state.registry.tenant(tenant).is_some());
    match state.passwords.run(tenant.unwrap_or("nobody"), check, |max| overload::passwords(state, max)).await {
        Ok(true) => state.throttle.succeed(attempt, state.now()),
        Ok(false) => return Err(wrong()),
        Err(busy) => {
            state.throttle.withdraw(&attempt);
            return Err(busy);
        }
    }
    Ok(digest)
}

/// Starts a session for a user whose password was verified against this digest.
async fn begin_session(state: &Scope, login: Login, digest: PasswordDigest) -> Result<(Arc<Session>, String)> {
    let (registry, limits, now) = (state.registry.clone(), state.config.session, state.now());
    let begin = move || registry.begin_session(&login, &digest, &limits, now);
    let begun = access::in_turn(state, Origin::SignIn, begin).await?;
    // `None` if the user has changed meanwhile, or its tenant is suspended.
    begun.map_err(errors::access_problem)?.ok_or_else(wrong)
}

fn wrong() -> Problem {
    Problem::new(Kind::Unauthorized, WRONG).header(header::WWW_AUTHENTICATE, CHALLENGE.clone())
}

/// `POST /logout`
pub async fn logout(
    state: Scope,
    Extension(dispatch): Extension<Dispatch>,
    context: Context,
    body: Body,
) -> Result<Response> {
    let sent = SubmittedForm::receive(&state, &context, body).await?;
    if let Some((session, text)) = current(&state, &dispatch, &context.headers) {
        sent.check_csrf(&text)?;
        end(&state, Origin::SignOut, text).await?;
        // The session has ended whether or not that can be recorded; the fault is logged.
        let _ = acts::record(&state, &dispatch, acts::SIGN_OUT, &session).await;
        tracing::info!(user = session.user(), "signed out");
    }
    // Ending a session that has already ended succeeds.
    let mut response = sent.done("/login", || Ok(respond::no_content()))?;
    respond::insert(response.headers_mut(), header::SET_COOKIE, &cookie::SESSION.unset(dispatch.arrival.secure));
    Ok(unstored(response))
}

async fn end(state: &Scope, origin: Origin, text: String) -> Result<()> {
    let registry = state.registry.clone();
    let ended = access::in_turn(state, origin, move || registry.end_session(&text)).await?;
    ended.map(drop).map_err(errors::access_problem)
}

/// `GET /session`
pub async fn session(state: Scope, Extension(dispatch): Extension<Dispatch>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let current = current(&state, &dispatch, &context.headers);
    let info = info(&state, current.as_ref().map(|(session, text)| (session, text)));
    respond::json("application/json", &info).map(unstored)
}

fn info(state: &Scope, current: Option<(&Arc<Session>, &String)>) -> SessionInfo {
    let mut info = SessionInfo { sign_in: state.registry.signs_in(), ..SessionInfo::default() };
    if let Some((session, text)) = current {
        let caller = session.caller();
        info.user = Some(session.user().to_owned());
        info.tenant = (!caller.is_operator()).then(|| caller.tenant.to_string());
        info.role = Some(caller.grant.role.name());
        info.collections = Some(caller.grant.collections.to_string());
        info.csrf_token = Some(csrf::token(text));
        info.expires = Some(time::format_instant(session.expires()));
    }
    info
}

/// Returns the session used by a request, with its text.
fn current(state: &Scope, dispatch: &Dispatch, headers: &HeaderMap) -> Option<(Arc<Session>, String)> {
    // If both are present, the header takes precedence.
    if headers.contains_key(header::AUTHORIZATION) {
        return None;
    }
    let text = cookie::SESSION.read(dispatch.arrival.secure, headers)?;
    let session = state.registry.session(text, &state.config.session, state.now()).ok()?;
    Some((session, text.to_owned()))
}

fn see_other(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    respond::insert(response.headers_mut(), header::LOCATION, path);
    response
}

/// Marks a response that no cache may store.
fn unstored(mut response: Response) -> Response {
    respond::insert(response.headers_mut(), header::CACHE_CONTROL, "no-store");
    response
}
