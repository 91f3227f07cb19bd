//! Collections in this process.

mod collection;
mod commit;
mod rows;

use crate::audit::AuditLog;
use crate::backend::Backend;
use crate::collection::Collection;
use crate::collection::Part;
use crate::operation::{HeldPartition, Metric, MetricSource, Operation};
use crate::partitioned::Partitioned;
use crate::records::{BackupOptions, RecordSource, Records};
use collection::LocalCollection;
use commit::CommitExecutor;
use meridian_model::{Background, Invalid, Positions, Schema, Subscriber};
use meridian_store::{
    Backup, Damaged, Definition, ExtentStats, Flusher, Partitions, Retyped, Settings, Store, StoreError, TreeStats,
};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The collections of a store in this process.
pub struct Embedded {
    store: Arc<Store>,
    commits: Arc<CommitExecutor>,
    records: Arc<dyn RecordSource>,
    /// Whether the records are stored elsewhere, so that a backup of the store lacks them.
    lacks_records: bool,
    figures: OnceLock<MetricSource>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Makes a backend over an open store, which has the records as well.
    pub fn new(store: Arc<Store>) -> Arc<Embedded> {
        let records = store.clone();
        Arc::new(Embedded { store, commits: Arc::default(), records, lacks_records: false, figures: OnceLock::new() })
    }

    /// Makes a backend over an open store, with records stored elsewhere.
    pub fn with_records(store: Arc<Store>, records: Arc<dyn RecordSource>) -> Arc<Embedded> {
        Arc::new(Embedded { store, commits: Arc::default(), records, lacks_records: true, figures: OnceLock::new() })
    }

    /// Adds metrics of the server that exposes the collections to others. Only the first call counts.
    pub fn count_also(&self, figures: MetricSource) {
        let _ = self.figures.set(figures);
    }

    fn collected(&self, held: Partitions) -> Arc<dyn Collection> {
        let are_all = match &*held {
            [_] => false,
            // Several partitions, with the rest in another process: callers name the one they mean.
            several => several.first().is_none_or(|first| held.len() >= usize::from(first.settings().partitions)),
        };
        let local = |held, own| LocalCollection { held, own, commits: self.commits.clone() };
        match are_all {
            false => Arc::new(local(held, 0)),
            true => {
                let part = |own| Arc::new(local(held.clone(), own)) as Arc<dyn Part>;
                Arc::new(Partitioned::new((0..held.len()).map(part).collect()))
            }
        }
    }
}

impl Flusher for Embedded {
    fn all(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.store.all()
    }

    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError> {
        Flusher::flush(&*self.store, tenant, name)
    }
}

impl Backend for Embedded {
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        Ok(self.store.partitions(tenant, name).map(|held| self.collected(held)))
    }

    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        // Collections with their first partition in another process are listed there.
        let is_first = |partitions: &&Partitions| partitions.first().is_some_and(|first| first.partition() == 0);
        Ok(self.store.all_of(tenant).iter().filter(is_first).map(|held| self.collected(held.clone())).collect())
    }

    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError> {
        Ok(self.store.damaged(tenant))
    }

    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError> {
        Ok(self.store.why_damaged(tenant, name))
    }

    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError> {
        self.store.create(tenant, name, schema, settings)?;
        // Another request has dropped it since.
        self.store.partitions(tenant, name).map(|made| self.collected(made)).ok_or(StoreError::Closed)
    }

    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        self.store.drop_collection(tenant, name)
    }

    fn remove_unwritten(&self, tenant: &str, name: &str, created: i64, seen: &Definition) -> Result<bool, StoreError> {
        self.store.drop_unwritten(tenant, name, created, seen)
    }

    fn renames(&self) -> bool {
        self.store.renames()
    }

    fn rename(&self, tenant: &str, name: &str, new: &str) -> Result<bool, StoreError> {
        self.store.rename(tenant, name, new)
    }

    fn retype(&self, tenant: &str, name: &str, schema: Schema, settings: Settings) -> Result<Retyped, StoreError> {
        self.store.retype(tenant, name, schema, settings)
    }

    fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        self.store.adopt(tenant, name)
    }

    fn subscribe(&self, subscriber: Arc<dyn Subscriber>) {
        self.store.subscribe(subscriber);
    }

    fn records(&self, kind: &'static str) -> Arc<dyn Records> {
        self.records.records(kind)
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        self.records.audit()
    }

    fn backup(&self, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError> {
        match (self.lacks_records, self.store.is_read_only()) {
            (false, _) => self.store.backup(what.scope, what.have, out, what.cancelled),
            (true, false) => self.records.backup(&*self.store, what, out),
            (true, true) => {
                let detail = "this server only reads, and an owner may have more than it has flushed: ask a gateway for the backup";
                Err(Invalid::new(detail).into())
            }
        }
    }
}

impl Operation for Embedded {
    fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        self.store.guarantee(weights.iter().cloned());
    }

    fn charge_to(&self, background: Arc<dyn Background>) {
        self.store.charge_to(background);
    }

    fn held(&self) -> Vec<HeldPartition> {
        let held = |one: &Arc<meridian_store::Collection>| HeldPartition {
            tenant: one.tenant().into(),
            collection: one.name().into(),
            made: one.created(),
            partition: one.partition() as usize,
            partitions: one.settings().partitions,
            position: one.position(),
        };
        self.store.collections().iter().map(held).collect()
    }

    fn figures(&self) -> Vec<Metric> {
        self.figures.get().map(|figures| figures()).unwrap_or_default()
    }

    fn follows(&self) -> bool {
        self.store.is_read_only()
    }

    fn has_every_write(&self) -> bool {
        !self.store.is_read_only()
    }

    fn bucket_cache(&self) -> Option<(ExtentStats, TreeStats)> {
        Some((self.store.extents()?, self.store.trees()))
    }

    fn write_memory(&self, tenant: Option<&str>) -> Option<u64> {
        Some(tenant.map_or_else(|| self.store.memory().1, |tenant| self.store.memory_of(tenant)))
    }

    fn is_ephemeral(&self) -> bool {
        self.store.is_ephemeral()
    }

    fn data_folder(&self) -> Option<&Path> {
        Some(self.store.root())
    }

    fn met_full_disk(&self) -> bool {
        self.store.met_full_disk()
    }

    fn full_disk(&self) -> Option<PathBuf> {
        self.store.full_disk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::bucket::MemoryBucket;
    use meridian_store::seams::{MemoryDisk, Seams};
    use meridian_store::{BackupScope, ControlPlane, Options};
    use std::collections::BTreeMap;

    #[test]
    fn a_server_that_only_reads_makes_no_backup_and_an_owner_does() {
        let seams = || Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
        let options = || Options { background: false, ..Options::at("/data") };
        let bucket: Arc<MemoryBucket> = Arc::new(MemoryBucket::new());
        let control = ControlPlane::new(bucket.clone(), &seams(), 1 << 20);
        let sent = |store: Store| {
            let what =
                BackupOptions { scope: &BackupScope::everything(), have: &BTreeMap::new(), cancelled: &|| false };
            let mut out = Vec::new();
            Embedded::with_records(Arc::new(store), control.clone()).backup(&what, &mut out).map(|_| out.len())
        };
        assert!(sent(Store::open_shared(options(), seams(), bucket.clone()).unwrap()).unwrap() > 0);
        let refused = sent(Store::open_read_only(options(), seams(), bucket).unwrap()).unwrap_err().to_string();
        assert!(refused.contains("ask a gateway"), "{refused}");
    }
}
