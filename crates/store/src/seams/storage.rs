//! Where partitions store their data.

use super::{Catalog, LogReader, Objects, WriteLog};
use crate::error::StoreError;
use crate::stats::ExtentStats;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Provides each partition with its log, catalog and objects.
///
/// A partition may be open several times, in this process or in others: the log fences all writers but the last.
pub trait Storage: Send + Sync + std::fmt::Debug {
    /// Returns the storage of the partition in a folder of the data folder. `log_file_bytes` is the size of one log
    /// file.
    fn partition(&self, dir: &Path, log_file_bytes: u64) -> PartitionStorage;

    /// Returns true if another process may take over a partition while this one has it open. Then a writer commits a
    /// manifest before it serves, so that the commits of the previous writer fail. With [`DiskStorage`](crate::DiskStorage) the lock of the
    /// data folder prevents a takeover.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the list of collections, if the storage keeps one; `None` if the folders of the data folder are the
    /// list.
    fn registry(&self) -> Option<&dyn Registry> {
        None
    }

    /// Runs deferred work that is due. Called periodically.
    fn tend(&self) {}

    /// Returns the statistics of the cache of remote objects; `None` without one.
    fn extents(&self) -> Option<ExtentStats> {
        None
    }

    /// Returns a reader for the log of the partition in a folder, which another process writes; `None` if this process
    /// cannot read it.
    ///
    /// # Errors
    /// The error of the storage.
    fn log_reader(&self, dir: &Path) -> Result<Option<Box<dyn LogReader>>, StoreError> {
        let _ = dir;
        Ok(None)
    }

    /// Returns the min sequence number of a snapshot of the partition in a folder that another process may show; `None`
    /// if none is known.
    fn pinned(&self, dir: &Path) -> Option<u64> {
        let _ = dir;
        None
    }
}

/// The collections of a storage shared by several processes.
pub trait Registry {
    /// Returns all collections that were created and not cleared, by tenant and name. Some may be dropped or
    /// incomplete: their catalog has no manifest.
    fn collections(&self) -> Result<BTreeSet<(String, String)>, StoreError>;

    /// Prepares the creation of a collection of `partitions` partitions: a dropped one of this name is moved out of its
    /// way.
    fn enroll(&self, tenant: &str, name: &str, partitions: u16) -> Result<(), StoreError>;

    /// Removes the remains of a dropped collection, given the folder of its first partition. An incomplete one stays as
    /// it is: another process may be creating it.
    fn clear(&self, dir: &Path) -> Result<(), StoreError>;

    /// Returns true if this process may own a partition: another one may own the rest of its collection.
    fn has(&self, tenant: &str, name: &str, partition: u32) -> bool {
        let _ = (tenant, name, partition);
        true
    }

    /// Returns true if a collection of this name was created and not cleared; it may be dropped or incomplete. From
    /// here on its partitions are the newest of that name.
    fn find(&self, tenant: &str, name: &str) -> Result<bool, StoreError>;

    /// Returns true if no other process is known to have become the owner since the storage was opened.
    fn is_current(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

/// The three seams of one partition.
#[derive(Debug)]
pub struct PartitionStorage {
    /// The log, which makes writes durable.
    pub log: Box<dyn WriteLog>,
    /// The catalog, which decides which manifest is the newest.
    pub catalog: Arc<dyn Catalog>,
    /// Segments and their sidecars.
    pub objects: Arc<dyn Objects>,
}
