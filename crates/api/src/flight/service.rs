//! The Arrow Flight calls that are served.

use super::call::Call;
use super::put;
use super::question::{FlightQuery, Question};
use super::response;
use super::status;
use super::ticket::{self, Ticket, Tickets};
use crate::entry::Entry;
use crate::protocol::problem::Problem;
use crate::request::ask::{FlightListing, FlightOperation, ResponseDescription};
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket as WireTicket,
};
use futures_util::Stream;
use futures_util::stream;
use meridian_admission::identity::Credential;
use serde_json::json;
use std::pin::Pin;
use std::sync::Arc;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status, Streaming};

/// Implements the calls in front of an entry point.
pub struct Service {
    entry: Arc<Entry>,
    tickets: Tickets,
}

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    /// Creates a service whose calls become requests to `entry`.
    pub fn new(entry: Arc<Entry>, tickets: Tickets) -> Service {
        Service { entry, tickets }
    }

    /// Requests the description of the answer to a question.
    async fn describe(&self, call: &Call, asked: &FlightQuery) -> Result<ResponseDescription, Status> {
        let ask = FlightOperation::Describe { parts: asked.parts };
        let mut response = call.ask(&self.entry, &asked.question.target(), ask).await?;
        let described = response.extensions_mut().remove::<ResponseDescription>();
        described.ok_or_else(|| status::internal("an answer that does not describe itself"))
    }

    /// Returns the endpoint for a part of an answer. It names no location, which means this server: a location would
    /// have to be an address that the client can reach.
    fn endpoint(&self, ticket: &Ticket) -> Result<FlightEndpoint, Status> {
        let sealed = self.tickets.seal(ticket).map_err(|problem| status::of_problem(&problem))?;
        let mut endpoint = FlightEndpoint::new().with_ticket(WireTicket::new(sealed));
        let expires = endpoint.expiration_time.get_or_insert_default();
        expires.seconds = ticket.expires / 1_000_000;
        Ok(endpoint)
    }

    /// Creates a ticket that is valid from now on.
    fn ticket(&self, call: &Call, question: Question) -> Ticket {
        Ticket {
            tenant: call.arrived.caller.tenant.to_string(),
            question,
            snapshot: None,
            began: None,
            part: (None, None),
            expires: self.entry.state().now().saturating_add(ticket::VALID_US),
        }
    }

    fn info(&self, call: &Call, asked: FlightQuery, described: ResponseDescription) -> Result<FlightInfo, Status> {
        let ResponseDescription { schema, rows, snapshot, began, cuts } = described;
        let is_ordered = asked.question.is_ordered();
        let mut info = FlightInfo::new()
            .with_total_records(rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(-1))
            .with_ordered(is_ordered);
        info.schema = schema.into();
        let whole = Ticket { snapshot: snapshot.clone(), began, ..self.ticket(call, asked.question) };
        let places: Vec<Vec<u8>> = cuts.iter().map(meridian_query::Cursor::to_bytes).collect();
        // One part from each place to the next, and one beyond the last.
        for part in 0..=places.len() {
            let after = part.checked_sub(1).and_then(|before| places.get(before)).cloned();
            let ticket = Ticket { part: (after, places.get(part).cloned()), ..whole.clone() };
            info = info.with_endpoint(self.endpoint(&ticket)?);
        }
        if let Some(snapshot) = snapshot {
            info = info.with_app_metadata(json!({ "snapshot": snapshot.to_id() }).to_string());
        }
        Ok(info)
    }
}

/// Returns a stream of messages that are all known already.
fn all<T: Send + 'static>(messages: Vec<T>) -> Messages<T> {
    Box::pin(stream::iter(messages.into_iter().map(Ok)))
}

fn refused(problem: Problem) -> Status {
    status::of_problem(&problem)
}

