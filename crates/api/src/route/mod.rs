//! A row of the route table: its handler, the access it needs, its admission class, and its description.

mod handler;

pub use handler::{Handler, ResponseFuture};

use axum::http::Method;
pub use meridian_model::policy::access::Action;

/// The access that a route needs of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// None: open to every client that reaches the server.
    Open,
    /// A right to do something to something.
    Needs(Action, Resource),
}

/// The object of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The collection that the path names.
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
    /// The record of administrative acts.
    Audit,
    /// The server itself, for its operators.
    Server,
}

/// How a request is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// By separate permits, so that an overloaded server can still be monitored.
    Reserved,
    /// By a permit before anything else is done.
    Interactive,
    /// By a permit once the body has arrived and there is room for it: a slow sender holds none.
    Write,
    /// By a permit for each read, with none in between. The number of open streams has its own bound.
    Stream,
}

/// The request body that a route takes.
#[derive(Debug, Clone, Copy)]
pub struct RequestBody {
    /// A sentence.
    pub description: &'static str,
    /// Media types and the component that describes each; empty where no schema describes it.
    pub media_types: &'static [(&'static str, &'static str)],
    /// Max bytes; the server's own limit holds as well.
    pub bytes_max: usize,
}

impl RequestBody {
    /// Events: as large as the server takes any body.
    pub const fn of_events(description: &'static str, media_types: &'static [(&'static str, &'static str)]) -> Self {
        RequestBody { description, media_types, bytes_max: usize::MAX }
    }

    /// A document that says what to do: it is kept in memory and quoted in refusals, so it must not be large.
    pub const fn small(description: &'static str, media_types: &'static [(&'static str, &'static str)]) -> Self {
        RequestBody { description, media_types, bytes_max: 64 << 10 }
    }
}

/// One row.
pub struct Route {
    /// Its method; GET includes HEAD.
    pub method: Method,
    /// Its path, with variable segments in braces.
    pub path: &'static str,
    /// The access it needs of its caller.
    pub access: Access,
    /// How its requests are admitted.
    pub class: Class,
    /// Its handler.
    pub handler: fn() -> Handler,
    /// Unique name: the `operationId` of the OpenAPI description.
    pub id: &'static str,
    /// One of [`crate::routes::TAGS`].
    pub tag: &'static str,
    /// Its summary, in a line.
    pub summary: &'static str,
    /// Components of query and header parameters.
    pub parameters: &'static [&'static str],
    /// The request body it takes.
    pub body: Option<RequestBody>,
    /// Status code of success.
    pub status: u16,
    /// The meaning of success.
    pub answer: &'static str,
    /// Media types of the response and the component that describes each.
    pub produces: &'static [(&'static str, &'static str)],
}
