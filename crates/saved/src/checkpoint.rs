//! Up to where events were looked at: kept on disk, so that a start goes on from there, after a crash as well.
//!
//! For each collection that is the position of the last write that was looked at, and for each saved search with packets that
//! nobody has taken, the positions before what these tell of: a crash loses packets, so their events are looked at again. It is
//! written soon after it changed. What changed after it was last written happens again after a crash, so that an event may be told
//! twice, but is not left out. How a start catches up is in `catch_up.rs`.

use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_backend::{Backend, StoreError};
use meridian_model::Invalid;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Name of its record.
pub(super) const RECORD: &str = "looked";
/// Least time between two writes of it; they take at most a twentieth of the time.
const EVERY: Duration = Duration::from_secs(1);
const SHARE: u32 = 20;
/// Saved searches that are forgotten at a time: the matcher waits meanwhile.
const FORGOTTEN: usize = 256;

/// Positions in the logs of collections, by name.
pub(super) type Positions = BTreeMap<String, LogPosition>;

/// A position in the log of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    /// When the collection was made, in microseconds since 1970: another of the same name has a log of its own.
    made: i64,
    position: u64,
}

/// By saved search and collection: a position.
type Waiting = BTreeMap<String, BTreeMap<String, u64>>;

/// What the disk has.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    collections: Positions,
    /// Behind which position that begins what packets tell of that nobody has taken.
    waiting: Waiting,
    /// Whether a clean stop has kept the packets (`clean_state.rs`): then their record is there until the next start has written this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) kept: bool,
}

impl Checkpoint {
    /// From which position on a saved search wants the events of a collection that was `made` then and has come to position
    /// `now`; `since` is where collections stood when it was made itself, if that is known.
    pub(super) fn from(&self, id: &str, since: Option<&Positions>, name: &str, made: i64, now: u64) -> u64 {
        let of = |places: &Positions| places.get(name).filter(|place| place.made == made).map(|place| place.position);
        let checkpoint = of(&self.collections);
        let waits = self.waiting.get(id).and_then(|of| of.get(name)).copied().filter(|_| checkpoint.is_some());
        let from = match (waits, since) {
            (Some(position), _) => position,
            (None, Some(since)) => of(since).unwrap_or(0).max(checkpoint.unwrap_or(0)),
            (None, None) => checkpoint.unwrap_or(now),
        };
        // An ephemeral collection begins again at 0.
        from.min(now)
    }
}

/// Where the collections of a tenant stand.
pub(super) fn positions_of(backend: &dyn Backend, tenant: &str) -> Positions {
    let place = |name: &str, made, position| (name.to_owned(), LogPosition { made, position });
    backend.list(tenant).iter().map(|c| place(c.name(), c.created(), c.position())).collect()
}

/// What is to be kept.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    /// Whether all that came before the start was looked at: until then, and after the last write, what the disk has stays.
    caught_up: AtomicBool,
    /// What the disk has.
    written: Mutex<Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    /// The last position looked at, by collection.
    places: HashMap<Arc<str>, LogPosition>,
    /// Saved searches that may have packets that nobody has taken, by number.
    unread: HashMap<u64, Arc<SavedSearch>>,
    /// What waited before the start: it does until all that came before was looked at.
    waited: Waiting,
}

impl Progress {
    /// The write at this position of the collection that was `made` then, and all before it, were looked at.
    pub(super) fn mark_processed(&self, collection: &Arc<str>, made: i64, position: u64) {
        self.state.lock().places.insert(collection.clone(), LogPosition { made, position });
    }

    /// This saved search has packets that nobody may have taken.
    pub(super) fn unread(&self, search: &Arc<SavedSearch>) {
        self.state.lock().unread.entry(search.number).or_insert_with(|| search.clone());
    }

    /// Forgets those of these saved searches that still have no such packets.
    fn forget(&self, read: &[Arc<SavedSearch>]) {
        for some in read.chunks(FORGOTTEN) {
            let mut state = self.state.lock();
            for search in some.iter().filter(|search| search.untaken().is_empty()) {
                state.unread.remove(&search.number);
            }
        }
    }

    /// All that came before the start was looked at.
    pub(super) fn set_caught_up(&self) {
        self.state.lock().waited.clear();
        self.caught_up.store(true, Ordering::Release);
    }
}

impl SavedSearches {
    /// Reads what the disk has, and goes on counting from there.
    pub(super) fn read_checkpoint(&self) -> Result<Checkpoint, StoreError> {
        let Some(bytes) = self.records.get(RECORD)? else { return Ok(Checkpoint::default()) };
        let checkpoint: Checkpoint =
            serde_json::from_slice(&bytes).map_err(|e| Invalid::new(format!("it does not read: {e}")))?;
        let there = positions_of(self.backend.as_ref(), &self.tenant);
        for (name, LogPosition { made, position }) in &checkpoint.collections {
            if let Some(now) = there.get(name).filter(|now| now.made == *made) {
                // An ephemeral collection begins again at 0.
                self.progress.mark_processed(&name.as_str().into(), *made, (*position).min(now.position));
            }
        }
        self.progress.state.lock().waited.clone_from(&checkpoint.waiting);
        *self.progress.written.lock() = bytes;
        Ok(checkpoint)
    }

