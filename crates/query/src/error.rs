//! Errors of questions, by what the caller can do about them.

use meridian_model::Invalid;
use meridian_store::{Gone, StoreError};

/// Why a question was not answered, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The deadline has passed: ask for less, or give more time.
    #[error("the question was not answered within its time")]
    Deadline,
    /// The caller cancelled the question.
    #[error("the question was cancelled by the caller")]
    Cancelled,
    /// The snapshot of a page token is gone: ask again from the first page.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The questions at work have used their memory budget: ask again later.
    #[error("the questions at work take all of their {limit} bytes of memory")]
    Busy {
        /// The budget of all of them together, in bytes.
        limit: u64,
    },
    /// The question must read more than it may, or than can be read within its time: ask for less.
    #[error("the question reads at least {events} events, of {bytes} bytes")]
    TooLarge {
        /// Events that it must read.
        events: u64,
        /// Their bytes, at the mean size of stored events.
        bytes: u64,
        /// How many bytes it may read; `None` where its time is too short.
        limit: Option<u64>,
    },
    /// The question is invalid: correct it.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store could not read its files.
    #[error(transparent)]
    Store(#[from] StoreError),
}
