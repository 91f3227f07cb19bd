//! Answers without a bound: rows and changes, in steps.

use super::Owner;
use super::answers::{Out, send};
use crate::wire::answer::{ChangesHead, Meta, RowsSoFar};
use crate::wire::described::{WireHead, WireProblem};
use crate::wire::encode::Encoder;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use arrow_flight::FlightData;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use meridian_backend::{At, Changes, Collection, Rows};
use meridian_model::Schema;
use meridian_query::partial::WireError;
use meridian_query::wire::Question;
use meridian_query::{Control, Hits};
use std::sync::Arc;

/// The fault of a question or an answer that cannot be read or written.
pub(super) fn wire_fault(error: WireError) -> Fault {
    match error {
        WireError::Refused(error) => error.into(),
        other => Fault::internal(other.to_string()),
    }
}

/// The fault of another question where one for items is expected.
pub(super) fn not_items() -> Fault {
    Fault::internal("expected a question for items")
}

/// Waits until the caller has taken what was sent, and says whether it had to.
async fn wait_for_reader(out: &Out, park: impl FnOnce()) {
    if out.capacity() == 0 {
        park();
        // Only to wait: the room is taken when there is a message. A caller that is gone ends the answer from outside.
        drop(out.reserve().await);
    }
}

/// Sends the rows of a question for items.
pub(super) async fn rows(
    owner: &Owner,
    collection: Arc<dyn Collection>,
    at: At,
    question: Question,
    control: &Control,
    out: &Out,
) -> Result<(), Fault> {
    let Question::Items(items) = question else { return Err(not_items()) };
    let within = control.clone();
    let mut rows = owner.step(control, move || collection.items(at, &items, &within)).await??;
    let head = Meta { head: Some(WireHead::from(rows.head())), rows: Some(so_far(&*rows)), ..Meta::default() };
    send(out, [head.alone()]).await;
    let mut encoder = Encoder::new();
    loop {
        wait_for_reader(out, || {
            rows.park();
        })
        .await;
        let step = owner.step(control, move || {
            let messages = next_rows(&mut *rows, &mut encoder);
            (rows, encoder, messages)
        });
        let messages;
        (rows, encoder, messages) = step.await?;
        match messages? {
            Some(messages) => send(out, messages).await,
            None => {
                let next = rows.next_page().map(|cursor| URL_SAFE_NO_PAD.encode(cursor.to_bytes()));
                let rows = Some(RowsSoFar { next, ..so_far(&*rows) });
                send(out, [Meta { rows, ..Meta::done() }.alone()]).await;
                return Ok(());
            }
        }
    }
}

fn next_rows(rows: &mut dyn Rows, encoder: &mut Encoder) -> Result<Option<Vec<FlightData>>, Fault> {
    let Some(hits) = rows.next() else { return Ok(None) };
    let Hits { batch, seqs, distances } = hits?;
    let columns = Events { batch, seqs, distances }.to_arrow()?;
    encoder.encode(&columns, &Meta { rows: Some(so_far(rows)), ..Meta::default() }).map(Some)
}

fn so_far(rows: &dyn Rows) -> RowsSoFar {
    RowsSoFar { stats: rows.stats(), matched: rows.number_matched(), over: rows.is_over(), next: None }
}

/// Sends changes, and their schema before the first that has it.
pub(super) async fn changes(
    owner: &Owner,
    mut changes: Box<dyn Changes>,
    control: &Control,
    out: &Out,
) -> Result<(), Fault> {
    let missing = changes.missing().iter().map(WireProblem::from).collect();
    let head = ChangesHead { left_out: changes.left_out(), missing };
    send(out, [Meta { changes: Some(head), ..Meta::default() }.alone()]).await;
    let (mut encoder, mut schema) = (Encoder::new(), None);
    loop {
        wait_for_reader(out, || changes.park()).await;
        let step = owner.step(control, move || {
            let messages = next_changes(&mut *changes, &mut encoder, &mut schema);
            (changes, encoder, schema, messages)
        });
        let messages;
        (changes, encoder, schema, messages) = step.await?;
        match messages? {
            Some(messages) => send(out, messages).await,
            None => {
                send(out, [Meta { upto: Some(changes.upto().map(|seq| seq.0)), ..Meta::done() }.alone()]).await;
                return Ok(());
            }
        }
    }
}

fn next_changes(
    changes: &mut dyn Changes,
    encoder: &mut Encoder,
    schema: &mut Option<Arc<Schema>>,
) -> Result<Option<Vec<FlightData>>, Fault> {
    let Some((batch, seqs)) = changes.read()? else { return Ok(None) };
    let mut messages = Vec::new();
    if schema.as_ref().is_none_or(|sent| sent != batch.schema()) {
        let value = serde_json::to_value(batch.schema().as_ref()).map_err(|e| Fault::internal(e.to_string()))?;
        messages.push(Meta { value: Some(value), ..Meta::default() }.alone());
        *schema = Some(batch.schema().clone());
    }
    let columns = Events { batch, seqs, distances: None }.to_arrow()?;
    messages.extend(encoder.encode(&columns, &Meta::default())?);
    Ok(Some(messages))
}
