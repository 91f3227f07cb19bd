//! Sequential bucket reads that a query waits for. They are few if no segment is open, and none if everything is in
//! memory.
//!
//! A call to the bucket counts once, however many ranges it reads: these are read concurrently. The calls are made by
//! one thread, so each of them waits for the previous one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use meridian_model::builder::Value;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{
    BatchBuilder, Field, FieldType, GeometryType, IdRole, Interval, Layout, Projection, Schema, TimeRole,
};
use meridian_query::near::{Circle, Walk};
use meridian_query::{Aggregate, CancelFlag, Control, Function, Items, Order, Tile, aggregate, items, tile};
use meridian_store::bucket::{Bucket, MemoryBucket, Put, Span, Upload};
use meridian_store::seams::{ManualClock, MemoryDisk, Seams, SeededRandom};
use meridian_store::{Options, Settings, Snapshot, Store, Write};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HOUR: i64 = 3_600_000_000;
const START: i64 = 1_700_000_000_000_000;
/// Events of each segment: its files have several extents.
const EVENTS: i64 = 60_000;

/// Counts the read calls.
#[derive(Debug, Clone)]
struct Counting {
    inner: MemoryBucket,
    calls: Arc<AtomicU64>,
}

impl Counting {
    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls since the last time.
    fn taken(&self) -> u64 {
        self.calls.swap(0, Ordering::Relaxed)
    }
}

impl Bucket for Counting {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        self.inner.put(name, bytes)
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.inner.upload(name)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.count();
        self.inner.get(name)
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.count();
        self.inner.get_range(name, offset, into)
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        self.count();
        self.inner.get_ranges(wanted)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.count();
        self.inner.len(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.count();
        self.inner.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.inner.delete(name)
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

fn seams(seed: u64) -> Seams {
    Seams {
        disk: Arc::new(MemoryDisk::new()),
        clock: Arc::new(ManualClock::new(START)),
        random: Arc::new(SeededRandom::new(seed)),
    }
}

fn options() -> Options {
    Options { background: false, ..Options::at("/data") }
}

fn reader(bucket: &Counting, options: Options) -> Store {
    Store::open_read_only(options, seams(9), Arc::new(bucket.clone())).unwrap()
}

/// Room for everything, or for so little that the data of one step is evicted by the next.
fn room(ample: bool) -> Options {
    match ample {
        true => Options { extent_memory: 256 << 20, extent_disk: 256 << 20, tree_bytes: Some(64 << 20), ..options() },
        false => {
            Options { extent_memory: 2 << 20, extent_disk: 3 << 20, tree_bytes: Some(1), cache_bytes: 1, ..options() }
        }
    }
}

fn schema(id: IdRole) -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![
            field("at", FieldType::Time, true),
            field("n", FieldType::Int, false),
            field("name", FieldType::Text, false),
        ],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id,
        ..Schema::default()
    }
}

/// A bucket with segments of one day each, and the owner's snapshot.
fn filled(id: IdRole) -> (MemoryBucket, Snapshot) {
    let bucket = MemoryBucket::new();
    let store = Store::open_shared(options(), seams(1), Arc::new(bucket.clone())).unwrap();
    let collection = store.create("t", "c", schema(id), Settings::default()).unwrap();
    for day in 0..3 {
        let mut builder = BatchBuilder::new(collection.schema());
        for i in 0..EVENTS {
            // Scattered, and identical in each run.
            let n = (i * 7919 + day * 104_729) % 1_000_003;
            if id == IdRole::Given {
                builder.set_id(format!("e{day}-{i}")).unwrap();
            }
            builder.set_point((n % 3600) as f64 / 10.0 - 180.0, (n / 3600 % 1700) as f64 / 10.0 - 14.0).unwrap();
            builder.set(0, Value::Time(START + day * 24 * HOUR + i * 24 * HOUR / EVENTS)).unwrap();
            builder.set(1, Value::Int(n)).unwrap();
            builder.set(2, Value::Text(format!("the name of event {n} is long and {}", n * 31 % 977))).unwrap();
            builder.end_event().unwrap();
        }
        collection.write(Write::new(builder.finish().unwrap())).unwrap();
        collection.flush().unwrap();
    }
    let snapshot = collection.snapshot();
    assert!(snapshot.parts.len() >= 3 && snapshot.parts.iter().all(|part| !part.in_memory()));
    (bucket, snapshot)
}

fn control() -> Control {
    Control::new(Arc::new(ManualClock::new(START)), Duration::from_secs(60), CancelFlag::new())
}

type Ask = Box<dyn Fn(&Snapshot) -> String>;

