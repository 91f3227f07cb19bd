//! Time up to which an owner's flushed writes are complete. With it, a reader can tell an idle collection from one
//! that it lags behind.
//!
//! An owner makes a statement periodically, and the record that carries it is written only while the owner holds the
//! lease. A reader reads the statement first and the collections' manifests afterwards. So for each collection it has
//! every write acknowledged before the time in the statement.
//!
//! Statements stay true forever; of two, the later time counts.

use serde::{Deserialize, Serialize};

/// Max collections named in a statement. Beyond that, the rest share the earliest of their times.
pub const NAMED_MAX: usize = 256;

/// A statement. Times are microseconds since 1970 by the owner's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete {
    /// Time up to which every other collection is flushed: all writes acknowledged before it.
    pub time: i64,
    /// Collections with unflushed writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<UnflushedCollection>,
}

/// A collection with unflushed writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnflushedCollection {
    /// Its tenant.
    pub tenant: String,
    /// Its name.
    pub collection: String,
    /// Time up to which all acknowledged writes are flushed: when the oldest unflushed write was accepted.
    pub time: i64,
}

impl Complete {
    /// The owner's statement at `time`; `behind` holds every collection with unflushed writes.
    pub fn at(time: i64, mut behind: Vec<UnflushedCollection>) -> Complete {
        if behind.len() <= NAMED_MAX {
            return Complete { time, behind };
        }
        // Name the oldest, so that the time of the rest is as late as possible.
        behind.sort_unstable_by_key(|one| one.time);
        let rest = behind.split_off(NAMED_MAX).first().map_or(time, |first| first.time);
        Complete { time: rest.min(time), behind }
    }

    /// Time up to which the flushed writes of a collection are complete.
    pub fn time_of(&self, tenant: &str, collection: &str) -> i64 {
        let named = self.behind.iter().find(|one| one.tenant == tenant && one.collection == collection);
        named.map_or(self.time, |one| one.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn behind(n: i64, time: i64) -> UnflushedCollection {
        UnflushedCollection { tenant: "t".to_owned(), collection: format!("c{n}"), time }
    }

    #[test]
    fn an_idle_collection_is_complete_as_of_the_statement() {
        let said = Complete::at(100, vec![behind(1, 40)]);
        assert_eq!((said.time_of("t", "c1"), said.time_of("t", "c2"), said.time_of("u", "c1")), (40, 100, 100));
    }

    #[test]
    fn a_statement_is_bounded_and_never_says_too_much() {
        let many: Vec<UnflushedCollection> = (0..1000).map(|n| behind(n, 10 + (n * 7) % 1000)).collect();
        let said = Complete::at(5000, many.clone());
        assert_eq!(said.behind.len(), NAMED_MAX);
        for one in &many {
            assert!(said.time_of("t", &one.collection) <= one.time, "{}", one.collection);
        }
        assert_eq!(said.time, 10 + NAMED_MAX as i64, "no earlier than it has to be");
    }

    proptest! {
        /// No collection is said to be complete beyond its own time or, if it is idle, beyond that of the statement.
        /// Named ones have exactly their time. The rest have the latest time that is true of each.
        #[test]
        fn no_statement_says_too_much(time in 0..1_000i64, times in prop::collection::vec(-50..1_050i64, 0..400)) {
            let many: Vec<UnflushedCollection> = (0..).zip(&times).map(|(n, time)| behind(n, *time)).collect();
            let said = Complete::at(time, many.clone());
            prop_assert_eq!(said.behind.len(), many.len().min(NAMED_MAX));
            for one in &many {
                let told = said.time_of("t", &one.collection);
                prop_assert!(told <= one.time, "{} {:?}", told, one);
                prop_assert!(told == one.time || told == said.time, "{} {:?}", told, one);
            }
            let mut sorted = times;
            sorted.sort_unstable();
            let rest = sorted.get(NAMED_MAX).map_or(time, |oldest| time.min(*oldest));
            prop_assert_eq!((said.time, said.time_of("t", "idle")), (rest, rest));
            let text = serde_json::to_string(&said).unwrap();
            prop_assert_eq!(serde_json::from_str::<Complete>(&text).unwrap(), said);
        }
    }
}
