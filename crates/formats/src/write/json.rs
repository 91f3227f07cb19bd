//! Events as GeoJSON features.

use super::{EventWriter, WriteError};
use crate::instant;
use crate::json_text::{coordinate, escape, float, int};
use crate::wkb;
use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, Float64Array, StringArray};
use meridian_model::{Batch, FieldColumn, FieldType, Invalid, Schema, Seq};
use std::sync::Arc;

/// Writes events of one schema as GeoJSON features; created once per response.
#[derive(Debug, Clone)]
pub struct FeatureWriter {
    /// Fields to write, each with its key as JSON text: `"name":`.
    fields: Arc<[(usize, Vec<u8>)]>,
}

/// Returns the fields of a list of names, in the schema's order; all without a list.
pub(crate) fn selection(schema: &Schema, properties: Option<&[String]>) -> Result<Vec<usize>, Invalid> {
    let Some(names) = properties else { return Ok((0..schema.fields.len()).collect()) };
    let mut fields = Vec::with_capacity(names.len());
    for name in names {
        match schema.field_index(name) {
            Some(field) => fields.push(field),
            None => {
                let known: Vec<String> = schema.fields.iter().map(|f| f.name.clone()).collect();
                let detail = format!("no such field {name:?}; the fields are {}", crate::roles::list(&known));
                return Err(Invalid::field("properties", detail));
            }
        }
    }
    fields.sort_unstable();
    // A name given twice would make two members of one name.
    fields.dedup();
    Ok(fields)
}

impl FeatureWriter {
    /// Creates a writer of the named properties, or of all. An unknown name is an error that lists the known ones.
    pub fn new(schema: &Schema, properties: Option<&[String]>) -> Result<FeatureWriter, Invalid> {
        let fields = selection(schema, properties)?
            .into_iter()
            .map(|field| {
                let mut key = Vec::new();
                // Once for all events: a name would otherwise be escaped again for every row.
                escape(&schema.fields[field].name, &mut key);
                key.push(b':');
                (field, key)
            })
            .collect();
        Ok(FeatureWriter { fields })
    }

    /// Looks up the columns of a batch once for all its rows; `seqs[row]` gives generated ids. Columns missing from
    /// the batch are left out of the features.
    pub fn rows<'a>(&'a self, batch: &'a Batch, seqs: &'a [Seq]) -> Features<'a> {
        let place = if let Some((lon, lat)) = batch.points() {
            GeometryColumn::Points(lon, lat)
        } else if let Some(shapes) = batch.wkb() {
            GeometryColumn::Shapes(shapes)
        } else {
            GeometryColumn::Nowhere
        };
        let fields = self.fields.iter().filter_map(|(f, key)| {
            let kind = batch.schema().fields[*f].kind;
            Some((key.as_slice(), batch.field(*f)?, kind))
        });
        let fields = fields.collect();
        Features { ids: batch.ids(), seqs, place, fields }
    }
}

enum GeometryColumn<'a> {
    Nowhere,
    Points(&'a Float64Array, &'a Float64Array),
    Shapes(&'a BinaryArray),
}

/// The rows of one batch, ready to be written one by one.
pub struct Features<'a> {
    ids: Option<&'a StringArray>,
    seqs: &'a [Seq],
    place: GeometryColumn<'a>,
    fields: Vec<(&'a [u8], FieldColumn<'a>, FieldType)>,
}

