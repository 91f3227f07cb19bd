//! The log of administrative acts that a server keeps beside its collections.

use meridian_store::{Act, AuditPage, Audited, StoreError};
use std::fmt::Debug;

/// Administrative acts, oldest first. A line holds the hash of the one before it.
pub trait AuditLog: Debug + Send + Sync {
    /// Adds a line, durably, and returns its number.
    ///
    /// # Errors
    /// The disk's error: then the act must not be acknowledged.
    fn append(&self, act: &Act) -> Result<u64, StoreError>;

    /// The lines after this number for which `wanted` is true, at most `limit` of them. Reads a bounded part of the log.
    ///
    /// # Errors
    /// The disk's error.
    fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&Audited) -> bool) -> Result<AuditPage, StoreError>;
}

impl AuditLog for meridian_store::AuditLog {
    fn append(&self, act: &Act) -> Result<u64, StoreError> {
        self.append(act)
    }

    fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&Audited) -> bool) -> Result<AuditPage, StoreError> {
        self.page(after, limit, wanted)
    }
}
