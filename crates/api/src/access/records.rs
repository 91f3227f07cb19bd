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
        self.0.since(version).map_err(error_of)
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, VaultError> {
        self.0.commit(follows, changes).map_err(error_of)
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }
}

fn error_of(error: StoreError) -> VaultError {
    match error {
        StoreError::Unknown(why) => VaultError::Unknown(why),
        other => VaultError::Failed(other.to_string()),
    }
}
