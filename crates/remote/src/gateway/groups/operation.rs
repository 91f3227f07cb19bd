//! Metrics and disk state of all owners, for operators.

use super::GroupsBackend;
use meridian_backend::cluster::ScanReads;
use meridian_backend::{Metric, Operation};
use meridian_model::Background;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Operation for GroupsBackend {
    fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        self.owners.iter().for_each(|owner| owner.guarantee(weights));
    }

    fn charge_to(&self, _: Arc<dyn Background>) {
        // Maintenance runs at the owners, which charge their own tenants.
    }

    fn figures(&self) -> Vec<Metric> {
        // The figures of all groups, since they share the client of the scan servers.
        self.owners[0].figures()
    }

    fn scan_reads(&self) -> Option<ScanReads> {
        self.owners[0].scan_reads()
    }

    fn is_ephemeral(&self) -> bool {
        self.owners[0].is_ephemeral()
    }

    fn data_folder(&self) -> Option<&Path> {
        None
    }

    fn met_full_disk(&self) -> bool {
        self.owners.iter().any(|owner| owner.met_full_disk())
    }

    fn full_disk(&self) -> Option<PathBuf> {
        self.owners.iter().find_map(|owner| owner.full_disk())
    }
}
