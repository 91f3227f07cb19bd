//! A backend that temporarily knows nothing of one of its collections, and does not know whether it created another.

use meridian_backend::{
    AuditLog, Backend, Backup, BackupOptions, Collection, Damaged, Flusher, Operation, Records, Settings, StoreError,
};
use meridian_model::{Background, Positions, Schema, Subscriber};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Name of the unknown collection.
pub const BUSY: &str = "busy";

/// Name of the collection in doubt.
pub const DOUBTFUL: &str = "doubtful";

#[derive(Debug)]
pub struct Reluctant {
    pub backend: Arc<dyn Backend>,
    pub is_busy: AtomicBool,
    /// Number of attempts to create the latter.
    pub doubts: AtomicUsize,
}

impl Reluctant {
    pub fn over(backend: Arc<dyn Backend>) -> Arc<Reluctant> {
        Arc::new(Reluctant { backend, is_busy: AtomicBool::new(false), doubts: AtomicUsize::new(0) })
    }
}

impl Flusher for Reluctant {
    fn all(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.backend.all()
    }

    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError> {
        self.backend.flush(tenant, name)
    }
}

impl Backend for Reluctant {
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        if name == BUSY && self.is_busy.load(Ordering::Relaxed) {
            return Err(StoreError::Busy("not now".to_owned()));
        }
        self.backend.collection(tenant, name)
    }

    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        self.backend.list(tenant)
    }

    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError> {
        self.backend.damaged(tenant)
    }

    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError> {
        self.backend.why_damaged(tenant, name)
    }

    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError> {
        if name == DOUBTFUL {
            self.doubts.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Unknown("the bucket did not answer".to_owned()));
        }
        self.backend.create(tenant, name, schema, settings)
    }

    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        self.backend.remove(tenant, name)
    }

    fn subscribe(&self, subscriber: Arc<dyn Subscriber>) {
        self.backend.subscribe(subscriber);
    }

    fn records(&self, kind: &'static str) -> Arc<dyn Records> {
        self.backend.records(kind)
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        self.backend.audit()
    }

    fn backup(&self, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError> {
        self.backend.backup(what, out)
    }
}

impl Operation for Reluctant {
    fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        self.backend.guarantee(weights);
    }

    fn charge_to(&self, background: Arc<dyn Background>) {
        self.backend.charge_to(background);
    }

    fn is_ephemeral(&self) -> bool {
        self.backend.is_ephemeral()
    }

    fn data_folder(&self) -> Option<&Path> {
        self.backend.data_folder()
    }

    fn met_full_disk(&self) -> bool {
        self.backend.met_full_disk()
    }

    fn full_disk(&self) -> Option<PathBuf> {
        self.backend.full_disk()
    }
}
