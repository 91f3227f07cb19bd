//! A row of the route table: what it answers, what it needs, what it costs, and how it is described.

use super::handler::Handler;
use axum::http::Method;

/// What a route needs of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing: what anybody may see who reaches the server.
    Open,
    /// A right to do something to something.
    Needs(Action, Resource),
}

/// What a caller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Looks at data.
    Read,
    /// Adds, changes or deletes data.
    Write,
    /// Makes, changes or removes what holds data.
    Manage,
}

/// What is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The collection that the path names, or every collection where it names none.
    Collection,
    /// A search at work.
    Search,
    /// A saved search.
    SavedSearch,
    /// The server as its operators see it.
    Server,
}

/// How a request comes to its place to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Places of its own, so that an overloaded server can still be watched.
    Reserved,
    /// A place before anything is done.
    Interactive,
    /// A place once the body has arrived and there is room for it: a slow sender holds none.
    Write,
    /// No place between two looks; the streams open at once have a bound of their own.
    Stream,
}

/// What a route takes.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// A sentence.
    pub description: &'static str,
    /// Media types and the component that describes each; empty where a schema says nothing.
    pub takes: &'static [(&'static str, &'static str)],
}

/// One row.
pub struct Route {
    /// Its method; GET stands for HEAD too.
    pub method: Method,
    /// Its path, with variable segments in braces.
    pub path: &'static str,
    /// What it needs of its caller.
    pub access: Access,
    /// How it comes to its place to run.
    pub class: Class,
    /// What answers it.
    pub handler: fn() -> Handler,
    /// Unique name, `operationId` of the description.
    pub id: &'static str,
    /// One of [`crate::routes::TAGS`].
    pub tag: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Components of query and header parameters.
    pub parameters: &'static [&'static str],
    /// What it takes.
    pub body: Option<Taken>,
    /// Status of success.
    pub status: u16,
    /// What success means.
    pub answer: &'static str,
    /// Media types of the answer and the component that describes each.
    pub produces: &'static [(&'static str, &'static str)],
}
