//! A store that follows the owners of a bucket: it opens what they wrote, and loads what they commit.

use crate::bucket::ScanServerStatus;
use crate::collection::Collection;
use crate::error::StoreError;
use crate::ingest::tail::Tail;
use crate::recovery;
use crate::store::following::FollowState;
use crate::store::partitions::{self, Partitions};
use crate::store::{Inner, Store};
use std::cell::Cell;
use std::sync::Arc;

impl Store {
    /// Opens a collection that is followed, and pins its current content; `None` if it does not exist.
    pub(crate) fn follow(&self, tenant: &str, name: &str) -> Result<Option<Partitions>, StoreError> {
        let inner = &self.inner;
        let found = match inner.follow_partitions(tenant, name)? {
            Some(found) => Some(found),
            // A collection that was dropped and recreated is found by the list, which costs a call for each collection.
            None => {
                inner.there()?;
                inner.follow_partitions(tenant, name)?
            }
        };
        if let Some(partitions) = &found {
            inner.collections.insert(tenant, name, partitions.clone());
            self.renew_pin();
        }
        Ok(found)
    }

    /// Releases a collection that is followed.
    pub(crate) fn forget(&self, tenant: &str, name: &str) {
        self.inner.collections.remove(tenant, name);
    }

    /// Renews the pin of open collections, if due. A failure is logged, and the next call retries.
    pub(crate) fn renew_pin(&self) {
        if let Some(following) = &self.inner.following {
            following.renew(|| self.inner.collections.all());
        }
    }

    /// Loads what the owners have committed since the last call. Returns true if anything changed. Readers see each
    /// collection change atomically. Records the time up to which it is complete, as stated by the owner, and renews
    /// the pin if due.
    ///
    /// # Errors
    /// Returned if the bucket does not answer, or a collection cannot be read: that one stays as it was, and the others
    /// are loaded.
    pub fn refresh(&self) -> Result<bool, StoreError> {
        let inner = &self.inner;
        if !inner.common.read_only {
            return Ok(false);
        }
        inner.common.cache.opened.trim();
        let _changing = inner.changing.lock();
        inner.check_open()?;
        let (changed, failed) = inner.follow_all()?;
        failed.map_or(Ok(changed), Err)
    }

    /// Returns the number of this process as a reader of the bucket; `None` if it owns its collections.
    pub fn reader(&self) -> Option<u64> {
        self.inner.following.as_ref().map(FollowState::reader)
    }

    /// Announces this process to gateways, from the next [`Store::refresh`] on. `serves` is called each time the pin is
    /// written.
    pub fn announce(&self, serves: Arc<dyn Fn() -> ScanServerStatus + Send + Sync>) {
        self.inner.following.iter().for_each(|following| following.announce(serves.clone()));
    }

    /// Notifies gateways and the owner that this process stops reading: earlier snapshots are gone. Open objects stay
    /// readable for the owner's grace period.
    pub fn leave(&self) {
        self.inner.following.iter().for_each(FollowState::release);
    }
}

impl Inner {
    /// Opens the partitions of a collection that another process writes; `None` if it does not exist yet.
    fn follow_partitions(&self, tenant: &str, name: &str) -> Result<Option<Partitions>, StoreError> {
        let follow = |partition| recovery::follow_new(&self.common, &self.dir_of(tenant, name, partition));
        let Some(first) = follow(0)?.filter(|first| !first.manifest.making) else { return Ok(None) };
        let partitions = u32::from(first.manifest.settings.partitions);
        let mut opened = vec![first];
        for partition in 1..partitions {
            let Some(next) = follow(partition)? else {
                // Dropped since the first one was read, unless the first still exists.
                if self.common.storage_of(&self.dir_of(tenant, name, 0)).catalog.newest()?.is_none() {
                    return Ok(None);
                }
                return Err(partitions::missing(&self.dir_of(tenant, name, partition), (partition, partitions)));
            };
            opened.push(next);
        }
        let collection = |partition| Collection::new(tenant, name, partition, self.wake.clone());
        Ok(Some(opened.into_iter().map(collection).collect()))
    }

    /// Loads what the owners have committed, in every collection. Returns whether anything changed, and the last error.
    pub(crate) fn follow_all(&self) -> Result<(bool, Option<StoreError>), StoreError> {
        // Before the manifests are read, since the statement holds for manifests found after it. A missing lease means
        // a missing bucket, for example a folder that is no longer mounted. Its collections were not dropped, and stay
        // as they were.
        let said = self.following.as_ref().map(FollowState::statements).transpose()?;
        let note = |collection: &Collection| {
            let time = self
                .following
                .as_ref()
                .zip(said.as_ref())
                .and_then(|(following, said)| following.time_of(said, collection));
            // The log shows more than the owner's statement. Its clock may differ.
            let skew = i64::try_from(self.common.options.skew.as_micros()).unwrap_or(i64::MAX);
            let shown = collection.core.lock().tail.as_ref().and_then(Tail::complete);
            let time = time.max(shown.map(|shown| shown.saturating_sub(skew)));
            collection.shared.complete.note(collection.position(), time);
        };
        // Once there is a pin, renewed between collections as well: loading one may take longer than the pin's
        // lifetime. After a failure the next call retries.
        let failed_pin = Cell::new(false);
        let renew = |first: bool| {
            let following = self.following.as_ref().filter(|following| first || following.has_pin());
            if let Some(following) = following.filter(|_| !failed_pin.get()) {
                failed_pin.set(!following.renew(|| self.collections.all()));
            }
        };
        let (there, mut changed, mut failed) = (self.there()?, false, None);
        let all = self.collections.all();
        for partitions in all.chunk_by(|a, b| (a.tenant(), a.name()) == (b.tenant(), b.name())) {
            // The last partition first, in the order of a schema change: queries use the first one's schema for parts
            // of the others. So if one cannot be loaded, those before it wait.
            for collection in partitions.iter().rev() {
                let (tenant, name) = (collection.tenant(), collection.name());
                // Not under a lock that readers take: they keep the previous state until the next one is complete.
                let followed = collection.core.lock().follow_newest();
                let goes_on = matches!(followed, Ok(Some(_)));
                match followed {
                    Ok(Some(new)) => {
                        changed |= new;
                        note(collection);
                    }
                    Ok(None) => {
                        self.collections.remove(tenant, name);
                        changed = true;
                    }
                    Err(error) => {
                        tracing::warn!(%tenant, collection = name, %error, "a collection was not taken up anew");
                        failed = Some(error);
                    }
                }
                renew(false);
                if !goes_on {
                    break;
                }
            }
        }
        for (tenant, name) in there {
            if self.collections.get(&tenant, &name).is_some() {
                continue;
            }
            let at = (tenant, name);
            match self.follow_partitions(&at.0, &at.1) {
                Ok(Some(collection)) => {
                    collection.iter().for_each(|partition| note(partition));
                    self.collections.insert(&at.0, &at.1, collection);
                    self.damaged.lock().remove(&at);
                    changed = true;
                }
                Ok(None) => drop(self.damaged.lock().remove(&at)),
                Err(error) => {
                    self.set_apart(&at.0, &at.1, &error);
                    failed = Some(error);
                }
            }
            renew(false);
        }
        renew(true);
        Ok((changed, failed))
    }
}
