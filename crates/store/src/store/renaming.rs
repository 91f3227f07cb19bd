//! Renames a collection of a data folder.
//!
//! The name of a collection is that of its folder, and no file in it depends on the name. So one rename of the folder
//! renames all partitions, and a crash leaves the collection under one of the two names. A manifest keeps the former
//! name until the next one replaces it.

use crate::collection::Collection;
use crate::error::StoreError;
use crate::store::making::mark_dropped;
use crate::store::partitions::Partitions;
use crate::store::{Inner, Store};
use meridian_model::Invalid;
use meridian_model::naming;
use meridian_model::schema::validate_name;
use std::sync::Arc;

/// Why a collection in a bucket is not renamed.
pub const KEEPS_NAME: &str = "a collection in a bucket keeps its name: export it and load it under the new one";

impl Store {
    /// Returns true if collections can be renamed: not in a bucket, where the name is part of every object's name.
    pub fn renames(&self) -> bool {
        let storage = &self.inner.common.storage;
        storage.registry().is_none() && !storage.is_shared()
    }

    /// Renames a collection. Returns true if it existed. Open snapshots stay readable. Holders of the collection find
    /// it gone, as after [`Store::drop_collection`].
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] for either name, [`StoreError::Invalid`] for the new one or in a
    /// bucket, or the error of the disk. Then the collection is still served, under the name of its folder.
    pub fn rename(&self, tenant: &str, name: &str, new: &str) -> Result<bool, StoreError> {
        validate_name("collection", new)?;
        let inner = &self.inner;
        inner.check_writable()?;
        if !self.renames() {
            return Err(Invalid::new(KEEPS_NAME).into());
        }
        // Held throughout, so that no collection of either name is created meanwhile.
        let _changing = inner.changing.lock();
        inner.check_open()?;
        if let Some(damaged) = self.why_damaged(tenant, name) {
            return Err(StoreError::Damaged(Box::new(damaged)));
        }
        let Some(partitions) = inner.collections.get(tenant, name) else { return Ok(false) };
        if inner.collections.get(tenant, new).is_some() {
            return Err(StoreError::Exists { tenant: tenant.to_owned(), name: new.to_owned() });
        }
        let mut others = inner.names_of(tenant)?;
        others.retain(|other| other != name);
        naming::check("collection", new, others.iter().map(String::as_str))?;
        inner.make_room(tenant, new, partitions.len() as u16)?;
        inner.clear_leftovers(tenant, new)?;
        match partitions.iter().all(|partition| partition.is_durable()) {
            true => inner.rename_durable(tenant, (name, new), &partitions),
            false => inner.rename_ephemeral(tenant, (name, new), &partitions),
        }
        .map(|()| true)
    }
}

impl Inner {
    /// Renames a collection that is intact on disk: it is closed, and reopened under the name of its folder.
    fn rename_durable(
        &self,
        tenant: &str,
        (name, new): (&str, &str),
        partitions: &Partitions,
    ) -> Result<(), StoreError> {
        // Most of the work is done while it is still written to. If that fails, nothing has changed.
        let sound = |partition: &&Arc<Collection>| partition.state().refuses.is_none();
        partitions.iter().filter(sound).try_for_each(|partition| partition.flush())?;
        let (mut folder, mut closed) = (name, Ok(()));
        for partition in partitions.iter() {
            // Later writes are in its log.
            closed = closed.and(partition.close(false));
            // From here on nothing is logged: a write logged now would be missing where the log is reread. Holders
            // cannot change it either, which could write into a folder that another collection has next.
            let mut core = partition.core.lock();
            (core.refuses, core.reopens) = (Some("the collection is being renamed: try again".to_owned()), true);
        }
        let moved = closed.and_then(|()| self.move_folder(tenant, (name, new), &mut folder));
        // Until here it is read under its old name, and from here on under the new one.
        let opened = self.reopen(tenant, name, folder);
        if folder == new {
            mark_dropped(partitions);
        }
        moved.and(opened)
    }

    /// Renames a collection whose events are only in memory: they stay where they are.
    fn rename_ephemeral(
        &self,
        tenant: &str,
        (name, new): (&str, &str),
        partitions: &Partitions,
    ) -> Result<(), StoreError> {
        let mut folder = name;
        let moved = self.move_folder(tenant, (name, new), &mut folder);
        if folder == new {
            let renamed = partitions.iter().map(|partition| {
                let dir = self.dir_of(tenant, new, partition.partition());
                partition.renamed(new, self.common.storage_of(&dir).catalog)
            });
            self.collections.replace(tenant, name, new, renamed.collect());
            mark_dropped(partitions);
        }
        moved
    }

    /// Renames the folder of a collection, durably. `folder` is the name that it has from then on, also after an error.
    fn move_folder<'a>(
        &self,
        tenant: &str,
        (name, new): (&'a str, &'a str),
        folder: &mut &'a str,
    ) -> Result<(), StoreError> {
        let (disk, above) = (self.common.seams.disk.as_ref(), self.root.join("tenants").join(tenant));
        let from = above.join(name);
        disk.rename(&from, &above.join(new)).map_err(StoreError::io("rename", &from))?;
        *folder = new;
        disk.sync_dir(&above).map_err(StoreError::io("sync", &above))
    }
}
