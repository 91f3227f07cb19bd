//! Administration of tokens (`tokens.rs`), tenants (`tenants.rs`) and users (`users.rs`), the audit log of such acts,
//! and signing in.

pub mod audit;
pub mod credentials;
pub mod issuer_files;
pub mod issuers;
pub mod records;
pub mod sign_in;
pub mod tenants;
pub mod tokens;
pub mod users;

use crate::access::credentials::HEARD;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::overload;
use crate::request::scope::Scope;
use crate::state::AppState;
use crate::state::change_queues::{Origin, RUNNING_MAX};
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

/// Returns whether the caller manages tokens or users with these rights. An admin manages the rights that it could
/// grant; an operator manages all.
fn manages(state: &Scope, grant: &Grant) -> bool {
    let caller = state.caller();
    caller.is_operator() || caller.grant.may_give(grant)
}

/// Runs a change of the registry on behalf of a caller.
///
/// # Errors
/// Those of [`in_turn`] and of the change, and 401 if the caller's credential was revoked meanwhile.
pub async fn change<T: Send + 'static>(
    state: &Scope,
    what: impl FnOnce(&Scope) -> Result<T, Fault> + Send + 'static,
) -> Result<T> {
    change_from(state, Origin::Administration, what).await
}

/// Runs a change of the registry on behalf of a caller, in the turn of its origin.
///
/// # Errors
/// The errors of [`change`].
pub async fn change_from<T: Send + 'static>(
    state: &Scope,
    origin: Origin,
    what: impl FnOnce(&Scope) -> Result<T, Fault> + Send + 'static,
) -> Result<T> {
    let scope = state.clone();
    let run = move || {
        // Checked after the wait for its turn.
        scope.still_valid()?;
        what(&scope).map_err(errors::access_problem)
    };
    in_turn(state, origin, run).await?
}

/// Runs a change of the registry where blocking is allowed, since it syncs files or calls a bucket. The registry makes
/// its changes one at a time. A change that waits on a thread takes the thread from all other blocking work, so at most
/// [`RUNNING_MAX`] changes have one, and as many revocations. Others wait for their turn, up to a limit, and sign-ins up
/// to half of it. Revocations and sign-outs wait for each other alone, and a quarter of their places is for operators.
///
/// # Errors
/// 503 if too many wait already, or its turn does not come in time.
pub async fn in_turn<T: Send + 'static>(
    state: &AppState,
    origin: Origin,
    change: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let busy = || {
        let detail = "too many changes of tokens, tenants, users and sessions wait: nothing was done, try again";
        overload::overloaded(state, detail.to_owned(), RUNNING_MAX)
    };
    let turn = state.changes.take(origin, state.config.timeout_default).await.ok_or_else(busy)?;
    let run = move || {
        let done = change();
        // Held until the change ends, even if its client disconnects.
        drop(turn);
        done
    };
    let done = tokio::task::spawn_blocking(run).await.map_err(Problem::internal);
    if state.shares_registry {
        // The client may send its next request to another server, which must have learned of the change by then.
        tokio::time::sleep(HEARD).await;
    }
    done
}
