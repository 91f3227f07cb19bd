//! Small stores written by each version, kept in `tests/fixtures/VERSION`, and opened by every run.
//!
//! `make fixture` writes that of the current version, once: from then on the files never change, and every later
//! version must open them. `expected.json` and `records.json` beside the `data` have its content, counted by the
//! program that wrote it and not by the store. `backup` is a backup of it. `0.1.0-early` has formats from before the
//! first release, and no records or backup.

mod features;
mod forms;
mod made;

use features::{batch, feature, line, point};
use forms::{ALL, forms_in};
use made::{readings, routes, ships, sightings, traces};
use meridian_model::{FieldColumn, Projection, Seq};
use meridian_store::seams::{Clock, ManualClock, RealDisk, Seams, SeededRandom};
use meridian_store::{BackupFolder, BackupScope, Collection, Options, Restore, Snapshot, Store, Write, WriteError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600_000_000;
const HOUR: i64 = 3_600_000_000;

/// A saved search, what was sent for outside sources, and the state to resume from.
const SAVED: [(&str, &[u8]); 4] = [
    (
        "00112233445566778899aabbccddeeff",
        br#"{"name":"floods","question":{"keywords":"flood","near":[-0.12,51.5],"radius":20000},
            "created":1767225600000000,"since":{"sightings":{"made":1767225600000000,"position":3}}}"#,
    ),
    ("00112233445566778899aabbccddeeff-seen", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    (
        "looked",
        br#"{"collections":{"sightings":{"made":1767225600000000,"position":5}},
            "waiting":{"00112233445566778899aabbccddeeff":{"sightings":4}}}"#,
    ),
    ("state", br#"{"searches":{},"objects":[]}"#),
];

/// The content of a version's store, by collection.
type Expected = BTreeMap<String, Content>;
/// The records of saved searches, by name.
type Records = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Content {
    position: u64,
    fields: usize,
    /// Events that the collection shows, with their field `n`.
    shown: BTreeMap<String, i64>,
    /// All live events: more in a collection of mode `latest`.
    history: BTreeMap<String, i64>,
    /// Vertices of all shapes that are not kept as points.
    vertices: usize,
    /// Idempotency keys, and the number of events of each.
    keys: BTreeMap<String, u64>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Returns the store of each version. The files beside them are objects of a bucket (`bucket/golden.rs`).
fn versions() -> Vec<PathBuf> {
    let there = std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path());
    there.filter(|path| path.is_dir()).collect()
}

fn options(data: &Path) -> Options {
    Options { background: false, segment_rows_min: 32, ..Options::at(data) }
}

fn seams(clock: Arc<dyn Clock>) -> Seams {
    Seams { disk: Arc::new(RealDisk), clock, random: Arc::new(SeededRandom::new(1)) }
}

fn new_year() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(NEW_YEAR))
}

fn open(data: &Path) -> (Store, Arc<ManualClock>) {
    let clock = new_year();
    (Store::open(options(data), seams(clock.clone())).unwrap(), clock)
}

fn rest(collection: &Collection) {
    collection.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
}

/// Writes the store of this version.
fn write(dir: &Path) {
    assert!(!dir.exists(), "{} is there: what a released version wrote never changes", dir.display());
    let data = dir.join("data");
    let (store, _) = open(&data);
    let mut expected = Expected::new();
    expected.insert("sightings".into(), sightings(&store));
    expected.insert("ships".into(), ships(&store));
    expected.insert("routes".into(), routes(&store));
    expected.insert("traces".into(), traces(&store));
    expected.insert("readings".into(), readings(&store));
    SAVED.iter().for_each(|(name, content)| store.records("saved").put(name, content).unwrap());
    let records = saved(&store);
    // Not closed: writes in memory stay in the log.
    drop(store);
    std::fs::remove_file(data.join("LOCK")).unwrap();
    for entry in expected.keys() {
        let log = data.join("tenants/default").join(entry).join("p0/log");
        for file in std::fs::read_dir(log).unwrap().map(|f| f.unwrap().path()) {
            // Kept for reuse: its content means nothing.
            if file.extension().is_some_and(|e| e == "spare") {
                std::fs::remove_file(file).unwrap();
            }
        }
    }
    std::fs::write(dir.join("expected.json"), serde_json::to_vec(&expected).unwrap()).unwrap();
    std::fs::write(dir.join("records.json"), serde_json::to_vec(&records).unwrap()).unwrap();
    back_up(&data, &dir.join("backup"));
}

