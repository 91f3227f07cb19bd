//! Failing disks and damaged files, as seen by clients.

use crate::support::{Response, Server, point};
use meridian_api::ServerConfig;
use meridian_store::Options;
use meridian_store::seams::{CrashStyle, FaultKind, MemoryDisk, Seams};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const GIVEN: &str = "n:Integer,*geom:Point;meridian.id='given'";
const MADE: &str = "n:Integer,*geom:Point;meridian.id='made'";

/// Starts a server over a data folder on this disk. The store has no threads, so only requests access the disk.
fn over(disk: &MemoryDisk) -> Server {
    let seams = Seams { disk: Arc::new(disk.clone()), ..Seams::real() };
    let options = Options { background: false, ..Options::at("/data") };
    Server::upon(seams, options, ServerConfig::default())
}

/// Builds events for a collection with client-supplied or generated ids.
fn features(range: Range<u32>, given: bool) -> Vec<Value> {
    let id = |n: u32| if given { format!("n{n}") } else { String::new() };
    range.map(|n| point(&id(n), f64::from(n), 1.0, json!({ "n": n }))).collect()
}

fn post(server: &Server, range: Range<u32>) -> Response {
    let body = json!({ "type": "FeatureCollection", "features": features(range, true) }).to_string();
    server.post("/collections/notes/items", "application/geo+json", body)
}

/// Returns the detail of a write that was refused because of the disk.
#[track_caller]
fn refusal(answer: &Response) -> String {
    let problem = answer.problem(507);
    assert_eq!(problem["type"], "urn:meridian:problem:storage-unavailable");
    problem["detail"].as_str().unwrap().to_owned()
}

/// Returns the `n` of all events, in order; the response must be complete.
fn ns(server: &Server) -> Vec<u64> {
    let answer = server.get("/collections/notes/items?limit=1000");
    assert_eq!((answer.status, answer.header("meridian-missing")), (200, ""), "{}", answer.text());
    let page = answer.json();
    assert_eq!(page.get("missing"), None);
    let features = page["features"].as_array().unwrap();
    let mut ns: Vec<u64> = features.iter().map(|f| f["properties"]["n"].as_u64().unwrap()).collect();
    ns.sort_unstable();
    ns
}