fn not_served<T>(what: &str) -> Result<T, Status> {
    Err(Status::unimplemented(format!("{what} is not served")))
}

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Messages<HandshakeResponse>;
    type ListFlightsStream = Messages<FlightInfo>;
    type DoGetStream = Messages<FlightData>;
    type DoPutStream = Messages<PutResult>;
    type DoExchangeStream = Messages<FlightData>;
    type DoActionStream = Messages<arrow_flight::Result>;
    type ListActionsStream = Messages<ActionType>;

    /// Returns the token of `Basic` as `Bearer`, as clients expect from a server that checks passwords. It was checked
    /// before the call got here.
    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let call = Call::of(&request)?;
        let mut response = Response::new(all(Vec::new()));
        let credential = call.authorization().map(|value| Credential::of_header(value.as_bytes()));
        if let Some(Credential::Token(token)) = credential
            && let Ok(value) = MetadataValue::try_from(format!("Bearer {token}"))
        {
            response.metadata_mut().insert("authorization", value);
        }
        Ok(response)
    }

    /// Lists the caller's collections whose names begin with the expression of the criteria.
    async fn list_flights(&self, request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        let call = Call::of(&request)?;
        let criteria = request.into_inner();
        let begins = std::str::from_utf8(&criteria.expression).map_err(|_| {
            Status::invalid_argument("the expression of the criteria is not UTF-8: expected how names begin")
        })?;
        let mut response = call.ask(&self.entry, "/collections", FlightOperation::List).await?;
        let FlightListing(collections) = response
            .extensions_mut()
            .remove::<FlightListing>()
            .ok_or_else(|| status::internal("a list that is not one"))?;
        let mut infos = Vec::with_capacity(collections.len());
        for (name, schema) in collections {
            if name.starts_with(begins) {
                let asked = FlightQuery { question: Question::all(&name), parts: 1 };
                let described =
                    ResponseDescription { schema, rows: None, snapshot: None, began: None, cuts: Vec::new() };
                let descriptor = FlightDescriptor::new_path(vec![name]);
                infos.push(self.info(&call, asked, described)?.with_descriptor(descriptor));
            }
        }
        Ok(Response::new(all(infos)))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let call = Call::of(&request)?;
        let descriptor = request.into_inner();
        let asked = FlightQuery::of(&descriptor).map_err(refused)?;
        let described = self.describe(&call, &asked).await?;
        Ok(Response::new(self.info(&call, asked, described)?.with_descriptor(descriptor)))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let call = Call::of(&request)?;
        let asked = FlightQuery { parts: 1, ..FlightQuery::of(&request.into_inner()).map_err(refused)? };
        let described = self.describe(&call, &asked).await?;
        Ok(Response::new(SchemaResult { schema: described.schema.into() }))
    }

    async fn do_get(&self, request: Request<WireTicket>) -> Result<Response<Self::DoGetStream>, Status> {
        let call = Call::of(&request)?;
        let state = self.entry.state();
        let ticket = self.tickets.open(&request.into_inner().ticket, state.now()).map_err(refused)?;
        let ask = FlightOperation::Answer(ticket.pin().map_err(refused)?);
        let response = call.ask(&self.entry, &ticket.question.target(), ask).await?;
        let mut metadata = MetadataMap::new();
        if let Some(id) = response.headers().get("x-request-id").and_then(|id| id.to_str().ok())
            && let Ok(id) = MetadataValue::try_from(id)
        {
            metadata.insert("x-request-id", id);
        }
        let mut answered =
            Response::new(Box::pin(response::messages(state, call.answers(state), response)) as Self::DoGetStream);
        *answered.metadata_mut() = metadata;
        Ok(answered)
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let call = Call::of(&request)?;
        let acks = put::put(self.entry.clone(), call, request.into_inner()).await?;
        Ok(Response::new(Box::pin(acks)))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        not_served("PollFlightInfo")
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        not_served("DoExchange")
    }

    async fn do_action(&self, _: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        not_served("DoAction")
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Ok(Response::new(all(Vec::new())))
    }
}
