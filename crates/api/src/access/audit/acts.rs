//! Recording of administrative requests.

use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::decoded;
use crate::request::overload;
use crate::request::route::{Access, Action, PLACES, Resource, Route};
use crate::request::scope::Scope;
use crate::state::AppState;
use crate::state::audit_log::Source;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use matchit::Params;
use meridian_admission::identity::Caller;
use meridian_admission::pace::{A_MINUTE, Pace};
use meridian_backend::Act;
use meridian_model::schema::{NAME_BYTES_MAX, validate_name};
use meridian_observe as observe;
use std::net::IpAddr;

/// The act of creating a collection, as named in the route table.
const CREATE_COLLECTION: &str = "createCollection";

/// A handler's additions to the record of its act, as an extension of its response. It must not contain secrets.
#[derive(Debug, Clone, Default)]
pub struct AuditDetails {
    /// The tenant that the act concerns, if not the caller's.
    pub tenant: Option<String>,
    /// The path of the created resource.
    pub target: Option<String>,
    /// Description of the request.
    pub change: Option<String>,
}

/// Returns the act of a request to a route; `None` if the route is not administrative.
pub fn act_of(
    route: &Route,
    caller: &Caller,
    (client, request): (Option<IpAddr>, &str),
    (path, segments): (&str, &Params<'_, '_>),
) -> Option<Act> {
    let Access::Needs(Action::Manage, resource) = route.access else { return None };
    let collection = match resource {
        Resource::Collection => decoded(segments.get("c").unwrap_or_default()).ok().map(|name| name.into_owned()),
        Resource::Places => Some(PLACES.to_owned()),
        _ => None,
    };
    // An act on the server concerns no tenant, or one named by the handler. Tokens and users managed by an operator may
    // belong to any tenant, or to none.
    let of_server = resource == Resource::Server || caller.is_operator() && resource == Resource::Tokens;
    let tenant = if of_server { String::new() } else { caller.tenant.to_string() };
    Some(Act { tenant, collection, ..super::act((route.id, path), caller, (client, request)) })
}

/// Checks whether an act may begin, before any of it is recorded. The log must not fill up with impossible names, or
/// with more acts than the tenant may perform.
///
/// # Errors
/// 404 or 400 for such a name, 429 for too many acts, 503 if too many wait for the disk.
pub fn admit(state: &AppState, route: &Route, caller: &Caller, segments: &Params<'_, '_>) -> Result<()> {
    let Access::Needs(Action::Manage, resource) = route.access else { return Ok(()) };
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
    let ledger = &caller.ledger;
    may_begin(state, caller, if resource == Resource::Tokens { ledger.credential_pace() } else { ledger.pace() })
}

/// Checks whether another act may begin.
///
/// # Errors
/// 429 for too many acts of the tenant, 503 if too many wait for the disk.
fn may_begin(state: &AppState, caller: &Caller, pace: &Pace) -> Result<()> {
    if let Some(max) = state.audit.full() {
        return Err(overload::overloaded(state, "too many administrative acts wait: try again".to_owned(), max));
    }
    // Operators are trusted with the server, and restore it by scripts.
    if caller.is_operator() {
        return Ok(());
    }
    pace.take().map_err(|wait| {
        state.audit.counted(Source::Tenant(caller.tenant.clone()));
        let limit = A_MINUTE;
        let detail = format!("the tenant made {limit} administrative acts in a minute, its limit: try again later");
        let wait = overload::spread(state, wait);
        let policy = format!("\"acts\";q={limit};w=60");
        let room = format!("\"acts\";r=0;t={}", wait.as_secs());
        let problem = Problem::new(Kind::QuotaExceeded, detail).with("quota", "acts_per_minute").with("limit", limit);
        overload::with_limit(problem.retry_after(wait), policy, room)
    })
}

/// Returns whether this is a possible name of a collection, token, user or tenant.
fn may_be_a_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@".contains(&byte);
    text.len() <= NAME_BYTES_MAX && text.bytes().all(plain)
}

/// Runs the handler of an act, and writes a line before and after. Once started, an act is completed, whatever its
/// client does.
pub async fn recorded(state: AppState, act: Act, handled: impl Future<Output = Response> + Send + 'static) -> Response {
    let outcome = |response: &mut Response, act: &mut Act| {
        // Known only to the handler, because they depend on what it found.
        if let Some(AuditDetails { tenant, target, change }) = response.extensions_mut().remove() {
            tenant.into_iter().for_each(|tenant| act.tenant = tenant);
            target.into_iter().for_each(|target| act.target = target);
            act.change = change;
        }
        response.status()
    };
    between_lines(state, act, handled, outcome).await.unwrap_or_else(IntoResponse::into_response)
}

/// Creates a collection for a request that needs it but is not an act itself. It is checked, rate limited and recorded
/// like `PUT /collections/{c}`. `create` may block. `change` describes the request.
///
/// # Errors
/// 403 if the caller may not create it, 429 for too many acts, 503 or 507 if the act cannot be recorded.
pub async fn creating<T: Send + 'static>(
    state: &Scope,
    context: &Context,
    (collection, change): (&str, Option<String>),
    create: impl FnOnce(&Scope) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (caller, target) = (state.caller(), format!("/collections/{collection}"));
    let act = super::act((CREATE_COLLECTION, &*target), caller, (context.client, &*context.id));
    let act = Act { collection: Some(collection.to_owned()), change, ..act };
    if !state.view().may(Action::Manage, collection) {
        let detail =
            format!("there is no collection {collection:?} yet, and the role {} creates none", caller.grant.role);
        let refused = Act { status: Some(StatusCode::FORBIDDEN.as_u16()), ..act };
        state.audit.refused(Source::of(caller), refused);
        return Err(Problem::new(Kind::Forbidden, detail));
    }
    may_begin(state, caller, caller.ledger.pace())?;
    let scope = state.clone();
    let created = async move { tokio::task::spawn_blocking(move || create(&scope)).await.map_err(Problem::internal)? };
    let outcome = |created: &mut Result<T>, _: &mut Act| match created {
        Ok(_) => StatusCode::CREATED,
        Err(problem) => problem.status(),
    };
    between_lines(state.state().clone(), act, created, outcome).await?
}

/// Performs an act on a task of its own, and writes a line before and after. `outcome` returns the status, and may add
/// to the second line.
///
/// # Errors
/// 507 if a line cannot be written. Without the first line, nothing is done.
async fn between_lines<T: Send + 'static>(
    state: AppState,
    mut act: Act,
    work: impl Future<Output = T> + Send + 'static,
    outcome: impl FnOnce(&mut T, &mut Act) -> StatusCode + Send + 'static,
) -> Result<T> {
    // On a separate task, because a client's disconnect would otherwise stop the act between two steps.
    let ended = tokio::spawn(observe::within(observe::current(), async move {
        act.began = Some(state.audit.record(act.clone()).await?);
        let mut done = work.await;
        let status = outcome(&mut done, &mut act).as_u16();
        act.status = Some(status);
        state.audit.record(act).await.map(|_| done).map_err(|_| {
            let detail = format!("it was done, with status {status}, and the audit log cannot be written");
            Problem::new(Kind::StorageUnavailable, detail)
        })
    }));
    ended.await.unwrap_or_else(|e| Err(Problem::internal(e)))
}
