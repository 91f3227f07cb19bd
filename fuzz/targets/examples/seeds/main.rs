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
