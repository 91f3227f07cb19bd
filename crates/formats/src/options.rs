//! Options for reading an input.

use crate::date_format::DateFormat;
use crate::report::Rejects;
use jiff::tz::TimeZone;
use meridian_model::Crs;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to do at the first bad event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Read on to the end of the input (without keeping events) and report up to [`crate::MISTAKES_MAX`] errors. Suits
    /// a body that is accepted completely or not at all.
    #[default]
    Collect,
    /// Stop there. Suits a long file whose earlier batches are already stored.
    First,
    /// Skip it, count it, and continue: see [`crate::EventReader::report`].
    Skip,
}

/// What to do with values for which the collection has no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// An error that names it.
    #[default]
    Refuse,
    /// Leave it out.
    Ignore,
}

/// Unit of times written as integers since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
}

impl Epoch {
    /// Returns the microseconds in one unit.
    pub fn micros(self) -> i64 {
        match self {
            Epoch::Seconds => 1_000_000,
            Epoch::Millis => 1_000,
            Epoch::Micros => 1,
        }
    }
}

/// A callback that decides whether to continue, given the bytes in memory: of events, and of input that is not an event
/// yet. Called before bytes are read, and every few hundred events.
#[derive(Clone)]
pub struct Watch {
    ask: Arc<dyn Fn(usize) -> bool + Send + Sync>,
    /// Bytes of events, and of input held for the next of them.
    events: Arc<AtomicUsize>,
    input: Arc<AtomicUsize>,
}

impl Watch {
    /// Creates a watch from this function.
    pub fn new(goes_on: impl Fn(usize) -> bool + Send + Sync + 'static) -> Watch {
        Watch { ask: Arc::new(goes_on), events: Arc::default(), input: Arc::default() }
    }

    /// Returns whether to continue; if not, reading ends with [`crate::ReadError::Stopped`].
    pub fn goes_on(&self) -> bool {
        // Relaxed: one thread reads an input.
        (self.ask)(self.events.load(Ordering::Relaxed) + self.input.load(Ordering::Relaxed))
    }

    /// Like [`Watch::goes_on`], with the current bytes of events.
    pub(crate) fn goes_on_with(&self, events: usize) -> bool {
        self.events.store(events, Ordering::Relaxed);
        self.goes_on()
    }

    /// Like [`Watch::goes_on`], with the current size of the input buffer: a single event may be large.
    pub(crate) fn goes_on_reading(&self, input: usize) -> bool {
        self.input.store(input, Ordering::Relaxed);
        self.goes_on()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// Options for reading an input; the default suits files that follow common conventions.
///
/// Columns are found by name where no option names them. Points have `lon`, `lng`, `long`, `longitude` or `x`, with
/// `lat`, `latitude` or `y`. Shapes have `wkt`, `geometry` or `geom`. The time has `time`, `timestamp`, `date`,
/// `datetime` or `dtg`. The id has the schema's `id_name`. A field of the schema goes before a customary name; an
/// option goes before both.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Column or key of the longitude in degrees.
    pub lon: Option<String>,
    /// Column or key of the latitude in degrees.
    pub lat: Option<String>,
    /// Column of geometry: WKT in text files, WKB in Parquet and Arrow, GeoJSON or WKT in flat JSON.
    pub geometry: Option<String>,
    /// Column or key of the primary instant.
    pub time: Option<String>,
    /// Column or key of the id.
    pub id: Option<String>,
    /// The layer of a file that may hold several; required if it does.
    pub layer: Option<String>,
    /// The byte between CSV fields; if `None`, sniffed among comma, tab, semicolon and bar.
    pub delimiter: Option<u8>,
    /// Whether `"` quotes CSV fields (RFC 4180); if `None`, yes unless the delimiter is a tab.
    pub quotes: Option<bool>,
    /// Words in CSV that mean no value, besides the empty field.
    pub nulls: Vec<String>,
    /// Zone of times without one; if `None`, such times are refused.
    pub zone: Option<TimeZone>,
    /// Form of times that are not in RFC 3339.
    pub date_format: Option<DateFormat>,
    /// Whether a comma separates decimals in text tables.
    pub decimal_comma: bool,
    /// Unit of times written as integers; if `None`, such times are refused.
    pub epoch: Option<Epoch>,
    /// What to do with columns and keys that the schema does not have.
    pub unknown: Unknown,
    /// What to do with heights and measures of positions, which are not stored; dropped ones are counted.
    pub heights: Unknown,
    /// What to do with ids of events whose collection makes its own; dropped ones are counted.
    pub ids: Unknown,
    /// The reference system of positions in GeoJSON and WKT. Files that name their own must name the same one.
    pub crs: Crs,
    /// What to do at the first bad event.
    pub on_error: OnError,
    /// Whether invalid polygons are repaired where possible; repaired ones are counted.
    pub mend: bool,
    /// Receives the events that [`OnError::Skip`] leaves out.
    pub rejects: Option<Rejects>,
    /// The id of an event that has none (one feature put at an address).
    pub id_if_absent: Option<String>,
    /// Max bytes of a line, feature or CSV row; a longer one is refused without being held.
    pub record_bytes: usize,
    /// Max bytes held of a Parquet or Arrow file that arrives as a stream.
    pub spool_bytes: usize,
    /// Max bytes of the whole input, decompressed; a longer one is [`crate::ReadError::TooLong`].
    pub input_bytes: u64,
    /// Watch that decides whether to continue reading; `None` reads to the end.
    pub watch: Option<Watch>,
    /// Events sampled by [`crate::infer()`].
    pub sample_rows: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            lon: None,
            lat: None,
            geometry: None,
            time: None,
            id: None,
            layer: None,
            delimiter: None,
            quotes: None,
            nulls: Vec::new(),
            zone: None,
            date_format: None,
            decimal_comma: false,
            epoch: None,
            unknown: Unknown::Refuse,
            heights: Unknown::Refuse,
            ids: Unknown::Refuse,
            crs: Crs::Crs84,
            on_error: OnError::Collect,
            mend: false,
            rejects: None,
            id_if_absent: None,
            record_bytes: 16 << 20,
            spool_bytes: 256 << 20,
            input_bytes: u64::MAX,
            watch: None,
            sample_rows: 50_000,
        }
    }
}

impl ReadOptions {
    /// Returns the column of geometry to take from a file that declares this one; `None` if columns of longitude and
    /// latitude are named.
    pub(crate) fn geometry_of<'a>(&'a self, declared: &'a str) -> Option<&'a str> {
        let of_points = self.lon.is_some() || self.lat.is_some();
        (!of_points).then(|| self.geometry.as_deref().unwrap_or(declared))
    }

    /// Returns whether the geometry that a file declares is the place of its events: no option names another.
    pub(crate) fn takes(&self, declared: &str) -> bool {
        self.geometry_of(declared) == Some(declared)
    }
}

/// Limits of one batch; the first one reached ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Max events.
    pub rows: usize,
    /// Max bytes of column data; the event that exceeds it is the batch's last.
    pub bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        BatchLimits { rows: 65_536, bytes: 32 << 20 }
    }
}
