//! Processes take over a collection from one another, over faulty streams. The streams lose answers, delay and
//! duplicate messages, fill up, and are cut off. They also lose acknowledged messages while the owner runs.
//!
//! Invariants: an acknowledged write is never lost; one of unknown outcome is present completely or not at all. A
//! former owner acknowledges nothing, and the process that took over last takes writes.

use super::{Cluster, Process, WriteOutcome, Writes};
use meridian_store::seams::{Random, SeededRandom};
use meridian_store::stream::StreamFault;

const STEPS: usize = 40;

struct Takeovers {
    cluster: Cluster,
    random: SeededRandom,
    process: Process,
    /// Former owners that do not know of the takeover yet.
    old: Vec<Process>,
    writes: Writes,
    log: Vec<String>,
}

impl Takeovers {
    fn new(seed: u64) -> Takeovers {
        // A group is one message, two of them, or several.
        let cluster = Cluster::of([0, 250, 100][(seed % 3) as usize]);
        let process = cluster.first();
        let (old, writes, log) = (Vec::new(), Writes::default(), Vec::new());
        Takeovers { cluster, random: SeededRandom::new(seed), process, old, writes, log }
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
        let streams = self.cluster.streams.clone();
        match self.below(13) {
            0..=4 => drop(self.write(None)),
            5 => {
                let flushed = self.process.collection.flush().is_ok();
                self.log.push(format!("flush: {flushed}"));
            }
            6 | 7 => {
                use StreamFault::{After, Before, Doubled, Full, Stalled};
                let fault = [Before, After, Doubled, Stalled, Full][self.below(5) as usize];
                let after = self.below(8);
                streams.fail(fault, after);
                self.log.push(format!("a message fails {fault:?} after {after}"));
            }
            8 => {
                streams.deliver();
                self.log.push("stalled messages arrive".to_owned());
            }
            9 => self.take_over(),
            10 => {
                streams.cut(true);
                self.write(None);
                streams.cut(false);
            }
            // Only while its owner has all of it in memory.
            11 if !self.process.store.is_outdated() => {
                let lost = 1 + self.below(3);
                self.log.push(format!("{lost} messages are lost"));
                streams.heal();
                streams.lose(lost);
                self.write(None);
                self.process.collection.maintain_memory(false).unwrap();
                assert_eq!(self.write(None), WriteOutcome::Stored, "it does not go on after a loss");
            }
            _ if !self.old.is_empty() => {
                let at = self.below(self.old.len() as u64) as usize;
                let before = streams.messages();
                let flushed = self.old[at].collection.flush().is_ok();
                self.log.push(format!("an old process flushes: {flushed}"));
                self.write(Some(at));
                assert_eq!(streams.messages(), before, "a process that was taken over changed the stream");
            }
            _ => {}
        }
    }

    /// Makes another process take over the collection. Messages may fail meanwhile.
    fn take_over(&mut self) {
        let store = match self.cluster.open() {
            Ok(store) if store.collection("t", "c").is_some() && store.problems().is_empty() => store,
            other => {
                self.log.push(format!("a takeover fails: {:?}", other.map(|store| store.problems())));
                // It may have come far enough to fence the others.
                self.cluster.streams.heal();
                self.cluster.open().unwrap()
            }
        };
        let collection =
            store.collection("t", "c").unwrap_or_else(|| panic!("it does not open: {:?}", store.problems()));
        assert_eq!(store.problems(), []);
        self.old.push(std::mem::replace(&mut self.process, Process { store, collection }));
        self.log.push("another process takes over".to_owned());
        self.writes.compare(&self.process.collection);
    }

    /// Checks that once the streams work again the newest process serves, whatever earlier ones still try.
    fn serve(&mut self) {
        self.cluster.streams.heal();
        self.old.iter().for_each(|old| drop(old.collection.flush()));
        assert_eq!(self.write(None), WriteOutcome::Stored, "the process that took over takes no writes");
        let flushed = self.process.collection.flush();
        assert!(flushed.is_ok(), "the process that took over cannot flush: {flushed:?}");
    }
}

#[test]
fn processes_take_over_from_one_another_and_lose_nothing() {
    for seed in 0..300 {
        let mut run = Takeovers::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| run.step());
            run.cluster.streams.heal();
            run.take_over();
            run.serve();
            run.cluster.streams.deliver();
            run.take_over();
            run.serve();
            assert_eq!(run.process.store.check(), []);
        }));
        assert!(result.is_ok(), "seed {seed}:\n  {}", run.log.join("\n  "));
    }
}
