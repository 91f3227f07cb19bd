//! Arrow Flight: a second protocol for the data served over HTTP.
//!
//! Each call becomes a request for a route of the route table, and passes the entry point like any other. Callers,
//! access, quotas, admission, deadlines, audit, metrics and log lines are therefore the same as for HTTP. The response
//! becomes Flight messages: its Arrow stream is split into messages, and a problem becomes a status. A call that
//! becomes no request is observed itself, as a request without a route.
//!
//! - `GetFlightInfo`, `GetSchema`: a question (`question.rs`) becomes a request for a description of its answer, with
//!   signed tickets (`ticket.rs`).
//! - `DoGet`: a ticket becomes a request for the answer (`response.rs`).
//! - `DoPut`: record batches become writes (`put.rs`). Received messages are charged like request bodies (`meter.rs`).
//!
//! Connections use HTTP/2, with the same limits (`connection`).

mod call;
mod ipc;
mod meter;
mod put;
mod question;
mod response;
mod service;
mod status;
mod ticket;
mod unary;

use crate::entry::{Entry, Incoming};
use crate::protocol::connection_control::ReadTimeout;
use crate::protocol::problem::Result;
use crate::request::dispatch::Connection;
use crate::state::AppState;
use arrow_flight::FlightDescriptor;
use arrow_flight::flight_service_server::FlightServiceServer;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use call::CallContext;
use meter::{Meter, Metered};
use question::FlightQuery;
use service::Service;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use ticket::{Ticket, Tickets};
use tokio::time::Instant;
use tonic::codegen::Service as _;

/// Max bytes of a message beyond those of its record batch.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Max bytes of a message in a call that does not write; the library allocates memory for it as soon as it is
/// announced. The value exceeds what such a call may send (`meter.rs`), so that the meter's clearer refusal comes
/// first.
const SMALL_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Media type of gRPC.
const GRPC: &str = "application/grpc";
/// The path of the only call whose messages may be as large as bodies.
const DO_PUT: &str = "/arrow.flight.protocol.FlightService/DoPut";
/// The path of the call whose messages are charged one by one (`response.rs`).
const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";

/// Returns the target of the request that a command becomes, for `crate::fuzzed`.
///
/// # Errors
/// 400 with the member at fault.
pub fn target_of(command: &[u8]) -> Result<String> {
    Ok(FlightQuery::of(&FlightDescriptor::new_cmd(command.to_vec()))?.question.target())
}

/// Parses, uses and rewrites a ticket, for `crate::fuzzed`.
///
/// # Errors
/// 400 if it is invalid.
pub fn reread_ticket(json: &[u8]) -> Result<Vec<u8>> {
    let ticket = Ticket::read(json)?;
    let (_, _) = (ticket.pin()?, ticket.question.target());
    ticket.write()
}

/// Returns whether a media type is that of gRPC, or one of its subtypes, such as `application/grpc+proto`.
fn is_grpc(media_type: &[u8]) -> bool {
    let rest = media_type.strip_prefix(GRPC.as_bytes());
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// The Flight handler, shared by all connections.
pub struct Flight {
    entry: Arc<Entry>,
    service: FlightServiceServer<Service>,
}

impl Flight {
    /// Creates a handler that passes calls to an entry point. Its tickets are valid until it is dropped.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(entry: Arc<Entry>) -> io::Result<Flight> {
        let message_bytes = entry.state().config.body_bytes_max.saturating_add(HEAD_BYTES_MAX);
        let service = FlightServiceServer::new(Service::new(entry.clone(), Tickets::new()?));
        Ok(Flight { service: service.max_decoding_message_size(message_bytes), entry })
    }

    /// Returns the server's state.
    pub fn state(&self) -> &AppState {
        self.entry.state()
    }

    /// Handles a call, and observes it if it becomes no request.
    pub async fn answer<B: Incoming>(&self, connection: Connection, request: Request<B>) -> Response {
        let at = Instant::now();
        let (method, uri, headers) = (request.method().clone(), request.uri().clone(), request.headers().clone());
        let asked = Arc::new(AtomicBool::new(false));
        let mut response = self.call(connection, request, asked.clone()).await;
        let status = status::over_http(&response);
        // A write that is accepted begins its requests later.
        let is_open = uri.path() == DO_PUT && status.is_success();
        if !is_open && !asked.load(Ordering::Relaxed) {
            self.entry.observe_call(connection, at, (&method, &uri, &headers), status, &mut response);
        }
        response
    }

    /// Handles a call. Its caller is identified before its messages are read. `asked` is set if it becomes a request.
    async fn call<B: Incoming>(&self, connection: Connection, request: Request<B>, asked: Arc<AtomicBool>) -> Response {
        let (mut parts, body) = request.into_parts();
        let media_type = parts.headers.get(header::CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
        if !is_grpc(media_type) {
            // From a browser or another HTTP client that cannot read a gRPC status.
            return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "this port speaks Arrow Flight, over gRPC\n").into_response();
        }
        // Sessions belong to browsers, and no request derived from a call carries their cookie. Removed so that the
        // caller is the same here.
        parts.headers.remove(header::COOKIE);
        let caller = match self.entry.caller(connection, (&parts.method, &parts.uri, &parts.headers)) {
            Ok(caller) => caller,
            Err(problem) => return status::of_refusal(problem).into_http(),
        };
        let state = self.state();
        let (is_put, is_get) = (parts.uri.path() == DO_PUT, parts.uri.path() == DO_GET);
        let (meter, answers) =
            (Meter::new(&state.config, state.bodies.of(&caller.tenant)), state.answers.of(&caller.tenant));
        parts.extensions.insert(CallContext { connection, caller, meter: meter.clone(), asked });
        let body = match is_put {
            true => Metered::large(body, meter),
            false => Metered::small(body, &state.config),
        };
        let mut service = match is_put {
            true => self.service.clone(),
            false => self.service.clone().max_decoding_message_size(SMALL_MESSAGE_BYTES_MAX),
        };
        match service.call(Request::from_parts(parts, body)).await {
            Ok(response) => {
                let mut response = response.map(Body::new);
                if !is_put && !is_get {
                    return unary::charged(response, &answers, state).await;
                }
                if is_put {
                    // A client may leave the results unread until it has sent everything.
                    response.extensions_mut().insert(ReadTimeout(state.config.stream_lifetime));
                }
                response
            }
            Err(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_grpc;

    #[test]
    fn other_media_types_that_begin_alike_are_refused() {
        for one in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(is_grpc(one.as_bytes()), "{one}");
        }
        for one in ["", "application/json", "application/grpc-web", "application/grpcx", "application/grp"] {
            assert!(!is_grpc(one.as_bytes()), "{one}");
        }
    }
}
