//! Small records that a server stores beside its collections.

use meridian_store::StoreError;
use std::fmt::Debug;

/// Records of one kind under names of letters, digits, `-` and `_`. They may hold secrets.
///
/// A record is replaced as a whole, durably: after a crash it is the old one or the new one. A record with a copy is
/// restored from it when it turns out to be damaged or missing.
pub trait Records: Debug + Send + Sync {
    /// Names of all records, sorted.
    fn names(&self) -> Result<Vec<String>, StoreError>;

    /// Names of the records that have a copy, sorted.
    fn copied(&self) -> Result<Vec<String>, StoreError>;

    /// A record; `None` if there is none of this name.
    ///
    /// [`StoreError::Corrupt`] if it is not what was written, [`StoreError::NewerFormat`], or the disk's error.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Names of the records that were restored since the start, and what was wrong.
    fn mended(&self) -> Vec<(String, String)>;

    /// Writes or replaces a record.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Writes or replaces a record and its copy.
    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Adds the copy of a record that has none, if the record still exists.
    fn copy(&self, name: &str) -> Result<(), StoreError>;

    /// Removes a record and its copy; it is no error if there is none.
    fn remove(&self, name: &str) -> Result<(), StoreError>;
}

impl Records for meridian_store::Records {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.names()
    }

    fn copied(&self) -> Result<Vec<String>, StoreError> {
        self.copied()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(name)
    }

    fn mended(&self) -> Vec<(String, String)> {
        self.mended()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.put(name, content)
    }

    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.put_twice(name, content)
    }

    fn copy(&self, name: &str) -> Result<(), StoreError> {
        self.copy(name)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.remove(name)
    }
}
