//! The next manifest: made under the partition's lock, and committed without it, so that writers need not wait for the
//! disk or the bucket.

use super::Partition;
use crate::catalog::lineage::Lineage;
use crate::error::StoreError;
use crate::manifest::{Manifest, SegmentEntry};
use crate::part::Entry;
use crate::seams::CommitError;
use crate::seams::objects::put_all;
use crate::state::Shared;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// A manifest to be committed, with the objects that it names first.
#[derive(Debug)]
pub(crate) struct NextManifest {
    pub(crate) manifest: Manifest,
    /// Dead rows, hidden rows and idempotency keys, with their names.
    objects: Vec<(String, Vec<u8>)>,
}

impl NextManifest {
    /// Writes the objects, then the manifest.
    pub(crate) fn commit(&self, shared: &Shared, catalog: &Lineage) -> Result<(), CommitError> {
        for (name, bytes) in &self.objects {
            let path = shared.objects.path(name);
            put_all(shared.objects.as_ref(), name, bytes)
                .map_err(|error| CommitError::Clean(StoreError::io("write", &path)(error)))?;
            shared.counters.add_sidecar_bytes(bytes.len() as u64);
        }
        // Objects first, then the manifest that names them: a crash in between leaves leftovers, never a name without
        // its object.
        if !self.objects.is_empty() {
            shared.sync_objects().map_err(CommitError::Clean)?;
        }
        let bytes = catalog.commit(&self.manifest)?;
        shared.counters.add_sidecar_bytes(bytes);
        Ok(())
    }
}

impl Partition {
    /// Returns the manifest of these entries, which covers writes up to `flushed`. `segments` get the numbers of new
    /// files.
    pub(crate) fn next_manifest(
        &self,
        entries: &[Entry],
        segments: &mut BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<NextManifest, StoreError> {
        let mut objects = Vec::from_iter(self.dead_file(entries, segments, flushed)?);
        let hidden = self.hidden_file(entries, segments, flushed)?.map(|(file, name, bytes)| {
            objects.push((name, bytes));
            file
        });
        // Wall time: files of keys expire across restarts.
        let now = self.shared.seams.clock.now();
        // Taken even if no keys are written: the number is the manifest's version.
        let file = self.shared.number_file();
        // Only a flush moves keys from the log to a file; a merge leaves them alone and writes less.
        let keys = if flushed == self.manifest.flushed {
            self.manifest.keys.clone()
        } else {
            let (keys, fresh) = self.keys.encode(&self.manifest.keys, flushed, now, file);
            objects.extend(fresh);
            keys
        };
        let manifest = Manifest {
            flushed,
            dropped_seq: self.shared.horizon.dropped(),
            next_file: self.shared.next_file.load(Ordering::Relaxed),
            // Damaged segments stay named: dropping them here would make a repair impossible.
            segments: segments.values().chain(&self.damaged).cloned().collect(),
            keys,
            hidden,
            log: match flushed == self.manifest.flushed && !self.log_wants_flush() {
                true => self.manifest.log,
                false => self.log.as_ref().and_then(|log| log.place(flushed)),
            },
            ..self.manifest.clone()
        };
        Ok(NextManifest { manifest, objects })
    }

    /// Commits the manifest of these entries under the lock; for a repair, which has the partition to itself.
    pub(crate) fn save(
        &self,
        entries: &[Entry],
        segments: &mut BTreeMap<u64, SegmentEntry>,
        flushed: u64,
    ) -> Result<Manifest, CommitError> {
        let next = self.next_manifest(entries, segments, flushed).map_err(CommitError::Clean)?;
        next.commit(&self.shared, &self.catalog)?;
        Ok(next.manifest)
    }
}
