//! A small collection: tested by filters, queried, and a source of files to damage.

use meridian_model::builder::Value;
use meridian_model::{Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Schema, TimeRole};
use meridian_query::{CancelFlag, Control};
use meridian_store::seams::{ManualClock, MemoryDisk, Seams, SeededRandom, SystemClock};
use meridian_store::{Collection, Options, Settings, Snapshot, Store, StoreError, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Number of events of the collection.
pub const EVENTS: usize = 200;
/// Time of the first event, in microseconds since 1970.
const START: i64 = 1_700_000_000_000_000;

/// Fields of every type; ids are given, and there is an object field.
pub fn schema() -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![
            field("at", FieldType::Time, true),
            field("n", FieldType::Int, false),
            field("x", FieldType::Float, false),
            field("name", FieldType::Text, false),
            field("on", FieldType::Bool, false),
            field("tags", FieldType::TextList, false),
            field("ship", FieldType::Text, false),
        ],
        geometry: Some(GeometryType::Any),
        time: TimeRole::Instant(0),
        id: IdRole::Given,
        object: Some(6),
        ..Schema::default()
    }
}

/// `count` events from the `from`-th on.
pub fn events(from: usize, count: usize) -> Batch {
    let mut builder = BatchBuilder::new(Arc::new(schema()));
    for n in from..from + count {
        let (lon, lat) = ((n * 37 % 360) as f64 - 180.0, (n * 17 % 180) as f64 - 90.0);
        builder.set_id(format!("id-{n}")).unwrap();
        if n % 7 != 0 {
            builder.set_point(lon, lat).unwrap();
        }
        builder.set(0, Value::Time(START + n as i64 * 3_600_000_000)).unwrap();
        builder.set(1, Value::Int(n as i64)).unwrap();
        if n % 5 != 0 {
            builder.set(2, Value::Float(n as f64 / 7.0)).unwrap();
        }
        builder.set(3, Value::Text(format!("name of {n}"))).unwrap();
        builder.set(4, Value::Bool(n % 2 == 0)).unwrap();
        builder.set(6, Value::Text(format!("ship {}", n % 3))).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// Some of the events.
pub fn batch() -> &'static Batch {
    static BATCH: LazyLock<Batch> = LazyLock::new(|| events(0, 20));
    &BATCH
}

/// Options of a store without background work.
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

/// The disk, the clock and the randomness of a process.
pub fn seams(disk: &MemoryDisk, process: u64) -> Seams {
    Seams {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(START)),
        random: Arc::new(SeededRandom::new(process)),
    }
}

/// A store on an in-memory disk, without background work.
pub fn open(disk: &MemoryDisk) -> Result<Store, StoreError> {
    Store::open(options(), seams(disk, 7))
}

/// Puts the events into a new collection: some in a segment, some archived, some dead, some in the log.
pub fn fill(store: &Store) -> Arc<Collection> {
    let collection = store.create("t", "c", schema(), Settings::default()).unwrap();
    let write = |from, count| {
        collection.write(Write::new(events(from, count)).with_key(format!("key-{from}"))).unwrap();
    };
    write(0, 100);
    collection.flush().unwrap();
    collection.files(std::time::Instant::now() + Duration::from_secs(60), &|| false).unwrap();
    write(100, 64);
    collection.delete(&["id-3".to_owned(), "id-120".to_owned()]).unwrap();
    collection.flush().unwrap();
    write(164, EVENTS - 164);
    collection.delete(&["id-5".to_owned()]).unwrap();
    collection
}

/// The collection, as seen by queries.
pub fn snapshot() -> &'static Snapshot {
    static KEPT: LazyLock<(Store, Snapshot)> = LazyLock::new(|| {
        let store = open(&MemoryDisk::new()).unwrap();
        let snapshot = fill(&store).snapshot();
        (store, snapshot)
    });
    &KEPT.1
}

/// A query with a timeout of ten seconds.
pub fn control() -> Control {
    Control::new(Arc::new(SystemClock::new()), Duration::from_secs(10), CancelFlag::new())
}
