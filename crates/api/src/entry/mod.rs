//! The one way in: what happens to every request before its handler, in this order.
//!
//! 1. It is observed: counted, timed, named.
//! 2. Its host and origin are checked (`doors`).
//! 3. Its row of the route table is found.
//! 4. Its caller is found, and held against what the row needs. Until there are tenants everybody may do everything.
//! 5. It is admitted: it gets a place to run, as the class of its row has it.
//! 6. The row's handler answers.
//!
//! There is no way past this: the near question, which is worth a shorter one, has a handler that is not boxed.

mod handler;
mod lease;
mod path;
mod route;
mod table;

pub use handler::Handler;
pub use lease::Lease;
pub use path::{Path, Segments, decoded};
pub use route::{Access, Action, Class, Resource, Route, Taken};

use crate::body;
use crate::doors::{Doors, types};
use crate::limiter::{Limiter, Permit};
use crate::places;
use crate::problem::{Problem, Result};
use crate::request::{self, Observation};
use crate::routes::ROUTES;
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use matchit::Params;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use table::{Row, Table};

/// Methods that some route has, for a question about the server as a whole.
static METHODS: HeaderValue = HeaderValue::from_static("OPTIONS, GET, HEAD, POST, PUT, PATCH, DELETE");

/// What every connection needs.
pub struct Entry {
    state: AppState,
    doors: Doors,
    table: Table,
}

/// Where a request came from, and when.
#[derive(Debug, Clone, Copy)]
pub struct Come {
    /// The other end of its connection.
    pub peer: IpAddr,
    /// When its head had been read.
    pub arrived: Instant,
}

/// What is known of a request when its handler gets it.
#[derive(Clone)]
pub struct Entered {
    /// Where it came from, and when.
    pub come: Come,
    /// The variable segments of its path.
    pub segments: Segments,
    /// Its place to run.
    pub lease: Lease,
}

/// Where a request goes.
enum Way<'e, 'p> {
    /// To the handler of a row.
    Row { row: &'e Row, segments: Params<'e, 'p> },
    /// Nowhere: it asks which methods there are.
    Options(HeaderValue),
}

impl Entry {
    /// The way into a server that listens on `listen`.
    pub fn new(state: AppState, listen: SocketAddr) -> io::Result<Entry> {
        let table = Table::new(ROUTES).map_err(io::Error::other)?;
        state.metrics.count_routes(table.paths());
        Ok(Entry { doors: Doors::new(&state.config, listen), table, state })
    }

    /// The server's state.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Answers one request.
    pub async fn answer(&self, peer: IpAddr, request: hyper::Request<Incoming>) -> Response {
        let observation = Observation::begin(&self.state, request.method(), request.uri(), request.headers());
        let is_head = *request.method() == Method::HEAD;
        let come = Come { peer, arrived: observation.arrived };
        let mut path = None;
        let mut response = self.enter(come, request, &mut path).await;
        if is_head {
            leave_out_body(&mut response);
        }
        self.doors.seal(&mut response);
        observation.end(path, response)
    }

    /// The steps. What is rare is boxed: the future of every request has room for all that it may wait for.
    async fn enter(&self, come: Come, request: hyper::Request<Incoming>, path: &mut Option<usize>) -> Response {
        let (row, segments) = match self.way(&request, path) {
            Ok(Way::Row { row, segments }) => (row, segments),
            Ok(Way::Options(allow)) => return (StatusCode::NO_CONTENT, [(header::ALLOW, allow)]).into_response(),
            Err(problem) => return Box::pin(refuse(problem, request)).await,
        };
        let limiter = self.limiter(row.route.class);
        let (permit, waited) = match row.route.class {
            Class::Write | Class::Stream => (None, Duration::ZERO),
            Class::Reserved | Class::Interactive => match limiter.try_admit() {
                Some(permit) => (Some(permit), Duration::ZERO),
                None => match Box::pin(self.wait(limiter, come.arrived, &request)).await {
                    Ok((permit, waited)) => (Some(permit), waited),
                    Err(problem) => return Box::pin(refuse(problem, request)).await,
                },
            },
        };
        let mut response = match &row.handler {
            Handler::Near => {
                let deadline = come.arrived + self.state.config.timeout_default;
                let question = (&segments, request.uri().query());
                places::near(&self.state, question, permit, deadline).await.unwrap_or_else(IntoResponse::into_response)
            }
            Handler::Boxed(handler) => {
                let (segments, lease) = (Segments::of(&segments), Lease::new(limiter.clone(), permit, waited));
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Entered { come, segments, lease: lease.clone() });
                let response = handler(request, self.state.clone()).await;
                // Held until now, also by a handler that does not ask for it.
                drop(lease);
                response
            }
        };
        if row.route.produces.len() > 1 {
            // Another `Accept` may get another answer.
            response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        }
        response
    }

    /// Where a request goes, or why it goes nowhere. `path` becomes the number of its path as soon as that is known.
    fn way<'e, 'p>(&'e self, request: &'p hyper::Request<Incoming>, path: &mut Option<usize>) -> Result<Way<'e, 'p>> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        self.doors.admit(method, uri, headers)?;
        if *method == Method::OPTIONS && uri.path() == "*" {
            // The server as a whole (RFC 9110, 9.3.7).
            return Ok(Way::Options(METHODS.clone()));
        }
        let found = self.table.find(uri.path()).ok_or_else(|| {
            Problem::not_found(format!("there is nothing at {}: see / for what there is", uri.path()))
        })?;
        *path = Some(found.number);
        if *method == Method::OPTIONS {
            // What may be done here, and no more. To a browser that asks for a page of another origin this means no.
            return Ok(Way::Options(found.allow()));
        }
        let row = found.row(method)?;
        if *method != Method::GET && !request.body().is_end_stream() {
            types::check(method, headers, row.route.body.map_or(&[], |body| body.takes))?;
        }
        allow(row.route.access)?;
        Ok(Way::Row { row, segments: found.segments })
    }

    /// Who gives places to a class.
    fn limiter(&self, class: Class) -> &Limiter {
        match class {
            Class::Reserved => &self.state.reserved,
            Class::Interactive | Class::Write | Class::Stream => &self.state.limiter,
        }
    }

    /// Waits for a place; gives the time that this took.
    async fn wait(
        &self,
        limiter: &Limiter,
        arrived: Instant,
        request: &hyper::Request<Incoming>,
    ) -> Result<(Permit, Duration)> {
        let asked = Instant::now();
        let patience = request::patience(request.uri(), request.headers());
        let deadline = arrived + patience.unwrap_or(self.state.config.timeout_default);
        Ok((limiter.admit(deadline).await?, asked.elapsed()))
    }
}

/// Answers a request that goes nowhere. Its body is thrown away, within limits, so that a client that reads only after it has
/// written sees why.
async fn refuse(problem: Problem, request: hyper::Request<Incoming>) -> Response {
    let (parts, body) = request.into_parts();
    body::discard(&parts.headers, &mut Body::new(body)).await;
    problem.into_response()
}

/// Whether the caller may do what a row needs. There is one caller, who may do everything, until there are tenants.
fn allow(access: Access) -> Result<()> {
    match access {
        Access::Open | Access::Needs(..) => Ok(()),
    }
}

/// Takes the body off an answer to HEAD; its length stays.
fn leave_out_body(response: &mut Response) {
    let length = response.body().size_hint().exact().filter(|length| *length > 0);
    if let Some(length) = length {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    *response.body_mut() = Body::empty();
}
