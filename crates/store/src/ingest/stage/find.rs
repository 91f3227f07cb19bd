//! Finds live events by their ids: first in earlier writes of the group, then in parts from newest to oldest. An id
//! that is replaced often is in the newest.

use super::Stage;
use super::events::Target;
use super::newest::RowLocation;
use crate::codec::hash;
use crate::error::StoreError;
use crate::part::keys::KeyRows;
use arrow_array::StringArray;
use meridian_model::{IdRole, Seq};

impl Stage<'_> {
    /// Returns the rows of a batch whose ids belong to live events, with the places of these. `keys` are the keys of
    /// its ids.
    ///
    /// Equals [`Stage::find`] for each id, but works part by part. A part's filter is fetched once, and probed in its
    /// own order. So ten thousand ids cost little more than as many bits.
    pub(crate) fn find_all(&self, keys: &KeyRows, ids: &StringArray) -> Result<Vec<(u32, RowLocation)>, StoreError> {
        let KeyRows { keys, rows } = keys;
        let id_of = |i: u32| ids.value(rows[i as usize] as usize);
        let mut there = Vec::new();
        // Indexes of the keys that are not found yet.
        let mut open: Vec<u32> = (0..keys.len() as u32).collect();
        if !self.staged.is_empty() {
            open.retain(|&i| {
                let place = self.find_staged(keys[i as usize], id_of(i), None);
                there.extend(place.map(|place| (rows[i as usize], place)));
                place.is_none()
            });
        }
        for (entry, e) in self.entries.iter().enumerate().rev() {
            if open.is_empty() {
                break;
            }
            let mut found = Vec::new();
            for i in e.part.may_hold(self.context.rule, keys, &open)? {
                if let Some(place) = self.find_in(entry, keys[i as usize], id_of(i), None)? {
                    there.push((rows[i as usize], place));
                    found.push(i);
                }
            }
            if !found.is_empty() {
                // `found` is ascending because filters meet the keys in their order.
                open.retain(|i| found.binary_search(i).is_err());
            }
        }
        Ok(there)
    }

    /// Returns the live event with this key and id, and, if given, with this number.
    pub(crate) fn find(&self, key: u64, id: &str, seq: Option<u64>) -> Result<Option<RowLocation>, StoreError> {
        if let Some(place) = self.find_staged(key, id, seq) {
            return Ok(Some(place));
        }
        for entry in (0..self.entries.len()).rev() {
            if let Some(place) = self.find_in(entry, key, id, seq)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    pub(crate) fn find_target(&self, target: &Target) -> Result<Option<RowLocation>, StoreError> {
        let key = match self.context.rule.role {
            IdRole::Given => hash(self.context.rule.seed, target.id.as_bytes()),
            IdRole::Made => target.seq,
        };
        self.find(key, &target.id, Some(target.seq))
    }

    fn find_staged(&self, key: u64, id: &str, seq: Option<u64>) -> Option<RowLocation> {
        for (batch, staged) in self.staged.iter().enumerate().rev() {
            let rows: Vec<u32> = match (self.context.rule.role, staged.events.batch.ids()) {
                (IdRole::Given, Some(ids)) => {
                    let rows = staged.events.ids.rows_of(key).iter().copied();
                    rows.filter(|row| ids.value(*row as usize) == id).collect()
                }
                _ => {
                    // A generated id is the sequence number itself, so position and ordinal locate the row without a
                    // search.
                    let ordinal = self.context.numbering.ordinal_at(staged.position, Seq(key));
                    let here = ordinal.filter(|ordinal| *ordinal < staged.events.batch.rows());
                    here.map(|ordinal| ordinal as u32).into_iter().collect()
                }
            };
            for row in rows {
                let fits = seq.is_none_or(|s| s == self.seq_of(staged.position, row));
                if fits && staged.dead.death(row).is_none() {
                    return Some(RowLocation::Staged { batch, row });
                }
            }
        }
        None
    }

    fn find_in(&self, entry: usize, key: u64, id: &str, seq: Option<u64>) -> Result<Option<RowLocation>, StoreError> {
        let e = &self.entries[entry];
        let dead = self.dead.get(&entry).unwrap_or(&e.dead);
        for (row, found) in e.part.find_key(self.context.rule, &self.context.layout, key, id)? {
            // Keys are hashes, and an id can have dead versions in the same part: the row must match and be alive.
            if seq.is_none_or(|s| s == found) && dead.death(row).is_none() {
                return Ok(Some(RowLocation::Part { entry, row }));
            }
        }
        Ok(None)
    }

    /// Returns the number of an event.
    pub(crate) fn seq_at(&self, place: RowLocation) -> Result<u64, StoreError> {
        match place {
            RowLocation::Staged { batch, row } => Ok(self.seq_of(self.staged[batch].position, row)),
            RowLocation::Part { entry, row } => {
                Ok(self.entries[entry].part.seqs(row..row + 1)?.first().copied().unwrap_or(0))
            }
        }
    }
}
