//! Files whose content differs from what was written.

use crate::world::{Event, World, batch, content};
use meridian_model::IdRole;
use meridian_store::seams::{CrashStyle, Disk, Random, SeededRandom};
use meridian_store::{Store, Write, WriteError};
use std::path::Path;
use std::time::{Duration, Instant};

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

/// Creates a closed store with segments, dead rows, keys and a log tail.
fn written(role: IdRole) -> World {
    let world = World::new();
    let (store, c) = world.with_collection(role);
    for i in 0..4 {
        let write = Write::new(batch(&c.schema(), &events(i * 300, i * 300 + 400)));
        c.write(write.replacing().with_key(format!("k{i}"))).unwrap();
        c.flush().unwrap();
        if i == 2 {
            c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
        }
    }
    for i in 0..5 {
        c.write(Write::new(batch(&c.schema(), &events(9000 + i * 10, 9010 + i * 10)))).unwrap();
    }
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    world
}

#[test]
fn a_flipped_bit_in_any_file_is_found_and_named_and_the_rest_is_served() {
    let random = SeededRandom::new(11);
    for case in 0..117 {
        let role = if case % 2 == 0 { IdRole::Given } else { IdRole::Made };
        let world = written(role);
        let all = content(&world.with_collection(role).1.snapshot());
        world.disk.crash(CrashStyle::Lose);
        let kinds =
            [".segment", ".rows", ".parquet", ".dead", ".keys", ".log", "MANIFEST", "MANIFEST.copy", "meridian.json"];
        let kind = kinds[case % kinds.len()];
        let files = world.files(kind);
        if files.is_empty() {
            // Without client-supplied ids nothing was replaced.
            assert_eq!((role, kind), (IdRole::Made, ".dead"));
            continue;
        }
        let (path, len) = files[random.next_u64() as usize % files.len()].clone();
        let bit = random.next_u64() % (len * 8);
        world.disk.flip_bit(&path, bit).unwrap();
        let at = format!("bit {bit} of {}", path.display());
        let store = world.open();
        let problems = store.check();
        let named = problems.iter().any(|p| p.path == path);
        let Some(c) = store.collection("t", "c") else {
            assert!(kind == "MANIFEST" && named, "{at}: {problems:?}");
            continue;
        };
        if kind == ".log" {
            // The last group of a log cannot be distinguished from one that was never synced; spare bytes mean nothing.
            let found = content(&c.snapshot());
            assert!(found.iter().all(|e| all.contains(e)), "{at}");
            assert!(named || found.len() >= all.len() - 10, "{at}: {} of {} and no word", found.len(), all.len());
            continue;
        }
        // Padding between blocks is not covered, and flipping it is harmless. A cache is rebuilt silently.
        if !named {
            assert!(matches!(kind, ".segment" | ".rows"), "{at}: {problems:?}");
            assert_eq!(content(&c.snapshot()), all, "{at}");
        }
        // Data with a second copy is not lost.
        if world.files(".parquet").iter().any(|(rest, _)| rest.with_extension("") == path.with_extension("")) {
            c.maintain().unwrap();
            let found = content(&c.snapshot());
            assert!(found == all, "{at}: {} events of {}; {problems:?}", found.len(), all.len());
        }
    }
}

#[test]
fn a_missing_segment_is_named_and_the_rest_is_served() {
    for role in [IdRole::Given, IdRole::Made] {
        let world = written(role);
        // One that is not archived, or it would be rebuilt.
        let rest: Vec<_> = world.files(".parquet").into_iter().map(|(path, _)| path.with_extension("rows")).collect();
        let (path, _) = world.files(".rows").into_iter().find(|(path, _)| !rest.contains(path)).unwrap();
        world.disk.remove(&path).unwrap();
        let store = world.open();
        assert!(store.problems().iter().any(|p| p.path == path), "{:?}", store.problems());
        let c = store.collection("t", "c").unwrap();
        let snapshot = c.snapshot();
        assert!(snapshot.missing.iter().any(|p| p.path == path));
        assert!(!content(&snapshot).is_empty());
        let write = c.write(Write::new(batch(&c.schema(), &events(20_000, 20_001))));
        match role {
            // It is unknown whether the id is free.
            IdRole::Given => assert!(matches!(write, Err(WriteError::Refused(_))), "{write:?}"),
            IdRole::Made => {
                write.unwrap();
                c.flush().unwrap();
                c.maintain().unwrap();
                // The manifest still names what is missing.
                drop((store, c, snapshot));
                let store = world.open();
                assert!(store.problems().iter().any(|p| p.path == path));
            }
        }
    }
}

#[test]
fn a_merge_that_meets_damage_leaves_the_segment_as_it_is() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Made);
    for _ in 0..4 {
        c.write(Write::new(batch(&c.schema(), &events(0, 50)))).unwrap();
        c.flush().unwrap();
    }
    let path = world.files(".rows")[1].0.clone();
    // Within the first block, behind the header.
    world.disk.flip_bit(&path, 8 * 60).unwrap();
    let error = c.maintain().unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(c.problems().iter().any(|p| p.path == path));
    // It is not retried forever, and writes continue.
    c.maintain().unwrap();
    c.write(Write::new(batch(&c.schema(), &events(50, 60)))).unwrap();
    c.flush().unwrap();
    assert_eq!(c.stats().events, 210);
    assert!(world.files(".rows").iter().any(|(p, _)| *p == path));
}

#[test]
fn damage_in_the_middle_of_the_log_stops_writes_and_keeps_the_rest() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    for i in 0..20 {
        c.write(Write::new(batch(&c.schema(), &events(i * 10, i * 10 + 10)))).unwrap();
    }
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    let (path, _) = world.files(".log")[0].clone();
    world.disk.flip_bit(&path, 8 * (8192 + 300)).unwrap();
    let store = world.open();
    let c = store.collection("t", "c").unwrap();
    assert!(store.problems().iter().any(|p| p.path == path && p.detail.contains("byte")), "{:?}", store.problems());
    assert_eq!(content(&c.snapshot()).len(), 190);
    assert!(!c.snapshot().missing.is_empty());
    let refused = c.write(Write::new(batch(&c.schema(), &events(900, 910))));
    assert!(matches!(&refused, Err(WriteError::Refused(why)) if why.contains("log")), "{refused:?}");
    // Nothing is discarded: another start finds the same.
    drop((store, c));
    let store = world.open();
    assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()).len(), 190);
}

#[test]
fn a_missing_log_file_is_found() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    for i in 0..160 {
        c.write(Write::new(batch(&c.schema(), &events(i * 10, i * 10 + 10)))).unwrap();
    }
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    let files = world.files(".log");
    assert!(files.len() >= 3, "{files:?}");
    world.disk.remove(&files[1].0).unwrap();
    let store = world.open();
    assert!(store.problems().iter().any(|p| p.detail.contains("are missing")), "{:?}", store.problems());
    let c = store.collection("t", "c").unwrap();
    assert!(c.stats().refuses.is_some());
    assert!(c.stats().events > 0);
}

#[test]
fn a_folder_of_something_else_is_not_touched() {
    let world = World::new();
    world.disk.create_dir(Path::new("/data")).unwrap();
    world.disk.open(Path::new("/data/thesis.txt"), meridian_store::seams::OpenMode::Create).unwrap();
    let error = Store::open(world.options.clone(), world.seams()).unwrap_err();
    assert!(error.to_string().contains("thesis.txt"), "{error}");
}
