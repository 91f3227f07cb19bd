//! A server's collections.

use crate::audit::AuditLog;
use crate::collection::Collection;
use crate::operation::Operation;
use crate::records::{BackupOptions, Records};
use meridian_model::{Invalid, Schema, Subscriber};
use meridian_store::{Backup, Damaged, Definition, Flusher, KEEPS_NAME, Retyped, Settings, StoreError};
use std::io::Write;
use std::sync::Arc;

/// The collections of a server, by tenant and name.
pub trait Backend: Operation + Flusher {
    /// Returns the collection with this name; `None` if it does not exist or is damaged. Returns at once.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the server that has the collections cannot be reached, here and below.
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError>;

    /// Returns the collections of a tenant, ordered by name. Returns at once.
    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError>;

    /// Returns the collections of a tenant that cannot be opened, ordered by name: neither absent nor served. Returns
    /// at once.
    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError>;

    /// Returns why the collection with this name cannot be opened; `None` if it can, or does not exist. Returns at
    /// once.
    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError>;

    /// Returns the collection with this name; `None` only if it does not exist. Returns at once.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it cannot be opened.
    fn existing(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        found(|| self.collection(tenant, name), || self.why_damaged(tenant, name))
    }

    /// Creates a collection.
    ///
    /// [`StoreError::Exists`], [`StoreError::Damaged`] if the name belongs to something that may hold events,
    /// [`StoreError::Invalid`], or the disk's error.
    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError>;

    /// Removes a collection and its events; returns whether it existed. Running queries complete undisturbed.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or the disk's error.
    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError>;

    /// Removes a collection of one partition that was created then, has this definition, and was never written to;
    /// returns whether there was one of this name. No write comes in between.
    ///
    /// # Errors
    /// [`StoreError::Changed`] for any other collection, which stays. Else as [`Backend::remove`].
    fn remove_unwritten(&self, tenant: &str, name: &str, created: i64, seen: &Definition) -> Result<bool, StoreError>;

    /// Returns true if collections can be renamed, which is impossible in a bucket. Returns at once.
    fn renames(&self) -> bool {
        false
    }

    /// Renames a collection; returns whether it existed. Running queries complete undisturbed.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] for either name, [`StoreError::Invalid`] for the new name or if
    /// renaming is impossible, or the disk's error.
    fn rename(&self, tenant: &str, name: &str, new: &str) -> Result<bool, StoreError> {
        let _ = (tenant, name, new);
        Err(Invalid::new(KEEPS_NAME).into())
    }

    /// Replaces schema and settings of a collection that was never written to. Only if this process holds it, in a
    /// single partition.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], or the disk's error.
    fn retype(&self, tenant: &str, name: &str, schema: Schema, settings: Settings) -> Result<Retyped, StoreError> {
        let _ = (tenant, name, schema, settings);
        Ok(Retyped::Kept("another process holds it"))
    }

    /// Adopts a collection that the owner of its first partition has created or dropped, if this process has other
    /// partitions of it.
    ///
    /// # Errors
    /// The error of the store.
    fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let _ = (tenant, name);
        Ok(())
    }

    /// Notifies a subscriber of every write from now on, in any collection.
    fn subscribe(&self, subscriber: Arc<dyn Subscriber>);

    /// Returns the small records of one kind, stored beside the collections; there may be none yet.
    fn records(&self, kind: &'static str) -> Arc<dyn Records>;

    /// Returns the log of administrative acts.
    fn audit(&self) -> Arc<dyn AuditLog>;

    /// Writes a copy to `out` as a tar for a backup folder. Reads and writes continue meanwhile.
    ///
    /// A file that cannot be read completely, an error of the disk or of `out`, [`StoreError::Closed`] once
    /// `cancelled` returns true.
    fn backup(&self, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError>;
}

/// Finds what is either open or damaged. A collection that can be opened again is listed as open before it is no longer
/// listed as damaged. So one that neither lookup finds may have been opened between them, and is looked up once more.
fn found<T>(
    open: impl Fn() -> Result<Option<T>, StoreError>,
    why_damaged: impl Fn() -> Result<Option<Damaged>, StoreError>,
) -> Result<Option<T>, StoreError> {
    if let Some(found) = open()? {
        return Ok(Some(found));
    }
    match why_damaged()? {
        Some(damaged) => Err(StoreError::Damaged(Box::new(damaged))),
        None => open(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_collection_that_opens_between_two_lookups_is_found() {
        let is_open = Cell::new(false);
        let look = || Ok(is_open.get().then_some("ships"));
        assert!(matches!(found(look, || Ok(None)), Ok(None)));
        let opens = || {
            is_open.set(true);
            Ok(None)
        };
        assert!(matches!(found(look, opens), Ok(Some("ships"))));
    }
}
