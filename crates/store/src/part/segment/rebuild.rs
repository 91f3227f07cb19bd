//! Making what is served beside the rows anew, from the rows at rest or as Arrow.

use super::RowSource;
use super::read::seq_field;
use super::rest::RestFile;
use super::rows::RowsFile;
use super::write::SegmentWriter;
use crate::catalog::manifest::segment_name;
use crate::error::StoreError;
use crate::part::rows::{CHUNK_ROWS, KeyRule};
use crate::seams::Disk;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::Field;
use meridian_index::Grid;
use meridian_model::{Batch, Layout, Schema};
use std::path::Path;
use std::sync::Arc;

/// A chunk of rows: their columns, and their sequence numbers.
type Chunk = (Vec<Option<ArrayRef>>, Vec<u64>);

/// Writes the segment file of this number from its rows at rest, in the place of one that is missing or damaged.
/// Memory: a chunk of rows, and what a writer keeps.
pub(crate) fn rebuild(
    disk: &dyn Disk,
    dir: &Path,
    file: u64,
    rest: &RestFile,
    rule: KeyRule,
) -> Result<(), StoreError> {
    write_beside(disk, (dir, file), rest.schema(), rule, rest.rows(), |chunk, columns| {
        let mut found: Vec<Option<ArrayRef>> = vec![None; columns.len()];
        while let Some(column) = found.iter().position(Option::is_none) {
            let arrays = rest.columns(chunk, column)?;
            if !rest.family(column).eq(column..column + arrays.len()) {
                return Err(StoreError::corrupt(rest.path(), "a column is missing"));
            }
            found[column..column + arrays.len()].iter_mut().zip(arrays).for_each(|(slot, array)| *slot = Some(array));
        }
        Ok((found, rest.seqs(chunk)?))
    })
}

/// The same from its rows as Arrow, which were written in this schema or before its last fields were added.
pub(crate) fn rebuild_from_rows(
    disk: &dyn Disk,
    dir: &Path,
    file: u64,
    (rows, schema): (&RowsFile, &Schema),
    rule: KeyRule,
) -> Result<(), StoreError> {
    let then = rows.schema(schema)?;
    write_beside(disk, (dir, file), &then, rule, rows.rows, |chunk, columns| {
        let found = columns.iter().enumerate().map(|(column, field)| rows.column(chunk, column, field).map(Some));
        let seqs = rows.column(chunk, columns.len(), &seq_field())?;
        let seqs = seqs.as_primitive_opt::<UInt64Type>().map_or_else(Vec::new, |seqs| seqs.values().to_vec());
        Ok((found.collect::<Result<_, _>>()?, seqs))
    })
}

fn write_beside(
    disk: &dyn Disk,
    (dir, file): (&Path, u64),
    schema: &Schema,
    rule: KeyRule,
    rows: u32,
    read: impl Fn(u32, &[Arc<Field>]) -> Result<Chunk, StoreError>,
) -> Result<(), StoreError> {
    let path = dir.join(segment_name(file));
    let beside = dir.join(format!("{}.new", segment_name(file)));
    let schema = Arc::new(schema.clone());
    let layout = Arc::new(Layout::of(&schema));
    let grid = Grid::of(&schema);
    let mut writer = SegmentWriter::create_index(disk, &beside, &schema, rule)?;
    for chunk in 0..rows.div_ceil(CHUNK_ROWS) {
        let (columns, seqs) = read(chunk, &layout.columns)?;
        let rows = (rows - chunk * CHUNK_ROWS).min(CHUNK_ROWS) as usize;
        let batch = Batch::new(schema.clone(), layout.clone(), rows, columns)?;
        writer.push(&batch, &grid.keys(&batch), &seqs)?;
    }
    put_in_place(disk, dir, writer, (&beside, &path))
}

/// The same from rows that are read through the segment itself, with the keys of another seed.
pub(crate) fn rebuild_from(
    disk: &dyn Disk,
    dir: &Path,
    file: u64,
    source: &dyn RowSource,
    rule: KeyRule,
) -> Result<(), StoreError> {
    let path = dir.join(segment_name(file));
    let beside = dir.join(format!("{}.new", segment_name(file)));
    let grid = Grid::of(source.schema());
    let mut writer = SegmentWriter::create_index(disk, &beside, source.schema(), rule)?;
    for from in (0..source.rows()).step_by(CHUNK_ROWS as usize) {
        let (batch, seqs) = source.chunk(from..source.rows().min(from + CHUNK_ROWS))?;
        writer.push(&batch, &grid.keys(&batch), &seqs)?;
    }
    put_in_place(disk, dir, writer, (&beside, &path))
}

fn put_in_place(
    disk: &dyn Disk,
    dir: &Path,
    writer: SegmentWriter,
    (beside, path): (&Path, &Path),
) -> Result<(), StoreError> {
    writer.finish()?;
    disk.rename(beside, path).map_err(StoreError::io("rename", beside))?;
    disk.sync_dir(dir).map_err(StoreError::io("sync", dir))
}
