//! Retention by age and by size, compared with the naive model.

use crate::model::{Change, Expected, Model};
use crate::world::{DAY, Event, START, World, batch, content, schema};
use meridian_model::{IdRole, Seq};
use meridian_store::seams::{CrashStyle, Random, SeededRandom};
use meridian_store::{Collection, Settings, Snapshot, Store, Write, WriteError};
use std::sync::Arc;
use std::time::Duration;

const YEAR: i64 = 365 * DAY;

fn days(n: u64) -> Duration {
    Duration::from_secs(n * 86_400)
}

struct Run {
    random: SeededRandom,
    world: World,
    store: Option<Store>,
    collection: Arc<Collection>,
    model: Model,
    settings: Settings,
    next_n: i64,
    /// Snapshots taken, and when they were last used, by the monotonic clock.
    tokens: Vec<(Seq, i64)>,
    elapsed: i64,
    expired: u64,
}

impl Run {
    fn new(seed: u64, settings: Settings) -> Run {
        let random = SeededRandom::new(seed);
        let mut world = World::new();
        world.options.segment_rows_min = 1 << (random.next_u64() % 8);
        let role = if random.next_u64().is_multiple_of(2) { IdRole::Given } else { IdRole::Made };
        let store = world.open();
        let collection = store.create("t", "c", schema(role), settings.clone()).unwrap();
        let model = Model::new(role);
        let (tokens, store) = (Vec::new(), Some(store));
        Run { random, world, store, collection, model, settings, next_n: 0, tokens, elapsed: 0, expired: 0 }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn now(&self) -> i64 {
        use meridian_store::seams::Clock;
        self.world.clock.now()
    }

    fn step(&mut self) {
        match self.below(100) {
            0..=34 => self.write(),
            35..=39 => self.delete(),
            40..=47 => self.collection.flush().unwrap(),
            48..=53 => drop(self.collection.maintain_memory(false).unwrap()),
            54..=63 => drop(self.collection.maintain_segments().unwrap()),
            64..=75 => self.expire(),
            76..=83 => self.pass((self.below(30) as i64 - 4) * DAY, self.below(200) as i64),
            84..=87 => self.tokens.push((self.collection.snapshot().seq, self.elapsed)),
            88..=93 => self.come_back(),
            _ => self.crash(),
        }
        self.compare();
    }

    /// Lets time pass, and sets the wall clock forward or back.
    fn pass(&mut self, jump: i64, seconds: i64) {
        self.world.clock.advance(seconds * 1_000_000);
        self.elapsed += seconds * 1_000_000;
        self.world.clock.set_by(jump);
    }

    fn write(&mut self) {
        let count = if self.below(10) == 0 { 3000 } else { 1 + self.below(60) };
        let events: Vec<Event> = (0..count)
            .map(|_| {
                self.next_n += 1;
                let age = match self.below(10) {
                    // Late events, some of them already past the retention.
                    0 => self.below(400) as i64 * DAY,
                    _ => self.below(20) as i64 * DAY / 10,
                };
                Event { time: self.now() - age - self.next_n, ..Event::new(format!("id-{}", self.next_n), self.next_n) }
            })
            .collect();
        let written = self.collection.write(Write::new(batch(&self.collection.schema(), &events))).unwrap();
        let expected = self.model.apply(&Change::Write { events, key: None, replace: false, time: 0 });
        assert_eq!(expected, Expected::Written { written: count, replaced: 0, position: written.position });
    }

    fn delete(&mut self) {
        let alive = self.model.alive();
        let ids: Vec<String> = (0..self.below(9).min(alive.len() as u64))
            .map(|_| alive[self.below(alive.len() as u64) as usize].clone())
            .collect();
        let got = self.collection.delete(&ids).unwrap();
        let expected = self.model.apply(&Change::DeleteIds(ids));
        assert_eq!(expected, Expected::Deleted { deleted: got.deleted, position: got.position });
    }

    fn expire(&mut self) {
        let Some(expired) = self.collection.expire().unwrap() else {
            // By age nothing is left to expire; by size the live events fit, or cannot be cut further.
            if let (Some(age), None) = (self.settings.retention, self.settings.retention_bytes) {
                let before = self.now() - age.as_micros() as i64;
                assert_eq!(self.model.ended_before(before), 0);
            }
            return;
        };
        if let Some(age) = self.settings.retention {
            assert!(expired.before >= self.now() - age.as_micros() as i64);
        }
        let expected = self.model.apply(&Change::Expire(expired.before));
        assert_eq!(expected, Expected::Deleted { deleted: expired.expired, position: expired.position });
        assert!(expired.expired > 0);
        self.expired += expired.expired;
    }

    /// Checks that a snapshot stays for five minutes after its last use, including expired events.
    fn come_back(&mut self) {
        if self.tokens.is_empty() {
            return;
        }
        let at = self.below(self.tokens.len() as u64) as usize;
        let (seq, used) = self.tokens[at];
        match self.collection.snapshot_at(seq) {
            Ok(snapshot) => {
                assert_eq!(content(&snapshot), self.model.content(seq));
                self.tokens[at].1 = self.elapsed;
            }
            Err(_) => {
                assert!(self.elapsed - used > 300_000_000, "gone {} us after its use", self.elapsed - used);
                self.tokens.remove(at);
            }
        }
    }

    fn crash(&mut self) {
        let tear = self.below(2) == 0;
        self.world.disk.crash(if tear { CrashStyle::Tear(&self.random) } else { CrashStyle::Lose });
        self.store = None;
        let store = self.world.open();
        assert_eq!(store.problems(), []);
        self.collection = store.collection("t", "c").unwrap();
        assert_eq!(self.collection.settings(), self.settings);
        self.store = Some(store);
    }

    fn compare(&self) {
        let snapshot = self.collection.snapshot();
        assert_eq!(snapshot.seq, Seq::end_of(self.model.position));
        let expected = self.model.content(snapshot.seq);
        assert_eq!(content(&snapshot), expected);
        assert_eq!(self.collection.stats().events, expected.len() as u64);
    }
}

fn run(settings: &Settings) {
    let mut expired = 0;
    for seed in 0..12 {
        let mut run = Run::new(seed, settings.clone());
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..80).for_each(|_| run.step());
            assert_eq!(run.store.as_ref().unwrap().check(), []);
        }));
        if let Err(panic) = result {
            eprintln!("seed {seed} with {settings:?} failed");
            std::panic::resume_unwind(panic);
        }
        expired += run.expired;
    }
    assert!(expired > 1000, "only {expired} events were let go");
}

