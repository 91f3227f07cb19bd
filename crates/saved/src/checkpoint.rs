//! The checkpoint: positions up to which events were processed, kept on disk so that a start continues there, even
//! after a crash.
//!
//! It holds the position of the last processed write of each collection. For each saved search with unread packets it
//! holds the positions before the events of those packets. A crash loses packets, so their events are processed again.
//!
//! It is written soon after a change. Changes after the last write are repeated after a crash: an event may be
//! reported twice, but none is left out. `progress.rs` writes it, and the catch-up is in `catch_up.rs`.

use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::{Backend, StoreError};
use meridian_model::{Invalid, Vector};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Name of its record.
pub(super) const RECORD: &str = "looked";
/// Positions in the logs of a tenant's collections, by name.
pub(super) type Positions = BTreeMap<String, LogPosition>;

/// A position in the log of each partition of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    /// Creation time of the collection, in microseconds since 1970. Another one of the same name has its own log.
    pub(super) made: i64,
    pub(super) position: meridian_model::Positions,
}

/// Position per partition; `None` without waiting packets.
pub(super) type UnreadPositions = Vector<Option<u64>>;

/// Positions by saved search and collection.
pub(super) type SearchPositions = BTreeMap<String, BTreeMap<String, UnreadPositions>>;

/// The record on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Of the tenant `default`: records from before there were other tenants have only this.
    pub(super) collections: Positions,
    /// Of the other tenants, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tenants: BTreeMap<String, Positions>,
    /// The position before the events of unread packets.
    pub(super) waiting: SearchPositions,
    /// Whether a clean stop has kept the packets (`clean_state.rs`). Their record exists until the next start has
    /// written this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) kept: bool,
}

impl Checkpoint {
    /// Returns its part for one tenant with these saved searches.
    pub(super) fn only(mut self, tenant: &str, ids: &BTreeSet<String>) -> Checkpoint {
        if tenant != DEFAULT_TENANT {
            self.collections.clear();
        }
        self.tenants.retain(|name, _| name == tenant);
        self.waiting.retain(|id, _| ids.contains(id));
        self
    }

    /// Reads the record, if there is one; also returns its bytes.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is unreadable.
    pub(super) fn read(bytes: Option<Vec<u8>>) -> Result<(Checkpoint, Vec<u8>), StoreError> {
        let Some(bytes) = bytes else { return Ok(Default::default()) };
        match serde_json::from_slice(&bytes) {
            Ok(checkpoint) => Ok((checkpoint, bytes)),
            Err(e) => Err(Invalid::new(format!("it does not read: {e}")).into()),
        }
    }

    /// Returns the tenants with collections in it.
    pub(super) fn of_tenants(&self) -> Vec<String> {
        std::iter::once(DEFAULT_TENANT).chain(self.tenants.keys().map(String::as_str)).map(ToOwned::to_owned).collect()
    }

    /// Moves entries of renamed collections of a tenant, which has these saved searches, to the present names. The
    /// creation time identifies the collection.
    pub(super) fn follow_renames(&mut self, tenant: &str, searches: &BTreeSet<&str>, there: &Positions) {
        let places = match tenant {
            DEFAULT_TENANT => Some(&mut self.collections),
            other => self.tenants.get_mut(other),
        };
        let Some(places) = places else { return };
        let gone = places.iter().filter(|(name, place)| there.get(*name).is_none_or(|now| now.made != place.made));
        let renamed = gone.filter_map(|(name, place)| {
            let (new, _) = there.iter().find(|(_, now)| now.made == place.made)?;
            Some((name.clone(), new.clone()))
        });
        for (name, new) in renamed.collect::<Vec<_>>() {
            let Some(mut place) = places.remove(&name) else { continue };
            // Anything processed under the new name came later.
            if let Some(newer) = places.get(&new).filter(|newer| newer.made == place.made) {
                place.position = place.position.later(&newer.position);
            }
            places.insert(new.clone(), place);
            for (_, of) in self.waiting.iter_mut().filter(|(id, _)| searches.contains(id.as_str())) {
                let Some(unread) = of.remove(&name) else { continue };
                of.entry(new.clone()).and_modify(|min| *min = earliest(min, &unread)).or_insert(unread);
            }
        }
    }

