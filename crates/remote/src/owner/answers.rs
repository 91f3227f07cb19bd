//! Responses to `DoGet`.
//!
//! A response runs in steps. Each runs on a thread that may block, and its result is sent before the next step. While
//! the caller reads nothing, no thread is held, and memory that can be read again is released. If the caller goes away,
//! a flag stops the running step.

use super::collected::CollectedRows;
use super::execution::{self, BoundQuery, Execution};
use super::reply::{ResponseSender, send, wire_fault};
use super::streams::{self, AllChanges, AllRows, PartRows};
use super::{Owner, ShutdownStage, positions};
use crate::wire::answer::Meta;
use crate::wire::call::{Call, Get, WireQuery};
use crate::wire::described::{CollectionRef, WireHead};
use crate::wire::encode::Encoder;
use crate::wire::fault::Fault;
use crate::wire::rows::{Events, projection};
use arrow_flight::FlightData;
use meridian_backend::{Collection, ReadPoint, ReadResult, RowSink, StoreError};
use meridian_model::{Batch, Layout, Schema, Seq};
use meridian_observe as observe;
use meridian_query::{ByValue, CancelFlag, Control, Cursor, QueryError};
use std::sync::Arc;

/// Max parts that the events are cut into.
const PARTS_MAX: usize = 256;

/// Responds to a call.
pub(super) async fn answer(owner: Arc<Owner>, call: Call<Get>, out: ResponseSender) {
    let cancel = CancelFlag::new();
    let left = call.left();
    let control = (owner.options.control)(left, cancel.clone());
    let mut closing = owner.closing.clone();
    // An endless response ends as soon as closing begins.
    let is_endless = matches!(call.ask, Get::Positions);
    let (current, _span) = owner.span(call.trace.as_deref(), "answer");
    let work = observe::within(current, run(&owner, call.ask, &control, &out));
    let done = tokio::select! {
        done = tokio::time::timeout(left, work) => done.unwrap_or(Err(Fault::Deadline)),
        // No caller is left to report to. The flag ends a step on a blocking thread, which dropping its future does
        // not.
        () = out.closed() => {
            cancel.cancel();
            return;
        }
        _ = closing.wait_for(|closing| *closing == ShutdownStage::Cut || is_endless && *closing != ShutdownStage::Open) => {
            cancel.cancel();
            Err(Fault::Unavailable("the owner of the data is stopping".to_owned()))
        }
    };
    if let Err(fault) = done {
        cancel.cancel();
        // The caller may not be reading; the limits of the connection end the wait.
        drop(out.send(Ok(Meta::fault(fault).alone())).await);
    }
}

async fn run(owner: &Arc<Owner>, ask: Get, control: &Control, out: &ResponseSender) -> Result<(), Fault> {
    let at_once = match ask {
        Get::Rows(asked) => {
            let (BoundQuery { collection, at, question, control: bounded }, mut execution) =
                execution::start(owner, &asked, control).await?;
            let items = streams::items(question)?;
            let rows = execution.open(owner, control, move || collection.items(at, &items, &bounded)).await??;
            return streams::stream((owner, execution), Box::new(AllRows::of(rows, owner)), control, out).await;
        }
        Get::PartRows(asked) => {
            let (BoundQuery { at, question, control: bounded, .. }, mut execution) =
                execution::start(owner, &asked, control).await?;
            let part = owner.part(&asked.place, asked.place.partition.unwrap_or(0))?;
            let items = streams::items(question)?;
            let order = items.order.clone();
            let (head, rows) = execution.open(owner, control, move || part.rows(at, &items, &bounded)).await??;
            return streams::stream((owner, execution), Box::new(PartRows::of(head, rows, order, owner)), control, out)
                .await;
        }
        Get::After { place, after, max, step_bytes } => {
            let collection = owner.collection(&place)?;
            let changes = owner
                .step(&place.tenant, control, move || collection.changes_after(&after.map(Seq), max, step_bytes))
                .await??;
            return streams::stream((owner, Execution::of(&place)), Box::new(AllChanges::of(changes)), control, out)
                .await;
        }
        Get::Between { place, after, upto, max } => {
            let collection = owner.collection(&place)?;
            let changes =
                owner.step(&place.tenant, control, move || collection.changes_between(&after, &upto, max)).await??;
            return streams::stream((owner, Execution::of(&place)), Box::new(AllChanges::of(changes)), control, out)
                .await;
        }
        Get::Positions => return positions::send(&owner.positions, out).await,
        Get::Partial(asked) => partial(owner, asked, control).await?,
        Get::Explain(asked) => explain(owner, asked, control).await?,
        Get::Cuts { place, at, parts } => cuts(owner, &place, at.into(), parts, control).await?,
        Get::Event { place, id } => event(owner, &place, id, control).await?,
        Get::Near { place, near } => {
            collect(owner, &place, control, move |collection, _, sink| Ok(collection.near(&near.into(), None, sink)?))
                .await?
        }
        Get::Page { place, skip, limit } => {
            collect(owner, &place, control, move |collection, control, sink| {
                collection.page(skip, limit, control, sink).map(|()| true)
            })
            .await?
        }
        Get::Find { place, id } => {
            collect(owner, &place, control, move |collection, _, sink| Ok(collection.find(&id, sink)?)).await?
        }
        Get::Sample { place } => {
            let random = owner.options.random.clone();
            collect(owner, &place, control, move |collection, control, sink| {
                collection.sample(random.as_ref(), control, sink)
            })
            .await?
        }
        Get::Prior { place, object, before, columns } => {
            prior(owner, &place, object, Seq(before), columns, control).await?
        }
    };
    send(out, at_once).await;
    Ok(())
}

