//! A store whose collections lie in a bucket: the owner's, and those of servers that only read.

use crate::bucket::{Bucket, BucketStorage, ReadOnly, Terms};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::options::Options;
use crate::recovery;
use crate::seams::Seams;
use crate::store::{Inner, Store};
use meridian_model::Invalid;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Name of the lease of the process that writes.
const OWNER: &str = "owner";
/// How much longer than snapshots objects stay: a query that has just begun may read them.
const GRACE: Duration = Duration::from_secs(60);

impl Store {
    /// Opens the collections in a bucket as their owner, in the place of the previous owner. That one's writes fail from here
    /// on.
    ///
    /// The data folder keeps what belongs to this process: lock, records, audit log. Hold the lease `owner` first ([`crate::Lease`]): two
    /// processes without one take the collections from each other, but lose no data.
    ///
    /// # Errors
    /// As of [`Store::open`], and [`StoreError::Io`] where the bucket does not answer.
    pub fn open_shared(options: Options, seams: Seams, bucket: Arc<dyn Bucket>) -> Result<Store, StoreError> {
        check(&options)?;
        let term = Terms::new(&bucket, OWNER).newest()?.map_or(0, |(_, term)| term.epoch);
        let storage = storage(&options, &seams, bucket, term);
        Store::open_as(options, seams, |_| storage, false)
    }

    /// Opens the collections in a bucket to read what the owner has flushed so far. [`Store::refresh`] loads what it flushes later.
    /// Writes are refused.
    ///
    /// # Errors
    /// As of [`Store::open_shared`].
    pub fn open_read_only(options: Options, seams: Seams, bucket: Arc<dyn Bucket>) -> Result<Store, StoreError> {
        check(&options)?;
        let storage = storage(&options, &seams, Arc::new(ReadOnly(bucket)), 0);
        Store::open_as(options, seams, |_| storage, true)
    }

    /// Loads what the owner has committed since. Returns whether anything changed. Readers see each collection change in one
    /// step.
    ///
    /// # Errors
    /// If the bucket does not answer, or a collection cannot be read: that one stays as it was, and the others are
    /// loaded.
    pub fn refresh(&self) -> Result<bool, StoreError> {
        let inner = &self.inner;
        if !inner.common.read_only {
            return Ok(false);
        }
        let _changing = inner.changing.lock();
        inner.check_open()?;
        let (changed, failed) = inner.follow_all()?;
        failed.map_or(Ok(changed), Err)
    }

    /// Whether the state here may differ from the bucket: another process may have taken a collection over, or the outcome of a write is
    /// unknown. Close the store, and open it again once it is this process's turn.
    pub fn is_outdated(&self) -> bool {
        self.inner.common.outdated.load(Ordering::Acquire)
    }

    /// Whether it was opened to read only.
    pub fn is_read_only(&self) -> bool {
        self.inner.common.read_only
    }
}

fn check(options: &Options) -> Result<(), StoreError> {
    match options.ephemeral {
        true => Err(Invalid::field("data", "a store in memory keeps nothing in a bucket: name a data folder").into()),
        false => Ok(()),
    }
}

fn storage(options: &Options, seams: &Seams, bucket: Arc<dyn Bucket>, term: u64) -> Arc<BucketStorage> {
    let grace = options.snapshot_memory + GRACE;
    Arc::new(BucketStorage::new(bucket, seams.clone(), &options.data, term, grace))
}

impl Inner {
    /// Whether collections may be made and dropped here.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match self.common.read_only {
            true => Err(Invalid::new("this server only reads: make and drop collections at the owner").into()),
            false => Ok(()),
        }
    }

    /// Loads what the owner has committed, in every collection. Returns whether anything changed, and the last error.
    pub(crate) fn follow_all(&self) -> Result<(bool, Option<StoreError>), StoreError> {
        let (there, mut changed, mut failed) = (self.there()?, false, None);
        for collection in self.collections.all() {
            let (tenant, name) = (collection.tenant(), collection.name());
            // Not under a lock that readers take: they keep the state before until the next one is whole.
            let followed = collection.core.lock().follow_newest();
            match followed {
                Ok(Some(new)) => changed |= new,
                Ok(None) => {
                    self.collections.remove(tenant, name);
                    changed = true;
                }
                Err(error) => {
                    tracing::warn!(%tenant, collection = name, %error, "a collection was not taken up anew");
                    failed = Some(error);
                }
            }
        }
        for (tenant, name) in there {
            if self.collections.get(&tenant, &name).is_some() {
                continue;
            }
            let at = (tenant, name);
            match recovery::follow_new(&self.common, &self.partition_dir(&at.0, &at.1)) {
                Ok(Some(partition)) => {
                    let collection = Collection::new(&at.0, &at.1, partition, self.wake.clone());
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
        }
        Ok((changed, failed))
    }
}
