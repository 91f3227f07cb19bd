//! `/tenants`: operators create, change and remove tenants.

use crate::access::audit::AuditDetails;
use crate::contract::bodies::NewTenant;
use crate::contract::{TenantInfo, TenantList};
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::overload;
use crate::request::quota;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::change_queues::Origin;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use meridian_admission::identity::{DEFAULT_TENANT, Fault, Tenant};
use meridian_backend::{Collection, StoreError};
use meridian_model::Invalid;
use meridian_model::policy::access::Pattern;
use meridian_model::policy::quota::Quota;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Max number of tenants that are removed at a time: each removal occupies a thread.
pub const REMOVALS_MAX: usize = 2;

/// Time within which all servers that share tenants learn of a suspension.
const HEARD: Duration = Duration::from_secs(2);

/// A checked change.
struct Change {
    weight: Option<u32>,
    suspended: Option<bool>,
    anonymous: Option<Option<Pattern>>,
    quotas: Vec<(Quota, Option<u64>)>,
}

const EXPECTED: &str = "an object such as {\"name\":\"harbour\",\"weight\":2}";
const EXPECTED_CHANGE: &str =
    "an object such as {\"suspended\":true} or {\"quotas\":{\"searches\":4,\"streams\":null}}";

impl NewTenant {
    /// Describes the act for the audit log.
    fn note(&self, tenant: &str) -> AuditDetails {
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let mut words = Vec::new();
        words.extend(self.weight.map(|weight| format!("weight {weight}")));
        words.extend(self.suspended.map(|is| if is { "suspended" } else { "not suspended" }.to_owned()));
        words.extend(self.anonymous.clone().map(|pattern| format!("anonymous {}", or_none(pattern))));
        let limit = |limit: &Value| or_none(limit.as_u64().map(|limit| limit.to_string()));
        words.extend(self.quotas.iter().map(|(name, value)| format!("{name} {}", limit(value))));
        let change = (!words.is_empty()).then(|| words.join(", "));
        AuditDetails { tenant: Some(tenant.to_owned()), target: Some(format!("/tenants/{tenant}")), change }
    }

    fn check(&self, tenant: &str) -> Result<Change> {
        if self.weight.is_some_and(|weight| !(1..=1000).contains(&weight)) {
            let wrong = Invalid::field("weight", "a weight is a number from 1 to 1000");
            return Err(Problem::invalid_body(wrong));
        }
        let anonymous = match &self.anonymous {
            None => None,
            Some(None) => Some(None),
            // The tenant of a request comes from its credential, and an anonymous request has none.
            Some(Some(_)) if tenant != DEFAULT_TENANT => {
                let wrong = "requests without a credential are of the tenant default: only it can have this";
                return Err(Problem::invalid_body(Invalid::field("anonymous", wrong)));
            }
            Some(Some(pattern)) => {
                let wrong = |wrong: Invalid| Problem::invalid_body(Invalid::field("anonymous", wrong.detail));
                Some(Some(pattern.parse().map_err(wrong)?))
            }
        };
        let quotas = self.quotas.iter().map(|(name, limit)| Ok((name.parse()?, read_limit(name, limit)?)));
        let quotas = quotas.collect::<Result<_, Invalid>>().map_err(Problem::invalid_body)?;
        Ok(Change { weight: self.weight, suspended: self.suspended, anonymous, quotas })
    }
}

fn read_limit(quota: &str, limit: &Value) -> Result<Option<u64>, Invalid> {
    let expected =
        || Invalid::field("quotas", format!("{quota}: {limit}: expected a whole number, or null for no limit"));
    if limit.is_null() { Ok(None) } else { limit.as_u64().map(Some).ok_or_else(expected) }
}

impl Change {
    fn make(&self, tenant: &mut Tenant) -> Result<(), Invalid> {
        tenant.weight = self.weight.unwrap_or(tenant.weight);
        tenant.suspended = self.suspended.unwrap_or(tenant.suspended);
        if let Some(anonymous) = &self.anonymous {
            tenant.anonymous.clone_from(anonymous);
        }
        self.quotas.iter().try_for_each(|(quota, limit)| tenant.quotas.set(*quota, *limit))
    }
}

