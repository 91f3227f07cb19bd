//! Where partitions keep their data.

use super::{Catalog, Disk, DiskObjects, Objects, WriteLog, objects};
use crate::catalog::disk::DiskCatalog;
use crate::log::Log;
use std::path::Path;
use std::sync::Arc;

/// Gives each partition its log, its catalog and its objects.
///
/// Of one partition there may be several at a time, in this process or in others: the log fences all writers but the last.
pub trait Storage: Send + Sync + std::fmt::Debug {
    /// The storage of the partition in a folder of the data folder. `log_file_bytes`: size of one file of its log.
    fn partition(&self, dir: &Path, log_file_bytes: u64) -> PartitionStorage;

    /// Whether another process may take a partition over while this one has it open. Then a writer commits a manifest before it serves, so
    /// that the commits of the previous writer fail. The lock of a data folder does that for [`DiskStorage`].
    fn is_shared(&self) -> bool {
        false
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
