//! Writes, retried until their outcome is known or cannot be known.

use super::failed::CallFailure;
use super::link::Link;
use super::mirror::Mirror;
use super::retry::Retry;
use crate::wire::answer::{Meta, WireWritten};
use crate::wire::call::{Call, Put};
use crate::wire::encode::Encoder;
use crate::wire::fault::Fault;
use crate::wire::rows::batch_to_arrow;
use arrow_flight::{FlightData, FlightDescriptor};
use meridian_backend::{Append, Write, WriteError, WriteReceipt};
use meridian_observe::{self as observe, Stage};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long to wait for an outcome after the write's deadline.
const GRACE: Duration = Duration::from_secs(1);
/// Pause before resending a write whose outcome only a response can reveal.
const PAUSE: Duration = Duration::from_millis(50);

/// Numbers the writes of this gateway.
#[derive(Debug)]
pub(super) struct Producer {
    id: u64,
    next: AtomicU64,
}

impl Producer {
    pub(super) fn new(id: u64) -> Producer {
        Producer { id, next: AtomicU64::new(1) }
    }
}

/// A write in flight; dropping it stops the retries.
struct SendTask(JoinHandle<Result<WireWritten, Fault>>);

impl Drop for SendTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Encodes a write on the calling thread and sends it.
pub(super) fn append(
    link: &Arc<Link>,
    mirror: &Arc<Mirror>,
    producer: &Producer,
    write: Write,
    deadline: Instant,
) -> Result<Append, WriteError> {
    let Write { batch, key, on_conflict, .. } = write;
    // On the caller's thread: the few threads of the calls encode nothing, as a large batch would hold up the others.
    let columns = batch_to_arrow(&batch).map_err(Fault::into_write)?;
    let messages = Encoder::new().encode(&columns, &Meta::default()).map_err(Fault::into_write)?;
    let put = Put {
        place: mirror.place.clone(),
        key,
        on_conflict: on_conflict.into(),
        rows: batch.rows(),
        bytes: messages.iter().map(|message| message.data_body.len()).sum(),
        producer: producer.id,
        // One number for all attempts: by it the owner recognises a write that it has already begun.
        number: producer.next.fetch_add(1, Ordering::Relaxed),
        // Set by each attempt.
        to: 0,
        // Set once an attempt may have arrived.
        sent_to: None,
    };
    let (through, mirror) = (link.clone(), mirror.clone());
    let sending = async move { send(&through, put, messages, deadline).await };
    let current = observe::current();
    // Spawned, so that sending begins at once and not when the caller first polls. Wrapped, so that a caller that gives
    // up ends it.
    let mut sending = SendTask(link.spawn(observe::within(current.clone(), sending)));
    Ok(Box::pin(async move {
        let commit = current.stage(Stage::Commit);
        let outcome = (&mut sending.0).await;
        drop(commit);
        // A task that panicked may have sent the write before.
        let outcome = outcome.unwrap_or_else(|e| Err(Fault::Unknown(format!("the write failed: {e}"))));
        // Whatever the outcome: a failed write may be stored all the same, and the cached description no longer holds.
        mirror.written(outcome.as_ref().ok().map(|written| &written.position));
        outcome.map(WriteReceipt::from).map_err(Fault::into_write)
    }))
}

/// Sends a numbered write, and retries when the link fails. Once an attempt may have arrived, only a response settles
/// the outcome, so it retries until one comes or the deadline passes.
async fn send(link: &Link, put: Put, messages: Vec<FlightData>, deadline: Instant) -> Result<WireWritten, Fault> {
    let (mut put, mut retry, mut last) = (put, Retry::default(), Fault::Deadline);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // The time is over. The write is in doubt only if an attempt may have arrived; otherwise the last failure is
        // certain.
        if left.is_zero() {
            return Err(match put.sent_to {
                Some(_) => Fault::Unknown("the owner of the data went away before it answered".to_owned()),
                None => last,
            });
        }
        let failed = match attempt(link, &mut put, &messages, left).await {
            Ok(outcome) => return Ok(outcome),
            Err(failed) => failed,
        };
        // Only faults of the link are retried: any other is the owner's own, or would come again.
        if !failed.fault.is_of_the_link() {
            return Err(failed.fault);
        }
        if failed.arrived {
            // The first such server stays named. Whichever server is tried later, that one may have stored the write.
            put.sent_to.get_or_insert(put.to);
        }
        last = failed.fault.clone();
        let left = deadline.saturating_duration_since(Instant::now());
        // The wait ends at the deadline too, which the next turn of the loop reports.
        match tokio::time::timeout(left, retry.after(link, failed.fault)).await {
            // The rule for retries gives up, but here only a response can reveal the outcome.
            Ok(Err(_)) if put.sent_to.is_some() => tokio::time::sleep(PAUSE).await,
            Ok(Err(fault)) => return Err(fault),
            Ok(Ok(())) | Err(_) => {}
        }
    }
}

/// Sends a write once. The attempt names its server: without a response, only that server may have written it.
async fn attempt(
    link: &Link,
    put: &mut Put,
    messages: &[FlightData],
    left: Duration,
) -> Result<WireWritten, CallFailure> {
    // Only a server that has identified itself can be named. Nothing of the write is sent until then.
    let named = tokio::time::timeout(left, link.named()).await;
    let (asked, instance) = named.unwrap_or_else(|_| Err(unanswered())).map_err(CallFailure::before)?;
    put.to = instance;
    let command = Call::of(put.clone(), left).to_json().map_err(CallFailure::before)?;
    let mut messages = messages.to_vec();
    if let Some(first) = messages.first_mut() {
        // The first message has the command. It differs in each attempt, by its server and its time left.
        first.flight_descriptor = Some(FlightDescriptor::new_cmd(command));
    }
    // The owner keeps the deadline itself. Its answer to that needs a moment to arrive.
    match tokio::time::timeout(left + GRACE, link.put(asked, messages)).await {
        Ok(outcome) => outcome,
        // Silence proves nothing: the write may have arrived.
        Err(_) => Err(CallFailure::after(unanswered())),
    }
}

fn unanswered() -> Fault {
    Fault::Unavailable("the owner of the data did not answer in time: try again".to_owned())
}
