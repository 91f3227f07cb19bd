//! What the gateway knows of each collection: its last description, and whether that still holds.
//!
//! A description holds for [`FRESH`] after it was asked for, unless this gateway wrote to the collection since. So a
//! request sees its own writes, and those of other gateways no later than that. The definition alone holds unless this gateway changed it
//! since: a write needs no more, and beside other writes none would find a description that holds.

use crate::wire::described::{CollectionRef, Description};
use meridian_model::Positions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// How long a description holds: longer than a request asks for it again and again, shorter than anyone notices.
const FRESH: Duration = Duration::from_millis(20);
/// For how long a description stands for one that could not be had: each further try would delay its caller.
const FAILED: Duration = Duration::from_millis(250);

/// Most collections that are known without being held.
const KNOWN_MAX: usize = 4_096;

/// The mirror of one collection. Everything here that names the collection shares it.
#[derive(Debug)]
pub(super) struct Mirror {
    pub(super) place: CollectionRef,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    description: Arc<Description>,
    /// When it was asked for; `None`: it is assumed.
    asked: Option<Instant>,
    /// When it was asked for last in vain.
    failed: Option<Instant>,
    /// When this gateway last wrote.
    written: Option<Instant>,
    /// When this gateway last changed schema or settings.
    changed: Option<Instant>,
    /// The newest positions that were heard of.
    position: Positions,
}

impl State {
    /// Whether the description was asked for just now, and after this.
    fn is_fresh_after(&self, last: Option<Instant>) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < FRESH && last.is_none_or(|last| last < asked))
    }

    /// Whether it was asked for in vain just now.
    fn has_failed(&self) -> bool {
        self.failed.is_some_and(|failed| failed.elapsed() < FAILED)
    }
}

impl Mirror {
    /// The last description, and whether it still holds.
    pub(super) fn last(&self) -> (Arc<Description>, bool) {
        let state = self.state.lock();
        let is_fresh = state.is_fresh_after(state.written.max(state.changed));
        (state.description.clone(), is_fresh || state.has_failed())
    }

    /// The last description, and whether its schema, its settings and what it says of writes still hold.
    pub(super) fn definition(&self) -> (Arc<Description>, bool) {
        let state = self.state.lock();
        (state.description.clone(), state.is_fresh_after(state.changed) || state.has_failed())
    }

    /// Whether the collection was there just now.
    pub(super) fn is_fresh(&self) -> bool {
        let state = self.state.lock();
        state.is_fresh_after(state.changed)
    }

    /// Whether its owner was asked in vain just now.
    pub(super) fn has_failed(&self) -> bool {
        self.state.lock().has_failed()
    }

    /// Notes that this gateway has changed schema or settings, or may have.
    pub(super) fn changed(&self) {
        self.state.lock().changed = Some(Instant::now());
    }

    /// Notes that a description was asked for in vain.
    pub(super) fn failed(&self) {
        self.state.lock().failed = Some(Instant::now());
    }

    /// The partitions of a whole collection, as far as questions to them need to know: the schema that they are bound to, and their places.
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

    /// Notes a write of this gateway that has ended, whatever became of it.
    pub(super) fn written(&self, position: Option<&Positions>) {
        let mut state = self.state.lock();
        state.written = Some(Instant::now());
        if let Some(position) = position {
            state.position = state.position.later(position);
        }
    }

    /// Notes a position of a partition.
    pub(super) fn moved(&self, partition: usize, position: u64) {
        let mut state = self.state.lock();
        let newest = state.position.at(partition).max(position);
        state.position = state.position.with(partition, newest);
    }

    fn update(&self, description: Description, asked: Instant) {
        let mut state = self.state.lock();
        // Of two that cross, the one that was asked for later is newer.
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

/// The mirrors in use.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<HashMap<CollectionRef, Weak<Mirror>>>);

impl Mirrors {
    /// The mirror of a collection, with a description that was asked for at a time.
    pub(super) fn put(&self, description: Description, asked: Instant) -> Arc<Mirror> {
        match self.get(&description.place) {
            Some(mirror) => {
                mirror.update(description, asked);
                mirror
            }
            None => self.add(description, Some(asked)),
        }
    }

    /// The mirror of a collection, with a description that nobody was asked for if there is none yet.
    pub(super) fn assume(&self, description: Description) -> Arc<Mirror> {
        match self.get(&description.place) {
            Some(mirror) => mirror,
            None => self.add(description, None),
        }
    }

    fn add(&self, description: Description, asked: Option<Instant>) -> Arc<Mirror> {
        let mut mirrors = self.0.lock();
        // Made by another caller meanwhile.
        if let Some(mirror) = mirrors.get(&description.place).and_then(Weak::upgrade) {
            return mirror;
        }
        // Unheld ones go when as many again have come.
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

    /// The mirror of a collection, if anyone holds it.
    pub(super) fn get(&self, place: &CollectionRef) -> Option<Arc<Mirror>> {
        self.0.lock().get(place).and_then(Weak::upgrade)
    }
}

/// The mirrors of the collections that were asked for last, kept while nobody holds them: so few requests ask whether a collection is there, and scan
/// servers answer for it without an owner.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<(String, String), Arc<Mirror>>>);

impl Known {
    /// Notes the mirror of a name, or that there is no collection of it.
    pub(super) fn note(&self, tenant: &str, name: &str, mirror: Option<Arc<Mirror>>) {
        let mut known = self.0.lock();
        let at = (tenant.to_owned(), name.to_owned());
        match mirror {
            Some(mirror) => {
                // All are known again once they are asked for.
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
