//! Limits on the time and the memory of a request, wherever it uses them.

use crate::owner::is_gateway;
use crate::support::{Server, point};
use meridian_api::ServerConfig;
use serde_json::json;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Compresses a beginning followed by `bytes` empty lines.
fn packed_lines(begin: &'static str, bytes: u64) -> Vec<u8> {
    zstd::encode_all(begin.as_bytes().chain(std::io::repeat(b'\n').take(bytes)), 1).unwrap()
}

#[test]
fn a_deadline_holds_while_a_body_unfolds() {
    let server = Server::with(ServerConfig { unfolded_bytes_max: u64::MAX, ..ServerConfig::default() });
    server.create("q", "n:Integer");
    for (media_type, begin) in [("application/geo+json", ""), ("text/csv", "n\n"), ("application/x-ndjson", "")] {
        let body = packed_lines(begin, 2 << 30);
        assert!(body.len() < 1 << 20, "{}", body.len());
        let headers = [("content-type", media_type), ("meridian-timeout", "100")];
        let problem = server.ask("POST", "/collections/q/items", &headers, &body).problem(504);
        assert!(problem["detail"].as_str().unwrap().contains("the body was not read"), "{problem}");
    }
}

#[test]
fn a_deadline_holds_while_a_body_is_read() {
    let server = Server::start();
    server.create("q", "n:Integer,*geom:Point:srid=4326");
    let all: Vec<_> = (0..40_000).map(|n| point("", f64::from(n % 180), 1.0, json!({ "n": n }))).collect();
    let body = json!({ "type": "FeatureCollection", "features": all }).to_string();
    let headers = [("content-type", "application/geo+json"), ("meridian-timeout", "1")];
    server.ask("POST", "/collections/q/items", &headers, body.as_bytes()).problem(504);
    assert_eq!(server.json("/collections/q/items")["numberMatched"], 0, "nothing of it was taken");
}

#[test]
fn a_body_that_unfolds_to_too_much_gets_413_that_says_so() {
    let server =
        Server::with(ServerConfig { body_bytes_max: 1 << 20, unfolded_bytes_max: 2 << 20, ..ServerConfig::default() });
    server.create("q", "n:Integer");
    let problem = server.post("/collections/q/items", "application/geo+json", packed_lines("", 64 << 20)).problem(413);
    assert_eq!(problem["limit_bytes"], 2 << 20);
    assert!(problem["detail"].as_str().unwrap().contains("decompressed"), "{problem}");
    let event = zstd::encode_all(&br#"{"type":"Feature","geometry":null,"properties":{"n":1}}"#[..], 1).unwrap();
    assert_eq!(server.post("/collections/q/items", "application/geo+json", event).status, 201);
}

/// Creates a collection with one event in the first representable year, and one in another.
fn apart(last: &str) -> Server {
    let server = Server::start();
    server.create("q", "n:Integer,dtg:Date");
    let event = |time: &str| json!({"type": "Feature", "geometry": null, "properties": {"n": 1, "dtg": time}});
    server.load("q", &[event("0001-01-01T00:00:00Z"), event(last)]);
    server
}

#[test]
fn too_many_windows_are_refused_before_one_is_made() {
    let server = apart("9999-01-01T00:00:00Z");
    for (window, zone) in [("PT1H", "UTC"), ("PT15M", "Europe/Paris"), ("PT1S", "UTC")] {
        // Computing the result would take longer than the deadline; a refusal at once does not.
        let path = format!("/collections/q/aggregate?window={window}&zone={zone}&empty=true&timeout=10000");
        let problem = server.get(&path).problem(400);
        assert_eq!(problem["field"], "window");
    }
    assert_eq!(
        server.get("/collections/q/aggregate?window=P1Y&empty=true").json()["groups"].as_array().unwrap().len(),
        9999
    );
}

#[test]
fn a_deadline_holds_while_windows_are_made() {
    let server = apart("0201-01-01T00:00:00Z");
    let path = "/collections/q/aggregate?window=PT1H&empty=true";
    server.get(&format!("{path}&timeout=50")).problem(504);
    // The memory that they take is bounded as well.
    let small = Server::with(ServerConfig { query_bytes_total: 8 << 20, ..ServerConfig::default() });
    small.create("q", "n:Integer,dtg:Date");
    let event = |time: &str| json!({"type": "Feature", "geometry": null, "properties": {"n": 1, "dtg": time}});
    small.load("q", &[event("0001-01-01T00:00:00Z"), event("0201-01-01T00:00:00Z")]);
    let answer = small.get(path);
    answer.problem(503);
    assert!(["1", "2", "3"].contains(&answer.header("retry-after")), "{:?}", answer.headers);
    assert_eq!(small.get("/collections/q/aggregate?window=P1Y&empty=true").status, 200);
}

#[test]
fn sorts_that_find_no_memory_are_refused_and_give_back_what_they_took() {
    // A gateway does not sort: that memory is the owner's, and so is its limit.
    if is_gateway() {
        return;
    }
    let server = Arc::new(Server::with(ServerConfig { query_bytes_total: 2 << 20, ..ServerConfig::default() }));
    server.create("q", "note:String,*geom:Point:srid=4326");
    let note = "x".repeat(250);
    let all: Vec<_> = (0..6000)
        .map(|n| point("", f64::from(n % 180), 1.0, json!({"note": format!("{:05}{note}", n * 7919 % 6000)})))
        .collect();
    server.load("q", &all);
    let answer = server.get("/collections/q/items?sortby=note&limit=6000");
    let problem = answer.problem(503);
    assert_eq!(problem["type"], "urn:meridian:problem:overloaded");
    assert_eq!(answer.header("retry-after"), problem["retry_after_seconds"].to_string());
    // Many at once: each is served or refused, and each response is complete.
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let server = server.clone();
            std::thread::spawn(move || server.get("/collections/q/items?sortby=note&limit=1500"))
        })
        .collect();
    for answer in asking {
        let answer = answer.join().unwrap();
        match answer.status {
            200 => assert_eq!(answer.json()["numberReturned"], 1500),
            status => assert_eq!(status, 503, "{}", answer.text()),
        }
    }
    assert_eq!(server.json("/collections/q/items?sortby=-note&limit=1000")["numberReturned"], 1000);
    // The last bytes are returned after their client has its response.
    let begun = Instant::now();
    while !server.get("/metrics").text().contains("\nmeridian_query_bytes 0\n") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", server.get("/metrics").text());
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = server.get("/metrics").text();
    assert!(!text.contains("\nmeridian_query_memory_refused_total 0\n"), "{text}");
}
