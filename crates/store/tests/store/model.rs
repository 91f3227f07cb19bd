//! The naive model: every version of every event in one list.

use crate::world::Event;
use meridian_model::{IdRole, Seq};
use std::collections::BTreeMap;

/// How long an idempotency key is remembered, in microseconds.
pub const KEY_MEMORY: i64 = 86_400_000_000;

#[derive(Debug, Clone)]
struct Version {
    id: String,
    seq: u64,
    time: i64,
    n: i64,
    death: Option<u64>,
}

/// The write under a key.
#[derive(Debug, Clone)]
pub struct Key {
    pub position: u64,
    pub events: u64,
    pub batch: Vec<Event>,
    /// Time of use, in microseconds since 1970.
    pub time: i64,
    /// Whether the clock has shown a time at which the key is forgotten.
    pub lapsed: bool,
}

/// A write, as the model represents it.
#[derive(Debug, Clone)]
pub enum Change {
    Write {
        events: Vec<Event>,
        key: Option<String>,
        replace: bool,
        time: i64,
    },
    DeleteIds(Vec<String>),
    DeleteSeqs(Vec<u64>),
    /// Expires all events that ended before an instant.
    Expire(i64),
}

/// The expected content of the store.
#[derive(Debug, Clone)]
pub struct Model {
    role: IdRole,
    versions: Vec<Version>,
    /// Live events by id.
    alive: BTreeMap<String, usize>,
    pub position: u64,
    pub keys: BTreeMap<String, Key>,
    /// How to undo the last change: the deaths and births it caused, and its key.
    last: (Vec<usize>, usize, Option<String>),
}

#[derive(Debug, PartialEq)]
pub enum Expected {
    Written {
        written: u64,
        replaced: u64,
        position: u64,
    },
    Deleted {
        deleted: u64,
        position: u64,
    },
    Duplicate {
        duplicates: u64,
        position: u64,
    },
    /// The key was used before with other events.
    KeyReused {
        position: u64,
    },
    Conflict(Vec<String>),
}

impl Model {
    pub fn new(role: IdRole) -> Model {
        let (versions, alive, keys) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Model { role, versions, alive, position: 0, keys, last: (Vec::new(), 0, None) }
    }

    /// Returns the expected outcome of a change, without applying it.
    pub fn expect(&self, change: &Change) -> Expected {
        let position = self.position + 1;
        match change {
            Change::Write { events, key, replace, time } => {
                let known = key.as_ref().and_then(|k| self.keys.get(k)).filter(|k| time - k.time < KEY_MEMORY);
                if let Some(known) = known.filter(|known| known.batch != *events) {
                    return Expected::KeyReused { position: known.position };
                }
                if let Some(known) = known {
                    return Expected::Duplicate { duplicates: known.events, position: known.position };
                }
                let there = |e: &&Event| self.role == IdRole::Given && self.alive.contains_key(&e.id);
                let there: Vec<String> = events.iter().filter(there).map(|e| e.id.clone()).collect();
                if !there.is_empty() && !replace {
                    return Expected::Conflict(there);
                }
                Expected::Written { written: events.len() as u64, replaced: there.len() as u64, position }
            }
            Change::DeleteIds(ids) => {
                let mut ids: Vec<&String> = ids.iter().filter(|id| self.alive.contains_key(*id)).collect();
                ids.sort_unstable();
                ids.dedup();
                Expected::Deleted { deleted: ids.len() as u64, position }
            }
            Change::DeleteSeqs(seqs) => {
                let mut seqs: Vec<u64> = seqs.iter().copied().filter(|seq| self.living(*seq).is_some()).collect();
                seqs.sort_unstable();
                seqs.dedup();
                Expected::Deleted { deleted: seqs.len() as u64, position }
            }
            Change::Expire(before) => Expected::Deleted { deleted: self.ended_before(*before), position },
        }
    }

    fn living(&self, seq: u64) -> Option<usize> {
        let at = self.versions.binary_search_by_key(&seq, |v| v.seq).ok()?;
        self.versions[at].death.is_none().then_some(at)
    }

    fn kill(&mut self, at: usize, death: u64) {
        self.versions[at].death = Some(death);
        self.alive.remove(&self.versions[at].id);
        self.last.0.push(at);
    }

