//! Collections that take writes again after a repair although some of their files are damaged. Readable rows are kept,
//! missing ones are reported, and nothing is deleted.

use crate::world::{Event, World, batch, content, options};
use meridian_model::{IdRole, Seq};
use meridian_store::seams::{CrashStyle, Disk, OpenMode};
use meridian_store::{Collection, Options, Repair, Store, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LOST: &str = "/data/tenants/t/c/p0/lost";

fn write(c: &Collection, from: i64, to: i64) -> u64 {
    let events: Vec<Event> = (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect();
    let written = c.write(Write::new(batch(&c.schema(), &events)).replacing().with_key(format!("k{from}"))).unwrap();
    if written.duplicates > 0 { 0 } else { written.position }
}

/// Creates a world in which a flush creates one segment, of more than one chunk.
fn one_segment() -> World {
    World { options: Options { segment_rows_min: 1 << 16, ..options() }, ..World::new() }
}

fn ids(c: &Collection) -> Vec<String> {
    content(&c.snapshot()).into_iter().map(|(id, _, _)| id).collect()
}

/// Ends the server: only synced data is left.
fn ended((store, c): (Store, Arc<Collection>), world: &World) {
    drop((store, c));
    world.disk.crash(CrashStyle::Lose);
}

/// Returns the file of this kind with the lowest number.
fn first(world: &World, kind: &str) -> PathBuf {
    let mut files = world.files(kind);
    files.retain(|(path, _)| !path.starts_with(LOST));
    files.swap_remove(0).0
}

fn bytes_of(world: &World, path: &Path) -> Vec<u8> {
    let file = world.disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Repairs a collection that refused writes; it takes them again, over restarts, at positions above `last`. The damaged
/// files are kept as they were.
#[track_caller]
fn repaired(world: &World, bad: &[&Path], last: u64) -> (Store, Arc<Collection>, Repair) {
    let kept: Vec<Vec<u8>> = bad.iter().map(|path| bytes_of(world, path)).collect();
    let store = world.open();
    assert!(store.collection("t", "c").unwrap().stats().refuses.is_some());
    let [repair] = store.repair().try_into().unwrap();
    assert!(repair.mended, "{repair:#?}");
    assert_eq!((store.check(), store.repair()), (vec![], vec![]), "{repair:#?}");
    for (path, bytes) in bad.iter().zip(kept) {
        assert_eq!(bytes_of(world, &Path::new(LOST).join(path.file_name().unwrap())), bytes);
    }
    let c = store.collection("t", "c").unwrap();
    let (before, position) = (ids(&c).len(), write(&c, 90_000, 90_003));
    assert!(position > last, "{position}");
    ended((store, c), world);
    let (store, c) = world.with_collection(IdRole::Given);
    assert_eq!((store.check(), ids(&c).len()), (vec![], before + 3));
    assert_eq!(write(&c, 91_000, 91_003), position + 1);
    c.delete(&(90_000..90_003).chain(91_000..91_003).map(|n| format!("id-{n}")).collect::<Vec<_>>()).unwrap();
    c.flush().unwrap();
    (store, c, repair)
}

#[test]
fn a_log_with_a_hole_gives_what_reads_of_it_and_says_which_writes_are_missing() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    (0..50).for_each(|i| assert_eq!(write(&c, i * 10, i * 10 + 10), i as u64 + 1));
    c.flush().unwrap();
    let earlier = c.snapshot().seq;
    (50..100).for_each(|i| assert_eq!(write(&c, i * 10, i * 10 + 10), i as u64 + 1));
    let all = ids(&c);
    ended((store, c), &world);
    let path = first(&world, ".log");
    // Approximately within the body of the third record.
    world.disk.flip_bit(&path, 8 * (8192 + 2500)).unwrap();
    let (_store, c, repair) = repaired(&world, &[&path], 100);
    let missing = repair.missing.concat();
    let write: i64 = missing.strip_prefix("the write ").unwrap().parse().unwrap();
    assert!(repair.done.iter().any(|what| what.contains(&format!("the write {write} of 10 events"))), "{repair:#?}");
    let lost: Vec<String> = (write * 10 - 10..write * 10).map(|n| format!("id-{n}")).collect();
    let left: Vec<String> = all.into_iter().filter(|id| !lost.contains(id)).collect();
    assert_eq!((ids(&c), repair.missing.len()), (left, 1));
    assert!(c.snapshot_at(Seq(earlier.0 - 1)).is_err(), "what it showed may be gone");
}

#[test]
fn without_its_newest_file_nobody_knows_where_a_log_ended() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    (0..100).for_each(|i| assert_eq!(write(&c, i * 10, i * 10 + 10), i as u64 + 1));
    ended((store, c), &world);
    let (newest, _) = world.files(".log").pop().unwrap();
    world.disk.vanish(&newest).unwrap();
    let (_store, c, repair) = repaired(&world, &[], 100);
    let last = ids(&c).len() / 10;
    assert!((50..100).contains(&last));
    assert_eq!(repair.missing, [format!("writes after {last}, if there were any: no file records them")]);
}

#[test]
fn of_a_lost_record_of_deaths_replaced_events_stay_dead_and_it_is_said_how_many_are_back() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    write(&c, 0, 100);
    c.flush().unwrap();
    write(&c, 50, 150);
    c.flush().unwrap();
    // Only the log has these.
    write(&c, 140, 160);
    let (all, position) = (ids(&c), c.position());
    c.delete(&["id-7".to_owned(), "id-8".to_owned()]).unwrap();
    ended((store, c), &world);
    let world = {
        let (store, c) = world.with_collection(IdRole::Given);
        c.flush().unwrap();
        assert_eq!(ids(&c).len(), all.len() - 2);
        ended((store, c), &world);
        world
    };
    let (path, _) = world.files(".dead").pop().unwrap();
    world.disk.flip_bit(&path, 8 * 20).unwrap();
    let (_store, c, repair) = repaired(&world, &[&path], position + 1);
    assert_eq!((ids(&c), repair.missing.len()), (all, 1), "{repair:#?}");
    assert!(repair.missing[0].starts_with("deaths of 2 events of 0"), "{repair:#?}");
}

