//! Rebuilds a segment's index from the archive or the Arrow rows.

use super::RowSource;
use super::archive::Archive;
use super::fields::seq_field;
use super::rows::RowsFile;
use super::write::SegmentWriter;
use crate::error::StoreError;
use crate::part::rows::{CHUNK_ROWS, KeyRule};
use crate::seams::Objects;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::Field;
use meridian_index::Grid;
use meridian_model::{Batch, Layout, Schema};
use std::sync::Arc;

/// The note for a segment whose damage was found when a block was read, and was repaired.
pub(crate) const REBUILT: &str = "a block of it was damaged; it is rebuilt from its rows";

/// A chunk of rows: its columns and sequence numbers.
pub(super) type Chunk = (Vec<Option<ArrayRef>>, Vec<u64>);

/// Writes the segment file of this number from its archive, in place of a missing or damaged one. Uses memory for a
/// chunk of rows and the state of a writer.
pub(crate) fn rebuild(objects: &dyn Objects, file: u64, archive: &Archive, rule: KeyRule) -> Result<(), StoreError> {
    write_index(objects, file, archive.schema(), rule, archive.rows(), |chunk, columns| {
        archived_chunk(archive, chunk, columns)
    })
}

/// Reads a chunk of an archive, with all of its columns.
pub(super) fn archived_chunk(archive: &Archive, chunk: u32, columns: &[Arc<Field>]) -> Result<Chunk, StoreError> {
    let mut found: Vec<Option<ArrayRef>> = vec![None; columns.len()];
    while let Some(column) = found.iter().position(Option::is_none) {
        let arrays = archive.columns(chunk, column)?;
        if !archive.family(column).eq(column..column + arrays.len()) {
            return Err(StoreError::corrupt(archive.path(), "a column is missing"));
        }
        found[column..column + arrays.len()].iter_mut().zip(arrays).for_each(|(slot, array)| *slot = Some(array));
    }
    Ok((found, archive.seqs(chunk)?))
}

/// Reads a chunk of Arrow rows, with all of their columns.
pub(super) fn chunk_of_rows(rows: &RowsFile, chunk: u32, columns: &[Arc<Field>]) -> Result<Chunk, StoreError> {
    let found = columns.iter().enumerate().map(|(column, field)| rows.column(chunk, column, field).map(Some));
    let seqs = rows.column(chunk, columns.len(), &seq_field())?;
    let seqs = seqs.as_primitive_opt::<UInt64Type>().map_or_else(Vec::new, |seqs| seqs.values().to_vec());
    Ok((found.collect::<Result<_, _>>()?, seqs))
}

/// Does the same from Arrow rows, which were written in this schema or before its last fields were added.
pub(crate) fn rebuild_from_rows(
    objects: &dyn Objects,
    file: u64,
    (rows, schema): (&RowsFile, &Schema),
    rule: KeyRule,
) -> Result<(), StoreError> {
    let then = rows.schema(schema)?;
    write_index(objects, file, &then, rule, rows.rows, |chunk, columns| chunk_of_rows(rows, chunk, columns))
}

fn write_index(
    objects: &dyn Objects,
    file: u64,
    schema: &Schema,
    rule: KeyRule,
    rows: u32,
    read: impl Fn(u32, &[Arc<Field>]) -> Result<Chunk, StoreError>,
) -> Result<(), StoreError> {
    let schema = Arc::new(schema.clone());
    let layout = Arc::new(Layout::of(&schema));
    let grid = Grid::of(&schema);
    let mut writer = SegmentWriter::replace_index(objects, file, &schema, rule)?;
    for chunk in 0..rows.div_ceil(CHUNK_ROWS) {
        let (columns, seqs) = read(chunk, &layout.columns)?;
        let rows = (rows - chunk * CHUNK_ROWS).min(CHUNK_ROWS) as usize;
        let batch = Batch::new(schema.clone(), layout.clone(), rows, columns)?;
        writer.push(&batch, &grid.keys(&batch), &seqs)?;
    }
    put_in_place(objects, writer)
}

/// Does the same from rows read through the segment itself, with keys of another seed.
pub(crate) fn rebuild_from(
    objects: &dyn Objects,
    file: u64,
    source: &dyn RowSource,
    rule: KeyRule,
) -> Result<(), StoreError> {
    let grid = Grid::of(source.schema());
    let mut writer = SegmentWriter::replace_index(objects, file, source.schema(), rule)?;
    for from in (0..source.rows()).step_by(CHUNK_ROWS as usize) {
        let (batch, seqs) = source.chunk(from..source.rows().min(from + CHUNK_ROWS))?;
        writer.push(&batch, &grid.keys(&batch), &seqs)?;
    }
    put_in_place(objects, writer)
}

fn put_in_place(objects: &dyn Objects, writer: SegmentWriter) -> Result<(), StoreError> {
    writer.finish()?;
    objects.sync().map_err(StoreError::io("sync", &objects.path("")))
}
