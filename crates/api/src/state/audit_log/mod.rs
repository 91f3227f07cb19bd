//! The writer of the audit log.

mod refusals;
mod writer;

pub use refusals::Source;

use crate::protocol::problem::{Kind, Problem, Result};
use meridian_backend::{Act, AuditLog, Clock};
use parking_lot::Mutex;
use refusals::Refusals;
use std::sync::Arc;
use writer::{WAITING_MAX, Writer};

/// The writer of a server's audit log.
pub struct Audit {
    writer: Arc<Writer>,
    clock: Arc<dyn Clock>,
    refusals: Mutex<Refusals>,
}

impl Audit {
    /// Creates a writer for this log.
    pub fn new(log: Arc<dyn AuditLog>, clock: Arc<dyn Clock>) -> Audit {
        Audit { writer: Arc::new(Writer::new(log)), clock, refusals: Mutex::default() }
    }

    /// Returns the log.
    pub fn log(&self) -> &Arc<dyn AuditLog> {
        self.writer.log()
    }

    /// Returns the max number of waiting lines if that many wait for the disk; `None` otherwise.
    pub fn full(&self) -> Option<usize> {
        self.writer.is_full().then_some(WAITING_MAX)
    }

    /// Records an act durably and returns its line number.
    ///
    /// # Errors
    /// 507 if it cannot be written: then the act must not be done, or not be acknowledged.
    pub async fn record(&self, act: Act) -> Result<u64> {
        self.writer.append(act).await?.ok_or_else(|| {
            Problem::new(Kind::StorageUnavailable, "the audit log cannot be written now, so nothing is administered")
        })
    }

    /// Records a refused attempt without waiting for the disk. Callers without rights must not fill the log: above a
    /// rate per minute, a source's attempts are only counted.
    pub fn refused(&self, source: Source, mut act: Act) {
        if self.writer.is_full() {
            return self.counted(source);
        }
        let Some(unrecorded) = self.refusals.lock().take(source, self.clock.now()) else { return };
        act.unrecorded = unrecorded;
        let writer = self.writer.clone();
        // Not awaited: a refusal need not wait for the disk.
        drop(tokio::spawn(async move { writer.append(act).await }));
    }

    /// Counts an attempt that was refused unread; the next line of its source reports the count.
    pub fn counted(&self, source: Source) {
        self.refusals.lock().count(source);
    }
}
