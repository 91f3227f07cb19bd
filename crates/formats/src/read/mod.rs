//! From bytes to batches.

pub(crate) mod arrow;
pub(crate) mod columnar;
mod csv;
pub(crate) mod document;
pub(crate) mod feature;
#[cfg(feature = "flatgeobuf")]
mod flatgeobuf;
mod gdelt;
#[cfg(feature = "geopackage")]
mod geopackage;
mod gpx;
mod gtfs_rt;
mod kml;
pub(crate) mod lines;
mod nmea;
mod origin;
pub(crate) mod parquet;
mod shapefile;
pub(crate) mod spool;
mod table;
mod watched;
mod whole;
mod xml;
mod xml_text;
mod zip;

pub(crate) use csv::is_null_number;
pub(crate) use origin::{in_place, kml, open, stream};

use crate::error::{Fault, MISTAKES_MAX, ReadError};
use crate::format::Format;
use crate::json::Json;
use crate::options::{BatchLimits, OnError, ReadOptions, Watch};
use crate::report::{RejectedEvent, Rejects, Report, SharedUnread, Unread};
use crate::roles::list;
use crate::survey::EventNotes;
use bytes::{Buf, Bytes};
use meridian_model::error::shorten;
use meridian_model::{Batch, BatchBuilder, Invalid, Schema};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A reader of the events of an input, batch by batch.
pub trait EventReader: Send {
    /// Returns the next batch, never empty; `None` at the end.
    ///
    /// An error ends the reading: nothing of the current batch is returned, and further calls return `None`.
    fn next_batch(&mut self, limits: &BatchLimits) -> Result<Option<Batch>, ReadError>;

    /// Returns the line read last (in formats without lines: the event), from 1; 0 at the start.
    fn line(&self) -> u64;

    /// Returns the omissions and changes so far.
    fn report(&self) -> Report;
}

/// Reads events of a schema from plain bytes; decompress them first with [`crate::decompress`].
pub fn reader(
    format: Format,
    input: Box<dyn Read + Send>,
    schema: Arc<Schema>,
    options: &ReadOptions,
) -> Result<Box<dyn EventReader>, ReadError> {
    let input = watched::watched(input, options);
    Ok(match format {
        Format::GeoJson => events(document::Document::new(input, schema.clone(), options), schema, options),
        Format::GeoJsonSeq => events(lines::Lines::sequence(input, schema.clone(), options), schema, options),
        Format::NdJson => events(lines::Lines::ndjson(input, schema.clone(), options), schema, options),
        Format::Kml => {
            let unread = SharedUnread::default();
            let features = origin::kml(input, options, &unread)?;
            events(lines::Lines::converted(features, unread, schema.clone(), options), schema, options)
        }
        Format::Csv => events(csv::Table::new(input, schema.clone(), options), schema, options),
        Format::Gdelt => events(gdelt::Export::new(input, schema.clone(), options), schema, options),
        _ => of_columns(origin::stream(format, input, options)?, schema, options),
    })
}

/// Like [`reader`], for bytes that are all in memory; Arrow is read in place.
pub fn reader_of_bytes(
    format: Format,
    bytes: Bytes,
    schema: Arc<Schema>,
    options: &ReadOptions,
) -> Result<Box<dyn EventReader>, ReadError> {
    if format != Format::Arrow {
        return reader(format, Box::new(bytes.reader()), schema, options);
    }
    Ok(of_columns(Box::new(arrow::Ipc::whole(bytes.into(), options.spool_bytes)), schema, options))
}

/// Like [`reader`], for a file that is not compressed as a whole. Formats that are read from their end, or have
/// companion files, are read in place ([`Format::reads_in_place`]).
pub fn reader_of_path(
    format: Format,
    path: &Path,
    schema: Arc<Schema>,
    options: &ReadOptions,
) -> Result<Box<dyn EventReader>, ReadError> {
    match origin::in_place(format, path, options)? {
        Some(batches) => Ok(of_columns(batches, schema, options)),
        None => reader(format, origin::open(path)?, schema, options),
    }
}

fn of_columns(batches: Box<dyn columnar::Batches>, schema: Arc<Schema>, options: &ReadOptions) -> Box<dyn EventReader> {
    events(columnar::ColumnEvents::new(batches, schema.clone(), options), schema, options)
}

