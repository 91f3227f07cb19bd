//! How an input is to be read.

use jiff::tz::TimeZone;

/// What to do at the first bad event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Read on to the end of the input (without keeping events) and report up to
    /// [`crate::MISTAKES_MAX`] mistakes: for a body that is taken whole or not at all.
    #[default]
    Collect,
    /// Stop there: for a long file of which the batches before are already in.
    First,
}

/// What to do with columns or keys that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// A mistake that names them and the known fields.
    #[default]
    Refuse,
    /// Leave them out.
    Ignore,
}

/// Unit of times written as whole numbers since 1970.
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
    /// Microseconds in one unit.
    pub fn micros(self) -> i64 {
        match self {
            Epoch::Seconds => 1_000_000,
            Epoch::Millis => 1_000,
            Epoch::Micros => 1,
        }
    }
}

/// How an input is to be read; the default suits files that follow common custom.
///
/// Columns are found by name where no option names them: `lon`, `lng`, `long`, `longitude`, `x` and
/// `lat`, `latitude`, `y` for points; `wkt`, `geometry`, `geom` for shapes; `time`, `timestamp`,
/// `date`, `datetime`, `dtg` for the time; the schema's `id_name` for the id. A field of the schema
/// goes before a customary name; an option goes before both.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Column or key of the longitude in degrees.
    pub lon: Option<String>,
    /// Column or key of the latitude in degrees.
    pub lat: Option<String>,
    /// Column of geometry: WKT in text files, WKB in Parquet and Arrow, GeoJSON in flat JSON.
    pub geometry: Option<String>,
    /// Column or key of the primary instant.
    pub time: Option<String>,
    /// Column or key of the id.
    pub id: Option<String>,
    /// The byte between CSV fields; sniffed among comma, tab, semicolon and bar where `None`.
    pub delimiter: Option<u8>,
    /// Whether `"` quotes CSV fields (RFC 4180); where `None`, yes unless the delimiter is a tab.
    pub quotes: Option<bool>,
    /// Words in CSV that stand for no value, besides the empty field.
    pub nulls: Vec<String>,
    /// Zone of times that carry none; such times are refused where `None`.
    pub zone: Option<TimeZone>,
    /// Unit of times written as whole numbers; such times are refused where `None`.
    pub epoch: Option<Epoch>,
    /// Columns and keys that the schema does not know.
    pub unknown: Unknown,
    /// What to do at the first bad event.
    pub on_error: OnError,
    /// The id of an event that brings none (one feature put at an address).
    pub id_if_absent: Option<String>,
    /// Longest line, feature or CSV row in bytes; a longer one is refused without being held.
    pub record_bytes: usize,
    /// Most bytes of a Parquet or Arrow file held when it comes as a stream rather than as a file.
    pub spool_bytes: usize,
    /// Events looked at by [`crate::infer`].
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
            delimiter: None,
            quotes: None,
            nulls: Vec::new(),
            zone: None,
            epoch: None,
            unknown: Unknown::Refuse,
            on_error: OnError::Collect,
            id_if_absent: None,
            record_bytes: 16 << 20,
            spool_bytes: 256 << 20,
            sample_rows: 50_000,
        }
    }
}

/// How much one batch may hold; whichever is reached first ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most events.
    pub rows: usize,
    /// Bytes of column data; the event that passes it is the batch's last.
    pub bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        BatchLimits { rows: 65_536, bytes: 32 << 20 }
    }
}
