//! Partitions whose collection another process creates and drops. The owner of the first partition decides, and the
//! owners of the others follow when asked.
//!
//! No step depends on when that happens. A partition that is not adopted yet has acknowledged no write. One whose
//! collection was dropped is never accessed, because each query begins with the first partition.

use super::making::mark_dropped;
use super::{Inner, Store};
use crate::collection::Collection;
use crate::error::StoreError;
use std::sync::Arc;

impl Store {
    /// Follows the first partition of a collection. If the collection was created meanwhile, opens the partitions that
    /// this process may own; if it was dropped, closes them. Does nothing if all partitions have one owner.
    ///
    /// # Errors
    /// Errors of the bucket, or damage. Then nothing changes.
    pub fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let inner = &self.inner;
        if inner.common.read_only {
            return Ok(());
        }
        let Some(registry) = inner.common.storage.registry() else { return Ok(()) };
        let _changing = inner.changing.lock();
        inner.check_open()?;
        if inner.damaged.lock().contains_key(&(tenant.to_owned(), name.to_owned())) {
            // It is retried automatically, or has to be restored.
            return Ok(());
        }
        let there = registry.find(tenant, name)?;
        let first = match there {
            true => inner.common.storage_of(&inner.dir_of(tenant, name, 0)).catalog.newest()?,
            false => None,
        };
        let first = first.map(|newest| newest.manifest);
        let open = inner.collections.get(tenant, name);
        let is_same = |open: &[Arc<Collection>]| {
            first.as_ref().is_some_and(|first| open.first().is_some_and(|one| one.created() == first.created))
        };
        match &open {
            Some(open) if is_same(open) => return Ok(()),
            Some(open) => {
                inner.collections.remove(tenant, name);
                // No process may write to them any more, and none would read what they flush.
                mark_dropped(open);
                open.iter().try_for_each(|partition| partition.close(false))?;
            }
            None => {}
        }
        if let Some(opened) = first.map(|first| inner.open_made(tenant, name, first)).transpose()?.flatten() {
            inner.collections.insert(tenant, name, opened);
        }
        Ok(())
    }

    /// Returns a partition of the collection of this name, if this store has it.
    pub fn partition(&self, tenant: &str, name: &str, partition: u32) -> Option<Arc<Collection>> {
        self.partitions(tenant, name)?.iter().find(|one| one.partition() == partition).cloned()
    }
}

impl Inner {
    /// Checks that this process creates and drops the collection, which means that it may own its first partition.
    pub(super) fn check_first(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        match self.common.has(tenant, name, 0) {
            true => Ok(()),
            false => Err(StoreError::Busy(format!(
                "another process owns the first partition of {name}: it makes and drops it"
            ))),
        }
    }
}
