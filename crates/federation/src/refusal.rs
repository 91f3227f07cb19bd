//! Reasons for refusing requests.

use crate::keep_options::KeepOptions;
use meridian_backend::StoreError;
use meridian_model::Invalid;
use meridian_model::policy::quota::Exceeded;
use std::time::Duration;

/// The reason for refusing a request.
#[derive(Debug)]
pub enum Refusal {
    /// The request is invalid.
    Invalid(Invalid),
    /// The client lacks the right to do this.
    Forbidden(String),
    /// The collection for the results does not exist; the same question can be retried once it does.
    Absent(KeepOptions),
    /// A quota of the client's tenant is used up.
    Quota(Exceeded),
    /// The max number of searches is already running.
    TooMany {
        /// Number of running searches.
        running: usize,
        /// Time after which a slot is likely to be free.
        retry: Duration,
    },
    /// Work of running searches waits too long for this server's processors.
    Busy {
        /// How long work has waited.
        delay: Duration,
        /// Time after which to retry.
        retry: Duration,
    },
    /// The client was refused before and retries earlier than it was asked to.
    Early {
        /// Time left until its slot.
        retry: Duration,
    },
    /// The max number of saved searches exists.
    TooManySaved {
        /// That number.
        most: usize,
    },
    /// The disk has no space for the data to be stored.
    DiskFull(String),
    /// Another operation is in progress, or the outcome is unknown: check, and retry.
    Unavailable(String),
    /// An internal error.
    Failed(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            full if full.is_full() => Refusal::DiskFull(full.to_string()),
            StoreError::Busy(why) | StoreError::Unknown(why) => Refusal::Unavailable(why),
            other => Refusal::Failed(other.to_string()),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Invalid(invalid) => invalid.fmt(f),
            Refusal::Forbidden(why) => f.write_str(why),
            Refusal::Absent(keep) => write!(f, "keep: there is no collection {:?}", keep.collection),
            Refusal::Quota(exceeded) => exceeded.fmt(f),
            Refusal::TooMany { running, .. } => write!(f, "{running} searches are running, the maximum"),
            Refusal::Busy { delay, .. } => {
                write!(f, "running searches wait {} ms for a processor", delay.as_millis())
            }
            Refusal::Early { retry } => {
                write!(f, "the same request was refused before: retry in {} ms", retry.as_millis())
            }
            Refusal::TooManySaved { most } => write!(f, "there are {most} saved searches, the maximum"),
            Refusal::DiskFull(why) | Refusal::Unavailable(why) | Refusal::Failed(why) => f.write_str(why),
        }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Refusal {
        Refusal::Invalid(invalid)
    }
}
