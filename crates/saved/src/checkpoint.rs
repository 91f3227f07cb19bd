//! The checkpoint: up to where events were processed, kept on disk so that a start continues there, even after a
//! crash.
//!
//! It holds the position of the last processed write of each collection. For each saved search with unread packets it
//! holds the positions before the events of those packets. A crash loses packets, so their events are processed again.
//!
//! It is written soon after a change. Changes after the last write are repeated after a crash: an event may be
//! reported twice, but none is left out. The catch-up is in `catch_up.rs`.

use super::matcher::Place;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::{Backend, StoreError};
use meridian_model::{Invalid, Vector};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::{Duration, Instant};

/// Name of its record.
pub(super) const RECORD: &str = "looked";
/// Min time between two writes of it. They take at most one twentieth of the time.
const EVERY: Duration = Duration::from_secs(1);
const SHARE: u32 = 20;
/// Saved searches removed at a time, while the matcher waits.
const FORGOTTEN: usize = 256;

/// Positions in the logs of a tenant's collections, by name.
pub(super) type Positions = BTreeMap<String, LogPosition>;

/// A position in the log of each partition of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    /// When the collection was created, in microseconds since 1970. Another of the same name has its own log.
    pub(super) made: i64,
    pub(super) position: meridian_model::Positions,
}

/// A position of each partition of which packets wait.
pub(super) type Unread = Vector<Option<u64>>;

/// Positions by saved search and collection.
type Waiting = BTreeMap<String, BTreeMap<String, Unread>>;

/// The record on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Of the tenant `default`: records from before there were others have it alone.
    collections: Positions,
    /// Of the other tenants, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tenants: BTreeMap<String, Positions>,
    /// The position before the events of unread packets.
    waiting: Waiting,
    /// Whether a clean stop has kept the packets (`clean_state.rs`). Their record exists until the next start has
    /// written this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) kept: bool,
}

impl Checkpoint {
    /// What it says of one tenant, with these saved searches.
    pub(super) fn only(mut self, tenant: &str, ids: &BTreeSet<String>) -> Checkpoint {
        if tenant != DEFAULT_TENANT {
            self.collections.clear();
        }
        self.tenants.retain(|name, _| name == tenant);
        self.waiting.retain(|id, _| ids.contains(id));
        self
    }

    /// Reads the record, if there is one, and returns its bytes too.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it does not read.
    pub(super) fn read(bytes: Option<Vec<u8>>) -> Result<(Checkpoint, Vec<u8>), StoreError> {
        let Some(bytes) = bytes else { return Ok(Default::default()) };
        match serde_json::from_slice(&bytes) {
            Ok(checkpoint) => Ok((checkpoint, bytes)),
            Err(e) => Err(Invalid::new(format!("it does not read: {e}")).into()),
        }
    }

    /// The positions of a tenant's collections.
    fn of(&self, tenant: &str) -> Option<&Positions> {
        if tenant == DEFAULT_TENANT { Some(&self.collections) } else { self.tenants.get(tenant) }
    }

    /// The position after which a saved search needs the events of a collection of its tenant. `made` is the creation
    /// time of the collection, `now` its current position. `since` holds the positions at the creation of the saved
    /// search, if known.
    pub(super) fn from(
        &self,
        id: &str,
        tenant: &str,
        since: Option<&Positions>,
        name: &str,
        made: i64,
        now: &meridian_model::Positions,
    ) -> meridian_model::Positions {
        let of = |places: &Positions, partition| {
            let place = places.get(name).filter(|place| place.made == made)?;
            Some(place.position.at(partition))
        };
        let waits =
            |partition| self.waiting.get(id).and_then(|of| of.get(name)).and_then(|unread| unread.at(partition));
        let known = self.of(tenant).and_then(|places| places.get(name)).filter(|place| place.made == made);
        if let Some(LogPosition { position, .. }) = known.filter(|known| known.position.len() != now.len()) {
            // A restore has divided the collection among other partitions: it knows what positions of then mean.
            return (0..position.len()).map(|partition| waits(partition).unwrap_or(position.at(partition))).collect();
        }
        (0..now.len())
            .map(|partition| {
                let now = now.at(partition);
                let checkpoint = self.of(tenant).and_then(|places| of(places, partition));
                // Only with a checkpoint of the same collection: a new one of its name has its own positions.
                let from = match (waits(partition).filter(|_| checkpoint.is_some()), since) {
                    // Unread packets were lost in the crash, so their events are processed again.
                    (Some(position), _) => position,
                    (None, Some(since)) => of(since, partition).unwrap_or(0).max(checkpoint.unwrap_or(0)),
                    // A record of an older version has no `since`. Without a checkpoint, nothing is known to be missed.
                    (None, None) => checkpoint.unwrap_or(now),
                };
                // An ephemeral collection restarts at 0.
                from.min(now)
            })
            .collect()
    }
}

