//! The single entry point: the steps that every request passes before its handler, in this order.
//!
//! 1. It is observed: counted, timed and given an id. Its client is determined, possibly from proxies' headers
//!    (`request/dispatch/forwarded.rs`).
//! 2. Its host and origin are checked (`guard`).
//! 3. Its route is found in the route table.
//! 4. Its caller is identified, and checked against the access that the route requires (`caller.rs`).
//! 5. The quotas of its tenant are checked (`request/quota.rs`).
//! 6. It is admitted as the class of its route specifies: most get a permit to run.
//! 7. The route's handler responds, or another gateway of the cluster does (`searches/relay`). An administrative act is
//!    recorded before and after (`access/audit`).
//!
//! No request over HTTP bypasses these steps. A call over Arrow Flight passes step 2 and the identification of step 4
//! ([`Entry::caller`]), then becomes requests that pass all; one that becomes none passes the observation of step 1.
//! The handler of the near query is not boxed, since that query is cheap enough for a box to matter.

mod arrival;
mod browser;
mod caching;
mod caller;
mod coding;
mod conditions;
pub mod guard;
mod matching;
mod observation;
mod outgoing;
mod passage;
mod table;
mod tracked;
mod unauthorized;
mod unread;

#[cfg(feature = "flight")]
pub use caller::may_write;
pub use coding::Accepted;
pub use conditions::Conditions;
use matching::RouteMatch;
use passage::Passage;

use crate::access::audit;
use crate::collections::places;
use crate::entry::guard::Guard;
use crate::protocol::fields;
use crate::protocol::problem::Result;
use crate::protocol::tags;
use crate::request::context;
use crate::request::dispatch::{Arrival, Connection, Dispatch, Lease, Segments};
use crate::request::overload;
use crate::request::quota;
use crate::request::route::{BoxedHandler, Class, Handler, ResponseFuture};
use crate::response::whole::{self, Refusal};
use crate::routes::ROUTES;
use crate::searches::relay::{self, Responder};
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use meridian_admission::gate::{Account, Gate, Permit};
#[cfg(feature = "flight")]
use meridian_admission::identity::Caller;
use meridian_admission::{ByteBudget, RequestPermit};
use meridian_backend::Act;
use meridian_observe::{self as observe, Stage};
use observation::Observation;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
pub use table::Row;
use table::Table;
use tokio::time::{Duration, Instant};

/// The entry point, shared by all connections.
pub struct Entry {
    state: AppState,
    guard: Guard,
    table: Table,
}

/// What a boxed handler is called with, besides its request.
struct Call {
    /// The administrative act that is recorded.
    act: Option<Act>,
    /// The gateway that answers instead of the handler.
    elsewhere: Option<Responder>,
    id: Arc<str>,
    segments: Segments,
    lease: Lease,
}

/// The body of an incoming request, over either HTTP version.
pub trait Incoming: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static {}

impl<B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static> Incoming for B {}

impl Entry {
    /// Creates the entry point of a server that listens on `listen`.
    pub fn new(state: AppState, listen: SocketAddr) -> io::Result<Entry> {
        let table = Table::new(ROUTES).map_err(io::Error::other)?;
        state.metrics.count_routes(table.paths());
        Ok(Entry { guard: Guard::new(&state.config, listen), table, state })
    }

