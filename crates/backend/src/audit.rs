//! The log of administrative acts that a server keeps beside its collections.

use meridian_store::{Act, AuditPage, RecordedAct, StoreError};
use std::fmt::Debug;

/// Administrative acts, oldest first. A line holds the hash of the previous one.
pub trait AuditLog: Debug + Send + Sync {
    /// Adds a line for each act, durably and with one sync, and returns the number of the first.
    ///
    /// # Errors
    /// The disk's error: then none of the acts may be acknowledged.
    fn append(&self, acts: &[Act]) -> Result<u64, StoreError>;

    /// Returns the lines after this number for which `wanted` is true, at most `limit` of them. Reads a bounded part of
    /// the log.
    ///
    /// # Errors
    /// The disk's error.
    fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&RecordedAct) -> bool) -> Result<AuditPage, StoreError>;
}

impl AuditLog for meridian_store::AuditLog {
    fn append(&self, acts: &[Act]) -> Result<u64, StoreError> {
        self.append(acts)
    }

    fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&RecordedAct) -> bool) -> Result<AuditPage, StoreError> {
        self.page(after, limit, wanted)
    }
}

impl AuditLog for meridian_store::SharedAudit {
    fn append(&self, acts: &[Act]) -> Result<u64, StoreError> {
        self.append(acts)
    }

    fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&RecordedAct) -> bool) -> Result<AuditPage, StoreError> {
        self.page(after, limit, wanted)
    }
}
