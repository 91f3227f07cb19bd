//! The index of saved searches. For each event it finds the few questions that may match, so that not every question
//! has to be tested.
//!
//! Each question is entered where the fewest events pass: under its author, in the cells of its place, or
//! under words. Every match has one of these words. For a phrase this is the rarest word; for alternatives,
//! one each. Word frequencies are learnt from the events. The candidates are then tested as in a search.

use super::grid::Grid;
use meridian_federation::Question;
use meridian_federation::event::Event;
use meridian_federation::hash;
use meridian_federation::matching::plain_author;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// One event in this many is sampled to learn word frequencies.
const SAMPLED: u32 = 8;
/// Counters of words. Words that share a counter are counted together.
const COUNTERS: usize = 1 << 16;
/// The assumed share of events by one author.
const OF_ONE_AUTHOR: f64 = 1e-4;
/// Events cluster where people are: a place is assumed to have this multiple of its share of the globe.
const CROWDED: f64 = 16.0;

/// Questions, each with a value for the caller.
#[derive(Debug)]
pub(crate) struct Index<T> {
    slots: Vec<Option<Slot<T>>>,
    free: Vec<u32>,
    grid: Grid,
    words: HashMap<Box<str>, Vec<u32>>,
    authors: HashMap<Box<str>, Vec<u32>>,
    frequencies: Arc<WordFrequencies>,
}

#[derive(Debug)]
struct Slot<T> {
    question: Arc<Question>,
    key: Key,
    of: T,
}

/// The entry of a question in the index.
#[derive(Debug)]
enum Key {
    Cells(Vec<u64>),
    KeywordQuery(Vec<Box<str>>),
    Author(Box<str>),
}

impl<T> Index<T> {
    /// An empty index that chooses words by these frequencies.
    pub(crate) fn new(frequencies: Arc<WordFrequencies>) -> Index<T> {
        Index {
            slots: Vec::new(),
            free: Vec::new(),
            grid: Grid::default(),
            words: HashMap::new(),
            authors: HashMap::new(),
            frequencies,
        }
    }

    /// Inserts a question and returns the number to remove it by.
    pub(crate) fn insert(&mut self, question: Arc<Question>, of: T) -> u32 {
        // Numbers are reused, so that slots stay dense after many creations and deletions.
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        let key = match self.cheapest(&question) {
            CheapestKey::Author(name) => {
                self.authors.entry(name.clone()).or_default().push(number);
                Key::Author(name)
            }
            CheapestKey::KeywordQuery(mut words) => {
                words.sort_unstable();
                words.dedup();
                for word in &words {
                    self.words.entry(word.clone()).or_default().push(number);
                }
                Key::KeywordQuery(words)
            }
            CheapestKey::Place(boxes) => Key::Cells(self.grid.insert(number, &boxes)),
        };
        self.slots[number as usize] = Some(Slot { question, key, of });
        number
    }

    /// Removes a question.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let Slot { key, of, .. } = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        match key {
            Key::Cells(cells) => self.grid.remove(number, &cells),
            Key::KeywordQuery(words) => words.into_iter().for_each(|word| forget(&mut self.words, word, number)),
            Key::Author(name) => forget(&mut self.authors, name, number),
        }
        Some(of)
    }

    /// Whether the index is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Calls `take` once for each question that an event matches.
    pub(crate) fn answered<'a>(&'a self, event: &Event<'_>, mut take: impl FnMut(&'a T)) {
        let mut near = Vec::new();
        if let Some(sides) = event.sides() {
            self.grid.touching(sides, &mut near);
        }
        if !self.authors.is_empty()
            && let Some(name) = event.author()
        {
            near.extend(self.authors.get(name.as_str()).into_iter().flatten());
        }
        if !self.words.is_empty() {
            near.extend(event.texts().words().filter_map(|word| self.words.get(word)).flatten());
        }
        near.sort_unstable();
        // A question may be found by several words or cells, and must be tested once.
        near.dedup();
        for number in near {
            if let Some(slot) = &self.slots[number as usize]
                && event.answers(&slot.question)
            {
                take(&slot.of);
            }
        }
        // After matching, off the path to the first result.
        self.frequencies.learn(event);
    }

    fn cheapest(&self, question: &Question) -> CheapestKey {
        let place = question.area().map(|area| {
            let boxes = area.boxes();
            let size: f64 = boxes.iter().map(|[west, south, east, north]| (east - west) * (north - south)).sum();
            (CROWDED * size / (360.0 * 180.0), CheapestKey::Place(boxes))
        });
        let words =
            question.keywords.as_ref().and_then(|words| words.required(&|word: &str| self.frequencies.share(word)));
        let words =
            words.map(|(cost, words)| (cost, CheapestKey::KeywordQuery(words.into_iter().map(Box::from).collect())));
        let author = question.author.as_ref();
        let author = author.map(|name| (OF_ONE_AUTHOR, CheapestKey::Author(plain_author(name).into())));
        let ways = [author, words, place].into_iter().flatten();
        // Every valid question has one of the three. One without would have to be tested on every event.
        let everywhere = || CheapestKey::Place(vec![[-180.0, -90.0, 180.0, 90.0]]);
        ways.min_by(|a, b| a.0.total_cmp(&b.0)).map_or_else(everywhere, |(_, way)| way)
    }
}

enum CheapestKey {
    Author(Box<str>),
    KeywordQuery(Vec<Box<str>>),
    Place(Vec<[f64; 4]>),
}

fn forget(map: &mut HashMap<Box<str>, Vec<u32>>, name: Box<str>, number: u32) {
    if let Entry::Occupied(mut numbers) = map.entry(name) {
        numbers.get_mut().retain(|n| *n != number);
        if numbers.get().is_empty() {
            numbers.remove();
        }
    }
}

/// Word frequencies of the events, of all tenants: the counters would be too large for one set each.
#[derive(Debug)]
pub(crate) struct WordFrequencies {
    passed: AtomicU32,
    sampled: AtomicU32,
    counters: Box<[AtomicU32]>,
}

impl Default for WordFrequencies {
    fn default() -> Self {
        let counters = (0..COUNTERS).map(|_| AtomicU32::new(0)).collect();
        WordFrequencies { passed: AtomicU32::new(0), sampled: AtomicU32::new(0), counters }
    }
}

impl WordFrequencies {
    fn counter(&self, word: &str) -> &AtomicU32 {
        &self.counters[hash(&[word]) as usize % COUNTERS]
    }

    /// Counts an event.
    fn learn(&self, event: &Event<'_>) {
        if !self.passed.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED) {
            return;
        }
        if self.sampled.fetch_add(1, Ordering::Relaxed) >= 1 << 20 {
            // Old counts decay, so that frequencies follow the events.
            for counter in self.counters.iter().chain([&self.sampled]) {
                counter.store(counter.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        for word in event.texts().words() {
            self.counter(word).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The estimated share of events with a word. Long words count as rare until they are seen.
    fn share(&self, word: &str) -> f64 {
        let (seen, of) = (self.counter(word).load(Ordering::Relaxed), self.sampled.load(Ordering::Relaxed));
        let expected = 8.0 / word.len().max(1) as f64;
        (f64::from(seen) + expected) / (f64::from(of) + 2_000.0)
    }
}