    /// Returns the server's state.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Responds to one request.
    pub async fn answer<B: Incoming>(&self, connection: Connection, request: Request<B>) -> Response {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        // The connection's own value, for refusals before a proxy's headers are read.
        let (is_head, mut secure) = (*method == Method::HEAD, connection.secure);
        let version = (!is_head).then_some(request.version());
        // For a relayed request, the gateway that relayed it renders the page.
        let by_page = !fields::has(headers, &relay::HEADER) && browser::reads_problems_as_pages(method, uri, headers);
        let at = Instant::now();
        let page = self.guard.foreign_page(headers).cloned();
        let arrival = self.arrival(connection, at, headers);
        // Evaluated only if the request names a trace. Unknown senders must not use up the rate reserved for callers'
        // traces.
        let mut early = None;
        let identify = |from: &Arrival| caller::identify_early(&self.state, &self.guard, from, (method, uri, headers));
        let is_known = || {
            early = arrival.as_ref().ok().map(identify);
            early.as_ref().is_some_and(caller::is_known)
        };
        let (mut observation, current) = Observation::begin(&self.state, at, (method, uri, headers), is_known);
        // The page of an error shows its viewer, as all pages do.
        if by_page && early.is_none() && self.guard.admit(method, uri, headers).is_ok() {
            early = arrival.as_ref().ok().map(identify);
        }
        let viewer = early.as_ref().filter(|_| by_page).and_then(|early| early.as_ref().ok().cloned());
        let mut response = match arrival {
            Ok(arrival) => {
                (observation.client, secure) = (arrival.client, arrival.secure);
                observation.early = early;
                // Pinned here and passed by reference: a future passed by value is copied, and this one is large.
                let work = pin!(self.dispatch(arrival, request, &mut observation));
                observe::within(current, work).await
            }
            Err(problem) => Box::pin(self.refuse(problem.into_response(), request)).await,
        };
        // Applies to refusals by any step.
        if by_page {
            response = Box::pin(browser::shown(response, observation.id(), &self.state, viewer)).await;
            // A page has other bytes than the problem that it shows. Its caller may be unknown.
            if response.status() >= StatusCode::BAD_REQUEST {
                response = self.held(response, version, Refusal::Excluded, || self.state.answers.clone());
            }
        }
        // After the handler, which treats HEAD like GET, so that headers, lengths and errors are the same by
        // construction.
        if is_head {
            remove_body(&mut response);
        }
        // Applies to refusals as well: security headers must not depend on the path taken.
        self.guard.seal(&mut response, secure);
        self.guard.share(response.headers_mut(), page);
        observation.end(&mut response);
        response
    }

    /// Identifies the caller of a Flight call before it becomes requests. The caller is identified again with each of
    /// these.
    ///
    /// # Errors
    /// Those of steps 2 and 4, as for a route that requires a credential.
    #[cfg(feature = "flight")]
    pub fn caller(&self, connection: Connection, head: (&Method, &Uri, &HeaderMap)) -> Result<Caller> {
        let (method, uri, headers) = head;
        self.guard.admit(method, uri, headers)?;
        let arrival = self.arrival(connection, Instant::now(), headers)?;
        caller::identify_early(&self.state, &self.guard, &arrival, head)
    }

    /// Observes a Flight call that became no request, with its status over HTTP. It is observed at its end, since only
    /// then is it known that it became none.
    #[cfg(feature = "flight")]
    pub fn observe_call(
        &self,
        connection: Connection,
        at: Instant,
        head: (&Method, &Uri, &HeaderMap),
        status: StatusCode,
        response: &mut Response,
    ) {
        let arrival = self.arrival(connection, at, head.2).ok();
        let identify = |from| caller::identify_early(&self.state, &self.guard, from, head);
        let is_known = || arrival.as_ref().map(identify).is_some_and(|early| caller::is_known(&early));
        let (mut observation, _) = Observation::begin(&self.state, at, head, is_known);
        observation.client = arrival.as_ref().and_then(|arrival| arrival.client);
        let own = std::mem::replace(response.status_mut(), status);
        observation.end(response);
        *response.status_mut() = own;
    }

