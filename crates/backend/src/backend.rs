//! A server's collections.

use crate::audit::AuditLog;
use crate::cluster::ScanReads;
use crate::collection::Collection;
use crate::records::{BackupOf, Records};
use meridian_model::{Background, Invalid, Schema, Subscriber};
use meridian_store::{Backup, Damaged, ExtentStats, Flusher, KEEPS_NAME, Settings, StoreError, TreeStats};
use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A number for monitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// How it changes.
    pub kind: FigureKind,
    /// Its name.
    pub name: &'static str,
    /// The meaning of the count, as a sentence.
    pub help: &'static str,
    /// Its value.
    pub value: u64,
}

/// How a number changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Gives numbers for monitors.
pub type Figures = Arc<dyn Fn() -> Vec<Figure> + Send + Sync>;

/// A partition that a process has, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Tenant of the collection.
    pub tenant: Arc<str>,
    /// Its name.
    pub collection: Arc<str>,
    /// When it was made, in microseconds since 1970.
    pub made: i64,
    /// Which of its partitions.
    pub partition: usize,
    /// How many it has.
    pub partitions: u16,
    /// The position of its last write.
    pub position: u64,
}

/// The collections of a server, by tenant and name.
pub trait Backend: Flusher + Debug + Send + Sync {
    /// The collection of this name; `None` where there is none or it is damaged. Returns at once.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where the server that has the collections cannot be reached, here and below.
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError>;

    /// The collections of a tenant in order of name. Returns at once.
    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError>;

    /// The collections of a tenant that cannot be opened, in order of name: neither absent nor served. Returns at once.
    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError>;

    /// Why the collection of this name cannot be opened; `None` if it can, or if there is none. Returns at once.
    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError>;

    /// Creates a collection.
    ///
    /// [`StoreError::Exists`], [`StoreError::Damaged`] where the name belongs to something that may hold events,
    /// [`StoreError::Invalid`], or the disk's error.
    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError>;

    /// Removes a collection and its events; returns whether it existed. Running queries complete undisturbed.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or the disk's error.
    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError>;

    /// Whether collections can be renamed: not in a bucket. Returns at once.
    fn renames(&self) -> bool {
        false
    }

    /// Gives a collection another name; returns whether it existed. Running queries complete undisturbed.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] of either name, [`StoreError::Invalid`] of the new one or where collections keep their
    /// names, or the disk's error.
    fn rename(&self, tenant: &str, name: &str, new: &str) -> Result<bool, StoreError> {
        let _ = (tenant, name, new);
        Err(Invalid::new(KEEPS_NAME).into())
    }

    /// Replaces schema and settings of a collection that was never written to; returns whether that was done. Only where this process keeps
    /// it, in one partition.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], or the disk's error.
    fn retype(&self, tenant: &str, name: &str, schema: Schema, settings: Settings) -> Result<bool, StoreError> {
        let _ = (tenant, name, schema, settings);
        Ok(false)
    }

    /// Takes up what the owner of a collection's first partition has made or dropped, where this process has other partitions of it.
    ///
    /// # Errors
    /// The error of the store.
    fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let _ = (tenant, name);
        Ok(())
    }

    /// Guarantees each tenant a part of the memory for writes, by its weight. Returns at once.
    fn guarantee(&self, weights: &[(Arc<str>, u32)]);

    /// Charges tenants for the maintenance of their collections, from now on. Only the first call counts.
    fn charge_to(&self, background: Arc<dyn Background>);

    /// Notifies a subscriber of every write from now on, in any collection.
    fn subscribe(&self, subscriber: Arc<dyn Subscriber>);

    /// The partitions that this process has itself. Returns at once.
    fn held(&self) -> Vec<Held> {
        Vec::new()
    }

    /// The small records of one kind, stored beside the collections; there may be none yet.
    fn records(&self, kind: &'static str) -> Arc<dyn Records>;

    /// The log of administrative acts.
    fn audit(&self) -> Arc<dyn AuditLog>;

    /// Writes a copy to `out` as a tar for a backup folder. Reads and writes continue meanwhile.
    ///
    /// A file that cannot be read completely, an error of the disk or of `out`, [`StoreError::Closed`] once
    /// `cancelled` returns true.
    fn backup(&self, what: &BackupOf<'_>, out: &mut dyn Write) -> Result<Backup, StoreError>;

    /// Numbers for monitors, of how questions were answered by other processes or for them. Returns at once.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// The outcomes of eventual reads at scan servers; `None`: this process asks none. Returns at once.
    fn scan_reads(&self) -> Option<ScanReads> {
        None
    }

    /// Whether answers show what another process has flushed, and not every acknowledged write. Returns at once.
    fn follows(&self) -> bool {
        false
    }

    /// The parts of a bucket's objects and the trees of segments that this process keeps; `None`: it reads no bucket.
    fn bucket_cache(&self) -> Option<(ExtentStats, TreeStats)> {
        None
    }

    /// Whether everything is stored in memory only.
    fn is_ephemeral(&self) -> bool;

    /// The folder of the collections' files, where it is on this machine.
    fn data_folder(&self) -> Option<&Path>;

    /// Whether a write failed on a full disk since [`Backend::full_disk`] last found space. Returns at once.
    fn met_full_disk(&self) -> bool;

    /// The file for which the disk has no space; `None` if there is space again. Writes some 100 KiB to check.
    fn full_disk(&self) -> Option<PathBuf>;
}
