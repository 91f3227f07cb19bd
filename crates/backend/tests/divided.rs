//! Collections that a restore has divided among a different number of partitions, compared with what was backed up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(clippy::disallowed_methods, reason = "a deadline of a call is by the real clock")]

use meridian_backend::{Backend, Collection, Embedded, ReadPoint, Seams, Write};
use meridian_model::builder::Value;
use meridian_model::{
    Batch, BatchBuilder, Field, FieldColumn, FieldType, GeometryType, IdRole, Mode, Positions, Schema, Seq, TimeRole,
};
use meridian_query::{CancelFlag, Control, Items};
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{ManualClock, MemoryDisk, SeededRandom};
use meridian_store::{BackupFolder, BackupScope, Options, Restore, Settings, SharedLog, Store};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TENANT: &str = "t";

/// The kind of collection.
#[derive(Debug, Clone, Copy)]
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
        ],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id: if kind.given { IdRole::Given } else { IdRole::Made },
        object: kind.object.then_some(2),
        mode: if kind.latest { Mode::Latest } else { Mode::History },
        ..Schema::default()
    }
}

/// Returns events with these numbers, from which everything else is derived.
fn events(collection: &dyn Collection, numbers: std::ops::Range<i64>) -> Batch {
    let mut builder = BatchBuilder::new(collection.schema());
    for n in numbers {
        if builder.schema().id == IdRole::Given {
            builder.set_id(format!("id {n}")).unwrap();
        }
        builder.set(0, Value::Time(1_600_000_000_000_000 + (n * 7919 % 1000) * 60_000_000 + n)).unwrap();
        builder.set(1, Value::Int(n)).unwrap();
        if n % 11 != 0 {
            builder.set(2, Value::Text(format!("ship {}", n % 5))).unwrap();
        }
        let (lon, lat) = ((n * 7321 % 36_000) as f64 / 100.0 - 180.0, (n * 4177 % 16_000) as f64 / 100.0 - 80.0);
        builder.set_point(lon, lat).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

fn numbers(batch: &Batch) -> Vec<i64> {
    let Some(FieldColumn::Int(numbers)) = batch.field(1) else { panic!("a batch without numbers") };
    numbers.values().to_vec()
}

fn seams(disk: &Arc<MemoryDisk>) -> Seams {
    static PROCESSES: AtomicU64 = AtomicU64::new(1);
    let seed = PROCESSES.fetch_add(1, Ordering::Relaxed) << 20;
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    Seams { disk: disk.clone(), clock, random: Arc::new(SeededRandom::new(seed)) }
}

fn options(data: &str) -> Options {
    Options { background: false, ..Options::at(data) }
}

fn control() -> Control {
    Control::new(Arc::new(ManualClock::new(0)), Duration::from_secs(60), CancelFlag::new())
}

/// A store, and its one collection.
struct Fixture {
    store: Arc<Store>,
    collection: Arc<dyn Collection>,
}

impl Fixture {
    fn of(store: Store) -> Fixture {
        assert_eq!(store.problems(), []);
        let store = Arc::new(store);
        let collection = Embedded::new(store.clone()).collection(TENANT, "c").unwrap().unwrap();
        Fixture { store, collection }
    }

    /// Returns the number of each event by its id, in the view of the mode and in the history.
    fn content(&self) -> [BTreeMap<String, i64>; 2] {
        [false, true].map(|history| {
            let at = ReadPoint { seq: None, history, eventual: None };
            let rows = self.collection.items(at, &Items::all(&self.collection.schema()), &control()).unwrap();
            let mut found = BTreeMap::new();
            for hits in rows {
                let hits = hits.unwrap();
                for (row, n) in numbers(&hits.batch).into_iter().enumerate() {
                    let before = found.insert(hits.batch.id_of(row, hits.seqs[row]), n);
                    assert_eq!(before, None, "an id stands twice");
                }
            }
            found
        })
    }

    /// Checks that each event is found by its id, and no other.
    fn check_ids(&self, history: &BTreeMap<String, i64>) {
        for (id, n) in history {
            let found = self.collection.event(id).unwrap().value.map(|(batch, _)| numbers(&batch));
            assert_eq!(found, Some(vec![*n]), "{id}");
        }
        // Their ordinals begin with the number of a partition, perhaps of one that does not exist.
        let made = [Seq::new(1, 60_000), Seq::new(9_999, 0), Seq::new(9_999, 60_000)].map(Seq::to_id);
        for absent in made.into_iter().chain(["no id".to_owned()]) {
            assert!(self.collection.event(&absent).unwrap().value.is_none(), "{absent}");
        }
    }
}

/// Backs a store up into a folder of the disk.
fn back_up(disk: &Arc<MemoryDisk>, fixture: &Fixture, folder: &str) {
    let kept = BackupFolder::open(disk.clone(), Path::new(folder)).unwrap();
    let mut tar = Vec::new();
    fixture.store.backup(&BackupScope::everything(), &kept.have().unwrap(), &mut tar, &|| false).unwrap();
    kept.receive(&mut tar.as_slice(), &mut |_| {}).unwrap();
}

/// An operation on a collection.
#[derive(Debug, Clone)]
enum Act {
    Write(i64, i64),
    Delete(usize),
    Flush,
    Archive,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..400_i64, 1..120_i64).prop_map(|(from, count)| Act::Write(from, count)),
        1 => (1..7_usize).prop_map(Act::Delete),
        1 => Just(Act::Flush),
        1 => Just(Act::Archive),
    ]
}

