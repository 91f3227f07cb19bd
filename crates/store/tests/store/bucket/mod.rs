//! A store over a bucket: takeovers, pauses at every call, what a reader sees, and that it behaves like a store over a
//! folder.

mod audit;
mod check;
mod equal;
mod extents;
mod follow;
mod freshness;
mod golden;
mod groups;
mod harm;
mod pages;
mod pauses;
mod records;
mod survey;
mod tail;
mod takeover;
mod unread;
mod wakes;

use crate::world::{Event, START, batch, options, readable, schema};
use meridian_model::IdRole;
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{Clock, ManualClock, MemoryDisk, Seams, SeededRandom};
use meridian_store::{Collection, Settings, Store, StoreError, Write, WriteError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of processes in this test run, so that no two draw the same random numbers.
static PROCESSES: AtomicU64 = AtomicU64::new(1);

/// Returns the seams of a separate process, with its own data folder and clock.
pub fn seams() -> Seams {
    Seams {
        disk: Arc::new(MemoryDisk::new()),
        clock: Arc::new(ManualClock::new(START)) as Arc<dyn Clock>,
        random: Arc::new(SeededRandom::new(PROCESSES.fetch_add(1, Ordering::Relaxed) << 20)),
    }
}

/// Opens the bucket as its owner.
pub fn open(bucket: &MemoryBucket) -> Result<Store, StoreError> {
    Store::open_shared(options(), seams(), Arc::new(bucket.clone()))
}

/// A process that has the collection open.
pub struct Process {
    pub store: Store,
    pub collection: Arc<Collection>,
}

impl Process {
    /// Creates the collection.
    pub fn first(bucket: &MemoryBucket) -> Process {
        let store = open(bucket).unwrap();
        let collection = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        Process { store, collection }
    }

    /// Takes over the collection.
    pub fn next(bucket: &MemoryBucket) -> Process {
        let store = open(bucket).unwrap();
        assert_eq!(store.problems(), []);
        let collection = store.collection("t", "c").expect("the collection is there");
        Process { store, collection }
    }
}

/// What is known of a write's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    Stored,
    Refused,
    /// The replay of the log shows its outcome.
    Unknown,
}

/// Writes by number, of three events each, with their outcomes.
#[derive(Debug, Default)]
pub struct Writes(BTreeMap<i64, WriteOutcome>);

impl Writes {
    /// Executes the next write.
    pub fn write(&mut self, collection: &Collection) -> WriteOutcome {
        let number = self.0.len() as i64 + 1;
        // Before the write: a pause within it may execute others.
        self.0.insert(number, WriteOutcome::Unknown);
        let outcome = write(collection, number);
        self.0.insert(number, outcome);
        outcome
    }

    /// Records a write that was executed elsewhere.
    pub fn note(&mut self, number: i64, outcome: WriteOutcome) {
        self.0.insert(number, outcome);
    }

    /// Compares the content of a collection with the outcomes of the writes. Unknown outcomes are known from then on.
    pub fn compare(&mut self, collection: &Collection) {
        let (found, errors) = readable(&collection.snapshot());
        assert!(errors.is_empty(), "{errors:?}");
        let mut there: BTreeMap<i64, usize> = BTreeMap::new();
        found.iter().for_each(|(_, _, n)| *there.entry(n / 10).or_default() += 1);
        for (number, outcome) in &mut self.0 {
            let count = there.remove(number).unwrap_or(0);
            assert!(count == 0 || count == 3, "write {number} is there in part");
            match outcome {
                WriteOutcome::Stored => assert_eq!(count, 3, "write {number} was acknowledged and is gone"),
                WriteOutcome::Refused => assert_eq!(count, 0, "write {number} was refused and is there"),
                WriteOutcome::Unknown => {
                    *outcome = if count == 3 { WriteOutcome::Stored } else { WriteOutcome::Refused }
                }
            }
        }
        assert!(there.is_empty(), "{there:?} was never written");
    }
}

/// Writes three events under a number.
pub fn write(collection: &Collection, number: i64) -> WriteOutcome {
    let events: Vec<Event> = (0..3).map(|i| Event::new(format!("w{number}-{i}"), number * 10 + i)).collect();
    match collection.write(Write::new(batch(&collection.schema(), &events))) {
        Ok(_) => WriteOutcome::Stored,
        Err(WriteError::Unknown(_)) => WriteOutcome::Unknown,
        Err(_) => WriteOutcome::Refused,
    }
}
