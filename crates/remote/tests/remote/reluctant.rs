//! A backend that temporarily cannot use one of its collections, and does not know whether it created another.

use meridian_backend::{
    AuditLog, Backend, Backup, BackupOptions, Collection, Damaged, Definition, Flusher, Operation, Problem, Records,
    Settings, StoreError,
};
use meridian_model::{Background, Positions, Schema, Subscriber};
use parking_lot::Mutex;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Name of the unusable collection.
pub const BUSY: &str = "busy";

/// The remedy of a store that tries again to open a collection.
pub const RETRIED: &str = "this server tries again by itself";

/// Name of the collection in doubt.
pub const DOUBTFUL: &str = "doubtful";

/// Why the former cannot be used.
#[derive(Debug, Clone, Copy)]
pub enum Refusal {
    Busy,
    Unreadable,
    /// It cannot be opened, with this remedy.
    Apart(&'static str),
}

#[derive(Debug)]
pub struct Reluctant {
    pub backend: Arc<dyn Backend>,
    refusal: Mutex<Option<Refusal>>,
    /// Number of attempts to create the latter.
    pub doubts: AtomicUsize,
}

impl Reluctant {
    pub fn over(backend: Arc<dyn Backend>) -> Arc<Reluctant> {
        Arc::new(Reluctant { backend, refusal: Mutex::default(), doubts: AtomicUsize::new(0) })
    }

    /// Refuses the former from now on, or no longer.
    pub fn refuse(&self, refusal: Option<Refusal>) {
        *self.refusal.lock() = refusal;
    }

    fn refusal_of(&self, name: &str) -> Option<Refusal> {
        if name == BUSY { *self.refusal.lock() } else { None }
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
        match self.refusal_of(name) {
            None => self.backend.collection(tenant, name),
            Some(Refusal::Busy) => Err(StoreError::Busy("not now".to_owned())),
            Some(Refusal::Unreadable) => {
                Err(StoreError::Io { action: "read", path: PathBuf::from("log"), source: io::Error::other("cut") })
            }
            Some(Refusal::Apart(_)) => Ok(None),
        }
    }

    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        self.backend.list(tenant)
    }

    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError> {
        self.backend.damaged(tenant)
    }

    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError> {
        let Some(Refusal::Apart(cure)) = self.refusal_of(name) else { return self.backend.why_damaged(tenant, name) };
        let problem = Problem { path: PathBuf::from("log"), detail: "it does not answer".to_owned() };
        Ok(Some(Damaged { tenant: tenant.to_owned(), name: name.to_owned(), problem, cure: cure.into() }))
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

    fn remove_unwritten(&self, tenant: &str, name: &str, created: i64, seen: &Definition) -> Result<bool, StoreError> {
        self.backend.remove_unwritten(tenant, name, created, seen)
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
