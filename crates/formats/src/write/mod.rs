//! Converts batches to bytes.

mod arrow;
mod columns;
mod csv;
pub(crate) mod flatgeobuf;
mod json;
mod parquet;
pub(crate) mod table;

pub(crate) use columns::seq_column;
#[cfg(feature = "geopackage")]
pub(crate) use columns::{ColumnEncoder, Extras};
pub use csv::quote as csv_quote;
#[cfg(feature = "geopackage")]
pub(crate) use json::selection;
pub use json::{FeatureWriter, Features};
pub(crate) use parquet::SCHEMA_NOTE;
pub use parquet::{GeoParquetError, GeoParquetWriter};

use crate::format::Format;
use json::{Framing, JsonEvents};
use meridian_model::{Batch, Invalid, Schema, Seq};
use std::sync::Arc;

/// Why an encoder failed: a batch of another schema, a fault of its library, or the disk of its file.
#[derive(Debug, thiserror::Error)]
#[error("writing failed: {detail}")]
pub struct WriteError {
    /// What went wrong.
    pub detail: String,
    of_disk: bool,
}

impl WriteError {
    pub(crate) fn of(error: impl std::fmt::Display) -> WriteError {
        WriteError { detail: error.to_string(), of_disk: false }
    }

    #[cfg(feature = "geopackage")]
    pub(crate) fn of_disk(error: impl std::fmt::Display) -> WriteError {
        WriteError { detail: error.to_string(), of_disk: true }
    }

    /// Returns whether the disk of a GeoPackage is at fault: it is full or fails, or its folder takes no file.
    pub fn is_of_disk(&self) -> bool {
        self.of_disk
    }
}

/// Writes batches of one schema as one document. Bytes are appended to the caller's buffer, so that they can be sent
/// while later batches are still being read.
pub trait EventWriter: Send {
    /// Appends the text before the first event.
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Appends the events of a batch; `seqs[row]` gives generated ids, and may be empty if ids are given.
    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Appends the text after the last event.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Returns the bytes of events accepted and not written yet.
    fn held(&self) -> usize {
        0
    }
}

/// Creates a writer of a format, for the named properties or for all of them.
pub fn writer(
    format: Format,
    schema: &Arc<Schema>,
    properties: Option<&[String]>,
) -> Result<Box<dyn EventWriter>, Invalid> {
    named_writer("events", format, schema, properties)
}

/// Like [`writer`]. A format that has a name for its events, as FlatGeobuf for its layer, gets this one: schemas have
/// none.
pub fn named_writer(
    name: &str,
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
        Format::FlatGeobuf => Ok(Box::new(flatgeobuf::FlatGeobufEvents::new(name, schema, properties)?)),
        Format::GeoParquet => Ok(Box::new(parquet::ParquetEvents::new(schema, properties)?)),
        other => Err(Invalid::field("f", format!("{other} is read but not written here"))),
    }
}
