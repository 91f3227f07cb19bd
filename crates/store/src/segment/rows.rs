//! The rows of a segment as Arrow: what is served fastest, and the truth until the segment is at rest as GeoParquet.

use super::blocks::{BLOCK_REF_BYTES, BlockFile, BlockRef, BlockWriter};
use super::footer::list;
use crate::codec::{Reader, put_u16, put_u32};
use crate::error::StoreError;
use crate::ipc;
use crate::part::CHUNK_ROWS;
use crate::seams::Disk;
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// First bytes of a file of rows, and its last.
const MAGIC: &[u8; 8] = b"MRDNROWS";

/// Writes the rows of a segment, a chunk at a time.
pub(crate) struct RowsWriter {
    blocks: BlockWriter,
    columns: u16,
    rows: u32,
}

impl RowsWriter {
    pub(crate) fn create(disk: &dyn Disk, path: &Path, columns: u16) -> Result<RowsWriter, StoreError> {
        Ok(RowsWriter { blocks: BlockWriter::create(disk, path, MAGIC)?, columns, rows: 0 })
    }

    /// Appends a chunk: its columns, the sequence numbers last.
    pub(crate) fn push(&mut self, chunk: Vec<(Arc<Field>, ArrayRef)>) -> Result<(), StoreError> {
        debug_assert_eq!(chunk.len(), usize::from(self.columns) + 1);
        self.rows += chunk.first().map_or(0, |(_, array)| array.len()) as u32;
        chunk.into_iter().try_for_each(|(field, array)| column_block(&mut self.blocks, &field, array))
    }

    pub(crate) fn finish(self) -> Result<u64, StoreError> {
        let mut footer = Vec::new();
        put_u32(&mut footer, self.rows);
        put_u16(&mut footer, self.columns);
        put_u32(&mut footer, self.blocks.next());
        self.blocks.blocks.iter().for_each(|block| block.encode(&mut footer));
        self.blocks.finish(&footer)
    }
}

/// Writes one column as an Arrow message.
pub(crate) fn column_block(to: &mut BlockWriter, field: &Arc<Field>, array: ArrayRef) -> Result<(), StoreError> {
    let rows = array.len();
    let raw = ipc::encode(std::slice::from_ref(field), vec![array], rows);
    let raw = raw.map_err(|e| StoreError::corrupt(&to.path, e))?;
    to.block(&raw, true)
}

/// An open file of rows.
#[derive(Debug)]
pub(crate) struct RowsFile {
    pub(crate) file: BlockFile,
    disk: Arc<dyn Disk>,
    pub(crate) rows: u32,
    columns: u16,
    blocks: Vec<BlockRef>,
    /// The file goes when the last reader lets go of it.
    pub(crate) obsolete: AtomicBool,
}

impl Drop for RowsFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            super::remove(self.disk.as_ref(), &self.file.path);
        }
    }
}

impl RowsFile {
    pub(crate) fn open(disk: &Arc<dyn Disk>, path: &Path) -> Result<RowsFile, StoreError> {
        let (file, footer) = BlockFile::open(disk.as_ref(), path, MAGIC)?;
        let mut r = Reader::new(&footer);
        let mut parse = || -> Result<_, String> {
            let (rows, columns) = (r.u32()?, r.u16()?);
            let blocks = list(&mut r, BLOCK_REF_BYTES, BlockRef::decode)?;
            let fits = blocks.len() == rows.div_ceil(CHUNK_ROWS) as usize * (usize::from(columns) + 1);
            if fits && r.left() == 0 { Ok((rows, columns, blocks)) } else { Err("its numbers do not fit".to_owned()) }
        };
        let (rows, columns, blocks) =
            parse().map_err(|e| StoreError::corrupt(path, format!("its footer does not read: {e}")))?;
        Ok(RowsFile { file, disk: disk.clone(), rows, columns, blocks, obsolete: AtomicBool::new(false) })
    }

    /// One column of one chunk; the column after the last is that of the sequence numbers.
    pub(crate) fn column(&self, chunk: u32, column: usize, field: &Arc<Field>) -> Result<(ArrayRef, u64), StoreError> {
        let block = chunk as usize * (usize::from(self.columns) + 1) + column;
        let corrupt = |detail: String| StoreError::corrupt(&self.file.path, detail);
        let place = *self.blocks.get(block).ok_or_else(|| corrupt("a block is missing".to_owned()))?;
        let bytes = self.file.fetch(place, field.name())?;
        let (mut arrays, _) = ipc::decode(std::slice::from_ref(field), &bytes)
            .map_err(|e| corrupt(format!("block {block} ({}): {e}", field.name())))?;
        match arrays.pop() {
            Some(array) => Ok((array, u64::from(place.stored))),
            None => Err(corrupt(format!("block {block} ({}) is empty", field.name()))),
        }
    }

    pub(crate) fn verify(&self) -> Vec<StoreError> {
        self.file.verify(&self.blocks)
    }
}
