//! A client of Arrow Flight.

use crate::support::Server;
use arrow_array::RecordBatch;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::utils::flight_data_to_batches;
use arrow_flight::{
    Action, Criteria, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, PutResult,
    SchemaResult, Ticket,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{DataType, Schema};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Sender;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// Max bytes of a message.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// A client with or without a token.
pub struct Client {
    runtime: Runtime,
    client: FlightServiceClient<Channel>,
    pub headers: Vec<(&'static str, String)>,
}

/// A response to `DoGet`: its batches with rows, and the metadata of its last message.
#[derive(Debug)]
pub struct GetResponse {
    pub batches: Vec<RecordBatch>,
    pub last: Value,
}

impl Client {
    pub fn new(server: &Server) -> Client {
        Client::of(Endpoint::from_shared(format!("http://{}", server.flight)).unwrap())
    }

    /// Creates a client with little buffer space for unread data.
    pub fn narrow(server: &Server) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", server.flight)).unwrap();
        Client::of(endpoint.initial_stream_window_size(65_535).initial_connection_window_size(65_535))
    }

    fn of(endpoint: Endpoint) -> Client {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        let client = FlightServiceClient::new(channel);
        let client = client.max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX);
        Client { runtime, client, headers: Vec::new() }
    }

    pub fn with_token(server: &Server, token: &str) -> Client {
        let mut client = Client::new(server);
        client.headers.push(("authorization", format!("Bearer {token}")));
        client
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(*name, value.parse().unwrap());
        }
        request
    }

    /// Returns the metadata of the response to a handshake.
    pub fn handshake(&self) -> Result<MetadataMap, Status> {
        let request = self.request(stream::empty::<HandshakeRequest>());
        let mut client = self.client.clone();
        self.runtime.block_on(client.handshake(request)).map(|response| response.metadata().clone())
    }

    pub fn describe(&self, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
        let (request, mut client) = (self.request(descriptor), self.client.clone());
        self.runtime.block_on(client.get_flight_info(request)).map(tonic::Response::into_inner)
    }

    pub fn info(&self, command: &Value) -> Result<FlightInfo, Status> {
        self.describe(FlightDescriptor::new_cmd(command.to_string()))
    }

    pub fn schema(&self, command: &Value) -> Result<Schema, Status> {
        let request = self.request(FlightDescriptor::new_cmd(command.to_string()));
        let mut client = self.client.clone();
        let result: SchemaResult = self.runtime.block_on(client.get_schema(request))?.into_inner();
        Ok(Schema::try_from(result).unwrap())
    }

    pub fn list(&self, begins: &str) -> Result<Vec<FlightInfo>, Status> {
        let request = self.request(Criteria { expression: begins.to_owned().into() });
        let mut client = self.client.clone();
        self.runtime.block_on(async {
            let mut infos = client.list_flights(request).await?.into_inner();
            let mut all = Vec::new();
            while let Some(info) = infos.message().await? {
                all.push(info);
            }
            Ok(all)
        })
    }

    /// Asks for an action.
    pub fn act(&self, kind: &str, body: &str) -> Result<(), Status> {
        let request = self.request(Action { r#type: kind.to_owned(), body: body.to_owned().into() });
        let mut client = self.client.clone();
        self.runtime.block_on(client.do_action(request)).map(drop)
    }

    /// Reads a response to its end. Drops what preceded an error.
    pub fn get(&self, ticket: Ticket) -> Result<GetResponse, Status> {
        let (request, mut client) = (self.request(ticket), self.client.clone());
        let messages: Vec<FlightData> = self.runtime.block_on(async {
            let mut messages = client.do_get(request).await?.into_inner();
            let mut all = Vec::new();
            while let Some(message) = messages.message().await? {
                all.push(message);
            }
            Ok::<_, Status>(all)
        })?;
        let last = serde_json::from_slice(&messages.last().unwrap().app_metadata).unwrap();
        let mut batches = flight_data_to_batches(&messages).unwrap();
        batches.retain(|batch| batch.num_rows() > 0);
        Ok(GetResponse { batches, last })
    }

    /// Begins to read a response: its first message, and the rest.
    pub fn begin(&self, ticket: Ticket) -> (FlightData, Streaming<FlightData>) {
        let (request, mut client) = (self.request(ticket), self.client.clone());
        self.runtime.block_on(async {
            let mut messages = client.do_get(request).await.unwrap().into_inner();
            (messages.message().await.unwrap().unwrap(), messages)
        })
    }

    /// Reads the rest of a response.
    pub fn rest(&self, mut messages: Streaming<FlightData>) -> Result<Vec<FlightData>, Status> {
        self.runtime.block_on(async {
            let mut all = Vec::new();
            while let Some(message) = messages.message().await? {
                all.push(message);
            }
            Ok(all)
        })
    }

    /// Asks a question that has a single endpoint.
    pub fn ask(&self, command: &Value) -> Result<GetResponse, Status> {
        let info = self.info(command)?;
        assert_eq!(info.endpoint.len(), 1);
        self.get(ticket(&info.endpoint[0]))
    }

    /// Writes messages. Returns the results until the end or an error.
    pub fn put(&self, messages: Vec<FlightData>) -> (Vec<Value>, Result<(), Status>) {
        let (request, mut client) = (self.request(stream::iter(messages)), self.client.clone());
        self.runtime.block_on(async {
            let mut acks = Vec::new();
            let mut results = match client.do_put(request).await {
                Ok(results) => results.into_inner(),
                Err(status) => return (acks, Err(status)),
            };
            loop {
                match results.message().await {
                    Ok(Some(PutResult { app_metadata })) => acks.push(serde_json::from_slice(&app_metadata).unwrap()),
                    Ok(None) => return (acks, Ok(())),
                    Err(status) => return (acks, Err(status)),
                }
            }
        })
    }

    /// Begins to write. Returns the first result and the call, which stays open as long as its sender.
    pub fn open(&self, messages: Vec<FlightData>) -> (Value, Sender<FlightData>, Streaming<PutResult>) {
        let mut client = self.client.clone();
        self.runtime.block_on(async {
            let (send, receive) = tokio::sync::mpsc::channel(messages.len());
            let outgoing = stream::unfold(receive, |mut receive| async {
                let next: Option<FlightData> = receive.recv().await;
                next.map(|message| (message, receive))
            });
            for message in messages {
                send.send(message).await.unwrap();
            }
            let mut results = client.do_put(self.request(outgoing.boxed())).await.unwrap().into_inner();
            let ack = results.message().await.unwrap().unwrap();
            (serde_json::from_slice(&ack.app_metadata).unwrap(), send, results)
        })
    }

    /// Waits for the end of a call that writes.
    pub fn end(&self, mut results: Streaming<PutResult>) -> Result<(), Status> {
        self.runtime.block_on(async {
            while results.message().await?.is_some() {}
            Ok(())
        })
    }

    /// Writes batches one by one, waiting for the result of each.
    pub fn put_each(&self, messages: Vec<FlightData>) -> Vec<Value> {
        let mut client = self.client.clone();
        self.runtime.block_on(async {
            let (send, receive) = tokio::sync::mpsc::channel(1);
            let outgoing = stream::unfold(receive, |mut receive| async {
                let next: Option<FlightData> = receive.recv().await;
                next.map(|message| (message, receive))
            });
            let mut messages = messages.into_iter();
            send.send(messages.next().unwrap()).await.unwrap();
            let mut results = client.do_put(self.request(outgoing.boxed())).await.unwrap().into_inner();
            let mut acks = Vec::new();
            for message in messages {
                send.send(message).await.unwrap();
                let ack = results.message().await.unwrap().unwrap();
                acks.push(serde_json::from_slice(&ack.app_metadata).unwrap());
            }
            drop(send);
            assert!(results.message().await.unwrap().is_none());
            acks
        })
    }
}

pub fn ticket(endpoint: &FlightEndpoint) -> Ticket {
    endpoint.ticket.clone().unwrap()
}

/// Returns the messages of batches, the first one with a descriptor. Each batch follows its dictionaries.
pub fn messages(descriptor: FlightDescriptor, batches: &[RecordBatch]) -> Vec<FlightData> {
    let (encode, options) = (IpcDataGenerator::default(), IpcWriteOptions::default());
    let (mut dictionaries, mut context) = (DictionaryTracker::new(false), IpcWriteContext::default());
    let schema = batches[0].schema();
    let schema = encode.schema_to_bytes_with_dictionary_tracker(&schema, &mut dictionaries, &options);
    let mut messages = vec![FlightData::from(schema).with_descriptor(descriptor)];
    for batch in batches {
        let (before, data) = encode.encode(batch, &mut dictionaries, &options, &mut context).unwrap();
        messages.extend(before.into_iter().chain([data]).map(FlightData::from));
    }
    messages
}

/// Returns only the schema, as the first message.
pub fn opening(descriptor: FlightDescriptor, schema: &Schema) -> FlightData {
    let options = IpcWriteOptions::default();
    let mut message = FlightData::from(arrow_flight::SchemaAsIpc::new(schema, &options));
    message.flight_descriptor = Some(descriptor);
    message
}

/// Reads the batches of an Arrow stream over HTTP.
pub fn over_http(server: &Server, path: &str) -> Vec<RecordBatch> {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let batches = StreamReader::try_new(answer.body.as_slice(), None).unwrap().map(Result::unwrap);
    batches.filter(|batch| batch.num_rows() > 0).collect()
}

/// Returns the texts of a column.
pub fn texts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let of = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).unwrap();
        assert_eq!(column.data_type(), &DataType::Utf8);
        let column = column.as_any().downcast_ref::<arrow_array::StringArray>().unwrap();
        column.iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, words: &str) -> Status {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{status}");
    status
}
