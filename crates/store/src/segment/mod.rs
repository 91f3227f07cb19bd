//! Segment files: sorted runs of events on disk, with their trees and sidecars in the same file.
//!
//! `docs/format.md` has the byte layout. The footer, the trees and the fences of the key sidecar are read when the file
//! is opened; all else is read block by block through the block cache, and each block is checked against its CRC32C
//! when it is fetched.
//!
//! Blocks are zstd at level 1 where that saves a quarter, and raw otherwise. Raw Arrow would be served faster from a
//! cold cache (a page fault against some 50 µs a block), but the cache holds decoded blocks, and at half the size twice
//! as much of the file stays in the page cache; level 1 compresses faster than a merge produces rows.

mod footer;
mod read;
mod write;

pub(crate) use footer::{BlockRef, Footer, ObjectPages, TimeColumns};
pub(crate) use read::{Segment, SegmentPlace};
pub(crate) use write::{SegmentWriter, Written, rows_max};

/// First bytes of a segment file, and its last.
pub(crate) const MAGIC: &[u8; 8] = b"MRDNSEGM";
/// Version of the format written, and newest read.
pub(crate) const VERSION: u32 = 2;
/// Bytes before the first block.
pub(crate) const HEADER_BYTES: u64 = 16;
/// Bytes after the footer: offset of the footer (8), its length (4), its CRC32C (4), magic (8).
pub(crate) const TAIL_BYTES: u64 = 24;
