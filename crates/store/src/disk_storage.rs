//! The storage of partitions in a data folder.

use crate::catalog::disk::DiskCatalog;
use crate::log::Log;
use crate::seams::{Disk, DiskObjects, PartitionStorage, Storage, objects};
use std::path::Path;
use std::sync::Arc;

/// Stores all of a partition in its folder.
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
