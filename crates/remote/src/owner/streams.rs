//! Unbounded responses: rows and changes, in steps.

use super::Owner;
use super::execution::Execution;
use super::pace::PacedItems;
use super::reply::{ResponseSender, send, wire_fault};
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
use meridian_query::partial::{PartialRows, RowStream};
use meridian_query::wire::Question;
use meridian_query::{Control, Hits, Items, Order, QueryError};
use std::sync::Arc;

/// Rows after which a step ends.
const TURN_ROWS: usize = 512;
/// Messages after which a step ends, since rows may be large.
const TURN_MESSAGES: usize = 4;

/// Returns the items query; any other kind is a fault.
pub(super) fn items(question: Question) -> Result<Items, Fault> {
    match question {
        Question::Items(items) => Ok(items),
        _ => Err(Fault::internal("expected a question for items")),
    }
}

/// A response produced batch by batch.
pub(super) trait BatchedResponse: Send {
    /// Its first message.
    fn head(&self) -> Meta;

    /// Returns the messages of the next batch, and its number of rows; `None` at the end. Blocks.
    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<(Vec<FlightData>, usize)>, Fault>;

    /// Rows after which a step ends.
    fn turn_rows(&self) -> usize {
        TURN_ROWS
    }

    /// Returns true if it is known that no batch follows.
    fn is_end(&mut self) -> bool {
        false
    }

    /// Its last message.
    fn end(&self) -> Meta;

    /// Releases memory that can be read again, before a wait of unknown length.
    fn park(&mut self);
}

/// Output of one step.
struct StepOutput {
    messages: Vec<FlightData>,
    /// Whether the response ends with it.
    is_end: bool,
}

/// Takes the batches of one step, until there are enough rows to be worth the wait for a slot, or the end. A small
/// response reaches the end at once.
fn take(steps: &mut dyn BatchedResponse, encoder: &mut Encoder) -> Result<StepOutput, Fault> {
    let (mut all, mut taken) = (Vec::new(), 0);
    while taken < steps.turn_rows() && all.len() < TURN_MESSAGES {
        let Some((messages, rows)) = steps.next(encoder)? else {
            return Ok(StepOutput { messages: all, is_end: true });
        };
        all.extend(messages);
        taken += rows;
    }
    Ok(StepOutput { messages: all, is_end: steps.is_end() })
}

/// Sends a response, step by step.
pub(super) async fn stream(
    (owner, mut execution): (&Owner, Execution),
    mut steps: Box<dyn BatchedResponse>,
    control: &Control,
    out: &ResponseSender,
) -> Result<(), Fault> {
    send(out, [steps.head().alone()]).await;
    let mut encoder = Encoder::new();
    loop {
        if out.capacity() == 0 {
            steps.park();
            // Only waits for room, which is taken when there is a message. If the caller is gone, the response is
            // dropped from outside.
            drop(out.reserve().await);
        }
        let step = execution.step(owner, control, move || {
            let given = take(&mut *steps, &mut encoder);
            (steps, encoder, given)
        });
        let given;
        (steps, encoder, given) = step.await?;
        let StepOutput { messages, is_end } = given?;
        send(out, messages).await;
        if is_end {
            send(out, [steps.end().alone()]).await;
            return Ok(());
        }
        if let Some(pace) = &owner.options.pace {
            tokio::time::sleep(pace.turnaround()).await;
        }
    }
}

/// The rows of an items query.
pub(super) struct AllRows {
    rows: Box<dyn Rows>,
    pace: PacedItems<Result<Hits, QueryError>>,
}

impl AllRows {
    pub(super) fn of(mut rows: Box<dyn Rows>, owner: &Owner) -> AllRows {
        let pace = PacedItems::of(owner);
        pace.rows_max().into_iter().for_each(|events| rows.limit_batches(events));
        AllRows { rows, pace }
    }

    fn so_far(&self) -> RowsSoFar {
        let rows = &self.rows;
        RowsSoFar { stats: rows.stats(), matched: rows.number_matched(), over: rows.is_over(), next: None }
    }
}