    /// Takes all that there is for looked at.
    pub(super) fn mark_all_processed(&self) {
        for collection in self.backend.list(&self.tenant) {
            self.progress.mark_processed(&collection.name().into(), collection.created(), collection.position());
        }
    }

    /// Writes down up to where events were looked at, where that has changed; nothing before all that came before the start was
    /// looked at. The `last` write is that of a clean stop, when packets that wait are written down as well: none comes after it.
    pub(super) fn write_checkpoint(&self, last: bool) -> Result<(), StoreError> {
        let mut written = self.progress.written.lock();
        if !self.progress.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        self.progress.caught_up.store(!last, Ordering::Release);
        self.put_looked(&mut written, last)
    }

    /// The same while it is not caught up: what waited before the start still does, and packets that were kept do now.
    pub(super) fn write_waiting(&self) -> Result<(), StoreError> {
        self.put_looked(&mut self.progress.written.lock(), false)
    }

    fn put_looked(&self, written: &mut Vec<u8>, kept: bool) -> Result<(), StoreError> {
        let checkpoint = self.checkpoint(kept);
        if written.is_empty() && checkpoint.collections.is_empty() && checkpoint.waiting.is_empty() && !kept {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&checkpoint).map_err(|e| Invalid::new(e.to_string()))?;
        if *written != bytes {
            self.records.put(RECORD, &bytes)?;
            *written = bytes;
        }
        Ok(())
    }

    fn checkpoint(&self, kept: bool) -> Checkpoint {
        let there = positions_of(self.backend.as_ref(), &self.tenant);
        // Packets are noted as unread before the position goes on: taken under one lock the two belong together.
        let state = self.progress.state.lock();
        let (places, unread) = (state.places.clone(), state.unread.values().cloned().collect::<Vec<_>>());
        let mut checkpoint = Checkpoint { collections: Positions::new(), waiting: state.waited.clone(), kept };
        // There may be very many of them: the matcher goes on meanwhile.
        drop(state);
        let mut read = Vec::new();
        for search in unread {
            let waiting = search.behind();
            if waiting.is_empty() {
                read.push(search);
            } else if !kept {
                let of = checkpoint.waiting.entry(search.id.clone()).or_default();
                for (name, position) in waiting {
                    of.entry(name).and_modify(|least| *least = position.min(*least)).or_insert(position);
                }
            }
        }
        self.progress.forget(&read);
        let there_still = |name: &str, place: &LogPosition| there.get(name).is_some_and(|now| now.made == place.made);
        let kept = places.iter().filter(|(name, place)| there_still(name, place));
        checkpoint.collections.extend(kept.map(|(name, place)| (name.to_string(), *place)));
        checkpoint
    }
}

/// Keeps it, as long as it is not dropped.
pub(super) async fn keep(saved: Arc<SavedSearches>) {
    let (mut pause, mut failing) = (EVERY, false);
    loop {
        tokio::time::sleep(pause).await;
        let (writing, begun) = (saved.clone(), Instant::now());
        let written = tokio::task::spawn_blocking(move || writing.write_checkpoint(false)).await;
        pause = EVERY.max(begun.elapsed() * SHARE);
        let failed = written.ok().and_then(Result::err);
        if let Some(error) = failed.as_ref().filter(|_| !failing) {
            tracing::error!(%error, "up to where events were looked at for saved searches is not kept: more are told twice after a crash");
        }
        failing = failed.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_saved_search_goes_on() {
        let places = |list: &[(&str, i64, u64)]| -> Positions {
            list.iter()
                .map(|(name, made, position)| ((*name).to_owned(), LogPosition { made: *made, position: *position }))
                .collect()
        };
        let checkpoint = Checkpoint {
            collections: places(&[("news", 1, 10), ("old", 1, 10)]),
            waiting: Waiting::from([("a".to_owned(), BTreeMap::from([("news".to_owned(), 4), ("old".to_owned(), 4)]))]),
            kept: false,
        };
        let since = places(&[("news", 1, 7), ("late", 1, 30), ("old", 1, 9)]);
        for (id, since, name, made, now, from, why) in [
            ("a", Some(&since), "news", 1, 20, 4, "its packets wait"),
            ("b", Some(&since), "news", 1, 20, 10, "it has seen all that was looked at"),
            ("b", None, "news", 1, 20, 10, "the same of an older record"),
            ("b", Some(&since), "late", 1, 40, 30, "it is younger than what came before"),
            ("b", Some(&since), "new", 1, 5, 0, "the collection is younger"),
            ("b", None, "new", 1, 5, 5, "who knows"),
            ("a", Some(&since), "old", 2, 6, 0, "another collection has this name now"),
            ("a", Some(&since), "news", 1, 3, 3, "the collection begins again"),
        ] {
            assert_eq!(checkpoint.from(id, since, name, made, now), from, "{why}");
        }
    }
}
