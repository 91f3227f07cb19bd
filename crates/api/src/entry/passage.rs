//! A request that passed the checks of access: what its admission, its handler and its response need of it.

use super::coding::Accepted;
use super::guard::Guard;
use super::table::Row;
use crate::protocol::fields;
use crate::request::context;
use crate::request::dispatch::Arrival;
use crate::request::route::{Access, Class};
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName, Method, Request, Version};
use meridian_admission::ByteBudget;
use meridian_admission::gate::{self, Account, Gate};
use meridian_admission::identity::Caller;

/// The priority of a request (RFC 9218).
static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// A request of a known caller, with its route.
pub(super) struct Passage<'e> {
    pub row: &'e Row,
    pub arrival: Arrival,
    pub caller: Caller,
    /// Version of HTTP for a response with a body; `None` for HEAD.
    pub version: Option<Version>,
    /// The codings that the client accepts. Empty for a relayed request: the relaying gateway compresses.
    pub accepted: Accepted,
    /// The class that the caller asks for, and may lower.
    class: gate::Class,
}

impl<'e> Passage<'e> {
    /// Reads what the head of a request says of its response and priority.
    pub fn of<B>(
        row: &'e Row,
        arrival: Arrival,
        caller: Caller,
        request: &Request<B>,
        (state, guard): (&AppState, &Guard),
    ) -> Passage<'e> {
        let headers = request.headers();
        let accepts = state.config.compress && arrival.relayed.is_none();
        Passage {
            row,
            version: (request.method() != Method::HEAD).then_some(request.version()),
            accepted: if accepts { Accepted::of(headers, guard) } else { Accepted::default() },
            class: priority(headers),
            arrival,
            caller,
        }
    }

    /// Returns whether another gateway of the cluster relayed the request.
    pub fn is_relayed(&self) -> bool {
        self.arrival.relayed.is_some()
    }

    /// Returns whether an operator administers the server with it.
    pub fn is_administration(&self) -> bool {
        self.row.route.is_administration() && self.caller.is_operator()
    }

    /// Returns the account that its work is charged to. Built where it is used, because copies change a reference count
    /// on which all threads contend.
    pub fn account(&self) -> Account {
        Account {
            ledger: self.caller.ledger.clone(),
            class: self.class,
            is_write: self.row.route.class == Class::Write,
        }
    }

    /// Returns the memory that its response is charged to.
    pub fn answers(&self, state: &AppState) -> ByteBudget {
        match self.is_administration() {
            true => state.administration.clone(),
            false => state.answers.of(&self.caller.tenant),
        }
    }

    /// Returns the gate that admits it.
    pub fn gate<'a>(&self, state: &'a AppState) -> &'a Gate {
        match self.row.route.class {
            // Lists of tokens and users that a tenant reads are its requests like any other.
            Class::Reserved if self.row.route.access == Access::Open || self.caller.is_operator() => &state.reserved,
            // One gate for all of them: separate gates would each fill the processors.
            Class::Reserved | Class::Interactive | Class::Write | Class::Stream | Class::Registry => &state.gate,
        }
    }
}

fn priority(headers: &HeaderMap) -> gate::Class {
    fields::first(headers, &PRIORITY).map_or(gate::Class::Interactive, context::class_of)
}
