//! The cost of a batch: by its workload's own numbers, or by numbers common to all workloads.

use super::shared::Work;
use super::{Tier, Workload};
use crate::simulate::events::{Micros, micros};
use serde::{Deserialize, Serialize};

/// Costs by the work of a scan, whatever its workload. So unmeasured workloads have costs too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Processor time of a tablet server per entry read, in microseconds.
    pub read_us: f64,
    /// The same per entry returned, in addition to its reading.
    pub return_us: f64,
    /// Processor time of a batch besides its entries, in milliseconds. The server takes it for each batch, and the
    /// storage node for a scan's first one. Further batches continue a read that the storage node is already sending.
    pub request_ms: f64,
    /// Share of `request_ms` on the storage node.
    pub storage_share: f64,
    /// Cores of a storage node.
    pub storage_cores: u32,
    /// Whether a tablet server reads from a storage node on its own machine, and shares its cores with that node's
    /// work.
    pub colocated: bool,
    /// Speed of a scan server's cores relative to a tablet server's.
    pub scan_server_speed: f64,
}

/// The cost of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Batch {
    /// Time on the server's cores.
    pub work: Work,
    /// Time on a storage node, which serves one read at a time.
    pub storage: Micros,
}

/// The cost of a scan's batches.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Scan {
    pub(super) first: Batch,
    /// Cost of each further one.
    pub(super) further: Batch,
}

impl Costs {
    /// Refuses invalid numbers, with a sentence that names the key.
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, x) in [("read_us", self.read_us), ("return_us", self.return_us), ("request_ms", self.request_ms)] {
            if !(0.0..=1e9).contains(&x) {
                return Err(format!("costs.{name} = {x}: expected 0 to 1e9"));
            }
        }
        if !(0.0..=1.0).contains(&self.storage_share) {
            return Err(format!("costs.storage_share = {}: expected 0 to 1", self.storage_share));
        }
        if !(1..=10_000).contains(&self.storage_cores) {
            return Err(format!("costs.storage_cores = {}: expected 1 to 10000", self.storage_cores));
        }
        if !(0.001..=1e3).contains(&self.scan_server_speed) {
            return Err(format!("costs.scan_server_speed = {}: expected 0.001 to 1000", self.scan_server_speed));
        }
        Ok(())
    }

    /// Returns the cost of a batch by the entries that it reads and returns, the first of its scan or a further one.
    pub fn batch(&self, immediate: bool, read: f64, returned: f64, first: bool) -> Batch {
        let scan = self.scan(immediate, read, returned);
        if first { scan.first } else { scan.further }
    }

    /// Returns the time of a scan's batches. Each batch reads `read` entries and returns `returned`.
    fn scan(&self, immediate: bool, read: f64, returned: f64) -> Scan {
        let entries_us = self.read_us * read + self.return_us * returned;
        let storage_us = self.request_ms * 1e3 * self.storage_share;
        let server_us = entries_us + self.request_ms * 1e3 - storage_us;
        let batch = |work_us: f64, storage_us: f64| Batch {
            work: (work_us * 1e3) as Work,
            storage: micros(storage_us / f64::from(self.storage_cores) / 1e6),
        };
        match (immediate, self.colocated) {
            // The storage node's work is done by the same cores.
            (true, true) => Scan { first: batch(server_us + storage_us, 0.0), further: batch(server_us, 0.0) },
            (true, false) => Scan { first: batch(server_us, storage_us), further: batch(server_us, 0.0) },
            (false, _) => {
                let own_us = server_us / self.scan_server_speed;
                Scan { first: batch(own_us, storage_us), further: batch(own_us, 0.0) }
            }
        }
    }
}

impl Tier {
    /// Returns the cost of a scan's batches, if it reads `read` entries in all.
    pub(super) fn scan(&self, work: &Workload, read: f64, batches: f64) -> Scan {
        if let Some(costs) = &self.costs {
            return costs.scan(self.immediate, read / batches, read * work.returned / batches);
        }
        let size = read / work.entries.mean;
        let factor = if self.immediate { work.tablet_server_factor.unwrap_or(1.0) } else { 1.0 };
        let [cpu_ms, storage_ms] = [work.cpu_ms, work.storage_ms].map(|ms| ms.unwrap_or_default());
        let batch = Batch {
            work: (cpu_ms * factor * size / batches * 1e6) as Work,
            storage: micros(storage_ms * size / batches / 1e3),
        };
        Scan { first: batch, further: batch }
    }
}
