//! Steps 2 to 4: the host, the route, and the caller with its access.

use super::observation::Observation;
use super::table::Row;
use super::{Entry, arrival, caller, conditions};
use crate::access::audit;
use crate::protocol::media_types;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::dispatch::Arrival;
use crate::request::route::{Access, Action, Resource, Route};
use crate::state::audit_log::Source;
use axum::body::HttpBody;
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use matchit::Params;
use meridian_admission::identity::Caller;
use meridian_backend::Act;

/// All methods of all routes, for `OPTIONS *`.
static METHODS: HeaderValue = HeaderValue::from_static("OPTIONS, GET, HEAD, POST, PUT, PATCH, DELETE");

/// The methods available for collections that another process writes.
static READS: HeaderValue = HeaderValue::from_static("OPTIONS, GET, HEAD");

/// The result of matching a request against the route table.
pub(super) enum RouteMatch<'e, 'p> {
    /// A route, whose handler responds.
    Row { row: &'e Row, caller: Caller, segments: Params<'e, 'p> },
    /// A request for the allowed methods, with the headers of the response.
    Options(HeaderMap),
}

impl Entry {
    /// Finds the route of a request, or the error to respond with. Sets the path number as soon as it is known, so that
    /// metrics of refused requests carry the route.
    pub(super) fn route<'e, 'p, B: HttpBody>(
        &'e self,
        arrival: &Arrival,
        request: &'p Request<B>,
        observation: &mut Observation<'_>,
    ) -> Result<RouteMatch<'e, 'p>> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        // Checked before the path is matched: a foreign host learns nothing, not even which paths exist.
        let admitted = self.guard.admit(method, uri, headers);
        admitted.inspect_err(|why| self.refused(arrival, request, observation.id(), why))?;
        if !request.body().is_end_stream() {
            media_types::transfer_coding(headers)?;
        }
        if *method == Method::OPTIONS && uri.path() == "*" {
            // `*` denotes the server as a whole (RFC 9110, 9.3.7).
            return Ok(RouteMatch::Options(HeaderMap::from_iter([(header::ALLOW, METHODS.clone())])));
        }
        let found = self.table.find(uri.path()).ok_or_else(|| {
            Problem::not_found(format!("there is nothing at {}: see / for the available resources", uri.path()))
        })?;
        observation.path = Some(found.number);
        if *method == Method::OPTIONS {
            // Before the caller is identified: browsers send preflights without a credential.
            return Ok(RouteMatch::Options(self.guard.options(headers, found.allow())));
        }
        let row = found.row(method)?;
        let Some(access) = arrival::access(arrival.peer, row.route) else {
            return Err(Problem::not_found(format!(
                "monitors are not served {}: expected /metrics, /healthz or /readyz",
                uri.path()
            )));
        };
        if *method != Method::GET && !request.body().is_end_stream() {
            let media_types = row.route.body.map_or(&[][..], |body| body.media_types);
            media_types::coding(headers, row.route.body.is_some_and(|body| body.may_be_compressed))?;
            // Any page can make a browser submit a form without a preflight, so its origin must be stated.
            if media_types::check(method, headers, media_types)? == media_types::Sender::MayBeForm {
                let own = self.guard.of_own_page(headers);
                own.inspect_err(|why| self.refused(arrival, request, observation.id(), why))?;
            }
        }
        // Last of the checks and before admission: a caller without access must not take a permit.
        let identify = || caller::identify(&self.state, &self.guard, arrival, access, (method, uri, headers));
        let caller = caller::settled(&self.state, observation.early.take(), access).unwrap_or_else(identify);
        let caller = caller.inspect_err(|why| self.refused(arrival, request, observation.id(), why))?;
        let caller = caller::charged_for(&self.state, row.route, caller);
        if let Err(problem) = caller::allow(&caller, access, &found.segments) {
            if caller.is_anonymous() {
                self.refused(arrival, request, observation.id(), &problem);
                return Err(problem);
            }
            let from = (arrival.client, observation.id());
            // A refused act never reaches its handler, where acts are recorded, so it is recorded here.
            let act = audit::act_of(row.route, &caller, from, (uri.path(), &found.segments));
            if let Some(act) = act {
                let source = Source::of(&caller);
                self.state.audit.refused(source, Act { status: Some(problem.status().as_u16()), ..act });
            }
            return Err(problem);
        }
        self.takes(row.route)?;
        conditions::check(row.route, headers)?;
        audit::admit(&self.state, row.route, &caller, &found.segments)?;
        Ok(RouteMatch::Row { row, caller, segments: found.segments })
    }

    /// Records the attempt of an act by a client that was refused before it was identified.
    fn refused<B>(&self, arrival: &Arrival, request: &Request<B>, id: &str, problem: &Problem) {
        let (Kind::Unauthorized | Kind::CsrfToken | Kind::CrossOrigin) = problem.kind() else { return };
        let (Some(client), path) = (arrival.client, request.uri().path()) else { return };
        let Some(found) = self.table.find(path) else { return };
        let Ok(row) = found.row(request.method()) else { return };
        let nobody = &self.state.callers.nobody;
        let act = audit::act_of(row.route, nobody, (Some(client), id), (path, &found.segments));
        if let Some(act) = act {
            // Of no tenant: nobody knows whose act it would have been.
            let act = Act { tenant: String::new(), status: Some(problem.status().as_u16()), ..act };
            self.state.audit.refused(Source::Unidentified(client), act);
        }
    }

    /// Refuses changes of collections owned by another process: this server shows what the owner has flushed. Tokens,
    /// tenants and users can be changed at any server.
    fn takes(&self, route: &Route) -> Result<()> {
        let Access::Needs(Action::Write | Action::Manage, Resource::Collection | Resource::Places) = route.access
        else {
            return Ok(());
        };
        if !self.state.backend.follows() {
            return Ok(());
        }
        let detail = "this server only reads: send changes of collections and events to a gateway of its cluster";
        Err(Problem::new(Kind::MethodNotAllowed, detail).header(header::ALLOW, READS.clone()))
    }
}
