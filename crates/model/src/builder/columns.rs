//! The Arrow builders of a batch: its geometry and its fields.

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use std::sync::Arc;

/// Initial capacity in events. A request with a single event should not pay for a thousand, and a large batch gets
/// there after a few doublings.
pub(super) const FIRST_ROWS: usize = 16;

/// Initial capacity of a text column in bytes.
pub(super) const FIRST_BYTES: usize = 256;

/// A value of the current event, already of its field's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PendingValue {
    Null,
    /// A range in the event's text buffer.
    Text(usize, usize),
    Int(i64),
    Float(f64),
    Bool(bool),
    Time(i64),
    TextList(Vec<String>),
}

#[allow(clippy::large_enum_variant, reason = "one for each batch in the making, never moved")]
pub(super) enum PlaceBuilder {
    None,
    Points { lon: Float64Builder, lat: Float64Builder, pending: Option<(f64, f64)> },
    Shapes { wkb: BinaryBuilder, sides: Box<[Float64Builder; 4]>, pending: Option<(Vec<u8>, [f64; 4])> },
}

pub(super) enum FieldBuilder {
    Text(StringBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
    TextList(ListBuilder<StringBuilder>),
}

impl PlaceBuilder {
    pub(super) fn end_event(&mut self) -> usize {
        match self {
            PlaceBuilder::None => 0,
            PlaceBuilder::Points { lon, lat, pending } => {
                let place = pending.take();
                // Both or neither: readers test longitude alone for null.
                lon.append_option(place.map(|p| p.0));
                lat.append_option(place.map(|p| p.1));
                16
            }
            PlaceBuilder::Shapes { wkb, sides, pending } => {
                let place = pending.take();
                for (i, side) in sides.iter_mut().enumerate() {
                    side.append_option(place.as_ref().map(|p| p.1[i]));
                }
                let bytes = place.map(|p| p.0);
                wkb.append_option(bytes.as_deref());
                36 + bytes.map_or(0, |b| b.len())
            }
        }
    }
}

impl FieldBuilder {
    /// Appends a value of the right type (or null) and returns its approximate size in bytes.
    pub(super) fn append(&mut self, value: PendingValue, texts: &str) -> usize {
        match (self, value) {
            (FieldBuilder::Text(b), PendingValue::Text(from, to)) => {
                b.append_value(&texts[from..to]);
                4 + to - from
            }
            (FieldBuilder::Text(b), _) => {
                b.append_null();
                4
            }
            (FieldBuilder::Int(b), value) => {
                b.append_option(if let PendingValue::Int(n) = value { Some(n) } else { None });
                8
            }
            (FieldBuilder::Float(b), value) => {
                b.append_option(if let PendingValue::Float(x) = value { Some(x) } else { None });
                8
            }
            (FieldBuilder::Bool(b), value) => {
                b.append_option(if let PendingValue::Bool(x) = value { Some(x) } else { None });
                1
            }
            (FieldBuilder::Time(b), value) => {
                b.append_option(if let PendingValue::Time(t) = value { Some(t) } else { None });
                8
            }
            (FieldBuilder::TextList(b), PendingValue::TextList(list)) => {
                let bytes = list.iter().map(|t| t.len() + 4).sum::<usize>();
                list.iter().for_each(|t| b.values().append_value(t));
                b.append(true);
                4 + bytes
            }
            (FieldBuilder::TextList(b), _) => {
                b.append_null();
                4
            }
        }
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            FieldBuilder::Text(b) => Arc::new(b.finish()),
            FieldBuilder::Int(b) => Arc::new(b.finish()),
            FieldBuilder::Float(b) => Arc::new(b.finish()),
            FieldBuilder::Bool(b) => Arc::new(b.finish()),
            FieldBuilder::Time(b) => Arc::new(b.finish()),
            FieldBuilder::TextList(b) => Arc::new(b.finish()),
        }
    }
}
