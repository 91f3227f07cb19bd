//! Making what is served beside the rows anew, from the rows at rest or as Arrow.

use super::rest::RestFile;
use super::write::SegmentWriter;
use crate::error::StoreError;
use crate::manifest::segment_name;
use crate::part::{CHUNK_ROWS, KeyRule, PartView};
use crate::seams::Disk;
use arrow_array::ArrayRef;
use meridian_index::Grid;
use meridian_model::{Batch, Layout, Projection};
use std::path::Path;
use std::sync::Arc;

/// Writes the segment file of this number from its rows at rest, in the place of one that is missing or damaged.
/// Memory: a chunk of rows, and what a writer keeps.
pub(crate) fn rebuild(
    disk: &dyn Disk,
    dir: &Path,
    file: u64,
    rest: &RestFile,
    rule: KeyRule,
) -> Result<(), StoreError> {
    let path = dir.join(segment_name(file));
    let beside = dir.join(format!("{}.new", segment_name(file)));
    let schema = Arc::new(rest.schema().clone());
    let layout = Arc::new(Layout::of(&schema));
    let grid = Grid::of(&schema);
    let mut writer = SegmentWriter::create_index(disk, &beside, &schema, rule)?;
    for chunk in 0..rest.rows().div_ceil(CHUNK_ROWS) {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; layout.columns.len()];
        while let Some(column) = columns.iter().position(Option::is_none) {
            let arrays = rest.columns(chunk, column)?;
            if !rest.family(column).eq(column..column + arrays.len()) {
                return Err(StoreError::corrupt(rest.path(), "a column is missing"));
            }
            columns[column..column + arrays.len()].iter_mut().zip(arrays).for_each(|(slot, array)| *slot = Some(array));
        }
        let rows = (rest.rows() - chunk * CHUNK_ROWS).min(CHUNK_ROWS) as usize;
        let batch = Batch::new(schema.clone(), layout.clone(), rows, columns)?;
        writer.push(&batch, &grid.keys(&batch), &rest.seqs(chunk)?)?;
    }
    put_in_place(disk, dir, writer, (&beside, &path))
}

/// The same from rows that are read through the segment itself, with the keys of another seed.
pub(crate) fn rebuild_from(disk: &dyn Disk, dir: &Path, file: u64, view: &PartView) -> Result<(), StoreError> {
    let path = dir.join(segment_name(file));
    let beside = dir.join(format!("{}.new", segment_name(file)));
    let grid = Grid::of(view.schema());
    let mut writer = SegmentWriter::create_index(disk, &beside, view.schema(), view.context.rule)?;
    let all = Projection::all(view.layout());
    for from in (0..view.rows()).step_by(CHUNK_ROWS as usize) {
        let rows = from..view.rows().min(from + CHUNK_ROWS);
        let batch = view.read_for_merge(rows.clone(), &all)?;
        writer.push(&batch, &grid.keys(&batch), &view.part.seqs(rows)?)?;
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
