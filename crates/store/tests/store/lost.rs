//! Manifests that are missing, damaged or older than the files beside them: nothing is deleted, and nothing is served
//! silently.

use crate::world::{Event, World, batch, content, schema};
use meridian_model::IdRole;
use meridian_store::seams::{CrashStyle, Disk, OpenMode};
use meridian_store::{Settings, Store, StoreError, Write, WriteError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MANIFEST: &str = "/data/tenants/t/c/p0/MANIFEST";
const COPY: &str = "/data/tenants/t/c/p0/MANIFEST.copy";
const JUNK: &str = "/data/tenants/t/c/p0/segments/00000000000000ff.segment";

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

fn write(c: &meridian_store::Collection, from: i64, to: i64) {
    c.write(Write::new(batch(&c.schema(), &events(from, to))).replacing().with_key(format!("k{from}"))).unwrap();
}

/// Creates a closed store: `c` has segments, one of them archived, dead rows, keys and a log tail; there is another
/// collection.
fn written(role: IdRole) -> (World, Vec<(String, u64, i64)>) {
    let world = World::new();
    let (store, c) = world.with_collection(role);
    let other = store.create("t", "other", schema(role), Settings::default()).unwrap();
    write(&other, 0, 20);
    for i in 0..3 {
        write(&c, i * 300, i * 300 + 400);
        c.flush().unwrap();
        if i == 1 {
            c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
        }
    }
    write(&c, 5000, 5010);
    let all = content(&c.snapshot());
    world.disk.crash(CrashStyle::Lose);
    (world, all)
}

fn read(world: &World, path: &Path) -> Vec<u8> {
    let file = world.disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Returns every file of the collection, with its content.
fn files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    world.files("/t/c/p0/").into_iter().map(|(path, _)| (path.clone(), read(world, &path))).collect()
}

/// Checks that the collection is reported as damaged, its name is taken, and the other one works.
#[track_caller]
fn set_apart(store: &Store, says: &str) {
    assert!(store.collection("t", "c").is_none());
    let damaged = store.damaged("t");
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    let text = damaged[0].to_string();
    assert!(text.contains("the collection c is damaged") && text.contains(MANIFEST) && text.contains(says), "{text}");
    assert!(store.problems().contains(&damaged[0].problem) && store.check().contains(&damaged[0].problem));
    let made = store.create("t", "c", schema(IdRole::Made), Settings::default());
    assert!(matches!(&made, Err(StoreError::Damaged(d)) if **d == damaged[0]), "{made:?}");
    let dropped = store.drop_collection("t", "c");
    assert!(matches!(dropped, Err(StoreError::Damaged(_))), "{dropped:?}");
    let other = store.collection("t", "other").unwrap();
    let at = other.stats().events as i64;
    write(&other, at, at + 1);
    other.flush().unwrap();
    assert_eq!(other.stats().events as i64, at + 1);
}

#[test]
fn a_collection_whose_manifest_is_gone_is_named_and_nothing_of_it_is_deleted() {
    type Harm = fn(&[u8]) -> Option<Vec<u8>>;
    let harms: [(&str, Harm); 5] = [
        ("missing", |_| None),
        ("checksum", |good| Some(good.iter().enumerate().map(|(i, b)| b ^ u8::from(i == 300)).collect())),
        ("checksum", |good| Some(good.iter().enumerate().map(|(i, b)| b ^ if i == 8 { 6 } else { 0 }).collect())),
        ("early", |_| Some(Vec::new())),
        ("does not begin", |good| Some(vec![0; good.len()])),
    ];
    for (says, harm) in harms {
        for role in [IdRole::Given, IdRole::Made] {
            let (world, all) = written(role);
            let good = world.disk.vanish(Path::new(MANIFEST)).unwrap();
            if let Some(bad) = harm(&good) {
                world.disk.put(Path::new(MANIFEST), bad);
            }
            let before = files(&world);
            for _ in 0..2 {
                let store = world.open();
                set_apart(&store, says);
                store.close().unwrap();
                drop(store);
                assert_eq!(files(&world), before, "{says}");
            }
            world.disk.put(Path::new(MANIFEST), good);
            let (store, c) = world.with_collection(role);
            assert_eq!((content(&c.snapshot()), store.check()), (all, vec![]), "{says}");
        }
    }
}

#[test]
fn a_manifest_that_is_lost_while_the_store_is_open_is_written_again() {
    let (world, all) = written(IdRole::Given);
    let (store, c) = world.with_collection(IdRole::Given);
    world.disk.remove(Path::new(MANIFEST)).unwrap();
    assert!(store.check().iter().any(|p| p.path == Path::new(MANIFEST)), "{:?}", store.check());
    c.flush().unwrap();
    assert_eq!(store.check(), []);
    drop((store, c));
    assert_eq!(content(&world.with_collection(IdRole::Given).1.snapshot()), all);
}

#[test]
fn a_collection_without_events_is_not_forgotten_with_its_manifest() {
    let world = World::new();
    drop(world.with_collection(IdRole::Given));
    world.disk.vanish(Path::new(MANIFEST)).unwrap();
    let store = world.open();
    assert_eq!(store.damaged("t").len(), 1);
    // A collection whose creation was interrupted never had a copy.
    drop(store);
    world.disk.vanish(Path::new(COPY)).unwrap();
    world.disk.put(Path::new("/data/tenants/t/c/p0/MANIFEST.new"), b"half".to_vec());
    let (store, _c) = world.with_collection(IdRole::Given);
    assert_eq!(store.problems(), []);
}

#[test]
fn a_log_of_spare_files_alone_is_no_collection_that_was_never_made() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    write(&c, 0, 10);
    c.delete(&events(0, 10).into_iter().map(|e| e.id).collect::<Vec<_>>()).unwrap();
    c.flush().unwrap();
    store.close().unwrap();
    drop((store, c));
    for (path, _) in world.files("/t/c/p0/") {
        if !path.to_string_lossy().ends_with(".spare") {
            world.disk.vanish(&path).unwrap();
        }
    }
    let spares = world.files(".spare");
    assert!(!spares.is_empty());
    let store = world.open();
    assert!(store.damaged("t")[0].problem.detail.contains("log/"), "{:?}", store.damaged("t"));
    assert!(store.create("t", "c", schema(IdRole::Made), Settings::default()).is_err());
    assert_eq!(world.files(".spare"), spares);
}

