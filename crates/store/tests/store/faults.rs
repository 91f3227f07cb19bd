//! Disks that fail: full, failing, read-only, torn.

use crate::world::{Event, World, batch, content, schema};
use meridian_model::IdRole;
use meridian_store::seams::{CrashStyle, FaultKind, SeededRandom};
use meridian_store::{Settings, Store, StoreError, Write, WriteError};

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

#[test]
fn a_full_disk_refuses_the_write_and_recovers_when_there_is_room() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
    let used: u64 = world.disk.files().iter().map(|(_, len)| len).sum();
    world.disk.set_capacity(Some(used + 100));
    let refused = c.write(Write::new(batch(&c.schema(), &events(100, 200))));
    assert!(matches!(&refused, Err(WriteError::Full(why)) if why.contains("full")), "{refused:?}");
    assert!(c.flush().is_err());
    assert_eq!(content(&c.snapshot()).len(), 100);
    world.disk.set_capacity(None);
    c.write(Write::new(batch(&c.schema(), &events(200, 300)))).unwrap();
    c.flush().unwrap();
    let before = content(&c.snapshot());
    assert_eq!(before.len(), 200);
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    let (store, c) = world.with_collection(IdRole::Given);
    assert_eq!(content(&c.snapshot()), before);
    assert_eq!(store.check(), []);
}

#[test]
fn after_a_failed_sync_no_more_writes_are_taken_and_reads_go_on() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
    world.disk.inject(FaultKind::SyncFails, ".log", 0);
    let failed = c.write(Write::new(batch(&c.schema(), &events(100, 200))));
    assert!(matches!(failed, Err(WriteError::Failed(_))), "{failed:?}");
    // The disk works again, but what the kernel dropped is gone: only a restart shows what is left.
    world.disk.heal();
    let refused = c.write(Write::new(batch(&c.schema(), &events(200, 300))));
    assert!(matches!(&refused, Err(WriteError::Refused(why)) if why.contains("sync")), "{refused:?}");
    assert!(c.stats().refuses.is_some());
    assert_eq!(content(&c.snapshot()).len(), 100);
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    let (_store, c) = world.with_collection(IdRole::Given);
    assert_eq!(content(&c.snapshot()).len(), 100);
    c.write(Write::new(batch(&c.schema(), &events(200, 300)))).unwrap();
}

#[test]
fn what_only_the_cache_of_the_kernel_held_is_durable_once_it_was_shown() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
    world.disk.inject(FaultKind::SyncFails, ".log", 0);
    assert!(c.write(Write::new(batch(&c.schema(), &events(100, 200)))).is_err());
    world.disk.heal();
    drop((store, c));
    // The process is restarted while the power stayed on: the batch is read and shown.
    let (store, c) = world.with_collection(IdRole::Given);
    let shown = content(&c.snapshot());
    assert_eq!(shown.len(), 200);
    c.write(Write::new(batch(&c.schema(), &events(200, 300)))).unwrap();
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    let (store, c) = world.with_collection(IdRole::Given);
    assert_eq!(store.problems(), []);
    assert_eq!(content(&c.snapshot()).len(), 300);
}

#[test]
fn a_failed_flush_leaves_everything_as_it_was() {
    for (kind, file) in [
        (FaultKind::SyncFails, ".segment"),
        (FaultKind::WriteFails, ".segment"),
        (FaultKind::SyncFails, "MANIFEST"),
        (FaultKind::WriteFails, "MANIFEST"),
        (FaultKind::SyncFails, ".keys"),
        (FaultKind::SyncFails, ".dead"),
    ] {
        let world = World::new();
        let (store, c) = world.with_collection(IdRole::Given);
        c.write(Write::new(batch(&c.schema(), &events(0, 500)))).unwrap();
        c.flush().unwrap();
        c.write(Write::new(batch(&c.schema(), &events(400, 900))).replacing().with_key("k")).unwrap();
        let before = content(&c.snapshot());
        let files = world.files("/segments/");
        world.disk.inject(kind, file, 0);
        assert!(c.flush().is_err(), "{kind:?} of {file}");
        assert_eq!(content(&c.snapshot()), before, "{kind:?} of {file}");
        assert!(c.stats().refuses.is_none(), "{kind:?} of {file}: {:?}", c.stats().refuses);
        world.disk.heal();
        let left: Vec<_> = world.files(".segment");
        assert_eq!(left.len(), files.iter().filter(|(p, _)| p.to_string_lossy().ends_with(".segment")).count());
        c.flush().unwrap();
        assert_eq!(content(&c.snapshot()), before);
        world.disk.crash(CrashStyle::Lose);
        drop((store, c));
        let (store, c) = world.with_collection(IdRole::Given);
        assert_eq!(content(&c.snapshot()), before, "{kind:?} of {file}");
        assert_eq!(store.check(), []);
    }
}

