//! The administration of tokens (`tokens.rs`), tenants (`tenants.rs`) and users (`users.rs`).

pub mod tenants;
pub mod tokens;
pub mod users;

use crate::body;
use crate::errors;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::scope::Scope;
use axum::body::Body;
use meridian_admission::identity::Fault;
use meridian_model::policy::access::Grant;
use serde::de::DeserializeOwned;

/// Reads a small JSON body.
async fn read<T: DeserializeOwned + Send + 'static>(
    state: &Scope,
    context: &Context,
    body: Body,
    expected: &str,
) -> Result<T> {
    let received = body::receive(state, &context.headers, body).await?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let read = body::json(state, &context.lease, &received.bytes, deadline).await?;
    read.map_err(|e| Problem::new(Kind::InvalidBody, format!("the body cannot be read ({e}): expected {expected}")))
}

/// Whether the caller manages tokens or users with these rights: an admin manages the rights that it could grant, an operator all.
fn manages(state: &Scope, grant: &Grant) -> bool {
    let caller = state.caller();
    caller.is_operator() || caller.grant.may_give(grant)
}

/// Runs a change of the registry, which syncs files, where blocking is allowed.
async fn change<T: Send + 'static>(
    state: &Scope,
    what: impl FnOnce(&Scope) -> Result<T, Fault> + Send + 'static,
) -> Result<T> {
    state.still_valid()?;
    let state = state.clone();
    tokio::task::spawn_blocking(move || what(&state)).await.map_err(Problem::internal)?.map_err(errors::access_problem)
}