#[test]
fn after_a_failed_sync_writes_are_refused_with_the_reason_and_reads_go_on() {
    let disk = MemoryDisk::new();
    let server = over(&disk);
    server.create("notes", GIVEN);
    server.create("others", GIVEN);
    server.load("notes", &features(0..10, true));
    disk.inject(FaultKind::SyncFails, "/notes/p0/log/", 0);
    let failed = refusal(&post(&server, 10..20));
    // The disk works again, but what the kernel dropped is gone.
    disk.heal();
    let refused = refusal(&post(&server, 20..30));
    let why = refused.strip_prefix("the collection notes accepts no writes: ").unwrap_or_else(|| panic!("{refused}"));
    assert!(why.starts_with("could not sync /data/tenants/default/notes/p0/log/"), "{why}");
    assert!(why.contains("(os error 5)") && why.contains("restart"), "{why}");
    let of_its_own = failed.strip_prefix(&refused).unwrap_or_else(|| panic!("{failed}"));
    assert!(of_its_own.contains("whether this write is stored"), "{failed}");

    let item = "/collections/notes/items/n3";
    let event = features(3..4, true).remove(0).to_string();
    let json = [("content-type", "application/json")];
    for (method, path, body) in [
        ("PUT", item, event.as_str()),
        ("PATCH", item, r#"{"properties": {"n": 99}}"#),
        ("DELETE", item, ""),
        ("DELETE", "/collections/notes/items?filter=n%3C5", ""),
        ("PATCH", "/collections/notes", r#"{"properties": {"later": {"type": "string"}}}"#),
    ] {
        let headers = if body.is_empty() { &json[..0] } else { &json[..] };
        assert_eq!(refusal(&server.ask(method, path, headers, body.as_bytes())), refused, "{method} {path}");
    }
    let ready = server.get("/readyz").problem(503);
    assert_eq!(ready["collections"], json!([format!("notes: {why}")]));
    assert_eq!(server.get("/healthz").status, 200);
    assert!(server.get("/metrics").text().contains("\nmeridian_collections_refusing_writes 1\n"));

    assert_eq!(ns(&server), (0..10).collect::<Vec<u64>>(), "what was acknowledged, and nothing else");
    assert_eq!(server.json(item)["properties"]["n"], 3);
    assert_eq!(server.json("/collections/notes/aggregate?function=count,sum(n)")["groups"][0]["sum(n)"], 45);
    server.load("others", &features(0..5, true));

    disk.crash(CrashStyle::Lose);
    drop(server);
    let server = over(&disk);
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(ns(&server), (0..10).collect::<Vec<u64>>());
    assert_eq!(server.json("/collections/others")["itemCount"], 5);
    assert_eq!(post(&server, 20..25).status, 201);
    assert_eq!(ns(&server), (0..10).chain(20..25).collect::<Vec<u64>>());
}

#[test]
fn what_a_damaged_segment_held_is_said_to_be_missing_and_the_rest_is_served() {
    for spec in [GIVEN, MADE] {
        let disk = MemoryDisk::new();
        let server = over(&disk);
        server.create("notes", spec);
        for first in [0, 10] {
            server.load("notes", &features(first..first + 10, spec == GIVEN));
            server.store.collection("default", "notes").unwrap().flush().unwrap();
        }
        disk.crash(CrashStyle::Lose);
        drop(server);
        let mut segments = disk.files();
        segments.retain(|(path, _)| path.extension().is_some_and(|e| e == "rows"));
        assert_eq!(segments.len(), 2);
        // In the last bytes, which locate everything else.
        let (damaged, bytes) = &segments[0];
        disk.flip_bit(damaged, (bytes - 20) * 8).unwrap();

        let server = over(&disk);
        let page = server.get("/collections/notes/items?limit=1000");
        assert_eq!((page.status, page.header("meridian-missing")), (200, "1 damaged files"), "{}", page.text());
        let page = page.json();
        assert_eq!(page["numberReturned"], 10);
        let ns: Vec<u64> =
            page["features"].as_array().unwrap().iter().map(|f| f["properties"]["n"].as_u64().unwrap()).collect();
        assert!(ns.iter().all(|n| *n < 10) || ns.iter().all(|n| *n >= 10), "{ns:?}");
        let missing = page["missing"].as_array().unwrap();
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0]["detail"].as_str().unwrap().contains("damaged"), "{missing:?}");
        for (path, lines) in [("items?f=ndjson", 10), ("items?f=csv", 11), ("aggregate?function=count", 0)] {
            let answer = server.get(&format!("/collections/notes/{path}"));
            assert_eq!((answer.status, answer.header("meridian-missing")), (200, "1 damaged files"), "{path}");
            assert!(lines == 0 || answer.text().lines().count() == lines, "{path}: {}", answer.text());
        }
        let ready = server.get("/readyz");
        if spec == MADE {
            assert_eq!(ready.status, 200);
            server.load("notes", &features(20..21, false));
            continue;
        }
        // It cannot be determined whether an id is in use.
        let refused = refusal(&post(&server, 20..21));
        assert!(refused.starts_with("the collection notes accepts no writes: a segment cannot be read"), "{refused}");
        assert!(ready.problem(503)["collections"][0].as_str().unwrap().starts_with("notes: a segment cannot be read"));
    }
}

