//! The records that hold tokens, tenants, users and sessions.

use meridian_admission::identity::{Vault, VaultError};
use meridian_backend::{Records, StoreError};
use meridian_model::{RecordChange, RecordChanges};
use parking_lot::Mutex;
use std::sync::Arc;

/// The kind of the records.
pub const RECORDS: &str = "access";

/// The vault of a server.
pub struct RecordVault {
    records: Arc<dyn Records>,
    /// The records that were left out when all were read, and why.
    damaged: Mutex<Vec<(String, String)>>,
}

impl Vault for RecordVault {
    fn since(&self, version: u64) -> Result<Option<RecordChanges>, VaultError> {
        match self.records.is_shared() || version > 0 {
            true => self.records.since(version).map_err(|error| self.error_of(error)),
            false => self.all().map(Some),
        }
    }

    fn damaged(&self) -> Vec<(String, String)> {
        self.damaged.lock().clone()
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, VaultError> {
        self.records.commit(follows, changes).map_err(|error| self.error_of(error))
    }

    fn is_shared(&self) -> bool {
        self.records.is_shared()
    }
}

impl RecordVault {
    /// Creates the vault over these records.
    pub fn new(records: Arc<dyn Records>) -> RecordVault {
        RecordVault { records, damaged: Mutex::default() }
    }

    /// Reads all records of a folder, each of which is a file of its own. Leaves out damaged ones.
    fn all(&self) -> Result<RecordChanges, VaultError> {
        let (mut changes, mut damaged) = (Vec::new(), Vec::new());
        for name in self.records.names().map_err(|error| self.error_of(error))? {
            match self.records.get(&name) {
                Ok(Some(content)) => changes.push(RecordChange::put(name, content)),
                // Listed for its copy, which cannot be read.
                Ok(None) => damaged.push((name, "it is missing, and its copy cannot be read".to_owned())),
                Err(error @ StoreError::Corrupt { .. }) => match self.error_of(error) {
                    VaultError::Failed(why) | VaultError::Unknown(why) => damaged.push((name, why)),
                },
                Err(error) => return Err(self.error_of(error)),
            }
        }
        *self.damaged.lock() = damaged;
        Ok(RecordChanges { version: 1, whole: true, changes })
    }

    fn error_of(&self, error: StoreError) -> VaultError {
        match error {
            StoreError::Unknown(why) => VaultError::Unknown(why),
            damaged @ StoreError::Corrupt { .. } => {
                let cure = match self.records.is_shared() {
                    true => "put the object back from a copy of the bucket",
                    false => {
                        "restore a backup, or remove this file and its copy in `access-copy`, which ends that token, user, tenant or session"
                    }
                };
                VaultError::Failed(format!("{damaged}; {cure}"))
            }
            other => VaultError::Failed(other.to_string()),
        }
    }
}
