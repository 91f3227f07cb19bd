//! `DoPut`: record batches as writes.
//!
//! Each write is a request for the route that accepts Arrow bodies: the schema, the dictionaries so far, and some
//! record batches. With an idempotency key, each record batch is a separate write. Its key consists of the call's key
//! and the number of the batch, so a client that resends everything writes nothing twice. Without a key, all batches
//! that have arrived form one write.
//!
//! The client is notified of durable writes whenever nothing more waits to be written, and every few seconds. The
//! counts cover the whole call, so a client may wait for each of its batches, or send many and read only the last
//! result.

mod head;
mod target;

use super::call::Call;
use super::ipc::{self, Content};
use super::status;
use crate::contract::links;
use crate::entry::{Entry, may_write};
use crate::protocol::params::format::Format;
use crate::request::ask::BatchKey;
use crate::request::dispatch::VoidReason;
use crate::state::AppState;
use arrow_flight::{FlightData, PutResult};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, header};
use bytes::Bytes;
use futures_util::future::FutureExt;
use futures_util::stream::{Stream, iter, unfold};
use head::Head;
use meridian_model::Positions;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use target::{Target, check_key};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, timeout};
use tonic::{Status, Streaming};

/// Max bytes of a write of several record batches.
const WRITE_BYTES: usize = 4 << 20;
/// How often a client that never pauses is notified of durable writes.
const ACK_INTERVAL: Duration = Duration::from_secs(5);
/// How often the speed of a message is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Max bytes of the response to a write.
const RECEIPT_BYTES_MAX: usize = 64 << 10;

/// Durable writes so far, as the metadata of a result: sums over all writes of the call.
#[derive(Debug, Clone, Default, Serialize)]
struct Ack {
    /// Number of record batches.
    batches: u64,
    /// Number of events written.
    written: u64,
    /// Number of earlier events of an object that they replaced.
    replaced: u64,
    /// Number of events already written by an earlier call with the same key.
    duplicates: u64,
    /// A position that covers all of them.
    position: String,
}

impl Ack {
    /// Adds another write of `batches` record batches.
    fn add(&mut self, batches: u64, receipt: Receipt) {
        self.batches += batches;
        self.written += receipt.written;
        self.replaced += receipt.replaced;
        self.duplicates += receipt.duplicates;
        // The writes of one call go to several partitions.
        let so_far = Positions::read(&self.position);
        self.position = match so_far.zip(Positions::read(&receipt.position)) {
            Some((so_far, newest)) => so_far.later(&newest).to_string(),
            None => receipt.position,
        };
    }
}

/// The response to a write.
#[derive(Deserialize)]
struct Receipt {
    written: u64,
    replaced: u64,
    duplicates: u64,
    position: String,
}

/// A call that writes.
struct Put {
    entry: Arc<Entry>,
    call: Call,
    stream: Streaming<FlightData>,
    target: Target,
    head: Head,
    /// Batches of the next write.
    batches: Vec<[Bytes; 2]>,
    /// Number of messages in the next write that the meter still counts.
    messages: usize,
    bytes: usize,
    /// The durable writes, and when the client was last notified.
    ack: Ack,
    told: Instant,
    until: Instant,
}

/// Writes what a client sends. Results are sent as it becomes durable.
///
/// # Errors
/// If the first message does not name the target of the batches, or if the caller may not write there.
pub async fn put(
    entry: Arc<Entry>,
    call: Call,
    mut stream: Streaming<FlightData>,
) -> Result<impl Stream<Item = Result<PutResult, Status>> + Send + use<>, Status> {
    let now = Instant::now();
    let until = now + entry.state().config.stream_lifetime;
    let Some(first) = next(entry.state(), &call, &mut stream, until).await? else {
        return Err(Status::invalid_argument("the call has no message: expected a schema"));
    };
    let mut target = Target::of(first.flight_descriptor.as_ref()).map_err(|problem| status::of_problem(&problem))?;
    // Checked before more is read: a call holds memory shared by all writers, and its client may be slow.
    may_write(&call.arrived.caller, &target.collection).map_err(|problem| status::of_problem(&problem))?;
    if target.key.is_none() {
        target.key = call.key()?;
    }
    if let Some(key) = &target.key {
        check_key(key).map_err(|problem| status::of_problem(&problem))?;
    }
    let (head, ack) = (Head::default(), Ack::default());
    let mut put =
        Put { entry, call, stream, target, head, batches: Vec::new(), messages: 0, bytes: 0, ack, told: now, until };
    put.take(first)?;
    let (tell, told) = watch::channel(Ack::default());
    // A separate task: a client that reads no results must not block its own writes. It ends with the stream.
    let mut task = JoinSet::new();
    task.spawn(async move { put.run(&tell).await });
    Ok(unfold(Some(Running { task, told }), results))
}

