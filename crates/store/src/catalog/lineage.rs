//! The manifests that one writer commits, each following the previous one.

use super::manifest::Manifest;
use crate::error::StoreError;
use crate::seams::{Catalog, CommitError};
use parking_lot::Mutex;
use std::sync::Arc;

/// A writer's hold on the catalog: it knows which version its next commit follows.
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
    /// The writer of what follows a version; 0: of the first manifest.
    pub(crate) fn after(catalog: Arc<dyn Catalog>, version: u64) -> Lineage {
        Lineage { catalog, last: Mutex::new(Last::Known(version)) }
    }

    /// Commits a manifest after the last one of this writer.
    pub(crate) fn commit(&self, manifest: &Manifest) -> Result<u64, CommitError> {
        // Held over the commit: two commits of one writer must not both claim to follow the same version.
        let mut last = self.last.lock();
        let before = match *last {
            Last::Known(version) => version,
            Last::Either { before, tried } => self.settle(before, tried)?,
        };
        // Settled: a failure of the commit below is then again about one known version.
        *last = Last::Known(before);
        let committed = self.catalog.commit(before, manifest);
        match &committed {
            Ok(_) => *last = Last::Known(manifest.version()),
            Err(CommitError::Unknown(_)) => *last = Last::Either { before, tried: manifest.version() },
            // A clean failure changed nothing, and a stale one will be stale again.
            Err(_) => {}
        }
        committed
    }

    /// Which manifest is the newest after a commit of unknown outcome. A third one is another writer's.
    fn settle(&self, before: u64, tried: u64) -> Result<u64, CommitError> {
        // This commit has not begun: that the catalog does not answer says nothing of the manifest at hand.
        let newest = self.catalog.newest().map_err(CommitError::Clean)?.map_or(0, |newest| newest.manifest.version());
        if newest == before || newest == tried { Ok(newest) } else { Err(CommitError::Stale { newest }) }
    }

    /// Brings copies of the newest manifest up to date.
    pub(crate) fn confirm(&self, manifest: &Manifest) -> Result<(), StoreError> {
        self.catalog.confirm(manifest)
    }

    /// The newest manifest as the catalog has it.
    pub(crate) fn newest(&self) -> Result<Option<Manifest>, StoreError> {
        Ok(self.catalog.newest()?.map(|newest| newest.manifest))
    }
}
