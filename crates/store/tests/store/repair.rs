//! Repairs of collections that lost their manifest.

use crate::world::{Event, START, World, batch, content, options, schema};
use meridian_model::{IdRole, Mode, Schema};
use meridian_store::seams::{CrashStyle, Disk, OpenMode};
use meridian_store::{Collection, Repair, Settings, Store, Write};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FOLDER: &str = "/data/tenants/t/c/p0/";

type Found = Vec<(String, u64, i64)>;

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

fn write(c: &Collection, from: i64, to: i64, key: &str) -> u64 {
    let write = Write::new(batch(&c.schema(), &events(from, to))).replacing().with_key(key);
    c.write(write).unwrap().duplicates
}

fn vanish(world: &World, names: &[&str]) {
    for name in names {
        world.disk.vanish(&Path::new(FOLDER).join(name)).unwrap();
    }
}

fn settings() -> Settings {
    Settings { retention_bytes: Some(1 << 40), ..Settings::default() }
}

/// Creates a collection with segments (some archived), dead rows, keys, and a log tail; returns its content too.
fn written(schema: Schema) -> (World, Found) {
    let world = World { options: options(), ..World::new() };
    let store = world.open();
    let c = store.create("t", "c", schema, settings()).unwrap();
    for i in 0..4 {
        write(&c, i * 300, i * 300 + 400, &format!("k{i}"));
        c.flush().unwrap();
        if i == 1 {
            c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
        }
    }
    let some: Vec<String> = c.snapshot().parts.iter().flat_map(|_| ["id-3".to_owned(), "id-4".to_owned()]).collect();
    if c.schema().id == IdRole::Given {
        c.delete(&some[..2]).unwrap();
    }
    c.flush().unwrap();
    write(&c, 5000, 5020, "tail");
    let all = content(&c.snapshot());
    world.disk.crash(CrashStyle::Lose);
    (world, all)
}

fn bytes_of(world: &World, path: &Path) -> Vec<u8> {
    let file = world.disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Returns the file content that cannot be rebuilt.
fn precious(world: &World) -> BTreeSet<Vec<u8>> {
    let made_anew = |path: &PathBuf| {
        let text = path.to_string_lossy();
        text.ends_with(".segment") || text.contains("/log/") || text.ends_with(".new")
    };
    let files = world.files(FOLDER).into_iter().map(|(path, _)| path).filter(|path| !made_anew(path));
    files.map(|path| bytes_of(world, &path)).collect()
}

/// Repairs the only collection; checks that no file content is lost.
#[track_caller]
fn repaired(world: &World) -> (Store, Arc<Collection>, Repair) {
    let before = precious(world);
    let store = world.open();
    let [repair] = store.repair().try_into().unwrap();
    assert!(repair.mended, "{repair:#?}");
    assert_eq!((repair.tenant.as_str(), repair.name.as_str()), ("t", "c"));
    let after = precious(world);
    assert_eq!(before.difference(&after).count(), 0, "{repair:#?}");
    assert_eq!((store.damaged("t"), store.check()), (vec![], vec![]), "{repair:#?}");
    assert_eq!(store.repair(), []);
    let c = store.collection("t", "c").unwrap();
    (store, c, repair)
}

/// Checks that it takes writes, keeps them, and that another start finds all of it.
fn goes_on((store, c): (Store, Arc<Collection>), world: &World, all: &Found) {
    write(&c, 9000, 9010, "after");
    c.flush().unwrap();
    c.maintain().unwrap();
    assert_eq!(content(&c.snapshot()).len(), all.len() + 10);
    drop((store, c));
    let store = world.open();
    assert_eq!(store.check(), []);
    assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()).len(), all.len() + 10);
}

#[test]
fn the_copy_of_a_lost_manifest_brings_everything_back() {
    for role in [IdRole::Given, IdRole::Made] {
        let (world, all) = written(schema(role));
        vanish(&world, &["MANIFEST"]);
        let (store, c, repair) = repaired(&world);
        assert_eq!(repair.missing, Vec::<String>::new());
        assert!(repair.done.iter().any(|what| what.starts_with("MANIFEST.copy names all")), "{repair:#?}");
        assert_eq!((content(&c.snapshot()), c.settings()), (all.clone(), settings()));
        assert_eq!((write(&c, 300, 700, "k1"), write(&c, 5000, 5020, "tail")), (400, 20), "keys are remembered");
        goes_on((store, c), &world, &all);
    }
}

