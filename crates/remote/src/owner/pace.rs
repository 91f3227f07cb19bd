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

/// The pace of one answer, if there is one.
pub(super) struct Paced(Option<Arc<dyn Pace>>);

impl Paced {
    pub(super) fn of(owner: &Owner) -> Paced {
        Paced(owner.options.pace.clone())
    }

    /// Max events of a batch: in a study, an event stands for a whole one.
    pub(super) fn rows_max(&self) -> Option<usize> {
        self.0.as_ref().map(|_| 1)
    }

    pub(super) fn take(&self, batch: &Batch) -> Result<(), Fault> {
        let Some(pace) = &self.0 else { return Ok(()) };
        pace.take(batch).map_err(|e| Fault::internal(format!("the pace of the study: {e}")))
    }
}
