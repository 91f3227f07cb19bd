//! Why a question was not answered, by what the asker can do about it.

use meridian_model::Invalid;
use meridian_store::{Gone, StoreError};

/// Why a question was not answered, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The time given to the question is over: ask for less, or give more time.
    #[error("the question was not answered within its time")]
    Deadline,
    /// Whoever asked has gone away.
    #[error("the question was given up by whoever asked")]
    Cancelled,
    /// The snapshot of a page token is gone: ask again from the start.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The questions at work take all the memory that they may: ask again later.
    #[error("the questions at work take all of their {limit} bytes of memory")]
    Busy {
        /// What all of them together may take.
        limit: u64,
    },
    /// The question is at fault: correct it.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store could not read what it holds.
    #[error(transparent)]
    Store(#[from] StoreError),
}