#[test]
fn events_go_by_age() {
    run(&Settings { retention: Some(days(30)), ..Settings::default() });
}

#[test]
fn events_go_by_size() {
    run(&Settings { retention_bytes: Some(200 << 10), ..Settings::default() });
}

#[test]
fn events_of_an_ephemeral_collection_go_too() {
    let world = World::new();
    let store = world.open();
    let durability = meridian_store::Durability::Ephemeral;
    let settings = Settings { durability, retention: Some(days(30)), ..Settings::default() };
    let c = store.create("t", "c", schema(IdRole::Made), settings).unwrap();
    let events: Vec<Event> = (0..1000).map(|n| Event { time: START - n * DAY / 10, ..Event::new("", n) }).collect();
    c.write(Write::new(batch(&c.schema(), &events))).unwrap();
    c.maintain().unwrap();
    // Events of exactly thirty days are kept.
    assert_eq!((c.stats().events, c.stats().expired), (301, 699));
    world.clock.advance(10 * DAY);
    c.maintain().unwrap();
    assert_eq!(c.stats().events, 201);
    // Rows that no snapshot needs any more leave memory, once they are a third.
    world.clock.advance(DAY);
    c.maintain().unwrap();
    assert_eq!((c.stats().events, c.stats().memory_rows), (191, 201));
}

fn files(world: &World) -> usize {
    world.files(".segment").len()
}

/// Segments whose events are all past the retention are dropped as files, without being read.
#[test]
fn whole_segments_are_dropped_unread() {
    let world = World::new();
    let store = world.open();
    let settings = Settings { retention: Some(days(3 * 365)), ..Settings::default() };
    let c = store.create("t", "c", schema(IdRole::Given), settings).unwrap();
    for year in 0..2 {
        // Two years in two runs far apart.
        let events: Vec<Event> = (0..2000)
            .map(|n| Event { time: START - year * 2 * YEAR - n, ..Event::new(format!("{year}-{n}"), n) })
            .collect();
        c.write(Write::new(batch(&c.schema(), &events))).unwrap();
        c.flush().unwrap();
    }
    let before = files(&world);
    assert_eq!(before, 2);
    world.clock.advance(YEAR + DAY);
    let (read, old) = (c.stats().bytes_read, c.snapshot());
    let expired = c.expire().unwrap().unwrap();
    assert_eq!((expired.expired, c.stats().events), (2000, 2000));
    assert_eq!(rows(&c.snapshot()), 2000, "a part that shows nothing is left out of snapshots");
    assert_eq!(rows(&old), 4000);
    // An open snapshot keeps the file; then the file is removed.
    c.maintain().unwrap();
    assert_eq!((files(&world), content(&c.snapshot_at(old.seq).unwrap()).len()), (2, 4000));
    let read = c.stats().bytes_read - read;
    drop(old);
    world.clock.advance(400_000_000);
    c.maintain().unwrap();
    assert_eq!(files(&world), 1);
    assert!(read > 0);
    assert_eq!(store.check(), []);
    // Ids of removed events are free again.
    let again = Event { time: START + YEAR, ..Event::new("1-0", 0) };
    c.write(Write::new(batch(&c.schema(), &[again]))).unwrap();
    let there = Event { time: START + YEAR, ..Event::new("0-0", 0) };
    let refused = c.write(Write::new(batch(&c.schema(), &[there])));
    assert!(matches!(refused, Err(WriteError::Conflict { .. })), "{refused:?}");
}

