//! The administration of tokens (`tokens.rs`) and tenants (`tenants.rs`).

pub mod tenants;
pub mod tokens;

use crate::body;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::scope::Scope;
use axum::body::Body;
use meridian_admission::identity::Fault;
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

/// Runs a change of the registry, which syncs files, where blocking is allowed.
async fn change<T: Send + 'static>(
    state: &Scope,
    what: impl FnOnce(&Scope) -> Result<T, Fault> + Send + 'static,
) -> Result<T> {
    state.still_valid()?;
    let state = state.clone();
    tokio::task::spawn_blocking(move || what(&state)).await.map_err(Problem::internal)?.map_err(problem)
}

fn problem(fault: Fault) -> Problem {
    match fault {
        Fault::Invalid(invalid) => Problem::invalid_body(invalid),
        Fault::Absent => Problem::not_found("there is none of this name"),
        Fault::Exists => Problem::new(Kind::Conflict, "there is one of this name already"),
        Fault::Vault(why) => {
            tracing::error!(%why, "tokens and tenants could not be written");
            Problem::new(Kind::StorageUnavailable, "tokens and tenants cannot be written now")
        }
    }
}