async fn partial(owner: &Arc<Owner>, asked: WireQuery, control: &Control) -> Result<Vec<FlightData>, Fault> {
    let (BoundQuery { collection, at, question, control: bounded }, mut execution) =
        execution::start(owner, &asked, control).await?;
    let answered = move || {
        // Encoded within the step, as the encoding of a large result would block a worker.
        let read = collection.partial(at, &question, &bounded)?;
        let columns = read.value.to_arrow(&read.head.schema).map_err(wire_fault)?;
        let head = Meta { head: Some(WireHead::from(&read.head)), ..Meta::default() }.alone();
        let mut messages = vec![head];
        messages.extend(Encoder::new().encode(&columns, &Meta::done())?);
        Ok(messages)
    };
    execution.step(owner, control, answered).await?
}

async fn explain(owner: &Arc<Owner>, asked: WireQuery, control: &Control) -> Result<Vec<FlightData>, Fault> {
    let (BoundQuery { collection, at, question, control: bounded }, mut execution) =
        execution::start(owner, &asked, control).await?;
    let items = streams::items(question)?;
    let read = execution.step(owner, control, move || collection.explain(at, &items, &bounded)).await??;
    let value = serde_json::to_value(&read.value).map_err(|e| Fault::internal(e.to_string()))?;
    Ok(vec![Meta { head: Some(WireHead::from(&read.head)), value: Some(value), ..Meta::done() }.alone()])
}

async fn cuts(
    owner: &Owner,
    place: &CollectionRef,
    at: ReadPoint,
    parts: usize,
    control: &Control,
) -> Result<Vec<FlightData>, Fault> {
    // A caller's number must not determine the amount of work.
    if parts > PARTS_MAX {
        return Err(Fault::internal(format!("{parts} parts: at most {PARTS_MAX}")));
    }
    let (collection, within) = (owner.collection(place)?, control.clone());
    let cuts = owner.step(&place.tenant, control, move || collection.cuts(at, parts, &within)).await??;
    let bytes: Vec<Vec<u8>> = cuts.iter().map(Cursor::to_bytes).collect();
    let value = serde_json::to_value(bytes).map_err(|e| Fault::internal(e.to_string()))?;
    Ok(vec![Meta { value: Some(value), ..Meta::done() }.alone()])
}

async fn event(owner: &Owner, place: &CollectionRef, id: String, control: &Control) -> Result<Vec<FlightData>, Fault> {
    let collection = owner.collection(place)?;
    let ReadResult { head, value } = owner.step(&place.tenant, control, move || collection.event(&id)).await??;
    let head = Meta { head: Some(WireHead::from(&head)), ..Meta::default() };
    one(head, value)
}

/// Returns a response of at most one event.
fn one(head: Meta, event: Option<(Batch, Seq)>) -> Result<Vec<FlightData>, Fault> {
    let mut messages = vec![head.alone()];
    match event {
        Some((batch, seq)) => {
            let columns = Events { batch, seqs: vec![seq], distances: None }.to_arrow()?;
            messages.extend(Encoder::new().encode(&columns, &Meta::done())?);
        }
        None => messages.push(Meta::done().alone()),
    }
    Ok(messages)
}

/// Collects the rows that a query passes to a sink.
async fn collect(
    owner: &Owner,
    place: &CollectionRef,
    control: &Control,
    question: impl FnOnce(&dyn Collection, &Control, &mut dyn RowSink) -> Result<bool, QueryError> + Send + 'static,
) -> Result<Vec<FlightData>, Fault> {
    let (collection, within) = (owner.collection(place)?, control.clone());
    let answered = move || {
        let mut sink = CollectedRows::default();
        question(collection.as_ref(), &within, &mut sink)?;
        // Encoded here too, on a thread that may block.
        sink.finish()
    };
    owner.step(&place.tenant, control, answered).await?
}

async fn prior(
    owner: &Owner,
    place: &CollectionRef,
    object: ByValue,
    before: Seq,
    columns: Vec<String>,
    control: &Control,
) -> Result<Vec<FlightData>, Fault> {
    let collection = owner.collection(place)?;
    let found = owner
        .step(&place.tenant, control, move || {
            let schema = collection.schema();
            let (batch, columns) = (of_object(&schema, object)?, projection(&columns, &Layout::of(&schema)));
            let found = collection.prior_events().before(&batch, 0, before, &columns)?;
            Ok::<_, StoreError>((schema, found))
        })
        .await?;
    let (schema, found) = found?;
    let value = serde_json::to_value(&*schema).map_err(|e| Fault::internal(e.to_string()))?;
    one(Meta { value: Some(value), ..Meta::default() }, found)
}

/// Makes a batch of one row that has only the object.
fn of_object(schema: &Arc<Schema>, object: ByValue) -> Result<Batch, StoreError> {
    let layout = Arc::new(Layout::of(schema));
    let mut columns = vec![None; layout.columns.len()];
    if let Some(field) = schema.object {
        let column: arrow_array::ArrayRef = match object {
            ByValue::Int(n) => Arc::new(arrow_array::Int64Array::from(vec![n])),
            ByValue::Text(text) => Arc::new(arrow_array::StringArray::from(vec![text])),
            _ => arrow_array::new_null_array(layout.columns[layout.field(field)].data_type(), 1),
        };
        columns[layout.field(field)] = Some(column);
    }
    Ok(Batch::new(schema.clone(), layout, 1, columns)?)
}
