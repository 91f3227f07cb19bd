//! Columns of exported events: names and types that other programs know.

use super::WriteError;
use super::json::selection;
use arrow_array::builder::StringBuilder;
use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema, SchemaRef};
use meridian_model::bounds::{f32_above, f32_below};
use meridian_model::layout::arrow_type;
use meridian_model::{Batch, IdRole, Invalid, Schema, Seq};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of the WKB of a point.
const POINT_BYTES: usize = 21;
/// Header of the WKB of a point: little-endian, type 1.
const POINT_HEAD: [u8; 5] = [1, 1, 0, 0, 0];

/// Name of the column of sequence numbers, in files that have it. It gives way to a field of this name.
pub(crate) fn seq_column(schema: &Schema) -> String {
    schema.free_name("@seq")
}

/// Columns in addition to those of every format.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extras {
    /// A box around the geometry.
    pub(crate) boxes: bool,
    /// The sequence number, if ids are given: a generated id already contains it.
    pub(crate) seqs: bool,
}

/// Turns batches of one schema into record batches.
///
/// Columns are the id, the geometry as WKB, a box around it if wanted, the fields, and the sequence number if wanted.
pub(crate) struct ColumnEncoder {
    schema: Arc<Schema>,
    fields: Vec<usize>,
    arrow: SchemaRef,
    /// Name of the column of sequence numbers, if there is one.
    pub(crate) seqs: Option<String>,
    /// Name of the column of boxes, if there is one.
    pub(crate) covering: Option<String>,
}

impl ColumnEncoder {
    pub(crate) fn new(
        schema: &Arc<Schema>,
        properties: Option<&[String]>,
        extras: Extras,
    ) -> Result<ColumnEncoder, Invalid> {
        let fields = selection(schema, properties)?;
        let mut columns = vec![Field::new(schema.id_column(), DataType::Utf8, true)];
        let mut covering = None;
        if schema.geometry.is_some() {
            let extension = HashMap::from([
                ("ARROW:extension:name".to_owned(), "geoarrow.wkb".to_owned()),
                (
                    "ARROW:extension:metadata".to_owned(),
                    r#"{"crs":"OGC:CRS84","crs_type":"authority_code"}"#.to_owned(),
                ),
            ]);
            columns.push(Field::new(&schema.geometry_name, DataType::Binary, true).with_metadata(extension));
            if extras.boxes {
                // GeoParquet does not prescribe the name of the covering column, so one that no field has will do.
                let free = ["bbox", "geometry_bbox"].into_iter().find(|name| schema.free_name(name) == *name);
                let name = free.map_or_else(|| schema.free_name("@bbox"), str::to_owned);
                columns.push(Field::new(&name, DataType::Struct(sides()), true));
                covering = Some(name);
            }
        }
        for &field in &fields {
            let spec = &schema.fields[field];
            columns.push(Field::new(&spec.name, arrow_type(spec.kind), true));
        }
        let seqs = (extras.seqs && schema.id == IdRole::Given).then(|| seq_column(schema));
        columns.extend(seqs.iter().map(|name| Field::new(name, DataType::Int64, false)));
        Ok(ColumnEncoder { schema: schema.clone(), fields, arrow: Arc::new(ArrowSchema::new(columns)), seqs, covering })
    }

    /// Returns the schema of the record batches.
    pub(crate) fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Returns one batch; `seqs[row]` gives generated ids.
    pub(crate) fn record_batch(&self, batch: &Batch, seqs: &[Seq]) -> Result<RecordBatch, WriteError> {
        let rows = batch.rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.arrow.fields().len());
        columns.push(ids(batch, seqs));
        if self.schema.geometry.is_some() {
            columns.push(match (batch.points(), batch.wkb()) {
                (Some((lon, lat)), _) => Arc::new(point_wkb(lon, lat)),
                (None, Some(shapes)) => Arc::new(shapes.clone()),
                (None, None) => new_null_array(&DataType::Binary, rows),
            });
            if self.covering.is_some() {
                columns.push(boxes(batch));
            }
        }
        for &field in &self.fields {
            let column = batch.column(batch.layout().field(field)).cloned();
            let kind = arrow_type(self.schema.fields[field].kind);
            columns.push(column.unwrap_or_else(|| new_null_array(&kind, rows)));
        }
        if self.seqs.is_some() {
            columns.push(Arc::new(Int64Array::from_iter_values(seqs.iter().map(|seq| seq.0 as i64))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.arrow.clone(), columns, &options).map_err(WriteError::of)
    }
}

/// Box with single-precision sides, as in other collections of GeoParquet: a box need not be exact, only contain its
/// shape.
///
/// In double precision the boxes of points were the largest column of all.
fn sides() -> Fields {
    ["xmin", "ymin", "xmax", "ymax"].map(|side| Field::new(side, DataType::Float32, true)).into_iter().collect()
}

fn ids(batch: &Batch, seqs: &[Seq]) -> ArrayRef {
    if let Some(ids) = batch.ids() {
        return Arc::new(ids.clone());
    }
    let mut made = StringBuilder::with_capacity(batch.rows(), batch.rows() * 13);
    for row in 0..batch.rows() {
        made.append_option(seqs.get(row).map(|seq| seq.to_id()));
    }
    Arc::new(made.finish())
}

/// Returns the WKB of points, all in one buffer.
fn point_wkb(lon: &Float64Array, lat: &Float64Array) -> BinaryArray {
    let mut bytes = Vec::with_capacity(lon.len() * POINT_BYTES);
    let mut offsets = Vec::with_capacity(lon.len() + 1);
    offsets.push(0i32);
    for row in 0..lon.len() {
        if lon.is_valid(row) {
            bytes.extend_from_slice(&POINT_HEAD);
            bytes.extend_from_slice(&lon.value(row).to_le_bytes());
            bytes.extend_from_slice(&lat.value(row).to_le_bytes());
        }
        offsets.push(bytes.len() as i32);
    }
    BinaryArray::new(OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), lon.nulls().cloned())
}

/// Returns west, south, east and north of each row.
pub(crate) fn row_sides(batch: &Batch) -> Option<[&Float64Array; 4]> {
    batch.sides().or_else(|| batch.points().map(|(lon, lat)| [lon, lat, lon, lat]))
}

fn boxes(batch: &Batch) -> ArrayRef {
    let Some(exact) = row_sides(batch) else {
        return new_null_array(&DataType::Struct(sides()), batch.rows());
    };
    let nulls: Option<NullBuffer> = exact[0].nulls().cloned();
    // Rounded outwards: a reader that prunes by the box must not lose the event.
    let outward = [f32_below, f32_below, f32_above, f32_above];
    let columns =
        exact.into_iter().zip(outward).map(|(side, round)| Arc::new(side.unary::<_, Float32Type>(round)) as ArrayRef);
    Arc::new(StructArray::new(sides(), columns.collect(), nulls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_rounded_outwards_and_no_further() {
        for side in [0.0, -0.0, 0.1, -0.1, 180.0, -180.0, 89.999_999_999, 1e-300, -1e-300, 13.404_954] {
            let (low, high) = (f64::from(f32_below(side)), f64::from(f32_above(side)));
            assert!(low <= side && side <= high, "{side}: {low} {high}");
            assert!(f32_below(side) == f32_above(side) || f32_below(side).next_up() == f32_above(side), "{side}");
        }
    }
}