#[test]
fn of_lost_idempotency_keys_it_is_said_how_many_and_the_others_are_remembered() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    write(&c, 0, 10);
    write(&c, 10, 20);
    c.flush().unwrap();
    write(&c, 20, 30);
    c.flush().unwrap();
    write(&c, 30, 40);
    let (all, position) = (ids(&c), c.position());
    ended((store, c), &world);
    let path = first(&world, ".keys");
    let mut bytes = world.disk.vanish(&path).unwrap();
    bytes.truncate(60);
    world.disk.put(&path, bytes);
    let (_store, c, repair) = repaired(&world, &[&path], position);
    assert_eq!((ids(&c), repair.missing.len()), (all, 1), "{repair:#?}");
    assert!(repair.missing[0].starts_with("2 idempotency keys of 0"), "{repair:#?}");
    let again = [0, 10, 20, 30].map(|from| write(&c, from, from + 10) > 0);
    assert_eq!(again, [true, true, false, false]);
}

#[test]
fn writes_in_the_log_are_not_lost_with_blocks_of_a_segment() {
    let world = one_segment();
    let (store, c) = world.with_collection(IdRole::Given);
    write(&c, 0, 5000);
    c.flush().unwrap();
    write(&c, 4990, 5010);
    let position = c.position();
    ended((store, c), &world);
    let path = first(&world, ".rows");
    // A block of the first chunk.
    world.disk.flip_bit(&path, 8 * 60).unwrap();
    let (_store, c, repair) = repaired(&world, &[&path], position);
    let [missing] = repair.missing.as_slice() else { panic!("{repair:#?}") };
    let lost: usize = missing.split(' ').next().unwrap().parse().unwrap();
    let left = ids(&c);
    // Some of the ten that the log replaces were in that chunk.
    assert!((4086..=4096).contains(&lost), "{lost} {repair:#?}");
    assert!((5010 - lost..=5020 - lost).contains(&left.len()), "{lost} {} {repair:#?}", left.len());
    assert!((4990..5010).all(|n| left.contains(&format!("id-{n}"))), "{repair:#?}");
}

#[test]
fn what_is_beside_the_rows_is_made_anew_from_them_wherever_they_are_and_never_in_silence() {
    for (archived, harm) in [(false, "remove"), (false, "tail"), (false, "keys"), (true, "tail"), (true, "keys")] {
        let world = one_segment();
        let (store, c) = world.with_collection(IdRole::Given);
        write(&c, 0, 5000);
        c.flush().unwrap();
        if archived {
            c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
        }
        // The replay searches for these ids.
        write(&c, 10, 20);
        let all = content(&c.snapshot());
        ended((store, c), &world);
        let (path, len) = world.files(".segment").swap_remove(0);
        match harm {
            "remove" => drop(world.disk.vanish(&path).unwrap()),
            // Opening reads the end of the file, but not the pages of keys at its beginning.
            "tail" => world.disk.flip_bit(&path, (len - 20) * 8).unwrap(),
            _ => (40..len / 8).step_by(64).for_each(|at| world.disk.flip_bit(&path, at * 8).unwrap()),
        }
        let store = world.open();
        let c = store.collection("t", "c").unwrap();
        let said = |problems: &[meridian_store::Problem]| {
            problems.iter().any(|p| p.path == path && p.detail.contains("it is rebuilt from its "))
        };
        assert!(said(&store.problems()) && said(&store.check()), "{archived} {harm}: {:?}", store.check());
        assert_eq!((content(&c.snapshot()), c.stats().refuses), (all.clone(), None), "{archived} {harm}");
        ended((store, c), &world);
        let store = world.open();
        assert_eq!(store.check(), [], "{archived} {harm}");
        assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()), all);
    }
}