/// `POST /tenants`
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let asked: NewTenant = super::read(&state, &context, body, EXPECTED).await?;
    let Some(name) = asked.name.clone() else {
        return Err(Problem::invalid_body(Invalid::field("name", "the tenant needs a name")));
    };
    let mut tenant = Tenant { created: state.now(), ..Tenant::new(&name) };
    asked.check(&name)?.make(&mut tenant).map_err(Problem::invalid_body)?;
    let made = tenant.clone();
    super::change(&state, move |state| state.registry.create_tenant(made)).await?;
    state.share_out();
    tracing::info!(by = &*state.caller().name, tenant = name, "tenant created");
    // A new tenant has no collections. Asking the backend could fail although the tenant exists.
    let mut response = respond::json("application/json", &described(&state, &tenant, Some(&[])))?;
    *response.status_mut() = StatusCode::CREATED;
    response.extensions_mut().insert(asked.note(&name));
    Ok(response)
}

/// `GET /tenants`
pub async fn list(state: Scope, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let (mut tenants, mut away) = (Vec::new(), false);
    for tenant in state.registry.tenants() {
        // After the first failure the owner is not asked again: each further attempt could time out.
        let collections = if away { None } else { collections_of(&state, &tenant.name)? };
        away = collections.is_none();
        tenants.push(described(&state, &tenant, collections.as_deref()));
    }
    respond::json("application/json", &TenantList { tenants })
}

/// `PATCH /tenants/{t}`
pub async fn patch(state: Scope, Path(name): Path<String>, context: Context, body: Body) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let asked: NewTenant = super::read(&state, &context, body, EXPECTED_CHANGE).await?;
    if asked.name.as_ref().is_some_and(|other| *other != name) {
        return Err(Problem::invalid_body(Invalid::field("name", "a tenant keeps its name")));
    }
    let (change, of) = (asked.check(&name)?, name.clone());
    // Before the change, so that a failure has no effect. An unreachable owner alone does not prevent a suspension.
    let collections = collections_of(&state, &name)?;
    let origin = match change.suspended == Some(true) {
        true => Origin::revocation(state.caller().is_operator()),
        false => Origin::Administration,
    };
    let change = move |state: &Scope| state.registry.change_tenant(&of, |tenant| change.make(tenant));
    let tenant = super::change_from(&state, origin, change).await?;
    state.share_out();
    // A new quota applies at once, not from the next round of counting.
    if collections.is_some() {
        quota::count_of(&state, &name);
    }
    if tenant.suspended {
        state.searches.stop_of(&name, false);
    }
    tracing::info!(by = &*state.caller().name, tenant = name, suspended = tenant.suspended, "tenant changed");
    let mut response = respond::json("application/json", &described(&state, &tenant, collections.as_deref()))?;
    response.extensions_mut().insert(asked.note(&name));
    Ok(response)
}

