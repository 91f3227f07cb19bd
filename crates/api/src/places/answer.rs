//! Writes places as JSON, straight from columns into one buffer.

use super::TEXTS;
use crate::text::write_json_string;
use arrow_array::Array;
use meridian_model::{Batch, FieldColumn, Projection, Schema, Seq};
use meridian_query::near::Chunks;
use meridian_store::{PartView, Snapshot, StoreError};

/// The list of no places, where no collection holds any.
pub const NONE: &[u8] = b"{\"totalPlaces\":0,\"places\":[]}";
/// Bytes set aside for one place.
const PLACE_BYTES: usize = 256;

/// What of an event makes a place.
struct Columns {
    /// For each text that the collection has: the beginning of its member, and its field.
    texts: Vec<(&'static str, usize)>,
    projection: Projection,
    made_ids: bool,
}

impl Columns {
    fn of(snapshot: &Snapshot) -> Columns {
        let schema: &Schema = &snapshot.schema;
        let mut projection = Projection::none(&snapshot.layout);
        projection.add_id(&snapshot.layout);
        projection.add_geometry(&snapshot.layout);
        let mut texts = Vec::with_capacity(TEXTS.len());
        for (name, member) in TEXTS.iter().zip(MEMBERS) {
            if let Some(field) = schema.field_index(name) {
                projection.add(snapshot.layout.field(field));
                texts.push((member, field));
            }
        }
        Columns { texts, projection, made_ids: snapshot.layout.id.is_none() }
    }
}

/// The beginnings of the members of [`TEXTS`], in the same order.
const MEMBERS: [&str; 6] =
    [",\"name\":", ",\"address\":", ",\"city\":", ",\"state\":", ",\"zipCode\":", ",\"telephoneNumber\":"];

/// A list of places in the making.
pub struct PlaceWriter<'a> {
    snapshot: &'a Snapshot,
    columns: Columns,
    chunks: Chunks,
    out: Vec<u8>,
    first: bool,
}

impl<'a> PlaceWriter<'a> {
    /// A list of about `count` places of `total`.
    pub fn list(snapshot: &'a Snapshot, total: u64, count: usize) -> PlaceWriter<'a> {
        let columns = Columns::of(snapshot);
        let chunks = Chunks::new(columns.projection.clone());
        let mut out = Vec::with_capacity(64 + PLACE_BYTES * count);
        out.extend_from_slice(b"{\"totalPlaces\":");
        out.extend_from_slice(itoa::Buffer::new().format(total).as_bytes());
        out.extend_from_slice(b",\"places\":[");
        PlaceWriter { snapshot, columns, chunks, out, first: true }
    }

    /// Adds a place, with its distance if it has one.
    pub fn place(&mut self, part: usize, row: u32, distance_m: Option<f64>) -> Result<(), StoreError> {
        let view = &self.snapshot.parts[part];
        let seq = made_seq(&self.columns, view, row)?;
        let (batch, first) = self.chunks.get(part, view, row)?;
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write_place(&self.columns, batch, (row - first) as usize, seq, distance_m, &mut self.out);
        Ok(())
    }

    /// The whole list.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"]}");
        self.out
    }
}

/// One place alone.
pub fn one(snapshot: &Snapshot, view: &PartView, row: u32) -> Result<Vec<u8>, StoreError> {
    let columns = Columns::of(snapshot);
    let seq = made_seq(&columns, view, row)?;
    let batch = view.read(row..row + 1, &columns.projection)?;
    let mut out = Vec::with_capacity(PLACE_BYTES);
    write_place(&columns, &batch, 0, seq, None, &mut out);
    Ok(out)
}

/// The sequence number that an id is made from, where ids are made.
fn made_seq(columns: &Columns, view: &PartView, row: u32) -> Result<Option<Seq>, StoreError> {
    if !columns.made_ids {
        return Ok(None);
    }
    Ok(view.seqs(row..row + 1)?.first().copied().map(Seq))
}

fn write_place(
    columns: &Columns,
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
    for &(member, field) in &columns.texts {
        if let Some(FieldColumn::Text(texts)) = batch.field(field)
            && texts.is_valid(row)
        {
            out.extend_from_slice(member.as_bytes());
            write_json_string(texts.value(row), out);
        }
    }
    if let Some((lons, lats)) = batch.points()
        && lons.is_valid(row)
    {
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

/// Kilometres with two decimals.
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
