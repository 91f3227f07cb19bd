//! Writes, each applied at most once however often it is sent.
//!
//! A gateway numbers its writes. A write whose response was lost is resent with the same number:
//!
//! ```text
//! meant for another server                      -> refused, so that the gateway knows which server it may have reached
//! number unknown here, first attempt            -> written; its outcome is remembered
//! number known                                  -> the outcome, or the wait for it
//! sent before to another server, without a key  -> Unknown: that server may have written it
//! sent before to another server, with a key     -> written: the store knows the key if that server wrote it
//! older than the outcomes remembered             -> Unknown
//! from a gateway that is not remembered         -> Unknown
//! ```
//!
//! A write continues when its caller goes away. Otherwise the next attempt could not learn its outcome.

use super::Owner;
use crate::wire::answer::WireWritten;
use crate::wire::call::{Call, Put};
use crate::wire::decode::{BatchAssembler, Decoder};
use crate::wire::fault::Fault;
use crate::wire::rows::whole_batch_from_arrow;
use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use meridian_backend::{Collection, Write, WriteError, WriteReceipt};
use meridian_observe::{self as observe, WorkContext};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::{Status, Streaming};

/// Max outcomes remembered.
const REMEMBERED_MAX: usize = 1 << 14;
/// Max producers whose forgotten numbers are tracked. Each start of a gateway is a new producer.
const PRODUCERS_MAX: usize = 1 << 10;
/// How often a waiting write checks whether a flush has freed memory.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Max bytes of a write that is queued on the thread that received it.
const SMALL_BYTES: usize = 64 << 10;

type Outcome = Result<WireWritten, Fault>;
/// A producer, and its number for a write.
type Number = (u64, u64);

/// Recent writes, by number.
#[derive(Debug, Default)]
pub(super) struct Appends(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    outcomes: HashMap<Number, watch::Receiver<Option<Outcome>>>,
    /// Numbers in the order in which the writes began.
    order: VecDeque<Number>,
    /// Per producer: the number up to which writes may have been forgotten, and the tick of the last such change.
    forgotten: HashMap<u64, (u64, u64)>,
    /// Number of writes forgotten so far: the clock of these ticks.
    times: u64,
    /// Whether a producer was forgotten, so that an unknown one may not be new.
    lost_producers: bool,
}

/// What is known of a numbered write.
enum WriteState {
    New(watch::Sender<Option<Outcome>>, watch::Receiver<Option<Outcome>>),
    Begun(watch::Receiver<Option<Outcome>>),
    Forgotten,
}

impl Appends {
    fn begin(&self, number: Number, is_repeated: bool) -> WriteState {
        // Checked and registered under one lock, so that concurrent attempts of a write begin it only once.
        let mut state = self.0.lock();
        if let Some(outcome) = state.outcomes.get(&number) {
            return WriteState::Begun(outcome.clone());
        }
        if is_repeated && state.may_have_forgotten(number) {
            return WriteState::Forgotten;
        }
        let (done, outcome) = watch::channel(None);
        state.outcomes.insert(number, outcome.clone());
        state.order.push_back(number);
        if state.order.len() > REMEMBERED_MAX
            && let Some((producer, number)) = state.order.pop_front()
        {
            state.outcomes.remove(&(producer, number));
            state.note_forgotten(producer, number);
        }
        WriteState::New(done, outcome)
    }
}

impl State {
    fn may_have_forgotten(&self, (producer, number): Number) -> bool {
        self.forgotten.get(&producer).map_or(self.lost_producers, |(upto, _)| number <= *upto)
    }

    fn note_forgotten(&mut self, producer: u64, number: u64) {
        self.times += 1;
        let (upto, last) = self.forgotten.entry(producer).or_default();
        (*upto, *last) = (number.max(*upto), self.times);
        if self.forgotten.len() <= PRODUCERS_MAX {
            return;
        }
        // The producer silent for longest, whose process is most likely gone.
        let silent = self.forgotten.iter().min_by_key(|(_, (_, last))| *last).map(|(producer, _)| *producer);
        if let Some(silent) = silent {
            self.forgotten.remove(&silent);
            self.lost_producers = true;
        }
    }
}

