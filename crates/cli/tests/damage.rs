//! `meridian check` on folders in which one byte of one file is wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::{Server, meridian, meridian_with_input};
use std::path::{Path, PathBuf};

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
    into.sort();
}

/// Rows of CSV with ids that begin with this letter.
fn rows(letter: char, count: u32) -> String {
    let row = |n| format!("{letter}{n},{}.5,{},2026-01-02T00:00:{:02}Z,{n}\n", n % 170, n % 80, n % 60);
    format!("id,lon,lat,when,size\n{}", (0..count).map(row).collect::<String>())
}

/// A folder with segments, dead rows, idempotency keys and a tail of log, left behind by a server that was killed.
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
    let sound = meridian(&["check", "--data", at]).ended(0);
    assert!(sound.out.contains("in order"), "{}", sound.out);

    let mut all = Vec::new();
    files(folder.path(), &mut all);
    for kind in ["meridian.json", "MANIFEST", "NEWEST", ".log", ".segment", ".dead", ".keys"] {
        // Of several the newest.
        let Some(path) = all.iter().rfind(|p| p.to_str().unwrap().ends_with(kind)) else {
            panic!("there is no {kind} among {all:?}");
        };
        let good = std::fs::read(path).unwrap();
        let mut bad = good.clone();
        // Of the log the first of two records: the last one could not be told from a torn write.
        let place = if kind == ".log" { 60 } else { bad.len() / 2 };
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
    // A check changes nothing: all is as it was.
    meridian(&["check", "--data", at]).ended(0);
    assert_eq!(common::count_in_folder("spots", folder.path()), 339);
}
