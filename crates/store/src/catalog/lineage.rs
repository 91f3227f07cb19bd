//! The manifests that one writer commits, each following the previous one.

use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::seams::{Catalog, CommitError};
use parking_lot::Mutex;
use std::sync::Arc;

/// A writer's position in the catalog: it knows which version its next commit follows.
#[derive(Debug)]
pub(crate) struct Lineage {
    catalog: Arc<dyn Catalog>,
    last: Mutex<Last>,
}

/// The newest manifest of this writer.
#[derive(Debug, Clone, Copy)]
enum Last {
    /// This version is the newest.
    Known(u64),
    /// The outcome of a commit is unknown: one of the two is the newest.
    Either { before: u64, tried: u64 },
}

impl Lineage {
    /// Creates the writer of the manifests after this version; 0 for the first manifest.
    pub(crate) fn after(catalog: Arc<dyn Catalog>, version: u64) -> Lineage {
        Lineage { catalog, last: Mutex::new(Last::Known(version)) }
    }

    /// Returns the same writer for a catalog that was moved.
    pub(crate) fn moved(&self, catalog: Arc<dyn Catalog>) -> Lineage {
        Lineage { catalog, last: Mutex::new(*self.last.lock()) }
    }

    /// Commits a manifest after the last one of this writer.
    pub(crate) fn commit(&self, manifest: &Manifest) -> Result<u64, CommitError> {
        // Held across the commit: two commits of one writer must not both claim to follow the same version.
        let mut last = self.last.lock();
        let before = self.before(*last)?;
        // Settled, so a failure of the commit below again concerns one known version.
        *last = Last::Known(before);
        let committed = self.catalog.commit(before, manifest);
        match &committed {
            Ok(_) => *last = Last::Known(manifest.version()),
            Err(CommitError::Unknown(_)) => *last = Last::Either { before, tried: manifest.version() },
            // A clean failure changed nothing, and a stale commit will be stale again.
            Err(_) => {}
        }
        committed
    }

    /// Commits the drop of the collection.
    pub(crate) fn end(&self) -> Result<(), CommitError> {
        let last = self.last.lock();
        self.catalog.end(self.before(*last)?)
    }

    /// Returns the version that the next commit follows.
    fn before(&self, last: Last) -> Result<u64, CommitError> {
        match last {
            Last::Known(version) => Ok(version),
            Last::Either { before, tried } => self.settle(before, tried),
        }
    }

    /// Determines which manifest is the newest after a commit of unknown outcome. A third one is another writer's.
    fn settle(&self, before: u64, tried: u64) -> Result<u64, CommitError> {
        // This commit has not begun: a catalog that does not answer proves nothing about the current manifest.
        let newest = self.catalog.newest().map_err(CommitError::Clean)?.map_or(0, |newest| newest.manifest.version());
        if newest == before || newest == tried { Ok(newest) } else { Err(CommitError::Stale { newest }) }
    }

    /// Updates copies of the newest manifest.
    pub(crate) fn confirm(&self, manifest: &Manifest) -> Result<(), StoreError> {
        self.catalog.confirm(manifest)
    }

    /// Returns the newest manifest in the catalog.
    pub(crate) fn newest(&self) -> Result<Option<Manifest>, StoreError> {
        Ok(self.catalog.newest()?.map(|newest| newest.manifest))
    }

    /// Returns true if the collection was dropped.
    pub(crate) fn is_ended(&self) -> Result<bool, StoreError> {
        self.catalog.is_ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, Settings};
    use crate::paths::partition_dir;
    use crate::seams::{Failure, ManualClock, MemoryDisk, MemoryStorage, Seam, Seams, SeededRandom, Storage};
    use crate::store::Store;
    use meridian_model::Schema;
    use std::path::Path;

    /// Returns the catalog of a new collection, and its first manifest.
    fn made() -> (MemoryStorage, Arc<dyn Catalog>, Manifest) {
        let (storage, disk) = (MemoryStorage::new(), Arc::new(MemoryDisk::new()));
        let seams = Seams { disk, clock: Arc::new(ManualClock::new(1)), random: Arc::new(SeededRandom::new(7)) };
        let options = Options { background: false, ..Options::at("/data") };
        let store = Store::open_over(options, seams, |_| Arc::new(storage.clone()) as Arc<dyn Storage>).unwrap();
        store.create("t", "c", Schema::default(), Settings::default()).unwrap();
        let catalog = storage.partition(&partition_dir(Path::new("/data"), "t", "c", 0), 0).catalog;
        let first = catalog.newest().unwrap().unwrap().manifest;
        (storage, catalog, first)
    }

    #[test]
    fn a_commit_after_one_of_unknown_outcome_follows_the_one_that_stands() {
        for (failure, stands) in [(Failure::After, true), (Failure::Stalled, false)] {
            let (storage, catalog, first) = made();
            let lineage = Lineage::after(catalog.clone(), first.version());
            let second = first.successor();
            storage.fail(Seam::Catalog, failure, 0);
            assert!(lineage.commit(&second).is_err_and(|error| error.is_unknown()), "{failure:?}");
            let newest = catalog.newest().unwrap().unwrap().manifest.version();
            assert_eq!(newest == second.version(), stands, "{failure:?}");
            let third = second.successor();
            assert!(lineage.commit(&third).is_ok(), "{failure:?}");
            // The stalled commit arrives too late to take effect.
            storage.deliver();
            assert_eq!(catalog.newest().unwrap().unwrap().manifest.version(), third.version(), "{failure:?}");
        }
    }

    #[test]
    fn after_an_unknown_outcome_another_writer_is_not_followed() {
        let (storage, catalog, first) = made();
        let lineage = Lineage::after(catalog.clone(), first.version());
        storage.fail(Seam::Catalog, Failure::Stalled, 0);
        assert!(lineage.commit(&first.successor()).is_err());
        let others = first.successor().successor();
        catalog.commit(first.version(), &others).unwrap();
        let late = lineage.commit(&others.successor());
        assert!(matches!(late, Err(CommitError::Stale { newest }) if newest == others.version()), "{late:?}");
        assert_eq!(catalog.newest().unwrap().unwrap().manifest.version(), others.version());
    }
}
