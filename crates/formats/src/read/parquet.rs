//! GeoParquet, and Parquet with columns found by name.

use super::columnar::{Batches, ColumnScope, damaged};
use crate::error::Fault;
use crate::guard::guarded;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use meridian_model::Invalid;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use std::sync::Arc;

/// Rows decoded at a time.
const ROWS: usize = 4096;

/// Batches of a Parquet file.
pub(crate) struct Parquet<C: ChunkReader + 'static> {
    file: Option<C>,
    metadata: Option<ArrowReaderMetadata>,
    reader: Option<ParquetRecordBatchReader>,
}

impl<C: ChunkReader + 'static> Parquet<C> {
    pub(crate) fn new(file: C) -> Parquet<C> {
        Parquet { file: Some(file), metadata: None, reader: None }
    }

    fn take_file(&mut self) -> Result<C, Fault> {
        self.file.take().ok_or_else(|| Fault::stop(Invalid::new("the Parquet file was opened twice")))
    }
}

/// Text and bytes as views: they share a page's dictionary, so that few long values in many rows stay few.
fn with_views(schema: &ArrowSchema) -> SchemaRef {
    fn view(field: &Arc<Field>) -> Arc<Field> {
        let kind = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::List(item) => DataType::List(view(item)),
            other => other.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(kind))
    }
    let fields: Vec<_> = schema.fields().iter().map(view).collect();
    Arc::new(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Refuses the only codec of the format that is not read.
fn check_codec(metadata: &ParquetMetaData) -> Result<(), Fault> {
    let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    match columns.any(|column| column.compression() == Compression::LZO) {
        true => Err(Fault::stop(Invalid::new("Parquet compressed with LZO is not supported: write it with zstd"))),
        false => Ok(()),
    }
}

impl<C: ChunkReader + 'static> Batches for Parquet<C> {
    fn open(&mut self) -> Result<(SchemaRef, Option<String>), Fault> {
        let file = self.take_file()?;
        let metadata = guarded("Parquet", || {
            // The Arrow schema that some writers embed adds nothing that fields need, and may be wrong.
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            let plain = ArrowReaderMetadata::load(&file, options.clone()).map_err(|e| damaged("Parquet", &e))?;
            let options = options.with_schema(with_views(plain.schema()));
            ArrowReaderMetadata::try_new(plain.metadata().clone(), options).map_err(|e| damaged("Parquet", &e))
        })?;
        check_codec(metadata.metadata())?;
        let geo = metadata
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .and_then(|pairs| pairs.iter().find(|pair| pair.key == "geo"))
            .and_then(|pair| pair.value.clone());
        let schema = metadata.schema().clone();
        self.file = Some(file);
        self.metadata = Some(metadata);
        Ok((schema, geo))
    }

    fn want(&mut self, columns: &[usize]) -> Result<ColumnScope, Fault> {
        let file = self.take_file()?;
        let metadata = self.metadata.take().ok_or_else(|| Fault::stop(Invalid::new("the file was not opened")))?;
        self.reader = Some(guarded("Parquet", || {
            let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_projection(mask)
                .with_batch_size(ROWS)
                .build()
                .map_err(|e| damaged("Parquet", &e))
        })?);
        Ok(ColumnScope::Projected)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, Fault> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        guarded("Parquet", || reader.next().transpose().map_err(|e| damaged("Parquet", &e)))
    }
}
