//! One column of a sample: what its values have in common.

use super::course::Course;
use super::guess::kinds;
use crate::options::{OnError, ReadOptions};
use meridian_model::{FieldType, GeometryType};
use std::collections::HashSet;

/// Texts of a column that are looked at for what they might be, and bytes of each.
const TEXTS_MAX: usize = 100;
const TEXT_BYTES: usize = 64;
/// Among so many values one may be a text and a mistake: `n/a` in a column of numbers.
pub(crate) const FEW: usize = 10;

/// One column or property of the sample.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kinds: u8,
    /// Events that have a value.
    pub(crate) values: u64,
    /// Of these, bare dates.
    pub(super) dates: u64,
    /// Of these, texts that are nothing else.
    pub(super) plain: u64,
    pub(super) shape: Option<GeometryType>,
    pub(super) ids: Option<Ids>,
    /// How its numbers, or its times in microseconds, went on from event to event.
    pub(super) course: Course,
    /// Whether its type is that of days.
    pub(crate) days: bool,
    /// Whether words in it can be declared to mean no value: cells of a table, without quotes.
    pub(super) bare: bool,
    /// The first of its texts that are nothing else.
    pub(super) texts: Vec<String>,
}

/// Whether the ids of a sample are all there and all different.
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
            course: Course::default(),
            days: false,
            bare: false,
            texts: Vec::new(),
        }
    }

    /// Notes a text that is nothing else.
    pub(super) fn saw_plain(&mut self, text: &str) {
        self.kinds |= kinds::TEXT;
        self.values += 1;
        self.plain += 1;
        if self.texts.len() < TEXTS_MAX {
            self.texts.push(text[..text.floor_char_boundary(TEXT_BYTES)].to_owned());
        }
    }

    /// Its kinds, without that of texts where few of its values are texts.
    pub(super) fn but_few_texts(&self) -> u8 {
        let few = self.plain * FEW as u64 <= self.values;
        if few { self.kinds & !kinds::TEXT } else { self.kinds }
    }

    /// Its kinds as the place or the time of events: with few texts where events that have these are left out.
    pub(super) fn kinds_left(&self, options: &ReadOptions) -> u8 {
        if options.on_error == OnError::Skip { self.but_few_texts() } else { self.kinds }
    }

    /// Its type as a field.
    pub(super) fn kind(&self, primary_instant: bool, options: &ReadOptions) -> FieldType {
        use kinds::{BOOL, FLOAT, INT, LIST, LOCAL_TIME, TIME};
        match if primary_instant { self.but_few_texts() } else { self.kinds } {
            // Dates need no zone. Where one is named, they are its midnights.
            LOCAL_TIME if primary_instant && self.dates == self.values - self.plain && options.zone.is_none() => {
                FieldType::Date
            }
            LOCAL_TIME if self.days && !primary_instant => FieldType::Date,
            _ if primary_instant => FieldType::Time,
            INT => FieldType::Int,
            k if k != 0 && k & !(INT | FLOAT) == 0 => FieldType::Float,
            BOOL => FieldType::Bool,
            TIME => FieldType::Time,
            // Times without a zone are times only where the zone is known.
            k if k != 0 && k & !(TIME | LOCAL_TIME) == 0 && options.zone.is_some() => FieldType::Time,
            LIST => FieldType::TextList,
            _ => FieldType::Text,
        }
    }
}
