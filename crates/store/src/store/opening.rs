//! Opens a data folder: each collection alone, so a damaged one does not stop the others.

use crate::collection::Collection;
use crate::error::StoreError;
use crate::recovery;
use crate::store::Inner;
use crate::store::damaged::{Damaged, RESTORED, RETRIED};
use crate::store::folder::{Standing, clear, names, standing};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

/// Collections of a bucket that are opened at a time: each waits for some eighty calls, most of them one after the other.
const OPENERS: usize = 8;

impl Inner {
    /// Opens every collection, and sets apart those that cannot be opened.
    pub(crate) fn open_all(&self) -> Result<(), StoreError> {
        if self.common.read_only {
            // What failed is set apart, and tried again with each refresh.
            return self.follow_all().map(drop);
        }
        self.for_each_of(self.there()?.into_iter(), |tenant, name| match self.open_one(tenant, name) {
            Ok(Some(collection)) => self.collections.insert(tenant, name, collection),
            Ok(None) => {}
            // One damaged collection must not keep the server from serving the others.
            Err(e) => drop(self.set_apart(tenant, name, &e)),
        });
        Ok(())
    }

    /// Does something for each collection, for several at a time where that pays.
    pub(super) fn for_each_of(
        &self,
        all: impl ExactSizeIterator<Item = (String, String)> + Send,
        act: impl Fn(&str, &str) + Sync,
    ) {
        let together = self.common.options.background && self.common.storage.is_shared();
        let openers = if together { OPENERS.min(all.len()) } else { 1 };
        let next = Mutex::new(all);
        // A call of its own: the lock is free while a collection is opened.
        let take = || next.lock().next();
        let work = || {
            while let Some((tenant, name)) = take() {
                act(&tenant, &name);
            }
        };
        std::thread::scope(|scope| {
            // Without a thread, or with fewer of them, the others open the rest.
            (1..openers).for_each(|_| drop(Builder::new().spawn_scoped(scope, work)));
            work();
        });
    }

    /// Collections that exist, by tenant and name, and remains of others.
    pub(crate) fn there(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        if let Some(registry) = self.common.storage.registry() {
            return registry.collections();
        }
        let (disk, tenants, mut there) = (self.common.seams.disk.as_ref(), self.root.join("tenants"), BTreeSet::new());
        for tenant in names(disk, &tenants)? {
            let of_tenant = names(disk, &tenants.join(&tenant))?;
            there.extend(of_tenant.into_iter().map(|name| (tenant.clone(), name)));
        }
        Ok(there)
    }

    /// Names of collections of a tenant that are there.
    pub(crate) fn names_of(&self, tenant: &str) -> Result<Vec<String>, StoreError> {
        match self.common.storage.registry() {
            Some(registry) => {
                let there = registry.collections()?.into_iter();
                Ok(there.filter(|(of, _)| of == tenant).map(|(_, name)| name).collect())
            }
            None => names(self.common.seams.disk.as_ref(), &self.root.join("tenants").join(tenant)),
        }
    }

    /// Opens a collection, or ends its removal. It is not listed yet.
    pub(super) fn open_one(&self, tenant: &str, name: &str) -> Result<Option<Arc<Collection>>, StoreError> {
        let disk = self.common.seams.disk.as_ref();
        let dir = self.partition_dir(tenant, name);
        if let Some(registry) = self.common.storage.registry() {
            return match self.common.storage_of(&dir).catalog.newest()? {
                Some(_) => self.open_made(tenant, name, &dir).map(Some),
                None => registry.clear(&dir).map(|()| None),
            };
        }
        let standing = match standing(disk, &dir)? {
            // A catalog elsewhere may know it.
            Standing::Empty if self.common.storage_of(&dir).catalog.newest()?.is_some() => Standing::Made,
            standing => standing,
        };
        match standing {
            Standing::Empty | Standing::Dropped => self.clear_leftovers(&dir).map(|()| None),
            // Never cleared: the files may be all that is left of acknowledged events.
            Standing::Lost(problem) => Err(StoreError::corrupt(&problem.path, problem.detail)),
            Standing::Made => self.open_made(tenant, name, &dir).map(Some),
        }
    }

    fn open_made(&self, tenant: &str, name: &str, dir: &Path) -> Result<Arc<Collection>, StoreError> {
        let partition = recovery::open(&self.common, dir)?;
        Ok(Collection::new(tenant, name, partition, self.wake.clone()))
    }

    /// Notes that a collection cannot be opened: from now on its name is taken and its files are left alone. In a bucket what may pass is tried
    /// again.
    pub(crate) fn set_apart(&self, tenant: &str, name: &str, error: &StoreError) -> Damaged {
        tracing::error!(%tenant, collection = %name, %error, "a collection could not be opened");
        let (mut damaged, at) = (Damaged::of(tenant, name, error), (tenant.to_owned(), name.to_owned()));
        if self.common.storage.registry().is_some() {
            match error {
                StoreError::NewerFormat { .. } => {}
                _ if error.may_pass() => damaged.cure = RETRIED.into(),
                _ => damaged.cure = RESTORED.into(),
            }
            // A store that only reads tries with each refresh.
            if !self.common.read_only {
                self.retry_later(at.clone(), error);
            }
        }
        self.damaged.lock().insert(at, damaged.clone());
        damaged
    }

    /// Completes an interrupted drop, or undoes an interrupted creation.
    fn clear_leftovers(&self, dir: &Path) -> Result<(), StoreError> {
        let disk = self.common.seams.disk.as_ref();
        if disk.list(dir).is_ok() {
            return clear(disk, dir);
        }
        match dir.parent() {
            // Other files in there are not ours.
            Some(collection) if disk.list(collection).is_ok_and(|names| names.is_empty()) => {
                disk.remove_dir(collection).map_err(StoreError::io("remove", collection))
            }
            _ => Ok(()),
        }
    }

    /// Prepares the folder for a new collection: it must hold nothing that could be one.
    pub(crate) fn make_room(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let at = (tenant.to_owned(), name.to_owned());
        if let Some(damaged) = self.damaged.lock().get(&at) {
            return Err(StoreError::Damaged(Box::new(damaged.clone())));
        }
        if let Some(registry) = self.common.storage.registry() {
            return registry.enroll(tenant, name);
        }
        let dir = self.partition_dir(tenant, name);
        match standing(self.common.seams.disk.as_ref(), &dir)? {
            Standing::Empty => Ok(()),
            Standing::Dropped => clear(self.common.seams.disk.as_ref(), &dir),
            // On disk but not open: another process may have created it since this store was opened.
            Standing::Made => Err(StoreError::Exists { tenant: at.0, name: at.1 }),
            Standing::Lost(problem) => {
                let error = StoreError::corrupt(&problem.path, problem.detail);
                Err(StoreError::Damaged(Box::new(self.set_apart(tenant, name, &error))))
            }
        }
    }
}