    /// Returns the positions of a tenant's collections.
    fn of(&self, tenant: &str) -> Option<&Positions> {
        if tenant == DEFAULT_TENANT { Some(&self.collections) } else { self.tenants.get(tenant) }
    }

    /// Returns the position after which a saved search needs the events of a collection of its tenant. `made` is the
    /// creation time of the collection, `now` its current position. `since` holds the positions at the creation of the
    /// saved search, if known.
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
            // A restore has divided the collection among a different number of partitions; the collection itself
            // resolves old positions.
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

/// Returns the current positions of the collections of a tenant.
///
/// # Errors
/// Those of [`Backend::list`].
pub(super) fn positions_of(backend: &dyn Backend, tenant: &str) -> Result<Positions, StoreError> {
    let place = |name: &str, made, position| (name.to_owned(), LogPosition { made, position });
    Ok(backend.list(tenant)?.iter().map(|c| place(c.name(), c.created(), c.position())).collect())
}

/// Returns the names of the collections of a tenant that cannot be opened, temporarily or permanently.
///
/// # Errors
/// Those of [`Backend::damaged`].
pub(super) fn unopened_of(backend: &dyn Backend, tenant: &str) -> Result<BTreeSet<String>, StoreError> {
    Ok(backend.damaged(tenant)?.into_iter().map(|damaged| damaged.name).collect())
}

/// Returns the earlier position of each partition that has one.
pub(super) fn earliest(a: &UnreadPositions, b: &UnreadPositions) -> UnreadPositions {
    let one = |partition| match (a.at(partition), b.at(partition)) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    (0..a.len().max(b.len())).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_renamed_collection_is_found_under_its_new_name() {
        let at = |made, position| LogPosition { made, position: Vector::one(position) };
        let named = |list: &[(&str, i64, u64)]| -> Positions {
            list.iter().map(|(name, made, position)| ((*name).to_owned(), at(*made, *position))).collect()
        };
        let unread = |name: &str, position| BTreeMap::from([(name.to_owned(), Vector::one(Some(position)))]);
        let mut checkpoint = Checkpoint {
            collections: named(&[("ships", 1, 10), ("ports", 2, 5), ("gone", 3, 7), ("vessels", 1, 12)]),
            tenants: BTreeMap::from([("other".to_owned(), named(&[("ships", 4, 3)]))]),
            waiting: SearchPositions::from([
                ("a".to_owned(), unread("ships", 8)),
                ("z".to_owned(), unread("ships", 2)),
            ]),
            kept: false,
        };
        // Another collection has the old name, and the renamed one was written to since.
        let there = named(&[("vessels", 1, 20), ("ports", 2, 5), ("ships", 9, 1)]);
        checkpoint.follow_renames("default", &BTreeSet::from(["a"]), &there);
        assert_eq!(checkpoint.collections, named(&[("vessels", 1, 12), ("ports", 2, 5), ("gone", 3, 7)]));
        assert_eq!(checkpoint.waiting["a"], unread("vessels", 8));
        // The other tenant's entries stay.
        assert_eq!((&checkpoint.waiting["z"], &checkpoint.tenants["other"]["ships"]), (&unread("ships", 2), &at(4, 3)));
        checkpoint.follow_renames("other", &BTreeSet::from(["z"]), &named(&[("boats", 4, 3)]));
        assert_eq!(checkpoint.waiting["z"], unread("boats", 2));
        assert_eq!(checkpoint.tenants["other"], named(&[("boats", 4, 3)]));
    }

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
            waiting: SearchPositions::from([(
                "a".to_owned(),
                BTreeMap::from([("news".to_owned(), Vector::one(Some(4))), ("old".to_owned(), Vector::one(Some(4)))]),
            )]),
            tenants: BTreeMap::from([("other".to_owned(), places(&[("news", 1, 3)]))]),
            kept: false,
        };
        let since = places(&[("news", 1, 7), ("late", 1, 30), ("old", 1, 9)]);
        for (id, since, name, made, now, from, why) in [
            ("a", Some(&since), "news", 1, 20, 4, "its packets wait"),
            ("b", Some(&since), "news", 1, 20, 10, "it has seen all that was processed"),
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
        // A record from before there were tenants belongs to the tenant `default`.
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
            waiting: SearchPositions::from([(
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
