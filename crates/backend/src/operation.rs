//! Metrics, disk state and shares of a backend, for operators.

use crate::cluster::ScanReads;
use meridian_model::Background;
use meridian_store::{ExtentStats, TreeStats};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// How its value changes.
    pub kind: MetricKind,
    /// Its name.
    pub name: &'static str,
    /// The meaning of the count, as a sentence.
    pub help: &'static str,
    /// Its value.
    pub value: u64,
}

/// How the value of a metric changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Returns metrics.
pub type MetricSource = Arc<dyn Fn() -> Vec<Metric> + Send + Sync>;

/// A partition held by a process, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPartition {
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
/// Metrics, disk state and shares of a backend, for operators.
pub trait Operation: Debug + Send + Sync {
    /// Guarantees each tenant a share of the memory for writes, by its weight. Returns at once.
    fn guarantee(&self, weights: &[(Arc<str>, u32)]);

    /// Charges tenants for the maintenance of their collections, from now on. Only the first call counts.
    fn charge_to(&self, background: Arc<dyn Background>);

    /// Returns the partitions held by this process itself. Returns at once.
    fn held(&self) -> Vec<HeldPartition> {
        Vec::new()
    }

    /// Returns metrics of queries served by other processes, or for them. Returns at once.
    fn figures(&self) -> Vec<Metric> {
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

    /// Returns true if every write passes through this process, so that a position beyond its newest is of no
    /// acknowledged write. Returns at once.
    fn has_every_write(&self) -> bool {
        false
    }

    /// Returns the caches of a bucket in this process, of objects and of segment trees; `None` if it reads no bucket.
    fn bucket_cache(&self) -> Option<(ExtentStats, TreeStats)> {
        None
    }

    /// Returns the bytes of memory trees in this process, of one tenant or of all; `None` if other processes have the
    /// collections. Returns at once.
    fn write_memory(&self, tenant: Option<&str>) -> Option<u64> {
        let _ = tenant;
        None
    }

    /// Returns true if everything is stored in memory only.
    fn is_ephemeral(&self) -> bool;

    /// Returns the folder of the collections' files, if it is on this machine.
    fn data_folder(&self) -> Option<&Path>;

    /// Returns true if a write failed on a full disk since [`Operation::full_disk`] last found space. Returns at once.
    fn met_full_disk(&self) -> bool;

    /// Returns the file for which the disk has no space; `None` if there is space again. Writes about 100 KiB to check.
    fn full_disk(&self) -> Option<PathBuf>;
}