/// Receives a write and responds with its outcome.
///
/// # Errors
/// Those of the connection. Errors of the write are outcomes.
pub(super) async fn put(owner: &Arc<Owner>, mut messages: Streaming<FlightData>) -> Result<Outcome, Status> {
    let Some(first) = messages.message().await? else {
        return Ok(Err(Fault::internal("a write without a message")));
    };
    let described = first.flight_descriptor.as_ref().map(|descriptor| descriptor.cmd.clone()).unwrap_or_default();
    let call = match Call::<Put>::from_json(&described) {
        Ok(call) => call,
        Err(fault) => return Ok(Err(fault)),
    };
    let left = call.left();
    let (announced, limit) = (call.ask.bytes, super::RECEIVED_KIB_MAX << 10);
    if announced > limit {
        return Ok(Err(Fault::BatchTooLarge { bytes: announced as u64, limit: limit as u64 }));
    }
    // Takes room for all of it before the rest is read. Otherwise writes that each hold a part would wait for one
    // another.
    let kib = u32::try_from(announced.div_ceil(1024)).unwrap_or(u32::MAX);
    let room = tokio::time::timeout(left, owner.received.clone().acquire_many_owned(kib)).await;
    let Ok(Ok(room)) = room else { return Ok(Err(Fault::Deadline)) };
    let (mut decoder, mut whole) = (Decoder::default(), BatchAssembler::default());
    let (mut next, mut received) = (Some(first), 0);
    while let Some(message) = next {
        received += message.data_body.len();
        // The room was taken for the announced size only.
        if received > announced {
            let detail = format!("a write of {announced} bytes, as it said of itself, that is larger");
            return Ok(Err(Fault::internal(detail)));
        }
        let added = decoder.decode(message).and_then(|(columns, _)| columns.map_or(Ok(()), |part| whole.add(part)));
        if let Err(fault) = added {
            return Ok(Err(fault));
        }
        next = messages.message().await?;
    }
    let columns = match whole.finish() {
        Ok(Some(columns)) if columns.num_rows() == call.ask.rows => columns,
        Ok(_) => return Ok(Err(Fault::internal("a write was cut on its way"))),
        Err(fault) => return Ok(Err(fault)),
    };
    let (current, span) = owner.span(call.trace.as_deref(), "write");
    let outcome = begin(owner, call.ask, columns, Instant::now() + left, (room, span), current);
    Ok(match outcome {
        Err(fault) => Err(fault),
        Ok(mut outcome) => match outcome.wait_for(Option::is_some).await {
            Ok(done) => done.clone().unwrap_or(Err(Fault::Closed)),
            Err(_) => Err(Fault::Unknown("the write failed in the middle".to_owned())),
        },
    })
}

/// Begins a write, unless its number shows that it was begun before.
fn begin(
    owner: &Arc<Owner>,
    put: Put,
    columns: RecordBatch,
    deadline: Instant,
    // Held until the write ends.
    held: impl Send + 'static,
    current: WorkContext,
) -> Result<watch::Receiver<Option<Outcome>>, Fault> {
    if put.to != owner.instance {
        return Err(Fault::Unavailable("the write was meant for another server: try again".to_owned()));
    }
    let is_repeated = put.sent_to.is_some();
    if put.sent_to.is_some_and(|instance| instance != owner.instance) && put.key.is_none() {
        let detail = "the server that they were sent to was replaced before it answered: look for them, or send writes with an Idempotency-Key";
        return Err(Fault::Unknown(detail.to_owned()));
    }
    match owner.appends.begin((put.producer, put.number), is_repeated) {
        WriteState::Begun(outcome) => Ok(outcome),
        WriteState::Forgotten => Err(Fault::Unknown("its outcome is no longer remembered".to_owned())),
        WriteState::New(done, outcome) => {
            let owner = owner.clone();
            tokio::spawn(async move {
                let written = observe::within(current, write(&owner, put, &columns, deadline)).await;
                done.send_replace(Some(written.map(WireWritten::from)));
                drop(held);
            });
            Ok(outcome)
        }
    }
}

