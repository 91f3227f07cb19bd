//! Events as GeoParquet 1.1.

use super::columns::{Outgoing, row_sides};
use super::{EventWriter, WriteError};
use arrow_array::Array;
use meridian_model::{Batch, FieldType, GeometryType, Invalid, Schema, Seq};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use serde_json::json;
use std::io::Write;
use std::sync::Arc;

/// Most rows of a row group.
const GROUP_ROWS: usize = 131_072;
/// Most bytes of a row group in memory before it is written.
const GROUP_BYTES: usize = 64 << 20;
/// Most rows of a page: what a reader that prunes by the page index must decode at least.
const PAGE_ROWS: usize = 8_192;

/// Writes events as a GeoParquet 1.1 file: WKB with a `bbox` column that covers it, compressed with
/// zstd, rows in the order given. Memory is bounded by one row group.
pub struct GeoParquetWriter<W: Write + Send> {
    outgoing: Outgoing,
    schema: Arc<Schema>,
    writer: ArrowWriter<W>,
    /// West, south, east and north of all events so far.
    bounds: Option<[f64; 4]>,
}

impl<W: Write + Send> GeoParquetWriter<W> {
    /// A file of the named properties, or of all of them.
    pub fn new(
        out: W,
        schema: &Arc<Schema>,
        properties: Option<&[String]>,
    ) -> Result<GeoParquetWriter<W>, GeoParquetError> {
        let outgoing = Outgoing::new(schema, properties, true)?;
        let writer = ArrowWriter::try_new(out, outgoing.arrow().clone(), Some(settings(schema, &outgoing)))
            .map_err(WriteError::of)?;
        Ok(GeoParquetWriter { outgoing, schema: schema.clone(), writer, bounds: None })
    }

    /// Appends the events of a batch; `seqs[row]` gives made ids.
    pub fn write(&mut self, batch: &Batch, seqs: &[Seq]) -> Result<(), WriteError> {
        if let Some(sides) = row_sides(batch) {
            for row in (0..batch.rows()).filter(|&row| sides[0].is_valid(row)) {
                let [west, south, east, north] = sides.map(|side| side.value(row));
                let [w, s, e, n] = self.bounds.unwrap_or([west, south, east, north]);
                self.bounds = Some([w.min(west), s.min(south), e.max(east), n.max(north)]);
            }
        }
        let record = self.outgoing.record_batch(batch, seqs)?;
        self.writer.write(&record).map_err(WriteError::of)
    }

    /// Writes what is left and the directory, and gives the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.describe();
        self.writer.into_inner().map_err(WriteError::of)
    }

    /// Adds the `geo` metadata.
    fn describe(&mut self) {
        let (Some(kind), Some(covering)) = (self.schema.geometry, &self.outgoing.covering) else { return };
        let side = |name: &str| json!([covering, name]);
        let mut column = json!({
            "encoding": "WKB",
            "geometry_types": geometry_types(kind),
            "covering": { "bbox": { "xmin": side("xmin"), "ymin": side("ymin"), "xmax": side("xmax"), "ymax": side("ymax") } },
        });
        if let Some(bounds) = self.bounds {
            column["bbox"] = json!(bounds);
        }
        let name = &self.schema.geometry_name;
        let geo = json!({ "version": "1.1.0", "primary_column": name, "columns": { name: column } });
        self.writer.append_key_value_metadata(KeyValue::new("geo".to_owned(), geo.to_string()));
    }
}

/// Why a GeoParquet file was not begun.
#[derive(Debug, thiserror::Error)]
pub enum GeoParquetError {
    /// A property that the schema does not have.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The output failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn geometry_types(kind: GeometryType) -> Vec<&'static str> {
    match kind {
        GeometryType::Any => vec![],
        GeometryType::MultiPoint => vec!["Point", "MultiPoint"],
        GeometryType::MultiLine => vec!["LineString", "MultiLineString"],
        GeometryType::MultiPolygon => vec!["Polygon", "MultiPolygon"],
        single => vec![single.word()],
    }
}

fn settings(schema: &Schema, outgoing: &Outgoing) -> WriterProperties {
    let mut settings = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_created_by(format!("Meridian {}", env!("CARGO_PKG_VERSION")));
    if let Some(covering) = &outgoing.covering {
        // Measured on a million events: 11 % smaller and a quarter faster to read than plain pages.
        for side in ["xmin", "ymin", "xmax", "ymax"] {
            let path = ColumnPath::new(vec![covering.clone(), side.to_owned()]);
            settings = settings
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
        }
        let shapes = ColumnPath::new(vec![schema.geometry_name.clone()]);
        settings = settings
            .set_column_dictionary_enabled(shapes.clone(), false)
            .set_column_statistics_enabled(shapes, EnabledStatistics::None);
    }
    for field in schema.fields.iter().filter(|f| f.kind == FieldType::Time) {
        let path = ColumnPath::new(vec![field.name.clone()]);
        settings = settings
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    settings.build()
}

/// A GeoParquet file whose bytes leave as row groups are completed.
pub(crate) struct ParquetEvents {
    writer: Option<GeoParquetWriter<Vec<u8>>>,
}

impl ParquetEvents {
    pub(crate) fn new(schema: &Arc<Schema>, properties: Option<&[String]>) -> Result<ParquetEvents, Invalid> {
        match GeoParquetWriter::new(Vec::new(), schema, properties) {
            Ok(writer) => Ok(ParquetEvents { writer: Some(writer) }),
            Err(GeoParquetError::Invalid(mistake)) => Err(mistake),
            Err(GeoParquetError::Write(error)) => Err(Invalid::new(error.to_string())),
        }
    }
}

impl EventWriter for ParquetEvents {
    fn start(&mut self, _out: &mut Vec<u8>) -> Result<(), WriteError> {
        Ok(())
    }

    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError> {
        let writer = self.writer.as_mut().ok_or_else(|| WriteError("the file is finished".to_owned()))?;
        writer.write(batch, seqs)?;
        // The library counts what it has written by itself, so what has left the buffer may go.
        out.append(writer.writer.inner_mut());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let writer = self.writer.take().ok_or_else(|| WriteError("the file is finished".to_owned()))?;
        out.append(&mut writer.finish()?);
        Ok(())
    }
}
