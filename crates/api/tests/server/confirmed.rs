//! Changes that a client must confirm: events removed by a retention, a key that is used twice.

use crate::support::{Response, Server, point};
use meridian_api::ServerConfig;
use meridian_store::Options;
use serde_json::{Value, json};

const SPEC: &str = "n:Integer,dtg:Date,*geom:Point:srid=4326";

/// Loads events of these days of January 2020.
fn old(server: &Server, days: std::ops::Range<u32>) {
    let event = |day: u32| point("", 1.0, 2.0, json!({"n": day, "dtg": format!("2020-01-{day:02}T12:00:00Z")}));
    server.load("old", &days.map(event).collect::<Vec<_>>());
}

fn patch(server: &Server, query: &str, change: Value) -> Response {
    let headers = [("content-type", "application/merge-patch+json")];
    server.ask("PATCH", &format!("/collections/old{query}"), &headers, change.to_string().as_bytes())
}

#[test]
fn a_retention_that_removes_events_is_refused_with_their_number_until_it_is_confirmed() {
    let server = Server::start();
    server.create("old", SPEC);
    old(&server, 1..26);
    let month = json!({"retention": "P30D"});
    let problem = patch(&server, "", month.clone()).problem(409);
    assert_eq!(problem["removes"], 25, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("confirm=25"), "{problem}");
    assert_eq!(server.json("/collections/old").get("retention"), None);
    // More events were written since, and their removal is not confirmed.
    old(&server, 26..29);
    assert_eq!(patch(&server, "?confirm=25", month.clone()).problem(409)["removes"], 28);
    for wrong in ["?confirm=yes", "?confirm=-1", "?confirm=1.5"] {
        assert_eq!(patch(&server, wrong, month.clone()).problem(400)["field"], "confirm");
    }
    assert_eq!(server.json("/collections/old")["itemCount"], 28);
    // A change that removes nothing needs no confirmation.
    assert_eq!(patch(&server, "", json!({"retention": "P36500D"})).status, 200);
    let problem = patch(&server, "", json!({"retention_bytes": 1})).problem(409);
    assert!(problem["removes"].as_u64().unwrap() > 0, "{problem}");
    // A client may confirm a larger number.
    let changed = patch(&server, "?confirm=1000", month);
    assert_eq!((changed.status, &changed.json()["retention"]), (200, &json!("P30D")));
}

#[test]
fn a_put_changes_the_settings_of_an_existing_collection_by_the_same_rules() {
    let server = Server::start();
    let put = |query: &str| {
        let headers = [("content-type", "text/plain")];
        server.ask("PUT", &format!("/collections/old{query}"), &headers, SPEC.as_bytes())
    };
    assert_eq!(put("?durability=local&retention=P36500D").status, 201);
    old(&server, 1..26);
    // The same settings again, or none, change nothing.
    for query in ["?durability=local&retention=P36500D", ""] {
        assert_eq!(put(query).status, 200);
        assert_eq!(server.json("/collections/old")["retention"], "P36500D");
    }
    let problem = put("?retention=P30D").problem(409);
    assert_eq!(problem["removes"], 25, "{problem}");
    assert_eq!(put("?retention=P30D&confirm=24").problem(409)["removes"], 25);
    assert_eq!(put("?retention=P30D&confirm=some").problem(400)["field"], "confirm");
    assert_eq!(server.json("/collections/old")["retention"], "P36500D");
    let changed = put("?retention_bytes=1000000000").json();
    assert_eq!((&changed["retention"], &changed["retention_bytes"]), (&json!("P36500D"), &json!(1_000_000_000)));
    assert_eq!(put("?retention=P30D&confirm=25").json()["retention"], "P30D");

    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(Options::at(folder.path()), ServerConfig::default());
    server.create("kept", SPEC);
    let headers = [("content-type", "text/plain")];
    let other = server.ask("PUT", "/collections/kept?durability=ephemeral", &headers, SPEC.as_bytes());
    assert_eq!(other.problem(409)["field"], "durability");
}

#[test]
fn a_key_with_another_body_is_refused_and_the_same_events_in_another_form_are_the_same() {
    let server = Server::start();
    server.create("q", SPEC);
    let event = |n: i64| point("", 1.0, 2.0, json!({"n": n, "dtg": "2026-01-31T12:00:00Z"})).to_string();
    let send = |kind: &str, body: &[u8]| {
        let headers = [("content-type", kind), ("idempotency-key", "load-1")];
        server.ask("POST", "/collections/q/items", &headers, body)
    };
    let first = send("application/geo+json", event(5).as_bytes());
    assert_eq!(first.json()["written"], 1, "{}", first.text());
    let problem = send("application/geo+json", event(6).as_bytes()).problem(422);
    assert_eq!(problem["type"], "urn:meridian:problem:key-reused");
    assert_eq!(problem["position"], first.json()["position"]);
    send("application/x-ndjson", format!("{0}\n{0}\n", event(5)).as_bytes()).problem(422);
    assert_eq!(server.json("/collections/q")["itemCount"], 1);
    let spaced = event(5).replace(',', " ,\n ");
    let csv = "lat,lon,dtg,n\n2,1,2026-01-31T13:00:00+01:00,5\n";
    for (kind, body) in [
        ("application/geo+json", spaced.as_bytes().to_vec()),
        ("application/x-ndjson", stored_gzip(event(5).as_bytes())),
        ("text/csv", csv.as_bytes().to_vec()),
    ] {
        let again = send(kind, &body);
        assert_eq!((again.status, again.json()["duplicates"].as_u64()), (201, Some(1)), "{kind}: {}", again.text());
    }
    assert_eq!(server.json("/collections/q")["itemCount"], 1);
}

/// Returns a gzip member with one uncompressed block.
fn stored_gzip(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u16;
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 });
    }
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    gzip.extend(len.to_le_bytes());
    gzip.extend((!len).to_le_bytes());
    gzip.extend(bytes);
    gzip.extend((!crc).to_le_bytes());
    gzip.extend((bytes.len() as u32).to_le_bytes());
    gzip
}

#[test]
fn names_that_differ_in_case_or_belong_to_windows_are_refused_and_an_ephemeral_server_says_what_it_is() {
    let server = Server::start();
    server.create("ships", SPEC);
    assert_eq!(server.json("/collections/ships")["durability"], "ephemeral");
    for name in ["Ships", "nul", "COM1.log"] {
        let headers = [("content-type", "text/plain")];
        let problem = server.ask("PUT", &format!("/collections/{name}"), &headers, SPEC.as_bytes()).problem(400);
        assert_eq!(problem["field"], "collection", "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(name), "{problem}");
    }
}
