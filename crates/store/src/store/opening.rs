//! Opens a data folder, each collection on its own, so that a damaged one does not stop the others.

use crate::catalog::disk::MANIFEST;
use crate::error::StoreError;
use crate::error::damaged::{Damaged, RESTORED, RETRIED};
use crate::manifest::Manifest;
use crate::options::PARTITIONS_MAX;
use crate::panics::contained_by_store;
use crate::seams::files::names;
use crate::store::Inner;
use crate::store::folder::{FolderState, standing};
use crate::store::partitions::{OPENERS, Partitions};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::thread::Builder;

impl Inner {
    /// Opens every collection, and sets aside those that cannot be opened.
    pub(crate) fn open_all(&self) -> Result<(), StoreError> {
        if self.common.read_only {
            // Failed ones are set aside, and retried with each refresh.
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

    /// Calls `act` for each collection, for several at a time if that pays off.
    pub(super) fn for_each_of(
        &self,
        all: impl ExactSizeIterator<Item = (String, String)> + Send,
        act: impl Fn(&str, &str) + Sync,
    ) {
        let together = self.common.options.background && self.common.storage.is_shared();
        let openers = if together { OPENERS.min(all.len()) } else { 1 };
        let next = Mutex::new(all);
        // In a closure, so that the lock is free while a collection is opened.
        let take = || next.lock().next();
        let work = || {
            while let Some((tenant, name)) = take() {
                act(&tenant, &name);
            }
        };
        std::thread::scope(|scope| {
            // Without a thread, or with fewer threads, the others open the rest.
            (1..openers).for_each(|_| drop(Builder::new().spawn_scoped(scope, work)));
            work();
        });
    }

    /// Returns the existing collections, by tenant and name, and the remains of others.
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

    /// Returns the names of a tenant's existing collections.
    pub(crate) fn names_of(&self, tenant: &str) -> Result<Vec<String>, StoreError> {
        match self.common.storage.registry() {
            Some(registry) => {
                let there = registry.collections()?.into_iter();
                Ok(there.filter(|(of, _)| of == tenant).map(|(_, name)| name).collect())
            }
            None => names(self.common.seams.disk.as_ref(), &self.root.join("tenants").join(tenant)),
        }
    }

    /// Reopens a closed collection in place of itself, from this folder. If it cannot be opened it is set aside: it is
    /// never absent.
    pub(crate) fn reopen(&self, tenant: &str, name: &str, folder: &str) -> Result<(), StoreError> {
        let opened = self.open_one(tenant, folder).and_then(|opened| opened.ok_or(StoreError::Closed));
        match opened {
            Ok(opened) => {
                self.collections.replace(tenant, name, folder, opened);
                Ok(())
            }
            Err(error) => {
                // Before its removal, so that at no time it is in neither map. A retry waits for the caller's lock.
                self.set_apart(tenant, folder, &error);
                self.collections.remove(tenant, name);
                Err(error)
            }
        }
    }

    /// Opens a collection, or completes its removal. It is not listed yet.
    pub(crate) fn open_one(&self, tenant: &str, name: &str) -> Result<Option<Partitions>, StoreError> {
        // A fault of the program that one collection meets must not keep others from being served.
        contained_by_store("recovery", || self.open_existing(tenant, name))
    }

    fn open_existing(&self, tenant: &str, name: &str) -> Result<Option<Partitions>, StoreError> {
        let disk = self.common.seams.disk.as_ref();
        let dir = self.dir_of(tenant, name, 0);
        if let Some(registry) = self.common.storage.registry() {
            return match self.common.storage_of(&dir).catalog.newest()? {
                Some(newest) => self.open_made(tenant, name, newest.manifest),
                // The owner of the first partition clears all.
                None if registry.has(tenant, name, 0) => registry.clear(&dir).map(|()| None),
                None => Ok(None),
            };
        }
        let standing = match standing(disk, &dir)? {
            // An external catalog may know it.
            FolderState::Empty if self.common.storage_of(&dir).catalog.newest()?.is_some() => FolderState::Made,
            standing => standing,
        };
        match standing {
            FolderState::Empty => {
                self.check_no_others(tenant, name)?;
                self.clear_leftovers(tenant, name).map(|()| None)
            }
            FolderState::Dropped => self.clear_dropped(tenant, name).map(|()| None),
            // Never cleared: the files may be all that is left of acknowledged events.
            FolderState::Lost(problem) => Err(StoreError::corrupt(&problem.path, problem.detail)),
            FolderState::Made => match self.common.storage_of(&dir).catalog.newest()? {
                Some(newest) => self.open_made(tenant, name, newest.manifest),
                None => Err(StoreError::corrupt(&dir.join(MANIFEST), "it is missing")),
            },
        }
    }

    /// Opens the partitions of a collection that this process may own, by the newest manifest of the first; `None` if
    /// there are none.
    pub(super) fn open_made(
        &self,
        tenant: &str,
        name: &str,
        first: Manifest,
    ) -> Result<Option<Partitions>, StoreError> {
        let partitions = first.settings.partitions;
        if !(1..=PARTITIONS_MAX).contains(&partitions) {
            let path = self.dir_of(tenant, name, 0).join(MANIFEST);
            return Err(StoreError::corrupt(&path, format!("it says that there are {partitions} partitions")));
        }
        let first = match first.making {
            true if self.common.has(tenant, name, 0) => self.complete_making(tenant, name, first)?,
            // The owner of the first partition does that, and this process's partitions are adopted when they are
            // requested.
            true => return Ok(None),
            false => first,
        };
        let opened = self.open_partitions(tenant, name, &first)?;
        Ok(Some(opened).filter(|opened| !opened.is_empty()))
    }

    /// Returns an error if a collection lacks its first partition but has others: these may hold events.
    fn check_no_others(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        for partition in self.others_there(tenant, name)? {
            let dir = self.dir_of(tenant, name, partition);
            if standing(self.common.seams.disk.as_ref(), &dir)? != FolderState::Empty {
                let detail = format!("it is missing, and there is {}", dir.display());
                return Err(StoreError::corrupt(&self.dir_of(tenant, name, 0).join(MANIFEST), detail));
            }
        }
        Ok(())
    }

    /// Records that a collection cannot be opened: from now on its name is taken and its files are left alone. In a
    /// bucket, a temporary failure is retried.
    pub(crate) fn set_apart(&self, tenant: &str, name: &str, error: &StoreError) -> Damaged {
        tracing::error!(%tenant, collection = %name, %error, "a collection could not be opened");
        let (mut damaged, at) = (Damaged::of(tenant, name, error), (tenant.to_owned(), name.to_owned()));
        if self.common.storage.registry().is_some() {
            match error {
                StoreError::NewerFormat { .. } => {}
                _ if error.may_pass() => damaged.cure = RETRIED.into(),
                _ => damaged.cure = RESTORED.into(),
            }
            // A read-only store retries with each refresh.
            if !self.common.read_only {
                self.retry_later(at.clone(), error);
            }
        }
        self.damaged.lock().insert(at, damaged.clone());
        damaged
    }

    /// Undoes an interrupted creation.
    pub(super) fn clear_leftovers(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let (disk, dir) = (self.common.seams.disk.as_ref(), self.dir_of(tenant, name, 0));
        if disk.list(&dir).is_ok() {
            return self.clear_dropped(tenant, name);
        }
        match dir.parent() {
            // Other files in there do not belong to Meridian.
            Some(collection) if disk.list(collection).is_ok_and(|names| names.is_empty()) => {
                disk.remove_dir(collection).map_err(StoreError::io("remove", collection))
            }
            _ => Ok(()),
        }
    }

    /// Prepares the folder for a new collection: it must hold nothing that could be one.
    pub(crate) fn make_room(&self, tenant: &str, name: &str, partitions: u16) -> Result<(), StoreError> {
        let at = (tenant.to_owned(), name.to_owned());
        if let Some(damaged) = self.damaged.lock().get(&at) {
            return Err(StoreError::Damaged(Box::new(damaged.clone())));
        }
        if let Some(registry) = self.common.storage.registry() {
            return registry.enroll(tenant, name, partitions);
        }
        let dir = self.dir_of(tenant, name, 0);
        match standing(self.common.seams.disk.as_ref(), &dir)? {
            FolderState::Empty => match self.check_no_others(tenant, name) {
                Ok(()) => Ok(()),
                Err(error) => Err(StoreError::Damaged(Box::new(self.set_apart(tenant, name, &error)))),
            },
            FolderState::Dropped => self.clear_dropped(tenant, name),
            // On disk but not open: another process may have created it since this store was opened.
            FolderState::Made => Err(StoreError::Exists { tenant: at.0, name: at.1 }),
            FolderState::Lost(problem) => {
                let error = StoreError::corrupt(&problem.path, problem.detail);
                Err(StoreError::Damaged(Box::new(self.set_apart(tenant, name, &error))))
            }
        }
    }
}
