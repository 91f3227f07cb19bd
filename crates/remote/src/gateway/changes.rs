//! Changes of a collection, and the events before them.

use super::answer::{Message, MessageStream};
use super::link::Link;
use crate::wire::answer::ChangesHead;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_backend::{Changes, Problem, StoreError};
use meridian_model::{Batch, Schema, Seq, Seqs};
use serde_json::Value;
use std::sync::Arc;

/// Decodes the schema of a message. Reuses the known one if they are equal.
pub(super) fn schema_of(value: Value, known: Option<&Arc<Schema>>) -> Result<Arc<Schema>, Fault> {
    let schema: Schema =
        serde_json::from_value(value).map_err(|e| Fault::internal(format!("a schema cannot be read: {e}")))?;
    if let Some(same) = known.filter(|known| ***known == schema) {
        return Ok(same.clone());
    }
    schema.validate().map_err(|e| Fault::internal(format!("a schema is none: {e}")))?;
    Ok(Arc::new(schema))
}

/// The events written after a position.
pub(super) struct RemoteChanges {
    link: Arc<Link>,
    /// `None` once the changes have ended.
    answer: Option<MessageStream>,
    schema: Arc<Schema>,
    upto: Seqs,
    left_out: u64,
    missing: Vec<Problem>,
}

impl RemoteChanges {
    pub(super) fn new(
        link: Arc<Link>,
        answer: MessageStream,
        first: Message,
        known: &Arc<Schema>,
    ) -> Result<RemoteChanges, Fault> {
        let head = first.meta.changes.ok_or_else(|| Fault::internal("changes without a head"))?;
        let ChangesHead { left_out, missing } = head;
        let missing = missing.into_iter().map(Problem::from).collect();
        Ok(RemoteChanges {
            link,
            answer: Some(answer),
            schema: known.clone(),
            upto: Seqs::default(),
            left_out,
            missing,
        })
    }

    fn receive(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, Fault> {
        while let Some(answer) = self.answer.take() {
            let (answer, message) = answer.wait(&self.link, &self.link.patience())?;
            let Some(Message { columns, meta }) = message else { return Ok(None) };
            if let Some(value) = meta.value {
                self.schema = schema_of(value, Some(&self.schema))?;
            }
            if let Some(upto) = meta.upto {
                self.upto = upto.map(Seq);
            }
            self.answer = Some(answer).filter(|_| !meta.done);
            if let Some(columns) = columns {
                let Events { batch, seqs, .. } = Events::from_arrow(&columns, &self.schema)?;
                return Ok(Some((batch, seqs)));
            }
        }
        Ok(None)
    }
}

impl Changes for RemoteChanges {
    fn read(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, StoreError> {
        self.receive().map_err(Fault::into_store)
    }

    fn upto(&self) -> Seqs {
        self.upto.clone()
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }

    fn missing(&self) -> &[Problem] {
        &self.missing
    }

    fn bytes(&self) -> usize {
        // The list is kept by the owner. The response's window bounds what is in flight.
        0
    }

    fn park(&mut self) {
        // The owner parks its read while no reader consumes it.
    }
}