/// Returns the layer that an option names, else the only one.
pub(crate) fn layer_of(names: &[String], wanted: Option<&str>) -> Result<String, Invalid> {
    match (wanted, names) {
        (Some(wanted), _) => {
            let found = names.iter().find(|name| *name == wanted);
            found.cloned().ok_or_else(|| {
                Invalid::field(shorten(wanted), format!("no such layer; the layers are {}", list(names)))
            })
        }
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(Invalid::new("the file has no layer")),
        (None, names) => {
            let several = format!("the file has {} layers: {}", names.len(), list(names));
            Err(Invalid::new(format!("{several}: name the one to read with --layer")))
        }
    }
}

fn events<R: Records + 'static>(records: R, schema: Arc<Schema>, options: &ReadOptions) -> Box<dyn EventReader> {
    Box::new(Events {
        records,
        builder: BatchBuilder::new(schema),
        whole: Vec::new(),
        taken: BatchLimits { rows: 0, bytes: 0 },
        mistakes: Vec::new(),
        on_error: options.on_error,
        rejects: options.rejects.clone(),
        report: Report::default(),
        id_if_absent: options.id_if_absent.clone(),
        watch: options.watch.clone(),
        steps: 0,
        watched: 0,
        ended: false,
    })
}

/// The outcome of reading a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An event was set in the builder and is yet to be ended.
    Event,
    /// Many events were taken over at once.
    Whole,
    /// The input has ended.
    End,
}

/// A source of single events, implemented by each format for [`Events`].
pub(crate) trait Records: Send {
    /// Sets the next event in the builder, without ending it.
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault>;

    /// Takes over the next events at once, if the source has them as columns in the stored form and there is room for
    /// them.
    fn whole(&mut self, _room: &BatchLimits) -> Result<Option<Batch>, Fault> {
        Ok(None)
    }

    /// Returns the line or ordinal of the last record returned, from 1.
    fn line(&self) -> u64;

    /// Takes the notes on the last record returned.
    fn noted(&mut self) -> EventNotes;

    /// Returns what was not taken so far, of a format that has elements without a column.
    fn unread(&self) -> Unread {
        Unread::default()
    }

    /// Returns the last record as JSON, if the format has text records.
    fn raw(&self) -> Option<String> {
        None
    }
}

/// Returns a text unchanged if it is valid JSON, otherwise as a JSON string.
fn json_or_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    let mut json = Json::new(text);
    match json.skip().and_then(|()| json.end()) {
        // A record may span lines, and white space between its parts has no meaning.
        Ok(()) => text.replace(['\n', '\r'], " "),
        Err(_) => serde_json::Value::from(text).to_string(),
    }
}

/// Collects events into batches and errors into lists, for all formats that are read event by event.
struct Events<R> {
    records: R,
    builder: BatchBuilder,
    /// Batches taken over whole; the events in the builder come after them.
    whole: Vec<Batch>,
    /// Size of these batches.
    taken: BatchLimits,
    mistakes: Vec<Invalid>,
    on_error: OnError,
    rejects: Option<Rejects>,
    report: Report,
    id_if_absent: Option<String>,
    watch: Option<Watch>,
    /// Events so far, for the watch.
    steps: u32,
    /// Bytes of the batch at the last poll of the watch.
    watched: usize,
    ended: bool,
}

/// Events between two polls of the watch: some tens of microseconds.
const STEPS_WATCHED: u32 = 256;
/// Bytes between two polls of the watch: an event of many vertices takes as long as many others.
const BYTES_WATCHED: usize = 64 << 10;

impl<R: Records> Events<R> {
    fn is_called_off(&mut self) -> bool {
        self.steps = self.steps.wrapping_add(1);
        let bytes = self.bytes();
        if !self.steps.is_multiple_of(STEPS_WATCHED) && bytes.abs_diff(self.watched) < BYTES_WATCHED {
            return false;
        }
        self.watched = bytes;
        self.watch.as_ref().is_some_and(|watch| !watch.goes_on_with(bytes))
    }

    fn rows(&self) -> usize {
        self.taken.rows + self.builder.rows()
    }

    fn bytes(&self) -> usize {
        self.taken.bytes + self.builder.bytes()
    }

