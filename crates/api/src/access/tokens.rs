//! `/tokens`: an admin manages the tokens of its tenant, an operator those of every tenant.

use crate::access::audit::AuditDetails;
use crate::contract::{DamagedToken, TokenAnswer, TokenInfo, TokenList, bodies};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::change_queues::Origin;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use meridian_admission::identity::{Fault, NewToken, Token};
use meridian_model::policy::access::{Grant, Pattern, Role};
use meridian_model::{schema_json, time};
use std::collections::BTreeMap;

const EXPECTED: &str = "an object such as {\"role\":\"reader\",\"collections\":\"ships*\",\"expires\":\"P90D\"}";

/// `POST /tokens`
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let asked: bodies::NewToken = super::read(&state, &context, body, EXPECTED).await?;
    let new = new_token(&state, asked)?;
    let (token, text) = super::change(&state, move |state| state.registry.create_token(&new, state.now())).await?;
    tracing::info!(by = &*state.caller().name, token = token.id, role = %token.role, "token created");
    let answer = TokenAnswer { info: TokenInfo::from(&token), token: text };
    let mut response = respond::json("application/json", &answer)?;
    *response.status_mut() = StatusCode::CREATED;
    respond::insert(response.headers_mut(), header::LOCATION, &context.url(&format!("/tokens/{}", token.id)));
    // The response is the only copy of the secret.
    respond::insert(response.headers_mut(), header::CACHE_CONTROL, "no-store");
    response.extensions_mut().insert(note(&token));
    Ok(response)
}

/// Describes the act for the audit log.
fn note(token: &Token) -> AuditDetails {
    let until =
        token.expires.map_or_else(|| "without end".to_owned(), |t| format!("until {}", time::format_instant(t)));
    AuditDetails {
        tenant: Some(token.tenant.clone()),
        target: Some(format!("/tokens/{}", token.id)),
        change: Some(format!("{} over {}, {until}", token.role, token.collections)),
    }
}

fn new_token(state: &Scope, asked: bodies::NewToken) -> Result<NewToken> {
    let role: Role = asked.role.parse().map_err(Problem::invalid_body)?;
    let collections = match &asked.collections {
        Some(text) => text.parse().map_err(Problem::invalid_body)?,
        None => Pattern::all(),
    };
    let expires = asked.expires.map(|text| expiry(&text, state.now())).transpose()?;
    let grant = Grant { role, collections };
    let caller = state.caller();
    let tenant = match role {
        Role::Operator => asked.tenant,
        _ => Some(asked.tenant.unwrap_or_else(|| caller.tenant.to_string())),
    };
    let foreign = tenant.as_deref().is_some_and(|tenant| tenant != &*caller.tenant);
    if !caller.grant.may_give(&grant) || foreign && !caller.is_operator() {
        let detail = format!("the role {} over {} gives no such token", caller.grant.role, caller.grant.collections);
        return Err(Problem::new(Kind::Forbidden, detail));
    }
    // Otherwise a holder could extend its own access by granting itself a token.
    if let Some(own) = caller.gives_until()
        && expires.is_none_or(|expires| expires > own)
    {
        let detail = format!(
            "the token would outlive yours, which expires at {}: expected an earlier time",
            time::format_instant(own)
        );
        return Err(Problem::invalid_body(meridian_model::Invalid::field("expires", detail)));
    }
    Ok(NewToken { tenant, grant, expires })
}

fn expiry(text: &str, now: i64) -> Result<i64> {
    let wrong = || {
        let expected = "expected an instant such as 2027-01-01T00:00:00Z or a duration such as P90D, longer than zero";
        Problem::invalid_body(meridian_model::Invalid::field("expires", format!("{text:?}: {expected}")))
    };
    match text.starts_with('P') {
        true => schema_json::parse_duration(text).ok().and_then(|length| now.checked_add(length)).ok_or_else(wrong),
        false => time::parse_instant(text, None).map_err(|_| wrong()),
    }
}

/// `GET /tokens`
pub async fn list(state: Scope, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let tokens = managed(&state).iter().map(TokenInfo::from).collect();
    let damaged = damaged(&state).into_iter().map(|(id, detail)| DamagedToken { id, detail }).collect();
    respond::json("application/json", &TokenList { tokens, damaged })
}

/// `DELETE /tokens/{id}`
pub async fn delete(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    if state.caller().is_operator() && state.registry.has_damaged_token(&id) {
        let removed = id.clone();
        let remove = move |state: &Scope| state.registry.remove_damaged_token(&removed);
        super::change_from(&state, Origin::revocation(state.caller().is_operator()), remove).await?;
        tracing::info!(by = &*state.caller().name, token = id, "damaged token removed");
        return Ok(respond::no_content());
    }
    // A token never changes, so the result of this check holds until the token is revoked.
    let is_managed =
        state.registry.token(tenant(&state), &id).is_some_and(|token| super::manages(&state, &token.grant()));
    // Tokens of others are reported as absent, so that ids cannot be probed.
    if !is_managed {
        return Err(errors::access_problem(Fault::Absent("token", id)));
    }
    let revoked = id.clone();
    let revoke = move |state: &Scope| state.registry.revoke_token(tenant(state), &revoked);
    let token = super::change_from(&state, Origin::revocation(state.caller().is_operator()), revoke).await?;
    tracing::info!(by = &*state.caller().name, token = id, "token revoked");
    let mut response = respond::no_content();
    response.extensions_mut().insert(AuditDetails { tenant: Some(token.tenant), ..AuditDetails::default() });
    Ok(response)
}

/// Returns the tokens that the caller manages.
fn managed(state: &Scope) -> Vec<Token> {
    let mut tokens = state.registry.tokens(tenant(state));
    tokens.retain(|token| super::manages(state, &token.grant()));
    tokens
}

/// Returns the damaged tokens, whose tenants are unknown, if the caller is an operator.
fn damaged(state: &Scope) -> BTreeMap<String, String> {
    match state.caller().is_operator() {
        true => state.registry.damaged_tokens(),
        false => BTreeMap::new(),
    }
}

/// Returns the tenant whose tokens the caller may manage; `None` for all.
fn tenant(state: &Scope) -> Option<&str> {
    (!state.caller().is_operator()).then(|| state.view().tenant())
}
