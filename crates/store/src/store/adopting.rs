//! Partitions whose collection is made and dropped by another process. The owner of the first partition
//! decides. The owners of the others follow once they are asked.
//!
//! Nothing depends on when that is. A partition that is not taken up yet has acknowledged no write. One whose collection was dropped is never
//! asked for, as each question begins with the first partition.

use super::making::mark_dropped;
use super::{Inner, Store};
use crate::collection::Collection;
use crate::error::StoreError;
use std::sync::Arc;

impl Store {
    /// Follows the first partition of a collection. Of a collection that was made since, it opens the
    /// partitions that this process may own. Of a dropped one it closes them. Nothing where all partitions
    /// have one owner.
    ///
    /// # Errors
    /// Errors of the bucket, or what is damaged. Then everything stays as it was.
    pub fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let inner = &self.inner;
        if inner.common.read_only {
            return Ok(());
        }
        let Some(registry) = inner.common.storage.registry() else { return Ok(()) };
        let _changing = inner.changing.lock();
        inner.check_open()?;
        if inner.damaged.lock().contains_key(&(tenant.to_owned(), name.to_owned())) {
            // It is tried again by itself, or has to be put back.
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
                // No process may write to them any more, and none reads what they would flush.
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

    /// A partition of the collection of this name, if this store has it.
    pub fn partition(&self, tenant: &str, name: &str, partition: u32) -> Option<Arc<Collection>> {
        self.partitions(tenant, name)?.iter().find(|one| one.partition() == partition).cloned()
    }
}

impl Inner {
    /// Whether this process makes and drops a collection: whether it may own its first partition.
    pub(super) fn check_first(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        match self.common.has(tenant, name, 0) {
            true => Ok(()),
            false => Err(StoreError::Busy(format!(
                "another process owns the first partition of {name}: it makes and drops it"
            ))),
        }
    }
}
