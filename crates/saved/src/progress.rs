//! The progress of the matcher: in memory, and as the checkpoint that is written from it.

use super::checkpoint::{
    Checkpoint, LogPosition, Positions, RECORD, SearchPositions, earliest, positions_of, unopened_of,
};
use super::checkpoints::Checkpoints;
use super::search::SavedSearch;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::{Backend, Records, StoreError};
use meridian_model::Invalid;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Saved searches removed at a time, while the matcher waits.
const FORGOTTEN: usize = 256;

/// The origin of events: their collection, and its tenant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) tenant: &'a Arc<str>,
    pub(super) collection: &'a Arc<str>,
}

/// The progress of the matcher, in memory.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    /// Whether the catch-up is done. Before that, and after the last write, the record on disk stays as it is.
    caught_up: AtomicBool,
    /// The bytes on disk.
    written: Mutex<Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    /// The last processed position of each collection, by tenant and name.
    places: HashMap<Arc<str>, HashMap<Arc<str>, LogPosition>>,
    /// Saved searches that may have unread packets, by number.
    unread: HashMap<u64, Arc<SavedSearch>>,
    /// The unread positions from before the start, until the catch-up is done.
    waited: SearchPositions,
}

impl Progress {
    /// Records that all writes up to these positions of the collection created at `made` were processed.
    pub(super) fn mark_processed(&self, place: Origin<'_>, made: i64, position: meridian_model::Positions) {
        let mut state = self.state.lock();
        let places = state.places.entry(place.tenant.clone()).or_default();
        places.insert(place.collection.clone(), LogPosition { made, position });
    }

    /// As above, for one partition.
    pub(super) fn mark_partition(&self, place: Origin<'_>, made: i64, partition: usize, position: u64) {
        let mut state = self.state.lock();
        let places = state.places.entry(place.tenant.clone()).or_default();
        // Another collection with this name begins at 0.
        let before = places.get(place.collection).filter(|before| before.made == made);
        let position = before
            .map_or_else(meridian_model::Positions::default, |before| before.position.clone())
            .with(partition, position);
        places.insert(place.collection.clone(), LogPosition { made, position });
    }

    /// The last processed position of a collection.
    fn place(&self, place: Origin<'_>) -> Option<LogPosition> {
        self.state.lock().places.get(place.tenant)?.get(place.collection).cloned()
    }

    /// Removes the positions of a tenant that is removed.
    pub(super) fn forget_tenant(&self, tenant: &str) {
        self.state.lock().places.remove(tenant);
    }

    /// Records that this saved search may have unread packets.
    pub(super) fn unread(&self, search: &Arc<SavedSearch>) {
        self.state.lock().unread.entry(search.number).or_insert_with(|| search.clone());
    }

    /// Removes those of these saved searches that have no unread packets.
    fn forget(&self, read: &[Arc<SavedSearch>]) {
        // In chunks, as the matcher needs this lock for each event batch.
        for some in read.chunks(FORGOTTEN) {
            let mut state = self.state.lock();
            for search in some.iter().filter(|search| search.untaken().is_empty()) {
                state.unread.remove(&search.number);
            }
        }
    }

    /// Returns true if the catch-up is done and the last write has not been made.
    #[cfg(test)]
    pub(super) fn is_caught_up(&self) -> bool {
        self.caught_up.load(Ordering::Acquire)
    }

    /// Records that the catch-up is done.
    pub(super) fn set_caught_up(&self) {
        // From here on the packets of the catch-up are in `unread`, which covers the same events.
        self.state.lock().waited.clear();
        self.caught_up.store(true, Ordering::Release);
    }

    /// Continues from the record with these bytes.
    ///
    /// # Errors
    /// Those of [`list`](meridian_backend::Backend::list) and [`damaged`](meridian_backend::Backend::damaged).
    pub(super) fn resume_at(
        &self,
        backend: &dyn Backend,
        checkpoints: &Checkpoints,
        bytes: Vec<u8>,
    ) -> Result<(), StoreError> {
        checkpoints.all().try_for_each(|checkpoint| self.resume_by(backend, checkpoint))?;
        *self.written.lock() = bytes;
        Ok(())
    }

    /// With several checkpoints, the earliest positions count.
    fn resume_by(&self, backend: &dyn Backend, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let of_default = (DEFAULT_TENANT, &checkpoint.collections);
        let of_others = checkpoint.tenants.iter().map(|(tenant, places)| (tenant.as_str(), places));
        for (tenant, places) in std::iter::once(of_default).chain(of_others) {
            // Read before the list, which may contain one that is opened meanwhile.
            let unopened = unopened_of(backend, tenant)?;
            let there = positions_of(backend, tenant)?;
            for (name, LogPosition { made, position }) in places {
                let position = match there.get(name) {
                    // An ephemeral collection restarts at 0.
                    Some(now) if now.made == *made => position.earlier(&now.position),
                    // It continues there once it can be opened.
                    None if unopened.contains(name) => position.clone(),
                    _ => continue,
                };
                let place = Origin { tenant: &tenant.into(), collection: &name.as_str().into() };
                let known = self.place(place).filter(|known| known.made == *made);
                let position = known.map_or(position.clone(), |known| known.position.earlier(&position));
                self.mark_processed(place, *made, position);
            }
        }
        self.state.lock().waited.extend(checkpoint.waiting.clone());
        Ok(())
    }

