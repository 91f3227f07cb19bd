//! Archived segments: what other programs read, what is kept, and what is rebuilt.

use crate::world::{DAY, Event, START, World, batch, content as seen};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use bytes::Bytes;
use meridian_model::{IdRole, Projection, Seq};
use meridian_store::seams::{Disk, OpenMode, Random};
use meridian_store::{Collection, Files, Settings, StoreError, Write};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn list(c: &Collection) -> Files {
    c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap()
}

fn bytes(world: &World, path: &Path) -> Bytes {
    let file = world.disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes.into()
}

/// Returns id and `n` of every row of these files, sorted; checks that each point lies in its box.
pub fn content(world: &World, paths: &[PathBuf]) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for path in paths {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes(world, path)).unwrap().build().unwrap();
        for record in reader.map(Result::unwrap) {
            let column = |name: &str| record.column_by_name(name).unwrap().clone();
            let (ids, n) = (column("id"), column("n"));
            let (shapes, boxes) = (column("geometry"), column("bbox"));
            for row in 0..record.num_rows() {
                found.push((ids.as_string::<i32>().value(row).to_owned(), n.as_primitive::<Int64Type>().value(row)));
                assert_eq!(shapes.is_null(row), boxes.is_null(row));
                if shapes.is_valid(row) {
                    let shape = shapes.as_binary::<i32>().value(row);
                    let number = |at: usize| f64::from_le_bytes(shape[at..at + 8].try_into().unwrap());
                    let side = |i: usize| boxes.as_struct().column(i).as_primitive::<Float32Type>().value(row).into();
                    assert!(side(0) <= number(5) && number(5) <= side(2));
                    assert!(side(1) <= number(13) && number(13) <= side(3));
                }
            }
        }
    }
    found.sort();
    found
}

/// Removes, at random, files that archived segments can do without. The manifest decides which are archived: a file
/// being written when the power failed means nothing.
pub fn lose_caches(world: &World, random: &dyn Random) {
    for (manifest, _) in world.files("MANIFEST").into_iter().filter(|(path, _)| path.ends_with("MANIFEST")) {
        // After the frame of 16 bytes.
        let content: serde_json::Value = serde_json::from_slice(&bytes(world, &manifest)[16..]).unwrap();
        for meta in content["segments"].as_array().unwrap().iter().filter(|meta| meta["rest"].is_object()) {
            for extension in ["segment", "rows"] {
                if random.next_u64().is_multiple_of(2) {
                    let name = format!("segments/{:016x}.{extension}", meta["file"].as_u64().unwrap());
                    // Arrow rows may be gone already.
                    let _ = world.disk.remove(&manifest.with_file_name(name));
                }
            }
        }
    }
}

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

fn expected(c: &Collection) -> Vec<(String, i64)> {
    seen(&c.snapshot()).into_iter().map(|(id, _, n)| (id, n)).collect()
}

#[test]
fn listed_files_stay_for_the_time_promised_and_no_longer() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 500)))).unwrap();
    let files = list(&c);
    let before = expected(&c);
    assert_eq!(files.kept_until, START + 3_600_000_000);
    // Deletions and merges replace the segments; the listed files stay unchanged.
    let gone: Vec<String> = (0..400).map(|n| format!("id-{n}")).collect();
    c.delete(&gone).unwrap();
    let second = list(&c);
    assert_eq!(content(&world, &second.paths), expected(&c));
    assert!(second.paths.iter().all(|path| !files.paths.contains(path)));
    assert_eq!(content(&world, &files.paths), before);
    drop((store, c));
    world.clock.advance(3_000_000_000);
    let (store, c) = world.with_collection(IdRole::Given);
    c.maintain().unwrap();
    assert_eq!(content(&world, &files.paths), before);
    // Another list of the same files keeps them longer.
    let third = list(&c);
    assert_eq!(third.paths, second.paths);
    world.clock.advance(700_000_000);
    c.maintain().unwrap();
    assert_eq!(content(&world, &third.paths), expected(&c));
    assert!(files.paths.iter().all(|path| world.files(".parquet").iter().all(|(there, _)| there != path)));
    assert_eq!(store.check(), []);
}

#[test]
fn page_tokens_outlive_a_fold() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 3000)))).unwrap();
    let (token, before) = (c.snapshot().seq, seen(&c.snapshot()));
    c.delete(&(0..1000).map(|n| format!("id-{n}")).collect::<Vec<_>>()).unwrap();
    let files = list(&c);
    assert_eq!(content(&world, &files.paths).len(), 2000);
    assert_eq!(seen(&c.snapshot_at(token).unwrap()), before);
    // Once no page token can return to it, the dead rows are gone.
    world.clock.advance(302_000_000);
    c.maintain().unwrap();
    assert_eq!(c.stats().dead_rows, 0);
    assert!(c.snapshot_at(token).is_err());
    assert_eq!(content(&world, &list(&c).paths), expected(&c));
}