#[test]
fn a_query_whose_events_cannot_be_read_names_the_file_and_the_repair() {
    let disk = MemoryDisk::new();
    let server = over(&disk);
    for name in ["notes", "others"] {
        server.create(name, MADE);
        server.load(name, &features(0..100, false));
        server.store.collection("default", name).unwrap().flush().unwrap();
    }
    disk.crash(CrashStyle::Lose);
    drop(server);
    let rows = |(path, _): &(std::path::PathBuf, u64)| {
        path.to_string_lossy().contains("notes") && path.extension().is_some_and(|e| e == "rows")
    };
    let (damaged, bytes) = disk.files().into_iter().find(rows).unwrap();
    // In the middle, which is read when a query needs it.
    disk.flip_bit(&damaged, bytes / 2 * 8).unwrap();
    let server = over(&disk);
    let problem = server.get("/collections/notes/items?limit=1000").problem(503);
    assert_eq!(problem["type"], "urn:meridian:problem:damaged");
    let (detail, file) = (problem["detail"].as_str().unwrap(), damaged.file_name().unwrap().to_string_lossy());
    assert!(detail.contains(&*file) && detail.contains("meridian check --repair"), "{detail}");
    assert_eq!(server.get("/collections/others/items?limit=1000").json()["numberReturned"], 100);
}

#[test]
fn a_collection_that_lost_its_manifest_is_named_everywhere_and_never_created_again() {
    let disk = MemoryDisk::new();
    let server = over(&disk);
    server.create("others", GIVEN);
    server.load("others", &features(0..5, true));
    let place = json!({ "name": "Bank", "latitude": 51.5, "longitude": -0.1 }).to_string();
    assert!(server.post("/api/v0/places", "application/json", place).status < 400);
    for name in ["places", "others"] {
        server.store.collection("default", name).unwrap().flush().unwrap();
    }
    disk.crash(CrashStyle::Lose);
    drop(server);
    let manifest = "/data/tenants/default/places/p0/MANIFEST";
    disk.vanish(Path::new(manifest)).unwrap();
    let before: Vec<_> = disk.files().into_iter().filter(|(path, _)| path.starts_with("/data/tenants")).collect();

    let server = over(&disk);
    let says = |problem: &Value| {
        assert_eq!(problem["type"], "urn:meridian:problem:damaged");
        let detail = problem["detail"].as_str().unwrap();
        for part in ["the collection places is damaged", manifest, "missing", "meridian check --repair"] {
            assert!(detail.contains(part), "{part}: {detail}");
        }
    };
    let one = "/collections/places";
    for path in ["", "/items", "/items/x", "/schema", "/queryables", "/aggregate?function=count", "/density", "/tiles"]
    {
        says(&server.get(&format!("{one}{path}")).problem(503));
    }
    for path in ["", "/near/51.5/-0.1", "/random", "/x"] {
        says(&server.get(&format!("/api/v0/places{path}")).problem(503));
    }
    says(&server.ask("DELETE", one, &[], b"").problem(503));
    says(&server.ask("DELETE", "/api/v0/places/deleteAllPlaces", &[], b"").problem(503));
    says(
        &server.post(&format!("{one}/items"), "application/geo+json", features(0..1, true)[0].to_string()).problem(503),
    );
    says(&server.ask("PUT", one, &[("content-type", "text/plain")], GIVEN.as_bytes()).problem(409));

    let listed = server.json("/collections");
    let of = |name: &str| listed["collections"].as_array().unwrap().iter().find(|c| c["id"] == name).unwrap().clone();
    assert_eq!((&of("places")["status"], of("others").get("status")), (&json!("damaged"), None));
    assert!(of("places")["description"].as_str().unwrap().contains(manifest));
    assert!(server.get("/collections?f=html").text().contains("the collection places is damaged"));
    let ready = server.get("/readyz").problem(503);
    assert!(ready["damaged"][0].as_str().unwrap().contains("the collection places is damaged"), "{ready}");
    assert!(server.get("/metrics").text().contains("\nmeridian_collections_damaged 1\n"));
    // The other one is served, and accepts writes.
    server.load("others", &features(5..10, true));
    assert_eq!(server.json("/collections/others")["itemCount"], 10);
    for (path, bytes) in before.iter().filter(|(path, _)| path.starts_with("/data/tenants/default/places")) {
        assert!(disk.files().contains(&(path.clone(), *bytes)), "{}", path.display());
    }
}
