//! Summaries of the values of a group, other than running totals: quantiles, distinct counts, most frequent values.
//!
//! Each is exact up to a bound of distinct values. Beyond it, it is an estimate with bounded memory and a known
//! error. Quantiles and distinct counts depend only on the values, not on how these are split or merged. Most
//! frequent values depend on the order beyond their bound, so slices and partitions are merged in a fixed order.

mod bytes;
mod distinct;
mod frequent;
mod quantiles;
#[cfg(test)]
mod tests;

pub(crate) use bytes::Malformed;
pub(crate) use distinct::Distinct;
pub(crate) use frequent::Frequent;
pub(crate) use quantiles::Quantiles;

use crate::function::{Function, FunctionValue};
use arrow_array::Array;
use meridian_model::{FieldColumn, FieldType};

/// The kinds of summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Quantiles,
    Distinct,
    Frequent,
}

impl Kind {
    /// The field and kind of the summary that a function is read from, if any.
    pub(crate) fn of(function: &Function) -> Option<(usize, Kind)> {
        match *function {
            Function::Percentile(f, _) => Some((f, Kind::Quantiles)),
            Function::Distinct(f) => Some((f, Kind::Distinct)),
            Function::Top(f, _) => Some((f, Kind::Frequent)),
            _ => None,
        }
    }

    /// The name in partial results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Quantiles => "@quantiles",
            Kind::Distinct => "@distinct",
            Kind::Frequent => "@frequent",
        }
    }
}

/// The summary of one field in one group.
#[derive(Debug, Clone)]
pub(crate) enum Sketch {
    Quantiles(Quantiles),
    Distinct(Distinct),
    Frequent(Frequent),
}

impl Sketch {
    /// An empty summary.
    pub(crate) fn of(kind: Kind, field: FieldType) -> Sketch {
        match kind {
            Kind::Quantiles => Sketch::Quantiles(Quantiles::none(field == FieldType::Int)),
            Kind::Distinct => Sketch::Distinct(Distinct::none()),
            Kind::Frequent => Sketch::Frequent(Frequent::none()),
        }
    }

    /// Adds the value of a row; null is no value.
    pub(crate) fn add(&mut self, column: &FieldColumn<'_>, row: usize) {
        match (self, column) {
            (Sketch::Quantiles(all), FieldColumn::Int(a)) if a.is_valid(row) => all.add_int(a.value(row)),
            (Sketch::Quantiles(all), FieldColumn::Float(a)) if a.is_valid(row) => all.add_float(a.value(row)),
            (Sketch::Distinct(all), FieldColumn::Text(a)) if a.is_valid(row) => all.add_text(a.value(row)),
            (Sketch::Distinct(all), FieldColumn::Int(a)) if a.is_valid(row) => all.add_int(a.value(row)),
            (Sketch::Distinct(all), FieldColumn::Float(a)) if a.is_valid(row) => all.add_float(a.value(row)),
            (Sketch::Distinct(all), FieldColumn::Bool(a)) if a.is_valid(row) => all.add_int(a.value(row).into()),
            (Sketch::Distinct(all), FieldColumn::Time(a)) if a.is_valid(row) => all.add_int(a.value(row)),
            (Sketch::Frequent(all), FieldColumn::Text(a)) if a.is_valid(row) => all.add_text(a.value(row)),
            (Sketch::Frequent(all), FieldColumn::Int(a)) if a.is_valid(row) => all.add_int(a.value(row)),
            (Sketch::Frequent(all), FieldColumn::Bool(a)) if a.is_valid(row) => all.add_bool(a.value(row)),
            _ => {}
        }
    }

    /// Adds the values of another slice or partition.
    pub(crate) fn merge(&mut self, other: &Sketch) {
        match (self, other) {
            (Sketch::Quantiles(mine), Sketch::Quantiles(other)) => mine.merge(other),
            (Sketch::Distinct(mine), Sketch::Distinct(other)) => mine.merge(other),
            (Sketch::Frequent(mine), Sketch::Frequent(other)) => mine.merge(other),
            _ => {}
        }
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Sketch::Quantiles(all) => all.bytes(),
            Sketch::Distinct(all) => all.bytes(),
            Sketch::Frequent(all) => all.bytes(),
        }
    }

    /// The value of a function, and its error ([`crate::Group::errors`]).
    pub(crate) fn value(&self, function: &Function) -> (FunctionValue, f64) {
        match (self, function) {
            (Sketch::Quantiles(all), Function::Percentile(_, percent)) => all.percentile(*percent),
            (Sketch::Distinct(all), Function::Distinct(_)) => all.count(),
            (Sketch::Frequent(all), Function::Top(_, k)) => all.top(*k as usize),
            _ => (FunctionValue::Null, 0.0),
        }
    }

    /// Encodes the summary for another server.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Sketch::Quantiles(all) => all.encode(&mut out),
            Sketch::Distinct(all) => all.encode(&mut out),
            Sketch::Frequent(all) => all.encode(&mut out),
        }
        out
    }

    /// Decodes the output of [`Sketch::encode`].
    pub(crate) fn decode(kind: Kind, field: FieldType, bytes: &[u8]) -> Result<Sketch, Malformed> {
        Ok(match kind {
            Kind::Quantiles => Sketch::Quantiles(Quantiles::decode(field == FieldType::Int, bytes)?),
            Kind::Distinct => Sketch::Distinct(Distinct::decode(bytes)?),
            Kind::Frequent => Sketch::Frequent(Frequent::decode(field, bytes)?),
        })
    }
}