impl BatchedResponse for AllRows {
    fn head(&self) -> Meta {
        Meta { head: Some(WireHead::from(self.rows.head())), rows: Some(self.so_far()), ..Meta::default() }
    }

    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<(Vec<FlightData>, usize)>, Fault> {
        let Some(hits) = self.pace.next(|| self.rows.next()) else { return Ok(None) };
        let Hits { batch, seqs, distances } = hits?;
        self.pace.take(&batch)?;
        let columns = Events { batch, seqs, distances }.to_arrow()?;
        let messages = encoder.encode(&columns, &Meta { rows: Some(self.so_far()), ..Meta::default() })?;
        Ok(Some((messages, columns.num_rows())))
    }

    fn turn_rows(&self) -> usize {
        self.pace.rows_max().unwrap_or(TURN_ROWS)
    }

    fn is_end(&mut self) -> bool {
        self.pace.is_end(|| self.rows.next())
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
    pace: PacedItems<Result<PartialRows, QueryError>>,
}

impl PartRows {
    pub(super) fn of(head: Head, mut rows: Box<dyn RowStream + Send>, order: Order, owner: &Owner) -> PartRows {
        let pace = PacedItems::of(owner);
        pace.rows_max().into_iter().for_each(|events| rows.at_most(events));
        PartRows { head, rows, order, pace }
    }

    fn so_far(&self) -> RowsSoFar {
        let summary = self.rows.summary();
        RowsSoFar { stats: summary.stats, matched: summary.matched, ..RowsSoFar::default() }
    }
}

impl BatchedResponse for PartRows {
    fn head(&self) -> Meta {
        Meta { head: Some(WireHead::from(&self.head)), rows: Some(self.so_far()), ..Meta::default() }
    }

    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<(Vec<FlightData>, usize)>, Fault> {
        let Some(rows) = self.pace.next(|| self.rows.next()).transpose()? else { return Ok(None) };
        self.pace.take(&rows.batch)?;
        let columns = rows.to_arrow(&self.order).map_err(wire_fault)?;
        let messages = encoder.encode(&columns, &Meta { rows: Some(self.so_far()), ..Meta::default() })?;
        Ok(Some((messages, columns.num_rows())))
    }

    fn turn_rows(&self) -> usize {
        self.pace.rows_max().unwrap_or(TURN_ROWS)
    }

    fn is_end(&mut self) -> bool {
        self.pace.is_end(|| self.rows.next())
    }

    fn end(&self) -> Meta {
        Meta { rows: Some(self.so_far()), ..Meta::done() }
    }

    fn park(&mut self) {
        self.rows.rest();
    }
}

/// Changes; each schema precedes the first change that has it.
pub(super) struct AllChanges {
    changes: Box<dyn Changes>,
    schema: Option<Arc<Schema>>,
}

impl AllChanges {
    pub(super) fn of(changes: Box<dyn Changes>) -> AllChanges {
        AllChanges { changes, schema: None }
    }
}

impl BatchedResponse for AllChanges {
    fn head(&self) -> Meta {
        let missing = self.changes.missing().iter().map(WireProblem::from).collect();
        let head = ChangesHead { left_out: self.changes.left_out(), missing };
        Meta { changes: Some(head), ..Meta::default() }
    }

    fn next(&mut self, encoder: &mut Encoder) -> Result<Option<(Vec<FlightData>, usize)>, Fault> {
        let Some((batch, seqs)) = self.changes.read()? else { return Ok(None) };
        let mut messages = Vec::new();
        if self.schema.as_ref().is_none_or(|sent| sent != batch.schema()) {
            let value = serde_json::to_value(batch.schema().as_ref()).map_err(|e| Fault::internal(e.to_string()))?;
            messages.push(Meta { value: Some(value), ..Meta::default() }.alone());
            self.schema = Some(batch.schema().clone());
        }
        let columns = Events { batch, seqs, distances: None }.to_arrow()?;
        messages.extend(encoder.encode(&columns, &Meta::default())?);
        Ok(Some((messages, columns.num_rows())))
    }

    fn end(&self) -> Meta {
        Meta { upto: Some(self.changes.upto().map(|seq| seq.0)), ..Meta::done() }
    }

    fn park(&mut self) {
        self.changes.park();
    }
}
