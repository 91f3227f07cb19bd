//! The record of a request that administers.

use crate::entry::{Access, Action, Resource, Route, decoded};
use crate::places;
use crate::problem::{Kind, Problem};
use crate::state::AppState;
use axum::response::{IntoResponse, Response};
use matchit::Params;
use meridian_admission::identity::Caller;
use meridian_backend::Act;
use meridian_observe as observe;
use std::net::IpAddr;

/// A handler's additions to the record of its act, as an extension of its response. It must hold no secret.
#[derive(Debug, Clone, Default)]
pub struct Note {
    /// The tenant that the act concerns, where it is not the caller's.
    pub tenant: Option<String>,
    /// The created thing, as a path.
    pub target: Option<String>,
    /// The request, in words.
    pub change: Option<String>,
}

/// The act that a request to a row is; `None` where the row administers nothing.
pub fn act_of(
    route: &Route,
    caller: &Caller,
    (client, request): (Option<IpAddr>, &str),
    (path, segments): (&str, &Params<'_, '_>),
) -> Option<Act> {
    let Access::Needs(Action::Manage, resource) = route.access else { return None };
    let collection = match resource {
        Resource::Collection => decoded(segments.get("c").unwrap_or_default()).ok().map(|name| name.into_owned()),
        Resource::Places => Some(places::COLLECTION.to_owned()),
        _ => None,
    };
    // An act on the server concerns no tenant, or one that the handler names.
    let tenant = if resource == Resource::Server { String::new() } else { caller.tenant.to_string() };
    Some(Act { tenant, collection, ..super::act((route.id, path), caller, (client, request)) })
}

/// Runs the handler of an act between its two lines. A started act is completed, whatever its client does.
pub async fn recorded(
    state: AppState,
    mut act: Act,
    handled: impl Future<Output = Response> + Send + 'static,
) -> Response {
    // On a separate task: a client that disconnects would end this one between two steps.
    let ended = tokio::spawn(observe::within(observe::current(), async move {
        match state.audit.record(act.clone()).await {
            Ok(n) => act.began = Some(n),
            Err(problem) => return problem.into_response(),
        }
        let mut response = handled.await;
        // The handler alone knows these: they depend on what it found.
        if let Some(Note { tenant, target, change }) = response.extensions_mut().remove() {
            act.tenant = tenant.unwrap_or(act.tenant);
            act.target = target.unwrap_or(act.target);
            act.change = change;
        }
        let status = response.status();
        act.status = Some(status.as_u16());
        match state.audit.record(act).await {
            Ok(_) => response,
            Err(_) => {
                let detail =
                    format!("it was done, with status {}, and the audit log cannot be written", status.as_u16());
                Problem::new(Kind::StorageUnavailable, detail).into_response()
            }
        }
    }));
    ended.await.unwrap_or_else(|e| Problem::internal(e).into_response())
}
