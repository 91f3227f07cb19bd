//! Small records that a server stores beside its collections, or shares with the other servers of its cluster.

use crate::audit::AuditLog;
use meridian_model::{RecordChange, RecordNews};
use meridian_store::{ControlPlane, SharedRecords, Store, StoreError};
use std::fmt::Debug;
use std::sync::Arc;

/// Where the records and the audit log of a server are.
pub trait RecordSource: Debug + Send + Sync {
    /// The records of one kind; there may be none yet.
    fn records(&self, kind: &'static str) -> Arc<dyn Records>;

    /// The log of administrative acts.
    fn audit(&self) -> Arc<dyn AuditLog>;
}

impl RecordSource for Store {
    fn records(&self, kind: &'static str) -> Arc<dyn Records> {
        Arc::new(self.records(kind))
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        self.audit().clone()
    }
}

impl RecordSource for ControlPlane {
    fn records(&self, kind: &'static str) -> Arc<dyn Records> {
        self.records(kind)
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        self.audit().clone()
    }
}

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

    /// Whether other processes change them too.
    fn is_shared(&self) -> bool;

    /// What was changed after a version; `None` where that is the newest. Version 0 is before all. Records that nobody else changes have
    /// version 1 from then on.
    fn since(&self, version: u64) -> Result<Option<RecordNews>, StoreError>;

    /// Makes changes, written twice where records have copies, and returns the version that has them. `None`: the records were changed after
    /// `follows`, and nothing was done. Shared records get all of the changes or none; others get them one after the other.
    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError>;
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
    fn is_shared(&self) -> bool {
        false
    }

    fn since(&self, version: u64) -> Result<Option<RecordNews>, StoreError> {
        if version > 0 {
            return Ok(None);
        }
        let put = |name: String| -> Result<Option<RecordChange>, StoreError> {
            Ok(self.get(&name)?.map(|content| RecordChange::put(name, content)))
        };
        let changes = self.names()?.into_iter().filter_map(|name| put(name).transpose());
        Ok(Some(RecordNews { version: 1, whole: true, changes: changes.collect::<Result<_, _>>()? }))
    }

    fn commit(&self, _: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        for RecordChange { name, content } in changes {
            match content {
                Some(content) => self.put_twice(name, content)?,
                None => self.remove(name)?,
            }
        }
        Ok(Some(1))
    }
}

/// There are no copies in a bucket, which keeps what it has by its own means. So every record counts as copied.
impl Records for SharedRecords {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.names()
    }

    fn copied(&self) -> Result<Vec<String>, StoreError> {
        self.names()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(name)
    }

    fn mended(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.put(name, content)
    }

    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.put(name, content)
    }

    fn copy(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.remove(name)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn since(&self, version: u64) -> Result<Option<RecordNews>, StoreError> {
        self.since(version)
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        self.commit(follows, changes)
    }
}