fn rows(snapshot: &Snapshot) -> u64 {
    snapshot.rows()
}

#[test]
fn a_retention_by_size_keeps_the_newest() {
    let world = World::new();
    let store = world.open();
    let c = store.create("t", "c", schema(IdRole::Made), Settings::default()).unwrap();
    for round in 0..20 {
        let events: Vec<Event> = (0..500)
            .map(|n| Event { time: START + (round * 500 + n) * DAY / 100, ..Event::new("", round * 500 + n) })
            .collect();
        c.write(Write::new(batch(&c.schema(), &events))).unwrap();
        c.flush().unwrap();
    }
    c.maintain().unwrap();
    let half = c.stats().bytes / 2;
    c.set_settings(Settings { retention_bytes: Some(half), ..Settings::default() }).unwrap();
    c.maintain().unwrap();
    let kept = c.stats().events;
    assert!((4000..=6000).contains(&kept), "{kept} of 10000 in half the bytes");
    let least = content(&c.snapshot()).iter().map(|(_, _, n)| *n).min().unwrap();
    assert_eq!(least as u64, 10_000 - kept, "the newest stay");
    world.clock.advance(400_000_000);
    c.maintain().unwrap();
    assert!(c.stats().bytes <= half + half / 2, "{} bytes on disk of {half} allowed", c.stats().bytes);
    assert_eq!(c.stats().events, kept);
}

#[test]
fn a_retention_needs_a_time() {
    let world = World::new();
    let store = world.open();
    let timeless = || {
        let mut schema = schema(IdRole::Made);
        schema.time = meridian_model::TimeRole::None;
        schema
    };
    let settings = Settings { retention: Some(days(1)), ..Settings::default() };
    let refused = store.create("t", "c", timeless(), settings.clone()).unwrap_err().to_string();
    assert!(refused.contains("retention") && refused.contains("no time"), "{refused}");
    let c = store.create("t", "c", timeless(), Settings::default()).unwrap();
    assert!(c.set_settings(settings).is_err());
    let by_size = Settings { retention_bytes: Some(1), ..Settings::default() };
    assert!(c.set_settings(by_size).unwrap_err().to_string().contains("retention_bytes"));
}

#[test]
fn what_a_retention_would_remove_is_counted_before_it_is_set() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Made);
    let event = |age: i64| Event { time: START - age * DAY, ..Event::new(String::new(), age) };
    let events: Vec<Event> = (0..100).map(event).collect();
    // In segments and in memory.
    c.write(Write::new(batch(&c.schema(), &events[..70]))).unwrap();
    c.flush().unwrap();
    c.write(Write::new(batch(&c.schema(), &events[70..]))).unwrap();
    let age = |days: u64| Settings { retention: Some(self::days(days)), ..Settings::default() };
    let removed = |settings: &Settings| c.removed_by(settings).unwrap();
    assert_eq!(
        (removed(&Settings::default()), removed(&age(200)), removed(&age(30)), removed(&age(10))),
        (0, 0, 69, 89)
    );
    c.set_settings(age(30)).unwrap();
    // Only additional expiries count: the others expire anyway.
    assert_eq!((removed(&age(30)), removed(&age(60)), removed(&age(10))), (0, 0, 20));
    assert_eq!(c.expire().unwrap().unwrap().expired, 69);
    assert_eq!(removed(&age(10)), 20);
    let bytes = Settings { retention_bytes: Some(1), ..age(30) };
    let count = removed(&bytes);
    assert!((1..=31).contains(&count), "{count}");
    c.set_settings(bytes).unwrap();
    assert_eq!(c.expire().unwrap().unwrap().expired, count);
}
