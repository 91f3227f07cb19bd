//! A schema from the first events of an input.

mod column;
mod columnar;
mod course;
mod guess;
mod json;
mod notes;
mod table;

use crate::error::ReadError;
use crate::format::Format;
use crate::options::ReadOptions;
use crate::read;
use meridian_model::Schema;
use std::io::{Cursor, Read};
use std::path::Path;

/// What the sample of an input gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Inferred {
    /// The schema that fits it.
    pub schema: Schema,
    /// What was seen and not taken, a sentence each: a column that looks like times, numbers or positions, with the option
    /// that takes it.
    pub notes: Vec<String>,
}

/// Guesses the schema of an input from its first [`ReadOptions::sample_rows`] events.
///
/// Whole numbers widen to floats, RFC 3339 texts are times, geometry takes the narrowest type that
/// fits all. Ids are given where each event has one and none comes twice; the primary instant is the
/// time field of a usual name that every event has, or the only time field. Only that field is
/// required. The time unit of the grid follows from the density of the sample in time. Invalid events in the sample
/// are errors, as in [`crate::reader`].
pub fn infer(format: Format, input: Box<dyn Read + Send>, options: &ReadOptions) -> Result<Inferred, ReadError> {
    guess(format, input, options, false)
}

/// As [`infer`], for the first bytes of an input, which may be cut off anywhere: the reader reports
/// what cannot be read after the first event. A Parquet file has its schema at its end: see [`infer_path`].
pub fn infer_prefix(format: Format, first: &[u8], options: &ReadOptions) -> Result<Inferred, ReadError> {
    guess(format, Box::new(Cursor::new(first.to_vec())), options, true)
}

fn guess(format: Format, input: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Inferred, ReadError> {
    let guessed = match format {
        Format::GeoJson => json::document(input, options, cut),
        Format::GeoJsonSeq => json::lines(input, options, None, cut),
        Format::NdJson => json::lines(input, options, Some(false), cut),
        Format::Csv => table::table(input, options, cut),
        Format::Gdelt => return Ok(Inferred { schema: crate::gdelt::gdelt_schema(), notes: Vec::new() }),
        Format::Kml => json::lines(read::kml(input, options)?, options, Some(false), cut),
        other => columnar::columnar(read::stream(other, input, options)?, options, cut),
    }?;
    Ok(guessed.schema(options, cut)?)
}

/// As [`infer`], of a file that is not compressed as a whole; see [`crate::reader_of_path`].
pub fn infer_path(format: Format, path: &Path, options: &ReadOptions) -> Result<Inferred, ReadError> {
    match read::in_place(format, path, options)? {
        Some(batches) => Ok(columnar::columnar(batches, options, false)?.schema(options, false)?),
        None => infer(format, read::open(path)?, options),
    }
}
