//! GeoParquet as a store keeps it: recovers the physical columns of events from the columns of the file.

use crate::write::{SCHEMA_NOTE, seq_column};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array};
use meridian_model::layout::GeometryColumns;
use meridian_model::{Layout, Schema, Seq, geometry};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::ChunkReader;
use std::ops::Range;
use std::sync::Arc;

/// The directory of a file that [`crate::GeoParquetWriter::for_archive`] wrote. The bytes are handed to each call, so
/// that the caller decides how they are read, checked and kept.
#[derive(Debug)]
pub struct RestFile {
    metadata: ArrowReaderMetadata,
    /// The schema of the events.
    pub schema: Schema,
    layout: Layout,
    id: usize,
    geometry: Option<usize>,
    /// Column in the file of each field.
    fields: Vec<usize>,
    seq: Option<usize>,
    /// First row of each row group, and the number of rows.
    starts: Vec<u32>,
}

fn note<'a>(metadata: &'a ArrowReaderMetadata, key: &str) -> Option<&'a str> {
    let notes = metadata.metadata().file_metadata().key_value_metadata()?;
    notes.iter().find(|note| note.key == key)?.value.as_deref()
}

fn wrong(detail: impl Into<String>) -> ParquetError {
    ParquetError::General(detail.into())
}

