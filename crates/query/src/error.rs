//! Query errors, classified by what the caller can do about them.

use meridian_model::Invalid;
use meridian_store::{SnapshotGone, StoreError};

/// Why a query was not completed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The deadline has passed: reduce the query or allow more time.
    #[error("the question was not answered within its time")]
    Deadline,
    /// The caller cancelled the query.
    #[error("the question was cancelled by the caller")]
    Cancelled,
    /// The snapshot of a page token is gone: restart from the first page.
    #[error(transparent)]
    Gone(#[from] SnapshotGone),
    /// The running queries have used up their memory budget: retry later.
    #[error("the questions at work take all of their {limit} bytes of memory")]
    Busy {
        /// The total budget in bytes.
        limit: u64,
    },
    /// The query must read more than it may, or than can be read in its time: reduce it.
    #[error("the question reads at least {events} events, of {bytes} bytes")]
    TooLarge {
        /// Events that it must read.
        events: u64,
        /// Their bytes, at the mean size of stored events.
        bytes: u64,
        /// Max bytes that it may read; `None` if its time is too short.
        limit: Option<u64>,
    },
    /// The query is invalid and must be corrected.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store could not read its files.
    #[error(transparent)]
    Store(#[from] StoreError),
}
