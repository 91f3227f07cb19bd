//! Replacement policy of a cache with a fixed number of places; a large scan must not flush it.
//!
//! The rule is S3-FIFO (Yang et al., SOSP 2023). A new key enters a short queue. If it is used there again, it moves
//! to the main queue; otherwise it leaves, and only its key is remembered for a while. A remembered key that comes
//! back enters the main queue at once. So data that is read once passes through a tenth of the places. A use never
//! reorders a queue; it only increments a counter.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

/// Max uses of a key that count: each saves it from one round of the main queue.
const USES_MAX: u8 = 3;
/// The short queue gets one in this many places.
const SHORT: usize = 10;

/// Keys in numbered places. Each place holds one key or is free.
#[derive(Debug)]
pub struct Places<K> {
    places: u32,
    /// First never-used place; the following ones are unused too.
    fresh: u32,
    free: Vec<u32>,
    held: HashMap<K, CachedPlace>,
    short: VecDeque<K>,
    main: VecDeque<K>,
    /// Keys evicted from the short queue, oldest first. Some have come back since.
    left: VecDeque<K>,
    remembered: HashSet<K>,
}

#[derive(Debug, Clone, Copy)]
struct CachedPlace {
    place: u32,
    uses: u8,
}

impl<K: Copy + Eq + Hash> Places<K> {
    /// A cache of `places` free places.
    pub fn new(places: u32) -> Places<K> {
        Places {
            places,
            fresh: 0,
            free: Vec::new(),
            held: HashMap::new(),
            short: VecDeque::new(),
            main: VecDeque::new(),
            left: VecDeque::new(),
            remembered: HashSet::new(),
        }
    }

    /// The place of a key, if it has one; counts as a use.
    pub fn find(&mut self, key: &K) -> Option<u32> {
        let held = self.held.get_mut(key)?;
        held.uses = (held.uses + 1).min(USES_MAX);
        Some(held.place)
    }

    /// Whether a key has a place; not counted as a use.
    pub fn holds(&self, key: &K) -> bool {
        self.held.contains_key(key)
    }

    /// Number of keys with a place.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no key has a place.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes a place for a new key, evicting another key if none is free; `None` if there are no places. The caller
    /// fills it, then passes it to [`Places::put`], or to [`Places::release`] on failure.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| self.take_fresh()).or_else(|| self.evict())
    }

    fn take_fresh(&mut self) -> Option<u32> {
        let place = (self.fresh < self.places).then_some(self.fresh)?;
        self.fresh += 1;
        Some(place)
    }

    /// Assigns a taken place to a key. A key that already has a place keeps it, and the other place is freed.
    pub fn put(&mut self, key: K, place: u32) {
        if self.held.contains_key(&key) {
            return self.free.push(place);
        }
        self.held.insert(key, CachedPlace { place, uses: 0 });
        if self.remembered.remove(&key) {
            self.main.push_back(key);
        } else {
            self.short.push_back(key);
        }
    }

    /// Frees a taken place.
    pub fn release(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Restores the key of a place from before a restart. Returns false if the place counts as free, because another
    /// place has the key or there are fewer places now. Call it for ascending places, before anything else.
    pub fn restore(&mut self, key: Option<K>, place: u32) -> bool {
        if place >= self.places {
            return false;
        }
        self.fresh = self.fresh.max(place + 1);
        match key.filter(|key| !self.held.contains_key(key)) {
            Some(key) => {
                self.held.insert(key, CachedPlace { place, uses: 0 });
                self.main.push_back(key);
                true
            }
            None => {
                self.free.push(place);
                false
            }
        }
    }

    /// Frees the place of a key whose content turned out to be unusable.
    pub fn forget(&mut self, key: &K) {
        if let Some(held) = self.held.remove(key) {
            // Rare, so the search through both queues does not matter.
            self.short.retain(|held| held != key);
            self.main.retain(|held| held != key);
            self.free.push(held.place);
        }
    }

    /// Takes the place of the key to evict.
    fn evict(&mut self) -> Option<u32> {
        loop {
            let from_short = self.short.len() > self.places as usize / SHORT || self.main.is_empty();
            let key = if from_short { self.short.pop_front()? } else { self.main.pop_front()? };
            let Some(held) = self.held.get_mut(&key) else { continue };
            match (from_short, held.uses) {
                (_, 0) => {
                    let place = held.place;
                    self.held.remove(&key);
                    if from_short {
                        self.remember(key);
                    }
                    return Some(place);
                }
                (true, _) => {
                    held.uses = 0;
                    self.main.push_back(key);
                }
                // Terminates, as each round takes a use from every key.
                (false, _) => {
                    held.uses -= 1;
                    self.main.push_back(key);
                }
            }
        }
    }

    fn remember(&mut self, key: K) {
        if self.remembered.insert(key) {
            self.left.push_back(key);
        }
        while self.left.len() > self.places as usize {
            if let Some(oldest) = self.left.pop_front() {
                self.remembered.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a key through the cache; returns true on a hit.
    fn read(places: &mut Places<u32>, key: u32) -> bool {
        if places.find(&key).is_some() {
            return true;
        }
        if let Some(place) = places.take() {
            places.put(key, place);
        }
        false
    }

    fn read_all(places: &mut Places<u32>, keys: std::ops::Range<u32>) {
        for key in keys {
            read(places, key);
        }
    }

    #[test]
    fn a_scan_leaves_what_is_in_use() {
        let mut places = Places::new(100);
        for _ in 0..3 {
            read_all(&mut places, 0..80);
        }
        // Ten times as much as fits, each read once.
        read_all(&mut places, 1_000..2_000);
        let kept = (0..80).filter(|key| places.holds(key)).count();
        assert_eq!(kept, 80);
    }

    #[test]
    fn a_key_that_comes_back_soon_stays() {
        let mut places = Places::new(20);
        read_all(&mut places, 0..20);
        assert!(!read(&mut places, 100));
        // The first has been evicted by now, and is remembered.
        assert!(!places.holds(&0) && !read(&mut places, 0));
        read_all(&mut places, 200..240);
        assert!(places.holds(&0) && !places.holds(&100));
    }

    #[test]
    fn without_places_nothing_is_held() {
        let mut places = Places::new(0);
        assert!(places.take().is_none() && !read(&mut places, 1) && places.is_empty());
    }

    proptest! {
        #[test]
        fn every_place_holds_at_most_one_key(
            count in 1u32..12,
            steps in prop::collection::vec((0u8..4, 0u32..30), 0..400),
        ) {
            let mut places = Places::new(count);
            for (step, key) in steps {
                let before = places.holds(&key);
                match step {
                    0 => places.forget(&key),
                    1 => assert_eq!(places.find(&key).is_some(), places.holds(&key)),
                    2 => if let Some(place) = places.take() { places.release(place) },
                    _ => assert_eq!(read(&mut places, key), places.find(&key).is_some() && before),
                }
                let mut used: Vec<u32> = places.held.values().map(|held| held.place).chain(places.free.iter().copied()).collect();
                used.sort_unstable();
                prop_assert_eq!(used, (0..places.fresh).collect::<Vec<_>>());
                prop_assert!(places.fresh <= count && places.left.len() <= count as usize);
                prop_assert_eq!(places.short.len() + places.main.len(), places.len());
                prop_assert!(places.remembered.len() <= places.left.len());
            }
        }
    }
}