impl RestFile {
    /// Reads the directory of a file.
    pub fn load(file: &impl ChunkReader) -> Result<RestFile, ParquetError> {
        // The offsets of pages are needed to read few of them; their min and max serve other programs.
        let options = ArrowReaderOptions::new()
            .with_offset_index_policy(PageIndexPolicy::Required)
            .with_column_index_policy(PageIndexPolicy::Skip);
        let metadata = ArrowReaderMetadata::load(file, options)?;
        let schema = note(&metadata, SCHEMA_NOTE).ok_or_else(|| wrong("it does not say its schema"))?;
        let schema: Schema =
            serde_json::from_str(schema).map_err(|e| wrong(format!("its schema does not read: {e}")))?;
        let find = |name: &str| {
            metadata.schema().index_of(name).map_err(|_| wrong(format!("there is no column {name:?} in it")))
        };
        let mut starts = vec![0u32];
        for group in metadata.metadata().row_groups() {
            let last = starts.last().copied().unwrap_or(0);
            // Rows are 32-bit numbers everywhere in a segment.
            let next = u32::try_from(group.num_rows()).ok().and_then(|rows| last.checked_add(rows));
            starts.push(next.ok_or_else(|| wrong("it holds more rows than can be"))?);
        }
        let layout = Layout::of(&schema);
        Ok(RestFile {
            id: find(&schema.id_column())?,
            geometry: layout.geometry.map(|_| find(&schema.geometry_name)).transpose()?,
            fields: schema.fields.iter().map(|field| find(&field.name)).collect::<Result<_, _>>()?,
            seq: layout.id.map(|_| find(&seq_column(&schema))).transpose()?,
            layout,
            starts,
            schema,
            metadata,
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the bytes that the directory takes in memory.
    pub fn bytes(&self) -> usize {
        self.metadata.metadata().memory_size()
    }

    /// Returns the offset of the first byte after the pages: that of the page indexes, which precede the footer.
    pub fn directory(&self) -> Option<u64> {
        let columns = self.metadata.metadata().row_groups().iter().flat_map(|group| group.columns());
        let indexes = columns.flat_map(|column| [column.column_index_offset(), column.offset_index_offset()]);
        indexes.flatten().min().and_then(|offset| u64::try_from(offset).ok())
    }

    /// Returns a text that [`crate::GeoParquetWriter::note`] added.
    pub fn note(&self, key: &str) -> Option<&str> {
        note(&self.metadata, key)
    }

    /// Returns the physical columns that are read together with this one, including itself: those of one place or
    /// shape.
    pub fn family(&self, column: usize) -> Range<usize> {
        match self.layout.geometry {
            Some(GeometryColumns::Points { lon, lat }) if (lon..=lat).contains(&column) => lon..lat + 1,
            Some(GeometryColumns::Shapes { wkb }) if (wkb..wkb + 5).contains(&column) => wkb..wkb + 5,
            _ => column..column + 1,
        }
    }

    /// Returns values of the columns of [`RestFile::family`] in some rows, which lie in one row group.
    pub fn read(
        &self,
        file: impl ChunkReader + 'static,
        column: usize,
        rows: Range<u32>,
    ) -> Result<Vec<ArrayRef>, ParquetError> {
        if self.layout.id == Some(column) {
            return Ok(vec![self.raw(file, self.id, rows)?]);
        }
        if column < self.layout.first_field {
            let root = self.geometry.ok_or_else(|| wrong("it holds no geometry"))?;
            let array = self.raw(file, root, rows)?;
            let shapes = array.as_binary_opt::<i32>().ok_or_else(|| wrong("its geometry is not binary"))?;
            return match self.layout.geometry {
                // Bypasses the general decoder: the writer gives every point the same 21 bytes.
                Some(GeometryColumns::Points { .. }) => points(shapes),
                _ => sides(shapes),
            };
        }
        let root = self.fields.get(column - self.layout.first_field).ok_or_else(|| wrong("a column too many"))?;
        Ok(vec![self.raw(file, *root, rows)?])
    }

    /// Returns sequence numbers of some rows, which lie in one row group.
    pub fn seqs(&self, file: impl ChunkReader + 'static, rows: Range<u32>) -> Result<Vec<u64>, ParquetError> {
        match self.seq {
            Some(root) => {
                let array = self.raw(file, root, rows)?;
                let seqs =
                    array.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("its numbers are not integers"))?;
                Ok(seqs.values().iter().map(|seq| *seq as u64).collect())
            }
            None => {
                let array = self.raw(file, self.id, rows)?;
                let ids = array.as_string_opt::<i32>().ok_or_else(|| wrong("its ids are not text"))?;
                let seq = |id: Option<&str>| {
                    let seq = Seq::from_id(id.unwrap_or_default()).map_err(|e| wrong(e.to_string()))?;
                    Ok(seq.0)
                };
                ids.iter().map(seq).collect()
            }
        }
    }

    /// Returns one column of the file in some rows of one row group.
    fn raw(&self, file: impl ChunkReader + 'static, root: usize, rows: Range<u32>) -> Result<ArrayRef, ParquetError> {
        let group = self.starts.partition_point(|start| *start <= rows.start).saturating_sub(1);
        let (Some(first), Some(end)) = (self.starts.get(group), self.starts.get(group + 1)) else {
            return Err(wrong("a row beyond its end"));
        };
        if rows.is_empty() || rows.end > *end {
            return Err(wrong("rows of several row groups"));
        }
        let selection =
            RowSelection::from(vec![RowSelector::skip((rows.start - first) as usize), RowSelector::select(rows.len())]);
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), [root]);
        let mut batches = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_row_selection(selection)
            .with_batch_size(rows.len())
            .build()?;
        match batches.next().transpose()? {
            Some(batch) if batch.num_rows() == rows.len() && batch.num_columns() == 1 => Ok(batch.column(0).clone()),
            _ => Err(wrong(format!("it does not give the rows {} to {}", rows.start, rows.end))),
        }
    }
}

/// Returns longitudes and latitudes from points as the writer encodes them.
fn points(shapes: &BinaryArray) -> Result<Vec<ArrayRef>, ParquetError> {
    let mut lon = Vec::with_capacity(shapes.len());
    let mut lat = Vec::with_capacity(shapes.len());
    for row in 0..shapes.len() {
        if shapes.is_null(row) {
            // As in the columns that were written: equal bytes make the rebuilt segment equal to the lost one.
            lon.push(0.0);
            lat.push(0.0);
            continue;
        }
        let number = |at: usize| -> Option<f64> {
            let bytes = shapes.value(row).get(at..at + 8)?;
            Some(f64::from_le_bytes(bytes.try_into().ok()?))
        };
        let (Some(x), Some(y)) = (number(5), number(13)) else { return Err(wrong("a point is cut short")) };
        lon.push(x);
        lat.push(y);
    }
    let column = |values: Vec<f64>| Arc::new(Float64Array::new(values.into(), shapes.nulls().cloned())) as ArrayRef;
    Ok(vec![column(lon), column(lat)])
}