/// A call that writes, as seen by its result stream.
struct Running {
    task: JoinSet<Result<(), Status>>,
    told: watch::Receiver<Ack>,
}

/// Returns the next result and the rest of the call.
async fn results(running: Option<Running>) -> Option<(Result<PutResult, Status>, Option<Running>)> {
    let mut running = running?;
    // The sender is dropped with the task. Its last value is seen before that.
    if running.told.changed().await.is_ok() {
        let ack = running.told.borrow_and_update().clone();
        let result = serde_json::to_vec(&ack).map(|json| PutResult { app_metadata: json.into() });
        return Some((result.map_err(status::internal), Some(running)));
    }
    match running.task.join_next().await {
        Some(Ok(Ok(()))) | None => None,
        Some(Ok(Err(refusal))) => Some((Err(refusal), None)),
        Some(Err(e)) => Some((Err(status::internal(format!("a call that writes failed: {e}"))), None)),
    }
}

/// Returns the next message; `None` at the end. Between two messages a client may pause.
async fn next(
    state: &AppState,
    call: &Call,
    stream: &mut Streaming<FlightData>,
    until: Instant,
) -> Result<Option<FlightData>, Status> {
    loop {
        match timeout(CHECK_INTERVAL, stream.message()).await {
            Ok(message) => return message,
            Err(_) => call.arrived.meter.check()?,
        }
        // Everything received is durable. A paused client must not keep the server from stopping.
        if state.stopping.load(Ordering::Relaxed) {
            return Err(Status::unavailable("the server is stopping: begin another call once it is back"));
        }
        if state.is_void(&call.arrived.caller) {
            return Err(match VoidReason::of(&call.arrived.caller, state) {
                VoidReason::Unauthorized => {
                    Status::unauthenticated("the credential was revoked or has expired meanwhile")
                }
                VoidReason::Gone => Status::not_found("the tenant was removed meanwhile"),
            });
        }
        if Instant::now() >= until {
            return Err(Status::deadline_exceeded("the call has lasted too long: begin another one"));
        }
    }
}

/// Returns whether a message holds a dictionary. It may replace the one used by the batches before it, so those are
/// written first.
fn is_dictionary(message: &FlightData) -> bool {
    let content = ipc::content(&message.data_header, message.data_body.len());
    matches!(content, Ok(Content::Dictionary { .. }))
}

impl Put {
    /// Writes until the client has sent everything, and notifies it of all that became durable, even before an error.
    async fn run(mut self, tell: &watch::Sender<Ack>) -> Result<(), Status> {
        let ended = self.write_all(tell).await;
        self.tell(tell);
        ended
    }

    async fn write_all(&mut self, tell: &watch::Sender<Ack>) -> Result<(), Status> {
        loop {
            let more = self.gather().await?;
            if !self.batches.is_empty() {
                self.write().await?;
                self.call.arrived.meter.resume();
            }
            self.settle();
            if more.is_none() || self.told.elapsed() >= ACK_INTERVAL {
                self.tell(tell);
            }
            let message = match more {
                Some(message) => Some(message),
                // Everything received is durable and acknowledged, so the client may pause.
                None => next(self.entry.state(), &self.call, &mut self.stream, self.until).await?,
            };
            match message {
                Some(message) => self.take(message)?,
                None => return Ok(()),
            }
        }
    }

