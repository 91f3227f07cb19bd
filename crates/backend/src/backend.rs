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

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// How its value changes.
    pub kind: FigureKind,
    /// Its name.
    pub name: &'static str,
    /// The meaning of the count, as a sentence.
    pub help: &'static str,
    /// Its value.
    pub value: u64,
}

/// How the value of a metric changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Returns metrics.
pub type Figures = Arc<dyn Fn() -> Vec<Figure> + Send + Sync>;

/// A partition held by a process, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Tenant of the collection.
    pub tenant: Arc<str>,
    /// Name of the collection.
    pub collection: Arc<str>,
    /// Creation time of the collection, in microseconds since 1970.
    pub made: i64,
    /// Number of the partition.
    pub partition: usize,
    /// Number of partitions of the collection.
    pub partitions: u16,
    /// Position of its last write.
    pub position: u64,
}

/// The collections of a server, by tenant and name.
pub trait Backend: Flusher + Debug + Send + Sync {
    /// Returns the collection with this name; `None` if it does not exist or is damaged. Returns at once.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the server that has the collections cannot be reached, here and below.
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError>;

    /// Returns the collections of a tenant, ordered by name. Returns at once.
    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError>;

    /// Returns the collections of a tenant that cannot be opened, ordered by name: neither absent nor served. Returns
    /// at once.
    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError>;

    /// Returns why the collection with this name cannot be opened; `None` if it can, or does not exist. Returns at
    /// once.
    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError>;

    /// Creates a collection.
    ///
    /// [`StoreError::Exists`], [`StoreError::Damaged`] if the name belongs to something that may hold events,
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

    /// Returns true if collections can be renamed, which is impossible in a bucket. Returns at once.
    fn renames(&self) -> bool {
        false
    }

    /// Renames a collection; returns whether it existed. Running queries complete undisturbed.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Damaged`] for either name, [`StoreError::Invalid`] for the new name or if
    /// renaming is impossible, or the disk's error.
    fn rename(&self, tenant: &str, name: &str, new: &str) -> Result<bool, StoreError> {
        let _ = (tenant, name, new);
        Err(Invalid::new(KEEPS_NAME).into())
    }

    /// Replaces schema and settings of a collection that was never written to; returns whether that was done. Only if
    /// this process holds it, in a single partition.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], or the disk's error.
    fn retype(&self, tenant: &str, name: &str, schema: Schema, settings: Settings) -> Result<bool, StoreError> {
        let _ = (tenant, name, schema, settings);
        Ok(false)
    }

    /// Adopts a collection that the owner of its first partition has created or dropped, if this process has other
    /// partitions of it.
    ///
    /// # Errors
    /// The error of the store.
    fn adopt(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        let _ = (tenant, name);
        Ok(())
    }

    /// Guarantees each tenant a share of the memory for writes, by its weight. Returns at once.
    fn guarantee(&self, weights: &[(Arc<str>, u32)]);

    /// Charges tenants for the maintenance of their collections, from now on. Only the first call counts.
    fn charge_to(&self, background: Arc<dyn Background>);

    /// Notifies a subscriber of every write from now on, in any collection.
    fn subscribe(&self, subscriber: Arc<dyn Subscriber>);

    /// Returns the partitions held by this process itself. Returns at once.
    fn held(&self) -> Vec<Held> {
        Vec::new()
    }

    /// Returns the small records of one kind, stored beside the collections; there may be none yet.
    fn records(&self, kind: &'static str) -> Arc<dyn Records>;

    /// Returns the log of administrative acts.
    fn audit(&self) -> Arc<dyn AuditLog>;

    /// Writes a copy to `out` as a tar for a backup folder. Reads and writes continue meanwhile.
    ///
    /// A file that cannot be read completely, an error of the disk or of `out`, [`StoreError::Closed`] once
    /// `cancelled` returns true.
    fn backup(&self, what: &BackupOf<'_>, out: &mut dyn Write) -> Result<Backup, StoreError>;

    /// Returns metrics of queries served by other processes, or for them. Returns at once.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Returns the outcomes of eventual reads at scan servers; `None` if this process uses none. Returns at once.
    fn scan_reads(&self) -> Option<ScanReads> {
        None
    }

    /// Returns true if results show what another process has flushed, and not every acknowledged write. Returns at
    /// once.
    fn follows(&self) -> bool {
        false
    }

    /// Returns the caches of a bucket in this process, of objects and of segment trees; `None` if it reads no bucket.
    fn bucket_cache(&self) -> Option<(ExtentStats, TreeStats)> {
        None
    }

    /// Returns true if everything is stored in memory only.
    fn is_ephemeral(&self) -> bool;

    /// Returns the folder of the collections' files, if it is on this machine.
    fn data_folder(&self) -> Option<&Path>;

    /// Returns true if a write failed on a full disk since [`Backend::full_disk`] last found space. Returns at once.
    fn met_full_disk(&self) -> bool;

    /// Returns the file for which the disk has no space; `None` if there is space again. Writes about 100 KiB to check.
    fn full_disk(&self) -> Option<PathBuf>;
}