/// Backs up a folder, which stays as it is: a backup flushes, so it is made from a copy.
fn back_up(data: &Path, to: &Path) {
    let folder = tempfile::tempdir().unwrap();
    copy(data, folder.path());
    let (store, _) = open(folder.path());
    let backup = BackupFolder::open(Arc::new(RealDisk), to).unwrap();
    let mut tar = Vec::new();
    store.backup(&BackupScope::everything(), &backup.have().unwrap(), &mut tar, &|| false).unwrap();
    backup.receive(&mut tar.as_slice(), &mut |_| {}).unwrap();
    drop(backup);
    std::fs::remove_file(to.join("LOCK")).unwrap();
}

/// Returns the store of this version, written first if requested.
fn ours() -> PathBuf {
    static WRITTEN: Once = Once::new();
    let dir = fixtures().join(env!("CARGO_PKG_VERSION"));
    WRITTEN.call_once(|| {
        if std::env::var_os("MERIDIAN_WRITE_FIXTURE").is_some() {
            write(&dir);
        }
    });
    assert!(dir.exists(), "there is no store of this version in {}: make fixture", fixtures().display());
    dir
}

/// Copies a folder; returns the extensions of its files.
fn copy(from: &Path, to: &Path) -> Vec<String> {
    std::fs::create_dir_all(to).unwrap();
    let mut endings = Vec::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name().into_string().unwrap())).unwrap();
        if path.is_dir() {
            endings.extend(copy(&path, &to.join(&name)));
        } else {
            std::fs::copy(&path, to.join(&name)).unwrap();
            endings.push(name.rsplit('.').next().unwrap().to_owned());
        }
    }
    endings
}

/// Returns ids and `n` of the events in a snapshot, and the vertices of their shapes.
fn shown(snapshot: &Snapshot) -> (BTreeMap<String, i64>, usize) {
    let n = snapshot.schema.fields.iter().position(|field| field.name == "n").unwrap();
    let (mut found, mut vertices) = (BTreeMap::new(), 0);
    for part in snapshot.parts.iter() {
        let rows = 0..part.rows();
        let batch = part.read(rows.clone(), &Projection::all(&snapshot.layout)).unwrap();
        let (seqs, visible) = (part.seqs(rows.clone()).unwrap(), part.visible(rows).unwrap());
        let Some(FieldColumn::Int(n)) = batch.field(n) else { panic!("n is no number") };
        for (row, seq) in seqs.into_iter().enumerate().filter(|(row, _)| visible.value(*row)) {
            assert_eq!(found.insert(batch.id_of(row, Seq(seq)), n.value(row)), None, "an id stands twice");
            // The WKB of a line: nine bytes, then two numbers for each vertex.
            vertices += batch.wkb().map_or(0, |wkb| (wkb.value(row).len() - 9) / 16);
        }
    }
    (found, vertices)
}

fn saved(store: &Store) -> Records {
    let records = store.records("saved");
    let get = |name: String| (name.clone(), records.get(&name).unwrap().unwrap());
    records.names().unwrap().into_iter().map(get).collect()
}

fn content(collection: &Collection, keys: &BTreeMap<String, u64>) -> Content {
    let (shown_now, vertices) = shown(&collection.snapshot());
    let mut content = Content {
        position: collection.position(),
        fields: collection.schema().fields.len(),
        shown: shown_now,
        history: shown(&collection.history()).0,
        vertices,
        keys: BTreeMap::new(),
    };
    for key in keys.keys() {
        // Under a remembered key nothing is stored, whatever the events. Old keys do not know their events.
        let again = batch(&collection.schema(), &[feature("again", "null", 1, "")]);
        let events = match collection.write(Write::new(again).with_key(key)) {
            Err(WriteError::KeyReused { events, .. }) => events,
            written => written.unwrap().duplicates,
        };
        content.keys.insert(key.clone(), events);
    }
    content
}

