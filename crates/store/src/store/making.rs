//! Making and dropping collections.

use crate::catalog::disk::{DROPPED, MANIFEST};
use crate::catalog::manifest::{FIRST_FILE, Manifest};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::options::{Durability, Settings};
use crate::recovery;
use crate::store::folder::clear;
use crate::store::{Store, naming};
use meridian_model::schema::validate_name;
use meridian_model::seq::SeqLayout;
use meridian_model::{Invalid, Schema};
use std::sync::Arc;

impl Store {
    /// Makes a collection.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] where the folder may hold a collection that lost its manifest,
    /// [`StoreError::Invalid`], or what the disk said.
    pub fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        mut settings: Settings,
    ) -> Result<Arc<Collection>, StoreError> {
        validate_name("tenant", tenant)?;
        validate_name("collection", name)?;
        schema.validate()?;
        if settings.durability == Durability::Replicated {
            let detail = "replicated collections need a cluster: this server keeps ephemeral and local ones";
            return Err(Invalid::field("durability", detail).into());
        }
        crate::maintenance::expiry::check(&settings, &schema)?;
        if self.is_ephemeral() {
            settings.durability = Durability::Ephemeral;
        }
        let inner = &self.inner;
        inner.check_writable()?;
        if inner.common.storage.registry().is_some() && settings.durability == Durability::Ephemeral {
            let detail = "a collection in a bucket is kept: leave the durability out";
            return Err(Invalid::field("durability", detail).into());
        }
        // Held throughout, so that of two creations of one name the second finds the first. Queries do not take it.
        let _changing = inner.changing.lock();
        inner.check_open()?;
        let dir = inner.partition_dir(tenant, name);
        if inner.collections.get(tenant, name).is_some() {
            return Err(StoreError::Exists { tenant: tenant.to_owned(), name: name.to_owned() });
        }
        naming::check(name, &inner.names_of(tenant)?)?;
        inner.make_room(tenant, name)?;
        let manifest = Manifest {
            tenant: tenant.to_owned(),
            collection: name.to_owned(),
            partition: 0,
            schema,
            settings,
            // Random, so that no client can choose ids whose hashes collide.
            seed: inner.common.seams.random.next_u64(),
            created: inner.common.seams.clock.now(),
            flushed: 0,
            dropped_seq: 0,
            next_file: FIRST_FILE,
            segments: Vec::new(),
            keys: Vec::new(),
            listed: Vec::new(),
            hidden: None,
            log: None,
            seq_layout: SeqLayout::Embedded,
            copied: true,
        };
        let partition = recovery::create(&inner.common, &inner.root, &dir, &manifest)?;
        let collection = Collection::new(tenant, name, partition, inner.wake.clone());
        inner.collections.insert(tenant, name, collection.clone());
        Ok(collection)
    }

    /// Removes a collection and its files. Returns whether there was one. Open snapshots stay readable.
    ///
    /// Crash-safe: the manifest is renamed first, and a folder with the new name is cleared at the next start.
    pub fn drop_collection(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        let inner = &self.inner;
        inner.check_writable()?;
        let _changing = inner.changing.lock();
        inner.check_open()?;
        if let Some(damaged) = self.why_damaged(tenant, name) {
            // A damaged collection may still be repaired: dropping it would delete what a repair needs.
            return Err(StoreError::Damaged(Box::new(damaged)));
        }
        let Some(collection) = inner.collections.remove(tenant, name) else { return Ok(false) };
        // Closed first: a running job must not write into a folder that is being cleared.
        collection.close(false)?;
        let dir = inner.partition_dir(tenant, name);
        if let Some(registry) = inner.common.storage.registry() {
            // The commit is the drop: from here on there is no such collection, for any process.
            collection.core.lock().catalog.end()?;
            registry.clear(&dir)?;
            return Ok(true);
        }
        let disk = inner.common.seams.disk.as_ref();
        // The rename is the drop: from here on a crash leaves a folder that the next start clears.
        let (from, to) = (dir.join(MANIFEST), dir.join(DROPPED));
        disk.rename(&from, &to).map_err(StoreError::io("rename", &from))?;
        disk.sync_dir(&dir).map_err(StoreError::io("sync", &dir))?;
        clear(disk, &dir)?;
        // Nothing is left of a removed tenant. If its empty folder stays after all, it is used again.
        let tenants = inner.root.join("tenants");
        if disk.remove_dir(&tenants.join(tenant)).is_ok() {
            disk.sync_dir(&tenants).map_err(StoreError::io("sync", &tenants))?;
        }
        Ok(true)
    }
}
