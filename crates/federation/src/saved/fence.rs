//! Who is where: of every moving object the questions that its newest event answers, so that coming and leaving can be told.
//!
//! Memory is bounded. What was not heard of for longest is forgotten: two generations, of which the older goes when the younger
//! is full. An object that is forgotten comes anew with its next event, however late.

use std::collections::HashMap;

/// The objects.
#[derive(Debug)]
pub(crate) struct Fences {
    young: HashMap<u64, Track>,
    old: HashMap<u64, Track>,
    /// What the young take: one for each object, and one for each question that it is in.
    weight: usize,
    max: usize,
}

/// What is known of one.
#[derive(Debug)]
struct Track {
    /// Time of its newest event.
    time: i64,
    /// The questions that this event answers, sorted.
    inside: Vec<u64>,
}

/// What an event means for the questions.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Passage {
    /// Whether the object is known to have been elsewhere since: a late event is no news, neither of coming and leaving nor
    /// of being inside.
    pub(crate) late: bool,
    /// Those that the object has come into, sorted.
    pub(crate) entered: Vec<u64>,
    /// Those that it was in, and is no more.
    pub(crate) left: Vec<u64>,
}

impl Fences {
    pub(crate) fn new(max: usize) -> Fences {
        Fences { young: HashMap::new(), old: HashMap::new(), weight: 0, max }
    }

    /// An object's event answers these questions, sorted. One that is older than what is known changes nothing: the object was
    /// elsewhere since.
    pub(crate) fn pass(&mut self, object: u64, time: i64, inside: &[u64]) -> Passage {
        let known = match self.young.remove(&object) {
            Some(track) => {
                self.weight -= 1 + track.inside.len();
                Some(track)
            }
            None => self.old.remove(&object),
        };
        let Some(track) = known else {
            // Of one that is nowhere the time is kept: a position from before may come later.
            self.keep(object, Track { time, inside: inside.to_vec() });
            return Passage { entered: inside.to_vec(), ..Passage::default() };
        };
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
        if self.weight + weight > self.max / 2 && !self.young.is_empty() {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight;
        self.young.insert(object, track);
    }

    /// Objects known.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// What is known, to be remembered over a restart.
    pub(crate) fn list(&self) -> Vec<(u64, i64, Vec<u64>)> {
        let tracks = self.old.iter().chain(&self.young);
        tracks.map(|(object, track)| (*object, track.time, track.inside.clone())).collect()
    }

    /// Takes in what was known before a restart.
    pub(crate) fn restore(&mut self, list: Vec<(u64, i64, Vec<u64>)>) {
        for (object, time, inside) in list {
            self.keep(object, Track { time, inside });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As one who remembers everything has it, as long as nothing is forgotten.
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
                prop_assert!(fences.list().iter().map(|(_, _, inside)| 1 + inside.len()).sum::<usize>() <= 104);
            }
        }
    }
}