#[test]
fn an_archived_segment_is_served_without_its_caches() {
    let mut world = World::new();
    world.options.serving_bytes = 0;
    let (store, c) = world.with_collection(IdRole::Made);
    c.write(Write::new(batch(&c.schema(), &events(0, 20_000)))).unwrap();
    let before = seen(&c.snapshot());
    c.flush().unwrap();
    store.trim_serving();
    assert!(!world.files(".rows").is_empty(), "rows that are not archived are no cache");
    let files = list(&c);
    store.trim_serving();
    assert_eq!((world.files(".rows"), c.stats().rows_bytes), (vec![], 0));
    assert!(c.stats().rest_bytes > 0);
    assert_eq!(seen(&c.snapshot()), before);
    drop((store, c));
    for (path, _) in world.files(".segment") {
        world.disk.remove(&path).unwrap();
    }
    let (store, c) = world.with_collection(IdRole::Made);
    assert_eq!(store.problems(), []);
    assert_eq!(seen(&c.snapshot()), before);
    assert_eq!(store.check(), []);
    assert_eq!(list(&c).paths, files.paths);
}

/// The trees of archived segments count and stay; of their Arrow rows the least recently read are removed first.
#[test]
fn a_budget_for_two_of_three_keeps_the_rows_read_last() {
    let total = |world: &World| -> u64 {
        [".segment", ".rows"].iter().flat_map(|kind| world.files(kind)).map(|(_, bytes)| bytes).sum()
    };
    for nearly_three in [false, true] {
        let mut world = World::new();
        // One segment per flush.
        world.options.segment_rows_min = 1 << 16;
        let (store, c) = world.with_collection(IdRole::Given);
        for from in [0, 2000, 4000] {
            c.write(Write::new(batch(&c.schema(), &events(from, from + 2000)))).unwrap();
            c.flush().unwrap();
        }
        assert_eq!(list(&c).paths.len(), 3);
        let (before, rows) = (seen(&c.snapshot()), world.files(".rows"));
        let third = rows[1].1;
        world.options.serving_bytes = total(&world) - if nearly_three { 1 } else { third };
        drop((store, c));
        let (store, c) = world.with_collection(IdRole::Given);
        let snapshot = c.snapshot();
        for at in [1, 2, 0] {
            let part = &snapshot.parts[at];
            part.read(0..part.rows(), &Projection::all(&snapshot.layout)).unwrap();
            assert_eq!(Seq(part.seqs(0..1).unwrap()[0]).position(), at as u64 + 1);
        }
        c.maintain().unwrap();
        store.trim_serving();
        assert!(total(&world) <= world.options.serving_bytes);
        assert_eq!(world.files(".rows"), [rows[0].clone(), rows[2].clone()]);
        assert_eq!(seen(&c.snapshot()), before);
        assert_eq!(store.check(), []);
    }
}

#[test]
fn a_field_added_later_is_null_in_files_written_before() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 100)))).unwrap();
    list(&c);
    let field = meridian_model::Field {
        name: "later".into(),
        kind: meridian_model::FieldType::Float,
        required: false,
        title: None,
    };
    c.add_fields(vec![field]).unwrap();
    c.delete(&["id-7".to_owned()]).unwrap();
    let files = list(&c);
    // The rewritten file has the field.
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes(&world, &files.paths[0])).unwrap();
    assert_eq!(reader.schema().field_with_name("later").unwrap().data_type(), &arrow_schema::DataType::Float64);
    assert_eq!(content(&world, &files.paths), expected(&c));
}

#[test]
fn quiet_segments_come_to_rest_by_themselves() {
    let mut world = World::new();
    world.options.archive_rows_min = 1000;
    world.options.segment_rows_min = 10_000;
    let (_store, c) = world.with_collection(IdRole::Given);
    c.write(Write::new(batch(&c.schema(), &events(0, 5000)))).unwrap();
    c.flush().unwrap();
    c.maintain().unwrap();
    assert!(world.files(".parquet").is_empty());
    world.clock.advance(DAY / 1000);
    c.maintain().unwrap();
    assert!(!world.files(".parquet").is_empty());
}

#[test]
fn an_ephemeral_collection_has_no_files() {
    let world = World::new();
    let store = world.open();
    let settings = Settings { durability: meridian_store::Durability::Ephemeral, ..Settings::default() };
    let c = store.create("t", "e", crate::world::schema(IdRole::Made), settings).unwrap();
    let error = c.files(Instant::now(), &|| false).unwrap_err();
    assert!(matches!(&error, StoreError::Invalid(_)) && error.to_string().contains("ephemeral"), "{error}");
}