#[test]
fn a_collection_is_rebuilt_from_its_files_where_no_manifest_is_left() {
    for role in [IdRole::Given, IdRole::Made] {
        let (world, all) = written(schema(role));
        vanish(&world, &["MANIFEST", "MANIFEST.copy"]);
        let (store, c, repair) = repaired(&world);
        assert_eq!(content(&c.snapshot()), all, "{role:?} {repair:#?}");
        assert_eq!((c.schema().id, c.schema().fields.len(), c.settings()), (role, 4, Settings::default()));
        for lost in ["settings", "idempotency keys", "deleted"] {
            assert!(repair.missing.iter().any(|what| what.contains(lost)), "{lost}: {repair:#?}");
        }
        // Hashes of ids use a new seed.
        let (id, seq, _) = all.last().unwrap();
        let snapshot = c.snapshot();
        let (part, row) = snapshot.find(id).unwrap().unwrap();
        assert_eq!(part.seqs(row..row + 1).unwrap(), [*seq]);
        drop((snapshot, part));
        goes_on((store, c), &world, &all);
    }
}

#[test]
fn archived_rows_alone_are_enough() {
    let (world, _) = written(schema(IdRole::Given));
    let (store, c) = world.with_collection(IdRole::Given);
    c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
    let all = content(&c.snapshot());
    store.close().unwrap();
    drop((store, c));
    for (path, _) in world.files(FOLDER) {
        if path.extension().is_none_or(|e| e != "parquet") {
            world.disk.vanish(&path).unwrap();
        }
    }
    let (store, c, repair) = repaired(&world);
    let live: BTreeSet<_> = content(&c.snapshot()).into_iter().collect();
    // Files that were listed and then replaced stay for a while: events that only they hold may reappear.
    assert!(all.iter().all(|event| live.contains(event)), "{repair:#?}");
    assert!(repair.missing.iter().any(|what| what.contains("deleted and replaced")), "{repair:#?}");
    drop((store, c));
}

#[test]
fn a_copy_that_is_behind_says_what_files_do_not() {
    let (world, all) = written(schema(IdRole::Given));
    let old = bytes_of(&world, &Path::new(FOLDER).join("MANIFEST"));
    let (store, c) = world.with_collection(IdRole::Given);
    write(&c, 6000, 6100, "later");
    store.close().unwrap();
    drop((store, c));
    for manifest_too in [true, false] {
        let kept: Vec<_> =
            world.files(FOLDER).into_iter().map(|(path, _)| (path.clone(), bytes_of(&world, &path))).collect();
        vanish(&world, &["MANIFEST", "MANIFEST.copy"]);
        world.disk.put(&Path::new(FOLDER).join("MANIFEST.copy"), old.clone());
        if manifest_too {
            world.disk.put(&Path::new(FOLDER).join("MANIFEST"), old.clone());
        }
        let (store, c, repair) = repaired(&world);
        assert_eq!(content(&c.snapshot()).len(), all.len() + 100, "{repair:#?}");
        assert_eq!(c.settings(), settings());
        assert_eq!(write(&c, 6000, 6100, "later"), 100, "keys are remembered");
        drop((store, c));
        for (path, _) in world.files(FOLDER) {
            world.disk.vanish(&path).unwrap();
        }
        kept.into_iter().for_each(|(path, bytes)| world.disk.put(&path, bytes));
    }
}

#[test]
fn what_a_merge_left_behind_is_not_counted_twice() {
    let (world, _) = written(schema(IdRole::Made));
    let (store, c) = world.with_collection(IdRole::Made);
    c.flush().unwrap();
    let all = content(&c.snapshot());
    let inputs: Vec<_> =
        world.files("/segments/").into_iter().map(|(p, _)| (p.clone(), bytes_of(&world, &p))).collect();
    while c.maintain_segments().unwrap() {}
    drop((store, c));
    for (path, bytes) in inputs {
        if !world.files("").iter().any(|(there, _)| *there == path) {
            world.disk.put(&path, bytes);
        }
    }
    vanish(&world, &["MANIFEST", "MANIFEST.copy"]);
    let (store, c, repair) = repaired(&world);
    assert_eq!(content(&c.snapshot()), all, "{repair:#?}");
    assert!(repair.done.iter().any(|what| what.contains("stand in two segments")), "{repair:#?}");
    goes_on((store, c), &world, &all);
}

