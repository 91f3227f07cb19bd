//! The outcomes of writes.

use meridian_model::{Positions, Seq, Seqs};
use std::path::PathBuf;

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReceipt {
    /// Events stored.
    pub written: u64,
    /// Events that were replaced.
    pub replaced: u64,
    /// Events stored by an earlier write with the same key.
    pub duplicates: u64,
    /// Position of the write in the log of each partition that took part (of the earlier one, for duplicates). For the
    /// others, their position when the write began.
    pub position: Positions,
    /// Sequence number of the first event.
    pub first: Seq,
}

impl From<meridian_store::WriteReceipt> for WriteReceipt {
    fn from(done: meridian_store::WriteReceipt) -> WriteReceipt {
        let meridian_store::WriteReceipt { written, replaced, duplicates, position, first } = done;
        WriteReceipt { written, replaced, duplicates, position: Positions::one(position), first }
    }
}

/// The outcome of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteReceipt {
    /// Events that were deleted.
    pub deleted: u64,
    /// Position of the deletion in the log of each partition that took part; for the others their position when it
    /// began.
    pub position: Positions,
}

impl From<meridian_store::DeleteReceipt> for DeleteReceipt {
    fn from(done: meridian_store::DeleteReceipt) -> DeleteReceipt {
        DeleteReceipt { deleted: done.deleted, position: Positions::one(done.position) }
    }
}

/// The GeoParquet files of a collection, for other programs to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Snapshot shown by the files: each event once, and nothing that was replaced or deleted.
    pub seq: Seqs,
    /// Their paths, by partition and then in order of creation.
    pub paths: Vec<PathBuf>,
    /// Time until which they are kept, in microseconds since 1970, whatever is written or merged meanwhile.
    pub kept_until: i64,
}

impl From<meridian_store::Files> for Files {
    fn from(files: meridian_store::Files) -> Files {
        Files { seq: Seqs::one(files.seq), paths: files.paths, kept_until: files.kept_until }
    }
}
