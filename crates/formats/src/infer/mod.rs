//! Infers a schema from the first events of an input.

mod column;
mod columnar;
mod guess;
mod json;
mod kinds;
mod notes;
mod numbers;
mod places;
mod table;
mod trend;
mod wording;

use crate::error::ReadError;
use crate::format::Format;
use crate::options::ReadOptions;
use crate::read;
use crate::report::SharedUnread;
use meridian_model::Schema;
use std::io::{Cursor, Read};
use std::path::Path;

/// The schema inferred from a sample, and notes on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// The schema that fits the sample.
    pub schema: Schema,
    /// Observations that were not used, one sentence each: a column that looks like times, numbers or positions, with
    /// the option that uses it.
    pub notes: Vec<String>,
}

/// Guesses the schema of an input from its first [`ReadOptions::sample_rows`] events.
///
/// Integers widen to floats, RFC 3339 texts are times, geometry takes the narrowest type that fits all. Ids are given
/// if each event has a distinct one. The primary instant is the time field of a customary name that every event has,
/// or the only time field. Only that field is required. The time unit of the grid follows from the density of the
/// sample in time. Invalid events in the sample are errors, as in [`crate::reader`].
pub fn infer(format: Format, input: Box<dyn Read + Send>, options: &ReadOptions) -> Result<Inference, ReadError> {
    guess(format, input, options, false)
}

/// Like [`infer`], for the first bytes of an input, which may be cut off anywhere. The reader reports anything
/// unreadable after the first event. A Parquet file has its schema at its end: see [`infer_path`].
pub fn infer_prefix(format: Format, first: &[u8], options: &ReadOptions) -> Result<Inference, ReadError> {
    guess(format, Box::new(Cursor::new(first.to_vec())), options, true)
}

fn guess(
    format: Format,
    input: Box<dyn Read + Send>,
    options: &ReadOptions,
    cut: bool,
) -> Result<Inference, ReadError> {
    let guessed = match format {
        Format::GeoJson => json::document(input, options, cut),
        Format::GeoJsonSeq => json::sequence(input, options, cut),
        Format::NdJson => json::ndjson(input, options, cut),
        Format::Csv => table::table(input, options, cut),
        Format::Gdelt => return Ok(Inference { schema: crate::gdelt::gdelt_schema(), notes: Vec::new() }),
        Format::Kml => json::converted(read::kml(input, options, &SharedUnread::default())?, options, cut),
        other => columnar::columnar(read::stream(other, input, options)?, options, cut),
    }?;
    Ok(guessed.schema(options, cut)?)
}

/// Like [`infer`], for a file that is not compressed as a whole; see [`crate::reader_of_path`].
pub fn infer_path(format: Format, path: &Path, options: &ReadOptions) -> Result<Inference, ReadError> {
    match read::in_place(format, path, options)? {
        Some(batches) => Ok(columnar::columnar(batches, options, false)?.schema(options, false)?),
        None => infer(format, read::open(path)?, options),
    }
}
