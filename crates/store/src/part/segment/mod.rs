//! Segments: sorted runs of events on disk, in up to three files of one number.
//!
//! `docs/format.md` has the byte layout. The *rows* are stored as Arrow (`.rows`), as GeoParquet (`.parquet`), or as
//! both. The third file (`.segment`) holds the index: trees, keys, order of time, counts per map cell. Until a segment
//! has its archive (the GeoParquet file), the Arrow rows are the source. From then on the archive is the source, and
//! the other files are caches of it. If one is missing or damaged, it is rebuilt or not used.
//!
//! A missing or damaged `.segment` file is rebuilt from the source (`rebuild.rs`).
//!
//! Footers, trees and the fences of the key sidecar are read when a segment is opened. Everything else is read block
//! by block through the block cache. Each block is checked against its CRC32C when it is fetched.
//!
//! Blocks are LZ4 if that saves a quarter, else raw. Decoding must be cheap: blocks that do not fit into the block
//! cache are decoded repeatedly from the page cache (decision 022).

mod ahead;
mod archive;
mod blocks;
mod fields;
mod footer;
mod open;
mod plain;
mod read;
mod rebuild;
mod rows;
mod write;

use crate::error::StoreError;
use meridian_model::{Batch, Schema};
use std::ops::Range;
use std::sync::Arc;

pub(crate) use archive::{Archive, same_rows, write as write_archive};
pub(crate) use footer::{Footer, ObjectPages, TimeColumns};
pub(crate) use open::{Segment, SegmentAccess, SegmentFacts, seq_max_of};
pub(crate) use plain::PlainRows;
pub(crate) use rebuild::{REBUILT, rebuild, rebuild_from, rebuild_from_rows};
pub(crate) use rows::{PAGE_BYTES, PAGE_ROWS_MIN, RowsFile};
pub(crate) use write::{SegmentTotals, SegmentWriter, rows_max};

/// Magic number at the start and end of a segment file.
const MAGIC: &[u8; 8] = b"MRDNSEGM";

/// The source of a file's rows.
pub(crate) trait RowSource {
    /// Returns the schema of the rows.
    fn schema(&self) -> &Arc<Schema>;
    /// Returns the number of rows.
    fn rows(&self) -> u32;
    /// Returns some rows of one chunk, with all columns, and their sequence numbers.
    fn chunk(&self, rows: Range<u32>) -> Result<(Batch, Vec<u64>), StoreError>;
}
