//! Transitions of moving objects: which queries an object enters, stays in and leaves.
//!
//! The queries that its newest event matches are remembered for each object. Newest is the event that ends last by
//! its own time; ties go to the one written last. Memory is bounded: objects without recent events are evicted. They
//! live in two generations; the older is dropped when the younger is full. An evicted object counts as new with its
//! next event, however late, unless the caller restores its state from elsewhere ([`Fences::restore`]).

use crate::error::Invalid;
use std::collections::HashMap;

/// How a moving object relates to a query after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FenceTransition {
    /// The newest event matches the query, the previous one did not.
    Enter,
    /// The newest event matches the query, as the previous one did. Also any matching event without an object.
    Inside,
    /// The newest event does not match the query, the previous one did.
    Exit,
}

impl FenceTransition {
    /// Its name in requests and responses.
    pub fn word(self) -> &'static str {
        match self {
            FenceTransition::Enter => "enter",
            FenceTransition::Inside => "inside",
            FenceTransition::Exit => "exit",
        }
    }

    /// Parses at least one of these names; returns them sorted and deduplicated. Errors name the field `when`.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Vec<FenceTransition>, Invalid> {
        let known = [FenceTransition::Enter, FenceTransition::Inside, FenceTransition::Exit];
        let read = |word: &str| {
            let wrong = || Invalid::field("when", format_args!("{word:?}: expected some of enter, inside and exit"));
            known.into_iter().find(|when| word == when.word()).ok_or_else(wrong)
        };
        let mut when = words.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if when.is_empty() {
            return Err(Invalid::field("when", "it is empty: expected some of enter, inside and exit"));
        }
        when.sort_unstable();
        when.dedup();
        Ok(when)
    }

    /// The transition to report, if it is among those `asked` for. `was` and `is`: whether the object was inside
    /// before the event, and is after it.
    pub fn transition(asked: &[FenceTransition], was: bool, is: bool) -> Option<FenceTransition> {
        let when = match (was, is) {
            (false, true) if asked.contains(&FenceTransition::Enter) => FenceTransition::Enter,
            // Without `enter`, an entry is reported as presence.
            (_, true) => FenceTransition::Inside,
            (true, false) => FenceTransition::Exit,
            (false, false) => return None,
        };
        asked.contains(&when).then_some(when)
    }
}

/// The known objects, by number.
#[derive(Debug)]
pub struct Fences {
    young: HashMap<u64, Track>,
    old: HashMap<u64, Track>,
    /// Sizes of the young and the old generation, in entries: one per object plus one per query that it is in.
    weight: usize,
    old_weight: usize,
    max: usize,
}

/// The known state of an object.
#[derive(Debug)]
struct Track {
    /// End of its newest event.
    time: i64,
    /// The queries that this event matches, sorted.
    inside: Vec<u64>,
}

/// The query transitions caused by an event.
#[derive(Debug, Default, PartialEq)]
pub struct Passage {
    /// Whether a newer event of the object is known. A late event reports no entry, exit or presence.
    pub late: bool,
    /// Queries that the object has entered, sorted.
    pub entered: Vec<u64>,
    /// Queries that it has left, sorted.
    pub left: Vec<u64>,
}

impl Fences {
    /// An empty tracker. `max` bounds the number of objects plus the queries that they are in.
    pub fn new(max: usize) -> Fences {
        Fences { young: HashMap::new(), old: HashMap::new(), weight: 0, old_weight: 0, max }
    }

    /// Records an event of an object that ends at `time` and matches `queries` (sorted). An event older than the
    /// known one changes nothing: the object has moved since.
    pub fn pass(&mut self, object: u64, time: i64, inside: &[u64]) -> Passage {
        let known = match self.young.remove(&object) {
            Some(track) => {
                self.weight -= 1 + track.inside.len();
                Some(track)
            }
            None => self.old.remove(&object).inspect(|track| self.old_weight -= 1 + track.inside.len()),
        };
        let Some(track) = known else {
            // Stored even if it is inside nothing: its time identifies positions that arrive late.
            self.keep(object, Track { time, inside: inside.to_vec() });
            return Passage { entered: inside.to_vec(), ..Passage::default() };
        };
        // Keep the newest state: a late event must not move the object back.
        if time < track.time {
            self.keep(object, track);
            return Passage { late: true, ..Passage::default() };
        }
        let others = |of: &[u64], than: &[u64]| of.iter().copied().filter(|n| than.binary_search(n).is_err()).collect();
        let passage =
            Passage { late: false, entered: others(inside, &track.inside), left: others(&track.inside, inside) };
        self.keep(object, Track { time, inside: inside.to_vec() });
        passage
    }

