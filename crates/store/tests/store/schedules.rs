//! Random schedules of writes, flushes, merges and crashes against the naive model. A failure prints its seed.

use crate::model::{Expected, Model};
use crate::world::{Event, World, batch, content};
use meridian_model::{IdRole, Seq};
use meridian_store::seams::{CrashStyle, FaultKind, Random, SeededRandom};
use meridian_store::{Collection, Store, Write, WriteError};
use std::sync::Arc;

struct Run {
    seed: u64,
    random: SeededRandom,
    world: World,
    store: Option<Store>,
    collection: Arc<Collection>,
    model: Model,
    role: IdRole,
    next_n: i64,
    /// Snapshots taken, to come back to: when they were used last.
    tokens: Vec<(Seq, i64)>,
    trace: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let random = SeededRandom::new(seed);
        let mut world = World::new();
        let role = if random.next_u64().is_multiple_of(2) { IdRole::Given } else { IdRole::Made };
        world.options.log_file_bytes = 1 << (10 + random.next_u64() % 8);
        world.options.segment_rows_min = 1 << (random.next_u64() % 8);
        let (store, collection) = world.with_collection(role);
        Run {
            seed,
            random,
            world,
            store: Some(store),
            collection,
            model: Model::new(role),
            role,
            next_n: 0,
            tokens: Vec::new(),
            trace: Vec::new(),
        }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn events(&mut self) -> Vec<Event> {
        let count = match self.below(20) {
            0 => 3000 + self.below(4000),
            1..=5 => 1,
            _ => 1 + self.below(40),
        };
        let mut taken = std::collections::BTreeSet::new();
        let mut events = Vec::new();
        for _ in 0..count {
            self.next_n += 1;
            // Few ids of their own, so that they meet again.
            let id = if self.below(3) == 0 { self.below(200) } else { 1000 + self.next_n as u64 };
            if taken.insert(id) {
                events.push(Event::new(format!("id-{id}"), self.next_n));
            }
        }
        events
    }

    fn step(&mut self) {
        let choice = self.below(100);
        let what = match choice {
            0..=44 => self.write(),
            45..=54 => self.delete(),
            55..=62 => {
                self.collection.flush().unwrap();
                "flush".to_owned()
            }
            63..=70 => format!("memory job: {}", self.collection.maintain_memory(false).unwrap()),
            71..=78 => format!("segment job: {}", self.collection.maintain_segments().unwrap()),
            79..=84 => {
                let snapshot = self.collection.snapshot();
                self.tokens.push((snapshot.seq, self.now()));
                "token".to_owned()
            }
            85..=89 => self.come_back(),
            90..=93 => {
                let seconds = self.below(400);
                self.world.clock.advance(seconds as i64 * 1_000_000);
                format!("{seconds} s pass")
            }
            94..=95 => self.failing_write(),
            96..=97 => self.failing_maintenance(),
            _ => self.crash(),
        };
        self.trace.push(what);
        self.compare();
    }

    fn now(&self) -> i64 {
        use meridian_store::seams::Clock;
        self.world.clock.now()
    }

    fn write(&mut self) -> String {
        let events = self.events();
        let replace = self.below(3) == 0;
        let key = match self.below(4) {
            0 => Some(format!("key-{}", self.next_n)),
            1 => self.model.keys.keys().nth(self.below(20) as usize).cloned(),
            _ => None,
        };
        let mut write = Write::new(batch(&self.collection.schema(), &events));
        write.key = key.clone();
        if replace {
            write = write.replacing();
        }
        let answer = self.collection.write(write);
        let expected = self.model.write(&events, key.as_deref(), replace);
        match (answer, &expected) {
            (Ok(got), Expected::Written { written, replaced, position }) => {
                assert_eq!((got.written, got.replaced, got.duplicates), (*written, *replaced, 0));
                assert_eq!((got.position, got.first), (*position, Seq::new(*position, 0)));
            }
            (Ok(got), Expected::Duplicate { duplicates, position }) => {
                assert_eq!((got.written, got.duplicates, got.position), (0, *duplicates, *position));
            }
            (Err(WriteError::Conflict { ids, total }), Expected::Conflict(there)) => {
                assert_eq!(total, there.len());
                assert_eq!(ids, there[..there.len().min(100)]);
            }
            (got, expected) => panic!("{got:?} where {expected:?} was expected"),
        }
        format!("write of {} (replace: {replace}, key: {key:?})", events.len())
    }

    fn delete(&mut self) -> String {
        let alive = self.model.alive();
        let mut ids = vec!["nobody".to_owned()];
        for _ in 0..self.below(30) {
            if !alive.is_empty() {
                ids.push(alive[self.below(alive.len() as u64) as usize].clone());
            }
        }
        let expected = self.model.delete(&ids);
        let got = self.collection.delete(&ids).unwrap();
        assert_eq!((got.deleted, got.position), (expected, self.model.position));
        format!("deletion of {expected}")
    }

