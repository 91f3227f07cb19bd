//! Saved searches over HTTP.

use crate::events::{Events, Socket};
use crate::support::{Server, point};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SPEC: &str = "title:String,*geom:Point:srid=4326;meridian.id='given'";

fn save(server: &Server, asked: &Value) -> Value {
    let answer = server.post("/saved-searches", "application/json", asked.to_string());
    assert_eq!(answer.status, 201, "{}", answer.text());
    let saved = answer.json();
    let id = saved["id"].as_str().unwrap();
    assert!(answer.headers["location"].ends_with(&format!("/saved-searches/{id}")));
    assert!(saved["packets"].as_str().unwrap().ends_with(&format!("/saved-searches/{id}/packets")));
    saved
}

fn stream(server: &Server, saved: &Value, last: Option<u64>) -> Events {
    Events::open(server, &format!("/saved-searches/{}/packets", saved["id"].as_str().unwrap()), last)
}

/// Reads titles until there are at least `count`.
fn titles(events: &mut Events, count: usize) -> Vec<String> {
    let mut titles = Vec::new();
    while titles.len() < count {
        let packet = events.next().unwrap();
        let features = packet["features"].as_array().unwrap().iter();
        titles.extend(features.map(|f| f["properties"]["title"].as_str().unwrap().to_owned()));
    }
    titles
}

/// Waits until a saved search has `packets` packets: events of two partitions may be reported in either order.
fn until_reported(server: &Server, path: &str, packets: u64) {
    let begun = Instant::now();
    while server.json(path)["next_packet"].as_u64() < Some(packets) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{packets} packets never come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn events_from_every_kind_of_write_are_reported() {
    let server = Server::start();
    server.create("news", SPEC);
    let saved = save(&server, &json!({"name": "floods", "question": {"keywords": "flood"}}));
    assert_eq!((saved["name"].as_str(), saved["question"]["keywords"].as_str()), (Some("floods"), Some("flood")));
    let mut events = stream(&server, &saved, None);
    // Each is reported before the next is written, since events of two partitions may be reported in either order.
    let mut reported = |expected: &str| assert_eq!(titles(&mut events, 1), [expected]);
    let title = |title: &str| json!({"title": title});
    server.load("news", &[point("1", 4.8, 45.7, title("flood in one")), point("2", 4.8, 45.7, title("fire"))]);
    reported("flood in one");
    let lines = point("3", 4.8, 45.7, title("flood in lines")).to_string();
    assert_eq!(server.post("/collections/news/items", "application/x-ndjson", lines).status, 201);
    reported("flood in lines");
    let csv = "id,title,lon,lat\n4,flood in csv,4.8,45.7\n";
    assert_eq!(server.post("/collections/news/items", "text/csv", csv).status, 201);
    reported("flood in csv");
    let kind = [("content-type", "application/geo+json")];
    let put = point("2", 4.8, 45.7, title("flood by put")).to_string();
    assert_eq!(server.ask("PUT", "/collections/news/items/2", &kind, put.as_bytes()).status, 204);
    reported("flood by put");
    let patch = json!({"properties": {"title": "flood by patch"}}).to_string();
    let kind = [("content-type", "application/merge-patch+json")];
    assert_eq!(server.ask("PATCH", "/collections/news/items/2", &kind, patch.as_bytes()).status, 204);
    reported("flood by patch");

    // A client that was disconnected resumes from its position.
    let mut again = stream(&server, &saved, Some(2));
    assert_eq!(titles(&mut again, 2), ["flood by put", "flood by patch"]);
    let shown = server.json(&format!("/saved-searches/{}", saved["id"].as_str().unwrap()));
    assert_eq!((shown["results"].as_u64(), shown["next_packet"].as_u64()), (Some(5), Some(5)));
    let metrics = server.get("/metrics").text();
    for line in [
        "meridian_saved_searches 1",
        "meridian_saved_events_total 6",
        "meridian_saved_events_dropped_total 0",
        "meridian_saved_matches_total 5",
        "meridian_saved_webhook_dead_bytes 0",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line}\n{metrics}");
    }
    let path = format!("/saved-searches/{}", saved["id"].as_str().unwrap());
    assert_eq!(server.ask("DELETE", &path, &[], b"").status, 204);
    assert_eq!(again.next().unwrap()["kind"], "complete");
    assert!(again.next().is_none());
    for gone in [server.get(&path), server.get(&format!("{path}/packets")), server.ask("DELETE", &path, &[], b"")] {
        gone.problem(404);
    }
}

