//! The write log: what makes a write durable before it is in a segment.

use crate::error::StoreError;
pub use crate::log::{Kind, Record};
pub use meridian_model::policy::owner::LogPlace;

/// The log of one partition: records in order of position. Files of the data folder today, a stream or a bucket in a cluster.
///
/// # Contract
/// - **One writer.** [`WriteLog::replay`] makes its caller the writer: it comes before the first append, and fences every writer
///   before it. From then on each append of an older writer fails with [`AppendError::Fenced`] and takes no effect.
/// - **Contiguous.** Records of a group have ascending positions, the first above every position in the log. A group is in the
///   log whole or not at all.
/// - **Durable.** A group whose append returned `Ok` is in every later replay, until it is released.
/// - **Outcomes.** [`AppendError::Clean`]: nothing of the group is in the log, nor will be; the writer may continue.
///   [`AppendError::Unknown`]: the next replay may show the group, whole, or not; the writer takes no more until it has replayed.
///   [`AppendError::Fenced`]: another writer has taken over; this one drops its state.
/// - **Release.** After `release(flushed)` a replay need not show records up to `flushed`. Those after it stay.
pub trait WriteLog: Send + Sync + std::fmt::Debug {
    /// Becomes the writer, and reads the records after a position that a manifest covers. `from`: the place that the manifest names.
    fn replay(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<Replayed, StoreError>;

    /// Appends a group and makes it durable; gives the bytes written. No record: nothing is done.
    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError>;

    /// Releases records that a manifest covers.
    fn release(&mut self, flushed: u64) -> Result<(), StoreError>;

    /// Where a replay after `flushed` begins: a manifest that covers writes up to there names it. `None`: the log finds the place
    /// itself.
    fn place(&self, flushed: u64) -> Option<LogPlace> {
        let _ = flushed;
        None
    }

    /// When the oldest write after `flushed` was taken, in microseconds since 1970; `None`: there is none. By this an owner
    /// states up to when what is flushed is complete, so a log that processes share has to know it.
    fn oldest(&self, flushed: u64) -> Option<i64>;

    /// Whether other processes may write it too. Outcomes that are unknown here are known to the next process that opens it, which may be this one.
    fn is_shared(&self) -> bool {
        false
    }

    /// Bytes of records that a replay would read.
    fn tail_bytes(&self) -> u64;

    /// Makes the log's own marks durable at a clean stop: a replay then knows of every acknowledged write.
    fn seal(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether it has lost what it had acknowledged: a flush of everything in memory makes up for it, and until then it takes no group.
    fn wants_flush(&self) -> bool {
        false
    }

    /// Reads the log again and returns its damage, if possible; `position` is that of the newest write.
    fn verify(&self, flushed: u64, position: u64) -> Vec<StoreError> {
        let _ = (flushed, position);
        Vec::new()
    }
}

/// The content of a log.
#[derive(Debug, Default)]
pub struct Replayed {
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
    /// Whether it is in the log shows at the next replay: the writer takes no more until then.
    Unknown(StoreError),
    /// Another writer has taken over, and nothing of it is in the log.
    Fenced(StoreError),
}