    /// Performs steps 2 to 7. Rare futures are boxed, since every request's future reserves room for everything that it
    /// may await.
    async fn dispatch<B: Incoming>(
        &self,
        arrival: Arrival,
        request: Request<B>,
        observation: &mut Observation<'_>,
    ) -> Response {
        let access = observe::span("access");
        let (row, caller, segments) = match self.route(&arrival, &request, observation) {
            Ok(RouteMatch::Row { row, caller, segments }) => (row, caller, segments),
            Ok(RouteMatch::Options(allowed)) => return (StatusCode::NO_CONTENT, allowed).into_response(),
            Err(problem) => {
                let (method, uri, headers) = (request.method(), request.uri(), request.headers());
                let response = unauthorized::respond(problem, &self.state, method, uri, headers);
                return Box::pin(self.refuse(response, request)).await;
            }
        };
        let passage = Passage::of(row, arrival, caller, &request, (&self.state, &self.guard));
        let place = match self.enter(&passage) {
            Ok(place) => place,
            Err(problem) => return Box::pin(self.refuse(problem.into_response(), request)).await,
        };
        // Ends the span here: admission and handler have their own.
        drop(access);
        // The near query is not tracked beyond its own span: tracking would cost as much as the query.
        let mut tracked = match &row.handler {
            Handler::Near => None,
            Handler::Boxed(_) => Some(observation.track(row, &passage.caller, request.uri())),
        };
        let shown = caching::shows_credential(request.headers());
        // After the quotas: a request beyond its own tenant's quota must not use the shared queue.
        let permit = match self.permit(&passage, request.uri(), request.headers()).await {
            Ok(permit) => permit,
            Err(problem) => {
                tracked.iter_mut().for_each(|tracked| tracked.set_status(problem.status()));
                return Box::pin(self.refuse(problem.into_response(), request)).await;
            }
        };
        let mut response = match &row.handler {
            Handler::Near => {
                let deadline = passage.arrival.at + self.state.config.timeout_default;
                let question = (&segments, request.uri().query());
                let response = places::near(&self.state, &passage.caller, question, permit, deadline).await;
                let response = response.unwrap_or_else(IntoResponse::into_response);
                let response = self.held(response, passage.version, Refusal::Allowed, || passage.answers(&self.state));
                let response = self.encoded(response, &passage).await;
                outgoing::charged(response, &passage.caller, place, &self.state, None)
            }
            Handler::Boxed(handler) => {
                let from = (passage.arrival.client, observation.id());
                let call = Call {
                    act: audit::act_of(row.route, &passage.caller, from, (request.uri().path(), &segments)),
                    elsewhere: relay::elsewhere(&self.state, row.route, &segments, passage.is_relayed()),
                    id: observation.id().into(),
                    segments: Segments::of(&segments),
                    lease: Lease::new(passage.gate(&self.state).clone(), passage.account(), permit),
                };
                let mut response = self.call(handler, &passage, call, request).await;
                if let Some(tracked) = &mut tracked {
                    tracked.set_head(&mut response);
                }
                if passage.is_relayed() {
                    return response;
                }
                let response = self.encoded(response, &passage).await;
                outgoing::charged(response, &passage.caller, place, &self.state, tracked)
            }
        };
        let by_coding = self.state.config.compress && coding::is_negotiated(response.headers());
        caching::mark(response.headers_mut(), shown, row.route.produces.len() > 1, by_coding);
        response
    }

    /// Checks the quotas of the tenant. Returns the place that the request takes among them.
    fn enter<'p>(&self, passage: &'p Passage<'_>) -> Result<Option<RequestPermit<'p>>> {
        // The gateway that relayed it has already counted it.
        match passage.is_relayed() {
            true => Ok(None),
            false => quota::enter(&self.state, passage.row.route, &passage.caller, passage.arrival.at),
        }
    }

    /// Admits the request: returns its permit to run, if its class takes one here.
    async fn permit(&self, passage: &Passage<'_>, uri: &Uri, headers: &HeaderMap) -> Result<Option<Permit>> {
        match passage.row.route.class {
            // A write takes a permit once its body has arrived, and a stream of events takes one for each read. The
            // others have limits of their own instead.
            Class::Write | Class::Stream | Class::Registry => return Ok(None),
            Class::Reserved | Class::Interactive => {}
        }
        let _admission = observe::stage(Stage::Admission);
        let gate = passage.gate(&self.state);
        // The common case does not await: the total latency of the near query is a few microseconds.
        if let Some(permit) = gate.try_enter(passage.account()) {
            return Ok(Some(permit));
        }
        // Parsed only when the request waits; the handler reports an invalid value.
        let timeout = context::requested_timeout(uri, headers);
        Box::pin(self.wait(gate, passage.account(), passage.arrival.at, timeout)).await.map(Some)
    }