/// The current positions of the collections of a tenant.
///
/// # Errors
/// Those of [`Backend::list`].
pub(super) fn positions_of(backend: &dyn Backend, tenant: &str) -> Result<Positions, StoreError> {
    let place = |name: &str, made, position| (name.to_owned(), LogPosition { made, position });
    Ok(backend.list(tenant)?.iter().map(|c| place(c.name(), c.created(), c.position())).collect())
}

/// The names of the collections of a tenant that cannot be opened, now or at all.
///
/// # Errors
/// Those of [`Backend::damaged`].
pub(super) fn unopened_of(backend: &dyn Backend, tenant: &str) -> Result<BTreeSet<String>, StoreError> {
    Ok(backend.damaged(tenant)?.into_iter().map(|damaged| damaged.name).collect())
}

/// The progress of the matcher, in memory.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    /// Whether the catch-up is done. Before that, and after the last write, the record on disk stays as it is.
    caught_up: AtomicBool,
    /// The bytes on disk.
    written: Mutex<Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    /// The last processed position of each collection, by tenant and name.
    places: HashMap<Arc<str>, HashMap<Arc<str>, LogPosition>>,
    /// Saved searches that may have unread packets, by number.
    unread: HashMap<u64, Arc<SavedSearch>>,
    /// The unread positions from before the start, until the catch-up is done.
    waited: Waiting,
}

impl Progress {
    /// Records that all writes up to these positions of the collection created at `made` were processed.
    pub(super) fn mark_processed(&self, place: Place<'_>, made: i64, position: meridian_model::Positions) {
        let mut state = self.state.lock();
        let places = state.places.entry(place.tenant.clone()).or_default();
        places.insert(place.collection.clone(), LogPosition { made, position });
    }

    /// The same of one partition.
    pub(super) fn mark_partition(&self, place: Place<'_>, made: i64, partition: usize, position: u64) {
        let mut state = self.state.lock();
        let places = state.places.entry(place.tenant.clone()).or_default();
        // Another collection of this name begins at 0.
        let before = places.get(place.collection).filter(|before| before.made == made);
        let position = before
            .map_or_else(meridian_model::Positions::default, |before| before.position.clone())
            .with(partition, position);
        places.insert(place.collection.clone(), LogPosition { made, position });
    }

    /// Removes the positions of a tenant that is removed.
    pub(super) fn forget_tenant(&self, tenant: &str) {
        self.state.lock().places.remove(tenant);
    }

    /// Records that this saved search may have unread packets.
    pub(super) fn unread(&self, search: &Arc<SavedSearch>) {
        self.state.lock().unread.entry(search.number).or_insert_with(|| search.clone());
    }

    /// Removes those of these saved searches that still have no unread packets.
    fn forget(&self, read: &[Arc<SavedSearch>]) {
        // In chunks, as the matcher needs this lock for each event batch.
        for some in read.chunks(FORGOTTEN) {
            let mut state = self.state.lock();
            for search in some.iter().filter(|search| search.untaken().is_empty()) {
                state.unread.remove(&search.number);
            }
        }
    }

    /// Whether the catch-up is done, and no last write was made.
    #[cfg(test)]
    pub(super) fn is_caught_up(&self) -> bool {
        self.caught_up.load(Ordering::Acquire)
    }

    /// Records that the catch-up is done.
    pub(super) fn set_caught_up(&self) {
        // From here on the packets of the catch-up are in `unread`, which has the same events.
        self.state.lock().waited.clear();
        self.caught_up.store(true, Ordering::Release);
    }
}

