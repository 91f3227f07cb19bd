//! `POST /password`: a user who has signed in chooses another password.

use super::{acts, begin_session, checked, cookie, csrf, current, forms, info, see_other, unstored};
use crate::body;
use crate::entry::Dispatch;
use crate::errors;
use crate::html;
use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use axum::Extension;
use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use meridian_admission::identity::{Login, Password, Session, UserChange};
use meridian_model::Invalid;
use serde::Deserialize;
use std::sync::Arc;

/// The password of now, and the one to be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    password: String,
    new: String,
}

const EXPECTED: &str = "{\"password\":\"…\",\"new\":\"…\"}";

/// Changes the password of the session's user. All its sessions end, and this browser gets a new one.
pub async fn change(
    state: Scope,
    Extension(dispatch): Extension<Dispatch>,
    context: Context,
    body: Body,
) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let received = body::receive_up_to(&state, &context.headers, body, forms::BODY_BYTES_MAX).await?;
    let (session, text) = current(&state, &dispatch, &context.headers).ok_or_else(|| {
        Problem::new(Kind::Forbidden, "only a user who has signed in has a password: sign in at /login")
    })?;
    let of_form = forms::is_form(&context.headers);
    let (asked, in_form) = match of_form {
        true => {
            let mut pairs = forms::pairs(&received.bytes)?;
            let (password, new) = (forms::field(&mut pairs, "password")?, forms::field(&mut pairs, "new")?);
            (Asked { password, new }, pairs.take("csrf_token"))
        }
        false => (forms::of_json(&received.bytes, EXPECTED)?, None),
    };
    drop(received);
    csrf::check(&text, in_form.as_deref().or_else(|| csrf::shown(&context.headers)))?;
    let (session, text) = match renew(&state, &dispatch, session.login(), &asked).await {
        Ok(renewed) => renewed,
        Err(problem) => {
            acts::refused(&state, &dispatch, acts::PASSWORD, Some(session.login()), &problem);
            if !of_form {
                return Err(problem);
            }
            let page =
                html::login::signed_in(session.login().as_str(), &csrf::token(&text), "/", Some(problem.detail()));
            return Ok(forms::refused(problem, page));
        }
    };
    acts::record(&state, &dispatch, acts::PASSWORD, &session).await?;
    let mut response = match of_form {
        true => see_other("/"),
        false => respond::json("application/json", &info(&state, Some((&session, &text))))?,
    };
    respond::insert(response.headers_mut(), header::SET_COOKIE, &cookie::set(dispatch.arrival.secure, &text));
    Ok(unstored(response))
}

async fn renew(state: &Scope, dispatch: &Dispatch, login: &Login, asked: &Asked) -> Result<(Arc<Session>, String)> {
    let new = Password::chosen(&asked.new);
    let new = new.map_err(|wrong| Problem::invalid_body(Invalid::field("new", wrong.detail)))?;
    // A browser that someone left signed in must not be enough.
    checked(state, dispatch.arrival.client, Some(login), &asked.password).await?;
    let digest = state.passwords.run(state, move || new.hash()).await?.map_err(Problem::internal)?;
    state.still_valid()?;
    let (registry, of) = (state.registry.clone(), login.clone());
    let change = UserChange { password: Some(digest.clone()), ..UserChange::default() };
    let changed = tokio::task::spawn_blocking(move || registry.change_user(&of, change)).await;
    changed.map_err(Problem::internal)?.map_err(errors::access_problem)?;
    tracing::info!(user = login.as_str(), "password changed");
    begin_session(state, login.clone(), digest).await
}
