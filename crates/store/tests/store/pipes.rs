//! A pipe in place of a file: it is named, and opening it holds nobody up.

use crate::world::{Event, batch};
use meridian_model::IdRole;
use meridian_store::seams::Seams;
use meridian_store::{Options, Settings, Store, StoreError, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A pipe that nobody writes to holds up its reader for ever.
const PATIENCE: Duration = Duration::from_secs(60);

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
    into.sort();
}

fn replace_by_pipe(path: &Path) -> Vec<u8> {
    let content = std::fs::read(path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    content
}

/// Runs something on a thread of its own, within the time.
fn in_time<T: Send + 'static>(what: &Path, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    std::thread::spawn(move || done.send(run()));
    result.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{} holds its reader up", what.display()))
}

#[test]
fn a_pipe_in_place_of_a_file_is_named_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { background: false, ..Options::at(folder.path().join("data")) };
    let open = {
        let options = options.clone();
        move || Store::open(options.clone(), Seams::real())
    };
    let store = open().unwrap();
    let schema = crate::world::schema(IdRole::Given);
    let collection = store.create("t", "c", schema, Settings::default()).unwrap();
    for from in [0, 100] {
        let events: Vec<Event> = (from..from + 50).map(|n| Event::new(format!("id-{n}"), n)).collect();
        collection.write(Write::new(batch(&collection.schema(), &events))).unwrap();
        if from == 0 {
            collection.flush().unwrap();
        }
    }
    let records = store.records("access");
    records.put_twice("token-a", b"one").unwrap();
    drop((collection, records, store));

    let mut all = Vec::new();
    files(folder.path(), &mut all);
    assert!(all.iter().any(|path| path.ends_with("MANIFEST")) && all.iter().any(|path| path.ends_with("token-a")));
    for path in all.iter().filter(|path| !path.ends_with("LOCK")) {
        let content = replace_by_pipe(path);
        let open = open.clone();
        let said = in_time(path, move || {
            let store = match open() {
                Ok(store) => store,
                Err(error) => return error.to_string(),
            };
            let record = store.records("access").get("token-a").map(drop);
            let problems = store.check();
            format!("{record:?} {:?} {problems:?}", store.damaged("t"))
        });
        // A cache may be rebuilt, and a spare file of the log removed.
        let named = said.contains(&*path.to_string_lossy()) && said.contains("not a pipe");
        let is_cache = path.metadata().is_ok_and(|found| found.is_file()) || !path.exists();
        assert!(named || is_cache, "{}: {said}", path.display());
        let _ = std::fs::remove_file(path);
        std::fs::write(path, content).unwrap();
    }
    let store = open().unwrap();
    let path = folder.path().join("data/access/token-a");
    replace_by_pipe(&path);
    let records = store.records("access");
    let error = in_time(&path, move || records.get("token-a")).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("access/token-a: expected a file"), "{error}");
}
