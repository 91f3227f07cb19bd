//! Federated searches: starting them, reading their status, stopping them, reading their packets (`packets.rs`) and
//! storing their results (`keep.rs`). Saved searches are in `saved.rs`. Requests about a search of another gateway are
//! relayed to it (`relay/`).

pub mod keep;
pub mod packets;
mod pages;
pub mod relay;
pub mod saved;

use crate::contract::{ProviderList, SearchAnswer};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::LOCAL;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_admission::identity::ANONYMOUS;
use meridian_federation::{Search, SearchClient};
use meridian_model::policy::access::Role;
use serde_json::Value;
use std::sync::Arc;

/// `POST /searches`: starts a search, or joins an identical one that the same caller started a moment ago.
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    // Its share of the memory for bodies is held until the question is accepted or refused, since it may wait for a
    // permit.
    let mut received = body::receive(&state, &context.headers, body).await?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let mut question = body::document(&state, &context.lease, &mut received, deadline).await?.map_err(|e| {
        Problem::new(
            Kind::InvalidBody,
            format!("the body is not JSON ({e}): expected a question such as {{\"keywords\":\"flood\"}}"),
        )
    })?;
    context.lease.enter(&state, deadline).await?;
    // The question's own timeout takes precedence over the header.
    if let (Some(timeout), Some(members)) = (context.timeout()?, question.as_object_mut())
        && members.get("timeout").is_none_or(Value::is_null)
    {
        let timeout = timeout.min(state.config.search.deadline_max).as_millis() as u64;
        members.insert("timeout".to_owned(), timeout.into());
    }
    let asker = asker(&state, &context);
    let mut started = state.searches.start(&question, &asker, context.arrived).await;
    if let Some(keep) = keep::absent(&started) {
        keep::create(&state, &context, keep).await?;
        started = state.searches.start(&question, &asker, context.arrived).await;
    }
    drop((question, received));
    let (search, joined) = started.map_err(|e| errors::refusal_problem(e, &state))?;
    let (status, stream) = urls(&context, &search.id);
    let answer = SearchAnswer { status: search.status(), packets: stream, joined: Some(joined) };
    let mut response = respond::json("application/json", &answer)?;
    *response.status_mut() = StatusCode::ACCEPTED;
    respond::insert(response.headers_mut(), header::LOCATION, &status);
    Ok(response)
}

/// Identifies the searching client: a token's holder by its token, a user by the user's record. Other clients are
/// identified by their `Authorization`, which is unchecked while there are no tokens, or by their address.
fn asker(state: &Scope, context: &Context) -> SearchClient {
    let caller = state.caller();
    let key = match context.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        _ if !matches!(&*caller.name, LOCAL | ANONYMOUS) => format!("token {}", caller.key()),
        Some(name) => format!("as {name}"),
        None => format!("from {:?}", context.client),
    };
    // An operator may search in several tenants, whose searches are separate.
    SearchClient { key: format!("{}: {key}", caller.tenant), view: state.view().clone() }
}

/// `GET /searches/{id}`
pub async fn get(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let status = find(&state, &context, &id)?.status();
    let answer = SearchAnswer { status, packets: urls(&context, &id).1, joined: None };
    respond::json("application/json", &answer)
}

/// `DELETE /searches/{id}`: stops a search; its readers get the last packet.
pub async fn delete(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    find(&state, &context, &id)?;
    state.searches.stop(&id);
    Ok(respond::no_content())
}

/// `GET /providers`
pub async fn providers(state: Scope, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    respond::json("application/json", &ProviderList { providers: state.searches.providers(state.view()) })
}

/// Returns the search with this id. Its owner sees it with the rights under which it was started. Admins of its tenant
/// see it if their grant covers what it read.
///
/// # Errors
/// 404
fn find(state: &Scope, context: &Context, id: &str) -> Result<Arc<Search>> {
    let (caller, asker) = (state.caller(), asker(state, context));
    let sees = |search: &Arc<Search>| {
        let (owner, ours) = (search.view.caller(), &caller.grant);
        let administers = ours.role >= Role::Admin && ours.collections.includes(&owner.grant.collections);
        // The owner's rights may have changed since: the packets contain what the earlier rights allowed to read.
        let owns = search.owner == asker.key && owner.grant == *ours;
        owner.tenant == caller.tenant && (owns || administers)
    };
    state.searches.get(id).filter(sees).ok_or_else(|| {
        let keep = state.config.search.keep.as_secs();
        Problem::not_found(format!("there is no search {id:?}: it never existed, or ended more than {keep} s ago"))
    })
}

/// Returns the URLs of a search's status and of its packets.
fn urls(context: &Context, id: &str) -> (String, String) {
    (context.url(&format!("/searches/{id}")), context.url(&format!("/searches/{id}/packets")))
}

/// Responds to a reader that requests packets that are no longer kept.
fn gone(first: u64) -> Response {
    let detail = format!("packets before {first} are no longer kept: read from there, or search again");
    Problem::new(Kind::Gone, detail).with("first", first).into_response()
}
