//! A layer of FlatGeobuf: its header, and its features one by one.

use super::geometry;
use super::message::{Message, Slot};
use crate::columns::Column;
use crate::instant;
use crate::write::WriteError;
use crate::write::table::{Columns, Rows};
use arrow_array::{Array, RecordBatch};
use meridian_model::FieldType;
use meridian_model::geometry::{from_wkb, sides};

/// Mark and version at the start.
const MAGIC: [u8; 8] = *b"fgb\x03fgb\0";

/// What the header tells of all features, if they are known before it is written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Whole {
    /// Number of features; 0 if unknown.
    pub(crate) features: u64,
    /// West, south, east and north of the features, if known.
    pub(crate) sides: Option<[f64; 4]>,
    /// Max children of a node of the index; 0 without an index.
    pub(crate) node_size: u16,
}

/// Encodes record batches as features of one layer.
pub(crate) struct Layer {
    name: String,
    columns: Columns,
}

impl Layer {
    pub(crate) fn new(name: &str, columns: Columns) -> Layer {
        Layer { name: name.to_owned(), columns }
    }

    /// Appends the mark and the header.
    pub(crate) fn header(&self, whole: Whole, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        let mut message = Message::begin(out);
        let none = Slot::Absent;
        // Heights and measures are not stored: the fields after the type say that there are none.
        let [name, envelope, _, _, _, _, _, columns, _, _, system] = message.table(
            Message::ROOT,
            [
                Slot::Offset,
                if whole.sides.is_some() { Slot::Offset } else { none },
                Slot::Byte(geometry::code(self.columns.shape)),
                none,
                none,
                none,
                none,
                Slot::Offset,
                Slot::Long(whole.features),
                // Written also if 0: the default is 16.
                Slot::Short(whole.node_size),
                Slot::Offset,
            ],
        );
        message.text(name, &self.name);
        if let Some(sides) = whole.sides {
            message.floats(envelope, sides.into_iter());
        }
        let entries = message.offsets(columns, self.columns.named.len());
        for (entry, (name, kind)) in entries.zip(&self.columns.named) {
            let [at, _] = message.table(entry, [Slot::Offset, Slot::Byte(code(*kind))]);
            message.text(at, name);
        }
        let [organization, _, name] = message.table(system, [Slot::Offset, Slot::Int(4326), Slot::Offset]);
        message.text(organization, "EPSG");
        message.text(name, "WGS 84");
        message.end();
    }

    /// Looks up the columns of a batch.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<Rows, WriteError> {
        self.columns.rows(batch)
    }

    /// Appends a row. Returns west, south, east and north of its shape, if it has one.
    pub(crate) fn feature(&self, rows: &Rows, row: usize, out: &mut Vec<u8>) -> Result<Option<[f64; 4]>, WriteError> {
        let layer = self.columns.shape;
        let shape = rows.shape(row).map(from_wkb).transpose().map_err(WriteError::of)?;
        // GDAL takes a file with an empty geometry for damaged: a feature without positions has none.
        let placed = shape.and_then(|shape| sides(&shape).map(|sides| (shape, sides)));
        let mut message = Message::begin(out);
        let slot = if placed.is_some() { Slot::Offset } else { Slot::Absent };
        let [place, properties] = message.table(Message::ROOT, [slot, Slot::Offset]);
        let mut around = None;
        if let Some((shape, sides)) = placed {
            geometry::write(&mut message, place, &geometry::typed(shape, layer)?, layer)?;
            around = Some(sides);
        }
        message.bytes(properties, |out| {
            for ((at, column), (_, kind)) in (0u16..).zip(&rows.columns).zip(&self.columns.named) {
                property(at, column, *kind, row, out);
            }
        });
        message.end();
        Ok(around)
    }
}

/// Returns the number of a type of columns in the format.
fn code(kind: FieldType) -> u8 {
    match kind {
        FieldType::Bool => 2,
        FieldType::Int => 7,
        FieldType::Float => 10,
        FieldType::Text => 11,
        FieldType::TextList => 12,
        FieldType::Time | FieldType::Date => 13,
    }
}

/// Appends the number of a column and its value in a row; an absent one is left out.
fn property(at: u16, column: &Column, kind: FieldType, row: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&at.to_le_bytes());
    let written = match column {
        Column::Text(texts) => texts.get(row).map(|value| text(value.as_bytes(), out)),
        Column::Int(a) => a.is_valid(row).then(|| out.extend_from_slice(&a.value(row).to_le_bytes())),
        Column::Float(a) => a.is_valid(row).then(|| out.extend_from_slice(&a.value(row).to_le_bytes())),
        Column::Bool(a) => a.is_valid(row).then(|| out.push(u8::from(a.value(row)))),
        Column::Time(times) => times.get(row).and_then(Result::ok).map(|micros| {
            let mut value = Vec::new();
            instant::write_as(kind, micros, &mut value);
            text(&value, out);
        }),
        list => list.json(row).map(|json| text(json.as_bytes(), out)),
    };
    if written.is_none() {
        out.truncate(start);
    }
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
