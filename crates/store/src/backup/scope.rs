//! The scope of a backup.

use super::seal::BackupKey;
use meridian_model::RecordPart;
use std::fmt;

/// Returns which part of a record a backup holds, by folder, name and content.
type PartOf = dyn Fn(&str, &str, &[u8]) -> RecordPart + Send + Sync;

/// The scope of a backup.
pub struct BackupScope {
    /// The only tenant whose collections are included; `None` for all.
    pub tenant: Option<String>,
    /// Decides on the records kept beside the collections.
    pub part_of: Box<PartOf>,
    /// Key that seals secrets; without one they are left out.
    pub key: Option<BackupKey>,
}

impl BackupScope {
    /// Includes all collections, and all records unchanged.
    pub fn everything() -> BackupScope {
        BackupScope { tenant: None, part_of: Box::new(|_, _, content| RecordPart::plain(content)), key: None }
    }

    /// Returns true if this tenant's collections are included.
    pub(super) fn takes(&self, tenant: &str) -> bool {
        self.tenant.as_ref().is_none_or(|only| only == tenant)
    }
}

impl fmt::Debug for BackupScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupScope").field("tenant", &self.tenant).field("key", &self.key).finish_non_exhaustive()
    }
}
