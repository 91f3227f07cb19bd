//! Renames of collections: one step for all partitions, which a crash does not split.

use crate::world::{Event, World, batch, content, options, schema};
use meridian_model::IdRole;
use meridian_store::seams::{CrashStyle, Disk, FaultKind, MemoryDisk, OpenMode, RealDisk, Seams, SeededRandom};
use meridian_store::{BackupScope, Collection, Durability, Options, Settings, Store, StoreError, Write, WriteError};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

fn of(partitions: u16, durability: Durability) -> Settings {
    Settings { partitions, durability, ..Settings::default() }
}

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("e{n}"), n)).collect()
}

/// Writes ten events from this number on, into each partition.
fn fill(store: &Store, name: &str, from: i64) {
    for (partition, number) in store.partitions("t", name).unwrap().iter().zip(0..) {
        let from = from + number * 10;
        partition.write(Write::new(batch(&partition.schema(), &events(from, from + 10)))).unwrap();
    }
}

/// Returns the events of each partition.
fn all(store: &Store, name: &str) -> Vec<Vec<(String, u64, i64)>> {
    store.partitions("t", name).unwrap().iter().map(|partition| content(&partition.snapshot())).collect()
}

#[test]
fn a_crash_at_any_step_of_a_rename_leaves_the_collection_under_one_name() {
    let (mut renamed_none, mut failed_renamed) = (0, 0);
    for kind in [FaultKind::SyncFails, FaultKind::WriteFails, FaultKind::NameFails] {
        for step in 0..40 {
            for (partitions, tears) in [(1, false), (3, false), (3, true)] {
                let case = format!("{kind:?} {step} {partitions} {tears}");
                let world = World::new();
                let store = world.open();
                store.create("t", "c", schema(IdRole::Given), of(partitions, Durability::Local)).unwrap();
                fill(&store, "c", 0);
                let before = all(&store, "c");
                // Every call from there on, or that one alone.
                let times = if step % 2 == 0 { u64::MAX } else { 1 };
                world.disk.inject_times(kind, "/t", step, times);
                let renamed = store.rename("t", "c", "new");
                assert!(!matches!(renamed, Ok(false)), "{case}");
                // Served under one name or set aside, and never absent. Whatever could not be read of the new name may
                // be set aside too.
                let served = |name: &str| store.partitions("t", name).is_some();
                let there = |name: &str| served(name) || store.why_damaged("t", name).is_some();
                assert!(there("c") || there("new"), "{case}: {renamed:?}");
                assert!(!served("c") || !served("new"), "{case}");
                // A file that could not be opened is missing from responses, and reported, as after any start.
                if renamed.is_ok() && store.problems().is_empty() {
                    assert_eq!(all(&store, "new"), before, "{case}");
                }
                let dice = SeededRandom::new(step * 7 + 1);
                world.disk.crash(if tears { CrashStyle::Tear(&dice) } else { CrashStyle::Lose });
                drop(store);
                let store = world.open();
                assert_eq!(store.problems(), [], "{case}");
                let (name, free) = match (store.partitions("t", "c").is_some(), store.partitions("t", "new").is_some())
                {
                    (true, false) => ("c", "new"),
                    (false, true) => ("new", "c"),
                    both => panic!("{case}: {both:?}"),
                };
                assert_eq!(all(&store, name), before, "{case}");
                match renamed {
                    Ok(_) => assert_eq!(name, "new", "{case}"),
                    Err(_) if name == "new" => failed_renamed += 1,
                    Err(_) => renamed_none += 1,
                }
                // Both names can be used.
                store.create("t", free, schema(IdRole::Given), of(2, Durability::Local)).unwrap();
                fill(&store, name, 100);
                fill(&store, free, 0);
                assert_eq!(store.check(), [], "{case}");
            }
        }
    }
    assert!(renamed_none > 0 && failed_renamed > 0, "{renamed_none} {failed_renamed}: no fault was met in the middle");
}