#[test]
fn a_torn_tail_is_forgotten_and_nothing_else() {
    for seed in 0..40 {
        let world = World::new();
        let (store, c) = world.with_collection(IdRole::Given);
        c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
        world.disk.inject(FaultKind::SyncFails, ".log", 0);
        assert!(c.write(Write::new(batch(&c.schema(), &events(100, 200)))).is_err());
        world.disk.crash(CrashStyle::Tear(&SeededRandom::new(seed)));
        drop((store, c));
        let (store, c) = world.with_collection(IdRole::Given);
        assert_eq!(store.problems(), []);
        let found = content(&c.snapshot()).len();
        assert!(found == 100 || found == 200, "{found} events: half a batch");
    }
}

#[test]
fn a_read_only_disk_is_named() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 10)))).unwrap();
    world.disk.set_read_only(true);
    let refused = c.write(Write::new(batch(&c.schema(), &events(10, 20))));
    assert!(refused.is_err());
    assert_eq!(content(&c.snapshot()).len(), 10);
    drop((store, c));
    let error = Store::open(world.options.clone(), world.seams()).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(error.to_string().contains("/data"));
}

#[test]
fn a_crash_at_any_write_of_a_creation_or_drop_leaves_all_or_nothing() {
    for step in 0..40 {
        let world = World::new();
        let store = world.open();
        store.create("t", "keep", schema(IdRole::Made), Settings::default()).unwrap();
        store.create("t", "drop", schema(IdRole::Made), Settings::default()).unwrap();
        let d = store.collection("t", "drop").unwrap();
        d.write(Write::new(batch(&d.schema(), &events(0, 10)))).unwrap();
        world.disk.inject(FaultKind::SyncFails, "/t/", step);
        let dropped = store.drop_collection("t", "drop");
        let made = store.create("t", "new", schema(IdRole::Made), Settings::default()).map(|_| ());
        world.disk.crash(CrashStyle::Lose);
        drop((store, d));
        let store = world.open();
        assert_eq!(store.problems(), [], "step {step}");
        assert!(store.collection("t", "keep").is_some());
        if dropped.is_ok() {
            assert!(store.collection("t", "drop").is_none(), "step {step}");
        }
        if let Some(d) = store.collection("t", "drop") {
            assert_eq!(d.stats().events, 10);
        }
        if made.is_ok() {
            assert!(store.collection("t", "new").is_some(), "step {step}: {made:?}");
        }
        // Remains are not in the way.
        if store.collection("t", "drop").is_none() {
            store.create("t", "drop", schema(IdRole::Made), Settings::default()).unwrap();
        }
    }
}

#[test]
fn a_full_disk_is_known_until_there_is_room_and_then_not() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Made);
    let used = || world.disk.files().iter().map(|(_, len)| len).sum::<u64>();
    assert!(!store.met_full_disk() && store.full_disk().is_none());
    world.disk.set_capacity(Some(used() + 100));
    let full = store.records("saved").put("one", &[7; 4096]).unwrap_err();
    assert!(full.is_full(), "{full}");
    assert!(store.met_full_disk());
    // Room for something small does not count as room.
    world.disk.set_capacity(Some(used() + 10_000));
    assert!(store.full_disk().unwrap().to_string_lossy().contains("saved/one"));
    world.disk.set_capacity(None);
    assert_eq!(store.full_disk(), None);
    assert!(!store.met_full_disk());
    c.write(Write::new(batch(&c.schema(), &events(0, 10)))).unwrap();
    assert!(world.files("meridian.json.new").is_empty());
}
