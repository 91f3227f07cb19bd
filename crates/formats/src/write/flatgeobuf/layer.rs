//! A layer of FlatGeobuf: its header, and its features one by one.

use super::geometry;
use super::tables::*;
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
        let mut builder = Builder::new();
        let columns: Vec<Table> =
            self.columns.named.iter().map(|(name, kind)| column(&mut builder, name, *kind)).collect();
        let columns = builder.create_vector(&columns);
        let system = system(&mut builder);
        let envelope = whole.sides.map(|sides| builder.create_vector(&sides));
        let name = builder.create_string(&self.name);
        let header = builder.start_table();
        builder.push_slot_always(HEADER_FEATURES, whole.features);
        builder.push_slot_always(HEADER_NAME, name);
        if let Some(envelope) = envelope {
            builder.push_slot_always(HEADER_ENVELOPE, envelope);
        }
        builder.push_slot_always(HEADER_COLUMNS, columns);
        builder.push_slot_always(HEADER_SYSTEM, system);
        // Written also if 0: the default is 16.
        builder.push_slot_always(HEADER_NODE_SIZE, whole.node_size);
        // Heights and measures are not stored: the fields that announce them are left out.
        builder.push_slot_always(HEADER_TYPE, geometry::code(self.columns.shape));
        let header = builder.end_table(header);
        builder.finish_size_prefixed(header, None);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(builder.finished_data());
    }

    /// Looks up the columns of a batch.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<Rows, WriteError> {
        self.columns.rows(batch)
    }

    /// Appends a row, built in the buffer of the builder. Returns west, south, east and north of its shape, if it has
    /// one.
    pub(crate) fn feature(
        &self,
        rows: &Rows,
        row: usize,
        builder: &mut Builder,
        out: &mut Vec<u8>,
    ) -> Result<Option<[f64; 4]>, WriteError> {
        builder.reset();
        let shape = rows.shape(row).map(from_wkb).transpose().map_err(WriteError::of)?;
        // GDAL takes a file with an empty geometry for damaged: a feature without positions has none.
        let placed = shape.and_then(|shape| sides(&shape).map(|sides| (shape, sides)));
        let (mut place, mut around) = (None, None);
        if let Some((shape, sides)) = placed {
            let layer = self.columns.shape;
            place = Some(geometry::write(builder, &geometry::typed(shape, layer)?, layer)?);
            around = Some(sides);
        }
        // Collected at the end of the output, which needs no buffer of their own: their length is unknown before.
        let start = out.len();
        for ((at, column), (_, kind)) in (0u16..).zip(&rows.columns).zip(&self.columns.named) {
            property(at, column, *kind, row, out);
        }
        let properties = builder.create_vector(&out[start..]);
        out.truncate(start);
        let feature = builder.start_table();
        if let Some(place) = place {
            builder.push_slot_always(FEATURE_GEOMETRY, place);
        }
        builder.push_slot_always(FEATURE_PROPERTIES, properties);
        let feature = builder.end_table(feature);
        builder.finish_size_prefixed(feature, None);
        out.extend_from_slice(builder.finished_data());
        Ok(around)
    }
}

fn column(builder: &mut Builder, name: &str, kind: FieldType) -> Table {
    let name = builder.create_string(name);
    let column = builder.start_table();
    builder.push_slot_always(COLUMN_NAME, name);
    builder.push_slot_always(COLUMN_TYPE, code(kind));
    builder.end_table(column)
}

/// Builds the reference system, which is that of all collections.
fn system(builder: &mut Builder) -> Table {
    let organization = builder.create_string("EPSG");
    let name = builder.create_string("WGS 84");
    let system = builder.start_table();
    builder.push_slot_always(SYSTEM_ORGANIZATION, organization);
    builder.push_slot_always(SYSTEM_CODE, 4326i32);
    builder.push_slot_always(SYSTEM_NAME, name);
    builder.end_table(system)
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
