//! Small records that a server keeps beside its collections.

use meridian_store::StoreError;
use std::fmt::Debug;

/// Records of one kind under names of letters, digits, `-` and `_`. They may hold secrets.
///
/// A record is replaced as a whole, durably: after a crash it is the old one or the new one. One that is kept twice is
/// mended from its copy when it turns out to be damaged or missing.
pub trait Records: Debug + Send + Sync {
    /// Names of all records, sorted.
    fn names(&self) -> Result<Vec<String>, StoreError>;

    /// Names of the records that are kept twice, sorted.
    fn copied(&self) -> Result<Vec<String>, StoreError>;

    /// A record; `None` if there is none of this name.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it is not what was written, [`StoreError::NewerFormat`], or what the disk said.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Names of the records that were mended since the start, and what was wrong.
    fn mended(&self) -> Vec<(String, String)>;

    /// Writes or replaces a record.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Writes or replaces a record and its copy.
    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Makes the copy of a record that has none, if there still is such a record.
    fn copy(&self, name: &str) -> Result<(), StoreError>;

    /// Removes a record and its copy; one that is not there is well.
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
