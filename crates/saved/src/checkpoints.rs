//! The checkpoints from which the saved searches of a start continue.

use super::checkpoint::Checkpoint;
use super::slot::Slot;
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
