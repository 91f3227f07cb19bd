//! The write log, which makes a write durable before it is in a segment.

use crate::error::StoreError;
pub use crate::seams::Record;
pub use meridian_model::policy::owner::LogPlace;

/// The log of one partition: records in order of position. On disk files of the data folder, in a cluster a stream or a
/// bucket.
///
/// # Contract
/// - **One writer.** [`WriteLog::replay`] makes its caller the writer: it precedes the first append, and fences every
///   earlier writer. From then on each append of an older writer fails with [`AppendError::Fenced`] and takes no
///   effect.
/// - **Contiguous.** Records of a group have ascending positions, the first above every position in the log. A group is
///   in the log completely or not at all.
/// - **Durable.** A group whose append returned `Ok` is in every later replay, until it is released.
/// - **Outcomes.** [`AppendError::Clean`]: nothing of the group is in the log, nor will be; the writer may continue.
///   [`AppendError::Unknown`]: the next replay may return the whole group or nothing of it; the writer takes no more
///   until it has replayed. [`AppendError::Fenced`]: another writer has taken over; this one drops its state.
/// - **Release.** After `release(flushed)` a replay need not return records up to `flushed`. Later records stay. What a
///   release leaves to be removed may be removed while groups are appended.
pub trait WriteLog: Send + Sync + std::fmt::Debug {
    /// Becomes the writer, and reads the records after a position that a manifest covers. `from` is the place that the
    /// manifest names.
    fn replay(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<LogContents, StoreError>;

    /// Appends a group and makes it durable; returns the bytes written. An empty group does nothing.
    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError>;

    /// Releases records that a manifest covers, which names the place `named`. Returns the next thing to remove, if
    /// that takes calls to another machine: the caller makes them without the lock of the partition, reports that to
    /// [`WriteLog::removed`], and releases again.
    fn release(&mut self, flushed: u64, named: Option<LogPlace>) -> Result<Option<Removal>, StoreError>;

    /// Accepts that the last removal is done.
    fn removed(&mut self) {}

    /// Returns where a replay after `flushed` begins, to be recorded in a manifest that covers writes up to there.
    /// `None` if the log finds the place itself.
    fn place(&self, flushed: u64) -> Option<LogPlace> {
        let _ = flushed;
        None
    }

    /// Returns when the oldest write after `flushed` was taken, in microseconds since 1970; `None` if there is none. An
    /// owner derives from it the time up to which flushed data is complete, so a log shared by processes has to know
    /// it.
    fn oldest(&self, flushed: u64) -> Option<i64>;

    /// Returns true if other processes may write it too. Outcomes unknown here are known to the next process that opens
    /// it, which may be this one.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the bytes of records that a replay would read.
    fn tail_bytes(&self) -> u64;

    /// Makes the log's own marks durable at a clean stop, so that a replay knows of every acknowledged write.
    fn seal(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns true if it has lost acknowledged records. A flush of everything in memory makes up for that; until then
    /// it takes no group.
    fn wants_flush(&self) -> bool {
        false
    }

    /// Rereads the log and returns its damage, if possible; `position` is that of the newest write.
    fn verify(&self, flushed: u64, position: u64) -> Vec<StoreError> {
        let _ = (flushed, position);
        Vec::new()
    }
}

/// Calls that remove what a log has released.
pub type Removal = Box<dyn FnOnce() -> Result<(), StoreError> + Send>;

/// The content of a log.
#[derive(Debug, Default)]
pub struct LogContents {
    /// Good records in order of position.
    pub records: Vec<Record>,
    /// Places where acknowledged records are missing. `records` also includes records after them.
    pub damage: Vec<StoreError>,
    /// Bytes of torn tails that were never acknowledged, and are dropped.
    pub torn_bytes: u64,
}

/// Why an append failed.
#[derive(Debug)]
pub enum AppendError {
    /// Nothing of it is in the log, nor will be: the writer may continue.
    Clean(StoreError),
    /// The next replay shows whether it is in the log: the writer takes no more until then.
    Unknown(StoreError),
    /// Another writer has taken over, and nothing of it is in the log.
    Fenced(StoreError),
}
