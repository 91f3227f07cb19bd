//! The scope of a request: the server as seen by its caller.

use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::dispatch::CHALLENGE;
use crate::request::dispatch::Dispatch;
use crate::request::errors;
use crate::request::quota;
use crate::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use meridian_admission::ByteBudget;
use meridian_admission::identity::Caller;
use meridian_backend::{Collection, View};
use std::ops::Deref;
use std::sync::Arc;

/// The server's state with one caller's view. A handler reaches collections only through it.
#[derive(Clone)]
pub struct Scope {
    state: AppState,
    view: View,
    is_administration: bool,
    body_bytes_max: usize,
}

impl Scope {
    /// Creates the scope of a caller, for a request without a body.
    pub fn new(state: AppState, caller: Caller) -> Scope {
        let view = View::new(state.backend.clone(), caller);
        Scope { state, view, is_administration: false, body_bytes_max: 0 }
    }

    /// Checks the credential again after something that takes time: it may have been revoked meanwhile.
    ///
    /// # Errors
    /// 401
    pub fn still_valid(&self) -> Result<()> {
        match self.state.is_void(self.caller()) {
            true => Err(Problem::new(Kind::Unauthorized, "the credential was revoked or has expired meanwhile")
                .header(header::WWW_AUTHENTICATE, CHALLENGE.clone())),
            false => Ok(()),
        }
    }

    /// Checks again, after the body has arrived, that the tenant may write events.
    ///
    /// # Errors
    /// 429 with the quota that is used up.
    pub fn may_write(&self) -> Result<()> {
        self.caller().ledger.check_write().map_err(|exceeded| quota::exceeded(&self.state, exceeded))
    }

    /// Returns the server's state, without a caller.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Returns the max bytes of the request's body, as set by its route.
    pub fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    /// Returns the memory for request bodies, as seen by the caller's tenant; for an operator who administers the
    /// server, that of administration.
    pub fn bodies(&self) -> ByteBudget {
        match self.is_administration {
            true => self.state.administration.clone(),
            false => self.state.bodies.of(&self.caller().tenant),
        }
    }

    /// Returns the memory for events being read from bodies, as seen by the caller's tenant.
    pub fn batches(&self) -> ByteBudget {
        self.state.batches.of(&self.caller().tenant)
    }

    /// Returns the memory for responses, as seen by the caller's tenant.
    pub fn answers(&self) -> ByteBudget {
        self.state.answers.of(&self.caller().tenant)
    }

    /// Returns the memory for the conditions of streams, as seen by the caller's tenant.
    pub fn conditions(&self) -> ByteBudget {
        self.state.conditions.of(&self.caller().tenant)
    }

    /// Returns the caller's view of the collections.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        self.view.caller()
    }

    /// Returns whether a program needs a token to read what the caller reads.
    pub fn asks_for_tokens(&self) -> bool {
        !self.state.registry.is_empty() && !self.caller().is_anonymous()
    }

    /// Returns the collection with this name.
    ///
    /// # Errors
    /// 503 if it is damaged, 404 if the caller sees none.
    pub fn collection(&self, name: &str) -> Result<Arc<dyn Collection>> {
        self.view.existing(name).map_err(errors::store_problem)?.ok_or_else(|| no_collection(name))
    }
}

/// Returns the problem for a collection that is absent, or that the caller may not see.
pub fn no_collection(name: &str) -> Problem {
    Problem::not_found(format!("there is no collection {name:?}"))
}

impl Deref for Scope {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.state
    }
}

impl FromRequestParts<AppState> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        // Set by the entry point once the caller's access to the route is checked.
        match parts.extensions.get::<Dispatch>() {
            Some(dispatch) => Ok(Scope {
                is_administration: dispatch.is_administration,
                body_bytes_max: dispatch.body_bytes_max,
                ..Scope::new(state.clone(), dispatch.caller.clone())
            }),
            None => Err(Problem::internal("a request that did not pass the entry point")),
        }
    }
}
