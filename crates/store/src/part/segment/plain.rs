//! The rows of a segment without its index, as in a backup.

use super::archive::Archive;
use super::rebuild::{archived_chunk, chunk_of_rows};
use super::rows::RowsFile;
use crate::error::StoreError;
use crate::manifest::{SegmentEntry, archive_name, rows_name};
use crate::part::rows::CHUNK_ROWS;
use crate::seams::Objects;
use meridian_model::{Batch, Layout, Schema};
use std::sync::Arc;

/// The rows of a segment, in the order of the segment.
#[derive(Debug)]
pub(crate) struct PlainRows {
    source: Source,
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    rows: u32,
}

#[derive(Debug)]
enum Source {
    Archive(Box<Archive>),
    Rows(RowsFile),
}

impl PlainRows {
    /// Opens the rows of a segment. `newest` is a schema that includes the fields of the segment's own.
    pub(crate) fn open(objects: &dyn Objects, meta: &SegmentEntry, newest: &Schema) -> Result<PlainRows, StoreError> {
        let (source, schema, rows) = match meta.archive {
            Some(entry) => {
                let archive = Archive::open(objects, &archive_name(meta.file), entry)?;
                let (schema, rows) = (archive.schema().clone(), archive.rows());
                (Source::Archive(Box::new(archive)), schema, rows)
            }
            None => {
                let rows = RowsFile::open(objects, &rows_name(meta.file), None)?;
                let (schema, count) = (rows.schema(newest)?, rows.rows);
                (Source::Rows(rows), schema, count)
            }
        };
        let schema = Arc::new(schema);
        Ok(PlainRows { source, layout: Arc::new(Layout::of(&schema)), schema, rows })
    }

    /// Returns the number of rows, including dead ones.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns each chunk: the number of its first row, its events in the schema they were written in, and their
    /// sequence numbers.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Result<(u32, Batch, Vec<u64>), StoreError>> {
        (0..self.rows.div_ceil(CHUNK_ROWS)).map(move |chunk| {
            let (columns, seqs) = match &self.source {
                Source::Archive(archive) => archived_chunk(archive, chunk, &self.layout.columns)?,
                Source::Rows(rows) => chunk_of_rows(rows, chunk, &self.layout.columns)?,
            };
            let first = chunk * CHUNK_ROWS;
            let rows = (self.rows - first).min(CHUNK_ROWS) as usize;
            Ok((first, Batch::new(self.schema.clone(), self.layout.clone(), rows, columns)?, seqs))
        })
    }
}