#[test]
fn an_older_manifest_in_the_place_of_the_newest_is_not_believed() {
    for both in [false, true] {
        let (world, all) = written(IdRole::Given);
        let old = read(&world, Path::new(MANIFEST));
        let newest = {
            let (store, c) = world.with_collection(IdRole::Given);
            write(&c, 6000, 6100);
            store.close().unwrap();
            let newest = [MANIFEST, COPY].map(|path| (path, read(&world, Path::new(path))));
            world.disk.put(Path::new(MANIFEST), old.clone());
            if both {
                world.disk.put(Path::new(COPY), old);
            }
            newest
        };
        let before = files(&world);
        let store = world.open();
        if both {
            // Nothing proves that the manifest is not the newest, except for the files.
            let c = store.collection("t", "c").unwrap();
            assert!(store.problems().iter().any(|p| p.detail.contains("writes up to")), "{:?}", store.problems());
            assert!(!c.snapshot().missing.is_empty());
            let refused = c.write(Write::new(batch(&c.schema(), &events(7000, 7001))));
            assert!(matches!(&refused, Err(WriteError::Refused(why)) if why.contains("neither")), "{refused:?}");
            assert!(c.maintain().is_ok());
        } else {
            set_apart(&store, "older than its copy");
        }
        store.close().unwrap();
        drop(store);
        let after = files(&world);
        assert!(before.keys().all(|path| after.contains_key(path)), "both: {both}");
        newest.into_iter().for_each(|(path, bytes)| world.disk.put(Path::new(path), bytes));
        let (store, c) = world.with_collection(IdRole::Given);
        assert_eq!((content(&c.snapshot()).len(), store.check()), (all.len() + 100, vec![]), "both: {both}");
    }
}

