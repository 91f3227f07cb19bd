//! Readers and writers of event files: from bytes to batches, and back.
//!
//! The crate reads and writes [GeoJSON](Format::GeoJson) documents, text sequences and lines, CSV, GeoParquet, Arrow and
//! FlatGeobuf. It also reads GDELT event exports, and GeoPackage, Shapefile, KML, GPX, NMEA and GTFS-Realtime
//! (decision 073). KML is converted to GeoJSON features; the other formats of that decision are sources of records with
//! typed columns, which the columnar reader reads. Guarantees:
//! - Memory is bounded by one batch and one record ([`ReadOptions::record_bytes`]), however long the input.
//! - Each error is a [`meridian_model::Invalid`] with the line (or the ordinal of the event) and the field. At most
//!   [`MISTAKES_MAX`] of them are returned, and no event of a bad batch.
//! - No input causes a panic.
//! - The reader of a format reads the output of its writer back as the same events.
//!
//! Start reading at [`Format`] and [`reader`]; [`infer()`] makes a schema from a sample, [`FeatureWriter`] writes the
//! features of responses. The crate opens no socket, and a file only if it is given its name ([`reader_of_path`]).

mod columns;
mod compress;
mod date_format;
mod error;
pub mod export;
mod format;
mod gdelt;
mod geo_metadata;
mod guard;
mod infer;
mod input;
mod instant;
mod json;
mod json_text;
mod options;
mod read;
mod reference;
mod report;
mod rest;
mod roles;
mod rows;
mod shape;
mod survey;
mod utf16;
mod values;
mod wkb;
mod wkb_out;
mod wkt;
mod write;

pub use compress::{decompress, decompress_body, is_compressed, peek};
pub use date_format::DateFormat;
pub use error::{MISTAKES_MAX, ReadError};
pub use format::{ForeignFormat, Format};
pub use gdelt::gdelt_schema;
pub use guard::decoder_panics;
pub use infer::{Inference, infer, infer_path, infer_prefix};
pub use options::{BatchLimits, Epoch, OnError, ReadOptions, Unknown, Watch};
pub use read::{EventReader, reader, reader_of_bytes, reader_of_path};
pub use reference::INPUT;
pub use report::{RejectedEvent, Rejects, Report, SHOWN_MAX, Unread};
pub use rest::RestFile;
pub use rows::sniff;
pub use write::{
    EventWriter, FeatureWriter, Features, GeoParquetError, GeoParquetWriter, WriteError, named_writer, writer,
};

/// Values as the writers put them into JSON, for other writers of JSON.
pub mod text {
    pub use crate::instant::write as instant;
    pub use crate::json_text::float;
    pub use crate::write::csv_quote as csv;
}
