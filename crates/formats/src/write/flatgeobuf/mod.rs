//! Events as a stream of FlatGeobuf: without an index, which would precede the features and order them.

mod geometry;
mod layer;
mod tables;

pub(crate) use layer::{Layer, Whole};
pub(crate) use tables::Builder;

use super::columns::{ColumnEncoder, Extras};
use super::json::selection;
use super::table::Columns;
use super::{EventWriter, WriteError};
use meridian_model::{Batch, Invalid, Schema, Seq};
use std::sync::Arc;

/// A layer whose header gives no number of features.
pub(crate) struct FlatGeobufEvents {
    outgoing: ColumnEncoder,
    layer: Layer,
}

impl FlatGeobufEvents {
    pub(crate) fn new(
        name: &str,
        schema: &Arc<Schema>,
        properties: Option<&[String]>,
    ) -> Result<FlatGeobufEvents, Invalid> {
        let columns = Columns::of(schema, &selection(schema, properties)?);
        let outgoing = ColumnEncoder::new(schema, properties, Extras::default())?;
        Ok(FlatGeobufEvents { outgoing, layer: Layer::new(name, columns) })
    }
}

impl EventWriter for FlatGeobufEvents {
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.layer.header(Whole::default(), out);
        Ok(())
    }

    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError> {
        let rows = self.layer.rows(&self.outgoing.record_batch(batch, seqs)?)?;
        // For one batch: a stream that waits for its client holds no buffer of the largest feature.
        let mut builder = Builder::new();
        for row in 0..rows.len {
            self.layer.feature(&rows, row, &mut builder, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<u8>) -> Result<(), WriteError> {
        Ok(())
    }
}