#[test]
fn files_that_no_manifest_names_go_only_where_they_are_proven_to_be_leftovers() {
    // Beside a manifest whose copy agrees.
    let (world, all) = written(IdRole::Given);
    world.disk.put(Path::new(JUNK), b"half a segment".to_vec());
    drop(world.open());
    assert!(world.files(JUNK).is_empty());
    // Beside an unproven manifest, and beside damage.
    let harms: [fn(&World); 3] = [
        |world| drop(world.disk.vanish(Path::new(COPY)).unwrap()),
        |world| world.disk.flip_bit(Path::new(COPY), 8 * 300).unwrap(),
        |world| {
            let keys = world.files(".keys")[0].0.clone();
            world.disk.flip_bit(&keys, 200).unwrap();
        },
    ];
    for harm in harms {
        let (world, _) = written(IdRole::Given);
        world.disk.put(Path::new(JUNK), b"half a segment".to_vec());
        harm(&world);
        let (store, c) = world.with_collection(IdRole::Given);
        assert_eq!(store.problems().len(), 1, "{:?}", store.problems());
        assert_eq!(read(&world, Path::new(JUNK)), b"half a segment");
        assert_eq!(content(&c.snapshot()), all);
        // New files have numbers of another epoch.
        if c.stats().refuses.is_none() {
            write(&c, 8000, 8100);
            c.flush().unwrap();
            assert!(!world.files("0000010000000001.").is_empty());
            drop((store, c));
            assert_eq!(world.open().check(), []);
            assert!(world.files(JUNK).is_empty(), "the copy vouches again");
        }
    }
}

#[test]
fn a_drop_that_was_broken_off_is_ended_unless_its_mark_does_not_read() {
    for readable in [true, false] {
        let (world, _) = written(IdRole::Given);
        let mut mark = world.disk.vanish(Path::new(MANIFEST)).unwrap();
        if !readable {
            mark[40] ^= 1;
        }
        world.disk.put(Path::new("/data/tenants/t/c/p0/DROPPED"), mark);
        let before = files(&world);
        let store = world.open();
        if readable {
            assert!(store.collection("t", "c").is_none() && store.damaged("t").is_empty());
            assert_eq!(files(&world), BTreeMap::new());
        } else {
            set_apart(&store, "mark of a drop");
            assert_eq!(files(&world), before);
        }
    }
}

#[test]
fn a_collection_of_a_newer_format_is_set_apart_and_the_others_are_served() {
    let kinds: [(&str, Harm); 2] = [("MANIFEST", frame_of_version_7), (".segment", header_of_version_7)];
    for (kind, make) in kinds {
        let (world, _) = written(IdRole::Given);
        let path =
            world.files("/t/c/p0/").into_iter().find(|(path, _)| path.to_string_lossy().ends_with(kind)).unwrap().0;
        let mut bytes = read(&world, &path);
        make(&mut bytes);
        world.disk.put(&path, bytes);
        let before = files(&world);
        let store = world.open();
        let damaged = store.why_damaged("t", "c").unwrap();
        assert_eq!(damaged.problem.path, path);
        let text = damaged.to_string();
        assert!(text.contains("format version 7") && text.contains("newer"), "{text}");
        assert_eq!(store.collection("t", "other").unwrap().stats().events, 20);
        assert_eq!(files(&world), before);
    }
}

/// Harms the bytes of a file.
type Harm = fn(&mut [u8]);

fn frame_of_version_7(bytes: &mut [u8]) {
    bytes[8] = 7;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

fn header_of_version_7(bytes: &mut [u8]) {
    bytes[8] = 7;
    let crc = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn a_damaged_marker_is_written_anew_where_collections_show_whose_folder_it_is() {
    let harms: [fn(&World, &Path); 2] = [
        |world, path| world.disk.flip_bit(path, 8 * 12 + 1).unwrap(),
        |world, path| drop(world.disk.vanish(path).unwrap()),
    ];
    for harm in harms {
        let (world, all) = written(IdRole::Given);
        let marker = Path::new("/data/meridian.json");
        harm(&world, marker);
        let store = world.open();
        let problems = store.check();
        assert!(matches!(&problems[..], [p] if p.path == marker && p.detail.contains("rewritten")), "{problems:?}");
        assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()), all);
        drop(store);
        assert_eq!(world.open().check(), []);
    }
    // A newer version, under a valid checksum.
    let (world, _) = written(IdRole::Given);
    let body = "7,\"program\":\"meridian\",\"created\":1";
    let text = format!("{{\"format\":{body},\"crc32c\":{}}}\n", crc32c::crc32c(body.as_bytes()));
    world.disk.put(Path::new("/data/meridian.json"), text.into_bytes());
    let error = Store::open(world.options.clone(), world.seams()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 7, supported: 1, .. }), "{error}");
}
