//! Collections that cannot be opened: kept apart, reported, never served as absent and never overwritten.

use crate::error::{Problem, StoreError};
use std::borrow::Cow;
use std::fmt;
use std::io::ErrorKind;

/// The remedy for a failure that may be temporary.
pub(crate) const RETRIED: &str = "this server tries again by itself";
/// The remedy for damage in a bucket, where nothing is repaired.
pub(crate) const RESTORED: &str =
    "put the object back from a copy of the bucket, then restart the owner; `meridian check --bucket` lists all damage";

/// A collection that is not served, because its content cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Tenant that owns it.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// The error and its file.
    pub problem: Problem,
    /// The remedy for the operator.
    pub cure: Cow<'static, str>,
}

impl Damaged {
    pub(crate) fn of(tenant: &str, name: &str, error: &StoreError) -> Damaged {
        let cure = match error {
            StoreError::NewerFormat { .. } => "open it with the version that wrote it, or with a newer one",
            StoreError::Io { source, .. } if source.kind() != ErrorKind::NotFound => {
                "see to the disk and to who may read the file, then restart"
            }
            StoreError::Internal { .. } => "restart the server, and report this fault with its log",
            _ => "stop the server and run `meridian check --repair`, which deletes nothing",
        };
        Damaged { tenant: tenant.to_owned(), name: name.to_owned(), problem: Problem::of(error), cure: cure.into() }
    }

    /// Returns true if the process that has the collection tries again by itself, because the cause may pass.
    pub fn is_retried(&self) -> bool {
        self.cure == RETRIED
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_retried() { "cannot be opened now" } else { "is damaged and not served" };
        write!(f, "the collection {} {what}: {}; {}", self.name, self.problem, self.cure)
    }
}
