//! Mode `latest` against a naive model: late events, equal times, replacements, deletions, expiry, merges, crashes.

use crate::world::{DAY, World};
use meridian_model::builder::Value;
use meridian_model::{
    Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Mode, Projection, Schema, Seq, TimeRole,
};
use meridian_store::seams::{Clock, CrashStyle, Random, SeededRandom};
use meridian_store::{Collection, Settings, Snapshot, Store, Write};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
struct Event {
    id: String,
    ship: Option<u64>,
    time: i64,
    seq: u64,
    death: Option<u64>,
}

fn schema(role: IdRole, kind: FieldType) -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![field("at", FieldType::Time, true), field("ship", kind, false), field("n", FieldType::Int, true)],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id: role,
        object: Some(1),
        mode: Mode::Latest,
        ..Schema::default()
    }
}

fn batch(schema: &Arc<Schema>, events: &[Event]) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for (n, event) in events.iter().enumerate() {
        builder.set_id(event.id.as_str()).unwrap();
        builder.set_point((event.time / 7_000_000 % 360) as f64 - 180.0, 5.0).unwrap();
        builder.set(0, Value::Time(event.time)).unwrap();
        match (event.ship, schema.fields[1].kind) {
            (None, _) => {}
            (Some(ship), FieldType::Int) => builder.set(1, Value::Int(ship as i64)).unwrap(),
            (Some(ship), _) => builder.set(1, Value::Text(format!("ship {ship}"))).unwrap(),
        }
        builder.set(2, Value::Int(n as i64)).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// Returns the numbers of the events that a snapshot shows, in order; queries every part in all the ways that readers
/// do.
fn shown(snapshot: &Snapshot) -> Vec<u64> {
    let mut found = Vec::new();
    for part in snapshot.parts.iter() {
        let rows = 0..part.rows();
        let (seqs, visible) = (part.seqs(rows.clone()).unwrap(), part.visible(rows.clone()).unwrap());
        assert!(!part.all_visible(rows.clone()) || visible.count_set_bits() == rows.len());
        if part.none_newer(rows.clone()) {
            assert_eq!(part.dead_rows(rows.clone()).count(), rows.len() - visible.count_set_bits());
        }
        found.extend(seqs.iter().enumerate().filter(|(row, _)| visible.value(*row)).map(|(_, seq)| *seq));
    }
    found.sort_unstable();
    found
}

struct Run {
    random: SeededRandom,
    world: World,
    store: Option<Store>,
    collection: Arc<Collection>,
    role: IdRole,
    events: Vec<Event>,
    position: u64,
    next: u64,
    tokens: Vec<(Seq, i64)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let random = SeededRandom::new(seed);
        let mut world = World::of_seed(seed);
        world.options.segment_rows_min = 1 << (random.next_u64() % 8);
        let role = if random.next_u64().is_multiple_of(2) { IdRole::Given } else { IdRole::Made };
        let kind = if random.next_u64().is_multiple_of(2) { FieldType::Int } else { FieldType::Text };
        let store = world.open();
        let settings = Settings { retention: Some(Duration::from_secs(40 * 86_400)), ..Settings::default() };
        let collection = store.create("t", "c", schema(role, kind), settings).unwrap();
        let (events, tokens, store) = (Vec::new(), Vec::new(), Some(store));
        Run { random, world, store, collection, role, events, position: 0, next: 0, tokens }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn step(&mut self) {
        match self.below(100) {
            0..=44 => self.write(),
            45..=56 => self.delete(),
            57..=63 => self.collection.flush().unwrap(),
            64..=69 => drop(self.collection.maintain_memory(false).unwrap()),
            70..=79 => drop(self.collection.maintain_segments().unwrap()),
            80..=82 => self.expire(),
            83..=86 => self.world.clock.advance(self.below(400) as i64 * 1_000_000),
            87 => self.world.clock.set_by(self.below(10) as i64 * DAY),
            88..=90 => self.tokens.push((self.collection.snapshot().seq, self.world.clock.elapsed())),
            91..=95 => self.come_back(),
            _ => self.crash(),
        }
        self.compare(self.collection.snapshot(), self.collection.history());
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.events.len()).filter(|i| self.events[*i].death.is_none()).collect()
    }

    fn write(&mut self) {
        let count = if self.below(12) == 0 { 2000 } else { 1 + self.below(30) };
        let replace = self.role == IdRole::Given && self.below(3) == 0;
        let alive = self.alive();
        let now = self.world.clock.now();
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..count {
            self.next += 1;
            let mut id = format!("id-{}", self.next);
            if replace && !alive.is_empty() && self.below(2) == 0 {
                id = self.events[alive[self.below(alive.len() as u64) as usize]].id.clone();
            }
            if events.iter().any(|e| e.id == id) {
                continue;
            }
            // Few distinct times, so that many are equal, and many are late.
            let time = now - self.below(50) as i64 * DAY;
            let ship = (self.below(20) > 0).then(|| self.below(25));
            events.push(Event { id, ship, time, seq: 0, death: None });
        }
        let write = Write::new(batch(&self.collection.schema(), &events));
        let written = self.collection.write(if replace { write.replacing() } else { write }).unwrap();
        self.position += 1;
        assert_eq!(written.position, self.position);
        for (ordinal, mut event) in events.into_iter().enumerate() {
            event.seq = Seq::new(self.position, ordinal).0;
            match self.role {
                IdRole::Made => event.id = Seq(event.seq).to_id(),
                IdRole::Given => {
                    for old in self.events.iter_mut().filter(|e| e.id == event.id && e.death.is_none()) {
                        old.death = Some(event.seq);
                    }
                }
            }
            self.events.push(event);
        }
    }

    fn delete(&mut self) {
        let (alive, shown) = (self.alive(), self.model(Seq::end_of(self.position), Mode::Latest));
        let mut ids = Vec::new();
        for _ in 0..self.below(12).min(alive.len() as u64) {
            // Half of them are the newest of their objects.
            let seq = match self.below(2) {
                0 => shown[self.below(shown.len() as u64) as usize],
                _ => self.events[alive[self.below(alive.len() as u64) as usize]].seq,
            };
            ids.extend(self.events.iter().find(|e| e.seq == seq).map(|e| e.id.clone()));
        }
        self.position += 1;
        let death = Some(Seq::new(self.position, 0).0);
        for event in self.events.iter_mut().filter(|e| e.death.is_none() && ids.contains(&e.id)) {
            event.death = death;
        }
        assert_eq!(self.collection.delete(&ids).unwrap().position, self.position);
    }

    fn expire(&mut self) {
        if let Some(expired) = self.collection.expire().unwrap() {
            self.position += 1;
            let death = Some(Seq::new(self.position, 0).0);
            for event in self.events.iter_mut().filter(|e| e.death.is_none() && e.time < expired.before) {
                event.death = death;
            }
        }
    }

    fn come_back(&mut self) {
        if self.tokens.is_empty() {
            return;
        }
        let at = self.below(self.tokens.len() as u64) as usize;
        let (seq, used) = self.tokens[at];
        match (self.collection.snapshot_at(seq), self.collection.history_at(seq)) {
            (Ok(latest), Ok(history)) => {
                self.compare(latest, history);
                self.tokens[at].1 = self.world.clock.elapsed();
            }
            _ => {
                assert!(self.world.clock.elapsed() - used > 300_000_000);
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
        self.store = Some(store);
    }

    /// Returns the numbers of the events that a snapshot should show.
    fn model(&self, seq: Seq, mode: Mode) -> Vec<u64> {
        let alive = self.events.iter().filter(|e| e.seq <= seq.0 && e.death.is_none_or(|death| death > seq.0));
        let mut newest: BTreeMap<u64, (i64, u64)> = BTreeMap::new();
        let mut found = Vec::new();
        for event in alive {
            match event.ship.filter(|_| mode == Mode::Latest) {
                None => found.push(event.seq),
                Some(ship) => {
                    let best = newest.entry(ship).or_insert((event.time, event.seq));
                    *best = (*best).max((event.time, event.seq));
                }
            }
        }
        found.extend(newest.values().map(|(_, seq)| *seq));
        found.sort_unstable();
        found
    }

    fn compare(&self, latest: Snapshot, history: Snapshot) {
        assert_eq!(latest.seq, history.seq);
        assert_eq!(shown(&history), self.model(history.seq, Mode::History));
        let expected = self.model(latest.seq, Mode::Latest);
        assert_eq!(shown(&latest), expected);
        if latest.seq == Seq::end_of(self.position) {
            assert_eq!(self.collection.stats().events, expected.len() as u64);
        }
    }
}

#[test]
fn the_newest_of_each_object_is_shown() {
    for seed in 0..25 {
        let mut run = Run::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..90).for_each(|_| run.step());
            assert_eq!(run.store.as_ref().unwrap().check(), []);
        }));
        if let Err(panic) = result {
            eprintln!("seed {seed} failed");
            std::panic::resume_unwind(panic);
        }
    }
}