    fn step(&mut self, limits: &BatchLimits) -> Result<Step, Fault> {
        // Replacing a missing id is decided for each event.
        if self.mistakes.is_empty() && self.id_if_absent.is_none() {
            let room = BatchLimits {
                rows: limits.rows.saturating_sub(self.rows()),
                bytes: limits.bytes.saturating_sub(self.bytes()),
            };
            if let Some(batch) = self.records.whole(&room)? {
                if self.builder.rows() > 0 {
                    self.taken = BatchLimits { rows: self.rows(), bytes: self.bytes() };
                    // The events read one by one come first in the input, so they are cut off before the whole batch
                    // is added.
                    self.whole.push(self.builder.finish()?);
                }
                self.taken.rows += batch.rows();
                self.taken.bytes += batch.bytes();
                self.whole.push(batch);
                return Ok(Step::Whole);
            }
        }
        let step = self.records.next(&mut self.builder)?;
        if step == Step::Event {
            if let Some(id) = &self.id_if_absent
                && !self.builder.has_id()
            {
                self.builder.set_id(id.as_str())?;
            }
            self.builder.end_event()?;
            let noted = self.records.noted();
            if noted != EventNotes::default() {
                self.note(noted);
            }
            if let Some(what) = self.builder.take_rounded() {
                self.report.round(what.at_line(self.records.line()));
            }
        }
        Ok(step)
    }

    #[cold]
    fn note(&mut self, noted: EventNotes) {
        self.report.heights_dropped += u64::from(noted.has(EventNotes::HEIGHTS));
        self.report.ids_dropped += u64::from(noted.has(EventNotes::ID));
        if let Some(what) = noted.mended() {
            self.report.mend(Invalid::new(what).at_line(self.records.line()));
        }
    }

    /// Drops the current event; returns whether reading continues.
    fn refuse(&mut self, mistake: Invalid) -> Result<bool, ReadError> {
        // The time to find the mistake is unknown.
        self.steps = STEPS_WATCHED - 1;
        self.builder.abandon_event();
        self.records.noted();
        let line = mistake.line.unwrap_or(self.records.line());
        let mistake = mistake.at_line(line);
        // After the first error the batch is lost in any case. Reading continues only to report more errors at once.
        if self.on_error != OnError::Skip {
            self.mistakes.push(mistake);
            return Ok(self.on_error == OnError::Collect && self.mistakes.len() < MISTAKES_MAX);
        }
        if let Some(rejects) = &self.rejects {
            rejects.put(&RejectedEvent { mistake: &mistake, event: self.records.raw() }).map_err(ReadError::Io)?;
        }
        self.report.skip(mistake);
        Ok(true)
    }

    /// Takes the collected events, if any.
    fn take(&mut self) -> Result<Option<Batch>, Invalid> {
        self.taken = BatchLimits { rows: 0, bytes: 0 };
        let mut batches = std::mem::take(&mut self.whole);
        if self.builder.rows() > 0 {
            batches.push(self.builder.finish()?);
        }
        if batches.is_empty() { Ok(None) } else { Batch::concat(&batches).map(Some) }
    }

    fn give_up(&mut self, error: ReadError) -> ReadError {
        self.ended = true;
        // Nothing of a bad batch is returned, also not by a later call.
        self.builder = BatchBuilder::new(self.builder.schema().clone());
        self.whole.clear();
        match error {
            ReadError::Invalid(more) => {
                self.mistakes.extend(more);
                self.mistakes.truncate(MISTAKES_MAX);
                ReadError::Invalid(std::mem::take(&mut self.mistakes))
            }
            other => other,
        }
    }
}

impl<R: Records> EventReader for Events<R> {
    fn next_batch(&mut self, limits: &BatchLimits) -> Result<Option<Batch>, ReadError> {
        while !self.ended {
            let full = self.rows() >= limits.rows.max(1) || self.bytes() >= limits.bytes.max(1);
            if full && self.mistakes.is_empty() {
                break;
            } else if full {
                // No more events of this input are kept, but its other errors are still reported.
                self.take()?;
            }
            if self.is_called_off() {
                return Err(self.give_up(ReadError::Stopped));
            }
            match self.step(limits) {
                Ok(Step::Event | Step::Whole) => {}
                Ok(Step::End) => self.ended = true,
                Err(Fault::Stop(error)) => return Err(self.give_up(error)),
                Err(Fault::Event(mistake)) => match self.refuse(mistake) {
                    Ok(goes_on) => self.ended = !goes_on,
                    Err(error) => return Err(self.give_up(error)),
                },
            }
        }
        if !self.mistakes.is_empty() {
            return Err(self.give_up(ReadError::Invalid(Vec::new())));
        }
        Ok(self.take()?)
    }

    fn line(&self) -> u64 {
        self.records.line()
    }

    fn report(&self) -> Report {
        Report { unread: self.records.unread(), ..self.report.clone() }
    }
}
