//! One column of a sample: the common properties of its values.

use super::kinds;
use super::trend::NumberTrend;
use crate::options::{OnError, ReadOptions};
use meridian_model::{FieldType, GeometryType};
use std::collections::HashSet;

/// Max texts, and max numbers, of a column that are inspected, and max bytes of each text.
const VALUES_MAX: usize = 100;
const TEXT_BYTES: usize = 64;
/// Among this many values one may be a text by mistake: `n/a` in a column of numbers.
pub(crate) const FEW: usize = 10;

/// One column or property of the sample.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kinds: u8,
    /// Number of events that have a value.
    pub(crate) values: u64,
    /// Bare dates among them.
    pub(super) dates: u64,
    /// Texts among them that are of no other kind.
    pub(super) plain: u64,
    pub(super) shape: Option<GeometryType>,
    pub(super) ids: Option<Ids>,
    /// Trend of its numbers, or of its times in microseconds, from event to event.
    pub(super) trend: NumberTrend,
    /// Whether its type is a day.
    pub(crate) days: bool,
    /// Whether its type is that of no field, only of a geometry: bytes or points.
    pub(crate) only_shape: bool,
    /// Whether words in it can be declared to mean no value: unquoted cells of a table.
    pub(super) bare: bool,
    /// The first integer in a cell of too many digits for a float, and its line.
    pub(super) rounded: Option<(String, u64)>,
    /// Whether its values are cells of a text table.
    pub(super) cells: bool,
    /// The first of its texts that are of no other kind.
    pub(super) texts: Vec<String>,
    /// The first of its numbers, or of its times in microseconds.
    pub(super) numbers: Vec<f64>,
}

/// Whether the ids of a sample are all present and distinct.
#[derive(Debug, Clone, Default)]
pub(super) struct Ids {
    pub(super) hashes: HashSet<u64>,
    pub(super) count: u64,
}

impl Column {
    pub(super) fn new(name: &str, may_be_id: bool) -> Column {
        Column {
            name: name.to_owned(),
            kinds: 0,
            values: 0,
            dates: 0,
            plain: 0,
            shape: None,
            ids: may_be_id.then(Ids::default),
            trend: NumberTrend::default(),
            days: false,
            only_shape: false,
            bare: false,
            rounded: None,
            cells: false,
            texts: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Records a text of no other kind.
    pub(super) fn saw_plain(&mut self, text: &str) {
        self.kinds |= kinds::TEXT;
        self.values += 1;
        self.plain += 1;
        if self.texts.len() < VALUES_MAX {
            self.texts.push(text[..text.floor_char_boundary(TEXT_BYTES)].to_owned());
        }
    }

    /// Records a number, or a time in microseconds.
    pub(super) fn saw_number(&mut self, value: f64) {
        self.trend.note(value);
        if self.numbers.len() < VALUES_MAX {
            self.numbers.push(value);
        }
    }

    /// Returns its kinds, without text if few of its values are texts.
    pub(super) fn but_few_texts(&self) -> u8 {
        let few = self.plain * FEW as u64 <= self.values;
        if few { self.kinds & !kinds::TEXT } else { self.kinds }
    }

    /// Returns its kinds as place or time of events. Few texts are allowed if the events that have these are left out.
    pub(super) fn kinds_left(&self, options: &ReadOptions) -> u8 {
        if options.on_error == OnError::Skip { self.but_few_texts() } else { self.kinds }
    }

    /// Returns its type as a field.
    pub(super) fn kind(&self, primary_instant: bool, options: &ReadOptions) -> FieldType {
        use kinds::{BOOL, FLOAT, INT, LIST, LOCAL_TIME, TIME};
        match if primary_instant { self.but_few_texts() } else { self.kinds } {
            // Dates need no zone. If one is given, they are midnights in it.
            LOCAL_TIME if primary_instant && self.dates == self.values - self.plain && options.zone.is_none() => {
                FieldType::Date
            }
            LOCAL_TIME if self.days && !primary_instant => FieldType::Date,
            _ if primary_instant => FieldType::Time,
            INT => FieldType::Int,
            // With fractions beside such an integer no type of numbers keeps all.
            k if k & !(INT | FLOAT) == 0 && self.rounded.is_some() => FieldType::Text,
            k if k != 0 && k & !(INT | FLOAT) == 0 => FieldType::Float,
            BOOL => FieldType::Bool,
            TIME => FieldType::Time,
            // Times without a zone count as times only if the zone is known.
            k if k != 0 && k & !(TIME | LOCAL_TIME) == 0 && options.zone.is_some() => FieldType::Time,
            LIST => FieldType::TextList,
            _ => FieldType::Text,
        }
    }
}