impl SavedSearches {
    /// Continues from the record, of which these are the bytes.
    ///
    /// # Errors
    /// Those of [`Backend::list`] and [`Backend::damaged`].
    pub(super) fn resume_at(&self, checkpoint: &Checkpoint, bytes: Vec<u8>) -> Result<(), StoreError> {
        let of_default = (DEFAULT_TENANT, &checkpoint.collections);
        let of_others = checkpoint.tenants.iter().map(|(tenant, places)| (tenant.as_str(), places));
        for (tenant, places) in std::iter::once(of_default).chain(of_others) {
            // Before the list, which has one that is opened meanwhile.
            let unopened = unopened_of(self.backend.as_ref(), tenant)?;
            let there = positions_of(self.backend.as_ref(), tenant)?;
            for (name, LogPosition { made, position }) in places {
                let position = match there.get(name) {
                    // An ephemeral collection restarts at 0.
                    Some(now) if now.made == *made => position.earlier(&now.position),
                    // It goes on there once it can be opened.
                    None if unopened.contains(name) => position.clone(),
                    _ => continue,
                };
                let place = Place { tenant: &tenant.into(), collection: &name.as_str().into() };
                self.progress.mark_processed(place, *made, position);
            }
        }
        self.progress.state.lock().waited.clone_from(&checkpoint.waiting);
        *self.progress.written.lock() = bytes;
        Ok(())
    }

    /// Marks all existing events of a tenant as processed.
    ///
    /// # Errors
    /// Those of [`Backend::list`].
    pub(super) fn mark_all_processed(&self, tenant: &Arc<str>) -> Result<(), StoreError> {
        for collection in self.backend.list(tenant)? {
            let place = Place { tenant, collection: &collection.name().into() };
            self.progress.mark_processed(place, collection.created(), collection.position());
        }
        Ok(())
    }

    /// Writes the checkpoint if it has changed, but not before the catch-up is done. The `last` write is that of a
    /// clean stop, which also writes the unread packets. No write follows it.
    pub(super) fn write_checkpoint(&self, last: bool) -> Result<(), StoreError> {
        let mut written = self.progress.written.lock();
        if !self.progress.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        // After the last write the record is frozen: a later one would drop the flag that a clean state exists.
        self.progress.caught_up.store(!last, Ordering::Release);
        self.put_looked(&mut written, last)
    }

    /// Writes the checkpoint before the catch-up is done: what was unread before the start still is, and so are the
    /// kept packets.
    pub(super) fn write_waiting(&self) -> Result<(), StoreError> {
        self.put_looked(&mut self.progress.written.lock(), false)
    }

    fn put_looked(&self, written: &mut Vec<u8>, kept: bool) -> Result<(), StoreError> {
        let checkpoint = self.checkpoint(kept);
        let nothing =
            checkpoint.collections.is_empty() && checkpoint.tenants.is_empty() && checkpoint.waiting.is_empty();
        if written.is_empty() && nothing && !kept {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&checkpoint).map_err(|e| Invalid::new(e.to_string()))?;
        // An idle server writes nothing: the record changes only with events.
        if *written != bytes {
            self.records.put(RECORD, &bytes)?;
            *written = bytes;
        }
        Ok(())
    }

    fn checkpoint(&self, kept: bool) -> Checkpoint {
        // The matcher marks packets unread before it moves the position. Reading both under one lock keeps them
        // consistent.
        let state = self.progress.state.lock();
        let (places, unread) = (state.places.clone(), state.unread.values().cloned().collect::<Vec<_>>());
        let mut checkpoint = Checkpoint { waiting: state.waited.clone(), kept, ..Checkpoint::default() };
        // There may be very many, and the matcher must not wait meanwhile.
        drop(state);
        let mut read = Vec::new();
        for search in unread {
            let waiting = search.behind();
            if waiting.is_empty() {
                read.push(search);
            } else if !kept {
                let of = checkpoint.waiting.entry(search.id.clone()).or_default();
                for (name, unread) in waiting {
                    of.entry(name).and_modify(|min| *min = earliest(min, &unread)).or_insert(unread);
                }
            }
        }
        self.progress.forget(&read);
        // Positions of removed collections are dropped, or the record would grow with every collection ever made.
        for (tenant, places) in places {
            let there = positions_of(self.backend.as_ref(), &tenant).ok();
            let lacks = |there: &Positions| places.keys().any(|name| !there.contains_key(&**name));
            // One that cannot be opened now goes on where it was. They are asked for only where one is missing.
            let unopened = match there.as_ref().is_some_and(lacks) {
                true => unopened_of(self.backend.as_ref(), &tenant).ok(),
                false => Some(BTreeSet::new()),
            };
            let there_still = |name: &str, place: &LogPosition| match (&there, &unopened) {
                (Some(there), Some(unopened)) => match there.get(name) {
                    Some(now) => now.made == place.made,
                    None => unopened.contains(name),
                },
                // All are kept while the collections cannot be asked for.
                _ => true,
            };
            let kept = places.iter().filter(|(name, place)| there_still(name, place));
            let kept: Positions = kept.map(|(name, place)| (name.to_string(), place.clone())).collect();
            if &*tenant == DEFAULT_TENANT {
                checkpoint.collections = kept;
            } else if !kept.is_empty() {
                checkpoint.tenants.insert(tenant.to_string(), kept);
            }
        }
        checkpoint
    }
}

