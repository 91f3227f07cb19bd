//! The seams between the store and its environment: disk, clock and randomness. A partition keeps its data through
//! three more: [`WriteLog`], [`Catalog`] and [`Objects`] ([`Storage`] provides all three). Processes of a cluster share
//! a [`Bucket`].
//!
//! Nothing in this crate opens a file, reads a clock, sleeps or draws a random number in any other way. So a test or a
//! simulator controls all three. It can stop time, repeat a run from a seed, lose every unsynced byte, and make any
//! call fail. Only waits of threads for one another, and the deadlines of their callers, are real time
//! (`docs/simulation.md` lists them).

mod bucket;
mod catalog;
mod clock;
pub(crate) mod files;
mod log_reader;
mod memory;
mod named_file;
pub(crate) mod objects;
mod random;
mod real;
mod record;
mod storage;
pub(crate) mod wait;
mod write_log;

pub use crate::manifest::FileEnd;
pub use bucket::{Bucket, Put, Span, Upload};
pub use catalog::{Catalog, CommitError, Newest, Proof};
pub use clock::{Clock, ManualClock, SkewedClock, SystemClock};
pub use log_reader::{LogPoll, LogReader};
pub use memory::{CrashStyle, Failure, FaultKind, MemoryDisk, MemoryStorage, Seam};
pub use named_file::{open_named_once, read_named, read_named_once, read_named_text, read_named_text_once};
pub use objects::{DiskObjects, Object, ObjectWriter, Objects, ReadHint};
pub use random::{Random, SeededRandom, SystemRandom};
pub use real::{RealDisk, expect_file, not_a_file};
pub use record::{Kind, Record};
pub use storage::{PartitionStorage, Registry, Storage};
pub use write_log::{AppendError, LogContents, LogPlace, Removal, WriteLog};

use std::io;
use std::path::Path;
use std::sync::Arc;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing in place.
    ReadWrite,
    /// A new file; an existing one of that name is truncated.
    Create,
    /// A new file; an existing one of that name is an error of kind `AlreadyExists`.
    CreateNew,
    /// A new file that only its owner may read, because it holds secrets; an existing one of that name is replaced.
    CreatePrivate,
}

/// A file system, reduced to what the store needs.
///
/// Contract for implementations: written bytes are durable after [`DiskFile::sync`] and not before. A rename replaces
/// its target atomically; renaming a folder moves its content. A name change is durable after [`Disk::sync_dir`] of its
/// folder and not before. Such changes are made by `open(.., Create)`, [`Disk::rename`], [`Disk::create_dir`] and
/// [`Disk::remove`].
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, replacing an existing one of that name; or a folder, to a free name in the same parent.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder and its parents; an existing one is not an error.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Does the same for a folder that only its owner may enter; an existing one is made private.
    fn create_private_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns the names in a folder, sorted; an absent folder is an error of kind `NotFound`.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the lock of a file, until the guard is dropped. `WouldBlock` means that another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;
    /// Returns the bytes that are free for this process on the file system of a path; the max of `u64` if it does not
    /// tell.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// A lock held until this is dropped.
pub trait DiskLock: Send + Sync + std::fmt::Debug {}

/// An open file.
pub trait DiskFile: Send + Sync + std::fmt::Debug {
    /// Fills `into` from `offset`; a file that is too short is an error of kind `UnexpectedEof`.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Writes at `offset`, extending the file if needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes written bytes and the length durable (`fdatasync`).
    fn sync(&self) -> io::Result<()>;
    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns true if the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
}

/// The three seams together.
#[derive(Debug, Clone)]
pub struct Seams {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl Seams {
    /// Returns the real disk, clock and randomness.
    pub fn real() -> Seams {
        Seams { disk: Arc::new(RealDisk), clock: Arc::new(SystemClock::new()), random: Arc::new(SystemRandom::new()) }
    }
}
