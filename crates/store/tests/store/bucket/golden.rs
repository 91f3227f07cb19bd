//! Objects as written at each level of the program, kept in `tests/fixtures`, and opened by every run.
//!
//! `objects-LEVEL.json` has the objects through which processes interact: leases, pins, the roll, peers, orders, levels
//! and records. `bucket-LEVEL.json` is a whole bucket: `MERIDIAN_GOLDEN=DIR cargo test -p meridian-store --test store
//! golden` writes that of the current level into a folder. A file is created once, when the level is raised. It never
//! changes from then on, and the next level must open it.

use super::records::control;
use super::{Process, WriteOutcome, Writes, open, seams, write};
use crate::world::{options, readable};
use meridian_model::RecordChange;
use meridian_model::policy::level::LEVEL;
use meridian_store::bucket::{
    Bucket, Condition, Levels, MemoryBucket, Node, OrderKind, OrderOutcome, Orders, Peers, PinUse, Roll, Survey, Terms,
};
use meridian_store::{Act, Lease, LeaseState, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(3);

fn node(process: u64) -> Node {
    Node {
        node: "owner-1".to_owned(),
        role: "owner".to_owned(),
        process,
        program: "0.1.0".to_owned(),
        level: LEVEL,
        address: "127.0.0.1:7118".to_owned(),
        condition: Condition::Serves,
        leases: vec!["owner".to_owned()],
        done: Some(OrderOutcome { order: 1, done: true, text: "done".to_owned() }),
    }
}

/// Creates a small bucket with an object of each kind.
fn written() -> MemoryBucket {
    let memory = MemoryBucket::new();
    let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
    let seams = seams();
    let lease = Lease::new(&bucket, "owner", "owner-1", "127.0.0.1:7118", TTL, &seams);
    assert!(matches!(lease.turn().unwrap(), LeaseState::Owner(_)));
    let mut writes = Writes::default();
    let one = Process::first(&memory);
    (0..3).for_each(|_| assert_eq!(writes.write(&one.collection), WriteOutcome::Stored));
    one.collection.flush().unwrap();
    // A log beyond the manifest, including a fence.
    (0..2).for_each(|_| assert_eq!(writes.write(&one.collection), WriteOutcome::Stored));
    drop(one);
    let two = Process::next(&memory);
    writes.write(&two.collection);
    let reader = Store::open_read_only(options(), self::seams(), bucket.clone()).unwrap();
    reader.refresh().unwrap();
    assert!(lease.name_heir(Some(7)).unwrap());
    lease.resign().unwrap();
    let control = control(&memory);
    control.records("access").commit(0, &[RecordChange::put("token-1", b"{}".to_vec())]).unwrap().unwrap();
    control.records("saved").put("looked", b"{}").unwrap();
    control
        .audit()
        .append(&[Act { who: "server".to_owned(), act: "createToken".to_owned(), ..Act::default() }])
        .unwrap();
    Peers::new(bucket.clone(), &seams).tell(b"{}").unwrap();
    Roll::new(bucket.clone(), &seams, 7, TTL).say(&node(7)).unwrap();
    Orders::new(bucket.clone(), &seams, 7).give(1, OrderKind::Drain, 1).unwrap();
    let handover = OrderKind::Handover { lease: "owner".to_owned(), epoch: 1, to: Some(8) };
    Orders::new(bucket.clone(), &seams, 7).give(2, handover, 1).unwrap();
    Levels::new(bucket, &seams, LEVEL + 1, "0.1.0").raise(LEVEL + 1).unwrap();
    // While all of them run.
    let objects = memory.objects().into_iter().map(|(name, _)| (Bucket::get(&memory, &name).unwrap(), name));
    let there = MemoryBucket::new();
    objects.for_each(|(bytes, name)| there.harm(&name, Some(bytes)));
    drop((reader, two));
    there
}

/// Returns the objects in a fixture; `None` if no fixture has this name.
fn fixture(name: &str) -> Option<MemoryBucket> {
    let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).ok()?;
    let objects: BTreeMap<String, String> = serde_json::from_slice(&text).unwrap();
    let memory = MemoryBucket::new();
    for (name, hex) in objects {
        let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
        memory.harm(&name, Some(bytes.collect()));
    }
    Some(memory)
}