/// Returns shapes with their boxes. The boxes of the file are rounded, so they are recomputed.
fn sides(shapes: &BinaryArray) -> Result<Vec<ArrayRef>, ParquetError> {
    let mut sides: [Vec<Option<f64>>; 4] = std::array::from_fn(|_| Vec::with_capacity(shapes.len()));
    for bytes in shapes.iter() {
        let found = match bytes {
            None => None,
            Some(bytes) => {
                let shape = geometry::from_wkb(bytes).map_err(|e| wrong(e.to_string()))?;
                Some(geometry::sides(&shape).ok_or_else(|| wrong("a shape has no positions"))?)
            }
        };
        for (i, side) in sides.iter_mut().enumerate() {
            side.push(found.map(|found| found[i]));
        }
    }
    let boxes = sides.into_iter().map(|side| Arc::new(Float64Array::from(side)) as ArrayRef);
    Ok(std::iter::once(Arc::new(shapes.clone()) as ArrayRef).chain(boxes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GeoParquetWriter;
    use meridian_model::builder::Value;
    use meridian_model::{BatchBuilder, Field, FieldType, GeometryType, IdRole};

    #[test]
    fn columns_and_numbers_come_back_by_chunk() {
        for (kind, id) in [(GeometryType::Point, IdRole::Given), (GeometryType::Any, IdRole::Made)] {
            let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
            let mut fields = vec![field("x", FieldType::Float), field("tags", FieldType::TextList)];
            // Names that the file's own columns would have.
            let names = ["@seq", "@@seq", "id", "@id", "bbox", "geometry_bbox", "@bbox", "@lon"];
            fields.extend(names.map(|name| field(name, FieldType::Text)));
            let schema = Arc::new(Schema { fields, geometry: Some(kind), id, ..Schema::default() });
            let mut builder = BatchBuilder::new(schema.clone());
            for n in 0..100u32 {
                builder.set_id(format!("id-{n}")).unwrap();
                if n % 7 != 0 {
                    builder.set_point(f64::from(n) / 3.0, f64::from(n) / -5.0).unwrap();
                }
                builder.set(0, Value::Float(f64::from(n) * 0.1)).unwrap();
                builder.set(1, Value::TextList(vec!["a".to_owned(); n as usize % 3])).unwrap();
                (2..10).for_each(|at| builder.set(at, Value::Text(format!("{at} of {n}"))).unwrap());
                builder.end_event().unwrap();
            }
            let batch = builder.finish().unwrap();
            let seqs: Vec<Seq> = (0..100).map(|n| Seq(((n * 77) << 24) | n)).collect();
            let mut writer = GeoParquetWriter::for_archive(Vec::new(), &schema, 40, 20).unwrap();
            for from in (0..100).step_by(20) {
                writer.write(&batch.slice(from, 20), &seqs[from..from + 20]).unwrap();
            }
            writer.note("of", "mine".to_owned());
            let file = bytes::Bytes::from(writer.finish().unwrap());
            let rest = RestFile::load(&file).unwrap();
            assert_eq!((rest.rows(), rest.note("of"), &rest.schema), (100, Some("mine"), schema.as_ref()));
            for from in (0..100u32).step_by(20) {
                let numbers: Vec<u64> = seqs[from as usize..from as usize + 20].iter().map(|seq| seq.0).collect();
                assert_eq!(rest.seqs(file.clone(), from..from + 20).unwrap(), numbers);
                let mut column = 0;
                while column < batch.columns().len() {
                    for array in rest.read(file.clone(), column, from..from + 20).unwrap() {
                        let expected = batch.column(column).unwrap().slice(from as usize, 20);
                        assert_eq!(&array, &expected, "column {column}");
                        column += 1;
                    }
                }
            }
            assert!(rest.read(file.clone(), 0, 30..50).is_err(), "rows of two groups");
        }
    }
}
