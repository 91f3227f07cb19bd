//! Changes of the records that servers keep beside collections.

/// A record that is written, replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    /// Its name.
    pub name: String,
    /// Its new content; `None`: it is removed.
    pub content: Option<Vec<u8>>,
}

impl RecordChange {
    /// A record is written or replaced.
    pub fn put(name: impl Into<String>, content: impl Into<Vec<u8>>) -> RecordChange {
        RecordChange { name: name.into(), content: Some(content.into()) }
    }

    /// A record is removed.
    pub fn remove(name: impl Into<String>) -> RecordChange {
        RecordChange { name: name.into(), content: None }
    }
}

/// The changes of the records of one kind since a version of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordNews {
    /// Their version now.
    pub version: u64,
    /// Whether `changes` are all records that there are: what is not among them is gone.
    pub whole: bool,
    /// The changes in order.
    pub changes: Vec<RecordChange>,
}
