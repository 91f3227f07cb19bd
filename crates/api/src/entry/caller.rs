//! Step 4 of the entry point: identifies the caller, and checks that it has the access required by a route.

use crate::access::credentials::BEHIND;
use crate::access::sign_in::{cookie, csrf};
use crate::entry::guard::{Guard, SEC_FETCH_SITE};
use crate::protocol::fields;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::dispatch::{Arrival, CHALLENGE, Peer, decoded, is_forwarded};
use crate::request::overload;
use crate::request::route::{Access, Action, PLACES, Resource, Route};
use crate::request::scope::no_collection;
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use matchit::Params;
use meridian_admission::identity::{Caller, Credential, Identity, Unknown};
use meridian_model::policy::access::{Decision, Target};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The tag of the open routes for signing in and out.
const SIGN_IN: &str = "Access";

static TENANT: HeaderName = HeaderName::from_static("meridian-tenant");

/// Identifies the caller of a request. A route that requires no access is served to every caller: without a valid
/// credential as `nobody`. A monitor with an expired token therefore does not report the server as down.
///
/// # Errors
/// 401 if a credential is required and is absent or invalid. 429 if too many of its address have failed. 503 if its
/// validity cannot be checked. 403 if a session is used by a page that is not known to belong to this server.
pub fn identify(
    state: &AppState,
    guard: &Guard,
    arrival: &Arrival,
    access: Access,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> Result<Caller> {
    if state.registry.is_behind() && matches!(arrival.peer, Peer::Address(_)) {
        return match access {
            // The public view: neither the caller nor the existence of a credential can be determined.
            Access::Open => Ok(state.callers.nobody.clone()),
            Access::Needs(..) => Err(Problem::new(Kind::Overloaded, BEHIND)),
        };
    }
    let nobody = |why| match access {
        Access::Open => Ok(state.callers.nobody.clone()),
        Access::Needs(..) => Err(unauthorized(why)),
    };
    let caller = match arrival.peer {
        Peer::Socket => state.callers.socket.clone(),
        // Its view shows the number of damaged collections, not their names. A credential changes nothing.
        Peer::Monitor(_) => return Ok(state.callers.nobody.clone()),
        Peer::Address(_) if state.registry.is_empty() => match is_local(guard, arrival, (method, uri, headers)) {
            true => state.callers.local.clone(),
            false => nobody(NO_TOKEN_YET)?,
        },
        Peer::Address(_) => match credential(headers) {
            Credential::Absent => match cookie::SESSION.read(arrival.secure, headers) {
                Some(text) => match of_session(state, guard, text, access, (method, headers))? {
                    Some(caller) => caller,
                    None => nobody(ENDED)?,
                },
                None => state.registry.anonymous().map_or_else(|| nobody(NEEDED), Ok)?,
            },
            Credential::Malformed => nobody(MALFORMED)?,
            Credential::Token(text) => {
                state.registry.caller_from(&text, arrival.client, state.now()).or_else(|why| {
                    // Only for the operator's log: clients get the same response in all cases, because details would
                    // help them guess.
                    tracing::debug!(?why, "a credential is refused");
                    match (why, access) {
                        (Unknown::TooMany(wait), Access::Needs(..)) => Err(too_many(state, wait)),
                        _ => nobody(UNKNOWN),
                    }
                })?
            }
        },
    };
    match fields::only(headers, &TENANT) {
        None => Ok(caller),
        // An open route is served to every caller, even with an operator's expired token.
        Some((_, false)) if access == Access::Open && caller.is_anonymous() => Ok(caller),
        Some((tenant, false)) => within(state, caller, tenant),
        // A proxy and this server might pick different ones.
        Some((_, true)) => Err(Problem::parameter("Meridian-Tenant", "the request has more than one: expected one")),
    }
}

/// Returns the caller as the route charges it. On a route that is open to all, a caller without a credential is charged
/// to no tenant, and nobody is for signing in and out: quotas that strangers can use up, where a tenant opens
/// collections, must not decide who can do that.
pub fn charged_for(state: &AppState, route: &Route, caller: Caller) -> Caller {
    let ledger = &state.callers.nobody.ledger;
    let is_free = route.access == Access::Open && (caller.is_anonymous() || route.tag == SIGN_IN);
    if !is_free || Arc::ptr_eq(&caller.ledger, ledger) {
        return caller;
    }
    let mut apart = Identity::clone(&caller);
    apart.ledger = ledger.clone();
    Arc::new(apart)
}

/// Identifies the caller of a request before its route is known, as for a route that requires access.
///
/// # Errors
/// Those of [`identify`].
pub fn identify_early(
    state: &AppState,
    guard: &Guard,
    arrival: &Arrival,
    request: (&Method, &Uri, &HeaderMap),
) -> Result<Caller> {
    identify(state, guard, arrival, Access::Needs(Action::Read, Resource::Collections), request)
}

/// Returns whether the sender of a request is known: by a credential, by the socket, or as a program on this machine.
pub fn is_known(early: &Result<Caller>) -> bool {
    early.as_ref().is_ok_and(|caller| !caller.is_anonymous())
}

/// Returns what [`identify`] would, if that follows from `early`: a forged token costs one verification, and counts
/// once. Otherwise `None`.
pub fn settled(state: &AppState, early: Option<Result<Caller>>, access: Access) -> Option<Result<Caller>> {
    match (early?, access) {
        (Err(problem), Access::Open) => match problem.kind() {
            Kind::Unauthorized | Kind::TooManyAttempts => Some(Ok(state.callers.nobody.clone())),
            _ => None,
        },
        (early, _) => Some(early),
    }
}

const NO_TOKEN_YET: &str = "no token exists yet, so only programs on this machine are served: \
                            create one with `meridian token create`";
const NEEDED: &str = "a token is needed: expected the header Authorization: Bearer TOKEN; users sign in at /login";
const ENDED: &str = "the session has ended: sign in at /login";
const MALFORMED: &str = "the header Authorization is neither Bearer TOKEN nor Basic with the token as password";
const UNKNOWN: &str = "the token is unknown, expired or revoked";

/// Returns the caller within the tenant named by the request. Operators may name any tenant, others only their own.
fn within(state: &AppState, caller: Caller, tenant: &HeaderValue) -> Result<Caller> {
    let name = tenant.to_str().unwrap_or_default();
    if *caller.tenant == *name {
        return Ok(caller);
    }
    if !caller.is_operator() {
        return Err(Problem::new(
            Kind::Forbidden,
            "only operators name a tenant: leave out the header Meridian-Tenant",
        ));
    }
    match state.registry.ledger(name) {
        Some(ledger) => Ok(Arc::new(caller.within(&ledger))),
        None => Err(Problem::not_found(format!("there is no tenant {name:?}"))),
    }
}

/// Returns the caller of the session whose text is in the cookie; `None` if the session has ended. A request whose
/// session has ended is refused even if anyone may read: the response could come from another tenant than the previous
/// one.
fn of_session(
    state: &AppState,
    guard: &Guard,
    text: &str,
    access: Access,
    (method, headers): (&Method, &HeaderMap),
) -> Result<Option<Caller>> {
    let upgrades = headers.contains_key(header::UPGRADE);
    let Ok(session) = state.registry.session(text, &state.config.session, state.now()) else { return Ok(None) };
    // The browser sends the cookie for any page. The open routes for signing in and out protect themselves.
    if upgrades {
        guard.of_own_page(headers)?;
    } else if !is_safe(method) && access != Access::Open {
        csrf::check(text, csrf::shown(headers))?;
    }
    Ok(Some(session.caller().clone()))
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn credential(headers: &HeaderMap) -> Credential<'_> {
    match fields::only(headers, &header::AUTHORIZATION) {
        None => Credential::Absent,
        Some((value, false)) => Credential::of_header(value.as_bytes()),
        // It is unknown which of the two a proxy has checked.
        Some((_, true)) => Credential::Malformed,
    }
}

/// Returns whether a program on this machine sent the request, under a name of this machine and not through a proxy.
/// Pages of other origins in a local browser may not even read unless the settings list them. As long as no token
/// exists, nothing else would stop them.
fn is_local(guard: &Guard, arrival: &Arrival, (method, uri, headers): (&Method, &Uri, &HeaderMap)) -> bool {
    let Peer::Address(address) = arrival.peer else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    address.to_canonical().is_loopback()
        && is_loopback_name(host)
        // An absolute target takes precedence over `Host` (RFC 9112, 3.2.2).
        && uri.authority().is_none_or(|authority| is_loopback_name(authority.as_str()))
        && !is_forwarded(headers)
        && (!is_read_by_another_origin(method, headers) || guard.foreign_page(headers).is_some())
}

/// Returns whether this is a read by a page of another origin. The guard decides about all other requests of pages.
fn is_read_by_another_origin(method: &Method, headers: &HeaderMap) -> bool {
    let checked = !is_safe(method) || fields::has(headers, &header::UPGRADE);
    !checked && fields::first(headers, &SEC_FETCH_SITE).is_some_and(|site| site == "cross-site" || site == "same-site")
}

/// Returns whether the authority of a URL names this machine, by a loopback address or by `localhost`.
fn is_loopback_name(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    // Only the last label matters: browsers resolve every name under `localhost` to loopback (RFC 6761, 6.3).
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Refuses a token that was not verified, since too many from the same address have failed.
fn too_many(state: &AppState, wait: Duration) -> Problem {
    let detail = "too many tokens from this address have failed: try again later";
    Problem::new(Kind::TooManyAttempts, detail).retry_after(overload::spread(state, wait))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(Kind::Unauthorized, detail).header(header::WWW_AUTHENTICATE, CHALLENGE.clone())
}

/// Checks that a caller has the access required by a route.
///
/// # Errors
/// 403, or 404 if the caller may not know whether the target exists.
pub fn allow(caller: &Caller, access: Access, segments: &Params<'_, '_>) -> Result<()> {
    let Access::Needs(action, resource) = access else { return Ok(()) };
    // Anonymous callers may read the collections that an operator opened. A search would ask outside sources with the
    // operator's keys, and saved ones show what users of the tenant look for.
    if matches!(resource, Resource::Search | Resource::SavedSearch) && caller.is_anonymous() {
        return Err(unauthorized(NEEDED));
    }
    let name = match resource {
        Resource::Collection => decoded(segments.get("c").unwrap_or_default())?,
        Resource::Places => Cow::Borrowed(PLACES),
        _ => Cow::Borrowed(""),
    };
    let target = match resource {
        Resource::Collection | Resource::Places => Target::Collection(&name),
        Resource::Collections => Target::Collections,
        Resource::Search => Target::Search,
        Resource::SavedSearch => Target::SavedSearch,
        Resource::Tokens => Target::Tokens,
        Resource::Audit => Target::Audit,
        Resource::Server => Target::Server,
    };
    decide(caller, action, target, &name)
}

/// Checks that the caller of a Flight call may write to a collection. Each request derived from the call is checked
/// again.
///
/// # Errors
/// As for [`allow`] on a writing route.
#[cfg(feature = "flight")]
pub fn may_write(caller: &Caller, name: &str) -> Result<()> {
    decide(caller, Action::Write, Target::Collection(name), name)
}

fn decide(caller: &Caller, action: Action, target: Target<'_>, name: &str) -> Result<()> {
    match caller.grant.decide(action, target) {
        Decision::Allowed => Ok(()),
        Decision::Hidden => Err(no_collection(name)),
        Decision::Forbidden if caller.is_anonymous() => Err(unauthorized(NEEDED)),
        Decision::Forbidden => {
            Err(Problem::new(Kind::Forbidden, format!("the role {} does not include this", caller.grant.role)))
        }
    }
}
