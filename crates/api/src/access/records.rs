//! The records that hold tokens, tenants, users and sessions.

use meridian_admission::identity::{Vault, VaultError};
use meridian_backend::{Records, StoreError};
use meridian_model::{RecordChange, RecordNews};
use std::sync::Arc;

/// The kind of the records.
pub const RECORDS: &str = "access";

/// The vault of a server.
pub struct InRecords(pub Arc<dyn Records>);

impl Vault for InRecords {
    fn since(&self, version: u64) -> Result<Option<RecordNews>, VaultError> {
        self.0.since(version).map_err(|error| self.error_of(error))
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, VaultError> {
        self.0.commit(follows, changes).map_err(|error| self.error_of(error))
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }
}

impl InRecords {
    fn error_of(&self, error: StoreError) -> VaultError {
        match error {
            StoreError::Unknown(why) => VaultError::Unknown(why),
            // Without all of them the server would not know what was revoked, so it does not start.
            damaged @ StoreError::Corrupt { .. } => {
                let cure = match self.0.is_shared() {
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
