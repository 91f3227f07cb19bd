//! Events as comma-separated values (RFC 4180) with a header line.

use super::json::{selection, value};
use super::{EventWriter, WriteError};
use crate::json_text::coordinate;
use crate::roles::point_names;
use crate::{instant, wkb};
use arrow_array::Array;
use meridian_model::{Batch, FieldColumn, Invalid, Schema, Seq};
use std::sync::Arc;

/// A table: the id, the geometry (`lon` and `lat` of points, WKT of other shapes), then the fields.
///
/// A field without a value is empty; an empty text is quoted. Lists are JSON arrays.
pub(crate) struct CsvEvents {
    schema: Arc<Schema>,
    fields: Vec<usize>,
}

impl CsvEvents {
    pub(crate) fn new(schema: &Arc<Schema>, properties: Option<&[String]>) -> Result<CsvEvents, Invalid> {
        Ok(CsvEvents { schema: schema.clone(), fields: selection(schema, properties)? })
    }
}

impl EventWriter for CsvEvents {
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        quote(&self.schema.id_column(), out);
        match self.schema.geometry {
            None => {}
            Some(meridian_model::GeometryType::Point) => {
                for name in point_names(&self.schema) {
                    out.push(b',');
                    quote(&name, out);
                }
            }
            Some(_) => {
                out.push(b',');
                quote(&self.schema.geometry_name, out);
            }
        }
        for &field in &self.fields {
            out.push(b',');
            quote(&self.schema.fields[field].name, out);
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError> {
        let (ids, points, shapes) = (batch.ids(), batch.points(), batch.wkb());
        let columns: Vec<_> = self.fields.iter().map(|&f| (self.schema.fields[f].kind, batch.field(f))).collect();
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            match (ids, seqs.get(row)) {
                (Some(ids), _) => quote(ids.value(row), out),
                (None, Some(seq)) => out.extend_from_slice(seq.to_id().as_bytes()),
                (None, None) => {}
            }
            if self.schema.geometry == Some(meridian_model::GeometryType::Point) {
                out.push(b',');
                let place = points.filter(|(lon, _)| lon.is_valid(row));
                if let Some((lon, _)) = place {
                    coordinate(lon.value(row), out);
                }
                out.push(b',');
                if let Some((_, lat)) = place {
                    coordinate(lat.value(row), out);
                }
            } else if self.schema.geometry.is_some() {
                out.push(b',');
                if let Some(shapes) = shapes.filter(|s| s.is_valid(row)) {
                    out.push(b'"');
                    // WKT contains commas and never a quote, so it needs quoting but no escaping.
                    wkb::write_wkt(shapes.value(row), out);
                    out.push(b'"');
                }
            }
            for (kind, column) in &columns {
                out.push(b',');
                match column {
                    None => {}
                    Some(FieldColumn::Text(c)) if c.is_valid(row) => quote(c.value(row), out),
                    Some(FieldColumn::Time(c)) if c.is_valid(row) => instant::write_as(*kind, c.value(row), out),
                    Some(FieldColumn::TextList(c)) if c.is_valid(row) => {
                        scratch.clear();
                        value(&FieldColumn::TextList(c), *kind, row, &mut scratch);
                        quote(&String::from_utf8_lossy(&scratch), out);
                    }
                    Some(column) => {
                        let start = out.len();
                        value(column, *kind, row, out);
                        // CSV has no null: a missing value is an empty field without quotes.
                        if out[start..] == *b"null" {
                            out.truncate(start);
                        }
                    }
                }
            }
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), WriteError> {
        Ok(())
    }
}

/// Appends a text, quoted if necessary: also when empty, or with outer spaces that readers may trim.
pub fn quote(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let special = |b: &u8| matches!(b, b'"' | b',' | b'\n' | b'\r' | b';' | b'\t' | b'|');
    // An empty text in quotes is a value; without them it would read back as none.
    let edged = matches!(bytes.first(), None | Some(b' ')) || bytes.last() == Some(&b' ');
    if !edged && !bytes.iter().any(special) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
