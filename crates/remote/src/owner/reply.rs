//! The messages of a response on their way to the caller.

use crate::wire::fault::Fault;
use arrow_flight::FlightData;
use meridian_query::wire::WireError;
use tokio::sync::mpsc;
use tonic::Status;

/// Channel for the messages of a response.
pub(super) type ResponseSender = mpsc::Sender<Result<FlightData, Status>>;

/// Sends messages in order. If the caller goes away, the response is dropped from outside.
pub(super) async fn send(out: &ResponseSender, messages: impl IntoIterator<Item = FlightData>) {
    for message in messages {
        drop(out.send(Ok(message)).await);
    }
}

/// The fault of a query or response that cannot be encoded or decoded.
pub(super) fn wire_fault(error: WireError) -> Fault {
    match error {
        WireError::Refused(error) => error.into(),
        other => Fault::internal(other.to_string()),
    }
}
