//! Messages of each version of calls, in `tests/fixtures/wire-VERSION.json`: they can be read, and are still written in
//! the same way.

use super::answer::{Meta, Reply, WireWritten};
use super::call::{ActionCall, Call, Get, Put, VERSION};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;

#[allow(clippy::disallowed_methods, reason = "the test reads a file of the repository")]
fn fixture(version: u32) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    serde_json::from_slice(&std::fs::read(folder.join(format!("wire-{version}.json"))).unwrap()).unwrap()
}

fn calls<T: Serialize + DeserializeOwned>(all: &Value) {
    for call in all.as_array().unwrap() {
        let read = Call::<T>::from_json(&serde_json::to_vec(call).unwrap()).unwrap_or_else(|e| panic!("{call}: {e:?}"));
        // The file has this version, so reading it dropped nothing.
        assert_eq!(serde_json::to_value(&read).unwrap(), *call);
    }
}

#[test]
fn golden_messages_read_and_are_written_so_still() {
    let all = fixture(VERSION);
    calls::<Get>(&all["get"]);
    calls::<ActionCall>(&all["do"]);
    calls::<Put>(&all["put"]);
    for meta in all["meta"].as_array().unwrap() {
        let read = Meta::from_bytes(&serde_json::to_vec(meta).unwrap()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&read.to_bytes()).unwrap(), *meta);
    }
    for reply in all["written"].as_array().unwrap() {
        let read = Reply::<WireWritten>::read(&serde_json::to_vec(reply).unwrap());
        assert_eq!(serde_json::from_slice::<Value>(&Reply::to_bytes(read)).unwrap(), *reply);
    }
}

#[test]
fn a_hint_of_a_newer_version_is_left_out_and_what_it_asks_is_not() {
    let call = fixture(VERSION)["get"][0].clone();
    let read = |call: &Value| Call::<Get>::from_json(&serde_json::to_vec(call).unwrap());
    let mut hinted = call.clone();
    hinted["of_a_newer_version"] = json!({"hint": 1});
    assert!(read(&hinted).is_ok());
    // An ignored condition would give a wrong result.
    for at in ["/ask/rows", "/ask/rows/place", "/ask/rows/at"] {
        let mut asked = call.clone();
        asked.pointer_mut(at).unwrap()["of_a_newer_version"] = json!(1);
        let why = format!("{:?}", read(&asked).err());
        assert!(why.contains("unknown field"), "{at}: {why}");
    }
    let mut later = call;
    later["version"] = json!(VERSION + 1);
    let why = format!("{:?}", read(&later).err());
    assert!(why.contains("versions that go together"), "{why}");
    // Responses may have unknown members.
    let meta = json!({"done": true, "of_a_newer_version": 1});
    assert!(Meta::from_bytes(&serde_json::to_vec(&meta).unwrap()).unwrap().done);
}
