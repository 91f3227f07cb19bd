//! A row of the route table: its handler, the access it requires, its admission class, and its description.

mod handler;

pub use handler::{BoxedHandler, Handler, ResponseFuture};

use axum::http::Method;
pub use meridian_model::policy::access::Action;

/// The access that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// None: open to every client that reaches the server.
    Open,
    /// A right to perform an action on a resource.
    Needs(Action, Resource),
}

/// The name of the collection of the places profile.
pub const PLACES: &str = "places";

/// The object of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The collection named in the path.
    Collection,
    /// The collection of the places profile.
    Places,
    /// The list of collections.
    Collections,
    /// A running search.
    Search,
    /// A saved search.
    SavedSearch,
    /// The tokens of the tenant.
    Tokens,
    /// The audit log.
    Audit,
    /// The server itself, for its operators.
    Server,
}

/// How a request is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// By separate permits, so that an overloaded server can still be monitored. Callers of a tenant have none of them,
    /// except on open routes.
    Reserved,
    /// By a permit before anything else is done.
    Interactive,
    /// By a permit once the body has arrived and there is room for it: a slow sender holds none.
    Write,
    /// By no permit before its handler runs: it lasts long and mostly waits. The handler limits what it uses:
    /// - The stream of a collection takes a permit for each read, with none in between.
    /// - The packets of a search or saved search were computed before, and take no permit. Each of their readers holds
    ///   one packet besides the outbox. The number of open ones and of streams of collections is limited
    ///   (`streams_max`).
    /// - The callback of a sign-in waits for its issuer, by one of a few permits for each issuer (`state::exchanges`).
    ///   Its session then waits for a place among the registry's changes (`access::in_turn`).
    Stream,
    /// By a place in the bounded queues of password checks and of the registry's changes (`access::in_turn`). A removal
    /// of a tenant also needs one of its own few permits. Such a request waits for a sync, for files or for another
    /// server, and computes little else. A permit to run held meanwhile would keep a processor idle, and reserved ones
    /// would be open to clients without a credential.
    Registry,
}

/// The request body that a route accepts.
#[derive(Debug, Clone, Copy)]
pub struct RequestBody {
    /// A sentence that describes it.
    pub description: &'static str,
    /// Media types and the component that describes each; empty if no schema describes it.
    pub media_types: &'static [(&'static str, &'static str)],
    /// Max bytes; the server's own limit applies as well.
    pub bytes_max: usize,
    /// Whether it may be compressed.
    pub may_be_compressed: bool,
}

/// Max bytes of a document with instructions.
const SMALL_BODY_BYTES: usize = 64 << 10;

impl RequestBody {
    /// Returns a body of events, as large as the server accepts at all.
    pub const fn of_events(description: &'static str, media_types: &'static [(&'static str, &'static str)]) -> Self {
        RequestBody { description, media_types, bytes_max: usize::MAX, may_be_compressed: true }
    }

    /// Returns a small document with instructions: it is kept in memory and quoted in refusals.
    pub const fn small(description: &'static str, media_types: &'static [(&'static str, &'static str)]) -> Self {
        RequestBody { description, media_types, bytes_max: SMALL_BODY_BYTES, may_be_compressed: false }
    }

    /// Returns the same body, which is always sent plain.
    pub const fn plain(self) -> Self {
        RequestBody { may_be_compressed: false, ..self }
    }
}

impl Route {
    /// Returns whether its requests can be repeated: they change and begin nothing.
    pub fn is_repeatable(&self) -> bool {
        self.method == Method::GET
    }

    /// Returns whether its request bodies are small documents, if it has any.
    pub fn has_small_body(&self) -> bool {
        self.body.is_none_or(|body| body.bytes_max <= SMALL_BODY_BYTES)
    }

    /// Returns whether it administers the server or its callers: this must work even if a tenant uses all that it may.
    pub fn is_administration(&self) -> bool {
        matches!(self.class, Class::Reserved)
            || matches!(self.access, Access::Needs(_, Resource::Server | Resource::Tokens | Resource::Audit))
    }
}

/// One row.
pub struct Route {
    /// Its method; GET includes HEAD.
    pub method: Method,
    /// Its path, with variable segments in braces.
    pub path: &'static str,
    /// The access it requires.
    pub access: Access,
    /// How its requests are admitted.
    pub class: Class,
    /// Constructs its handler.
    pub handler: fn() -> Handler,
    /// Unique name: the `operationId` of the OpenAPI description.
    pub id: &'static str,
    /// One of [`crate::routes::TAGS`].
    pub tag: &'static str,
    /// Its one-line summary.
    pub summary: &'static str,
    /// Components of query and header parameters.
    pub parameters: &'static [&'static str],
    /// The request body it accepts.
    pub body: Option<RequestBody>,
    /// Status code of success.
    pub status: u16,
    /// Description of the success response.
    pub answer: &'static str,
    /// Media types of the response and the component that describes each.
    pub produces: &'static [(&'static str, &'static str)],
}
