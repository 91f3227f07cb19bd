//! The gateway's cache of collections: the last description of each, and whether it is still valid.
//!
//! A description is valid for [`FRESH`] after it was requested, unless this gateway has written to the collection
//! since. So a request sees its own writes, and those of other gateways at most that much later. The definition alone
//! stays valid until this gateway changes it. Writes need no more than that; beside other writes they would never find
//! a valid description.

use crate::wire::described::{CollectionRef, Description};
use meridian_model::Positions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// How long a description is valid: long enough to serve one request's repeated lookups, too short to be noticed.
const FRESH: Duration = Duration::from_millis(20);
/// How long the last description is used after a failed request for a new one: each retry would delay its caller.
const FAILED: Duration = Duration::from_millis(250);

/// Max collections kept without being in use.
const KNOWN_MAX: usize = 4_096;

/// The cached state of one collection, shared by all handles of that collection.
#[derive(Debug)]
pub(super) struct Mirror {
    pub(super) place: CollectionRef,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    description: Arc<Description>,
    /// When it was requested; `None` if it is only assumed.
    asked: Option<Instant>,
    /// When the last request for it failed.
    failed: Option<Instant>,
    /// When this gateway last wrote.
    written: Option<Instant>,
    /// When this gateway last changed the schema or the settings.
    changed: Option<Instant>,
    /// The newest known positions.
    position: Positions,
}

impl State {
    /// Returns true if the description was requested a moment ago, and after this time.
    fn is_fresh_after(&self, last: Option<Instant>) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < FRESH && last.is_none_or(|last| last < asked))
    }

    /// Returns true if a request for it failed a moment ago.
    fn has_failed(&self) -> bool {
        self.failed.is_some_and(|failed| failed.elapsed() < FAILED)
    }
}

impl Mirror {
    /// Returns the last description, and whether it is still valid.
    pub(super) fn last(&self) -> (Arc<Description>, bool) {
        let state = self.state.lock();
        let is_fresh = state.is_fresh_after(state.written.max(state.changed));
        (state.description.clone(), is_fresh || state.has_failed())
    }

    /// Returns the last description, and whether its schema, settings and write limits are still valid.
    pub(super) fn definition(&self) -> (Arc<Description>, bool) {
        let state = self.state.lock();
        (state.description.clone(), state.is_fresh_after(state.changed) || state.has_failed())
    }

    /// Returns true if the collection existed a moment ago.
    pub(super) fn is_fresh(&self) -> bool {
        let state = self.state.lock();
        state.is_fresh_after(state.changed)
    }

    /// Returns true if its owner failed to answer a moment ago.
    pub(super) fn has_failed(&self) -> bool {
        self.state.lock().has_failed()
    }

    /// Records that this gateway has changed the schema or settings, or may have.
    pub(super) fn changed(&self) {
        self.state.lock().changed = Some(Instant::now());
    }

    /// Records a failed request for a description.
    pub(super) fn failed(&self) {
        self.state.lock().failed = Some(Instant::now());
    }

    /// Returns the partitions of a whole collection, with just what queries to them need: the schema to bind to, and
    /// their places.
    pub(super) fn parts(&self) -> Vec<Arc<Mirror>> {
        let (description, asked) = {
            let state = self.state.lock();
            (state.description.clone(), state.asked)
        };
        let part = |partition: usize| {
            let place = CollectionRef { partition: u16::try_from(partition).ok(), ..self.place.clone() };
            let position = Positions::one(description.position.at(partition));
            let description = Arc::new(Description { place: place.clone(), ..(*description).clone() });
            Arc::new(Mirror {
                place,
                // Valid for no longer than the description that it is made from.
                state: Mutex::new(State { description, asked, failed: None, written: None, changed: None, position }),
            })
        };
        (0..description.position.len()).map(part).collect()
    }

    /// The newest positions known.
    pub(super) fn position(&self) -> Positions {
        let state = self.state.lock();
        state.position.later(&state.description.position)
    }

