//! State of objects before one of their events, requested from the owner one by one.

use super::changes::schema_of;
use super::link::Link;
use crate::wire::call::Get;
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use crate::wire::rows::{Events, names};
use arrow_array::Array;
use meridian_backend::{PriorEvents, StoreError};
use meridian_model::{Batch, FieldColumn, Projection, Seq};
use meridian_query::ByValue;
use std::sync::Arc;
use twox_hash::XxHash3_128;

pub(super) struct RemotePriorEvents {
    pub(super) link: Arc<Link>,
    pub(super) place: CollectionRef,
    /// Random, so that clients cannot construct two objects with the same hash.
    pub(super) seed: u64,
}

/// Returns the object of a row.
fn object_of(batch: &Batch, row: usize) -> Option<ByValue> {
    match batch.field(batch.schema().object?)? {
        FieldColumn::Text(texts) if texts.is_valid(row) => Some(ByValue::Text(texts.value(row).to_owned())),
        FieldColumn::Int(numbers) if numbers.is_valid(row) => Some(ByValue::Int(numbers.value(row))),
        _ => None,
    }
}

impl PriorEvents for RemotePriorEvents {
    fn object(&self, batch: &Batch, row: usize) -> Option<u64> {
        let hash = |bytes: &[u8]| XxHash3_128::oneshot_with_seed(self.seed, bytes) as u64;
        match object_of(batch, row)? {
            ByValue::Text(text) => Some(hash(text.as_bytes())),
            ByValue::Int(n) => Some(hash(&n.to_le_bytes())),
            _ => None,
        }
    }

    fn before(
        &self,
        batch: &Batch,
        row: usize,
        before: Seq,
        columns: &Projection,
    ) -> Result<Option<(Batch, Seq)>, StoreError> {
        let Some(object) = object_of(batch, row) else { return Ok(None) };
        let columns = names(columns, batch.layout());
        let get = Get::Prior { place: self.place.clone(), object, before: before.0, columns };
        let ask = || {
            let patience = self.link.patience();
            let (answer, mut first) = self.link.ask(get, &patience)?;
            let value = first.meta.value.take().ok_or_else(|| Fault::internal("an event without a schema"))?;
            let schema = schema_of(value, Some(batch.schema()))?;
            let Some(found) = answer.whole(first, &self.link, &patience)? else { return Ok(None) };
            let Events { batch, seqs, .. } = Events::from_arrow(&found, &schema)?;
            Ok(seqs.first().map(|seq| (batch, *seq)))
        };
        ask().map_err(Fault::into_store)
    }
}
