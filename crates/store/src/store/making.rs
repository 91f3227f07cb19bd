//! Creates and drops collections.

use crate::collection::Collection;
use crate::error::StoreError;
use crate::manifest::{FIRST_FILE, Manifest};
use crate::options::{Definition, Durability, Settings};
use crate::store::{Store, partitions};
use meridian_model::naming;
use meridian_model::schema::validate_name;
use meridian_model::{Invalid, Schema, SeqLayout};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Store {
    /// Checks what [`Store::create`] refuses whatever the folder holds: the name, the schema and the settings. So a
    /// caller can ask before it makes a folder.
    pub fn check_new(name: &str, schema: &Schema, settings: &Settings) -> Result<(), Invalid> {
        check_described(name, schema, settings)?;
        naming::check("collection", name, [])
    }

    /// Creates a collection. Returns its first partition.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] if the folder may hold a collection that lost its manifest,
    /// [`StoreError::Invalid`], or the error of the disk.
    pub fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        mut settings: Settings,
    ) -> Result<Arc<Collection>, StoreError> {
        validate_name("tenant", tenant)?;
        check_described(name, &schema, &settings)?;
        if self.is_ephemeral() {
            settings.durability = Durability::Ephemeral;
        }
        let inner = &self.inner;
        inner.check_writable()?;
        if inner.common.storage.registry().is_some() && settings.durability == Durability::Ephemeral {
            let detail = "a collection in a bucket is kept: leave the durability out";
            return Err(Invalid::field("durability", detail).into());
        }
        inner.check_first(tenant, name)?;
        // Held throughout, so that of two creations of one name the second finds the first. Queries do not take it.
        let _changing = inner.changing.lock();
        inner.check_open()?;
        if inner.collections.get(tenant, name).is_some() {
            return Err(StoreError::Exists { tenant: tenant.to_owned(), name: name.to_owned() });
        }
        naming::check("collection", name, inner.names_of(tenant)?.iter().map(String::as_str))?;
        inner.make_room(tenant, name, settings.partitions)?;
        let seq_layout = SeqLayout::of(usize::from(settings.partitions));
        let manifest = Manifest {
            tenant: tenant.to_owned(),
            collection: name.to_owned(),
            partition: 0,
            schema,
            settings,
            // Random, so that no client can choose ids whose hashes collide.
            seed: inner.common.seams.random.next_u64(),
            created: inner.common.seams.clock.now(),
            began: None,
            flushed: 0,
            dropped_seq: 0,
            next_file: FIRST_FILE,
            segments: Vec::new(),
            keys: Vec::new(),
            listed: Vec::new(),
            hidden: None,
            log: None,
            seq_layout,
            imported: None,
            making: false,
            copied: true,
        };
        let made = inner.make_partitions(&manifest)?;
        let first = made.first().cloned().ok_or(StoreError::Closed)?;
        inner.collections.insert(tenant, name, made);
        Ok(first)
    }

    /// Removes a collection and its files. Returns true if it existed. Open snapshots stay readable.
    ///
    /// Crash-safe: the manifest is renamed first, and a folder with the new name is cleared at the next start.
    pub fn drop_collection(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        self.drop_if(tenant, name, |_| Ok(()))
    }

    /// Removes a collection of one partition that was created then, has this definition, and was never written to.
    /// Returns true if there was a collection of this name.
    ///
    /// # Errors
    /// [`StoreError::Changed`] for any other collection, which stays as it is. Else as [`Store::drop_collection`].
    pub fn drop_unwritten(
        &self,
        tenant: &str,
        name: &str,
        created: i64,
        seen: &Definition,
    ) -> Result<bool, StoreError> {
        self.drop_if(tenant, name, |partitions| end_unwritten(partitions, created, seen))
    }

    /// Removes a collection, unless `condition` fails.
    fn drop_if(
        &self,
        tenant: &str,
        name: &str,
        condition: impl FnOnce(&[Arc<Collection>]) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let inner = &self.inner;
        inner.check_writable()?;
        inner.check_first(tenant, name)?;
        let _changing = inner.changing.lock();
        inner.check_open()?;
        if let Some(damaged) = self.why_damaged(tenant, name) {
            // A damaged collection may still be repaired: dropping it would delete what a repair needs.
            return Err(StoreError::Damaged(Box::new(damaged)));
        }
        let Some(collection) = inner.collections.get(tenant, name) else { return Ok(false) };
        condition(&collection)?;
        inner.collections.remove(tenant, name);
        // Closed first: a running job must not write into a folder that is being cleared.
        for partition in collection.iter() {
            partition.close(false)?;
        }
        let dir = inner.dir_of(tenant, name, 0);
        if inner.common.storage.registry().is_some() {
            // The first commit is the drop: from here on the collection does not exist for any process.
            for partition in collection.iter() {
                let ended = partition.core.lock_to_commit().catalog.end();
                // The remains of the other partitions reach no reader, and are cleared whether or not this is recorded.
                if let Err(failed) = ended
                    && partition.partition() == 0
                {
                    let error = StoreError::from(failed);
                    // Never absent by mistake: it is reopened, or found to be gone.
                    inner.set_apart(tenant, name, &error);
                    return Err(error);
                }
            }
            mark_dropped(&collection);
            inner.clear_dropped(tenant, name)?;
            return Ok(true);
        }
        inner.end_first(&dir)?;
        mark_dropped(&collection);
        inner.clear_dropped(tenant, name)?;
        let disk = inner.common.seams.disk.as_ref();
        // A removed tenant leaves nothing behind. If its empty folder stays nevertheless, it is reused.
        let tenants = inner.root.join("tenants");
        if disk.remove_dir(&tenants.join(tenant)).is_ok() {
            disk.sync_dir(&tenants).map_err(StoreError::io("sync", &tenants))?;
        }
        Ok(true)
    }
}

/// Lets a collection take no more writes, if it was created then, has this definition, and was never written to.
///
/// # Errors
/// [`StoreError::Changed`] if it is another one.
fn end_unwritten(partitions: &[Arc<Collection>], created: i64, seen: &Definition) -> Result<(), StoreError> {
    // Of several partitions, some may be at other processes, which take writes meanwhile.
    let [partition] = partitions else { return Err(StoreError::Changed) };
    // Writes are committed under this lock: each has come before, or finds the refusal.
    let mut core = partition.core.lock();
    let Manifest { schema, settings, created: made, .. } = &core.manifest;
    let is_seen = *made == created && *schema == seen.schema && *settings == seen.settings;
    let is_whole = settings.partitions == 1;
    // After a fault its log may hold a write that is not known here.
    if !is_seen || !is_whole || core.position != 0 || core.refuses.is_some() {
        return Err(StoreError::Changed);
    }
    (core.refuses, core.reopens) = (Some("the collection is being removed: try again".to_owned()), true);
    Ok(())
}

/// Checks the description of a new collection, without the names of the others.
fn check_described(name: &str, schema: &Schema, settings: &Settings) -> Result<(), Invalid> {
    validate_name("collection", name)?;
    schema.validate()?;
    if settings.durability == Durability::Replicated {
        let detail = "replicated collections need a cluster: this server keeps ephemeral and local ones";
        return Err(Invalid::field("durability", detail));
    }
    crate::expiry::check(settings, schema)?;
    partitions::check(settings, schema)
}

/// Marks the collection as gone for its holders, and not only closed here.
pub(super) fn mark_dropped(partitions: &[Arc<Collection>]) {
    partitions.iter().for_each(|partition| partition.dropped.store(true, Ordering::Release));
}
