//! Events as GeoParquet 1.1.

use super::columns::{ColumnEncoder, Extras, row_sides};
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

/// Key under which the schema is kept, as JSON: types and roles that Parquet cannot express.
pub(crate) const SCHEMA_NOTE: &str = "meridian.schema";

/// Max rows of a row group.
const GROUP_ROWS: usize = 131_072;
/// Max bytes of a row group in memory before it is written. A server may write many files at a time.
const GROUP_BYTES: usize = 16 << 20;
/// The same for an archive, of which one is written at a time.
const ARCHIVE_GROUP_BYTES: usize = 64 << 20;
/// Max rows of a page: the min that a reader with the page index must decode.
const PAGE_ROWS: usize = 8_192;

/// Max bytes of a dictionary: beyond it values are stored plain. A reader of one page reads the dictionary too.
const DICTIONARY_BYTES: usize = 64 << 10;

/// Limits at which row groups and pages of a file end.
#[derive(Debug, Clone, Copy)]
struct GroupLimits {
    group_rows: usize,
    group_bytes: usize,
    page_rows: usize,
}

/// Writes events as a GeoParquet 1.1 file: WKB with a `bbox` column that covers it, compressed with
/// zstd, rows in the order given. Memory is bounded by one row group.
pub struct GeoParquetWriter<W: Write + Send> {
    outgoing: ColumnEncoder,
    schema: Arc<Schema>,
    writer: ArrowWriter<W>,
    limits: GroupLimits,
    /// West, south, east and north of all events so far.
    bounds: Option<[f64; 4]>,
}

impl<W: Write + Send> GeoParquetWriter<W> {
    /// Creates a file of the named properties, or of all of them.
    pub fn new(
        out: W,
        schema: &Arc<Schema>,
        properties: Option<&[String]>,
    ) -> Result<GeoParquetWriter<W>, GeoParquetError> {
        let limits = GroupLimits { group_rows: GROUP_ROWS, group_bytes: GROUP_BYTES, page_rows: PAGE_ROWS };
        GeoParquetWriter::cut_at(out, schema, properties, false, limits)
    }

    /// Creates a file from which [`crate::RestFile`] restores the events with their sequence numbers. Pages end after
    /// `page_rows` rows and row groups after `group_rows`, if every batch but the last has `page_rows` rows.
    pub fn for_archive(
        out: W,
        schema: &Arc<Schema>,
        group_rows: usize,
        page_rows: usize,
    ) -> Result<GeoParquetWriter<W>, GeoParquetError> {
        let limits = GroupLimits { group_rows, group_bytes: ARCHIVE_GROUP_BYTES, page_rows };
        let mut writer = GeoParquetWriter::cut_at(out, schema, None, true, limits)?;
        writer.note(SCHEMA_NOTE, serde_json::to_string(schema.as_ref()).map_err(WriteError::of)?);
        Ok(writer)
    }

    fn cut_at(
        out: W,
        schema: &Arc<Schema>,
        properties: Option<&[String]>,
        seqs: bool,
        limits: GroupLimits,
    ) -> Result<GeoParquetWriter<W>, GeoParquetError> {
        let outgoing = ColumnEncoder::new(schema, properties, Extras { boxes: true, seqs })?;
        let writer = ArrowWriter::try_new(out, outgoing.arrow().clone(), Some(settings(schema, &outgoing, limits)))
            .map_err(WriteError::of)?;
        Ok(GeoParquetWriter { outgoing, schema: schema.clone(), writer, limits, bounds: None })
    }

    /// Appends the events of a batch; `seqs[row]` gives generated ids.
    pub fn write(&mut self, batch: &Batch, seqs: &[Seq]) -> Result<(), WriteError> {
        if let Some(sides) = row_sides(batch) {
            for row in (0..batch.rows()).filter(|&row| sides[0].is_valid(row)) {
                let [west, south, east, north] = sides.map(|side| side.value(row));
                let [w, s, e, n] = self.bounds.unwrap_or([west, south, east, north]);
                self.bounds = Some([w.min(west), s.min(south), e.max(east), n.max(north)]);
            }
        }
        let record = self.outgoing.record_batch(batch, seqs)?;
        self.writer.write(&record).map_err(WriteError::of)?;
        // Groups end with a batch, so that no page begins in the middle of one.
        let (rows, bytes) = (self.writer.in_progress_rows(), self.writer.in_progress_size());
        if rows >= self.limits.group_rows || bytes >= self.limits.group_bytes { self.end_group() } else { Ok(()) }
    }

    /// Ends the current row group: all events so far are in the output.
    pub fn end_group(&mut self) -> Result<(), WriteError> {
        self.writer.flush().map_err(WriteError::of)?;
        self.writer.sync().map_err(WriteError::of)
    }

    /// Returns the output.
    pub fn output(&self) -> &W {
        self.writer.inner()
    }

    /// Adds a custom text to the directory of the file.
    pub fn note(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    /// Writes the rest and the directory, and returns the output.
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

/// Why a GeoParquet file could not be started.
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

fn settings(schema: &Schema, outgoing: &ColumnEncoder, limits: GroupLimits) -> WriterProperties {
    let mut settings = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default()))
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(limits.page_rows)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
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
    for field in &schema.fields {
        let path = ColumnPath::new(vec![field.name.clone()]);
        // For values that are too diverse for a dictionary, as times always are.
        let encoding = match field.kind {
            FieldType::Time | FieldType::Date | FieldType::Int => Encoding::DELTA_BINARY_PACKED,
            FieldType::Float => Encoding::BYTE_STREAM_SPLIT,
            FieldType::Text | FieldType::TextList | FieldType::Bool => continue,
        };
        settings = settings
            .set_column_dictionary_enabled(path.clone(), !field.kind.is_time())
            .set_column_encoding(path, encoding);
    }
    settings = settings.set_column_dictionary_enabled(ColumnPath::new(vec![schema.id_column()]), false);
    if let Some(seqs) = &outgoing.seqs {
        let path = ColumnPath::new(vec![seqs.clone()]);
        // Position and ordinal change independently, so their bytes compress better in separate columns.
        settings = settings
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
    }
    settings.build()
}

/// A GeoParquet file that is written as row groups are completed.
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
        let writer = self.writer.as_mut().ok_or_else(|| WriteError::of("the file is finished"))?;
        writer.write(batch, seqs)?;
        // The library counts the bytes written itself, so the buffer can be cleared.
        out.append(writer.writer.inner_mut());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let writer = self.writer.take().ok_or_else(|| WriteError::of("the file is finished"))?;
        out.append(&mut writer.finish()?);
        Ok(())
    }

    fn held(&self) -> usize {
        self.writer.as_ref().map_or(0, |writer| writer.writer.memory_size())
    }
}
