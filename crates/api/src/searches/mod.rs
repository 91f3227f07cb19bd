//! Federated searches: starting them, reading their status, stopping them, reading their packets (`packets.rs`) and
//! storing their results (`keep.rs`). Saved searches are in `saved.rs`.

pub mod keep;
pub mod packets;
pub mod saved;

use crate::body;
use crate::contract::{ProviderList, SearchAnswer};
use crate::entry::Path;
use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_federation::{Refusal, Search};
use serde_json::Value;
use std::sync::Arc;

/// `POST /searches`: starts a search, or joins the same one that the same caller started a moment ago.
pub async fn post(State(state): State<AppState>, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let received = body::receive(&state, &context.headers, body).await?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let mut question: Value = body::json(&state, &context.lease, &received.bytes, deadline).await?.map_err(|e| {
        Problem::new(
            Kind::InvalidBody,
            format!("the body is not JSON ({e}): expected a question such as {{\"keywords\":\"flood\"}}"),
        )
    })?;
    drop(received);
    context.lease.enter(deadline).await?;
    // The question's own timeout takes precedence over the header.
    if let (Some(timeout), Some(members)) = (context.timeout()?, question.as_object_mut())
        && members.get("timeout").is_none_or(Value::is_null)
    {
        let timeout = timeout.min(state.config.search.deadline_max).as_millis() as u64;
        members.insert("timeout".to_owned(), timeout.into());
    }
    let caller = caller_key(&context);
    let (search, joined) =
        state.searches.start(&question, &caller, context.arrived).await.map_err(|e| refused(e, &state))?;
    let (status, stream) = urls(&context, &search.id);
    let answer = SearchAnswer { status: search.status(), packets: stream, joined: Some(joined) };
    let mut response = respond::json("application/json", &answer)?;
    *response.status_mut() = StatusCode::ACCEPTED;
    respond::insert(response.headers_mut(), header::LOCATION, &status);
    Ok(response)
}

/// The key under which a caller's searches are counted: its `Authorization`, else its address. Forwarding headers are
/// not trusted: a client could forge them and so count as many callers.
fn caller_key(context: &Context) -> String {
    match context.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        Some(name) => format!("as {name}"),
        None => format!("from {}", context.peer),
    }
}

/// `GET /searches/{id}`
pub async fn get(State(state): State<AppState>, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let status = find(&state, &id)?.status();
    let answer = SearchAnswer { status, packets: urls(&context, &id).1, joined: None };
    respond::json("application/json", &answer)
}

/// `DELETE /searches/{id}`: stops a search; its readers get the last packet.
pub async fn delete(State(state): State<AppState>, Path(id): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    find(&state, &id)?;
    state.searches.stop(&id);
    Ok(respond::no_content())
}

/// `GET /providers`
pub async fn providers(State(state): State<AppState>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    respond::json("application/json", &ProviderList { providers: state.searches.providers() })
}

/// The search of this name, or 404.
fn find(state: &AppState, id: &str) -> Result<Arc<Search>> {
    state.searches.get(id).ok_or_else(|| {
        let keep = state.config.search.keep.as_secs();
        Problem::not_found(format!("there is no search {id:?}: it never existed, or ended more than {keep} s ago"))
    })
}

/// The URLs of a search's status and of its packets.
fn urls(context: &Context, id: &str) -> (String, String) {
    (context.url(&format!("/searches/{id}")), context.url(&format!("/searches/{id}/packets")))
}

fn refused(refusal: Refusal, state: &AppState) -> Problem {
    match refusal {
        Refusal::Invalid(invalid) => Problem::invalid_body(invalid),
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
            Problem::new(Kind::TooManySearches, format!("there are {max} saved searches, the limit: delete one"))
        }
        Refusal::DiskFull(why) => {
            tracing::error!(%why, "the disk is full");
            Problem::new(
                Kind::StorageUnavailable,
                "the server's disk is full: nothing can be stored until there is space",
            )
        }
        Refusal::Failed(why) => Problem::internal(why),
    }
}

/// The response to a reader that asks for packets that are no longer kept.
fn gone(first: u64) -> Response {
    let detail = format!("packets before {first} are no longer kept: read from there, or search again");
    Problem::new(Kind::Gone, detail).with("first", first).into_response()
}