/// The earlier position of each partition that has one.
pub(super) fn earliest(a: &Unread, b: &Unread) -> Unread {
    let one = |partition| match (a.at(partition), b.at(partition)) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    (0..a.len().max(b.len())).map(one).collect()
}

/// Writes the checkpoint regularly, until dropped.
pub(super) async fn keep(saved: Arc<SavedSearches>) {
    let (mut pause, mut failing) = (EVERY, false);
    loop {
        tokio::time::sleep(pause).await;
        let (writing, begun) = (saved.clone(), Instant::now());
        let written = tokio::task::spawn_blocking(move || writing.write_checkpoint(false)).await;
        // A slow disk, or a hundred thousand saved searches, must not keep this task writing all the time.
        pause = EVERY.max(begun.elapsed() * SHARE);
        let failed = written.ok().and_then(Result::err);
        if let Some(error) = failed.as_ref().filter(|_| !failing) {
            tracing::error!(%error, "the checkpoint of saved searches cannot be written: more events are reported twice after a crash");
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
                .map(|(name, made, position)| {
                    ((*name).to_owned(), LogPosition { made: *made, position: Vector::one(*position) })
                })
                .collect()
        };
        let checkpoint = Checkpoint {
            collections: places(&[("news", 1, 10), ("old", 1, 10)]),
            waiting: Waiting::from([(
                "a".to_owned(),
                BTreeMap::from([("news".to_owned(), Vector::one(Some(4))), ("old".to_owned(), Vector::one(Some(4)))]),
            )]),
            tenants: BTreeMap::from([("other".to_owned(), places(&[("news", 1, 3)]))]),
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
            assert_eq!(
                checkpoint.from(id, "default", since, name, made, &Vector::one(now)),
                Vector::one(from),
                "{why}"
            );
        }
        let now = Vector::one(20);
        let of_tenant = |tenant: &str, id: &str| checkpoint.from(id, tenant, None, "news", 1, &now).at(0);
        assert_eq!((of_tenant("other", "b"), of_tenant("new", "b")), (3, 20), "tenants have their own collections");
        // A record from before there were tenants is one of the tenant `default`.
        let old = r#"{"collections":{"news":{"made":1,"position":10}},"waiting":{}}"#;
        let old: Checkpoint = serde_json::from_str(old).expect("a checkpoint");
        let of_tenant = |tenant: &str| old.from("b", tenant, None, "news", 1, &now).at(0);
        assert_eq!((of_tenant("default"), of_tenant("other")), (10, 20));
    }

    #[test]
    fn each_partition_goes_on_where_it_was() {
        let position = |values: &[u64]| values.iter().copied().collect::<meridian_model::Positions>();
        let place = |values: &[u64]| LogPosition { made: 1, position: position(values) };
        let checkpoint = Checkpoint {
            collections: BTreeMap::from([("news".to_owned(), place(&[10, 20, 30, 5]))]),
            // Packets of two partitions wait; nothing is known of the last one.
            waiting: Waiting::from([(
                "a".to_owned(),
                BTreeMap::from([("news".to_owned(), [Some(4), None, Some(7)].into_iter().collect())]),
            )]),
            ..Checkpoint::default()
        };
        let bytes = serde_json::to_vec(&checkpoint).expect("a record");
        let checkpoint: Checkpoint = serde_json::from_slice(&bytes).expect("a record");
        let since = BTreeMap::from([("news".to_owned(), place(&[12, 0, 0, 0]))]);
        let now = position(&[15, 25, 35, 3]);
        let from = |id: &str| checkpoint.from(id, "default", Some(&since), "news", 1, &now);
        assert_eq!(from("a"), position(&[4, 20, 7, 3]));
        assert_eq!(from("b"), position(&[12, 20, 30, 3]));
    }
}