    fn keep(&mut self, object: u64, track: Track) {
        let weight = 1 + track.inside.len();
        // Two generations instead of an LRU list. A lookup moves an entry to the young map, and eviction drops a
        // whole map at once. Each gets half of the budget, since both may be full together.
        if self.weight + weight > self.max / 2 && !self.young.is_empty() {
            self.age();
        }
        self.weight += weight;
        self.young.insert(object, track);
    }

    /// Drops the old generation; the young one becomes the old one.
    pub fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.old_weight = std::mem::take(&mut self.weight);
    }

    /// Number of known objects plus the queries that they are in.
    pub fn weight(&self) -> usize {
        self.weight + self.old_weight
    }

    /// Number of known objects.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this object is known.
    pub fn knows(&self, object: u64) -> bool {
        self.young.contains_key(&object) || self.old.contains_key(&object)
    }

    /// The known states, for persistence across a restart.
    pub fn list(&self) -> Vec<(u64, i64, Vec<u64>)> {
        let tracks = self.old.iter().chain(&self.young);
        tracks.map(|(object, track)| (*object, track.time, track.inside.clone())).collect()
    }

    /// Restores states listed by [`Fences::list`].
    pub fn restore(&mut self, list: impl IntoIterator<Item = (u64, i64, Vec<u64>)>) {
        for (object, time, inside) in list {
            self.keep(object, Track { time, inside });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_told_is_what_was_asked_for() {
        let all = FenceTransition::read(["exit", "enter", "inside", "exit"]).unwrap();
        assert_eq!(all, [FenceTransition::Enter, FenceTransition::Inside, FenceTransition::Exit]);
        for (was, is, when) in [
            (false, true, Some(FenceTransition::Enter)),
            (true, true, Some(FenceTransition::Inside)),
            (true, false, Some(FenceTransition::Exit)),
            (false, false, None),
        ] {
            assert_eq!(FenceTransition::transition(&all, was, is), when);
            let only = |one: FenceTransition| FenceTransition::transition(&[one], was, is);
            assert_eq!(only(FenceTransition::Enter), when.filter(|when| *when == FenceTransition::Enter));
            assert_eq!(only(FenceTransition::Inside), is.then_some(FenceTransition::Inside));
            assert_eq!(only(FenceTransition::Exit), when.filter(|when| *when == FenceTransition::Exit));
        }
        assert_eq!(FenceTransition::read(["enter", "in"]).unwrap_err().field.as_deref(), Some("when"));
        assert!(FenceTransition::read([]).is_err());
    }

    proptest! {
        /// Agrees with an oracle that never forgets, as long as nothing is evicted.
        #[test]
        fn comings_and_leavings_are_those_of_the_newest_event(events in proptest::collection::vec(
            (0..4_u64, 0..30_i64, proptest::collection::btree_set(0..5_u64, 0..4)), 1..80), restart in 0..80_usize) {
            let mut fences = Fences::new(1_000_000);
            let mut known: HashMap<u64, (i64, Vec<u64>)> = HashMap::new();
            for (n, (object, time, inside)) in events.into_iter().enumerate() {
                if n == restart {
                    let list = fences.list();
                    fences = Fences::new(1_000_000);
                    fences.restore(list);
                }
                let inside: Vec<u64> = inside.into_iter().collect();
                let passage = fences.pass(object, time, &inside);
                let (newest, before) = known.get(&object).cloned().unwrap_or((i64::MIN, Vec::new()));
                let mut expected = Passage { late: time < newest, ..Passage::default() };
                if time >= newest {
                    expected.entered = inside.iter().copied().filter(|q| !before.contains(q)).collect();
                    expected.left = before.iter().copied().filter(|q| !inside.contains(q)).collect();
                    known.insert(object, (time, inside));
                }
                prop_assert_eq!(passage, expected);
            }
        }

        #[test]
        fn memory_is_bounded(objects in proptest::collection::vec(0..10_000_u64, 1..500)) {
            let mut fences = Fences::new(100);
            for object in objects {
                fences.pass(object, 0, &[1, 2, 3]);
                let weight = fences.list().iter().map(|(_, _, inside)| 1 + inside.len()).sum::<usize>();
                prop_assert!(weight <= 104);
                prop_assert_eq!(weight, fences.weight());
            }
        }
    }
}
