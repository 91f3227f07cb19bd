//! `meridian check` on folders with one wrong byte in one file, and on folders that it must leave unchanged.

use crate::common::{self, Server, meridian, meridian_with_input};
use meridian_model::builder::Value;
use meridian_model::{BatchBuilder, Field, FieldType, IdRole, Schema, TimeRole};
use meridian_store::seams::Seams;
use meridian_store::{Collection, Options, Settings, Store, Write};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // A killed server leaves its control socket behind, which has no content.
        match path.metadata().unwrap() {
            of if of.is_dir() => files(&path, into),
            of if of.is_file() => into.push(path),
            _ => {}
        }
    }
    into.sort();
}

/// Returns name, length and hash of every file except the lock.
fn state(folder: &Path) -> Vec<(PathBuf, usize, u64)> {
    let mut all = Vec::new();
    files(folder, &mut all);
    all.retain(|path| !path.ends_with("LOCK"));
    let described = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        (path, bytes.len(), hasher.finish())
    };
    all.into_iter().map(described).collect()
}

/// Returns CSV rows with ids that begin with this letter.
fn rows(letter: char, count: u32) -> String {
    let row = |n| format!("{letter}{n},{}.5,{},2026-01-02T00:00:{:02}Z,{n}\n", n % 170, n % 80, n % 60);
    format!("id,lon,lat,when,size\n{}", (0..count).map(row).collect::<String>())
}

/// Returns a folder with segments, dead rows, idempotency keys and a log tail, left behind by a killed server.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let args = ["load", "spots", "-", "--format", "csv", "--data", at];
    meridian_with_input(&args, rows('a', 300).as_bytes()).ended(0);
    let server = Server::start(folder.path());
    let gone = common::agent().delete(format!("{}/collections/spots/items/a7", server.url)).call().unwrap();
    assert!(gone.status().is_success(), "{}", gone.status());
    assert_eq!(server.stop("TERM"), Some(0));
    let server = Server::start(folder.path());
    for letter in ['b', 'c'] {
        let (status, text) =
            server.post("/collections/spots/items", "text/csv", None, rows(letter, 20).as_bytes()).unwrap();
        assert!(matches!(status, 200 | 201), "{status} {text}");
    }
    server.kill();
    folder
}

#[test]
fn check_names_the_file_in_which_a_byte_is_wrong() {
    let folder = folder();
    let at = folder.path().to_str().unwrap();
    let before = state(folder.path());
    let sound = meridian(&["check", "--data", at]).ended(0);
    assert!(sound.out.contains("in order"), "{}", sound.out);
    assert_eq!(state(folder.path()), before);

    let mut all = Vec::new();
    files(folder.path(), &mut all);
    for kind in ["meridian.json", "MANIFEST", "NEWEST", ".log", ".segment", ".dead", ".keys"] {
        // The newest if there are several.
        let Some(path) = all.iter().rfind(|p| p.to_str().unwrap().ends_with(kind)) else {
            panic!("there is no {kind} among {all:?}");
        };
        let good = std::fs::read(path).unwrap();
        let mut bad = good.clone();
        // In the log, the first record after its header.
        let place = if kind == ".log" { 8192 + 60 } else { bad.len() / 2 };
        bad[place] ^= 4;
        std::fs::write(path, &bad).unwrap();
        let run = meridian(&["check", "--data", at]);
        let said = format!("{}{}", run.out, run.err);
        assert_eq!(run.code, 1, "{kind}: {said}");
        assert!(said.contains(path.to_str().unwrap()), "{kind} is not named: {said}");
        std::fs::write(path, &good).unwrap();

        std::fs::remove_file(path).unwrap();
        let run = meridian(&["check", "--data", at]);
        let said = format!("{}{}", run.out, run.err);
        assert_ne!(run.code, 0, "{kind} is missing: {said}");
        assert!(said.contains(path.file_name().unwrap().to_str().unwrap()), "missing {kind} is not named: {said}");
        std::fs::write(path, &good).unwrap();
    }
    // A check changes nothing: everything is as before.
    meridian(&["check", "--data", at]).ended(0);
    assert_eq!(common::count_in_folder("spots", folder.path()), 339);
}

/// Opens a folder with quickly expiring file lists, without background work.
fn open(folder: &Path) -> Store {
    let options = Options { background: false, files_memory: Duration::ZERO, ..Options::at(folder) };
    Store::open(options, Seams::real()).unwrap()
}

fn write(c: &Collection, ids: std::ops::Range<i64>) {
    let mut builder = BatchBuilder::new(c.schema());
    for id in ids {
        builder.set_id(id.to_string()).unwrap();
        builder.set(0, Value::Time(id * 1_000_000)).unwrap();
        builder.end_event().unwrap();
    }
    c.write(Write::new(builder.finish().unwrap())).unwrap();
}

