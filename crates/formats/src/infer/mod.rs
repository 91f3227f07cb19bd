//! A schema from the first events of an input.

mod columnar;
mod course;
mod guess;
mod json;
mod table;

use crate::error::ReadError;
use crate::format::Format;
use crate::options::ReadOptions;
use crate::read::arrow::Ipc;
use crate::read::parquet::{Parquet, spool};
use meridian_model::Schema;
use std::fs::File;
use std::io::{Cursor, Read};

/// Guesses the schema of an input from its first [`ReadOptions::sample_rows`] events.
///
/// Whole numbers widen to floats, RFC 3339 texts are times, geometry takes the narrowest type that
/// fits all. Ids are given where each event has one and none comes twice; the primary instant is the
/// time field of a usual name that every event has, or the only time field. Only that field is
/// required. The time unit of the grid follows from the density of the sample in time. Invalid events in the sample
/// are errors, as in [`crate::reader`].
pub fn infer(format: Format, input: Box<dyn Read + Send>, options: &ReadOptions) -> Result<Schema, ReadError> {
    guess(format, input, options, false)
}

/// As [`infer`], for the first bytes of an input, which may be cut off anywhere: the reader reports
/// what cannot be read after the first event. A Parquet file has its schema at its end: see [`infer_file`].
pub fn infer_prefix(format: Format, first: &[u8], options: &ReadOptions) -> Result<Schema, ReadError> {
    guess(format, Box::new(Cursor::new(first.to_vec())), options, true)
}

fn guess(format: Format, input: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Schema, ReadError> {
    let guessed = match format {
        Format::GeoJson => json::document(input, options, cut),
        Format::GeoJsonSeq => json::lines(input, options, None, cut),
        Format::NdJson => json::lines(input, options, Some(false), cut),
        Format::Csv => table::table(input, options, cut),
        Format::Gdelt => return Ok(crate::gdelt::gdelt_schema()),
        Format::Arrow => columnar::columnar(Ipc::new(input, options.spool_bytes, None), options, cut),
        Format::GeoParquet => columnar::columnar(Parquet::new(spool(input, options.spool_bytes)?), options, cut),
    }?;
    Ok(guessed.schema(options, cut)?)
}

/// As [`infer`], of a file that is not compressed as a whole; see [`crate::reader_of_file`].
pub fn infer_file(format: Format, file: File, options: &ReadOptions) -> Result<Schema, ReadError> {
    match format {
        Format::GeoParquet => Ok(columnar::columnar(Parquet::new(file), options, false)?.schema(options, false)?),
        _ => infer(format, Box::new(file), options),
    }
}