/// Small queries of each kind; results as text.
fn questions(snapshot: &Snapshot, id: IdRole) -> Vec<(&'static str, Ask)> {
    let schema = snapshot.schema.clone();
    let bound = |text: &str| Predicate::bind(&parse_text(text).unwrap(), &schema).unwrap();
    let hours =
        |from: i64, to: i64| Predicate::interval(Interval { start: START + from * HOUR, end: START + to * HOUR });
    let list = |predicate: Predicate, order: Order| -> Ask {
        Box::new(move |snapshot| {
            let projection = Projection::all(&Layout::of(&snapshot.schema));
            let question = Items {
                predicate: predicate.clone(),
                order: order.clone(),
                limit: Some(20),
                after: None,
                until: None,
                projection,
            };
            let mut found = Vec::new();
            for hits in items(snapshot, &question, &control()).unwrap() {
                let hits = hits.unwrap();
                found.extend((0..hits.batch.rows()).map(|row| hits.batch.id_of(row, hits.seqs[row])));
            }
            format!("{found:?}")
        })
    };
    let count = |predicate: Predicate| -> Ask {
        Box::new(move |snapshot| {
            let (predicate, functions) = (predicate.clone(), vec![Function::Max(1)]);
            let question = Aggregate { predicate, functions, windows: None, by: Vec::new(), empty: false };
            format!("{:?}", aggregate(snapshot, &question, &control()).unwrap().groups)
        })
    };
    let near: Ask = Box::new(|snapshot| {
        let circle = Circle::new(11.0, 6.0, 100_000.0);
        let snapshot = snapshot.open_within(&circle.bounds()).unwrap();
        let (total, hits) = Walk::new(&snapshot, circle).finish(&snapshot, 10).unwrap();
        format!("{total} {:?}", hits.iter().map(|hit| hit.distance_m).collect::<Vec<_>>())
    });
    let map: Ask = Box::new(|snapshot| {
        let (predicate, layer) = (Predicate::all(), "c".to_owned());
        let question = Tile { predicate, z: 1, row: 0, column: 1, layer, fields: None, density: true, average: None };
        format!("{:?}", tile(snapshot, &question, &control()).unwrap().bytes)
    });
    let one = match id {
        IdRole::Given => "e1-777".to_owned(),
        IdRole::Made => {
            let seq = snapshot.parts[1].seqs(77..78).unwrap()[0];
            meridian_model::Seq(seq).to_id()
        }
    };
    let by_id = one.clone();
    let find: Ask = Box::new(move |snapshot| {
        let (part, row) = snapshot.find(&by_id).unwrap().unwrap();
        format!("{:?}", part.read(row..row + 1, &Projection::all(&snapshot.layout)).unwrap().points())
    });
    let place = Predicate::bbox(10.0, 5.0, 12.0, 7.0);
    vec![
        ("items of a small box", list(place.clone(), Order::Natural)),
        ("items of a box and a time", list(Predicate::and(vec![place.clone(), hours(30, 34)]), Order::Natural)),
        ("items nearest first", list(place.clone(), Order::Near { lon: 11.0, lat: 6.0, k: None })),
        ("items by id", list(bound(&format!("id = '{one}'")), Order::Natural)),
        ("an event by id", find),
        ("items by a property", list(Predicate::and(vec![place, bound("n > 720000")]), Order::Natural)),
        ("a count over all", count(Predicate::all())),
        ("a count over hours", count(hours(20, 26))),
        ("places nearby", near),
        ("a map tile", map),
    ]
}

#[test]
fn a_cold_small_question_waits_for_at_most_four_reads_and_a_warm_one_for_none() {
    for id in [IdRole::Given, IdRole::Made] {
        let (bucket, owner) = filled(id);
        let bucket = Counting { inner: bucket, calls: Arc::default() };
        for (what, ask) in questions(&owner, id) {
            let wanted = ask(&owner);
            assert_ne!(wanted, "[]", "{what} finds nothing");
            let reader = reader(&bucket, room(true));
            let begun = bucket.taken();
            let snapshot = reader.collection("t", "c").unwrap().snapshot();
            assert_eq!(ask(&snapshot), wanted, "{what}");
            let cold = bucket.taken();
            assert_eq!(ask(&snapshot), wanted, "{what}");
            let warm = bucket.taken();
            println!("{id:?}: {what}: {cold} cold, {warm} warm; {begun} to find the collection and its manifest");
            assert!(cold <= 4, "{what} waits for {cold} reads");
            assert_eq!(warm, 0, "{what}");
            assert!(begun <= 60, "a reader waits for {begun} reads before it knows the manifest");
        }
    }
}

#[test]
fn answers_are_the_same_with_hardly_any_room() {
    let (bucket, owner) = filled(IdRole::Given);
    let bucket = Counting { inner: bucket, calls: Arc::default() };
    let reader = reader(&bucket, room(false));
    let snapshot = reader.collection("t", "c").unwrap().snapshot();
    for _ in 0..2 {
        for (what, ask) in questions(&owner, IdRole::Given) {
            // Segments that no query uses are closed.
            reader.refresh().unwrap();
            assert_eq!(ask(&snapshot), ask(&owner), "{what}");
        }
    }
    assert!(reader.trees().evicted > 0);
}