    /// Applies a change that the store acknowledged.
    pub fn apply(&mut self, change: &Change) -> Expected {
        let expected = self.expect(change);
        if matches!(expected, Expected::Duplicate { .. } | Expected::KeyReused { .. } | Expected::Conflict(_)) {
            return expected;
        }
        self.position += 1;
        self.last = (Vec::new(), self.versions.len(), None);
        match change {
            Change::Write { events: batch, key, time, .. } => {
                let events = batch;
                for (ordinal, event) in events.iter().enumerate() {
                    let seq = Seq::new(self.position, ordinal);
                    let id = if self.role == IdRole::Given { event.id.clone() } else { seq.to_id() };
                    if let Some(at) = self.alive.get(&id).copied() {
                        self.kill(at, seq.0);
                    }
                    self.alive.insert(id.clone(), self.versions.len());
                    self.versions.push(Version { id, seq: seq.0, time: event.time, n: event.n, death: None });
                }
                if let Some(key) = key {
                    let (position, events) = (self.position, events.len() as u64);
                    let known = Key { position, events, batch: batch.clone(), time: *time, lapsed: false };
                    self.keys.insert(key.clone(), known);
                    self.last.2 = Some(key.clone());
                }
            }
            Change::DeleteIds(ids) => {
                let at: Vec<usize> = ids.iter().filter_map(|id| self.alive.get(id).copied()).collect();
                at.into_iter().for_each(|at| self.kill(at, Seq::new(self.position, 0).0));
            }
            Change::Expire(before) => {
                let ended = |at: &usize| self.versions[*at].death.is_none() && self.versions[*at].time < *before;
                let at: Vec<usize> = (0..self.versions.len()).filter(ended).collect();
                at.into_iter().for_each(|at| self.kill(at, Seq::new(self.position, 0).0));
            }
            Change::DeleteSeqs(seqs) => {
                for seq in seqs {
                    if let Some(at) = self.living(*seq) {
                        self.kill(at, Seq::new(self.position, 0).0);
                    }
                }
            }
        }
        expected
    }

    /// Skips a deletion that found nothing, because damage hid its target.
    pub fn skip(&mut self) {
        self.position += 1;
        self.last = (Vec::new(), self.versions.len(), None);
    }

    /// Undoes the last change: it was in the one record whose damage cannot be distinguished from a torn write.
    pub fn undo(&mut self) {
        let (deaths, births, key) = std::mem::take(&mut self.last);
        for version in self.versions.drain(births..) {
            self.alive.remove(&version.id);
        }
        for at in deaths.into_iter().filter(|at| *at < births) {
            self.versions[at].death = None;
            self.alive.insert(self.versions[at].id.clone(), at);
        }
        self.last.1 = self.versions.len();
        key.map(|key| self.keys.remove(&key));
        self.position -= 1;
    }

    /// Records the time shown by the clock.
    pub fn tick(&mut self, now: i64) {
        self.keys.values_mut().filter(|k| now - k.time >= KEY_MEMORY).for_each(|k| k.lapsed = true);
    }

    /// Returns the number of live events that ended before an instant.
    pub fn ended_before(&self, before: i64) -> u64 {
        self.versions.iter().filter(|v| v.death.is_none() && v.time < before).count() as u64
    }

    /// Returns the content of a snapshot at this number.
    pub fn content(&self, seq: Seq) -> Vec<(String, u64, i64)> {
        let seen = |v: &&Version| v.seq <= seq.0 && v.death.is_none_or(|death| death > seq.0);
        let mut found: Vec<_> = self.versions.iter().filter(seen).map(|v| (v.id.clone(), v.seq, v.n)).collect();
        found.sort();
        found
    }

    /// Returns true if such an event was ever written.
    pub fn knows(&self, event: &(String, u64, i64)) -> bool {
        let found = self.versions.binary_search_by_key(&event.1, |v| v.seq);
        found.is_ok_and(|at| self.versions[at].id == event.0 && self.versions[at].n == event.2)
    }

    /// Returns the ids of live events.
    pub fn alive(&self) -> Vec<String> {
        self.alive.keys().cloned().collect()
    }
}
