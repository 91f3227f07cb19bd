//! Where partitions keep their data.

use super::{Catalog, Disk, DiskObjects, LogReader, Objects, WriteLog, objects};
use crate::catalog::disk::DiskCatalog;
use crate::error::StoreError;
use crate::extents::ExtentStats;
use crate::log::Log;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Gives each partition its log, its catalog and its objects.
///
/// A partition may be open several times, in this process or in others: the log fences all writers but the last.
pub trait Storage: Send + Sync + std::fmt::Debug {
    /// The storage of the partition in a folder of the data folder. `log_file_bytes`: size of one file of its log.
    fn partition(&self, dir: &Path, log_file_bytes: u64) -> PartitionStorage;

    /// Whether another process may take a partition over while this one has it open. Then a writer commits a manifest before it serves, so
    /// that the commits of the previous writer fail. With [`DiskStorage`] the lock of the data folder prevents a takeover.
    fn is_shared(&self) -> bool {
        false
    }

    /// The list of collections, if the storage keeps one; `None`: the folders of the data folder are the list.
    fn registry(&self) -> Option<&dyn Registry> {
        None
    }

    /// Does deferred work that is due. Called periodically.
    fn tend(&self) {}

    /// The cache of objects elsewhere; `None`: there is none.
    fn extents(&self) -> Option<ExtentStats> {
        None
    }

    /// Reads the log of the partition in a folder, which another process writes; `None`: this process cannot.
    ///
    /// # Errors
    /// The error of the storage.
    fn log_reader(&self, dir: &Path) -> Result<Option<Box<dyn LogReader>>, StoreError> {
        let _ = dir;
        Ok(None)
    }

    /// Min sequence number of a snapshot that another process may show, of the partition in a folder; `None`: none is known.
    fn pinned(&self, dir: &Path) -> Option<u64> {
        let _ = dir;
        None
    }
}

/// The collections of a storage that several processes share.
pub trait Registry {
    /// All collections that were made and not cleared, by tenant and name. Some may be dropped or only begun: their catalog has
    /// no manifest.
    fn collections(&self) -> Result<BTreeSet<(String, String)>, StoreError>;

    /// Prepares the creation of a collection of `partitions` partitions: a dropped one of this name is moved out of its way.
    fn enroll(&self, tenant: &str, name: &str, partitions: u16) -> Result<(), StoreError>;

    /// Removes what is left of a collection that was dropped, by the folder of its first partition. One that was only begun stays as it is: another
    /// process may be making it.
    fn clear(&self, dir: &Path) -> Result<(), StoreError>;

    /// Whether this process may own a partition: another one may have the rest of its collection.
    fn has(&self, tenant: &str, name: &str, partition: u32) -> bool {
        let _ = (tenant, name, partition);
        true
    }

    /// Whether a collection of this name was made and not cleared; it may be dropped or only begun. From here on its partitions are the newest
    /// of that name.
    fn find(&self, tenant: &str, name: &str) -> Result<bool, StoreError>;

    /// Whether no other process has become the owner since the storage was opened, as far as is known.
    fn is_current(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

/// The three seams of one partition.
#[derive(Debug)]
pub struct PartitionStorage {
    /// The log, which makes writes durable.
    pub log: Box<dyn WriteLog>,
    /// Which manifest is the newest.
    pub catalog: Arc<dyn Catalog>,
    /// Segments and their sidecars.
    pub objects: Arc<dyn Objects>,
}

/// All of a partition in its folder.
#[derive(Debug, Clone)]
pub struct DiskStorage(pub Arc<dyn Disk>);

impl Storage for DiskStorage {
    fn partition(&self, dir: &Path, log_file_bytes: u64) -> PartitionStorage {
        PartitionStorage {
            log: Box::new(Log::closed(&self.0, &dir.join("log"), log_file_bytes)),
            catalog: Arc::new(DiskCatalog::new(self.0.clone(), dir)),
            objects: Arc::new(DiskObjects::new(self.0.clone(), objects::folder(dir))),
        }
    }
}
