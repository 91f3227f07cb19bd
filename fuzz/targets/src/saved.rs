//! Records of saved searches, as stored on a disk or in a bucket.

use crate::runtime::runtime;
use crate::{named, world};
use meridian_admission::Ledger;
use meridian_admission::identity::Identity;
use meridian_backend::{Embedded, View};
use meridian_federation::{Searches, Settings};
use meridian_model::policy::access::{Grant, Role};
use meridian_saved::{Parts, SavedSettings, SavedSlots};
use meridian_store::seams::MemoryDisk;
use meridian_store::{Settings as CollectionSettings, Store};
use std::sync::Arc;

/// Names of saved searches.
const IDS: [&str; 2] = ["00000000000000010000000000000001", "00000000000000010000000000000002"];

/// Records written by a clean shutdown, by name.
const RECORDS: [(&str, &str); 5] = [
    (
        IDS[0],
        r#"{"name":"floods","question":{"keywords":"flood"},"webhook":{"url":"https://192.0.2.1/x","secret":"longer than eight"},"created":1700000000000000,"since":{"c":{"made":1700000000000000,"position":1}},"collections":"*","tenant":"default"}"#,
    ),
    (IDS[1], r#"{"name":"fires","keywords":"fire","when":["enter","exit"],"created":1700000000000000,"tenant":"t"}"#),
    (
        "looked",
        r#"{"collections":{"c":{"made":1700000000000000,"position":0}},"tenants":{"t":{"c":{"made":1700000000000000,"position":0}}},"waiting":{"00000000000000010000000000000001":{"c":0}},"kept":true}"#,
    ),
    (
        "state",
        r#"{"searches":{"00000000000000010000000000000001":{"first":7,"packets":["{\"seq\":7}"],"origins":[],"results":1,"result_packets":1,"post":{"next":7,"sent":3,"lost":1,"dead":1,"letters":[{"seq":5,"at":"2024-01-01T00:00:00Z","tries":2,"why":"503","packet":"{\"seq\":5}"}]}}},"objects":{}}"#,
    ),
    ("runs", r#"{"epoch":1,"first":1700000000000000}"#),
];

fn open(store: &Arc<Store>) -> SavedSlots {
    let _entered = runtime().enter();
    let seams = world::seams(&MemoryDisk::new(), 4);
    let (backend, clock, random) = (Embedded::new(store.clone()), seams.clock, seams.random);
    let searches =
        Searches::new(Settings::default(), backend.clone(), "default".to_owned(), clock.clone(), random.clone());
    SavedSlots::whole(Parts {
        searches: Arc::new(searches),
        backend,
        ledgers: Arc::new(|tenant: &str| Some(Arc::new(Ledger::new(tenant)))),
        background: Arc::new(()),
        settings: SavedSettings::default(),
        clock,
        random,
    })
}

/// Returns the names of damaged records; reads everything that a client may.
fn read(store: &Arc<Store>, saved: &SavedSlots) -> Vec<String> {
    for tenant in ["default", "t"] {
        let caller = Arc::new(Identity::new(tenant, Grant::over_all(Role::Admin), "fuzz"));
        let view = View::new(Embedded::new(store.clone()), caller);
        for status in saved.list(&view, "", 10).0 {
            serde_json::to_vec(&status).unwrap();
        }
        let parts = saved.backup_parts(Some(tenant)).unwrap();
        let records = store.records("saved");
        for name in records.names().unwrap() {
            let Ok(Some(content)) = records.get(&name) else { continue };
            let part = parts.of(&name, &content);
            let plain = part.plain.unwrap_or_default();
            assert!(part.secret.is_none() || !plain.windows(17).any(|text| text == b"longer than eight"));
        }
    }
    for id in IDS {
        if let Some(search) = saved.get(id) {
            serde_json::to_vec(&saved.status(&search)).unwrap();
        }
    }
    saved.damaged().into_keys().collect()
}

/// A record, by its name, among others of a clean shutdown. Records written by another clean shutdown must be
/// readable.
pub fn saved_record(bytes: &[u8]) {
    let Some((name, content)) = named::of(bytes) else { return };
    let store = Arc::new(world::open(&MemoryDisk::new()).unwrap());
    for tenant in ["default", "t"] {
        store.create(tenant, "c", world::schema(), CollectionSettings::default()).unwrap();
    }
    let records = store.records("saved");
    for (known, kept) in RECORDS.iter().filter(|(known, _)| *known != name) {
        records.put(known, kept.as_bytes()).unwrap();
    }
    if records.put(name, content).is_err() {
        return;
    }
    let saved = open(&store);
    let damaged = read(&store, &saved);
    let stopped = saved.stop();
    drop(saved);
    let saved = open(&store);
    let again = read(&store, &saved);
    let fresh: Vec<&String> = again.iter().filter(|name| !damaged.contains(name)).collect();
    assert!(stopped.is_err() || fresh.is_empty(), "{fresh:?} were sound before a stop");
}

/// Inputs for [`saved_record`].
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    RECORDS.iter().map(|(name, content)| (*name, named::input(name, content.as_bytes()))).collect()
}
