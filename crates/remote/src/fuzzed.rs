//! Entry points to the wire format between roles, for `fuzz/targets`. Not part of the crate's interface.

use crate::owner::{MountedGroup, ServeOptions, ServedGroups, Service};
use crate::wire::answer::{Hello, Meta, Reply, WireDeleted, WireFiles, WireWritten};
use crate::wire::call::{ActionCall, Call, Get, Put};
use crate::wire::decode::{BatchAssembler, Decoder};
use crate::wire::described::Description;
use crate::wire::fault::Fault;
use crate::wire::rows::{Events, whole_batch_from_arrow};
use arrow_flight::flight_service_server::FlightService as _;
use arrow_flight::{Action, FlightData, Ticket};
use futures_util::TryStreamExt;
use meridian_backend::{Backend, DeleteReceipt, Files, WriteReceipt};
use meridian_model::{Layout, Schema, schema_json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tonic::Request;

/// A message of a stream: the IPC header of its columns, their buffers, and the metadata.
pub type Message = [Vec<u8>; 3];

/// Decodes a call as each kind of call; returns the re-encoded ones.
pub fn calls(json: &[u8]) -> Vec<Vec<u8>> {
    fn again<T: Serialize + DeserializeOwned>(json: &[u8]) -> Option<Vec<u8>> {
        Call::<T>::from_json(json).ok()?.to_json().ok()
    }
    [again::<Get>(json), again::<ActionCall>(json), again::<Put>(json)].into_iter().flatten().collect()
}

/// Decodes a response of each kind as a gateway does; returns the re-encoded ones.
pub fn answers(json: &[u8]) -> Vec<Vec<u8>> {
    fn again<T: Serialize + DeserializeOwned>(json: &[u8], uses: impl FnOnce(T)) -> Option<Vec<u8>> {
        let value = Reply::<T>::read(json).ok()?;
        let written = Reply::to_bytes(Ok(&value)).to_vec();
        uses(value);
        Some(written)
    }
    let meta = Meta::from_bytes(json).ok().map(|meta| {
        let written = meta.to_bytes().to_vec();
        if let Some(head) = meta.head {
            used(&head.into_head(&Arc::default()).schema);
        }
        meta.fault.into_iter().for_each(told);
        written
    });
    if let Err(fault) = Reply::<()>::read(json) {
        told(fault);
    }
    let described = |description: Description| {
        used(&description.schema);
        description.refusal();
    };
    let all = [
        meta,
        again(json, described),
        again(json, |all: Vec<Description>| all.into_iter().for_each(described)),
        again(json, |written: WireWritten| drop(WriteReceipt::from(written))),
        again(json, |files: WireFiles| drop(Files::from(files))),
        again(json, |WireDeleted { deleted, position, .. }| drop(DeleteReceipt { deleted, position })),
        again(json, |_: Hello| ()),
    ];
    all.into_iter().flatten().collect()
}

/// Uses a schema as a gateway does.
fn used(schema: &Schema) {
    Layout::of(schema);
    schema_json::to_json(schema, "c", "/schema");
}

/// Converts a fault into the error type of each kind of caller.
fn told(fault: Fault) {
    let _ = fault.clone().into_query().to_string();
    let _ = fault.clone().into_store().to_string();
    let _ = fault.into_write().to_string();
}

/// Decodes the messages of a response or of a write as events of a schema, up to the first malformed one. Returns the
/// number of events.
pub fn events(messages: Vec<Message>, schema: &Arc<Schema>) -> usize {
    let (mut decoder, mut whole, mut count) = (Decoder::default(), BatchAssembler::default(), 0);
    for [head, body, meta] in messages {
        let message = FlightData {
            data_header: head.into(),
            data_body: body.into(),
            app_metadata: meta.into(),
            flight_descriptor: None,
        };
        let Ok((columns, _)) = decoder.decode(message) else { break };
        let Some(columns) = columns else { continue };
        if let Ok(events) = Events::from_arrow(&columns, schema) {
            count += events.batch.rows();
            let written = events.to_arrow().unwrap_or(columns.clone());
            let again = Events::from_arrow(&written, schema).and_then(|events| events.to_arrow());
            assert!(again.is_ok_and(|again| again == written), "events that were written read as others");
        }
        drop(whole_batch_from_arrow(&columns, schema));
        drop(whole.add(columns));
    }
    drop(whole.finish());
    count
}

/// An owner called without a network.
pub struct Server {
    service: Service,
    _mounted: MountedGroup,
}

impl Server {
    /// Serves `backend`. Must be called inside a runtime.
    pub fn new(backend: Arc<dyn Backend>, options: ServeOptions) -> Server {
        let served = Arc::<ServedGroups>::default();
        let mounted = served.mount(0, backend, options);
        Server { service: Service(served), _mounted: mounted }
    }

    /// Returns the messages of the response.
    ///
    /// # Errors
    /// The fault, as text.
    pub async fn get(&self, call: &[u8]) -> Result<Vec<Message>, String> {
        let ticket = Ticket { ticket: call.to_vec().into() };
        let answer = self.service.do_get(Request::new(ticket)).await.map_err(|status| status.to_string())?;
        let messages = answer.into_inner().try_collect::<Vec<FlightData>>().await;
        let messages = messages.map_err(|status| status.to_string())?;
        let parts = |message: FlightData| {
            [message.data_header, message.data_body, message.app_metadata].map(|part| part.to_vec())
        };
        Ok(messages.into_iter().map(parts).collect())
    }

    /// Returns the results of an act.
    ///
    /// # Errors
    /// The fault, as text.
    pub async fn act(&self, call: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let action = Action { r#type: String::new(), body: call.to_vec().into() };
        let results = self.service.do_action(Request::new(action)).await.map_err(|status| status.to_string())?;
        let results = results.into_inner().try_collect::<Vec<arrow_flight::Result>>().await;
        let results = results.map_err(|status| status.to_string())?;
        Ok(results.into_iter().map(|result| result.body.to_vec()).collect())
    }
}
