//! Segments: sorted runs of events on disk, in up to three files of one number.
//!
//! `docs/format.md` has the byte layout. The *rows* are kept as Arrow (`.rows`), as GeoParquet (`.parquet`), or as both;
//! the third file (`.segment`) holds the index: trees, keys, order of time, counts per map cell. Until
//! a segment has its archive (the GeoParquet file) the Arrow rows are the truth; from then on the archive is, and the others are a cache
//! of it: missing or damaged they are rebuilt or done without.
//!
//! A `.segment` file that is missing or damaged is rebuilt from whichever rows are the truth (`rebuild.rs`).
//!
//! Footers, trees and the fences of the key sidecar are read when a segment is opened; all else is read block by block
//! through the block cache, and each block is checked against its CRC32C when it is fetched.
//!
//! Blocks are LZ4 where that saves a quarter, and raw otherwise: what does not fit into the block cache is decoded again and
//! again, from the page cache (decision 022).

mod archive;
mod blocks;
mod footer;
mod open;
mod read;
mod rebuild;
mod rows;
mod write;

use crate::error::StoreError;
use meridian_model::{Batch, Schema};
use std::ops::Range;
use std::sync::Arc;

pub(crate) use archive::{Archive, ArchiveEntry, write as write_archive};
pub(crate) use footer::{Footer, ObjectPages, TimeColumns};
pub(crate) use open::{Segment, SegmentAccess, seq_max_of};
pub(crate) use rebuild::{rebuild, rebuild_from, rebuild_from_rows};
pub(crate) use rows::{PAGE_BYTES, PAGE_ROWS_MIN, RowsFile};
pub(crate) use write::{SegmentWriter, Written, rows_max};

/// First bytes of a segment file, and its last.
const MAGIC: &[u8; 8] = b"MRDNSEGM";

/// The source of a file's rows.
pub(crate) trait RowSource {
    /// The schema that they are read in.
    fn schema(&self) -> &Arc<Schema>;
    /// How many there are.
    fn rows(&self) -> u32;
    /// Some rows of one chunk, with all columns, and their sequence numbers.
    fn chunk(&self, rows: Range<u32>) -> Result<(Batch, Vec<u64>), StoreError>;
}
