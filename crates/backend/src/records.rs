//! Small records that a server stores beside its collections, or shares with the other servers of its cluster.

use crate::audit::AuditLog;
use meridian_model::{Invalid, RecordChange, RecordChanges};
use meridian_store::{Backup, BackupScope, ControlPlane, Flusher, SharedRecords, Store, StoreError};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;

/// Location of the records and the audit log of a server.
pub trait RecordSource: Debug + Send + Sync {
    /// Returns the records of one kind; there may be none yet.
    fn records(&self, kind: &'static str) -> Arc<dyn Records>;

    /// Returns the log of administrative acts.
    fn audit(&self) -> Arc<dyn AuditLog>;

    /// Writes a copy of the records to `out`, and of the collections beside them, which `owner` flushes: see
    /// [`crate::Backend::backup`].
    ///
    /// [`StoreError::Invalid`] if the collections are elsewhere.
    fn backup(&self, owner: &dyn Flusher, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError> {
        let _ = (owner, what, out);
        let detail = "the records of this server are not beside its collections: ask the server that owns these";
        Err(Invalid::new(detail).into())
    }
}

/// The scope of a backup.
pub struct BackupOptions<'a> {
    /// The collections and records to include.
    pub scope: &'a BackupScope,
    /// Files to leave out (name, CRC32C).
    pub have: &'a BTreeMap<String, u32>,
    /// Returns true to stop the backup.
    pub cancelled: &'a dyn Fn() -> bool,
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

    fn backup(&self, owner: &dyn Flusher, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError> {
        ControlPlane::backup(self, owner, what.scope, what.have, out, what.cancelled)
    }
}

/// Records of one kind under names of letters, digits, `-` and `_`. They may hold secrets.
///
/// A record is replaced as a whole, durably: after a crash it is the old one or the new one. A record with a copy is
/// restored from it when it turns out to be damaged or missing.
pub trait Records: Debug + Send + Sync {
    /// Returns the names of all records, sorted.
    fn names(&self) -> Result<Vec<String>, StoreError>;

    /// Returns the names of the records that have a copy, sorted.
    fn copied(&self) -> Result<Vec<String>, StoreError>;

    /// Returns a record; `None` if there is none with this name.
    ///
    /// [`StoreError::Corrupt`] if it is not what was written, [`StoreError::NewerFormat`], or the disk's error.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the names of the records restored since the start, and what was wrong.
    fn mended(&self) -> Vec<(String, String)>;

    /// Writes or replaces a record.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Writes or replaces a record and its copy.
    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Adds the copy of a record that has none, if the record still exists.
    fn copy(&self, name: &str) -> Result<(), StoreError>;

    /// Removes a record and its copy; it is no error if there is none.
    fn remove(&self, name: &str) -> Result<(), StoreError>;

    /// Returns true if other processes change them too.
    fn is_shared(&self) -> bool;

    /// Returns the changes after a version; `None` if that is the newest. Version 0 precedes all changes. Records that
    /// only this process changes have version 1 from then on.
    fn since(&self, version: u64) -> Result<Option<RecordChanges>, StoreError>;

    /// Makes changes, written twice if records have copies, and returns the resulting version. `None`: the records were
    /// changed after `follows`, and nothing was done. On shared records the changes are atomic; on others they are made
    /// one by one.
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

    fn since(&self, version: u64) -> Result<Option<RecordChanges>, StoreError> {
        if version > 0 {
            return Ok(None);
        }
        let put = |name: String| -> Result<Option<RecordChange>, StoreError> {
            Ok(self.get(&name)?.map(|content| RecordChange::put(name, content)))
        };
        let changes = self.names()?.into_iter().filter_map(|name| put(name).transpose());
        Ok(Some(RecordChanges { version: 1, whole: true, changes: changes.collect::<Result<_, _>>()? }))
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

/// A bucket needs no copies, as it protects its objects itself. So every record counts as copied.
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

    fn since(&self, version: u64) -> Result<Option<RecordChanges>, StoreError> {
        self.since(version)
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        self.commit(follows, changes)
    }
}