    /// Comes back to an old snapshot, which must be there within five minutes of its last use.
    fn come_back(&mut self) -> String {
        if self.tokens.is_empty() {
            return "no token".to_owned();
        }
        let at = self.below(self.tokens.len() as u64) as usize;
        let (seq, used) = self.tokens[at];
        match self.collection.snapshot_at(seq) {
            Ok(snapshot) => {
                assert_eq!(content(&snapshot), self.model.content(seq));
                self.tokens[at].1 = self.now();
            }
            Err(_) => {
                assert!(self.now() - used > 300_000_000, "gone {} us after its use", self.now() - used);
                self.tokens.remove(at);
            }
        }
        format!("back to {seq}")
    }

    fn inject(&self, path: &str) -> String {
        let kinds = [FaultKind::SyncFails, FaultKind::WriteFails];
        let kind = kinds[self.below(2) as usize];
        let after = self.below(12);
        self.world.disk.inject(kind, path, after);
        format!("{kind:?} after {after} calls")
    }

    /// A write while the disk fails: it is stored whole or not at all, and the answer says which as far as that is known.
    fn failing_write(&mut self) -> String {
        let events = self.events();
        let position = self.collection.position();
        let what = if self.below(2) == 0 {
            self.world.disk.inject(FaultKind::SyncFails, "/log", 0);
            "SyncFails".to_owned()
        } else {
            self.inject("/log")
        };
        let write = || Write::new(batch(&self.collection.schema(), &events)).replacing();
        let answer = self.collection.write(write());
        let mut lost = false;
        match &answer {
            Ok(_) => {}
            Err(WriteError::Busy(_)) => assert_eq!(self.collection.position(), position),
            Err(WriteError::Failed(_)) => {
                let again = self.collection.write(write());
                assert!(matches!(again, Err(WriteError::Refused(_))), "{again:?}");
                lost = true;
            }
            Err(other) => panic!("{other:?}"),
        }
        if answer.is_ok() {
            self.model.write(&events, None, true);
        }
        // Readers go on.
        self.compare();
        self.world.disk.heal();
        if lost || self.below(2) == 0 {
            self.restart();
        }
        if lost && self.collection.position() > self.model.position {
            self.model.write(&events, None, true);
        }
        format!("write of {} with {what}: {answer:?}", events.len())
    }

    /// A flush or merge while the disk fails, and perhaps a crash right then.
    fn failing_maintenance(&mut self) -> String {
        let what = self.inject("/t/c");
        let result = match self.below(3) {
            0 => self.collection.flush(),
            1 => self.collection.maintain_memory(true).map(|_| ()),
            _ => self.collection.maintain_segments().map(|_| ()),
        };
        self.compare();
        self.world.disk.heal();
        if self.collection.stats().refuses.is_some() || self.below(2) == 0 {
            self.restart();
        }
        format!("maintenance with {what}: {result:?}")
    }

    fn crash(&mut self) -> String {
        self.restart();
        "crash".to_owned()
    }

    fn restart(&mut self) {
        let tear = self.below(2) == 0;
        self.world.disk.crash(if tear { CrashStyle::Tear(&self.random) } else { CrashStyle::Lose });
        self.store = None;
        let (store, collection) = self.world.with_collection(self.role);
        assert_eq!(store.problems(), []);
        self.store = Some(store);
        self.collection = collection;
    }

    fn compare(&self) {
        let snapshot = self.collection.snapshot();
        assert_eq!(snapshot.seq, Seq::end_of(self.model.position));
        let expected = self.model.content(snapshot.seq);
        let found = content(&snapshot);
        assert_eq!(found.len(), expected.len());
        assert_eq!(found, expected);
        assert_eq!(self.collection.stats().events, expected.len() as u64);
        if let Some((id, seq, _)) = expected.get(self.below(expected.len().max(1) as u64) as usize) {
            let (part, row) = snapshot.find(id).unwrap().expect("an event is not found by its id");
            assert_eq!(part.seqs(row..row + 1).unwrap(), [*seq]);
        }
        assert!(snapshot.find("nobody").unwrap().is_none());
        assert!(snapshot.parts.iter().filter(|p| p.in_memory()).count() <= 50);
    }
}

fn run(seed: u64, steps: usize) {
    let mut run = Run::new(seed);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..steps {
            run.step();
        }
        assert_eq!(run.store.as_ref().unwrap().check(), []);
    }));
    if let Err(panic) = result {
        eprintln!("seed {} failed after:", run.seed);
        run.trace.iter().enumerate().for_each(|(i, what)| eprintln!("{i:4} {what}"));
        std::panic::resume_unwind(panic);
    }
}

/// Seeds to run: `SEEDS=from..to` overrides.
fn seeds() -> std::ops::Range<u64> {
    let parse = |text: String| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    std::env::var("SEEDS").ok().and_then(parse).unwrap_or(0..40)
}

#[test]
fn random_schedules_agree_with_the_model() {
    for seed in seeds() {
        run(seed, 80);
    }
}

#[test]
fn one_seed_gives_one_run() {
    let files = |seed| {
        let mut run = Run::new(seed);
        (0..60).for_each(|_| run.step());
        (run.trace, run.world.disk.files(), run.world.disk.syncs())
    };
    assert_eq!(files(3), files(3));
    assert_ne!(files(3), files(4));
}