/// The marks of a long history take little memory and disk space: most rows are hidden, at a bit each.
#[test]
fn a_long_history_hides_cheaply() {
    for world in World::each() {
        let store = world.open();
        let c = store.create("t", "c", schema(IdRole::Made, FieldType::Int), Settings::default()).unwrap();
        let mut n = 0;
        for _ in 0..20 {
            let events: Vec<Event> = (0..2000)
                .map(|i| {
                    n += 1;
                    Event { id: String::new(), ship: Some(i % 50), time: n * 1_000_000, seq: 0, death: None }
                })
                .collect();
            c.write(Write::new(batch(&c.schema(), &events))).unwrap();
            world.clock.advance(400_000_000);
            c.flush().unwrap();
        }
        c.maintain().unwrap();
        assert_eq!((c.stats().events, c.history().rows()), (50, 40_000));
        let hidden: u64 = world.files(".hidden").iter().map(|(_, bytes)| bytes).sum();
        assert!(hidden < 40_000 / 4, "{hidden} bytes say that 39,950 rows are hidden");
        // Parts without visible rows are left out, so queries do not read them.
        assert!(c.snapshot().rows() < 20_000, "{} rows to look at", c.snapshot().rows());
        let batch_rows = |s: &Snapshot| -> usize {
            s.parts.iter().map(|p| p.read(0..p.rows(), &Projection::all(&s.layout)).unwrap().rows()).sum()
        };
        assert_eq!(batch_rows(&c.history()), 40_000);
    }
}
