//! Collections in this process.

mod collection;
mod commit;
mod rows;

use crate::audit::AuditLog;
use crate::backend::{Backend, Figure, Figures};
use crate::collection::Collection;
use crate::partitioned::{Part, Partitioned};
use crate::records::{RecordSource, Records};
use collection::Local;
use commit::CommitExecutor;
use meridian_model::{Background, Invalid, Schema, Subscriber};
use meridian_store::{Backup, BackupScope, Damaged, Partitions, Settings, Store, StoreError};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The collections of a store in this process.
pub struct Embedded {
    store: Arc<Store>,
    commits: Arc<CommitExecutor>,
    records: Arc<dyn RecordSource>,
    /// Whether the records are elsewhere, so that a backup of the store lacks them.
    lacks_records: bool,
    figures: OnceLock<Figures>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Embedded {
    /// A backend over an open store, which has the records too.
    pub fn new(store: Arc<Store>) -> Arc<Embedded> {
        let records = store.clone();
        Arc::new(Embedded { store, commits: Arc::default(), records, lacks_records: false, figures: OnceLock::new() })
    }

    /// A backend over an open store, with records that are elsewhere.
    pub fn with_records(store: Arc<Store>, records: Arc<dyn RecordSource>) -> Arc<Embedded> {
        Arc::new(Embedded { store, commits: Arc::default(), records, lacks_records: true, figures: OnceLock::new() })
    }

    /// Adds numbers for monitors, of what serves the collections to others. Only the first call counts.
    pub fn count_also(&self, figures: Figures) {
        let _ = self.figures.set(figures);
    }

    fn collected(&self, partitions: &Partitions) -> Arc<dyn Collection> {
        let local = |collection: &Arc<meridian_store::Collection>| Local {
            collection: collection.clone(),
            commits: self.commits.clone(),
            held: partitions.clone(),
        };
        match &**partitions {
            // Also of several, where another process has the rest: callers name the one that they mean.
            [first, ..] if partitions.len() < usize::from(first.settings().partitions) => Arc::new(local(first)),
            [only] => Arc::new(local(only)),
            several => {
                Arc::new(Partitioned::new(several.iter().map(|part| Arc::new(local(part)) as Arc<dyn Part>).collect()))
            }
        }
    }
}

impl Backend for Embedded {
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        Ok(self.store.partitions(tenant, name).map(|partitions| self.collected(&partitions)))
    }

    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        // Those whose first partition is another process's are listed there.
        let is_first = |partitions: &&Partitions| partitions.first().is_some_and(|first| first.partition() == 0);
        Ok(self.store.all_of(tenant).iter().filter(is_first).map(|partitions| self.collected(partitions)).collect())
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
        // Dropped since, by another request.
        self.store.partitions(tenant, name).map(|made| self.collected(&made)).ok_or(StoreError::Closed)
    }

    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        self.store.drop_collection(tenant, name)
    }

    fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        self.store.adopt(tenant, name)
    }

    fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        self.store.guarantee(weights.iter().cloned());
    }

    fn charge_to(&self, background: Arc<dyn Background>) {
        self.store.charge_to(background);
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

    fn backup(
        &self,
        scope: &BackupScope,
        have: &BTreeMap<String, u32>,
        out: &mut dyn Write,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Backup, StoreError> {
        if self.lacks_records {
            let detail = "the tokens, tenants, users and saved searches of this server are in the bucket of its cluster, and a backup would \
                          lack them: copy the bucket";
            return Err(Invalid::new(detail).into());
        }
        self.store.backup(scope, have, out, cancelled)
    }

    fn figures(&self) -> Vec<Figure> {
        self.figures.get().map(|figures| figures()).unwrap_or_default()
    }

    fn follows(&self) -> bool {
        self.store.is_read_only()
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
    use meridian_store::{ControlPlane, Options};

    #[test]
    fn a_backup_that_would_lack_the_records_is_refused() {
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
        let options = Options { background: false, ..Options::at("/data") };
        let store = Arc::new(Store::open(options, seams.clone()).unwrap());
        let control = ControlPlane::new(Arc::new(MemoryBucket::new()), &seams, 1 << 20);
        let have = BTreeMap::new();
        let sent = |backend: &Embedded| {
            let mut out = Vec::new();
            backend.backup(&BackupScope::everything(), &have, &mut out, &|| false).map(|_| out.len())
        };
        let refused = sent(&Embedded::with_records(store.clone(), control)).unwrap_err().to_string();
        assert!(refused.contains("copy the bucket"), "{refused}");
        assert!(sent(&Embedded::new(store)).unwrap() > 0);
    }
}
