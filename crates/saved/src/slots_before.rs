//! Migration of a server without slots from the records of a cluster, which has some for each slot.
//!
//! They come from a backup of a cluster. Each saved search continues from the checkpoint of its slot. The first opening
//! writes one checkpoint for all, and then removes the others. After a crash in between, events are processed again
//! rather than lost.

use super::checkpoint::{self, Checkpoint};
use super::claim;
use super::clean_state::{self, CleanState};
use super::fences::Objects;
use super::records::StoredRecords;
use super::registry::SavedSearches;
use super::slot::Slot;
use meridian_backend::StoreError;
use std::collections::BTreeMap;

impl SavedSearches {
    /// Reads the checkpoints of slots, on a server without slots; reports damaged ones.
    pub(super) fn slot_checkpoints(&self, stored: &StoredRecords<'_>) -> BTreeMap<Slot, Checkpoint> {
        let mut found = BTreeMap::new();
        for slot in Slot::all().filter(|_| self.slot.is_none()) {
            let name = slot.record(checkpoint::RECORD);
            if stored.names.binary_search(&name).is_err() {
                continue;
            }
            match (stored.get)(&name).and_then(Checkpoint::read) {
                Ok((checkpoint, _)) => drop(found.insert(slot, checkpoint)),
                Err(e) => self.note_damage(&name, e.to_string()),
            }
        }
        found
    }

    /// Adds the clean states of slots to that of a server without slots.
    pub(super) fn with_slots(
        &self,
        kept: Option<CleanState>,
        slots: &BTreeMap<Slot, Checkpoint>,
        stored: &StoredRecords<'_>,
    ) -> Option<CleanState> {
        let mut all = kept;
        if let Some(all) = &mut all {
            // If a slot has its own checkpoint, its part of the state from before there were slots is outdated.
            all.searches.retain(|id, _| Slot::of_id(id).is_none_or(|slot| !slots.contains_key(&slot)));
        }
        for slot in slots.keys() {
            let name = slot.record(clean_state::RECORD);
            match (stored.get)(&name).and_then(CleanState::read) {
                Ok(None) => {}
                Ok(Some(kept)) => {
                    let all = all.get_or_insert_default();
                    all.searches.extend(kept.searches);
                    merge(&mut all.objects, kept.objects);
                    for (tenant, objects) in kept.objects_of {
                        merge(all.objects_of.entry(tenant).or_default(), objects);
                    }
                }
                Err(e) => self.note_damage(&name, e.to_string()),
            }
        }
        all
    }

    /// Removes the records of slots, once there is a checkpoint for all.
    pub(super) fn forget_slots(&self) -> Result<(), StoreError> {
        for slot in Slot::all() {
            for name in [clean_state::RECORD, checkpoint::RECORD, claim::RECORD] {
                self.records.remove(&slot.record(name))?;
            }
        }
        Ok(())
    }
}

/// Adds the objects of a slot: each object is in the saved searches of all slots.
fn merge(all: &mut Objects, more: Objects) {
    let mut at: BTreeMap<u64, usize> = all.iter().enumerate().map(|(at, (object, ..))| (*object, at)).collect();
    for (object, time, inside) in more {
        match at.get(&object) {
            Some(at) => {
                let known = &mut all[*at];
                known.1 = known.1.max(time);
                known.2.extend(inside);
                known.2.sort_unstable();
                known.2.dedup();
            }
            None => {
                at.insert(object, all.len());
                all.push((object, time, inside));
            }
        }
    }
}
