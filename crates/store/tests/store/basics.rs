//! The store in normal operation.

use crate::world::{World, batch, content, events, options, schema};
use meridian_model::{Field, FieldType, IdRole, Projection};
use meridian_store::seams::{CrashStyle, RealDisk, Seams};
use meridian_store::{Durability, Options, Settings, Store, StoreError, Write, WriteError};
use std::sync::Arc;

#[test]
fn events_survive_a_crash_in_the_log_and_in_segments() {
    for world in World::each() {
        let (store, c) = world.with_collection(IdRole::Given);
        c.write(Write::new(batch(&c.schema(), &events(0, 5000)))).unwrap();
        c.flush().unwrap();
        c.write(Write::new(batch(&c.schema(), &events(5000, 5100)))).unwrap();
        c.delete(&["id-7".to_owned(), "id-5007".to_owned()]).unwrap();
        let before = content(&c.snapshot());
        assert_eq!(before.len(), 5098);
        world.disk.crash(CrashStyle::Lose);
        drop(store);
        let (store, c) = world.with_collection(IdRole::Given);
        assert_eq!(content(&c.snapshot()), before);
        assert_eq!(c.stats().events, 5098);
        store.close().unwrap();
        // A clean stop leaves nothing in the log.
        let (_store, c) = world.with_collection(IdRole::Given);
        assert_eq!(content(&c.snapshot()), before);
        assert_eq!(c.stats().memory_rows, 0);
    }
}

#[test]
fn the_real_disk_keeps_events() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { background: true, ..options() };
    let options = Options { data: folder.path().join("a/b"), ..options };
    let store = Store::open(options.clone(), Seams::real()).unwrap();
    let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    for i in 0..20 {
        c.write(Write::new(batch(&c.schema(), &events(i * 500, (i + 1) * 500)))).unwrap();
    }
    c.flush().unwrap();
    c.delete(&["id-1".to_owned()]).unwrap();
    let before = content(&c.snapshot());
    drop((store, c));
    let store = Store::open(options.clone(), Seams::real()).unwrap();
    let c = store.collection("t", "c").unwrap();
    assert_eq!(content(&c.snapshot()), before);
    assert_eq!(store.check(), []);
    let second = Store::open(options.clone(), Seams { disk: Arc::new(RealDisk), ..Seams::real() });
    let message = second.unwrap_err().to_string();
    assert!(message.contains("in use by another process") && message.contains("a/b"), "{message}");
}

#[test]
fn a_snapshot_does_not_change_and_can_be_had_again() {
    for world in World::each() {
        let (_store, c) = world.with_collection(IdRole::Given);
        c.write(Write::new(batch(&c.schema(), &events(0, 1000)))).unwrap();
        let old = c.snapshot();
        let before = content(&old);
        c.write(Write::new(batch(&c.schema(), &events(0, 1000))).replacing()).unwrap();
        c.delete(&["id-3".to_owned()]).unwrap();
        c.flush().unwrap();
        let of_files = c.snapshot();
        c.maintain().unwrap();
        assert_eq!(content(&old), before);
        assert_eq!(content(&c.snapshot_at(old.seq).unwrap()), before);
        world.clock.advance(299_000_000);
        assert_eq!(content(&c.snapshot_at(old.seq).unwrap()), before);
        // Over a bucket a snapshot is kept for a quarter longer than a token is valid.
        world.clock.advance(378_000_000);
        // Half of the rows are dead and no token has been used for five minutes: they are dropped.
        c.maintain().unwrap();
        assert_eq!(c.stats().dead_rows, 0);
        assert_eq!(c.stats().events, 999);
        let gone = c.snapshot_at(old.seq).unwrap_err();
        assert!(gone.to_string().contains("five minutes"));
        assert_eq!(content(&old), before);
        // An open snapshot reads files that no manifest names any more.
        assert_eq!(content(&of_files).len(), 999);
        let files = world.files(".segment").len();
        c.maintain().unwrap();
        assert_eq!(world.files(".segment").len(), files, "a snapshot pins its files");
        drop(of_files);
        assert_eq!(world.files(".segment").len(), files, "nothing is deleted by dropping a snapshot");
        c.maintain().unwrap();
        // In a bucket they stay for a grace period, because other processes may read them.
        assert!(world.bucket.is_some() || world.files(".segment").len() < files);
        assert!(c.snapshot_at(meridian_model::Seq(u64::MAX)).is_err());
    }
}

