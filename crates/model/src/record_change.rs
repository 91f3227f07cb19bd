//! Changes of the records that servers keep beside collections.

/// A record that is written, replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    /// Its name.
    pub name: String,
    /// Its new content; `None` if it is removed.
    pub content: Option<Vec<u8>>,
}

impl RecordChange {
    /// Writes or replaces a record.
    pub fn put(name: impl Into<String>, content: impl Into<Vec<u8>>) -> RecordChange {
        RecordChange { name: name.into(), content: Some(content.into()) }
    }

    /// Removes a record.
    pub fn remove(name: impl Into<String>) -> RecordChange {
        RecordChange { name: name.into(), content: None }
    }
}

/// The changes of the records of one kind since a given version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChanges {
    /// The current version.
    pub version: u64,
    /// Whether `changes` lists every existing record, so that records not listed are gone.
    pub whole: bool,
    /// The changes in order.
    pub changes: Vec<RecordChange>,
}
