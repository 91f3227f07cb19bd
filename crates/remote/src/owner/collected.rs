//! Collects the rows of a query, passed one by one, for the wire.

use crate::wire::answer::Meta;
use crate::wire::encode::Encoder;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use arrow_flight::FlightData;
use meridian_backend::RowSink;
use meridian_model::{Batch, Layout, Projection, Schema, Seq};

/// Rows with all columns: only the gateway's sink knows which ones it wants.
#[derive(Default)]
pub(super) struct CollectedRows {
    begun: Option<(Schema, u64)>,
    rows: Vec<Batch>,
    seqs: Vec<Seq>,
    distances: Vec<f64>,
}

impl RowSink for CollectedRows {
    fn begin(&mut self, schema: &Schema, layout: &Layout, total: u64, _: usize) -> Projection {
        self.begun = Some((schema.clone(), total));
        Projection::all(layout)
    }

    fn row(&mut self, batch: &Batch, row: usize, seq: Option<Seq>, distance_m: Option<f64>) {
        // Copied: a slice would keep the whole block of each row alive.
        self.rows.push(batch.take(&[row as u32]));
        self.seqs.push(seq.unwrap_or_default());
        self.distances.extend(distance_m);
    }
}

impl CollectedRows {
    /// Returns the messages: schema and total first if the query began to pass rows, then the rows.
    pub(super) fn finish(self) -> Result<Vec<FlightData>, Fault> {
        let Some((schema, total)) = self.begun else { return Ok(vec![Meta::done().alone()]) };
        let value = serde_json::to_value(&schema).map_err(|e| Fault::internal(e.to_string()))?;
        let mut messages = vec![Meta { value: Some(value), total: Some(total), ..Meta::default() }.alone()];
        if self.rows.is_empty() {
            messages.push(Meta::done().alone());
            return Ok(messages);
        }
        let batch = Batch::concat(&self.rows)?;
        let distances = (self.distances.len() == self.seqs.len()).then_some(self.distances);
        let columns = Events { batch, seqs: self.seqs, distances }.to_arrow()?;
        messages.extend(Encoder::new().encode(&columns, &Meta::done())?);
        Ok(messages)
    }
}
