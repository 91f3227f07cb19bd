//! Partial results: the contribution of one partition to a query.
//!
//! A query runs on each partition (`of`). The partial results travel as Arrow record batches (`to_arrow`,
//! `from_arrow`), are merged in partition order (`merge`), and are finished once (`finish`). Only that step computes
//! averages, empty windows, simplified lines and drawn tiles. A single snapshot counts as one partition, so there is
//! one code path.
//!
//! Merged counts, mins, maxes and integer sums are exact, float sums within 1e-12 of the sum of magnitudes. Rows come
//! with their [`Cursor`](crate::Cursor)s, are merged by these ([`MergedRows`]), and are paged like the rows of one
//! snapshot.
//!
//! Every record batch names its kind and version. Another version is rejected, and all other content is validated:
//! hostile bytes lead to a [`WireError`], never to a panic.

mod any;
mod count;
mod envelope;
mod grid;
mod groups;
mod merge;
mod near;
mod passages;
mod rows;
mod tile;
mod track;

pub use any::Partial;
pub use count::PartialCount;
pub use grid::PartialGrid;
pub use groups::PartialGroups;
pub use merge::{MergedRows, RowStream};
pub use near::PartialNear;
pub use passages::PartialPassages;
pub use rows::{PartRows, PartialRows, RowsSummary};
pub use tile::{Drawing, PartialTile};
pub use track::PartialTrack;

use crate::error::QueryError;
use meridian_model::Invalid;

/// Why a query or a partial result could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It has another version or kind.
    #[error("found {found}, expected {expected}: the servers must be of versions that go together")]
    Version {
        /// The value found.
        found: String,
        /// The version that this server reads.
        expected: String,
    },
    /// It does not fulfil its version's format.
    #[error("{what} is malformed: {detail}")]
    Malformed {
        /// The kind of message.
        what: &'static str,
        /// The error in it.
        detail: String,
    },
    /// It is well formed, but requests something that is refused.
    #[error(transparent)]
    Refused(#[from] QueryError),
}

impl From<Invalid> for WireError {
    fn from(invalid: Invalid) -> WireError {
        WireError::Refused(invalid.into())
    }
}