    /// Calls a boxed handler, or another gateway of the cluster. Returns the response as the conditions of the request
    /// leave it, charged to the memory for responses.
    async fn call<B: Incoming>(
        &self,
        handler: &BoxedHandler,
        passage: &Passage<'_>,
        call: Call,
        request: Request<B>,
    ) -> Response {
        let Call { act, elsewhere, id, segments, lease } = call;
        lease.hold();
        let route = passage.row.route;
        // A refusal would deny a change that was made.
        let refusal = if route.is_repeatable() { Refusal::Allowed } else { Refusal::Excluded };
        let conditions = Conditions::of(request.method(), request.headers());
        let (head, body) = request.into_parts();
        let target = head.uri.clone();
        let (body, rest) = unread::lend(&head.headers, Body::new(body));
        let mut request = Request::from_parts(head, body);
        request.extensions_mut().insert(Dispatch {
            arrival: passage.arrival.clone(),
            id,
            caller: passage.caller.clone(),
            segments,
            lease: lease.clone(),
            // Not the list of a backup, which may be larger than this memory.
            is_administration: passage.is_administration() && route.has_small_body(),
            body_bytes_max: route.body.map_or(0, |body| body.bytes_max).min(self.state.config.body_bytes_max),
        });
        let handled: ResponseFuture = match elsewhere {
            None => handler(request, self.state.clone()),
            Some(of) => Box::pin(relay::answer(self.state.clone(), request, of)),
        };
        let mut response = match act {
            Some(act) => Box::pin(audit::recorded(self.state.clone(), act, handled)).await,
            None => handled.await,
        };
        // Held until here even if the handler does not take the permit.
        drop(lease);
        tags::of_target(response.headers_mut(), &target);
        if let Some(conditions) = conditions {
            response = Box::pin(conditions.apply(response, &passage.accepted)).await;
        }
        // After the conditions: a body that the client has is not sent.
        response = self.held(response, passage.version, refusal, || passage.answers(&self.state));
        if let Some(rest) = rest {
            Box::pin(rest.settle(&mut response)).await;
        }
        response
    }

    /// Encodes the response with the coding that its client prefers.
    async fn encoded(&self, response: Response, passage: &Passage<'_>) -> Response {
        let Some(coding) = coding::chosen(&response, &passage.accepted) else { return response };
        let encoding = coding::apply(response, coding, &passage.accepted, &passage.caller, &self.state);
        let response = Box::pin(encoding).await;
        // It takes less than before.
        self.held(response, passage.version, Refusal::Excluded, || passage.answers(&self.state))
    }

    /// Charges a complete response to the memory for responses, until its client has received it.
    fn held(
        &self,
        response: Response,
        version: Option<Version>,
        refusal: Refusal,
        answers: impl Fn() -> ByteBudget,
    ) -> Response {
        match version {
            Some(version) => whole::charged(response, version, refusal, answers, &self.state),
            None => response,
        }
    }

    /// Ends a request with a response, without reading its body.
    async fn refuse<B: Incoming>(&self, mut response: Response, request: Request<B>) -> Response {
        let (parts, body) = request.into_parts();
        unread::refuse(&parts.headers, Body::new(body), &mut response).await;
        let version = (parts.method != Method::HEAD).then_some(parts.version);
        // Of the server itself: the caller may be unknown.
        self.held(response, version, Refusal::Excluded, || self.state.answers.clone())
    }

    /// Waits for a permit.
    async fn wait(&self, gate: &Gate, account: Account, at: Instant, timeout: Option<Duration>) -> Result<Permit> {
        let deadline = at + timeout.unwrap_or(self.state.config.timeout_default);
        let permit = gate.enter(&account, deadline).await;
        permit.map_err(|refusal| overload::refused(&self.state, refusal, gate.counts().slots))
    }
}

/// Removes the body of a response to HEAD; its length stays.
fn remove_body(response: &mut Response) {
    // A streamed body has no exact length; HEAD then reports none, as GET does.
    let length = response.body().size_hint().exact().filter(|length| *length > 0);
    if let Some(length) = length {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    *response.body_mut() = Body::empty();
}
