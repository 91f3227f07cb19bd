//! Writes places as JSON, directly from columns into one buffer.

use super::TEXTS;
use crate::contract::text::write_json_string;
use arrow_array::Array;
use meridian_backend::RowSink;
use meridian_model::{Batch, FieldColumn, Layout, Projection, Schema, Seq};

/// The empty list, used if the collection does not exist.
pub const NONE: &[u8] = b"{\"totalPlaces\":0,\"places\":[]}";
/// Buffer capacity for one place, in bytes.
const PLACE_BYTES: usize = 256;

/// The JSON prefixes of the members in [`TEXTS`], in the same order.
const MEMBERS: [&str; 6] =
    [",\"name\":", ",\"address\":", ",\"city\":", ",\"state\":", ",\"zipCode\":", ",\"telephoneNumber\":"];

/// Writes a JSON document: a list of places, or one place.
pub struct PlaceWriter {
    /// For each text field of the collection: the JSON prefix of its member, and the field.
    texts: Vec<(&'static str, usize)>,
    out: Vec<u8>,
    list: bool,
    first: bool,
}

impl PlaceWriter {
    /// Creates a writer for a list.
    pub fn list() -> PlaceWriter {
        PlaceWriter { texts: Vec::with_capacity(TEXTS.len()), out: Vec::new(), list: true, first: true }
    }

    /// Creates a writer for one place.
    pub fn one() -> PlaceWriter {
        PlaceWriter { list: false, ..PlaceWriter::list() }
    }

    /// Returns the complete document.
    pub fn finish(mut self) -> Vec<u8> {
        if self.list {
            self.out.extend_from_slice(b"]}");
        }
        self.out
    }
}

impl RowSink for PlaceWriter {
    fn begin(&mut self, schema: &Schema, layout: &Layout, total: u64, rows: usize) -> Projection {
        let mut columns = Projection::none(layout);
        columns.add_id(layout);
        columns.add_geometry(layout);
        for (name, member) in TEXTS.iter().zip(MEMBERS) {
            if let Some(field) = schema.field_index(name) {
                columns.add(layout.field(field));
                self.texts.push((member, field));
            }
        }
        // Reserved once for all rows, so that growth copies nothing.
        self.out.reserve(64 + PLACE_BYTES * rows);
        if self.list {
            self.out.extend_from_slice(b"{\"totalPlaces\":");
            self.out.extend_from_slice(itoa::Buffer::new().format(total).as_bytes());
            self.out.extend_from_slice(b",\"places\":[");
        }
        columns
    }

    fn row(&mut self, batch: &Batch, row: usize, seq: Option<Seq>, distance_m: Option<f64>) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write_place(&self.texts, batch, row, seq, distance_m, &mut self.out);
    }
}

fn write_place(
    texts: &[(&'static str, usize)],
    batch: &Batch,
    row: usize,
    seq: Option<Seq>,
    distance_m: Option<f64>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"id\":");
    match batch.ids() {
        Some(ids) => write_json_string(ids.value(row), out),
        None => write_json_string(&seq.unwrap_or_default().to_id(), out),
    }
    for &(member, field) in texts {
        if let Some(FieldColumn::Text(column)) = batch.field(field)
            && column.is_valid(row)
        {
            out.extend_from_slice(member.as_bytes());
            write_json_string(column.value(row), out);
        }
    }
    if let Some((lons, lats)) = batch.points()
        && lons.is_valid(row)
    {
        // The shortest decimal that parses back to the same number.
        let mut number = zmij::Buffer::new();
        out.extend_from_slice(b",\"latitude\":");
        out.extend_from_slice(number.format_finite(lats.value(row)).as_bytes());
        out.extend_from_slice(b",\"longitude\":");
        out.extend_from_slice(number.format_finite(lons.value(row)).as_bytes());
    }
    if let Some(distance_m) = distance_m {
        out.extend_from_slice(b",\"distance\":");
        write_km(distance_m, out);
    }
    out.push(b'}');
}

/// Writes kilometres with two decimals.
fn write_km(metres: f64, out: &mut Vec<u8>) {
    let hundredths = (metres / 10.0).round() as u64;
    out.extend_from_slice(itoa::Buffer::new().format(hundredths / 100).as_bytes());
    let rest = (hundredths % 100) as u8;
    out.extend([b'.', b'0' + rest / 10, b'0' + rest % 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilometres_have_two_decimals() {
        for (metres, expected) in [(0.0, "0.00"), (4.9, "0.00"), (5.0, "0.01"), (9_914.2, "9.91"), (49_999.0, "50.00")]
        {
            let mut out = Vec::new();
            write_km(metres, &mut out);
            assert_eq!(std::str::from_utf8(&out).unwrap(), expected);
        }
    }

    #[test]
    fn members_follow_the_names() {
        for (name, member) in TEXTS.iter().zip(MEMBERS) {
            assert_eq!(member, format!(",\"{name}\":"));
        }
    }
}