#[test]
fn a_renamed_collection_keeps_all_but_its_name() {
    for partitions in [1, 2] {
        let world = World::new();
        let store = world.open();
        let settings = Settings { retention_bytes: Some(1 << 40), ..of(partitions, Durability::Local) };
        let old = store.create("t", "c", schema(IdRole::Given), settings.clone()).unwrap();
        fill(&store, "c", 0);
        let keyed = || Write::new(batch(&old.schema(), &events(200, 205))).with_key("k");
        old.write(keyed()).unwrap();
        old.flush().unwrap();
        fill(&store, "c", 500);
        let (before, snapshot) = (all(&store, "c"), old.snapshot());
        let seen = content(&snapshot);
        assert!(store.rename("t", "c", "new").unwrap());
        assert!(store.collection("t", "c").is_none() && !store.rename("t", "c", "other").unwrap());
        let new = store.collection("t", "new").unwrap();
        assert_eq!((new.name(), new.created(), new.settings()), ("new", old.created(), settings.clone()));
        assert_eq!(all(&store, "new"), before);
        // A retry of a write from before the rename is recognised.
        assert_eq!(new.write(keyed()).unwrap().duplicates, 5);
        // Open reads continue, and holders find the collection gone.
        assert_eq!(content(&snapshot), seen);
        assert!(matches!(old.write(Write::new(batch(&old.schema(), &events(900, 901)))), Err(WriteError::Closed)));
        assert!(old.set_settings(Settings { retention_bytes: None, ..settings.clone() }).is_err());
        // The next collection of the name has none of it.
        store.create("t", "c", schema(IdRole::Given), of(1, Durability::Local)).unwrap();
        assert_eq!(all(&store, "c"), [vec![]]);
        // No manifest was written since: the name is that of the folder.
        let backup = store.backup(&BackupScope::everything(), &BTreeMap::new(), &mut Vec::new(), &|| false).unwrap();
        let names: Vec<&str> = backup.collections.iter().map(|saved| saved.name()).collect();
        assert_eq!(names, [&["c"][..], &["new"].repeat(usize::from(partitions))].concat());
        fill(&store, "new", 700);
        let after = all(&store, "new");
        drop((store, old, new));
        world.disk.crash(CrashStyle::Lose);
        let store = world.open();
        assert_eq!((all(&store, "new"), store.check()), (after, vec![]));
        assert_eq!(store.collection("t", "new").unwrap().settings(), settings);
    }
}

#[test]
fn taken_and_impossible_names_are_refused_and_the_collection_stays() {
    let world = World::new();
    let store = world.open();
    for name in ["c", "taken"] {
        store.create("t", name, schema(IdRole::Given), of(1, Durability::Local)).unwrap();
        fill(&store, name, 0);
    }
    let before = all(&store, "c");
    for name in ["taken", "c"] {
        assert!(matches!(store.rename("t", "c", name), Err(StoreError::Exists { .. })), "{name}");
    }
    for name in ["", "../x", "a/b", ".hidden", "nul", "Taken", "ends."] {
        assert!(matches!(store.rename("t", "c", name), Err(StoreError::Invalid(_))), "{name}");
    }
    assert!(!store.rename("t", "absent", "new").unwrap() && !store.rename("other", "c", "new").unwrap());
    assert_eq!(all(&store, "c"), before);
    // A name that differs only in case does not belong to another collection.
    assert!(store.rename("t", "c", "C").unwrap());
    assert_eq!(all(&store, "C"), before);
    // The files that a damaged collection needs for its repair stay in place, under either name.
    store.close().unwrap();
    drop(store);
    for name in ["MANIFEST", "MANIFEST.copy"] {
        world.disk.vanish(&Path::new("/data/tenants/t/taken/p0").join(name)).unwrap();
    }
    let store = world.open();
    assert!(matches!(store.rename("t", "C", "taken"), Err(StoreError::Damaged(_))));
    assert!(matches!(store.rename("t", "taken", "new"), Err(StoreError::Damaged(_))));
    assert_eq!(all(&store, "C"), before);
}

#[test]
fn a_collection_in_memory_keeps_its_events_under_the_new_name() {
    for partitions in [1, 3] {
        for in_memory in [false, true] {
            let world = World::new();
            let given = if in_memory { Options::ephemeral() } else { options() };
            let open = || Store::open(Options { background: false, ..given.clone() }, world.seams()).unwrap();
            let store = open();
            let old = store.create("t", "c", schema(IdRole::Given), of(partitions, Durability::Ephemeral)).unwrap();
            fill(&store, "c", 0);
            old.flush().unwrap();
            fill(&store, "c", 100);
            let before = all(&store, "c");
            assert!(store.rename("t", "c", "new").unwrap());
            assert_eq!(all(&store, "new"), before);
            assert!(store.partitions("t", "c").is_none());
            assert!(matches!(old.write(Write::new(batch(&old.schema(), &events(900, 901)))), Err(WriteError::Closed)));
            // A new collection of the old name is independent.
            store.create("t", "c", schema(IdRole::Given), of(partitions, Durability::Ephemeral)).unwrap();
            fill(&store, "c", 0);
            fill(&store, "new", 200);
            store.partitions("t", "new").unwrap().iter().for_each(|partition| partition.maintain().unwrap());
            let sums = |name: &str| all(&store, name).iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(
                (sums("c"), sums("new")),
                (vec![10; usize::from(partitions)], vec![30; usize::from(partitions)])
            );
            let changed = Settings { retention_bytes: Some(1 << 40), ..of(partitions, Durability::Ephemeral) };
            for partition in store.partitions("t", "new").unwrap().iter() {
                partition.set_settings(changed.clone()).unwrap();
            }
            assert_eq!(store.check(), []);
            if in_memory {
                continue;
            }
            drop((store, old));
            world.disk.crash(CrashStyle::Lose);
            let store = open();
            assert_eq!(store.collection("t", "new").unwrap().settings(), changed, "its definition moved too");
            assert_eq!(all(&store, "new"), vec![vec![]; usize::from(partitions)]);
        }
    }
}