fn perform(fixture: &Fixture, acts: &[Act], first: i64) {
    // In collections that make ids, no number is written twice.
    let mut next = first;
    for act in acts {
        match act {
            Act::Write(from, count) => {
                let given = fixture.collection.schema().id == IdRole::Given;
                let from = if given { *from } else { next };
                next += if given { 0 } else { *count };
                let batch = events(&*fixture.collection, from..from + count);
                fixture.collection.write(Write::new(batch).replacing()).unwrap();
            }
            Act::Delete(every) => {
                let [_, history] = fixture.content();
                let ids: Vec<String> = history.into_keys().step_by(*every + 2).collect();
                assert_eq!(fixture.collection.delete(&ids).unwrap().deleted, ids.len() as u64);
            }
            Act::Flush => fixture.store.collections().iter().for_each(|partition| partition.flush().unwrap()),
            Act::Archive => {
                for partition in fixture.store.collections() {
                    partition.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn events_come_out_of_any_number_of_partitions_with_their_ids(
        kind in prop::sample::select(KINDS.to_vec()),
        (first, second, third) in (1..6_u16, 1..6_u16, 1..6_u16),
        (acts, later) in (prop::collection::vec(act(), 1..9), prop::collection::vec(act(), 0..5)),
        over_bucket in any::<bool>(),
    ) {
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open(options("/a"), seams(&disk)).unwrap();
        store.create(TENANT, "c", schema(kind), Settings { partitions: first, ..Settings::default() }).unwrap();
        let before = Fixture::of(store);
        perform(&before, &acts, 0);
        back_up(&disk, &before, "/kept");
        let content = before.content();

        let restore = Restore::of("/kept").in_partitions(Some(second));
        let store = if over_bucket {
            let bucket = Arc::new(MemoryBucket::new());
            restore.to_bucket(&seams(&disk), &(bucket.clone() as _), SharedLog::Bucket, &mut |_| {}).unwrap();
            Store::open_shared(options("/b"), seams(&disk), bucket).unwrap()
        } else {
            restore.to_folder(options("/b"), seams(&disk), &mut |_| {}).unwrap();
            Store::open(options("/b"), seams(&disk)).unwrap()
        };
        let moved = Fixture::of(store);
        prop_assert_eq!(moved.collection.settings().partitions, second);
        prop_assert_eq!(&moved.content(), &content);
        moved.check_ids(&content[1]);
        prop_assert_eq!(moved.store.check(), vec![]);
        // It continues from there, with ids that no event had.
        perform(&moved, &later, 10_000);
        let content = moved.content();
        moved.check_ids(&content[1]);

        back_up(&disk, &moved, "/kept-2");
        Restore::of("/kept-2").in_partitions(Some(third)).to_folder(options("/c"), seams(&disk), &mut |_| {}).unwrap();
        let again = Fixture::of(Store::open(options("/c"), seams(&disk)).unwrap());
        prop_assert_eq!(&again.content(), &content);
        again.check_ids(&content[1]);
    }
}

/// Returns a collection of made ids, divided from one partition into four.
fn divided() -> (Arc<MemoryDisk>, Fixture) {
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open(options("/a"), seams(&disk)).unwrap();
    store.create(TENANT, "c", schema(Kind { given: false, object: true, latest: false }), Settings::default()).unwrap();
    let before = Fixture::of(store);
    for n in 0..6 {
        before.collection.write(Write::new(events(&*before.collection, n * 50..n * 50 + 50))).unwrap();
    }
    back_up(&disk, &before, "/kept");
    Restore::of("/kept").in_partitions(Some(4)).to_folder(options("/b"), seams(&disk), &mut |_| {}).unwrap();
    let moved = Fixture::of(Store::open(options("/b"), seams(&disk)).unwrap());
    (disk, moved)
}

#[test]
fn a_stream_from_before_is_refused_and_a_catch_up_says_what_it_leaves_out() {
    let (_disk, moved) = divided();
    let c = &moved.collection;
    let position = c.position();
    assert_eq!(position.len(), 4);
    let refused = c.changes_after(&Positions::one(0).ends(), 100, 1 << 20).map(drop).unwrap_err().to_string();
    assert!(refused.contains("a restore has divided"), "{refused}");
    let written = c.write(Write::new(events(&**c, 900..940))).unwrap();
    let mut changes = c.changes_after(&position.ends(), 1_000, 1 << 20).unwrap();
    let mut found = Vec::new();
    while let Some((batch, _)) = changes.read().unwrap() {
        found.extend(numbers(&batch));
    }
    found.sort_unstable();
    assert_eq!(found, (900..940).collect::<Vec<_>>());
    let now = position.later(&written.position);
    let all_there = moved.content()[1].len() as u64 - 40;
    let left_out = |after: &Positions| c.changes_between(after, &now, 1_000).unwrap().left_out();
    // By positions of one partition: before, in the middle, and after all of them.
    let first = position.at(0);
    assert_eq!((left_out(&Positions::one(0)), left_out(&Positions::one(first))), (all_there, 0));
    assert!((1..=all_there).contains(&left_out(&Positions::one(first - 1))));
}