/// Makes a folder with overdue maintenance. It has events past their retention, four segments to merge, a file of an
/// expired list, and a log tail.
fn overdue(folder: &Path) {
    let store = open(folder);
    let at = Field { name: "at".into(), kind: FieldType::Time, required: true, title: None };
    let schema = Schema { fields: vec![at], time: TimeRole::Instant(0), id: IdRole::Given, ..Schema::default() };
    let settings = Settings { retention: Some(Duration::from_secs(86_400)), ..Settings::default() };
    let c = store.create("default", "old", schema, settings).unwrap();
    let list = || c.files(Instant::now() + common::PATIENCE, &|| false).unwrap().paths;
    write(&c, 0..1000);
    let listed = list();
    c.delete(&["7".to_owned()]).unwrap();
    assert!(list().iter().all(|path| !listed.contains(path)) && listed.iter().all(|path| path.exists()));
    for round in 1..5 {
        write(&c, round * 1000..(round + 1) * 1000);
        c.flush().unwrap();
    }
    write(&c, 5000..6000);
}

#[test]
fn a_check_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    overdue(folder.path());
    let before = state(folder.path());
    meridian(&["check", "--data", folder.path().to_str().unwrap()]).ended(0);
    assert_eq!(state(folder.path()), before);
    // There was something to remove all the while.
    let expired = open(folder.path()).collection("default", "old").unwrap().expire().unwrap();
    assert_eq!(expired.unwrap().expired, 5999);

    let empty = tempfile::tempdir().unwrap();
    meridian(&["check", "--data", empty.path().to_str().unwrap()]).ended(2).says(&["is empty"]);
    assert!(std::fs::read_dir(empty.path()).unwrap().next().is_none());
}

/// Copies a folder recursively.
fn copy(from: &Path, to: &Path) {
    let mut all = Vec::new();
    files(from, &mut all);
    for path in all {
        let there = to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(there.parent().unwrap()).unwrap();
        std::fs::copy(&path, there).unwrap();
    }
}

/// Returns a [`folder`] with another collection of 50 events.
fn folder_of_two() -> tempfile::TempDir {
    let folder = folder();
    let args = ["load", "other", "-", "--format", "csv", "--data", folder.path().to_str().unwrap()];
    meridian_with_input(&args, rows('o', 50).as_bytes()).ended(0);
    folder
}

#[test]
fn a_collection_that_lost_its_manifest_is_left_alone_until_a_repair_puts_it_together() {
    let good = folder_of_two();
    for (lost, all_known) in [(&["MANIFEST"][..], true), (&["MANIFEST", "MANIFEST.copy"][..], false)] {
        let folder = tempfile::tempdir().unwrap();
        copy(good.path(), folder.path());
        let at = folder.path().to_str().unwrap();
        let partition = folder.path().join("tenants/default/spots/p0");
        lost.iter().for_each(|name| std::fs::remove_file(partition.join(name)).unwrap());
        let before = state(&partition);

        let check = meridian(&["check", "--data", at]).ended(1);
        assert!(check.out.contains("p0/MANIFEST: it is missing") && check.out.contains("--repair"), "{}", check.out);
        let args = ["load", "spots", "-", "--format", "csv", "--data", at];
        meridian_with_input(&args, rows('z', 5).as_bytes()).ended(3).says(&["the collection spots is damaged"]);
        let server = Server::start(folder.path());
        assert_eq!((server.get("/collections/spots").0, server.get("/readyz").0), (503, 503));
        let (code, _) = server.post("/collections/other/items", "text/csv", None, rows('p', 5).as_bytes()).unwrap();
        assert!(matches!(code, 200 | 201), "{code}");
        assert_eq!(server.stop("TERM"), Some(0));
        assert_eq!(state(&partition), before, "nothing of it is touched");

        let repair = meridian(&["check", "--repair", "--data", at]);
        let said = format!("{}{}", repair.out, repair.err);
        assert!(said.contains("the collection spots is repaired"), "{said}");
        assert_eq!(
            (repair.code, said.contains("missing: its settings")),
            (i32::from(!all_known), !all_known),
            "{said}"
        );
        meridian(&["check", "--data", at]).ended(0);
        assert_eq!(common::count_in_folder("spots", folder.path()), 339, "{said}");
        assert_eq!(common::count_in_folder("other", folder.path()), 55);
    }
}

/// Damage done to a file.
type Harm = fn(&Path);

