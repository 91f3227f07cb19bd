//! Processes take over a collection from one another, over a faulty bucket. It loses answers, delays and duplicates
//! creates, returns stale listings, fills up and is cut off.
//!
//! Invariants: an acknowledged write is never lost; one of unknown outcome is present completely or not at all. A
//! former owner acknowledges nothing. No object that a manifest names is gone, and the process that took over last
//! takes writes.

use super::{Process, WriteOutcome, Writes, open};
use meridian_store::bucket::{BucketFault, MemoryBucket};
use meridian_store::seams::{Random, SeededRandom};

const STEPS: usize = 40;

struct Takeovers {
    bucket: MemoryBucket,
    random: SeededRandom,
    process: Process,
    /// Former owners that do not know of the takeover yet.
    old: Vec<Process>,
    writes: Writes,
    log: Vec<String>,
}

impl Takeovers {
    fn new(seed: u64) -> Takeovers {
        let bucket = MemoryBucket::new();
        let process = Process::first(&bucket);
        let (old, writes, log) = (Vec::new(), Writes::default(), Vec::new());
        Takeovers { bucket, random: SeededRandom::new(seed), process, old, writes, log }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn write(&mut self, by: Option<usize>) -> WriteOutcome {
        let process = by.map_or(&self.process, |old| &self.old[old]);
        let outcome = self.writes.write(&process.collection);
        self.log.push(format!("a write by {by:?}: {outcome:?}"));
        assert!(by.is_none() || outcome != WriteOutcome::Stored, "a process that was taken over acknowledged a write");
        outcome
    }

    fn step(&mut self) {
        match self.below(14) {
            0..=4 => {
                self.write(None);
            }
            5 => {
                let flushed = self.process.collection.flush().is_ok();
                self.log.push(format!("flush: {flushed}"));
            }
            6 => {
                let merged = self.process.collection.maintain().is_ok();
                self.process.store.trim_serving();
                self.log.push(format!("maintenance: {merged}"));
            }
            7 | 8 => {
                use BucketFault::{After, Before, Broken, Doubled, Full, Stalled};
                let fault = [Before, After, Doubled, Stalled, Broken, Full][self.below(6) as usize];
                let after = self.below(6);
                self.bucket.fail(fault, after);
                self.log.push(format!("a create fails {fault:?} after {after}"));
            }
            9 => {
                self.bucket.deliver();
                self.log.push("stalled creates arrive".to_owned());
            }
            10 => {
                self.bucket.freeze_listings(true);
                self.log.push("listings stay behind".to_owned());
            }
            11 => self.take_over(),
            12 => {
                self.bucket.cut(true);
                self.write(None);
                self.bucket.cut(false);
            }
            _ if !self.old.is_empty() => {
                let at = self.below(self.old.len() as u64) as usize;
                let flushed = self.old[at].collection.flush().is_ok();
                self.log.push(format!("an old process flushes: {flushed}"));
                self.write(Some(at));
            }
            _ => {}
        }
    }

    /// Makes another process take over the collection. Listings may be stale meanwhile, and creates may fail.
    fn take_over(&mut self) {
        let store = match open(&self.bucket) {
            Ok(store) if store.collection("t", "c").is_some() && store.problems().is_empty() => store,
            other => {
                self.log.push(format!("a takeover fails: {:?}", other.map(|store| store.problems())));
                // It may have come far enough to fence the others.
                self.bucket.heal();
                open(&self.bucket).unwrap()
            }
        };
        let collection =
            store.collection("t", "c").unwrap_or_else(|| panic!("it does not open: {:?}", store.problems()));
        assert_eq!(store.problems(), []);
        self.old.push(std::mem::replace(&mut self.process, Process { store, collection }));
        self.log.push("another process takes over".to_owned());
        self.writes.compare(&self.process.collection);
    }

    /// Checks that once the bucket works again the newest process serves, whatever earlier ones still try.
    fn serve(&mut self) {
        self.bucket.heal();
        self.old.iter().for_each(|old| drop(old.collection.flush()));
        assert_eq!(self.write(None), WriteOutcome::Stored, "the process that took over takes no writes");
        let flushed = self.process.collection.flush();
        assert!(flushed.is_ok(), "the process that took over cannot flush: {flushed:?}");
    }
}

#[test]
fn processes_take_over_from_one_another_and_lose_nothing() {
    for seed in 0..200 {
        let mut run = Takeovers::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| run.step());
            run.bucket.heal();
            run.take_over();
            run.serve();
            run.bucket.deliver();
            run.take_over();
            run.serve();
            assert_eq!(run.process.store.check(), []);
        }));
        assert!(result.is_ok(), "seed {seed}:\n  {}", run.log.join("\n  "));
    }
}
