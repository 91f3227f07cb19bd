//! From bytes to batches.

pub(crate) mod arrow;
pub(crate) mod columnar;
mod csv;
pub(crate) mod document;
pub(crate) mod feature;
mod gdelt;
pub(crate) mod lines;
pub(crate) mod parquet;

use crate::error::{Fault, MISTAKES_MAX, ReadError};
use crate::format::Format;
use crate::options::{BatchLimits, OnError, ReadOptions};
use meridian_model::{Batch, BatchBuilder, Invalid, Schema};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Gives the events of an input, batch by batch.
pub trait EventReader: Send {
    /// The next batch, of at least one event; `None` at the end.
    ///
    /// An error ends the reading: nothing of the batch in hand is given out, and what follows is `None`.
    fn next_batch(&mut self, limits: &BatchLimits) -> Result<Option<Batch>, ReadError>;

    /// The line (in formats without lines: the event) read last, from 1; 0 at the start.
    fn line(&self) -> u64;
}

/// Reads events of a schema from plain bytes; take compression off first with [`crate::decompress`].
pub fn reader(
    format: Format,
    input: Box<dyn Read + Send>,
    schema: Arc<Schema>,
    options: &ReadOptions,
) -> Result<Box<dyn EventReader>, ReadError> {
    Ok(match format {
        Format::GeoJson => events(document::Document::new(input, schema.clone(), options), schema, options),
        Format::GeoJsonSeq => events(lines::Lines::sequence(input, schema.clone(), options), schema, options),
        Format::NdJson => events(lines::Lines::ndjson(input, schema.clone(), options), schema, options),
        Format::Csv => events(csv::Table::new(input, schema.clone(), options), schema, options),
        Format::Gdelt => events(gdelt::Export::new(input, schema.clone(), options), schema, options),
        Format::Arrow => {
            let batches = arrow::Ipc::new(input, options.spool_bytes);
            events(columnar::ColumnEvents::new(batches, schema.clone(), options), schema, options)
        }
        Format::GeoParquet => {
            let batches = parquet::Parquet::new(parquet::spool(input, options.spool_bytes)?);
            events(columnar::ColumnEvents::new(batches, schema.clone(), options), schema, options)
        }
    })
}

/// As [`reader`], of a file that is not compressed as a whole: Parquet is read where it lies instead
/// of being taken into memory first.
pub fn reader_of_file(
    format: Format,
    file: File,
    schema: Arc<Schema>,
    options: &ReadOptions,
) -> Result<Box<dyn EventReader>, ReadError> {
    if format != Format::GeoParquet {
        return reader(format, Box::new(file), schema, options);
    }
    let batches = parquet::Parquet::new(file);
    Ok(events(columnar::ColumnEvents::new(batches, schema.clone(), options), schema, options))
}

fn events<R: Records + 'static>(records: R, schema: Arc<Schema>, options: &ReadOptions) -> Box<dyn EventReader> {
    Box::new(Events {
        records,
        builder: BatchBuilder::new(schema),
        mistakes: Vec::new(),
        on_error: options.on_error,
        id_if_absent: options.id_if_absent.clone(),
        ended: false,
    })
}

/// What a record gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An event was set in the builder and awaits its end.
    Event,
    /// The input has ended.
    End,
}

/// A source of events one by one: what each format brings to [`Events`].
pub(crate) trait Records: Send {
    /// Sets the next event in the builder, without ending it.
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault>;

    /// The line or ordinal of the record handed out last, from 1.
    fn line(&self) -> u64;
}

/// Collects events into batches and mistakes into lists, the same for each format that goes event by event.
struct Events<R> {
    records: R,
    builder: BatchBuilder,
    mistakes: Vec<Invalid>,
    on_error: OnError,
    id_if_absent: Option<String>,
    ended: bool,
}

impl<R: Records> Events<R> {
    fn step(&mut self) -> Result<Step, Fault> {
        let step = self.records.next(&mut self.builder)?;
        if step == Step::Event {
            if let Some(id) = &self.id_if_absent
                && !self.builder.has_id()
            {
                self.builder.set_id(id.as_str())?;
            }
            self.builder.end_event()?;
        }
        Ok(step)
    }

    fn give_up(&mut self, error: ReadError) -> ReadError {
        self.ended = true;
        // Nothing of a bad batch is given out, also not by a later call.
        self.builder = BatchBuilder::new(self.builder.schema().clone());
        match error {
            ReadError::Invalid(more) => {
                self.mistakes.extend(more);
                self.mistakes.truncate(MISTAKES_MAX);
                ReadError::Invalid(std::mem::take(&mut self.mistakes))
            }
            io => io,
        }
    }
}

impl<R: Records> EventReader for Events<R> {
    fn next_batch(&mut self, limits: &BatchLimits) -> Result<Option<Batch>, ReadError> {
        while !self.ended {
            let full = self.builder.rows() >= limits.rows.max(1) || self.builder.bytes() >= limits.bytes.max(1);
            if full && self.mistakes.is_empty() {
                break;
            } else if full {
                // Nothing of this input is kept any more, but its other mistakes are still of interest.
                self.builder.finish()?;
            }
            match self.step() {
                Ok(Step::Event) => {}
                Ok(Step::End) => self.ended = true,
                Err(Fault::Stop(error)) => return Err(self.give_up(error)),
                Err(Fault::Event(mistake)) => {
                    self.builder.abandon_event();
                    let line = mistake.line.unwrap_or(self.records.line());
                    self.mistakes.push(mistake.at_line(line));
                    if self.on_error == OnError::First || self.mistakes.len() == MISTAKES_MAX {
                        self.ended = true;
                    }
                }
            }
        }
        if !self.mistakes.is_empty() {
            return Err(self.give_up(ReadError::Invalid(Vec::new())));
        }
        if self.builder.rows() == 0 {
            return Ok(None);
        }
        Ok(Some(self.builder.finish()?))
    }

    fn line(&self) -> u64 {
        self.records.line()
    }
}