#[test]
fn harm_of_any_kind_to_any_file_is_mended_or_named_and_never_stops_the_rest() {
    let good = folder_of_two();
    let kinds = ["meridian.json", "MANIFEST", "MANIFEST.copy", "NEWEST", ".segment", ".rows", ".dead", ".keys"];
    let harms: [(&str, Harm); 5] = [
        ("flip", |path| edit(path, |bytes| bytes[8] ^= 4)),
        ("cut", |path| edit(path, |bytes| bytes.truncate(bytes.len() / 2))),
        ("zero", |path| edit(path, |bytes| bytes.fill(0))),
        ("remove", |path| std::fs::remove_file(path).unwrap()),
        ("append", |path| edit(path, |bytes| bytes.extend(b"more"))),
    ];
    for kind in kinds {
        for (harm, does) in harms {
            let folder = tempfile::tempdir().unwrap();
            copy(good.path(), folder.path());
            let mut all = Vec::new();
            files(folder.path(), &mut all);
            let path = all.iter().find(|p| p.ends_with(kind) || p.to_string_lossy().ends_with(kind)).unwrap();
            does(path);
            let run = meridian(&["check", "--data", folder.path().to_str().unwrap()]);
            let said = format!("{harm} of {}: {}{}", path.display(), run.out, run.err);
            let named = run.out.contains(&*path.to_string_lossy());
            // Duplicated data may be repaired silently, as long as nothing is lost.
            assert!(matches!((run.code, named), (1, true) | (0, _)), "{said}");
            // The first one by name is damaged, if any.
            let hurt = if path.components().any(|c| c.as_os_str() == "other") { "other" } else { "spots" };
            let store = open(folder.path());
            let whole = |name: &str| run.code == 0 || name != hurt;
            for (name, events) in [("spots", 339), ("other", 50)].into_iter().filter(|(name, _)| whole(name)) {
                assert_eq!(store.collection("default", name).unwrap().stats().events, events, "{said}");
            }
        }
    }
}

fn edit(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn acknowledged_writes_missing_at_the_end_of_the_log_are_named_and_the_server_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let server = Server::start(folder.path());
    server.create("spots", "n:Integer,*geom:Point");
    for n in 0..50 {
        let body = format!("n,lon,lat\n{n},1,2\n");
        assert_eq!(server.post("/collections/spots/items", "text/csv", None, body.as_bytes()).unwrap().0, 201);
    }
    server.kill();
    let mut all = Vec::new();
    files(folder.path(), &mut all);
    let path = all.iter().find(|path| path.extension().is_some_and(|e| e == "log")).unwrap();
    let good = std::fs::read(path).unwrap();
    let end = good.iter().rposition(|byte| *byte != 0).unwrap();
    let half = 8192 + (end - 8192) / 2;
    // The last byte alone as well: the killed server had acknowledged its last write.
    for (from, filler) in [(half, None), (half, Some(0)), (half, Some(0xff)), (end, Some(0)), (100, Some(0)), (0, None)]
    {
        let mut bad = good.clone();
        match filler {
            None => bad.truncate(from),
            Some(filler) => bad[from..].fill(filler),
        }
        std::fs::write(path, &bad).unwrap();
        let run = meridian(&["check", "--data", at]).ended(1);
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains(path.to_str().unwrap()) && said.contains("missing"), "{from} {filler:?}: {said}");
    }
    std::fs::write(path, &good[..half]).unwrap();
    let server = Server::start(folder.path());
    let (status, text) = server.get("/readyz");
    assert!(status == 503 && text.contains("spots"), "{status} {text}");
    server.kill();
    let hurt = tempfile::tempdir().unwrap();
    copy(folder.path(), hurt.path());
    // Nothing was flushed.
    std::fs::create_dir(hurt.path().join("tenants/default/spots/p0/segments")).unwrap();
    std::fs::write(path, &good).unwrap();
    meridian(&["check", "--data", at]).ended(0);
    assert_eq!(common::count_in_folder("spots", folder.path()), 50);

    // Without the good file, a repair keeps what exists and reports what is missing, and the server accepts writes.
    let at = hurt.path().to_str().unwrap();
    let says = |args: &[&str], words: &[&str]| {
        let out = meridian(&[&["check", "--data", at], args].concat()).ended(1).out;
        assert!(words.iter().all(|word| out.contains(word)), "{out}");
    };
    says(&[], &["the collection spots accepts no writes", "check --repair"]);
    says(&["--repair"], &["missing: ", " writes, ", " to 50"]);
    meridian(&["check", "--data", at]).ended(0);
    let left = common::count_in_folder("spots", hurt.path());
    assert!((20..30).contains(&left), "{left}");
    let server = Server::start(hurt.path());
    let (status, text) = server.get("/readyz");
    assert_eq!(status, 200, "{text}");
    let (status, text) = server.post("/collections/spots/items", "text/csv", None, b"n,lon,lat\n1,2.5,3.5\n").unwrap();
    assert!(matches!(status, 200 | 201), "{status} {text}");
    assert_eq!(server.stop("TERM"), Some(0));
    assert_eq!(common::count_in_folder("spots", hurt.path()), left + 1);
}
