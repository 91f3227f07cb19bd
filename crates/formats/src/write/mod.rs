//! From batches to bytes.

mod arrow;
mod columns;
mod csv;
mod json;
mod parquet;
pub(crate) mod text;

pub(crate) use columns::seq_column;
pub use csv::quote as csv_quote;
pub use json::{FeatureWriter, Features};
pub use parquet::{GeoParquetError, GeoParquetWriter};
pub(crate) use text::{coordinate, escape};

use crate::format::Format;
use json::{Framing, JsonEvents};
use meridian_model::{Batch, Invalid, Schema, Seq};
use std::sync::Arc;

/// What an encoder could not write: a batch of another schema, or a fault of its library.
#[derive(Debug, thiserror::Error)]
#[error("writing failed: {0}")]
pub struct WriteError(pub String);

impl WriteError {
    pub(crate) fn of(error: impl std::fmt::Display) -> WriteError {
        WriteError(error.to_string())
    }
}

/// Writes batches of one schema as one document; bytes are appended to what the caller hands in,
/// so that they can leave while later batches are still being read.
pub trait EventWriter: Send {
    /// Appends the text before the first event.
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Appends the events of a batch; `seqs[row]` gives made ids, and may be empty where ids are given.
    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Appends the text after the last event.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Bytes of events that were taken and have not left yet.
    fn held(&self) -> usize {
        0
    }
}

/// A writer of a format, of the named properties or of all of them.
pub fn writer(
    format: Format,
    schema: &Arc<Schema>,
    properties: Option<&[String]>,
) -> Result<Box<dyn EventWriter>, Invalid> {
    let json = |framing| Ok(Box::new(JsonEvents::new(FeatureWriter::new(schema, properties)?, framing)) as Box<_>);
    match format {
        Format::GeoJson => json(Framing::Collection),
        Format::GeoJsonSeq => json(Framing::Sequence),
        Format::NdJson => json(Framing::Lines),
        Format::Csv => Ok(Box::new(csv::CsvEvents::new(schema, properties)?)),
        Format::Arrow => Ok(Box::new(arrow::ArrowEvents::new(schema, properties)?)),
        Format::GeoParquet => Ok(Box::new(parquet::ParquetEvents::new(schema, properties)?)),
        other => Err(Invalid::field("f", format!("{other} is read but not written here"))),
    }
}
