//! Answers without a bound: rows and changes, in steps.

use super::Owner;
use super::answers::{Out, send};
use super::pace::Paced;
use super::seat::Seat;
use crate::wire::answer::{ChangesHead, Meta, RowsSoFar};
use crate::wire::described::{WireHead, WireProblem};
use crate::wire::encode::Encoder;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use arrow_flight::FlightData;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use meridian_backend::{Changes, Head, Rows};
use meridian_model::Schema;
use meridian_query::partial::{RowStream, WireError};
use meridian_query::wire::Question;
use meridian_query::{Control, Hits, Items, Order};
use std::sync::Arc;

/// The fault of a question or an answer that cannot be read or written.
pub(super) fn wire_fault(error: WireError) -> Fault {
    match error {
        WireError::Refused(error) => error.into(),
        other => Fault::internal(other.to_string()),
    }
}

/// The question for items that is expected.
pub(super) fn items(question: Question) -> Result<Items, Fault> {
    match question {
        Question::Items(items) => Ok(items),
        _ => Err(Fault::internal("expected a question for items")),
    }
}

/// An answer that is given batch by batch.
pub(super) trait Steps: Send {
    /// What it begins with.
    fn head(&self) -> Meta;

    /// The messages of the next batch; `None` at the end. Blocks.
    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<Vec<FlightData>>, Fault>;

    /// What it ends with.
    fn end(&self) -> Meta;

    /// Releases what can be read again, before a wait of unknown length.
    fn park(&mut self);
}

/// Sends an answer, a step for each batch.
pub(super) async fn stream(
    (owner, mut seat): (&Owner, Seat),
    mut steps: Box<dyn Steps>,
    control: &Control,
    out: &Out,
) -> Result<(), Fault> {
    send(out, [steps.head().alone()]).await;
    let mut encoder = Encoder::new();
    loop {
        if out.capacity() == 0 {
            steps.park();
            // Only to wait: the room is taken when there is a message. A caller that is gone ends the answer from outside.
            drop(out.reserve().await);
        }
        let step = seat.step(owner, control, move || {
            let messages = steps.next(&mut encoder);
            (steps, encoder, messages)
        });
        let messages;
        (steps, encoder, messages) = step.await?;
        match messages? {
            Some(messages) => {
                send(out, messages).await;
                if let Some(pace) = &owner.options.pace {
                    tokio::time::sleep(pace.turnaround()).await;
                }
            }
            None => {
                send(out, [steps.end().alone()]).await;
                return Ok(());
            }
        }
    }
}

/// The rows of a question for items.
pub(super) struct AllRows {
    rows: Box<dyn Rows>,
    pace: Paced,
}

impl AllRows {
    pub(super) fn of(mut rows: Box<dyn Rows>, owner: &Owner) -> AllRows {
        let pace = Paced::of(owner);
        pace.rows_max().into_iter().for_each(|events| rows.limit_batches(events));
        AllRows { rows, pace }
    }

    fn so_far(&self) -> RowsSoFar {
        let rows = &self.rows;
        RowsSoFar { stats: rows.stats(), matched: rows.number_matched(), over: rows.is_over(), next: None }
    }
}

impl Steps for AllRows {
    fn head(&self) -> Meta {
        Meta { head: Some(WireHead::from(self.rows.head())), rows: Some(self.so_far()), ..Meta::default() }
    }

    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<Vec<FlightData>>, Fault> {
        let Some(hits) = self.rows.next() else { return Ok(None) };
        let Hits { batch, seqs, distances } = hits?;
        self.pace.take(&batch)?;
        let columns = Events { batch, seqs, distances }.to_arrow()?;
        encoder.encode(&columns, &Meta { rows: Some(self.so_far()), ..Meta::default() }).map(Some)
    }

    fn end(&self) -> Meta {
        let next = self.rows.next_page().map(|cursor| URL_SAFE_NO_PAD.encode(cursor.to_bytes()));
        Meta { rows: Some(RowsSoFar { next, ..self.so_far() }), ..Meta::done() }
    }

    fn park(&mut self) {
        self.rows.park();
    }
}

/// The rows of one partition, each with its cursor.
pub(super) struct PartRows {
    head: Head,
    rows: Box<dyn RowStream + Send>,
    order: Order,
    pace: Paced,
}

impl PartRows {
    pub(super) fn of(head: Head, mut rows: Box<dyn RowStream + Send>, order: Order, owner: &Owner) -> PartRows {
        let pace = Paced::of(owner);
        pace.rows_max().into_iter().for_each(|events| rows.at_most(events));
        PartRows { head, rows, order, pace }
    }

    fn so_far(&self) -> RowsSoFar {
        let summary = self.rows.summary();
        RowsSoFar { stats: summary.stats, matched: summary.matched, ..RowsSoFar::default() }
    }
}

impl Steps for PartRows {
    fn head(&self) -> Meta {
        Meta { head: Some(WireHead::from(&self.head)), rows: Some(self.so_far()), ..Meta::default() }
    }

    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<Vec<FlightData>>, Fault> {
        let Some(rows) = self.rows.next().transpose()? else { return Ok(None) };
        self.pace.take(&rows.batch)?;
        let columns = rows.to_arrow(&self.order).map_err(wire_fault)?;
        encoder.encode(&columns, &Meta { rows: Some(self.so_far()), ..Meta::default() }).map(Some)
    }

    fn end(&self) -> Meta {
        Meta { rows: Some(self.so_far()), ..Meta::done() }
    }

    fn park(&mut self) {
        self.rows.rest();
    }
}

/// Changes, and their schema before the first that has it.
pub(super) struct AllChanges {
    changes: Box<dyn Changes>,
    schema: Option<Arc<Schema>>,
}

impl AllChanges {
    pub(super) fn of(changes: Box<dyn Changes>) -> AllChanges {
        AllChanges { changes, schema: None }
    }
}

impl Steps for AllChanges {
    fn head(&self) -> Meta {
        let missing = self.changes.missing().iter().map(WireProblem::from).collect();
        let head = ChangesHead { left_out: self.changes.left_out(), missing };
        Meta { changes: Some(head), ..Meta::default() }
    }

    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<Vec<FlightData>>, Fault> {
        let Some((batch, seqs)) = self.changes.read()? else { return Ok(None) };
        let mut messages = Vec::new();
        if self.schema.as_ref().is_none_or(|sent| sent != batch.schema()) {
            let value = serde_json::to_value(batch.schema().as_ref()).map_err(|e| Fault::internal(e.to_string()))?;
            messages.push(Meta { value: Some(value), ..Meta::default() }.alone());
            self.schema = Some(batch.schema().clone());
        }
        let columns = Events { batch, seqs, distances: None }.to_arrow()?;
        messages.extend(encoder.encode(&columns, &Meta::default())?);
        Ok(Some(messages))
    }

    fn end(&self) -> Meta {
        Meta { upto: Some(self.changes.upto().map(|seq| seq.0)), ..Meta::done() }
    }

    fn park(&mut self) {
        self.changes.park();
    }
}
