//! FlatGeobuf, with its spatial index.

use super::placeless::Placeless;
use super::table::Columns;
use crate::columns::Column;
use crate::instant;
use crate::write::WriteError;
use arrow_array::{Array, RecordBatch};
use flatgeobuf::geozero::error::Result as GeozeroResult;
use flatgeobuf::geozero::{ColumnValue, GeomProcessor, GeozeroGeometry, PropertyProcessor};
use flatgeobuf::{ColumnType, FgbCrs, FgbWriter, FgbWriterOptions, GeometryType};
use geo_types::{Geometry, MultiLineString, MultiPoint, MultiPolygon};
use meridian_model::geometry::from_wkb;
use meridian_model::{FieldType, GeometryType as Shape, Schema};
use std::io::Write;

/// Writes events as FlatGeobuf. Features go to a temporary file first, since the index precedes them and orders them
/// along a curve; memory holds a box for each.
pub struct FlatGeobufWriter {
    columns: Columns,
    writer: FgbWriter<'static>,
}

impl FlatGeobufWriter {
    /// Creates a file of one layer.
    pub fn new(name: &str, schema: &Schema) -> Result<FlatGeobufWriter, WriteError> {
        let columns = Columns::of(schema)?;
        let options = FgbWriterOptions {
            detect_type: false,
            promote_to_multi: false,
            crs: FgbCrs { org: Some("EPSG"), code: 4326, name: Some("WGS 84"), ..FgbCrs::default() },
            ..FgbWriterOptions::default()
        };
        let kind = match columns.shape {
            Shape::Point => GeometryType::Point,
            Shape::Line => GeometryType::LineString,
            Shape::Polygon => GeometryType::Polygon,
            Shape::MultiPoint => GeometryType::MultiPoint,
            Shape::MultiPolygon => GeometryType::MultiPolygon,
            // Lines of one part are simple lines in it: see `TypedGeometry::of`.
            Shape::MultiLine | Shape::Any => GeometryType::Unknown,
        };
        let mut writer = FgbWriter::create_with_options(name, kind, options).map_err(WriteError::of)?;
        for (name, kind) in &columns.named {
            let kind = match kind {
                FieldType::Text => ColumnType::String,
                FieldType::Int => ColumnType::Long,
                FieldType::Float => ColumnType::Double,
                FieldType::Bool => ColumnType::Bool,
                FieldType::Time | FieldType::Date => ColumnType::DateTime,
                FieldType::TextList => ColumnType::Json,
            };
            writer.add_column(name, kind, |_, _| {});
        }
        Ok(FlatGeobufWriter { columns, writer })
    }

    /// Adds the events of a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let rows = self.columns.rows(batch)?;
        for row in 0..rows.len {
            let place = TypedGeometry::of(rows.shape(row), self.columns.shape)?;
            let mut failed = None;
            let added = self.writer.add_feature_geom(place, |feature| {
                for (i, (column, (name, kind))) in rows.columns.iter().zip(&self.columns.named).enumerate() {
                    failed = failed.take().or(property(feature, i, name, *kind, column, row).err());
                }
            });
            added.map_err(WriteError::of)?;
            failed.map_or(Ok(()), |error| Err(WriteError::of(error)))?;
        }
        Ok(())
    }

    /// Writes the file.
    pub fn finish(self, out: impl Write) -> Result<(), WriteError> {
        self.writer.write(Placeless::new(out)).map_err(WriteError::of)
    }
}

/// Sets a value; an absent one is left out.
fn property(
    feature: &mut impl PropertyProcessor,
    at: usize,
    name: &str,
    kind: FieldType,
    column: &Column,
    row: usize,
) -> GeozeroResult<()> {
    let mut text = String::new();
    let value = match column {
        Column::Text(texts) => texts.get(row).map(ColumnValue::String),
        Column::Int(a) => a.is_valid(row).then(|| ColumnValue::Long(a.value(row))),
        Column::Float(a) => a.is_valid(row).then(|| ColumnValue::Double(a.value(row))),
        Column::Bool(a) => a.is_valid(row).then(|| ColumnValue::Bool(a.value(row))),
        Column::Time(times) => times.get(row).and_then(Result::ok).map(|micros| {
            let mut out = Vec::new();
            instant::write_as(kind, micros, &mut out);
            text = String::from_utf8_lossy(&out).into_owned();
            ColumnValue::DateTime(&text)
        }),
        list => list.json(row).map(|json| {
            text = json;
            ColumnValue::Json(&text)
        }),
    };
    value.map_or(Ok(()), |value| feature.property(at, name, &value).map(drop))
}

/// A geometry for the writer, in the multi form if the layer is of one type.
struct TypedGeometry {
    shape: Option<Geometry<f64>>,
    kind: Shape,
}

impl TypedGeometry {
    fn of(wkb: Option<&[u8]>, kind: Shape) -> Result<TypedGeometry, WriteError> {
        let shape = wkb.map(from_wkb).transpose().map_err(WriteError::of)?;
        let shape = shape.map(|shape| match (kind, shape) {
            (Shape::MultiPoint, Geometry::Point(one)) => MultiPoint(vec![one]).into(),
            // The library omits the end of an only part, and GDAL does not read a multi-line without it.
            (_, Geometry::MultiLineString(MultiLineString(mut parts))) if parts.len() == 1 => parts.remove(0).into(),
            (Shape::MultiPolygon, Geometry::Polygon(one)) => MultiPolygon(vec![one]).into(),
            (_, shape) => shape,
        });
        Ok(TypedGeometry { shape, kind })
    }
}

impl GeozeroGeometry for TypedGeometry {
    fn process_geom<P: GeomProcessor>(&self, out: &mut P) -> GeozeroResult<()> {
        if let Some(shape) = &self.shape {
            return shape.process_geom(out);
        }
        // The library keeps the last geometry unless another begins. An empty one is removed from the finished file.
        match self.kind {
            Shape::Point | Shape::Any | Shape::MultiLine => out.point_begin(0).and_then(|()| out.point_end(0)),
            Shape::Line => out.linestring_begin(true, 0, 0).and_then(|()| out.linestring_end(true, 0)),
            Shape::Polygon => out.polygon_begin(true, 0, 0).and_then(|()| out.polygon_end(true, 0)),
            Shape::MultiPoint => out.multipoint_begin(0, 0).and_then(|()| out.multipoint_end(0)),
            Shape::MultiPolygon => out.multipolygon_begin(0, 0).and_then(|()| out.multipolygon_end(0)),
        }
    }
}
