//! Row batches that take as long as a study prescribes.

use super::Owner;
use crate::wire::fault::Fault;
use meridian_model::Batch;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Durations of row batches, for a study that models processors and storage and runs everything else for real (decision
/// 063).
pub trait Pace: fmt::Debug + Send + Sync {
    /// Blocks for the duration of a batch. The scan keeps its place meanwhile.
    fn take(&self, batch: &Batch) -> io::Result<()>;

    /// Time that the caller takes over a batch before the scan needs a place for the next one.
    fn turnaround(&self) -> Duration;
}

/// The pace of one response, if there is one. It reads one item `T` ahead, so a scan ends together with its last batch.
/// Otherwise the end would need a turn of its own, and wait for a place once more.
pub(super) struct PacedItems<T> {
    pace: Option<Arc<dyn Pace>>,
    ahead: Option<Option<T>>,
}

impl<T> PacedItems<T> {
    pub(super) fn of(owner: &Owner) -> PacedItems<T> {
        PacedItems { pace: owner.options.pace.clone(), ahead: None }
    }

    /// Max events of a batch and of a turn: in a study, an event stands for a whole batch.
    pub(super) fn rows_max(&self) -> Option<usize> {
        self.pace.as_ref().map(|_| 1)
    }

    /// Returns the next item: the one read ahead, or the result of `read`.
    pub(super) fn next(&mut self, read: impl FnOnce() -> Option<T>) -> Option<T> {
        self.ahead.take().unwrap_or_else(read)
    }

    /// Returns true if no item follows. Always false without a pace, which then reads nothing ahead.
    pub(super) fn is_end(&mut self, read: impl FnOnce() -> Option<T>) -> bool {
        self.pace.is_some() && self.ahead.get_or_insert_with(read).is_none()
    }

    pub(super) fn take(&self, batch: &Batch) -> Result<(), Fault> {
        let Some(pace) = &self.pace else { return Ok(()) };
        pace.take(batch).map_err(|e| Fault::internal(format!("the pace of the study: {e}")))
    }
}