impl Features<'_> {
    /// Appends a row as `{"type":"Feature","id":…,"geometry":…,"properties":{…}}`.
    pub fn feature(&self, row: usize, out: &mut Vec<u8>) {
        self.feature_with(row, out, |_| {});
    }

    /// Like [`Features::feature`]; `more` may append further members, each begun with a comma (`,"links":[…]`), before
    /// the closing brace.
    pub fn feature_with(&self, row: usize, out: &mut Vec<u8>, more: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(b"{\"type\":\"Feature\",\"id\":");
        self.id(row, out);
        out.extend_from_slice(b",\"geometry\":");
        self.geometry(row, out);
        out.extend_from_slice(b",\"properties\":");
        self.properties(row, out);
        more(out);
        out.push(b'}');
    }

    /// Appends a row's id as a JSON string; `null` if it is neither given nor generated.
    pub fn id(&self, row: usize, out: &mut Vec<u8>) {
        match (self.ids, self.seqs.get(row)) {
            (Some(ids), _) => escape(ids.value(row), out),
            (None, Some(seq)) => escape(&seq.to_id(), out),
            (None, None) => out.extend_from_slice(b"null"),
        }
    }

    /// Appends a row's geometry as GeoJSON; `null` without one.
    pub fn geometry(&self, row: usize, out: &mut Vec<u8>) {
        match self.place {
            GeometryColumn::Points(lon, lat) if lon.is_valid(row) => {
                out.extend_from_slice(b"{\"type\":\"Point\",\"coordinates\":[");
                coordinate(lon.value(row), out);
                out.push(b',');
                coordinate(lat.value(row), out);
                out.extend_from_slice(b"]}");
            }
            GeometryColumn::Shapes(shapes) if shapes.is_valid(row) => wkb::write_geojson(shapes.value(row), out),
            _ => out.extend_from_slice(b"null"),
        }
    }

    /// Appends a row's properties as a JSON object; a field without a value is `null`.
    pub fn properties(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        for (i, (key, column, kind)) in self.fields.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key);
            value(column, *kind, row, out);
        }
        out.push(b'}');
    }
}

/// Appends one value of a column, of a field of this kind, as JSON.
pub(crate) fn value(column: &FieldColumn<'_>, kind: FieldType, row: usize, out: &mut Vec<u8>) {
    match column {
        FieldColumn::Text(c) if c.is_valid(row) => escape(c.value(row), out),
        FieldColumn::Int(c) if c.is_valid(row) => int(c.value(row), out),
        FieldColumn::Float(c) if c.is_valid(row) => float(c.value(row), out),
        FieldColumn::Bool(c) if c.is_valid(row) => out.extend_from_slice(if c.value(row) { b"true" } else { b"false" }),
        FieldColumn::Time(c) if c.is_valid(row) => {
            out.push(b'"');
            instant::write_as(kind, c.value(row), out);
            out.push(b'"');
        }
        FieldColumn::TextList(c) if c.is_valid(row) => {
            let items = c.value(row);
            out.push(b'[');
            if let Some(items) = items.as_string_opt::<i32>() {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    escape(item.unwrap_or(""), out);
                }
            }
            out.push(b']');
        }
        _ => out.extend_from_slice(b"null"),
    }
}

/// The text around features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One FeatureCollection.
    Collection,
    /// A record separator before and a line end after each (RFC 8142).
    Sequence,
    /// One per line.
    Lines,
}

/// A stream of features in one framing.
pub(crate) struct JsonEvents {
    writer: FeatureWriter,
    framing: Framing,
    first: bool,
}

impl JsonEvents {
    pub(crate) fn new(writer: FeatureWriter, framing: Framing) -> JsonEvents {
        JsonEvents { writer, framing, first: true }
    }
}

impl EventWriter for JsonEvents {
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if self.framing == Framing::Collection {
            out.extend_from_slice(b"{\"type\":\"FeatureCollection\",\"features\":[");
        }
        Ok(())
    }

    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError> {
        let rows = self.writer.rows(batch, seqs);
        for row in 0..batch.rows() {
            match self.framing {
                // A comma precedes each but the first, as a writer does not know which is the last.
                Framing::Collection if std::mem::take(&mut self.first) => out.push(b'\n'),
                Framing::Collection => out.extend_from_slice(b",\n"),
                Framing::Sequence => out.push(0x1e),
                Framing::Lines => {}
            }
            rows.feature(row, out);
            // Written after each record: without it a reader could not detect a truncated record.
            if self.framing != Framing::Collection {
                out.push(b'\n');
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if self.framing == Framing::Collection {
            out.extend_from_slice(b"\n]}\n");
        }
        Ok(())
    }
}
