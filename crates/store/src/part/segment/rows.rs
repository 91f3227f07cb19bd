//! The rows of a segment as Arrow: the fastest format, and the source until the segment has an archive.
//!
//! A column of a chunk is one block. If its values are large (lines of hundreds of points, long texts), it is split
//! into pages with a power of two of rows. So a few rows can be read without all 4,096.

use super::blocks::{BLOCK_REF_BYTES, BlockFile, BlockRef, BlockWriter};
use super::footer::list;
use crate::codec::{Reader, put_u16, put_u32};
use crate::error::StoreError;
use crate::manifest::FileEnd;
use crate::part::ipc;
use crate::part::rows::{CHUNK_ROWS, join, slice_bytes};
use crate::seams::{Objects, ReadHint};
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;
use meridian_index::LEAF_ROWS;
use meridian_model::{Layout, Schema};
use std::ops::Range;
use std::sync::Arc;

/// Magic number at the start and end of a file of rows.
const MAGIC: &[u8; 8] = b"MRDNROWS";

/// Target max bytes of a page. A column of a chunk with more bytes is split into pages.
pub(crate) const PAGE_BYTES: usize = 256 << 10;
/// Min rows of a page: no reader requests less than a leaf.
pub(crate) const PAGE_ROWS_MIN: u32 = LEAF_ROWS as u32;

/// A column of a chunk with more bytes than this has pages of [`PAGE_ROWS_MIN`] rows, whatever follows in the chunk.
const LARGE_BYTES: usize = (CHUNK_ROWS / PAGE_ROWS_MIN / 2) as usize * PAGE_BYTES;

/// Writes the rows of a segment. A chunk may arrive in pieces, so that of a column with large values only a few are
/// held.
pub(crate) struct RowsWriter {
    blocks: BlockWriter,
    columns: u16,
    rows: u32,
    /// For each column of each chunk, the binary logarithm of the rows per page.
    page_bits: Vec<u8>,
    /// The columns of the chunk in progress.
    chunk: Vec<ColumnWriter>,
}

/// A column of the chunk in progress.
struct ColumnWriter {
    field: Arc<Field>,
    /// Rows that are not written yet.
    held: Vec<ArrayRef>,
    /// Bytes of all its rows.
    bytes: usize,
    /// Pages already written.
    pages: Vec<BlockRef>,
}

impl ColumnWriter {
    /// Writes the held rows, as pages of `page_rows` rows.
    fn write(&mut self, to: &mut BlockWriter, page_rows: u32) -> Result<(), StoreError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let array = join(std::mem::take(&mut self.held)).map_err(|e| StoreError::corrupt(&to.path, e))?;
        for from in (0..array.len()).step_by(page_rows as usize) {
            let rows = (array.len() - from).min(page_rows as usize);
            column_block(to, &self.field, array.slice(from, rows))?;
            // The footer lists pages by column, although pages of several large columns are written in turn.
            self.pages.extend(to.blocks.pop());
        }
        Ok(())
    }
}

impl RowsWriter {
    pub(crate) fn put(objects: &dyn Objects, name: &str, columns: u16) -> Result<RowsWriter, StoreError> {
        let blocks = BlockWriter::put(objects, name, MAGIC)?;
        Ok(RowsWriter { blocks, columns, rows: 0, page_bits: Vec::new(), chunk: Vec::new() })
    }

    /// Appends a chunk or a piece of one: its columns, the sequence numbers last. All pieces but the last of the
    /// segment have a multiple of [`PAGE_ROWS_MIN`] rows, and none crosses the end of a chunk.
    pub(crate) fn push(&mut self, piece: Vec<(Arc<Field>, ArrayRef)>) -> Result<(), StoreError> {
        debug_assert_eq!(piece.len(), usize::from(self.columns) + 1);
        self.rows += piece.first().map_or(0, |(_, array)| array.len()) as u32;
        if self.chunk.is_empty() {
            let begin = |(field, _): &(Arc<Field>, ArrayRef)| ColumnWriter {
                field: field.clone(),
                held: Vec::new(),
                bytes: 0,
                pages: Vec::new(),
            };
            self.chunk = piece.iter().map(begin).collect();
        }
        for (column, (_, array)) in self.chunk.iter_mut().zip(piece) {
            column.bytes += slice_bytes(&array);
            column.held.push(array);
            if column.bytes > LARGE_BYTES {
                column.write(&mut self.blocks, PAGE_ROWS_MIN)?;
            }
        }
        if self.rows.is_multiple_of(CHUNK_ROWS) { self.end_chunk() } else { Ok(()) }
    }

