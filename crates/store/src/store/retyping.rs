//! Gives a collection that was never written to another schema.
//!
//! Columns are identified by number, in the log and in segments, so a collection that holds any keeps its types.
//! Without any, the manifest is all there is: it is replaced atomically, and a crash leaves either schema.

use crate::collection::Collection;
use crate::error::StoreError;
use crate::expiry;
use crate::manifest::Manifest;
use crate::options::Settings;
use crate::store::making::mark_dropped;
use crate::store::{Inner, Store, partitions};
use meridian_model::Schema;
use std::sync::Arc;

/// Whether a collection got another schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retyped {
    /// It has the schema now.
    Done,
    /// It keeps its own, for this reason.
    Kept(&'static str),
}

impl Retyped {
    fn written(partition: &Collection) -> Retyped {
        Retyped::Kept(match partition.stats().events {
            0 => "its log and files may still hold the events that it had",
            _ => "it has events",
        })
    }
}

impl Store {
    /// Replaces schema and settings of a collection that was never written to. Nothing changes if the collection does
    /// not exist, was written to, has several partitions or is in a bucket. Holders of the collection find it gone, as
    /// after [`Store::drop_collection`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`], or the error of the disk. Then the collection is unchanged.
    pub fn retype(&self, tenant: &str, name: &str, schema: Schema, settings: Settings) -> Result<Retyped, StoreError> {
        schema.validate()?;
        expiry::check(&settings, &schema)?;
        partitions::check(&settings, &schema)?;
        let inner = &self.inner;
        inner.check_writable()?;
        if !self.renames() {
            return Ok(Retyped::Kept("it is in a bucket"));
        }
        // Held throughout, so that no other call removes or renames it meanwhile.
        let _changing = inner.changing.lock();
        inner.check_open()?;
        let Some(held) = inner.collections.get(tenant, name) else { return Ok(Retyped::Kept("it was removed")) };
        // With several partitions, a crash could leave some with each schema.
        let [partition] = &*held else { return Ok(Retyped::Kept("it has several partitions")) };
        settings.may_follow(&partition.settings())?;
        if partition.was_written() {
            return Ok(Retyped::written(partition));
        }
        if !inner.retype(partition, schema, settings)? {
            return Ok(Retyped::written(partition));
        }
        mark_dropped(&held);
        Ok(Retyped::Done)
    }
}

impl Inner {
    /// Does it, unless a write has come before it; returns whether it was done.
    fn retype(&self, partition: &Arc<Collection>, schema: Schema, settings: Settings) -> Result<bool, StoreError> {
        let (tenant, name) = (partition.tenant(), partition.name());
        let mut retyped = partition.close(false).map(|()| false);
        {
            let mut core = partition.core.lock_to_commit();
            // From here on nothing is logged: a write would have the columns of the former schema.
            (core.refuses, core.reopens) = (Some("the schema is being replaced: try again".to_owned()), true);
            // A write may have come since the first check.
            if retyped.is_ok() && !partition.was_written() {
                // A new creation time, so that anything remembered about the name does not apply.
                let created = self.common.seams.clock.now().max(core.manifest.created + 1);
                let replaced = Manifest { schema, settings, created, began: None, ..core.manifest.clone() };
                retyped = core.write_manifest(&replaced).map(|()| true).map_err(StoreError::from);
            }
        }
        // The new one, or after an error whichever is in place.
        let opened = self.reopen(tenant, name, name);
        let retyped = retyped?;
        opened.map(|()| retyped)
    }
}