#[test]
fn fields_added_later_are_null_in_older_events() {
    for world in World::each() {
        let (store, c) = world.with_collection(IdRole::Given);
        c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
        c.flush().unwrap();
        c.write(Write::new(batch(&c.schema(), &events(100, 200)))).unwrap();
        let old_schema = c.schema();
        let extra = Field { name: "extra".into(), kind: FieldType::Int, required: false, title: None };
        c.add_fields(vec![extra.clone()]).unwrap();
        assert!(c.add_fields(vec![extra.clone()]).is_err());
        assert!(c.add_fields(vec![Field { name: "must".into(), required: true, ..extra }]).is_err());
        // A batch read with the old schema is still accepted.
        c.write(Write::new(batch(&old_schema, &events(200, 210)))).unwrap();
        world.disk.crash(CrashStyle::Lose);
        drop((store, c));
        let (store, c) = world.with_collection(IdRole::Given);
        assert_eq!(c.schema().fields.len(), 5);
        c.flush().unwrap();
        c.maintain().unwrap();
        let snapshot = c.snapshot();
        assert_eq!(content(&snapshot).len(), 210);
        for part in snapshot.parts.iter() {
            let read = part.read(0..part.rows(), &Projection::all(&snapshot.layout)).unwrap();
            let column = read.column(snapshot.layout.field(4)).unwrap();
            assert_eq!(column.null_count(), part.rows() as usize);
            let all = Projection::all(&snapshot.layout);
            let order = part.time_order().unwrap().read(0..part.rows(), &all).unwrap();
            assert_eq!(order.column(snapshot.layout.field(4)).unwrap().null_count(), part.rows() as usize);
        }
        assert_eq!(store.check(), []);
    }
}

#[test]
fn collections_are_made_listed_and_dropped() {
    for world in World::each() {
        let store = world.open();
        for (tenant, name) in [("t", "b"), ("t", "a"), ("u", "a")] {
            store.create(tenant, name, schema(IdRole::Made), Settings::default()).unwrap();
        }
        let names: Vec<String> = store.list("t").iter().map(|c| c.name().to_owned()).collect();
        assert_eq!(names, ["a", "b"]);
        let twice = store.create("t", "a", schema(IdRole::Made), Settings::default());
        assert!(matches!(twice, Err(StoreError::Exists { .. })));
        for bad in ["", "..", "a/b", "ä"] {
            assert!(matches!(
                store.create("t", bad, schema(IdRole::Made), Settings::default()),
                Err(StoreError::Invalid(_))
            ));
        }
        let a = store.collection("t", "a").unwrap();
        a.write(Write::new(batch(&a.schema(), &events(0, 10)))).unwrap();
        let snapshot = a.snapshot();
        assert!(store.drop_collection("t", "a").unwrap());
        assert!(!store.drop_collection("t", "a").unwrap());
        assert!(matches!(a.write(Write::new(batch(&a.schema(), &events(0, 10)))), Err(WriteError::Closed)));
        assert_eq!(content(&snapshot).len(), 10);
        assert!(world.files("/t/a/").is_empty());
        store.create("t", "a", schema(IdRole::Made), Settings::default()).unwrap();
        world.disk.crash(CrashStyle::Lose);
        drop(store);
        let store = world.open();
        assert_eq!(store.collections().len(), 3);
        assert_eq!(store.collection("t", "a").unwrap().stats().events, 0);
    }
}

#[test]
fn an_ephemeral_collection_is_empty_after_a_restart_and_never_syncs() {
    let world = World::new();
    let (store, _) = world.with_collection(IdRole::Given);
    let settings = Settings { durability: Durability::Ephemeral, ..Settings::default() };
    let c = store.create("t", "e", schema(IdRole::Given), settings.clone()).unwrap();
    let syncs = world.disk.syncs();
    c.write(Write::new(batch(&c.schema(), &events(0, 3000)))).unwrap();
    c.flush().unwrap();
    c.write(Write::new(batch(&c.schema(), &events(2000, 4000))).replacing()).unwrap();
    c.maintain().unwrap();
    assert_eq!(content(&c.snapshot()).len(), 4000);
    assert_eq!(world.disk.syncs(), syncs);
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    let store = world.open();
    let c = store.collection("t", "e").unwrap();
    assert_eq!((c.stats().events, c.settings()), (0, settings));

    let memory = Store::open(Options { background: false, ..Options::ephemeral() }, Seams::real()).unwrap();
    let c = memory.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    c.write(Write::new(batch(&c.schema(), &events(0, 3000)))).unwrap();
    c.flush().unwrap();
    assert_eq!(content(&c.snapshot()).len(), 3000);
}

