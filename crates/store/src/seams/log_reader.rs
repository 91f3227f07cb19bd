//! Reading the log of a collection that another process writes.

use super::{LogPlace, Record};
use crate::error::StoreError;

/// What a look at a log found.
#[derive(Debug, Default)]
pub struct Seen {
    /// Records that were not read before, in order of position.
    pub records: Vec<Record>,
    /// Whether there was nothing after them.
    pub is_end: bool,
}

/// Reads a log that another process writes, from where it last ended. It fences nobody.
///
/// # Contract
/// - **In order.** Records come in order of position, each once, and none that is not in every later replay.
/// - **What a manifest covers may be gone.** A log then seems to end before it does. So a look says where the log ended only
///   if the newest manifest that is read after it covers nothing more.
pub trait LogReader: Send + Sync + std::fmt::Debug {
    /// Begins again, with the place that the next look is given.
    fn rewind(&mut self);

    /// Reads on. `flushed` and `from`: the position that the manifest covers, and the place in the log that it names.
    fn look(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<Seen, StoreError>;
}