#[test]
fn a_websocket_resumes_where_an_older_one_was() {
    let server = Server::start();
    server.create("news", SPEC);
    let saved = save(&server, &json!({"keywords": "flood"}));
    let path = format!("/saved-searches/{}", saved["id"].as_str().unwrap());
    let flood = |n: u64| {
        server.load("news", &[point(&n.to_string(), 4.8, 45.7, json!({"title": format!("flood {n}")}))]);
        until_reported(&server, &path, n + 1);
    };
    let heard = |socket: &mut Socket| {
        let packet = socket.next().unwrap();
        let title = packet["features"][0]["properties"]["title"].as_str().unwrap().to_owned();
        (packet["seq"].as_u64().unwrap(), title)
    };
    let mut socket = Socket::open(&server, &format!("{path}/packets"));
    (0..3).for_each(flood);
    for n in 0..3 {
        assert_eq!(heard(&mut socket), (n, format!("flood {n}")));
    }
    drop(socket);
    (3..5).for_each(flood);
    let mut socket = Socket::open(&server, &format!("{path}/packets?after=1"));
    flood(5);
    for n in 2..6 {
        assert_eq!(heard(&mut socket), (n, format!("flood {n}")));
    }
    assert_eq!(server.ask("DELETE", &path, &[], b"").status, 204);
    let last = socket.next().unwrap();
    assert_eq!((last["kind"].as_str(), last["seq"].as_u64()), (Some("complete"), Some(6)));
    assert!(socket.next().is_none());
}

#[test]
fn a_client_that_was_away_too_long_learns_what_is_lost() {
    let mut config = ServerConfig::default();
    config.saved.buffer_bytes = 4 << 10;
    let server = Server::with(config);
    server.create("news", SPEC);
    let saved = save(&server, &json!({"keywords": "flood"}));
    let path = format!("/saved-searches/{}", saved["id"].as_str().unwrap());
    let flood = |n: u64| {
        server.load("news", &[point(&n.to_string(), 4.8, 45.7, json!({"title": format!("flood {n}")}))]);
        until_reported(&server, &path, n + 1);
    };
    flood(0);
    assert_eq!(titles(&mut stream(&server, &saved, None), 1), ["flood 0"]);
    (1..40).for_each(flood);
    let shown = || server.json(&path);
    let first = shown()["first_packet"].as_u64().unwrap();
    // Delivered packets were evicted as well, and do not count as lost.
    let lost = shown()["lost_packets"].as_u64().unwrap();
    assert!(first > 20 && lost < first, "{}", shown());
    for from in [format!("{path}/packets?after=0"), format!("{path}/packets?after={}", first - 2)] {
        let problem = server.get(&from).problem(410);
        assert_eq!(problem["first"], first);
    }
    let mut events = stream(&server, &saved, Some(first - 1));
    let expected: Vec<String> = (first..40).map(|n| format!("flood {n}")).collect();
    assert_eq!(titles(&mut events, expected.len()), expected);
}

#[test]
fn pages_of_them_and_mistakes() {
    let server = Server::start();
    let mut ids: Vec<String> = (0..5)
        .map(|n| save(&server, &json!({"keywords": format!("flood{n}")}))["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    let (mut listed, mut path) = (Vec::new(), "/saved-searches?limit=2".to_owned());
    loop {
        let page = server.json(&path);
        listed.extend(page["saved_searches"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["links"][0]["href"].as_str() else { break };
        path = next[next.find("/saved-searches").unwrap()..].to_owned();
    }
    assert_eq!(listed, ids);
    for (body, field, part) in [
        ("flood", None, "not JSON"),
        ("{}", Some("keywords"), "the question is empty"),
        ("{\"question\":{\"keywords\":\"(a\"}}", Some("keywords"), "not closed"),
        ("{\"keywords\":\"a\",\"when\":[\"left\"]}", Some("when"), "enter, inside and exit"),
        ("{\"keywords\":\"a\",\"poll_s\":60}", Some("poll_s"), "none to poll"),
        (
            "{\"keywords\":\"a\",\"webhook\":{\"url\":\"http://localhost.example.org:80/\",\"secret\":\"x\"}}",
            Some("webhook"),
            "8 to 200",
        ),
        ("{\"keywords\":\"a\",\"webhook\":{\"url\":\"http://[::1]/\",\"secret\":\"x\"}}", Some("webhook"), "private"),
    ] {
        let problem = server.post("/saved-searches", "application/json", body).problem(400);
        assert_eq!(problem["field"].as_str(), field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
}
