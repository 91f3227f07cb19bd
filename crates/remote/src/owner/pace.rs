//! Batches of rows that take as long as a study wants.

use super::Owner;
use crate::wire::fault::Fault;
use meridian_model::Batch;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long batches of rows take: of a study that models processors and storage, and runs all else for real (decision 063).
pub trait Pace: fmt::Debug + Send + Sync {
    /// Blocks for as long as a batch takes. Its scan has its place meanwhile.
    fn take(&self, batch: &Batch) -> io::Result<()>;

    /// How long a scan's caller takes over a batch, before the scan wants its place for the next one.
    fn turnaround(&self) -> Duration;
}

/// The pace of one answer, if there is one. It reads one item `T` ahead, so that a scan ends with its last batch. In a turn of its own
/// the end would wait for a place once more.
pub(super) struct Paced<T> {
    pace: Option<Arc<dyn Pace>>,
    ahead: Option<Option<T>>,
}

impl<T> Paced<T> {
    pub(super) fn of(owner: &Owner) -> Paced<T> {
        Paced { pace: owner.options.pace.clone(), ahead: None }
    }

    /// Max events of a batch and of a turn: in a study, an event stands for a whole batch.
    pub(super) fn rows_max(&self) -> Option<usize> {
        self.pace.as_ref().map(|_| 1)
    }

    /// The next item: the one that was read ahead, or what `read` gives.
    pub(super) fn next(&mut self, read: impl FnOnce() -> Option<T>) -> Option<T> {
        self.ahead.take().unwrap_or_else(read)
    }

    /// Whether no item follows. Without a pace nothing is read ahead, and the answer is no.
    pub(super) fn is_end(&mut self, read: impl FnOnce() -> Option<T>) -> bool {
        self.pace.is_some() && self.ahead.get_or_insert_with(read).is_none()
    }

    pub(super) fn take(&self, batch: &Batch) -> Result<(), Fault> {
        let Some(pace) = &self.pace else { return Ok(()) };
        pace.take(batch).map_err(|e| Fault::internal(format!("the pace of the study: {e}")))
    }
}