/// `DELETE /tenants/{t}`: removes a suspended tenant with its tokens, its users and all its data.
pub async fn delete(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    Params::parse(context.query.as_deref())?.finish()?;
    let tenant =
        state.registry.tenant(&name).ok_or_else(|| Problem::not_found(format!("there is no tenant {name:?}")))?;
    if name == DEFAULT_TENANT {
        return Err(Problem::new(Kind::Conflict, "the default tenant cannot be removed"));
    }
    // Must be suspended first: nothing may be written during the removal, and a mistaken deletion is noticed before
    // data is gone.
    if !tenant.suspended {
        return Err(Problem::new(Kind::Conflict, format!("the tenant {name:?} is in use: suspend it first")));
    }
    let permit = state.removals.clone().try_acquire_owned().map_err(|_| {
        let detail = format!("{REMOVALS_MAX} tenants are being removed: try again");
        overload::overloaded(&state, detail, REMOVALS_MAX)
    })?;
    // Checked before any of it is removed.
    has_removable(&state, &name)?;
    if state.shares_registry {
        // Other servers learn of a suspension within a second. Whatever they create until then is removed too.
        tokio::time::sleep(HEARD).await;
        is_leaving(&state, &name, tenant.created)?;
        has_removable(&state, &name)?;
    }
    state.searches.stop_of(&name, true);
    // Before the collections: nothing is matched or polled for a tenant that is partly removed.
    state.saved.delete_all(&name).await.map_err(|e| errors::refusal_problem(e, &state))?;
    if state.saved.count(&name) > 0 {
        return Err(Problem::new(Kind::Conflict, "a saved search of the tenant is being created: try again"));
    }
    let (shared, of) = (state.clone(), name.clone());
    let emptied = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        for collection in shared.backend.list(&of).map_err(errors::store_problem)? {
            is_leaving(&shared, &of, tenant.created)?;
            shared.backend.remove(&of, collection.name()).map_err(errors::store_problem)?;
        }
        // A damaged collection may hold events that a repair can recover, so its tenant stays.
        match shared.backend.damaged(&of).map_err(errors::store_problem)?.first() {
            Some(damaged) => Err(errors::damaged_problem(damaged)),
            None => Ok(()),
        }
    });
    emptied.await.map_err(Problem::internal)??;
    let (registry, of) = (state.registry.clone(), name.clone());
    let removed =
        super::in_turn(&state, Origin::Administration, move || registry.remove_tenant(&of, tenant.created)).await?;
    removed.map_err(errors::access_problem)?;
    state.share_out();
    tracing::info!(by = &*state.caller().name, tenant = name, "tenant removed");
    let mut response = respond::no_content();
    response.extensions_mut().insert(AuditDetails { tenant: Some(name), ..AuditDetails::default() });
    Ok(response)
}

/// Checks that the tenant's collections can be removed from here: there are none, or they belong to this server or to a
/// reachable owner.
fn has_removable(state: &Scope, name: &str) -> Result<()> {
    let Some(collections) = collections_of(state, name)? else {
        let detail = "a tenant is removed with its collections, and no server that has them can be reached: try again";
        return Err(Problem::new(Kind::Overloaded, detail));
    };
    let count = collections.len() + state.backend.damaged(name).map_err(errors::store_problem)?.len();
    if !state.backend.follows() || count == 0 {
        return Ok(());
    }
    let detail = format!(
        "the tenant {name:?} is removed with its collections ({count}), which can only be read here: remove it at a \
         gateway, with `meridian tenant delete {name} --url URL`"
    );
    Err(Problem::new(Kind::Conflict, detail))
}

/// Checks that it is still the same tenant and suspended: another server may have resumed it, or created another one of
/// the same name.
fn is_leaving(state: &Scope, name: &str, created: i64) -> Result<()> {
    let now = state.registry.tenant(name);
    match now.is_some_and(|tenant| tenant.suspended && tenant.created == created) {
        true => Ok(()),
        false => Err(errors::access_problem(Fault::Changed("tenant", name.to_owned()))),
    }
}

/// Returns the collections of a tenant; `None` while the server that owns them is unreachable.
fn collections_of(state: &Scope, tenant: &str) -> Result<Option<Vec<Arc<dyn Collection>>>> {
    match state.backend.list(tenant) {
        Ok(collections) => Ok(Some(collections)),
        Err(StoreError::Busy(_)) => Ok(None),
        Err(error) => Err(errors::store_problem(error)),
    }
}

fn described(state: &Scope, tenant: &Tenant, collections: Option<&[Arc<dyn Collection>]>) -> TenantInfo {
    // Only the owner knows what is not flushed yet.
    let counted = collections.filter(|collections| collections.is_empty() || !state.backend.follows());
    TenantInfo {
        name: tenant.name.clone(),
        weight: tenant.weight,
        suspended: tenant.suspended,
        anonymous: tenant.anonymous.as_ref().map(ToString::to_string),
        quotas: tenant.quotas.iter().map(|(quota, limit)| (quota.name(), limit)).collect(),
        collections: collections.map(|collections| collections.len() as u64),
        events: counted.map(|collections| collections.iter().map(|collection| collection.stats().events).sum()),
        bytes: counted.map(quota::stored),
    }
}