#[test]
fn writes_beside_a_rename_are_stored_or_refused() {
    for durability in [Durability::Local, Durability::Ephemeral] {
        let world = World::new();
        let store = Store::open(Options { background: true, ..options() }, world.seams()).unwrap();
        store.create("t", "c", schema(IdRole::Given), of(1, durability)).unwrap();
        let (next, done) = (AtomicI64::new(0), AtomicBool::new(false));
        let stored = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut stored = Vec::new();
                        let mut held: Option<Arc<Collection>> = None;
                        while !done.load(Ordering::Acquire) {
                            let Some(to) = held.take().or_else(|| store.list("t").first().cloned()) else { continue };
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            if to.write(Write::new(batch(&to.schema(), &events(n, n + 1)))).is_ok() {
                                stored.push(n);
                                held = Some(to);
                            }
                        }
                        stored
                    })
                })
                .collect();
            for turn in 0..20 {
                let names = if turn % 2 == 0 { ("c", "new") } else { ("new", "c") };
                // Some are written in between.
                let from = next.load(Ordering::Relaxed);
                while next.load(Ordering::Relaxed) < from + 5 {
                    std::thread::yield_now();
                }
                assert!(store.rename("t", names.0, names.1).unwrap());
            }
            done.store(true, Ordering::Release);
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<i64>>()
        });
        let mut stored: Vec<String> = stored.into_iter().map(|n| format!("e{n}")).collect();
        stored.sort();
        let found: Vec<String> = all(&store, "c").remove(0).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(found, stored, "{durability:?}");
        assert_eq!(store.check(), []);
    }
}

#[test]
fn a_collection_in_a_bucket_keeps_its_name() {
    let world = World::over_bucket();
    let (store, _) = world.with_collection(IdRole::Given);
    fill(&store, "c", 0);
    let refused = store.rename("t", "c", "new").unwrap_err().to_string();
    assert!(!store.renames() && refused.contains("export it"), "{refused}");
    assert_eq!(all(&store, "c")[0].len(), 10);
}

#[test]
fn a_folder_that_was_renamed_and_not_synced_is_found_under_its_old_name_with_what_was_synced_since() {
    let disk = MemoryDisk::new();
    let at = |name: &str| Path::new("/d").join(name);
    let write = |path: &str| {
        disk.open(&at(path), OpenMode::Create).unwrap();
        disk.sync_dir(at(path).parent().unwrap()).unwrap();
    };
    disk.create_dir(&at("a/inner")).unwrap();
    ["", "/d", "/d/a"].iter().for_each(|folder| disk.sync_dir(&Path::new("/").join(folder)).unwrap());
    write("a/one");
    write("a/inner/two");
    disk.rename(&at("a"), &at("b")).unwrap();
    write("b/inner/three");
    disk.open(&at("b/lost"), OpenMode::Create).unwrap();
    let names = || disk.files().into_iter().map(|(path, _)| path.display().to_string()).collect::<Vec<_>>();
    assert_eq!(names(), ["/d/b/inner/three", "/d/b/inner/two", "/d/b/lost", "/d/b/one"]);
    disk.crash(CrashStyle::Lose);
    assert_eq!(names(), ["/d/a/inner/three", "/d/a/inner/two", "/d/a/one"]);
    disk.rename(&at("a"), &at("b")).unwrap();
    disk.sync_dir(&at("")).unwrap();
    disk.crash(CrashStyle::Lose);
    assert_eq!(names(), ["/d/b/inner/three", "/d/b/inner/two", "/d/b/one"]);
    assert_eq!(disk.list(&at("a")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn disks_rename_folders_alike() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, real): (Arc<dyn Disk>, Arc<dyn Disk>) = (Arc::new(MemoryDisk::new()), Arc::new(RealDisk));
    for (disk, root) in [(memory, Path::new("/d")), (real, folder.path())] {
        for name in ["a/inner", "empty", "full/inner"] {
            disk.create_dir(&root.join(name)).unwrap();
        }
        disk.open(&root.join("a/inner/file"), OpenMode::Create).unwrap();
        let full = disk.rename(&root.join("a"), &root.join("full")).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::DirectoryNotEmpty);
        assert!(disk.rename(&root.join("absent"), &root.join("b")).is_err());
        disk.rename(&root.join("a"), &root.join("empty")).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["empty", "full"]);
        assert_eq!(disk.list(&root.join("empty/inner")).unwrap(), ["file"]);
        disk.open(&root.join("empty/inner/file"), OpenMode::Read).unwrap();
    }
}

#[test]
fn a_real_folder_is_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(Options { background: false, ..Options::at(folder.path()) }, Seams::real()).unwrap();
    let store = open();
    store.create("t", "c", schema(IdRole::Given), of(2, Durability::Local)).unwrap();
    fill(&store, "c", 0);
    let before = all(&store, "c");
    assert!(store.rename("t", "c", "new").unwrap());
    assert_eq!(all(&store, "new"), before);
    store.close().unwrap();
    drop(store);
    let store = open();
    assert_eq!((all(&store, "new"), store.check()), (before, vec![]));
}
