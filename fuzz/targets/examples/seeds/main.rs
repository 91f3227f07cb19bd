//! Writes the seed inputs of every target into `fuzz/corpus`: small real ones, from files in this repository and from
//! Meridian's own writers. `cargo run -p fuzz-targets --example seeds`

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a tool of developers that writes files")]

mod corpus;
mod formats;
mod peers;
mod questions;
mod requests;

use corpus::put;
use fuzz_targets::{files_of_store, trees};

fn main() {
    requests::heads();
    peers::cluster();
    peers::lab();
    formats::formats();
    formats::languages();
    requests::callers();
    requests::issuers();
    questions::searches();
    questions::questions();
    for (target, name, bytes) in files_of_store() {
        put(target, &name, bytes);
    }
    for (name, bytes) in trees() {
        put("tree", name, bytes);
    }
}

/// The bytes may differ, as ids and times do; a form that is new has an input of its own.
#[test]
fn every_first_input_is_in_the_corpus() {
    let folder = tempfile::tempdir().unwrap();
    corpus::ELSEWHERE.set(folder.path().to_owned()).unwrap();
    main();
    let mut lacking = Vec::new();
    for target in std::fs::read_dir(folder.path()).unwrap() {
        let target = target.unwrap();
        let kept = corpus::corpus().join(target.file_name());
        let names = std::fs::read_dir(target.path()).unwrap().map(|input| input.unwrap().file_name());
        lacking.extend(names.map(|name| kept.join(name)).filter(|input| !input.exists()));
    }
    assert!(lacking.is_empty(), "cargo run -p fuzz-targets --example seeds writes them: {lacking:?}");
}
