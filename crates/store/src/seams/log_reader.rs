//! Reads the log of a collection that another process writes.

use super::{LogPlace, Record};
use crate::error::StoreError;

/// The result of polling a log.
#[derive(Debug, Default)]
pub struct LogPoll {
    /// Records that were not read before, in order of position.
    pub records: Vec<Record>,
    /// Whether the end of the log was reached.
    pub is_end: bool,
}

/// Reads a log that another process writes, from where the last poll ended. It fences no writer.
///
/// # Contract
/// - **In order.** Records come in order of position, each once, and only those that every later replay returns too.
/// - **What a manifest covers may be gone.** A log then seems to end too early. So a poll proves the end of the log
///   only if the newest manifest read after it covers nothing more.
pub trait LogReader: Send + Sync + std::fmt::Debug {
    /// Restarts at the place passed to the next poll.
    fn rewind(&mut self);

    /// Reads on. `flushed` and `from` are the position that the manifest covers, and the place in the log that it
    /// names.
    fn look(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<LogPoll, StoreError>;
}
