//! A store over a disk in memory, or over a bucket, and events for it.

use meridian_model::builder::Value;
use meridian_model::{Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Projection, Schema, Seq, TimeRole};
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{Clock, ManualClock, MemoryDisk, Seams, SeededRandom};
use meridian_store::{Collection, Options, PartView, Settings, Snapshot, Store, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const DAY: i64 = 86_400_000_000;
pub const START: i64 = 1_700_000_000_000_000;

/// One event, as used by the tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub n: i64,
    pub time: i64,
    pub place: Option<(f64, f64)>,
}

impl Event {
    pub fn new(id: impl Into<String>, n: i64) -> Event {
        // Spread over the world and over two years by the number.
        let h = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let lon = (h % 36_000) as f64 / 100.0 - 180.0;
        let lat = (h / 36_000 % 18_000) as f64 / 100.0 - 90.0;
        let time = START + (h >> 40) as i64 % 730 * DAY + n % 1000;
        Event { id: id.into(), n, time, place: (n % 13 != 0).then_some((lon, lat)) }
    }
}

pub fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

pub fn schema(id: IdRole) -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![
            field("at", FieldType::Time, true),
            field("n", FieldType::Int, false),
            field("x", FieldType::Float, false),
            field("name", FieldType::Text, false),
        ],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id,
        ..Schema::default()
    }
}

pub fn batch(schema: &Arc<Schema>, events: &[Event]) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for event in events {
        builder.set_id(event.id.as_str()).unwrap();
        if let Some((lon, lat)) = event.place {
            builder.set_point(lon, lat).unwrap();
        }
        builder.set(0, Value::Time(event.time)).unwrap();
        builder.set(1, Value::Int(event.n)).unwrap();
        if event.n % 5 != 0 {
            builder.set(2, Value::Float(event.n as f64 / 7.0)).unwrap();
        }
        builder.set(3, Value::Text(format!("name of {}", event.n))).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

pub fn options() -> Options {
    Options {
        background: false,
        log_file_bytes: 16 << 10,
        segment_rows_min: 64,
        segment_rows_max: 8192,
        cache_bytes: 1 << 20,
        ..Options::at("/data")
    }
}

/// A disk, a clock, and the options to open a store with.
pub struct World {
    pub disk: MemoryDisk,
    pub clock: Arc<ManualClock>,
    pub options: Options,
    /// Bucket that holds the collections, if not the disk.
    pub bucket: Option<MemoryBucket>,
    /// Number of processes so far.
    pub processes: AtomicU64,
}

impl World {
    pub fn new() -> World {
        let clock = Arc::new(ManualClock::new(START));
        World { disk: MemoryDisk::new(), clock, options: options(), bucket: None, processes: AtomicU64::new(0) }
    }

    /// Creates the same over a bucket.
    pub fn over_bucket() -> World {
        World { bucket: Some(MemoryBucket::new()), ..World::new() }
    }

    /// Returns one of each kind: the store behaves alike over both.
    pub fn each() -> [World; 2] {
        [World::new(), World::over_bucket()]
    }

    /// Returns one kind or the other.
    pub fn of_seed(seed: u64) -> World {
        if seed.is_multiple_of(2) { World::new() } else { World::over_bucket() }
    }

    pub fn seams(&self) -> Seams {
        Seams {
            disk: Arc::new(self.disk.clone()),
            clock: self.clock.clone() as Arc<dyn Clock>,
            random: Arc::new(SeededRandom::new(7)),
        }
    }

    pub fn open(&self) -> Store {
        let Some(bucket) = &self.bucket else { return Store::open(self.options.clone(), self.seams()).unwrap() };
        // No two processes draw the same random numbers.
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        let seams = Seams { random: Arc::new(SeededRandom::new(7 + process * 1_000_003)), ..self.seams() };
        let store = Store::open_shared(self.options.clone(), seams, Arc::new(bucket.clone())).unwrap();
        assert_eq!(store.problems(), []);
        store
    }

    /// Opens a store with one collection, created if it does not exist.
    pub fn with_collection(&self, id: IdRole) -> (Store, Arc<Collection>) {
        let store = self.open();
        let collection = match store.collection("t", "c") {
            Some(collection) => collection,
            None => store.create("t", "c", schema(id), Settings::default()).unwrap(),
        };
        (store, collection)
    }

    /// Returns the files whose path contains this text.
    pub fn files(&self, text: &str) -> Vec<(PathBuf, u64)> {
        let files = self.disk.files();
        files.into_iter().filter(|(path, _)| path.to_string_lossy().contains(text)).collect()
    }
}

/// Returns the content of a snapshot, as (id, number, n), sorted; reads every part in full and checks it.
pub fn content(snapshot: &Snapshot) -> Vec<(String, u64, i64)> {
    let (found, errors) = readable(snapshot);
    assert!(errors.is_empty(), "{errors:?}");
    found
}

/// Returns the readable part of the same, and the errors of the parts that are unreadable.
pub fn readable(snapshot: &Snapshot) -> (Vec<(String, u64, i64)>, Vec<StoreError>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for part in snapshot.parts.iter() {
        errors.extend(read_part(snapshot, part, &mut found).err());
    }
    found.sort();
    (found, errors)
}

fn read_part(snapshot: &Snapshot, part: &PartView, found: &mut Vec<(String, u64, i64)>) -> Result<(), StoreError> {
    let rows = 0..part.rows();
    let batch = part.read(rows.clone(), &Projection::all(&snapshot.layout))?;
    let seqs = part.seqs(rows.clone())?;
    let visible = part.visible(rows.clone())?;
    assert_eq!(part.trees().last().map_or(0, |t| t.all_rows().end), part.rows());
    if part.all_visible(rows.clone()) {
        assert_eq!(visible.count_set_bits(), rows.len());
    }
    let Some(meridian_model::FieldColumn::Int(n)) = batch.field(1) else { panic!("n was not read") };
    for (row, seq) in seqs.iter().copied().enumerate() {
        if visible.value(row) {
            found.push((batch.id_of(row, Seq(seq)), seq, n.value(row)));
        }
    }
    if let Some(order) = part.time_order() {
        let times = order.read(rows.clone(), &Projection::all(part.layout()))?;
        assert_eq!(times.rows(), rows.len());
        let instants: Vec<i64> = (0..rows.len()).map(|row| times.interval(row).0).collect();
        assert!(instants.is_sorted());
        for (place, row) in order.rows(rows.clone())?.values().iter().enumerate() {
            assert_eq!(instants[place], batch.interval(*row as usize).0);
        }
    }
    Ok(())
}
