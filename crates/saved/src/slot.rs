//! Slots: the parts into which the saved searches of a cluster are divided, each run by one gateway at a time.
//!
//! The number of a saved search determines its slot permanently. A slot has its own records: which process runs it
//! (`runs`), the positions up to which events were processed (`looked`), and what a clean stop kept (`state`). So a
//! slot is to its process what all saved searches are to a server without a cluster, and moves independently of the
//! others.
//!
//! A bucket may have records from before there were slots, or from the data folder of a single server. A slot starts
//! from those until it has written its own.

use super::checkpoint;
use super::claim::{self, RunRecord};
use super::clean_state;
use super::records::{SEEN, is_id};
use meridian_backend::{Records, StoreError};
use meridian_model::{RecordChange, RecordChanges};
use std::sync::Arc;

/// Number of slots. It never changes, since it maps the number of a saved search to its slot.
pub const SLOTS: u16 = 8;

/// A slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// Returns all slots, in order.
    pub fn all() -> impl Iterator<Item = Slot> {
        (0..SLOTS).map(Slot)
    }

    /// Returns the slot of the saved search with this id; `None` if it is not a valid id.
    pub fn of_id(id: &str) -> Option<Slot> {
        let number = id.get(..16).filter(|_| is_id(id))?;
        Some(Slot((u64::from_str_radix(number, 16).ok()? % u64::from(SLOTS)) as u16))
    }

    /// Returns its number, from 0.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Derives the number of a saved search in this slot from a random one.
    pub(super) fn number_of_search(self, random: u64) -> u64 {
        random - random % u64::from(SLOTS) + u64::from(self.0)
    }

    /// Returns the slot's name for a record that every slot has.
    pub(super) fn record(self, name: &str) -> String {
        format!("{name}-{}", self.0)
    }

    /// Returns the name of a record without the slot's part.
    pub(super) fn without(name: &str) -> &str {
        match name.rsplit_once('-') {
            Some((of, number)) if number.parse().is_ok_and(|number: u16| number < SLOTS) => of,
            _ => name,
        }
    }

    /// Returns true if a record belongs to a saved search of this slot; `None` if it belongs to no saved search.
    fn has(self, name: &str) -> Option<bool> {
        Slot::of_id(name.strip_suffix(SEEN).unwrap_or(name)).map(|slot| slot == self)
    }
}

/// The records of a slot, under the names they have without slots.
#[derive(Debug)]
pub(super) struct SlotRecords {
    slot: Slot,
    records: Arc<dyn Records>,
}

impl SlotRecords {
    pub(super) fn new(slot: Slot, records: Arc<dyn Records>) -> SlotRecords {
        SlotRecords { slot, records }
    }

    /// Returns the name of a record among those of all slots.
    fn outer(&self, name: &str) -> String {
        match self.slot.has(name) {
            Some(_) => name.to_owned(),
            None => self.slot.record(name),
        }
    }

    /// Returns the name here of a record among those of all slots; `None` if it belongs to another slot.
    fn inner(&self, name: &str) -> Option<String> {
        match self.slot.has(name) {
            Some(is_own) => is_own.then(|| name.to_owned()),
            None => name.strip_suffix(&self.slot.record("")).map(str::to_owned),
        }
    }

    /// Returns what a record of this slot starts from, given the record from before there were slots. `has`: whether
    /// the slot has its own record with this name.
    fn inherited(name: &str, content: Vec<u8>, has: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
        match name {
            claim::RECORD if !has(name) => {
                RunRecord::read(&content).ok().and_then(|runs| serde_json::to_vec(&runs.moved()).ok())
            }
            checkpoint::RECORD if !has(name) => Some(content),
            // Used until the first opening, which writes the checkpoint and then no longer needs it.
            clean_state::RECORD if !has(name) && !has(checkpoint::RECORD) => Some(content),
            _ => None,
        }
    }
}

impl Records for SlotRecords {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names: Vec<String> = self.records.names()?.iter().filter_map(|name| self.inner(name)).collect();
        names.sort();
        Ok(names)
    }

    fn copied(&self) -> Result<Vec<String>, StoreError> {
        let mut names: Vec<String> = self.records.copied()?.iter().filter_map(|name| self.inner(name)).collect();
        names.sort();
        Ok(names)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.records.get(&self.outer(name))
    }

    fn mended(&self) -> Vec<(String, String)> {
        let mended = self.records.mended();
        mended.into_iter().filter_map(|(name, what)| Some((self.inner(&name)?, what))).collect()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.records.put(&self.outer(name), content)
    }

    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.records.put_twice(&self.outer(name), content)
    }

    fn copy(&self, name: &str) -> Result<(), StoreError> {
        self.records.copy(&self.outer(name))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.records.remove(&self.outer(name))
    }

    fn is_shared(&self) -> bool {
        self.records.is_shared()
    }

    fn since(&self, version: u64) -> Result<Option<RecordChanges>, StoreError> {
        let Some(RecordChanges { version, whole, changes }) = self.records.since(version)? else { return Ok(None) };
        let (mut own, mut before) = (Vec::new(), Vec::new());
        for change in changes {
            match (self.inner(&change.name), change.content) {
                (Some(name), content) => own.push(RecordChange { name, content }),
                (None, Some(content)) if whole && self.slot.has(&change.name).is_none() => {
                    before.push((change.name, content))
                }
                (None, _) => {}
            }
        }
        let has = |own: &[RecordChange], name: &str| own.iter().any(|change| change.name == name);
        let begins = before.into_iter().filter_map(|(name, content)| {
            let content = SlotRecords::inherited(&name, content, |name| has(&own, name))?;
            Some(RecordChange::put(&name, content))
        });
        let begins: Vec<RecordChange> = begins.collect();
        own.extend(begins);
        Ok(Some(RecordChanges { version, whole, changes: own }))
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        let outer = |change: &RecordChange| RecordChange { name: self.outer(&change.name), ..change.clone() };
        self.records.commit(follows, &changes.iter().map(outer).collect::<Vec<_>>())
    }
}
