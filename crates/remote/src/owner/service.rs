//! The Arrow Flight calls that are served.

use super::{Owner, ServedGroups, ShutdownStage, acts, answers, appends};
use crate::wire::answer::{Meta, Reply};
use crate::wire::call::{ActionCall, Call, Get};
use crate::wire::{GROUP_HEADER, OWNER_HEADER, REFUSED_HEADER, SCAN_SERVER, fault::Fault};
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

/// Messages of a response queued for sending: one is encoded while another is in flight.
const AHEAD: usize = 2;

pub(crate) struct Service(pub(crate) Arc<ServedGroups>);

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    /// Returns the owner of the group that a call names.
    fn owner<T>(&self, request: &Request<T>) -> Result<Arc<Owner>, Status> {
        let asked = request.metadata().get(GROUP_HEADER).and_then(|value| value.to_str().ok());
        let group =
            asked.map_or(Ok(0), str::parse).map_err(|_| Status::invalid_argument("a group without a number"))?;
        self.0.of(group).ok_or_else(|| refused("the server that was asked does not own these data at present"))
    }
}

impl Owner {
    /// Builds a response with the header that identifies this server.
    fn response<T>(&self, body: T) -> Response<T> {
        let mut response = Response::new(body);
        // A scan server has no epoch, so it cannot be taken for the owner.
        let text = match self.options.scans {
            Some(_) => format!("{SCAN_SERVER}-{:016x}", self.instance),
            None => format!("{}-{:016x}", self.options.epoch, self.instance),
        };
        if let Ok(value) = MetadataValue::try_from(text) {
            response.metadata_mut().insert(OWNER_HEADER, value);
        }
        response
    }

    /// Checks that new calls are accepted. A stopping server refuses them like one that is gone, so the next owner is
    /// asked. A call for another process comes from a gateway of another bucket, whose owner used to have this address.
    fn open<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let asked = request.metadata().get(OWNER_HEADER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| u64::from_str_radix(text, 16).ok());
        if let (Some(asked), Some(own)) = (asked, self.options.process)
            && asked != own
        {
            return Err(refused("another process was asked: the one here owns other data"));
        }
        match *self.closing.borrow() {
            ShutdownStage::Open => Ok(()),
            ShutdownStage::Passed | ShutdownStage::Cut => Err(refused("the owner of the data is stopping")),
        }
    }

    /// As above, for calls that return data, or change it without a number. After a pause longer than its lease, a
    /// process has missed writes acknowledged by the next owner. A gateway that has not learnt of that owner may still
    /// call it. Checking once is enough: until then nothing was acknowledged elsewhere, and the call had begun.
    fn owns<T>(&self, request: &Request<T>) -> Result<(), Status> {
        self.open(request)?;
        match (self.options.owns)() {
            true => Ok(()),
            false => Err(refused("the lease on the data has ended here")),
        }
    }
}

/// Status of a call refused before any work was done: it can be made elsewhere.
fn refused(why: &'static str) -> Status {
    let mut status = Status::unavailable(why);
    status.metadata_mut().insert(REFUSED_HEADER, MetadataValue::from_static("1"));
    status
}

/// Returns a response whose messages are all known already.
fn all<T: Send + 'static>(messages: Vec<T>) -> Messages<T> {
    Box::pin(stream::iter(messages.into_iter().map(Ok)))
}

fn not_served<T>() -> Result<T, Status> {
    Err(Status::unimplemented("not served between roles"))
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

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let owner = self.owner(&request)?;
        owner.owns(&request)?;
        let call = match Call::<Get>::from_json(&request.into_inner().ticket) {
            Ok(call) => call,
            // In a message: a status could be taken for a broken link, and the call be retried.
            Err(fault) => return Ok(owner.response(all(vec![Meta::fault(fault).alone()]))),
        };
        let (out, mut messages) = mpsc::channel(AHEAD);
        tokio::spawn(answers::answer(owner.clone(), call, out));
        Ok(owner.response(Box::pin(stream::poll_fn(move |cx| messages.poll_recv(cx)))))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let owner = self.owner(&request)?;
        owner.open(&request)?;
        let done = appends::put(&owner, request.into_inner()).await?;
        Ok(owner.response(all(vec![PutResult { app_metadata: Reply::to_bytes(done) }])))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let owner = self.owner(&request)?;
        owner.owns(&request)?;
        let bodies: Vec<Bytes> = match Call::<ActionCall>::from_json(&request.into_inner().body) {
            Ok(call) => acts::act(&owner, call).await,
            Err(fault) => vec![Reply::<()>::to_bytes(Err::<(), Fault>(fault))],
        };
        Ok(owner.response(all(bodies.into_iter().map(|body| arrow_flight::Result { body }).collect())))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        not_served()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        not_served()
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        not_served()
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        not_served()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        not_served()
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        not_served()
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        not_served()
    }
}
