//! Partial answers: what one partition of a collection says to a question.
//!
//! A question is asked of each partition (`of`). What they say travels as Arrow record batches (`to_arrow`,
//! `from_arrow`), is merged in the order of the partitions (`merge`) and becomes an answer once (`finish`).
//! Only there averages, empty windows, simplified lines and drawn tiles are made. The answer of a single
//! snapshot is that of its one part, so there is one path.
//!
//! Merged counts, mins, maxes and integer sums are exact, float sums within 1e-12 of the sum of magnitudes. Rows come
//! with their [`Cursor`](crate::Cursor)s, are merged by these ([`MergedRows`]), and page as the rows of one snapshot do.
//!
//! Every record batch names its kind and version. Another version is refused, and whatever else a batch holds is
//! checked: hostile bytes lead to a [`WireError`], never to a panic.

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

/// Why a question or a partial answer could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It is of another version, or of another kind.
    #[error("found {found}, expected {expected}: the servers must be of versions that go together")]
    Version {
        /// The value found.
        found: String,
        /// The version that this server reads.
        expected: String,
    },
    /// It does not hold what its version promises.
    #[error("{what} is malformed: {detail}")]
    Malformed {
        /// Which kind of message.
        what: &'static str,
        /// The error in it.
        detail: String,
    },
    /// It is sound, but asks for something that is refused.
    #[error(transparent)]
    Refused(#[from] QueryError),
}

impl From<Invalid> for WireError {
    fn from(invalid: Invalid) -> WireError {
        WireError::Refused(invalid.into())
    }
}
