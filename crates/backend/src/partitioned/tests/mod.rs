//! A collection of several partitions against one of a single partition with the same events.

mod equal;
mod hostile;
mod writes;

use crate::{Backend, Collection, Embedded, ReadPoint, Seams, Write};
use meridian_model::builder::Value;
use meridian_model::{Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Mode, Schema, TimeRole};
use meridian_query::{CancelFlag, Control, Items};
use meridian_store::seams::{Clock, ManualClock, MemoryDisk, SeededRandom};
use meridian_store::{Options, Settings, Store};
use std::sync::Arc;
use std::time::Duration;

const TENANT: &str = "t";
const PARTITIONS: u16 = 4;
/// Fields of the schema.
const TIME: usize = 0;
const NUMBER: usize = 1;
const OBJECT: usize = 2;
const SPEED: usize = 3;

/// The kind of collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    given: bool,
    object: bool,
    latest: bool,
}

/// The kinds that can have several partitions.
const KINDS: [Kind; 5] = [
    Kind { given: true, object: false, latest: false },
    Kind { given: true, object: true, latest: false },
    Kind { given: false, object: false, latest: false },
    Kind { given: false, object: true, latest: false },
    Kind { given: false, object: true, latest: true },
];

fn schema(kind: Kind) -> Schema {
    let field = |name: &str, kind, required| Field { name: name.to_owned(), kind, required, title: None };
    Schema {
        fields: vec![
            field("at", FieldType::Time, true),
            field("n", FieldType::Int, true),
            field("ship", FieldType::Text, false),
            field("speed", FieldType::Float, false),
        ],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(TIME),
        id: if kind.given { IdRole::Given } else { IdRole::Made },
        object: kind.object.then_some(OBJECT),
        mode: if kind.latest { Mode::Latest } else { Mode::History },
        ..Schema::default()
    }
}

/// Appends the event with this number, which is unique. Everything else is derived from it, so that no two places are
/// equally far.
fn event(builder: &mut BatchBuilder, n: i64) {
    if builder.schema().id == IdRole::Given {
        builder.set_id(format!("id {n}")).unwrap();
    }
    builder.set(TIME, Value::Time(1_600_000_000_000_000 + (n * 7919 % 1000) * 60_000_000 + n)).unwrap();
    builder.set(NUMBER, Value::Int(n)).unwrap();
    if n % 11 != 0 {
        builder.set(OBJECT, Value::Text(format!("ship {}", n % 5))).unwrap();
    }
    builder.set(SPEED, Value::Float((n * 31 % 97) as f64)).unwrap();
    let (lon, lat) = ((n * 7321 % 36_000) as f64 / 100.0 - 180.0, (n * 4177 % 16_000) as f64 / 100.0 - 80.0);
    builder.set_point(lon, lat).unwrap();
    builder.end_event().unwrap();
}

fn events(collection: &dyn Collection, numbers: impl IntoIterator<Item = i64>) -> Batch {
    let mut builder = BatchBuilder::new(collection.schema());
    numbers.into_iter().for_each(|n| event(&mut builder, n));
    builder.finish().unwrap()
}

/// Returns the numbers of some events.
fn numbers(batch: &Batch) -> Vec<i64> {
    let Some(meridian_model::FieldColumn::Int(numbers)) = batch.field(NUMBER) else {
        panic!("a batch without numbers")
    };
    numbers.values().to_vec()
}

/// A collection of one partition, and one of several.
struct World {
    store: Arc<Store>,
    backend: Arc<Embedded>,
    disk: Arc<MemoryDisk>,
    clock: Arc<ManualClock>,
    one: Arc<dyn Collection>,
    many: Arc<dyn Collection>,
}

impl World {
    fn new(kind: Kind) -> World {
        let (disk, clock) = (Arc::new(MemoryDisk::new()), Arc::new(ManualClock::new(1_700_000_000_000_000)));
        let (store, backend) = open(&disk, &clock);
        let make = |name: &str, partitions| {
            let settings = Settings { partitions, ..Settings::default() };
            backend.create(TENANT, name, schema(kind), settings).unwrap()
        };
        let (one, many) = (make("one", 1), make("many", PARTITIONS));
        World { store, backend, disk, clock, one, many }
    }

    fn both(&self) -> [&dyn Collection; 2] {
        [&*self.one, &*self.many]
    }

    fn write(&self, numbers: impl IntoIterator<Item = i64> + Clone) {
        for collection in self.both() {
            collection.write(Write::new(events(collection, numbers.clone())).replacing()).unwrap();
        }
    }

    /// Moves what is in memory into segments.
    fn flush(&self) {
        self.store.collections().iter().for_each(|partition| partition.flush().unwrap());
    }

    /// Restarts over the same disk.
    fn reopen(&mut self) {
        self.store.close().unwrap();
        (self.store, self.backend) = open(&self.disk, &self.clock);
        let of = |name: &str| self.backend.collection(TENANT, name).unwrap().unwrap();
        (self.one, self.many) = (of("one"), of("many"));
    }

    fn control(&self) -> Control {
        control(self.clock.clone())
    }
}

fn control(clock: Arc<dyn Clock>) -> Control {
    Control::new(clock, Duration::from_secs(60), CancelFlag::new())
}

fn open(disk: &Arc<MemoryDisk>, clock: &Arc<ManualClock>) -> (Arc<Store>, Arc<Embedded>) {
    let seams = Seams { disk: disk.clone(), clock: clock.clone(), random: Arc::new(SeededRandom::new(7)) };
    let options = Options { background: false, ..Options::at("/data") };
    let store = Arc::new(Store::open(options, seams).unwrap());
    (store.clone(), Embedded::new(store))
}

/// Returns the numbers of all events of a query, in its order.
fn all(collection: &dyn Collection, at: ReadPoint, question: &Items, control: &Control) -> Vec<i64> {
    let rows = collection.items(at, question, control).unwrap();
    rows.flat_map(|hits| numbers(&hits.unwrap().batch)).collect()
}

fn sorted(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_unstable();
    numbers
}