    /// Marks all existing events of a tenant as processed.
    ///
    /// # Errors
    /// Those of [`list`](meridian_backend::Backend::list).
    pub(super) fn mark_all_processed(&self, backend: &dyn Backend, tenant: &Arc<str>) -> Result<(), StoreError> {
        for collection in backend.list(tenant)? {
            let place = Origin { tenant, collection: &collection.name().into() };
            self.mark_processed(place, collection.created(), collection.position());
        }
        Ok(())
    }

    /// Writes the checkpoint if it has changed, but not before the catch-up is done. The `last` write is that of a
    /// clean stop, which also writes the unread packets. No write follows it.
    pub(super) fn write(&self, records: &dyn Records, backend: &dyn Backend, last: bool) -> Result<(), StoreError> {
        let mut written = self.written.lock();
        if !self.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        // After the last write the record is frozen: a later one would drop the flag that a clean state exists.
        self.caught_up.store(!last, Ordering::Release);
        self.put_looked(records, backend, &mut written, last)
    }

    /// Writes the checkpoint before the catch-up is done: what was unread before the start still is, and the kept
    /// packets still exist.
    pub(super) fn write_waiting(&self, records: &dyn Records, backend: &dyn Backend) -> Result<(), StoreError> {
        self.put_looked(records, backend, &mut self.written.lock(), false)
    }

    fn put_looked(
        &self,
        records: &dyn Records,
        backend: &dyn Backend,
        written: &mut Vec<u8>,
        kept: bool,
    ) -> Result<(), StoreError> {
        let checkpoint = self.checkpoint(backend, kept);
        let nothing =
            checkpoint.collections.is_empty() && checkpoint.tenants.is_empty() && checkpoint.waiting.is_empty();
        if written.is_empty() && nothing && !kept {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&checkpoint).map_err(|e| Invalid::new(e.to_string()))?;
        // An idle server writes nothing: the record changes only with events.
        if *written != bytes {
            records.put(RECORD, &bytes)?;
            *written = bytes;
        }
        Ok(())
    }

    fn checkpoint(&self, backend: &dyn Backend, kept: bool) -> Checkpoint {
        // The matcher marks packets as unread before it advances the position. Reading both under one lock keeps them
        // consistent.
        let state = self.state.lock();
        let (places, unread) = (state.places.clone(), state.unread.values().cloned().collect::<Vec<_>>());
        let mut checkpoint = Checkpoint { waiting: state.waited.clone(), kept, ..Checkpoint::default() };
        // There may be very many, and the matcher must not wait meanwhile.
        drop(state);
        let mut read = Vec::new();
        for search in unread {
            let waiting = search.behind();
            if waiting.is_empty() {
                read.push(search);
            } else if !kept {
                let of = checkpoint.waiting.entry(search.id.clone()).or_default();
                for (name, unread) in waiting {
                    of.entry(name).and_modify(|min| *min = earliest(min, &unread)).or_insert(unread);
                }
            }
        }
        self.forget(&read);
        // Positions of removed collections are dropped; otherwise the record would grow with every collection ever
        // created.
        for (tenant, places) in places {
            let there = positions_of(backend, &tenant).ok();
            let lacks = |there: &Positions| places.keys().any(|name| !there.contains_key(&**name));
            // One that cannot be opened now keeps its position. These are only listed if one is missing.
            let unopened = match there.as_ref().is_some_and(lacks) {
                true => unopened_of(backend, &tenant).ok(),
                false => Some(BTreeSet::new()),
            };
            let there_still = |name: &str, place: &LogPosition| match (&there, &unopened) {
                (Some(there), Some(unopened)) => {
                    // A renamed one exists under another name, which the next start finds
                    // (`Checkpoint::follow_renames`).
                    let is_there = there.values().any(|now| now.made == place.made);
                    is_there || !there.contains_key(name) && unopened.contains(name)
                }
                // All are kept while the collections cannot be listed.
                _ => true,
            };
            let kept = places.iter().filter(|(name, place)| there_still(name, place));
            let kept: Positions = kept.map(|(name, place)| (name.to_string(), place.clone())).collect();
            if &*tenant == DEFAULT_TENANT {
                checkpoint.collections = kept;
            } else if !kept.is_empty() {
                checkpoint.tenants.insert(tenant.to_string(), kept);
            }
        }
        checkpoint
    }
}