#[test]
fn mode_latest_shows_what_it_showed() {
    let latest = Schema { object: Some(3), mode: Mode::Latest, ..schema(IdRole::Made) };
    let world = World::new();
    let store = world.open();
    let c = store.create("t", "c", latest, Settings::default()).unwrap();
    let event = |n: i64| Event { n: n % 7, time: START + n * 1_000_000 * [1, -1][n as usize % 2], ..Event::new("", n) };
    for round in 0..5 {
        let events: Vec<Event> = (round * 40..round * 40 + 40).map(event).collect();
        c.write(Write::new(batch(&c.schema(), &events))).unwrap();
        c.flush().unwrap();
    }
    let (shown, history) = (content(&c.snapshot()), content(&c.history()));
    assert_eq!((shown.len(), history.len()), (7, 200));
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    vanish(&world, &["MANIFEST", "MANIFEST.copy"]);
    let (_store, c, repair) = repaired(&world);
    assert_eq!((content(&c.snapshot()), content(&c.history())), (shown, history), "{repair:#?}");
}

#[test]
fn damaged_segments_are_set_aside_and_named_and_the_rest_comes_back() {
    let (world, all) = written(schema(IdRole::Made));
    let rest: Vec<_> = world.files(".parquet").into_iter().map(|(path, _)| path.with_extension("rows")).collect();
    let (lost, len) = world.files(".rows").into_iter().find(|(path, _)| !rest.contains(path)).unwrap();
    world.disk.flip_bit(&lost, (len - 20) * 8).unwrap();
    vanish(&world, &["MANIFEST", "MANIFEST.copy"]);
    let (_store, c, repair) = repaired(&world);
    let name = lost.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(repair.missing.iter().any(|what| what.contains(&name)), "{name}: {repair:#?}");
    let found = content(&c.snapshot());
    assert!(found.len() < all.len() && found.iter().all(|event| all.contains(event)));
    assert!(!world.files(&format!("{FOLDER}lost/{name}.rows")).is_empty());
}

#[test]
fn a_block_that_does_not_read_is_cut_out_of_a_collection_that_is_sound_otherwise() {
    let (world, all) = written(schema(IdRole::Given));
    let rest: Vec<_> = world.files(".parquet").into_iter().map(|(path, _)| path.with_extension("rows")).collect();
    // The largest: all events of a small one may be replaced by now, and then no query reads it.
    let hurt = world.files(".rows").into_iter().filter(|(path, _)| !rest.contains(path)).max_by_key(|(_, len)| *len);
    let (hurt, len) = hurt.unwrap();
    world.disk.flip_bit(&hurt, len / 2 * 8).unwrap();
    let store = world.open();
    assert_eq!(store.check().len(), 1, "{:?}", store.check());
    drop(store);
    let (store, c, repair) = repaired(&world);
    let name = hurt.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(repair.missing.iter().any(|what| what.contains(&name)), "{name}: {repair:#?}");
    let found = content(&c.snapshot());
    assert!(found.len() < all.len() && found.iter().all(|event| all.contains(event)));
    assert!(!world.files(&format!("{FOLDER}lost/{name}.rows")).is_empty());
    goes_on((store, c), &world, &found);
}

#[test]
fn a_block_that_another_file_has_is_no_loss() {
    let (world, all) = written(schema(IdRole::Made));
    let (hurt, len) = world.files(".segment").into_iter().next().unwrap();
    world.disk.flip_bit(&hurt, len / 2 * 8).unwrap();
    let store = world.open();
    assert_eq!(store.repair(), []);
    assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()), all);
}

#[test]
fn what_nothing_describes_is_left_as_it_is() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Made);
    write(&c, 0, 10, "k");
    world.disk.crash(CrashStyle::Lose);
    drop((store, c));
    vanish(&world, &["MANIFEST", "MANIFEST.copy"]);
    let before = world.files(".log");
    let store = world.open();
    let [repair] = store.repair().try_into().unwrap();
    assert!(
        !repair.mended && repair.missing.iter().any(|w| w.contains("nothing says what its events are")),
        "{repair:#?}"
    );
    assert_eq!((store.damaged("t").len(), world.files(".log")), (1, before));
}