#[test]
fn stores_of_every_version_hold_what_was_written_to_them_and_take_more() {
    ours();
    for from in versions() {
        let folder = tempfile::tempdir().unwrap();
        let endings = copy(&from.join("data"), folder.path());
        for kind in ["json", "MANIFEST", "NEWEST", "log", "rows", "segment", "parquet", "dead", "hidden", "keys"] {
            assert!(endings.iter().any(|e| e == kind), "{} has no {kind}", from.display());
        }
        let expected: Expected = serde_json::from_slice(&std::fs::read(from.join("expected.json")).unwrap()).unwrap();
        let records: Records = std::fs::read(from.join("records.json"))
            .map_or_else(|_| Records::new(), |bytes| serde_json::from_slice(&bytes).unwrap());
        // As stored, after everything was flushed and merged, and after another start.
        for round in 0..3 {
            let (store, clock) = open(folder.path());
            assert_eq!(store.check(), [], "{}", from.display());
            assert_eq!(store.collections().len(), expected.len());
            assert_eq!(saved(&store), records, "{}", from.display());
            for (name, expected) in &expected {
                let collection = store.collection("default", name).unwrap();
                let found = content(&collection, &expected.keys);
                assert_eq!(&found, expected, "{name} of {}, round {round}", from.display());
                if round == 1 {
                    clock.advance(20 * 60_000_000);
                    collection.flush().unwrap();
                    while collection.maintain_segments().unwrap() {}
                    rest(&collection);
                    assert_eq!(&content(&collection, &expected.keys), expected, "{name} of {}, merged", from.display());
                }
            }
        }
        let (store, _) = open(folder.path());
        for name in expected.keys() {
            let collection = store.collection("default", name).unwrap();
            let shape = match name.as_str() {
                "routes" | "traces" => line(1, 3),
                "readings" => "null".to_owned(),
                _ => point(1),
            };
            let more = batch(&collection.schema(), &[feature("more", &shape, 1, "")]);
            assert_eq!(collection.write(Write::new(more)).unwrap().written, 1, "{name} of {}", from.display());
        }
    }
}

#[test]
fn the_store_of_this_version_is_in_the_forms_that_this_program_writes() {
    let ours = ours();
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("fresh");
    write(&fresh);
    let of = |dir: &Path| [forms_in(&dir.join("data")), forms_in(&dir.join("backup"))];
    let written = of(&fresh);
    for form in ALL {
        assert!(written.iter().flatten().any(|f| f.starts_with(form)), "nothing is {form:?}: {written:#?}");
    }
    assert_eq!(of(&ours), written, "the format changed since {} was written: docs/format.md, Versions", ours.display());
}

#[test]
fn backups_of_every_version_are_restored_as_what_was_backed_up() {
    ours();
    for from in versions() {
        if from.file_name().is_some_and(|name| name == "0.1.0-early") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
        copy(&from.join("backup"), &backup);
        Restore::of(&backup).to_folder(options(&data), seams(new_year()), &mut |_| {}).unwrap();
        let (store, _) = open(&data);
        assert_eq!(store.check(), [], "{}", from.display());
        let json = |name: &str| std::fs::read(from.join(name)).unwrap();
        let records: Records = serde_json::from_slice(&json("records.json")).unwrap();
        assert_eq!(saved(&store), records, "{}", from.display());
        let expected: Expected = serde_json::from_slice(&json("expected.json")).unwrap();
        assert_eq!(store.collections().len(), expected.len());
        for (name, expected) in &expected {
            let collection = store.collection("default", name).unwrap();
            assert_eq!(&content(&collection, &expected.keys), expected, "{name} of {}", from.display());
        }
    }
}