#[test]
fn many_single_events_make_few_trees_and_cost_few_rewrites() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Given);
    for n in 0..2000 {
        c.write(Write::new(batch(&c.schema(), &events(n, n + 1)))).unwrap();
        assert!(c.stats().runs <= 3 * 6 + 3, "{} memory trees of {n} events", c.stats().runs);
    }
    assert_eq!(content(&c.snapshot()).len(), 2000);
    assert_eq!(c.stats().syncs, 2000);
}

#[test]
fn merges_keep_the_number_of_segments_small() {
    for world in World::each() {
        let (store, c) = world.with_collection(IdRole::Made);
        let mut most = 0;
        for i in 0..60 {
            c.write(Write::new(batch(&c.schema(), &events(i * 100, (i + 1) * 100)))).unwrap();
            c.flush().unwrap();
            c.maintain().unwrap();
            most = most.max(c.stats().segments);
        }
        assert_eq!(content(&c.snapshot()).len(), 6000);
        // 6000 rows in ranges of at least 64; without merges there would be hundreds.
        assert!(most < 120, "{most} segments");
        let stats = c.stats();
        assert!(world.bucket.is_some() || world.files(".segment").len() as u64 == stats.segments);
        assert!(stats.write_amplification() < 20.0, "{}", stats.write_amplification());
        assert_eq!(store.check(), []);
    }
}

#[test]
fn writes_flush_by_themselves_when_memory_is_full() {
    for mut world in World::each() {
        world.options.memory_bytes = 1 << 20;
        let (_store, c) = world.with_collection(IdRole::Made);
        for i in 0..40 {
            c.write(Write::new(batch(&c.schema(), &events(i * 1000, (i + 1) * 1000)))).unwrap();
            assert!(c.stats().memory_bytes < 2 << 20);
        }
        assert!(c.stats().segments > 0);
        assert_eq!(c.stats().events, 40_000);
    }
}

#[test]
fn rows_that_a_snapshot_showed_can_be_deleted() {
    for role in [IdRole::Given, IdRole::Made] {
        let world = World::new();
        let (_store, c) = world.with_collection(role);
        c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
        let snapshot = c.snapshot();
        c.flush().unwrap();
        c.write(Write::new(batch(&c.schema(), &events(100, 200)))).unwrap();
        let rows: Vec<_> = snapshot.parts.iter().map(|p| (p.clone(), (0..p.rows()).step_by(2).collect())).collect();
        assert_eq!(c.delete_rows(&rows).unwrap().deleted, 50);
        assert_eq!(c.delete_rows(&rows).unwrap().deleted, 0);
        assert_eq!(c.stats().events, 150);
        assert_eq!(content(&snapshot).len(), 100);
    }
}

#[test]
fn memory_trees_become_one_once_writers_are_quiet() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Made);
    for (from, to) in [(0, 5000), (5000, 5500), (5500, 5550)] {
        c.write(Write::new(batch(&c.schema(), &events(from, to)))).unwrap();
    }
    c.maintain().unwrap();
    let (before, parts) = (content(&c.snapshot()), c.snapshot().parts.len());
    assert!(parts > 1, "runs of different sizes stay apart while writes go on: {parts}");
    world.clock.advance(1_000_000);
    c.maintain().unwrap();
    assert_eq!(c.snapshot().parts.len(), parts, "5,550 rows ask for more quiet than a second");
    world.clock.advance(60_000_000);
    c.maintain().unwrap();
    assert_eq!(c.snapshot().parts.len(), 1);
    assert_eq!(content(&c.snapshot()), before);
}

#[test]
fn what_this_version_does_not_keep_is_refused() {
    let world = World::new();
    let (store, _) = world.with_collection(IdRole::Made);
    let replicated = Settings { durability: Durability::Replicated, ..Settings::default() };
    let message = store.create("t", "replicated", schema(IdRole::Made), replicated).unwrap_err().to_string();
    assert!(message.contains("durability"), "{message}");
}

/// A collection without new events is flushed automatically, unless it holds next to nothing.
#[test]
fn an_idle_collection_is_flushed() {
    let mut world = World::new();
    world.options.log_file_bytes = 1 << 20;
    let (_store, c) = world.with_collection(IdRole::Made);
    c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
    world.clock.advance(3_600_000_000);
    c.maintain().unwrap();
    assert_eq!((c.stats().memory_rows, c.stats().segments), (100, 0));
    c.write(Write::new(batch(&c.schema(), &events(100, 30_000)))).unwrap();
    c.maintain().unwrap();
    assert_eq!(c.stats().memory_rows, 30_000);
    world.clock.advance(61_000_000);
    c.maintain().unwrap();
    assert_eq!((c.stats().memory_rows, c.stats().log_tail_bytes, c.stats().events), (0, 0, 30_000));
}