/// Writes a fixture if the environment names a folder.
#[test]
fn golden_bucket_is_written_where_it_is_asked_for() {
    let memory = written();
    let kinds = |memory: &MemoryBucket| {
        let mut kinds: Vec<String> = memory.objects().iter().map(|(name, _)| kind(name)).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    // A kind missing from this list is in no fixture.
    let expected = [
        "audit",
        "collections",
        "leases",
        "levels",
        "manifests",
        "nodes",
        "orders",
        "peers",
        "pins",
        "records",
        "segments",
        "wal",
    ];
    assert_eq!(kinds(&memory), expected);
    if let Some(folder) = std::env::var_os("MERIDIAN_GOLDEN") {
        let bytes = |name: &str| Bucket::get(&memory, name).unwrap();
        let hex = |name: &str| bytes(name).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let objects: BTreeMap<String, String> =
            memory.objects().into_iter().map(|(name, _)| (name.clone(), hex(&name))).collect();
        std::fs::write(
            Path::new(&folder).join(format!("bucket-{LEVEL}.json")),
            serde_json::to_string_pretty(&objects).unwrap(),
        )
        .unwrap();
    }
}

/// Returns the kind of an object, by its name.
fn kind(name: &str) -> String {
    let within = ["wal", "manifests", "segments"].into_iter().find(|kind| name.contains(&format!("/{kind}/")));
    within.unwrap_or_else(|| name.split('/').next().unwrap()).to_owned()
}

#[test]
fn golden_objects_of_all_levels_open() {
    for level in 1..=LEVEL {
        let memory = fixture(&format!("objects-{level}.json")).expect("a level has a fixture of its own");
        meet(&memory, level);
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let pins = Survey::new(&bucket, &seams()).readers().unwrap();
        let uses = PinUse { folder: "tenants/t/c/p0/1".to_owned(), manifest: 7, seq: 70 };
        assert_eq!((pins[0].reader.as_str(), pins[0].uses.as_ref().unwrap()), ("0000000000000009", &vec![uses]));
        let control = control(&memory);
        assert_eq!(control.records("access").names().unwrap(), ["user-2"]);
        // They can be built on as well.
        control.records("access").put("user-3", b"{}").unwrap();
        assert_eq!(self::control(&memory).records("access").names().unwrap(), ["user-2", "user-3"]);
    }
}

/// Reads what each process publishes about itself, its lease and the bucket.
fn meet(memory: &MemoryBucket, level: u32) {
    let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
    let (_, term) = Terms::new(&bucket, "owner").newest().unwrap().unwrap();
    assert_eq!((term.node.as_str(), term.epoch, term.resigned, term.heir), ("owner-1", 1, true, Some(7)));
    let on_roll = Roll::read(bucket.as_ref(), None).unwrap();
    assert_eq!(on_roll[0].node, Node { level, ..node(7) });
    let orders = Orders::new(bucket.clone(), &seams(), 7);
    let what = |number| orders.get(number, 1).unwrap().unwrap().0.what;
    assert_eq!(what(1), OrderKind::Drain);
    assert_eq!(what(2), OrderKind::Handover { lease: "owner".to_owned(), epoch: 1, to: Some(8) });
    let why = Levels::new(bucket.clone(), &seams(), level, "0.0.0").check().unwrap().unwrap_err();
    assert!(why.contains("Meridian 0.1.0"), "{why}");
    assert_eq!(Peers::new(bucket, &seams()).tell(b"{}").unwrap(), [b"{}"]);
}

#[test]
fn golden_buckets_of_all_levels_open() {
    let there = (1..=LEVEL).filter_map(|level| Some((level, fixture(&format!("bucket-{level}.json"))?)));
    // This run's objects beside them, so that the tests are the same.
    for (level, memory) in there.chain([(LEVEL, written())]) {
        meet(&memory, level);
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let control = control(&memory);
        assert_eq!(control.records("access").get("token-1").unwrap().as_deref(), Some(&b"{}"[..]));
        assert_eq!(control.records("saved").names().unwrap(), ["looked"]);
        let problems = meridian_store::check_bucket(&bucket, &seams()).unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
        let reader = Store::open_read_only(options(), seams(), bucket).unwrap();
        assert_eq!(reader.problems(), []);
        // After a takeover it has all of the log as well, and takes writes.
        let next = Process::next(&memory);
        let (events, errors) = readable(&next.collection.snapshot());
        assert!(events.len() == 18 && errors.is_empty(), "{} events, {errors:?}", events.len());
        write(&next.collection, 9);
        next.collection.flush().unwrap();
        drop(next);
        drop(open(&memory).unwrap());
    }
}

#[test]
fn golden_json_of_the_next_level_opens() {
    // Fields that the next level adds to JSON objects are ignored, in each of them.
    let memory = MemoryBucket::new();
    let next: Arc<dyn Bucket> = meridian_store::bucket::NextLevel::over(Arc::new(memory.clone()));
    let lease = Lease::new(&next, "owner", "owner-1", "127.0.0.1:7118", TTL, &seams());
    assert!(matches!(lease.turn().unwrap(), LeaseState::Owner(_)));
    let store = Store::open_shared(options(), seams(), next.clone()).unwrap();
    let made = store.create("t", "c", crate::world::schema(meridian_model::IdRole::Given), Default::default()).unwrap();
    write(&made, 1);
    made.flush().unwrap();
    write(&made, 2);
    drop((made, store));
    Roll::new(next, &seams(), 7, TTL).say(&node(7)).unwrap();
    let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
    assert_eq!(Terms::new(&bucket, "owner").newest().unwrap().unwrap().1.level, LEVEL + 1);
    assert_eq!(Roll::read(bucket.as_ref(), None).unwrap()[0].node.level, LEVEL + 1);
    let manifest =
        memory.objects().into_iter().find(|(name, bytes)| name.contains("/manifests/") && *bytes > 0).unwrap().0;
    let bytes = Bucket::get(&memory, &manifest).unwrap();
    // The manifest has a frame of its own, after the numbers of the catalog.
    let at = bytes.windows(8).position(|magic| magic == b"MRDNMANI").unwrap() + 16;
    let content: Value = serde_json::from_slice(&bytes[at..]).unwrap();
    assert!(content["of_the_next_level"].is_object(), "{content}");
    let next = Process::next(&memory);
    assert_eq!(readable(&next.collection.snapshot()).0.len(), 6);
}
