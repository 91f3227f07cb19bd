//! Federated searches: starting them, reading their status, stopping them, reading their packets (`packets.rs`) and
//! storing their results (`keep.rs`). Saved searches are in `saved.rs`.

pub mod keep;
pub mod packets;
mod pages;
pub mod saved;

use crate::body;
use crate::contract::{ProviderList, SearchAnswer};
use crate::dispatch::Path;
use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::quota;
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use crate::state::AppState;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_federation::{Asker, Refusal, Search};
use meridian_model::policy::access::Role;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

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
    let (search, joined) = started.map_err(|e| refused(e, &state))?;
    let (status, stream) = urls(&context, &search.id);
    let answer = SearchAnswer { status: search.status(), packets: stream, joined: Some(joined) };
    let mut response = respond::json("application/json", &answer)?;
    *response.status_mut() = StatusCode::ACCEPTED;
    respond::insert(response.headers_mut(), header::LOCATION, &status);
    Ok(response)
}

/// Identifies the searching client: a token's holder by its token, a user by the user's record. Other clients are
/// identified by their `Authorization`, which is unchecked while there are no tokens, or by their address.
fn asker(state: &Scope, context: &Context) -> Asker {
    let caller = state.caller();
    let key = match context.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        _ if !matches!(&*caller.name, "local" | "anonymous") => format!("token {}", caller.key()),
        Some(name) => format!("as {name}"),
        None => format!("from {:?}", context.client),
    };
    // An operator may search in several tenants, whose searches are separate.
    Asker { key: format!("{}: {key}", caller.tenant), view: state.view().clone() }
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

/// Returns the problem for a refused request.
pub fn refused(refusal: Refusal, state: &AppState) -> Problem {
    match refusal {
        Refusal::Invalid(invalid) => Problem::invalid_body(invalid),
        Refusal::Forbidden(why) => Problem::new(Kind::Forbidden, why),
        // It was created just before, but has been removed since.
        Refusal::Absent(_) => Problem::new(Kind::Conflict, format!("{refusal} any more: ask again")),
        Refusal::Quota(exceeded) => quota::exceeded(state, exceeded),
        Refusal::TooMany { running, retry } => {
            let policy = format!("\"searches\";q={};qu=\"concurrent-requests\"", state.config.search.searches_max);
            let problem =
                Problem::new(Kind::TooManySearches, format!("{running} searches are running, the limit: try again"))
                    .retry_after(retry)
                    .header(HeaderName::from_static("ratelimit"), HeaderValue::from_static("\"searches\";r=0"));
            match HeaderValue::from_str(&policy) {
                Ok(policy) => problem.header(HeaderName::from_static("ratelimit-policy"), policy),
                Err(_) => problem,
            }
        }
        Refusal::Busy { retry, .. } | Refusal::Early { retry } => {
            Problem::new(Kind::TooManySearches, format!("{refusal}: try again")).retry_after(retry)
        }
        Refusal::TooManySaved { most: max } => {
            let detail = format!(
                "there is no room for it: the server keeps {max} saved searches, and guarantees each tenant a part; \
                 a large one counts as several: delete one"
            );
            Problem::new(Kind::TooManySearches, detail)
        }
        Refusal::DiskFull(why) => {
            tracing::error!(%why, "the disk is full");
            Problem::new(
                Kind::StorageUnavailable,
                "the server's disk is full: nothing can be stored until there is space",
            )
        }
        Refusal::Unavailable(why) => Problem::new(Kind::Overloaded, why).retry_after(Duration::from_secs(1)),
        Refusal::Failed(why) => Problem::internal(why),
    }
}

/// Responds to a reader that requests packets that are no longer kept.
fn gone(first: u64) -> Response {
    let detail = format!("packets before {first} are no longer kept: read from there, or search again");
    Problem::new(Kind::Gone, detail).with("first", first).into_response()
}