    fn end_chunk(&mut self) -> Result<(), StoreError> {
        for mut column in std::mem::take(&mut self.chunk) {
            let page_rows = page_rows(column.bytes);
            column.write(&mut self.blocks, page_rows)?;
            self.page_bits.push(page_rows.trailing_zeros() as u8);
            self.blocks.blocks.append(&mut column.pages);
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<FileEnd, StoreError> {
        self.end_chunk()?;
        let mut footer = Vec::new();
        put_u32(&mut footer, self.rows);
        put_u16(&mut footer, self.columns);
        put_u32(&mut footer, self.page_bits.len() as u32);
        footer.extend_from_slice(&self.page_bits);
        put_u32(&mut footer, self.blocks.next());
        self.blocks.blocks.iter().for_each(|block| block.encode(&mut footer));
        self.blocks.finish(&footer)
    }
}

/// Returns the rows per page of a column with this many bytes: a power of two.
fn page_rows(bytes: usize) -> u32 {
    let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
    (CHUNK_ROWS / u32::try_from(pages).unwrap_or(CHUNK_ROWS)).max(PAGE_ROWS_MIN)
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
    pub(crate) name: String,
    pub(crate) rows: u32,
    columns: u16,
    /// For each column of each chunk, its first block, and the binary logarithm of the rows per page.
    pages: Vec<(u32, u8)>,
    /// For each column, the binary logarithm of the rows of its smallest page.
    smallest: Vec<u8>,
    blocks: Vec<BlockRef>,
}

impl RowsFile {
    /// Opens a file; `end` is the manifest's record of it.
    pub(crate) fn open(objects: &dyn Objects, name: &str, end: Option<&FileEnd>) -> Result<RowsFile, StoreError> {
        let (file, footer) = BlockFile::open(objects, name, MAGIC, end)?;
        let parse = || -> Result<_, String> {
            let mut r = Reader::new(&footer);
            let (rows, columns) = (r.u32()?, r.u16()?);
            let chunks = rows.div_ceil(CHUNK_ROWS);
            let per_chunk = usize::from(columns) + 1;
            let page_bits = match file.version {
                // Files before version 3 have one page in each chunk, and the rest of the footer lists the blocks.
                ..3 if chunks as usize * per_chunk > r.left() => return Err("its numbers do not fit".to_owned()),
                ..3 => vec![CHUNK_ROWS.trailing_zeros() as u8; chunks as usize * per_chunk],
                _ => list(&mut r, 1, |r| r.u8())?,
            };
            let blocks = list(&mut r, BLOCK_REF_BYTES, BlockRef::decode)?;
            let (mut pages, mut next) = (Vec::with_capacity(page_bits.len()), 0);
            for (i, bits) in page_bits.into_iter().enumerate() {
                // Checked before the shift below, which would overflow for a damaged value.
                if u32::from(bits) > CHUNK_ROWS.trailing_zeros() {
                    return Err("it has pages that pass a chunk".to_owned());
                }
                let chunk_rows =
                    CHUNK_ROWS.min(rows.saturating_sub(((i / per_chunk) as u32).saturating_mul(CHUNK_ROWS)));
                pages.push((next, bits));
                next += chunk_rows.div_ceil(1 << bits);
            }
            let fits = pages.len() == chunks as usize * per_chunk && blocks.len() == next as usize;
            if fits && r.left() == 0 {
                Ok((rows, columns, pages, blocks))
            } else {
                Err("its numbers do not fit".to_owned())
            }
        };
        let (rows, columns, pages, blocks) =
            parse().map_err(|e| StoreError::corrupt(&file.path, format!("its footer does not read: {e}")))?;
        let mut smallest = vec![CHUNK_ROWS.trailing_zeros() as u8; usize::from(columns) + 1];
        for chunk in pages.chunks(smallest.len()) {
            smallest.iter_mut().zip(chunk).for_each(|(smallest, (_, bits))| *smallest = *bits.min(smallest));
        }
        Ok(RowsFile { file, name: name.to_owned(), rows, columns, pages, smallest, blocks })
    }

    /// Returns the rows per page of one column of one chunk: [`CHUNK_ROWS`] if it is one block. The column after the
    /// last is that of the sequence numbers.
    pub(crate) fn page_rows(&self, chunk: u32, column: usize) -> u32 {
        self.place(chunk, column).map_or(CHUNK_ROWS, |(_, bits)| 1 << bits)
    }

    /// Returns the rows of the smallest page of a column in any chunk.
    pub(crate) fn page_rows_min(&self, column: usize) -> u32 {
        self.smallest.get(column).map_or(CHUNK_ROWS, |bits| 1 << bits)
    }

    /// Returns the bytes of all columns of a chunk in memory.
    pub(crate) fn chunk_bytes(&self, chunk: u32) -> u64 {
        let first = |chunk: u32| self.place(chunk, 0).map_or(self.blocks.len(), |(first, _)| first as usize);
        let blocks = self.blocks.get(first(chunk)..first(chunk + 1)).unwrap_or_default();
        blocks.iter().map(|block| u64::from(block.raw)).sum()
    }

    /// Returns the blocks with some rows of a column, numbered within their chunk.
    pub(crate) fn blocks_of(&self, chunk: u32, column: usize, rows: Range<u32>) -> Range<u32> {
        self.place(chunk, column)
            .map_or(0..0, |(first, bits)| first + (rows.start >> bits)..first + rows.end.div_ceil(1 << bits))
    }

    /// Returns a block, to be read ahead.
    pub(crate) fn block_ahead(&self, block: u32) -> Option<ReadHint> {
        self.file.block_ahead(self.blocks.get(block as usize)?)
    }

    /// Returns the approximate bytes in memory of the places of its blocks.
    pub(crate) fn footer_bytes(&self) -> u64 {
        (self.blocks.len() * size_of::<BlockRef>() + self.pages.len() * 8) as u64
    }

    /// Returns the block of a page.
    pub(crate) fn block_of(&self, chunk: u32, column: usize, page: u32) -> u32 {
        self.place(chunk, column).map_or(u32::MAX, |(first, _)| first + page)
    }

    fn place(&self, chunk: u32, column: usize) -> Option<(u32, u8)> {
        self.pages.get(chunk as usize * (usize::from(self.columns) + 1) + column).copied()
    }

    /// Returns the values of one block, which belongs to this column, and the bytes read for them.
    pub(crate) fn values(&self, block: u32, field: &Arc<Field>) -> Result<(ArrayRef, u64), StoreError> {
        let corrupt = |detail: String| StoreError::corrupt(&self.file.path, detail);
        let place = *self.blocks.get(block as usize).ok_or_else(|| corrupt("a block is missing".to_owned()))?;
        let bytes = self.file.fetch(place, field.name()).map_err(StoreError::absence_is_damage)?;
        let (mut arrays, _) = ipc::decode(std::slice::from_ref(field), &bytes)
            .map_err(|e| corrupt(format!("block {block} ({}): {e}", field.name())))?;
        match arrays.pop() {
            Some(array) => Ok((array, u64::from(place.stored))),
            None => Err(corrupt(format!("block {block} ({}) is empty", field.name()))),
        }
    }

    /// Returns one column of one chunk, all pages together. The column after the last is that of the sequence numbers.
    pub(crate) fn column(&self, chunk: u32, column: usize, field: &Arc<Field>) -> Result<ArrayRef, StoreError> {
        let corrupt = |detail: String| StoreError::corrupt(&self.file.path, detail);
        let (rows, page_rows) = (CHUNK_ROWS.min(self.rows - chunk * CHUNK_ROWS), self.page_rows(chunk, column));
        let page = |page| self.values(self.block_of(chunk, column, page), field).map(|(array, _)| array);
        let pages = (0..rows.div_ceil(page_rows)).map(page).collect::<Result<Vec<_>, _>>()?;
        let array = join(pages).map_err(corrupt)?;
        let fits = array.len() == rows as usize && array.data_type() == field.data_type();
        if fits { Ok(array) } else { Err(corrupt(format!("{} has another length or type", field.name()))) }
    }

    /// Returns the schema that the rows were written in: this one, without fields added since.
    pub(crate) fn schema(&self, newest: &Schema) -> Result<Schema, StoreError> {
        let first = Layout::of(newest).first_field;
        let mut schema = newest.clone();
        // Fields are only ever appended, so the number of columns identifies the schema that the segment was written
        // with.
        match usize::from(self.columns).checked_sub(first).filter(|fields| *fields <= schema.fields.len()) {
            Some(fields) => schema.fields.truncate(fields),
            None => return Err(StoreError::corrupt(&self.file.path, "its columns are not those of the collection")),
        }
        schema.validate()?;
        Ok(schema)
    }

    pub(crate) fn verify(&self) -> Vec<StoreError> {
        self.file.verify(&self.blocks)
    }
}