    /// Releases the messages so far.
    fn settle(&mut self) {
        for _ in 0..std::mem::take(&mut self.messages) {
            self.call.arrived.meter.release();
        }
        self.bytes = 0;
    }

    /// Notifies the client of what became durable since the last notification.
    fn tell(&mut self, tell: &watch::Sender<Ack>) {
        self.told = Instant::now();
        tell.send_if_modified(|known| {
            let changed = known.batches != self.ack.batches;
            *known = self.ack.clone();
            changed
        });
    }

    /// Collects the messages that have arrived for one write. Returns a message that belongs to the next one.
    async fn gather(&mut self) -> Result<Option<FlightData>, Status> {
        let one = self.target.key.is_some();
        // A single batch may be as large as a body; several together must not be larger.
        let max = WRITE_BYTES.min(self.entry.state().config.body_bytes_max);
        loop {
            // Waiting messages are read even if they belong to the next write: they show that the client need not be
            // notified yet.
            let Some(arrived) = self.stream.message().now_or_never() else { return Ok(None) };
            let Some(message) = arrived? else { return Ok(None) };
            let bytes = self.head.bytes() + self.bytes + ipc::framed_bytes(&message) + ipc::end().len();
            if !self.batches.is_empty() && (one || bytes > max || is_dictionary(&message)) {
                return Ok(Some(message));
            }
            self.take(message)?;
        }
    }

    /// Processes a message.
    fn take(&mut self, message: FlightData) -> Result<(), Status> {
        self.messages += 1;
        // Metadata alone has no meaning here.
        if message.data_header.is_empty() {
            return Ok(());
        }
        let content = ipc::content(&message.data_header, message.data_body.len()).map_err(Status::invalid_argument)?;
        let frames = ipc::framed(&message);
        match content {
            Content::Schema if self.head.schema.is_none() => self.head.schema = Some(self.head.keep(frames)?),
            Content::Schema => return Err(Status::invalid_argument("a second schema: begin another call")),
            _ if self.head.schema.is_none() => {
                return Err(Status::invalid_argument("the first message has no schema: expected one"));
            }
            Content::Dictionary { id, replaces } => {
                if replaces {
                    self.head.dictionaries.retain(|(other, _)| *other != id);
                }
                let kept = self.head.keep(frames)?;
                self.head.dictionaries.push((id, kept));
            }
            // A write must have events, so an empty batch is already done.
            Content::Rows(0) => self.ack.batches += 1,
            Content::Rows(_) => {
                self.bytes += ipc::framed_bytes(&message);
                self.batches.push(frames);
            }
        }
        Ok(())
    }

    /// Writes the collected batches.
    async fn write(&mut self) -> Result<(), Status> {
        let mut frames: Vec<Bytes> = self.head.frames().cloned().collect();
        let batches = std::mem::take(&mut self.batches);
        let count = batches.len() as u64;
        frames.extend(batches.into_iter().flatten());
        frames.push(ipc::end());
        let length: usize = frames.iter().map(Bytes::len).sum();
        let body = Body::from_stream(iter(frames.into_iter().map(Ok::<_, Infallible>)));
        let target = format!("/collections/{}/items", links::escape(&self.target.collection));
        let mut request = self.call.request(Method::POST, &target, body)?;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Format::Arrow.media_type()));
        headers.insert(header::CONTENT_LENGTH, length.into());
        if let Some(key) = &self.target.key {
            request.extensions_mut().insert(BatchKey::new(key, self.ack.batches));
        }
        let response = self.call.send(&self.entry, request).await?;
        let receipt = to_bytes(response.into_body(), RECEIPT_BYTES_MAX).await.map_err(status::internal)?;
        let receipt: Receipt = serde_json::from_slice(&receipt).map_err(status::internal)?;
        self.ack.add(count, receipt);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_call_covers_all_of_its_writes() {
        let mut ack = Ack::default();
        for position in ["4-0-7", "4-9-6", "5-9-6"] {
            ack.add(1, Receipt { written: 2, replaced: 0, duplicates: 0, position: position.to_owned() });
        }
        assert_eq!((ack.batches, ack.written, ack.position.as_str()), (3, 6, "5-9-7"));
    }
}