async fn write(owner: &Owner, put: Put, columns: &RecordBatch, deadline: Instant) -> Result<WriteReceipt, Fault> {
    let collection = owner.collection(&put.place)?;
    let batch = whole_batch_from_arrow(columns, &collection.schema())?;
    let bytes = batch.bytes();
    let is_keyed = put.key.is_some();
    let write = Write { batch, key: put.key, on_conflict: put.on_conflict.into(), deadline: None };
    match append(collection, write, bytes, deadline).await? {
        // Refused because of the state here, which another owner may have changed, or because of a takeover. Nothing
        // was stored.
        Err(
            error @ (WriteError::Conflict { .. }
            | WriteError::KeyReused { .. }
            | WriteError::Changed
            | WriteError::Busy(_)
            | WriteError::Late(_)
            | WriteError::Closed),
        ) => {
            owner.still()?;
            Err(error.into())
        }
        // Some partitions have stored their shares; another owner has the others by now. By the key it knows which
        // ones. Without a key the stored shares would be stored twice.
        Err(error @ (WriteError::Partly { .. } | WriteError::Unknown(_))) if is_keyed => {
            owner.still()?;
            Err(error.into())
        }
        done => Ok(done?),
    }
}

/// Passes a write to its collection once there is room, and waits for it.
async fn append(
    collection: Arc<dyn Collection>,
    write: Write,
    bytes: usize,
    deadline: Instant,
) -> Result<Result<WriteReceipt, WriteError>, Fault> {
    if let Err(error) = wait_for_room(&*collection, deadline).await {
        return Ok(Err(error));
    }
    // Encoding a large batch would block a worker.
    let queued = match bytes <= SMALL_BYTES {
        true => collection.append(write, deadline),
        false => tokio::task::spawn_blocking(move || collection.append(write, deadline))
            .await
            .map_err(|e| Fault::internal(format!("the write failed: {e}")))?,
    };
    Ok(match queued {
        Ok(queued) => queued.await,
        Err(error) => Err(error),
    })
}

/// Waits until a flush has freed memory, as long as a write may wait.
async fn wait_for_room(collection: &dyn Collection, deadline: Instant) -> Result<(), WriteError> {
    let until = deadline.min(Instant::now() + collection.room_wait());
    while !collection.request_room()? {
        if Instant::now() >= until {
            return Err(WriteError::no_room());
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_begun_once_and_forgotten_late() {
        let appends = Appends::default();
        let begin = |number: u64, repeated: bool| appends.begin((7, number), repeated);
        assert!(matches!(begin(1, false), WriteState::New(..)));
        assert!(matches!(begin(1, true), WriteState::Begun(_)));
        // Sent again, though it never arrived.
        assert!(matches!(begin(2, true), WriteState::New(..)));
        for number in 3..=REMEMBERED_MAX as u64 + 1 {
            assert!(matches!(begin(number, false), WriteState::New(..)));
        }
        // The first was evicted; whether it was written is no longer known.
        assert!(matches!(begin(1, true), WriteState::Forgotten));
        assert!(matches!(begin(2, true), WriteState::Begun(_)));
        // With many producers, the one silent for longest cannot be told from a new one.
        let mut state = State::default();
        for producer in 0..=PRODUCERS_MAX as u64 {
            assert!(!state.may_have_forgotten((producer, 1)), "{producer}");
            state.note_forgotten(producer, 1);
        }
        assert_eq!(state.forgotten.len(), PRODUCERS_MAX);
        assert!(state.may_have_forgotten((0, 1)) && state.may_have_forgotten((1, 1)));
        assert!(!state.may_have_forgotten((1, 2)), "what is remembered still counts");
        // Each producer has its own numbers.
        assert!(matches!(appends.begin((8, 1), true), WriteState::New(..)));
    }
}