    /// Records that a write of this gateway ended, whatever its outcome.
    pub(super) fn written(&self, position: Option<&Positions>) {
        let mut state = self.state.lock();
        state.written = Some(Instant::now());
        if let Some(position) = position {
            state.position = state.position.later(position);
        }
    }

    /// Records a position of a partition.
    pub(super) fn moved(&self, partition: usize, position: u64) {
        let mut state = self.state.lock();
        // Reports and responses cross: a late one must not take the position back.
        let newest = state.position.at(partition).max(position);
        state.position = state.position.with(partition, newest);
    }

    fn update(&self, description: Description, asked: Instant) {
        let mut state = self.state.lock();
        // If two descriptions cross, the one requested later is newer.
        if state.asked.is_some_and(|known| asked < known) {
            return;
        }
        // Readers compare schemas by their pointers.
        let same = *state.description.schema == *description.schema;
        let schema = if same { state.description.schema.clone() } else { description.schema.clone() };
        state.description = Arc::new(Description { schema, ..description });
        (state.asked, state.failed) = (Some(asked), None);
    }
}

/// All mirrors in use.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<HashMap<CollectionRef, Weak<Mirror>>>);

impl Mirrors {
    /// Returns the mirror of a collection, updated with a description requested at this time.
    pub(super) fn put(&self, description: Description, asked: Instant) -> Arc<Mirror> {
        match self.get(&description.place) {
            Some(mirror) => {
                mirror.update(description, asked);
                mirror
            }
            None => self.add(description, Some(asked)),
        }
    }

    /// Returns the mirror of a collection; if it is new, with an assumed description.
    pub(super) fn assume(&self, description: Description) -> Arc<Mirror> {
        match self.get(&description.place) {
            Some(mirror) => mirror,
            None => self.add(description, None),
        }
    }

    fn add(&self, description: Description, asked: Option<Instant>) -> Arc<Mirror> {
        let mut mirrors = self.0.lock();
        // Another caller created it meanwhile.
        if let Some(mirror) = mirrors.get(&description.place).and_then(Weak::upgrade) {
            return mirror;
        }
        // Unused entries are removed each time the size doubles.
        if mirrors.len().is_power_of_two() {
            mirrors.retain(|_, mirror| mirror.strong_count() > 0);
        }
        let place = description.place.clone();
        let position = description.position.clone();
        let state =
            State { description: Arc::new(description), asked, failed: None, written: None, changed: None, position };
        let mirror = Arc::new(Mirror { place: place.clone(), state: Mutex::new(state) });
        mirrors.insert(place, Arc::downgrade(&mirror));
        mirror
    }

    /// Returns the mirror of a collection if it is in use.
    pub(super) fn get(&self, place: &CollectionRef) -> Option<Arc<Mirror>> {
        self.0.lock().get(place).and_then(Weak::upgrade)
    }
}

/// Mirrors of the most recently requested collections, kept while unused. So few requests ask whether a collection
/// exists, and scan servers can serve it without an owner.
#[derive(Debug, Default)]
pub(super) struct MirrorCache(Mutex<HashMap<(String, String), Arc<Mirror>>>);

impl MirrorCache {
    /// Records the mirror of a name, or that no such collection exists.
    pub(super) fn note(&self, tenant: &str, name: &str, mirror: Option<Arc<Mirror>>) {
        let mut known = self.0.lock();
        let at = (tenant.to_owned(), name.to_owned());
        match mirror {
            Some(mirror) => {
                // Cleared entries come back when they are next requested.
                if known.len() >= KNOWN_MAX && !known.contains_key(&at) {
                    known.clear();
                }
                known.insert(at, mirror);
            }
            None => drop(known.remove(&at)),
        }
    }

    pub(super) fn get(&self, tenant: &str, name: &str) -> Option<Arc<Mirror>> {
        self.0.lock().get(&(tenant.to_owned(), name.to_owned())).cloned()
    }
}
