//! `/users`: an admin manages the users of its tenant, an operator those of every tenant.

use crate::access::audit::AuditDetails;
use crate::contract::{UserInfo, UserList, bodies};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::overload;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::change_queues::Origin;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use meridian_admission::identity::{Login, NewUser, Password, PasswordDigest, User, UserChange};
use meridian_model::policy::access::{Grant, Pattern, Role};
use meridian_model::time;
use std::sync::Arc;

const EXPECTED: &str = "an object such as {\"name\":\"anna\",\"role\":\"reader\",\"password\":\"…\"}";
const EXPECTED_CHANGE: &str = "an object such as {\"disabled\":true} or {\"password\":\"…\"}";

/// `POST /users`
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let asked: bodies::NewUser = super::read(&state, &context, body, EXPECTED).await?;
    let collections = asked.collections.as_deref().unwrap_or("*");
    let grant = Grant { role: role(&asked.role)?, collections: pattern(collections)? };
    let caller = state.caller();
    // Operators belong to no tenant unless one is named; all others default to the caller's tenant.
    let tenant = match grant.role {
        Role::Operator => asked.tenant,
        _ => Some(asked.tenant.unwrap_or_else(|| caller.tenant.to_string())),
    };
    let foreign = tenant.as_deref().is_some_and(|tenant| tenant != &*caller.tenant);
    // The same refusal as for too many rights: an admin must not learn which tenants exist.
    if foreign && !caller.is_operator() {
        return Err(gives_no_such());
    }
    may_give(&state, &grant)?;
    // Cheap checks first: hashing waits for its turn and takes processor time.
    let of = state.registry.check_user(&asked.name, tenant.as_deref(), &grant).map_err(errors::access_problem)?;
    let password = hashed(&state, &of, &asked.password).await?;
    let new = NewUser { name: asked.name, tenant, grant, password };
    let user = super::change(&state, move |state| state.registry.create_user(new, state.now())).await?;
    tracing::info!(by = &*state.caller().name, user = %user.login(), role = %user.role, "user created");
    let mut response = respond::json("application/json", &UserInfo::from(&user))?;
    *response.status_mut() = StatusCode::CREATED;
    respond::insert(response.headers_mut(), header::LOCATION, &context.url(&format!("/users/{}", user.name)));
    response.extensions_mut().insert(note(&user, false));
    Ok(response)
}

/// `GET /users`
pub async fn list(state: Scope, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let caller = state.caller();
    let tenant = (!caller.is_operator()).then(|| &*caller.tenant);
    let users = state.registry.users(tenant);
    let seen = users.iter().filter(|user| super::manages(&state, &user.grant()));
    respond::json("application/json", &UserList { users: seen.map(UserInfo::from).collect() })
}

/// `PATCH /users/{name}`
pub async fn patch(state: Scope, Path(name): Path<String>, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let asked: bodies::UserChange = super::read(&state, &context, body, EXPECTED_CHANGE).await?;
    // Looked up once and passed on: if another caller changes the user meanwhile, its stamp differs and the change is
    // refused.
    let user = find(&state, &name)?;
    let mut change = UserChange { disabled: asked.disabled, ..UserChange::default() };
    if asked.role.is_some() || asked.collections.is_some() {
        let role = asked.role.as_deref().map_or(Ok(user.role), role)?;
        let collections = asked.collections.as_deref().map_or_else(|| Ok(user.collections.clone()), pattern)?;
        let grant = Grant { role, collections };
        may_give(&state, &grant)?;
        change.grant = Some(grant);
    }
    // A new password lets the caller use the user's rights, and so does enabling a user again.
    if change.grant.is_some() || asked.password.is_some() || asked.disabled == Some(false) {
        may_give(&state, &user.grant())?;
    }
    if let Some(password) = &asked.password {
        change.password = Some(hashed(&state, &user.tenant, password).await?);
    }
    // One that is disabled already has no rights to lose.
    let origin = match asked.disabled == Some(true) && !user.disabled {
        true => Origin::revocation(state.caller().is_operator()),
        false => Origin::Administration,
    };
    let change = move |state: &Scope| state.registry.change_user(&user, change);
    let user = super::change_from(&state, origin, change).await?;
    let (by, password) = (&*state.caller().name, asked.password.is_some());
    tracing::info!(by, user = %user.login(), role = %user.role, disabled = user.disabled, password, "user changed");
    let mut response = respond::json("application/json", &UserInfo::from(&user))?;
    response.extensions_mut().insert(note(&user, password));
    Ok(response)
}

/// `DELETE /users/{name}`
pub async fn delete(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let user = find(&state, &name)?;
    let removed = user.clone();
    let remove = move |state: &Scope| state.registry.remove_user(&removed);
    super::change_from(&state, Origin::revocation(state.caller().is_operator()), remove).await?;
    tracing::info!(by = &*state.caller().name, user = %user.login(), "user removed");
    let mut response = respond::no_content();
    response.extensions_mut().insert(AuditDetails { tenant: Some(user.tenant.clone()), ..AuditDetails::default() });
    Ok(response)
}

/// Describes the act for the audit log.
fn note(user: &User, password: bool) -> AuditDetails {
    let state = if user.disabled { ", disabled" } else { "" };
    let secret = if password { ", a new password" } else { "" };
    AuditDetails {
        tenant: Some(user.tenant.clone()),
        target: Some(format!("/users/{}", user.name)),
        change: Some(format!("{} over {}{state}{secret}", user.role, user.collections)),
    }
}

/// Finds a user of the caller's tenant that the caller manages. An operator that names no tenant also finds operators.
fn find(state: &Scope, name: &str) -> Result<Arc<User>> {
    let caller = state.caller();
    let user = state.registry.user(&Login::of(&caller.tenant, name));
    let of_tenant = |user: &Arc<User>| caller.is_operator() || user.tenant == *caller.tenant;
    user.filter(|user| of_tenant(user) && super::manages(state, &user.grant()))
        .ok_or_else(|| Problem::not_found(format!("there is no user {name:?} in the tenant {:?}", &*caller.tenant)))
}

fn role(text: &str) -> Result<Role> {
    text.parse().map_err(Problem::invalid_body)
}

fn pattern(text: &str) -> Result<Pattern> {
    text.parse().map_err(Problem::invalid_body)
}

/// Checks that a caller grants a user no rights beyond its own, and none that outlast its own.
fn may_give(state: &Scope, grant: &Grant) -> Result<()> {
    let caller = state.caller();
    if !caller.grant.may_give(grant) {
        return Err(gives_no_such());
    }
    match caller.gives_until() {
        None => Ok(()),
        Some(end) => {
            let end = time::format_instant(end);
            let detail =
                format!("your token expires at {end}, and the user would outlast it: use one that does not expire");
            Err(Problem::new(Kind::Forbidden, detail))
        }
    }
}

fn gives_no_such() -> Problem {
    Problem::new(Kind::Forbidden, "your role and collections do not include those of the user")
}

/// Hashes a new password for a tenant's user, in the common queue for password work.
async fn hashed(state: &Scope, tenant: &str, text: &str) -> Result<PasswordDigest> {
    let password = Password::chosen(text).map_err(Problem::invalid_body)?;
    let digest = state.passwords.run(tenant, move || password.hash(), |max| overload::passwords(state, max)).await?;
    // The wait for a hash may be long, and the caller's credential may have been revoked meanwhile.
    state.still_valid()?;
    digest.map_err(Problem::internal)
}
