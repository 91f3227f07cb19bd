//! Processes take over a collection from one another, over faulty storage: lost acknowledgements, stalled writers,
//! fences.
//!
//! Invariants: an acknowledged write is never lost; one of unknown outcome is present completely or not at all. A
//! fenced process acknowledges nothing. No object that a manifest names is gone, and the process that took over last
//! takes writes.

use crate::world::{Event, START, batch, options, readable, schema};
use meridian_model::IdRole;
use meridian_store::seams::{
    Clock, Failure, ManualClock, MemoryDisk, MemoryStorage, Random, Seam, Seams, SeededRandom, Storage,
};
use meridian_store::{Collection, Settings, Store, Write, WriteError, partition_dir};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const STEPS: usize = 40;

/// The model's knowledge of a write's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteOutcome {
    Stored,
    Refused,
    /// The replay of the log shows its outcome.
    Unknown,
}

struct Process {
    store: Store,
    collection: Arc<Collection>,
}

struct Takeovers {
    storage: MemoryStorage,
    random: SeededRandom,
    process: Process,
    /// Former owners that do not know of the takeover yet.
    old: Vec<Process>,
    /// Outcomes by number of the write.
    writes: BTreeMap<i64, WriteOutcome>,
    log: Vec<String>,
}

/// Opens the collection in a separate process: another disk for lock and marker, the same storage.
fn start(storage: &MemoryStorage, make: bool) -> Process {
    let disk = MemoryDisk::new();
    let seams = Seams {
        disk: Arc::new(disk),
        clock: Arc::new(ManualClock::new(START)) as Arc<dyn Clock>,
        random: Arc::new(SeededRandom::new(7)),
    };
    if !make {
        // A separate data folder, in which the collection is listed.
        drop(Store::open(options(), seams.clone()).unwrap());
        seams.disk.create_dir(&partition_dir(Path::new("/data"), "t", "c", 0)).unwrap();
    }
    let shared = Arc::new(storage.clone()) as Arc<dyn Storage>;
    let store = Store::open_over(options(), seams, |_| shared).unwrap();
    let collection = match make {
        true => store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap(),
        false => store.collection("t", "c").unwrap_or_else(|| panic!("it does not open: {:?}", store.problems())),
    };
    Process { store, collection }
}

impl Takeovers {
    fn new(seed: u64) -> Takeovers {
        let storage = MemoryStorage::new();
        let process = start(&storage, true);
        Takeovers {
            storage,
            random: SeededRandom::new(seed),
            process,
            old: Vec::new(),
            writes: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn write(&mut self, by: Option<usize>) {
        let number = self.writes.len() as i64 + 1;
        let events: Vec<Event> = (0..3).map(|i| Event::new(format!("w{number}-{i}"), number * 10 + i)).collect();
        let process = by.map_or(&self.process, |old| &self.old[old]);
        let c = &process.collection;
        let outcome = match c.write(Write::new(batch(&c.schema(), &events))) {
            Ok(_) => WriteOutcome::Stored,
            Err(WriteError::Failed(_)) => WriteOutcome::Unknown,
            Err(_) => WriteOutcome::Refused,
        };
        self.log.push(format!("write {number} by {by:?}: {outcome:?}"));
        assert!(by.is_none() || outcome != WriteOutcome::Stored, "a fenced process acknowledged write {number}");
        self.writes.insert(number, outcome);
    }

    fn step(&mut self) {
        match self.below(12) {
            0..=4 => self.write(None),
            5 => {
                let flushed = self.process.collection.flush().is_ok();
                self.log.push(format!("flush: {flushed}"));
            }
            6 => {
                let merged = self.process.collection.maintain().is_ok();
                self.log.push(format!("maintenance: {merged}"));
            }
            7 => {
                let seam = [Seam::Log, Seam::Catalog, Seam::Objects][self.below(3) as usize];
                let failure = [Failure::Before, Failure::After, Failure::Stalled][self.below(3) as usize];
                let after = self.below(4);
                self.storage.fail(seam, failure, after);
                self.log.push(format!("a call of {seam:?} fails {failure:?} after {after}"));
            }
            8 => {
                self.storage.deliver();
                self.log.push("stalled calls arrive".to_owned());
            }
            9 => self.take_over(true),
            10 => self.take_over(false),
            _ if !self.old.is_empty() => {
                // A paused process resumes: it flushes what it holds, and takes a write.
                let at = self.below(self.old.len() as u64) as usize;
                let flushed = self.old[at].collection.flush().is_ok();
                self.log.push(format!("an old process flushes: {flushed}"));
                self.write(Some(at));
            }
            _ => {}
        }
    }

    /// Makes another process take over the collection: the previous one has crashed, or is just slow.
    fn take_over(&mut self, crash: bool) {
        self.storage.heal();
        if crash {
            self.old.clear();
        }
        let new = start(&self.storage, false);
        let old = std::mem::replace(&mut self.process, new);
        if crash {
            drop(old);
        } else {
            self.old.push(old);
        }
        self.log.push(format!("another process takes over; the one before crashed: {crash}"));
        self.compare();
    }

    /// Checks that once the storage works again the newest process serves, whatever earlier ones still try.
    fn serve(&mut self) {
        self.storage.heal();
        self.old.iter().for_each(|old| drop(old.collection.flush()));
        self.write(None);
        let outcome = self.writes.values().last();
        assert_eq!(outcome, Some(&WriteOutcome::Stored), "the process that took over takes no writes");
        let flushed = self.process.collection.flush();
        assert!(flushed.is_ok(), "the process that took over cannot flush: {flushed:?}");
    }

    fn compare(&mut self) {
        let (found, errors) = readable(&self.process.collection.snapshot());
        assert!(errors.is_empty(), "{errors:?}");
        let mut there: BTreeMap<i64, usize> = BTreeMap::new();
        found.iter().for_each(|(_, _, n)| *there.entry(n / 10).or_default() += 1);
        for (number, outcome) in &mut self.writes {
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
        let names = self.process.store.problems();
        assert!(names.is_empty(), "{names:?}");
    }
}

#[test]
fn processes_take_over_from_one_another_and_lose_nothing() {
    for seed in 0..150 {
        let mut run = Takeovers::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| run.step());
            run.take_over(false);
            run.serve();
            run.storage.deliver();
            run.take_over(true);
            run.serve();
        }));
        assert!(result.is_ok(), "seed {seed}:\n  {}", run.log.join("\n  "));
    }
}
