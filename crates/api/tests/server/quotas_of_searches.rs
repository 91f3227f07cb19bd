//! Quotas of searches, saved searches, and what a search reads.

use crate::events::Events;
use crate::quotas::{JSON, Shared, refused};
use crate::support::{Response, Server, point, read_head, send};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::io::BufReader;
use std::time::{Duration, Instant};

/// Makes the collection in which addresses are looked up, with 3,000 places.
fn with_places(shared: &Shared) {
    let path = "/collections/postal-places";
    let schema = b"name:String,*geom:Point";
    let made = shared.ask(&shared.harbour, "PUT", path, &[("content-type", "text/plain")], schema);
    assert_eq!(made.status, 201, "{}", made.text());
    let features: Vec<Value> = (0..3_000).map(|n| point("", f64::from(n % 90), 1.0, json!({"name": "a"}))).collect();
    let body = json!({"type": "FeatureCollection", "features": features}).to_string();
    let headers = [("content-type", "application/geo+json")];
    let posted = shared.ask(&shared.harbour, "POST", &format!("{path}/items"), &headers, body.as_bytes());
    assert_eq!(posted.status, 201, "{}", posted.text());
}

#[test]
fn looking_up_an_address_is_charged_like_a_query() {
    let shared = Shared::start(json!({}));
    with_places(&shared);
    shared.limit(json!({"scanned_bytes_per_second": 1}));
    let question = br#"{"keywords":"a","address":"absent"}"#;
    shared.ask(&shared.harbour, "POST", "/searches", &[JSON], question).problem(400);
    refused(&shared.get("/collections/ships/items?limit=1"), "scanned_bytes_per_second", 1);
}

#[test]
fn a_search_reads_within_the_quota_of_a_request_and_names_it() {
    let shared = Shared::start(json!({}));
    assert_eq!(shared.post(&shared.harbour, 3_000).status, 201);
    let ask =
        |question: Value| shared.ask(&shared.harbour, "POST", "/searches", &[JSON], question.to_string().as_bytes());
    let own = |question: Value| {
        let begun = ask(question);
        assert_eq!(begun.status, 202, "{}", begun.text());
        let path = format!("/searches/{}", begun.json()["search"].as_str().unwrap());
        let begun = Instant::now();
        loop {
            let status = shared.get(&path).json();
            if status["state"] != "running" {
                return status["providers"]["meridian"].clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{status}");
        }
    };
    let wide = json!({"keywords": "absent"});
    assert_eq!(own(wide.clone())["state"], "complete");
    shared.limit(json!({"scanned_bytes_per_request": 50_000}));
    let refused_search = own(wide);
    assert_eq!(refused_search["state"], "refused", "{refused_search}");
    let detail = refused_search["detail"].as_str().unwrap();
    assert!(detail.contains("scanned_bytes_per_request of 50000"), "{detail}");
    let narrow = own(json!({"keywords": "a", "bbox": [0, 0, 0.5, 2]}));
    assert_eq!((&narrow["state"], &narrow["results"]), (&json!("complete"), &json!(34)), "{narrow}");
    // Looking up an address is subject to the quota too.
    shared.limit(json!({"scanned_bytes_per_request": null}));
    with_places(&shared);
    shared.limit(json!({"scanned_bytes_per_request": 50_000}));
    refused(&ask(json!({"keywords": "a", "address": "absent"})), "scanned_bytes_per_request", 50_000);
}

#[test]
fn searches_at_a_time_are_bounded() {
    let shared = Shared::start(json!({"searches": 0}));
    let question = br#"{"keywords":"a"}"#;
    let answer = shared.ask(&shared.harbour, "POST", "/searches", &[JSON], question);
    refused(&answer, "searches", 0);
    assert_eq!(answer.header("retry-after"), "", "time makes no room");
    assert_eq!(shared.ask(&shared.operator, "POST", "/searches", &[JSON], question).status, 202);
    shared.limit(json!({"searches": 1}));
    // Each returns its place when it ends.
    for n in 0..5 {
        let question = json!({"keywords": format!("a -x{n}")}).to_string();
        let begun = Instant::now();
        let answer = loop {
            let answer = shared.ask(&shared.harbour, "POST", "/searches", &[JSON], question.as_bytes());
            if answer.status == 202 {
                break answer;
            }
            refused(&answer, "searches", 1);
            assert!(begun.elapsed() < Duration::from_secs(30), "the place never came free");
        };
        assert!(answer.json()["search"].is_string());
    }
}

/// Returns the path of the packets of a saved search.
fn packets_of_saved(made: &Response) -> String {
    assert_eq!(made.status, 201, "{}", made.text());
    format!("/saved-searches/{}/packets", made.json()["id"].as_str().unwrap())
}

#[test]
fn readers_of_packets_count_as_streams_of_their_tenant_until_they_leave() {
    let shared = Shared::start(json!({"streams": 1}));
    let made = shared.ask(&shared.harbour, "POST", "/saved-searches", &[JSON], br#"{"keywords":"a"}"#);
    let (path, bearer) = (packets_of_saved(&made), format!("Bearer {}", shared.harbour));
    let open = || {
        let mut stream = shared.server.connect();
        send(&mut stream, "GET", &path, &[("authorization", &bearer)], b"");
        let status = read_head(&mut BufReader::new(&stream)).unwrap().0;
        (stream, status)
    };
    let (reader, status) = open();
    assert_eq!(status, 200);
    refused(&shared.get(&path), "streams", 1);
    refused(&shared.get("/collections/ships/stream"), "streams", 1);
    drop(reader);
    let begun = Instant::now();
    while open().1 != 200 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the place never came free");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn readers_of_packets_beyond_the_streams_of_the_server_are_refused() {
    let server = Server::with(ServerConfig { streams_max: 1, ..ServerConfig::default() });
    let question = br#"{"keywords":"a"}"#;
    let saved = packets_of_saved(&server.post("/saved-searches", "application/json", question));
    let begun = server.post("/searches", "application/json", question).json();
    let search = format!("/searches/{}/packets", begun["search"].as_str().unwrap());
    let _reader = Events::open(&server, &saved, None);
    for path in [saved, search] {
        let problem = server.get(&path).problem(503);
        assert!(problem["detail"].as_str().unwrap().contains("of 1 in all"), "{problem}");
    }
}

#[test]
fn saved_searches_are_bounded_in_all() {
    let shared = Shared::start(json!({"saved_searches": 1}));
    let question = br#"{"keywords":"a"}"#;
    let post = |by: &str| shared.ask(by, "POST", "/saved-searches", &[JSON], question);
    let made = post(&shared.harbour);
    assert_eq!((made.status, post(&shared.operator).status), (201, 201), "{}", made.text());
    refused(&post(&shared.harbour), "saved_searches", 1);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(shared.ask(&shared.harbour, "DELETE", &format!("/saved-searches/{id}"), &[], b"").status, 204);
    assert_eq!(post(&shared.harbour).status, 201);
}
