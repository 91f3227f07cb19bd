//! Readers and writers of event files: bytes in, batches out, and back.
//!
//! The crate knows [GeoJSON](Format::GeoJson) documents, text sequences and lines, CSV, GDELT event
//! exports, GeoParquet and Arrow. It guarantees that
//! - memory is bounded by one batch and one record ([`ReadOptions::record_bytes`]), however long the input;
//! - each error is a [`meridian_model::Invalid`] with the line (or the ordinal of the
//!   event) and the field, up to [`MISTAKES_MAX`] of them, and no event of a bad batch is returned;
//! - no input causes a panic;
//! - the reader of a format reads the output of its writer back as the same events.
//!
//! Start reading at [`Format`] and [`reader`]; [`infer()`] makes a schema from a sample, [`FeatureWriter`]
//! writes the features of answers. It opens no file and no socket.

mod columns;
mod compress;
mod error;
mod format;
mod gdelt;
mod geo_metadata;
mod guard;
mod infer;
mod input;
mod instant;
mod json;
mod options;
mod read;
mod report;
mod rest;
mod roles;
mod rows;
mod shape;
mod survey;
mod values;
mod wkb;
mod wkt;
mod write;

pub use compress::{decompress, decompress_body, is_compressed, peek};
pub use error::{MISTAKES_MAX, ReadError};
pub use format::Format;
pub use gdelt::gdelt_schema;
pub use guard::decoder_panics;
pub use infer::{infer, infer_file, infer_prefix};
pub use options::{BatchLimits, Epoch, OnError, ReadOptions, Unknown, Watch};
pub use read::{EventReader, reader, reader_of_bytes, reader_of_file};
pub use report::{Rejected, Rejects, Report, SHOWN_MAX};
pub use rest::RestFile;
pub use write::{EventWriter, FeatureWriter, Features, GeoParquetError, GeoParquetWriter, WriteError, writer};

/// Values as the writers put them into JSON, for other writers of JSON.
pub mod text {
    pub use crate::instant::write as instant;
    pub use crate::write::csv_quote as csv;
    pub use crate::write::text::float;
}
