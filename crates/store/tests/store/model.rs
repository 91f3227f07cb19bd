//! The naive model: every version of every event in one list.

use crate::world::Event;
use meridian_model::{IdRole, Seq};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
struct Version {
    id: String,
    seq: u64,
    n: i64,
    death: Option<u64>,
}

/// What the store should hold.
#[derive(Debug, Clone)]
pub struct Model {
    role: IdRole,
    versions: Vec<Version>,
    pub position: u64,
    /// Idempotency keys: position and events.
    pub keys: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug, PartialEq)]
pub enum Expected {
    Written { written: u64, replaced: u64, position: u64 },
    Duplicate { duplicates: u64, position: u64 },
    Conflict(Vec<String>),
}

impl Model {
    pub fn new(role: IdRole) -> Model {
        Model { role, versions: Vec::new(), position: 0, keys: BTreeMap::new() }
    }

    pub fn write(&mut self, events: &[Event], key: Option<&str>, replace: bool) -> Expected {
        if let Some((position, duplicates)) = key.and_then(|k| self.keys.get(k)) {
            return Expected::Duplicate { duplicates: *duplicates, position: *position };
        }
        let mut replaced = 0;
        if self.role == IdRole::Given {
            let alive = |id: &str| self.versions.iter().any(|v| v.id == id && v.death.is_none());
            let there: Vec<String> = events.iter().filter(|e| alive(&e.id)).map(|e| e.id.clone()).collect();
            if !there.is_empty() && !replace {
                return Expected::Conflict(there);
            }
            replaced = there.len() as u64;
        }
        self.position += 1;
        for (ordinal, event) in events.iter().enumerate() {
            let seq = Seq::new(self.position, ordinal);
            let id = if self.role == IdRole::Given { event.id.clone() } else { seq.to_id() };
            for old in self.versions.iter_mut().filter(|v| v.id == id && v.death.is_none()) {
                old.death = Some(seq.0);
            }
            self.versions.push(Version { id, seq: seq.0, n: event.n, death: None });
        }
        if let Some(key) = key {
            self.keys.insert(key.to_owned(), (self.position, events.len() as u64));
        }
        Expected::Written { written: events.len() as u64, replaced, position: self.position }
    }

    pub fn delete(&mut self, ids: &[String]) -> u64 {
        self.position += 1;
        let death = Seq::new(self.position, 0).0;
        let mut deleted = 0;
        for version in self.versions.iter_mut().filter(|v| v.death.is_none() && ids.contains(&v.id)) {
            version.death = Some(death);
            deleted += 1;
        }
        deleted
    }

    /// What a snapshot at this number shows.
    pub fn content(&self, seq: Seq) -> Vec<(String, u64, i64)> {
        let seen = |v: &&Version| v.seq <= seq.0 && v.death.is_none_or(|death| death > seq.0);
        let mut found: Vec<_> = self.versions.iter().filter(seen).map(|v| (v.id.clone(), v.seq, v.n)).collect();
        found.sort();
        found
    }

    /// Ids of live events.
    pub fn alive(&self) -> Vec<String> {
        self.versions.iter().filter(|v| v.death.is_none()).map(|v| v.id.clone()).collect()
    }
}
