//! The record of a request that administers.

use super::Source;
use crate::entry::{Access, Action, Resource, Route, decoded};
use crate::overload;
use crate::places;
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use matchit::Params;
use meridian_admission::identity::Caller;
use meridian_admission::pace;
use meridian_backend::Act;
use meridian_model::schema::{NAME_BYTES_MAX, validate_name};
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
    // An act on the server concerns no tenant, or one that the handler names. Tokens and users that an operator manages may
    // be of any tenant, or of none.
    let of_server = resource == Resource::Server || caller.is_operator() && resource == Resource::Tokens;
    let tenant = if of_server { String::new() } else { caller.tenant.to_string() };
    Some(Act { tenant, collection, ..super::act((route.id, path), caller, (client, request)) })
}

/// Whether an act may begin, before anything is recorded of it: the log is no place for names that nothing can have, nor for more
/// acts than its tenant may make.
///
/// # Errors
/// 404 or 400 for such a name, 429 for too many acts, 503 where too many wait for the disk.
pub fn admit(state: &AppState, route: &Route, caller: &Caller, segments: &Params<'_, '_>) -> Result<()> {
    let Access::Needs(Action::Manage, _) = route.access else { return Ok(()) };
    for (_, segment) in segments.iter() {
        let name = decoded(segment)?;
        if route.method == Method::PUT {
            validate_name("collection", &name).map_err(Problem::invalid_body)?;
        } else if !may_be_a_name(&name) {
            return Err(Problem::not_found(
                "nothing has the name in this path: it is too long, or has other characters",
            ));
        }
    }
    state.audit.ready(state)?;
    // Operators are trusted with the server, and restore it by scripts.
    if caller.is_operator() {
        return Ok(());
    }
    caller.ledger.pace().take().map_err(|wait| {
        state.audit.counted(Source::Tenant(caller.tenant.clone()));
        let limit = pace::A_MINUTE;
        let detail = format!("the tenant made {limit} administrative acts in a minute, its limit: try again later");
        let wait = overload::spread(state, wait);
        let policy = format!("\"acts\";q={limit};w=60");
        let room = format!("\"acts\";r=0;t={}", wait.as_secs());
        let problem = Problem::new(Kind::QuotaExceeded, detail).with("quota", "acts_per_minute").with("limit", limit);
        overload::with_limit(problem.retry_after(wait), policy, room)
    })
}

/// Whether a collection, a token, a user or a tenant may have this name.
fn may_be_a_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@".contains(&byte);
    text.len() <= NAME_BYTES_MAX && text.bytes().all(plain)
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
