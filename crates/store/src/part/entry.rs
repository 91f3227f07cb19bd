//! A part with its dead rows, as held by a partition.

use super::Part;
use super::dead::DeadRows;
use std::sync::Arc;

/// A part and its dead rows, as of the newest snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) part: Arc<Part>,
    pub(crate) dead: Arc<DeadRows>,
    /// Rows that the view of mode `latest` does not show: dead rows, and rows that are not their object's newest. Empty
    /// in collections of mode `history`.
    pub(crate) hidden: Arc<DeadRows>,
}

impl Entry {
    /// Creates an entry from a part, its dead and its hidden rows.
    pub(crate) fn of(part: Part, dead: DeadRows, hidden: DeadRows) -> Entry {
        Entry { part: Arc::new(part), dead: Arc::new(dead), hidden: Arc::new(hidden) }
    }
}
