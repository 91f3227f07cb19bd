//! Transitions of moving objects: which queries an object enters, stays in and leaves.
//!
//! For each object, the queries that its newest event matches are remembered. Newest is the event that ends last by its own time;
//! of two, the one written last. Memory is bounded: objects without recent events are evicted. There are two generations: the
//! older is dropped when the younger is full. An evicted object counts as new with its next event, however late, unless the
//! caller restores its state from elsewhere ([`Fences::restore`]).

use crate::error::Invalid;
use std::collections::HashMap;

/// How a moving object relates to a query after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Its newest event matches the query, the prior one did not.
    Enter,
    /// Its newest event matches the query, as the prior one did; for events without an object, any that matches.
    Inside,
    /// Its newest event does not match the query, but the prior one did.
    Exit,
}

impl When {
    /// Its word in requests and responses.
    pub fn word(self) -> &'static str {
        match self {
            When::Enter => "enter",
            When::Inside => "inside",
            When::Exit => "exit",
        }
    }

    /// Reads some of these words, at least one; sorted, without duplicates. Errors name the field `when`.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Vec<When>, Invalid> {
        let known = [When::Enter, When::Inside, When::Exit];
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

    /// The transition to report, of those `asked` for, if any: `was` and `is` say whether the object was inside before, and is now.
    pub fn transition(asked: &[When], was: bool, is: bool) -> Option<When> {
        let when = match (was, is) {
            (false, true) if asked.contains(&When::Enter) => When::Enter,
            // Without `enter`, an entry is reported like any other event inside.
            (_, true) => When::Inside,
            (true, false) => When::Exit,
            (false, false) => return None,
        };
        asked.contains(&when).then_some(when)
    }
}

/// The objects that are known, by number.
#[derive(Debug)]
pub struct Fences {
    young: HashMap<u64, Track>,
    old: HashMap<u64, Track>,
    /// Sizes of the young and the old generation: one for each object, and one for each query that it is in.
    weight: usize,
    old_weight: usize,
    max: usize,
}

/// The known state of one.
#[derive(Debug)]
struct Track {
    /// End of its newest event.
    time: i64,
    /// The queries that this event matches, sorted.
    inside: Vec<u64>,
}

/// The transitions of an event for the queries.
#[derive(Debug, Default, PartialEq)]
pub struct Passage {
    /// Whether a newer event of the object is known. A late event reports nothing: no entry, no exit, no presence.
    pub late: bool,
    /// Queries that the object has entered, sorted.
    pub entered: Vec<u64>,
    /// Queries that it has left, sorted.
    pub left: Vec<u64>,
}

impl Fences {
    /// No objects yet. `max` bounds the number of objects plus the queries that they are in.
    pub fn new(max: usize) -> Fences {
        Fences { young: HashMap::new(), old: HashMap::new(), weight: 0, old_weight: 0, max }
    }

    /// Records an event of an object, which ends at `time` and matches these queries (sorted). An event older than the known one
    /// changes nothing: the object has moved since.
    pub fn pass(&mut self, object: u64, time: i64, inside: &[u64]) -> Passage {
        let known = match self.young.remove(&object) {
            Some(track) => {
                self.weight -= 1 + track.inside.len();
                Some(track)
            }
            None => self.old.remove(&object).inspect(|track| self.old_weight -= 1 + track.inside.len()),
        };
        let Some(track) = known else {
            // Kept even if it is inside nothing: its time identifies positions that arrive late.
            self.keep(object, Track { time, inside: inside.to_vec() });
            return Passage { entered: inside.to_vec(), ..Passage::default() };
        };
        // The kept state stays the newest one: a late event must not bring the object back to where it was before.
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
        // Two generations instead of a list in order of use. A lookup moves an entry from one map to the
        // other. Eviction drops a whole map at once. Half of the budget each, since both may be full
        // together.
        if self.weight + weight > self.max / 2 && !self.young.is_empty() {
            self.age();
        }
        self.weight += weight;
        self.young.insert(object, track);
    }

    /// Forgets the old generation; the young one is the old one from now on.
    pub fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.old_weight = std::mem::take(&mut self.weight);
    }

    /// Objects known, plus the queries that they are in.
    pub fn weight(&self) -> usize {
        self.weight + self.old_weight
    }

    /// Objects known.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this one is.
    pub fn knows(&self, object: u64) -> bool {
        self.young.contains_key(&object) || self.old.contains_key(&object)
    }

    /// The known states, to be kept over a restart.
    pub fn list(&self) -> Vec<(u64, i64, Vec<u64>)> {
        let tracks = self.old.iter().chain(&self.young);
        tracks.map(|(object, track)| (*object, track.time, track.inside.clone())).collect()
    }

    /// Restores the state of objects, in the form of [`Fences::list`].
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
        let all = When::read(["exit", "enter", "inside", "exit"]).unwrap();
        assert_eq!(all, [When::Enter, When::Inside, When::Exit]);
        for (was, is, when) in [
            (false, true, Some(When::Enter)),
            (true, true, Some(When::Inside)),
            (true, false, Some(When::Exit)),
            (false, false, None),
        ] {
            assert_eq!(When::transition(&all, was, is), when);
            let only = |one: When| When::transition(&[one], was, is);
            assert_eq!(only(When::Enter), when.filter(|when| *when == When::Enter));
            assert_eq!(only(When::Inside), is.then_some(When::Inside));
            assert_eq!(only(When::Exit), when.filter(|when| *when == When::Exit));
        }
        assert_eq!(When::read(["enter", "in"]).unwrap_err().field.as_deref(), Some("when"));
        assert!(When::read([]).is_err());
    }

    proptest! {
        /// The same as an oracle that never forgets, as long as nothing is forgotten.
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
