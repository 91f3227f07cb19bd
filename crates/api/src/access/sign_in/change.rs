//! `POST /password`: changes the password of the signed-in user.

use super::forms::SubmittedForm;
use super::{acts, begin_session, checked, cookie, csrf, current, info, unstored};
use crate::access;
use crate::contract::bodies::PasswordChange;
use crate::html;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Dispatch;
use crate::request::errors;
use crate::request::overload;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::Extension;
use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use meridian_admission::identity::{Fault, Login, Password, Session, UserChange};
use meridian_model::Invalid;
use std::sync::Arc;

const EXPECTED: &str = "{\"password\":\"…\",\"new\":\"…\"}";

/// Changes the password of the session's user. Ends all of the user's sessions, and starts a new one in this browser.
pub async fn change(
    state: Scope,
    Extension(dispatch): Extension<Dispatch>,
    context: Context,
    body: Body,
) -> Result<Response> {
    let sent = SubmittedForm::receive(&state, &context, body).await?;
    let (session, text) = current(&state, &dispatch, &context.headers).ok_or_else(|| {
        Problem::new(Kind::Forbidden, "only a user who has signed in has a password: sign in at /login")
    })?;
    let Some(login) = session.login() else {
        return Err(Problem::new(Kind::Forbidden, "the issuer that signed you in has the password: change it there"));
    };
    sent.check_csrf(&text)?;
    let asked: PasswordChange = sent.read(EXPECTED)?;
    let (session, text) = match renew(&state, &dispatch, login, &asked).await {
        Ok(renewed) => renewed,
        Err(problem) => {
            acts::refused(&state, &dispatch, acts::PASSWORD, Some(login), &problem);
            let user = login.as_str();
            let form = |wrong: &str| html::login::signed_in(user, &csrf::token(&text), "/", Some(wrong));
            return sent.refused(problem, |wrong| respond::shown(&state, form(wrong)));
        }
    };
    acts::record(&state, &dispatch, acts::PASSWORD, &session).await?;
    let mut response = sent.done("/", || respond::json("application/json", &info(&state, Some((&session, &text)))))?;
    respond::insert(response.headers_mut(), header::SET_COOKIE, &cookie::SESSION.set(dispatch.arrival.secure, &text));
    Ok(unstored(response))
}

async fn renew(
    state: &Scope,
    dispatch: &Dispatch,
    login: &Login,
    asked: &PasswordChange,
) -> Result<(Arc<Session>, String)> {
    let new = Password::chosen(&asked.new);
    let new = new.map_err(|wrong| Problem::invalid_body(Invalid::field("new", wrong.detail)))?;
    // Read before the password is checked, so that a concurrent change by an admin is not overwritten.
    let user =
        state.registry.user(login).ok_or_else(|| errors::access_problem(Fault::Absent("user", login.to_string())))?;
    // Access to a browser that was left signed in must not be enough.
    checked(state, dispatch.arrival.client, Some(login), &asked.password).await?;
    let hashed = state.passwords.run(&user.tenant, move || new.hash(), |max| overload::passwords(state, max)).await?;
    let digest = hashed.map_err(Problem::internal)?;
    let change = UserChange { password: Some(digest.clone()), ..UserChange::default() };
    access::change(state, move |state| state.registry.change_user(&user, change)).await?;
    tracing::info!(user = login.as_str(), "password changed");
    begin_session(state, login.clone(), digest).await
}
