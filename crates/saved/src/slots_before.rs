//! Migration of a server without slots from the records of a cluster, which has some for each slot.
//!
//! They come from a backup of a cluster. Each saved search continues from the checkpoint of its slot. The first opening
//! writes one checkpoint for all, and then removes the others. After a crash in between, events are processed again
//! rather than lost.

use super::checkpoint::{self, Checkpoint};
use super::claim;
use super::clean_state::{self, CleanState};
use super::fences::Objects;
use super::opening::StoredRecords;
use super::recovery::read_clean_state;
use super::registry::SavedSearches;
use super::slot::Slot;
use meridian_backend::StoreError;
use std::collections::BTreeMap;

/// The checkpoints of a start.
pub(super) struct Checkpoints {
    /// The checkpoint of all, or of the slot.
    whole: Checkpoint,
    /// Checkpoints of slots, on a server without slots.
    slots: BTreeMap<Slot, Checkpoint>,
}

impl Checkpoints {
    pub(super) fn new(whole: Checkpoint, slots: BTreeMap<Slot, Checkpoint>) -> Checkpoints {
        Checkpoints { whole, slots }
    }

    /// Returns the checkpoint from which a saved search continues.
    pub(super) fn of(&self, id: &str) -> &Checkpoint {
        Slot::of_id(id).and_then(|slot| self.slots.get(&slot)).unwrap_or(&self.whole)
    }

    pub(super) fn whole(&self) -> &Checkpoint {
        &self.whole
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Checkpoint> {
        std::iter::once(&self.whole).chain(self.slots.values())
    }

    pub(super) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }
}

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
            match (stored.get)(&name).and_then(read_clean_state) {
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
