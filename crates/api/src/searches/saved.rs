//! Saved searches: creating, listing and deleting them, and reading their packets.

use super::{keep, packets, pages};
use crate::contract::links::link;
use crate::contract::{SavedSearchAnswer, SavedSearchList};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::quota;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::socket::OptionalUpgrade;
use crate::searches::relay;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use meridian_model::policy::access::Role;
use meridian_saved::{SavedSearch, SavedSearchStatus};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Saved searches on a page: the default, and the max.
const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 10_000;

/// `POST /saved-searches`
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    // It would match each event once more, and late.
    if state.backend.follows() {
        let detail = "this server only reads, and runs no saved searches: save the search at a gateway";
        return Err(Problem::new(Kind::InvalidBody, detail));
    }
    // Held until the question is accepted or refused, as for a search.
    let mut received = body::receive(&state, &context.headers, body).await?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let request = body::document(&state, &context.lease, &mut received, deadline).await?.map_err(|e| {
        let expected = "{\"name\":\"floods\",\"question\":{\"keywords\":\"flood\"}}";
        Problem::new(
            Kind::InvalidBody,
            format!("the body is not JSON ({e}): expected a saved search such as {expected}"),
        )
    })?;
    context.lease.enter(&state, deadline).await?;
    let mut created = state.saved.create(&request, state.view()).await;
    if let Some(keep) = keep::absent(&created) {
        keep::create(&state, &context, keep).await?;
        created = state.saved.create(&request, state.view()).await;
    }
    drop((request, received));
    let search = created.map_err(|e| errors::refusal_problem(e, &state))?;
    let mut response = respond::json("application/json", &answer_of(&state, &context, state.saved.status(&search)))?;
    *response.status_mut() = StatusCode::CREATED;
    respond::insert(response.headers_mut(), header::LOCATION, &url(&context, &search.id));
    Ok(response)
}

/// `GET /saved-searches`: a page of them, in order of their ids.
pub async fn list(state: Scope, context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let limit = params.take_count("limit", PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let after = params.take("after").unwrap_or_default();
    params.finish()?;
    let mut slots = relay::here(&state);
    let (list, more) = state.saved.list(state.view(), &after, limit);
    let next = |last: &str| {
        let href = context.url(&format!("/saved-searches?limit={limit}&after={last}"));
        link(href, "next", "application/json", "The next saved searches")
    };
    let answer = SavedSearchList {
        number_returned: list.len() as u64,
        links: list.last().filter(|_| more).map(|last| next(&last.id)).into_iter().collect(),
        saved_searches: list.into_iter().map(|status| answer_of(&state, &context, status)).collect(),
        // The tenant of a damaged one, and the collections that it read, may be unknown.
        damaged: if state.caller().is_operator() { state.saved.damaged() } else { BTreeMap::new() },
    };
    // A search whose slot was acquired or handed over meanwhile may be missing.
    let still = relay::here(&state);
    slots.retain(|slot| still.contains(slot));
    let others = relay::of_others(&state, &context, &slots).await?;
    if others.is_empty() {
        let mut response = respond::json("application/json", &answer)?;
        relay::say_slots(&context, &slots, &mut response);
        return Ok(response);
    }
    let own = serde_json::to_value(&answer).map_err(Problem::internal)?;
    let (others, _held): (Vec<_>, Vec<_>) = others.into_iter().unzip();
    let pages = others.into_iter().chain([own]);
    respond::json("application/json", &pages::joined(pages, limit, |last| json!(next(last))))
}

/// `GET /saved-searches/{id}`
pub async fn get(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let search = find(&state, &id)?;
    respond::json("application/json", &answer_of(&state, &context, state.saved.status(&search)))
}

/// `DELETE /saved-searches/{id}`: its readers get the last packet.
pub async fn delete(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    find(&state, &id)?;
    state.saved.delete(&id).await.map_err(|e| errors::refusal_problem(e, &state))?;
    Ok(respond::no_content())
}

/// `GET /saved-searches/{id}/packets`: from the client's position, or from the oldest packet that is kept.
pub async fn stream(
    state: Scope,
    Path(id): Path<String>,
    OptionalUpgrade(socket): OptionalUpgrade,
    context: Context,
) -> Result<Response> {
    let from = packets::position(&context)?;
    let search = find(&state, &id)?;
    let slot = quota::stream_slot(&state, state.caller())?;
    // The search keeps running without readers, so browsers need not reconnect quickly.
    Ok(packets::stream(&search.outbox, from, socket, "", slot))
}

/// Returns the saved search with this id.
///
/// # Errors
/// 404 if the caller sees none.
fn find(state: &Scope, id: &str) -> Result<Arc<SavedSearch>> {
    let missing = || Problem::not_found(format!("there is no saved search {id:?}: it never existed, or was deleted"));
    state.saved.get(id).filter(|search| search.definition.is_seen_by(state.view())).ok_or_else(missing)
}

fn url(context: &Context, id: &str) -> String {
    context.url(&format!("/saved-searches/{id}"))
}

/// Returns the status of a saved search as seen by its caller, with the URL of its packets.
fn answer_of(state: &Scope, context: &Context, mut status: SavedSearchStatus) -> SavedSearchAnswer {
    // The URL of a webhook often contains a secret, and a reader could not have set it.
    status.webhook = status.webhook.filter(|_| state.caller().grant.role >= Role::Writer);
    let packets = format!("{}/packets", url(context, &status.id));
    SavedSearchAnswer { status, packets }
}
