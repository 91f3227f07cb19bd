//! What the server reports about its own work: stages of responses, ids of requests, refusals, the load.

use crate::owner::is_gateway;
use crate::support::{Server, point};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const JSON: (&str, &str) = ("content-type", "application/json");

fn loaded(config: ServerConfig) -> Server {
    let server = Server::with(config);
    server.create("ships", "name:String,mag:Double,*geom:Point");
    let events: Vec<Value> =
        (0..500).map(|n| point("", f64::from(n % 90), 1.0, json!({"name": "secret-ship", "mag": n}))).collect();
    server.load("ships", &events);
    server
}

fn stages(header: &str) -> BTreeMap<&str, f64> {
    let each = header.split(", ").map(|stage| {
        let (name, took) = stage.split_once(";dur=").expect("a stage");
        (name, took.parse().expect("milliseconds"))
    });
    each.collect()
}

#[test]
fn reads_tell_what_their_stages_took() {
    let server = loaded(ServerConfig::default());
    for path in [
        "items?limit=10",
        "items?f=csv",
        "items?f=html",
        "aggregate?function=count&by=name",
        "density?width=4&height=4",
    ] {
        let answer = server.get(&format!("/collections/ships/{path}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let stages = stages(answer.header("server-timing"));
        let names: Vec<&str> = stages.keys().copied().collect();
        assert!(["admission", "encode", "scan"].iter().all(|stage| names.contains(stage)), "{path}: {names:?}");
        assert!(path.starts_with("density") || names.contains(&"plan"), "{path}: {names:?}");
        assert!(stages.values().all(|took| (0.0..60_000.0).contains(took)), "{path}: {stages:?}");
    }
    assert!(!server.get("/collections").headers.contains_key("server-timing"), "it reads no events");
}

#[test]
fn a_long_query_is_begun_again_and_counted_once() {
    let server = Server::with(ServerConfig { slow: Duration::from_nanos(1), ..ServerConfig::default() });
    server.create("ships", "name:String,*geom:Point");
    let name = "a".repeat(200);
    let events: Vec<Value> = (0..20_000).map(|n| point("", f64::from(n % 90), 1.0, json!({"name": name}))).collect();
    server.load("ships", &events);
    // Every event is tested, and each test goes through the whole text.
    let path = "/collections/ships/items?limit=5&filter=name%20LIKE%20'%25b%25c%25'";
    let first = server.get(path);
    assert_eq!((first.status, first.json()["numberReturned"].clone()), (200, json!(0)));
    let is_tried = stages(first.header("server-timing")).contains_key("void_try");
    assert_eq!(is_tried, !is_gateway(), "{}", first.header("server-timing"));
    // The next query of the kind is not tried.
    let second = server.get(path);
    assert!(!second.header("server-timing").contains("void_try"), "{}", second.header("server-timing"));
    let load = server.json("/admin/load");
    let slow: Vec<&Value> =
        load["slow"].as_array().unwrap().iter().filter(|one| one["route"] == "/collections/{c}/items").collect();
    let reads: Vec<&Value> = slow.iter().filter(|one| one["status"] == 200).map(|one| &one["bytes_read"]).collect();
    assert!(reads.len() >= 2 && reads.windows(2).all(|pair| pair[0] == pair[1]), "{slow:?}");
}

#[test]
fn a_read_of_what_the_client_has_scans_nothing() {
    let server = loaded(ServerConfig::default());
    for path in [
        "items?limit=5",
        "items?f=csv",
        "aggregate?function=count&by=name",
        "density?width=4&height=4",
        "tiles/WebMercatorQuad/0/0/0",
    ] {
        let path = format!("/collections/ships/{path}");
        let tag = server.get(&path).header("etag").to_owned();
        let again = server.ask("GET", &path, &[("if-none-match", &tag)], b"");
        assert_eq!((again.status, again.header("etag")), (304, tag.as_str()), "{path}");
        assert!(!again.header("server-timing").contains("scan;"), "{path}");
    }
}

#[test]
fn every_response_names_its_request() {
    let server = loaded(ServerConfig::default());
    let mut seen = std::collections::BTreeSet::new();
    for path in ["/collections", "/nothing", "/collections/none", "/collections/ships/items?limit=x", "/healthz"] {
        let id = server.get(path).header("x-request-id").to_owned();
        assert!(id.len() == 16 && seen.insert(id.clone()), "{path}: {id}");
    }
    let given = server.ask("GET", "/nothing", &[("x-request-id", "mine-1")], b"");
    assert_eq!((given.status, given.header("x-request-id")), (404, "mine-1"));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = server.ask("GET", "/nothing", &[("traceparent", trace)], b"");
    assert_eq!(answer.header("traceparent"), trace);
    let answer = server.ask("GET", "/nothing", &[("traceparent", "00-nonsense-01")], b"");
    assert!(!answer.headers.contains_key("traceparent"));
}

#[test]
fn a_query_that_reads_too_much_is_counted_like_other_refusals() {
    let server = loaded(ServerConfig::default());
    let set = |limit: Value| {
        let body = json!({"quotas": {"scanned_bytes_per_request": limit}}).to_string();
        assert_eq!(server.ask("PATCH", "/tenants/default", &[JSON], body.as_bytes()).status, 200);
    };
    set(json!(100));
    for path in ["items?filter=name='x'&limit=5", "items?f=csv"] {
        let problem = server.get(&format!("/collections/ships/{path}")).problem(429);
        assert_eq!((&problem["quota"], &problem["limit"]), (&json!("scanned_bytes_per_request"), &json!(100)));
    }
    let metrics = server.get("/metrics").text();
    for line in [
        "meridian_quota_refused_total{quota=\"scanned_bytes_per_request\"} 2",
        "meridian_tenant_refused_total{tenant=\"default\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    set(Value::Null);
}

#[test]
fn the_load_shows_who_uses_what_and_what_was_slow() {
    let server = loaded(ServerConfig { slow: Duration::from_nanos(1), ..ServerConfig::default() });
    assert_eq!(server.get("/collections/ships/items?limit=5").status, 200);
    let quotas = br#"{"quotas":{"requests_per_second":1000,"scanned_bytes_per_request":100,"streams":7}}"#;
    assert_eq!(server.ask("PATCH", "/tenants/default", &[JSON], quotas).status, 200);
    server.get("/collections/ships/items?filter=name%3D'secret-ship'&limit=5").problem(429);
    let load = server.json("/admin/load");
    let tenant = &load["tenants"][0];
    assert_eq!((&tenant["name"], &tenant["refused"]), (&json!("default"), &json!({"scanned_bytes_per_request": 1})));
    assert!(tenant["processor_s"].as_f64().unwrap() > 0.0, "{load}");
    let limits: Vec<(&str, u64)> = tenant["quotas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|quota| (quota["quota"].as_str().unwrap(), quota["limit"].as_u64().unwrap()))
        .collect();
    assert_eq!(limits, [("requests_per_second", 1000), ("scanned_bytes_per_request", 100), ("streams", 7)]);
    // A gateway has no writes in memory, and asks no owner.
    assert_eq!(tenant["memory"]["writes"].as_u64().is_some_and(|bytes| bytes > 0), !is_gateway(), "{load}");
    assert!(load["connections"]["now"].as_u64().unwrap() >= 1 && load["requests"]["slots"].as_u64().unwrap() >= 1);
    let slow = load["slow"].as_array().unwrap();
    let read = slow.iter().find(|one| one["route"] == "/collections/{c}/items" && one["status"] == 200).unwrap();
    assert!(read["stages"]["scan"].as_f64().is_some() && read["bytes_read"].as_u64().unwrap() > 0, "{read}");
    assert!(!load.to_string().contains("secret-ship"), "what clients look for is not shown");

    let page = server.ask("GET", "/admin/load", &[("accept", "text/html")], b"");
    assert_eq!((page.header("refresh"), page.header("cache-control")), ("2", "no-store"));
    let html = page.text();
    assert!(["Tenants", "Slow requests", "scanned bytes per request"].iter().all(|word| html.contains(word)), "{html}");
    assert!(!html.contains("<script>") && !html.contains("secret-ship"));
    let stopped = server.get("/admin/load?f=html&refresh=off");
    assert!(!stopped.headers.contains_key("refresh") && stopped.status == 200);
    server.get("/admin/load?refresh=often").problem(400);

    let asked = br#"{"role":"admin","tenant":"default"}"#;
    let operator = server.ask("POST", "/tokens", &[JSON], br#"{"role":"operator"}"#).json();
    let bearer = format!("Bearer {}", operator["token"].as_str().unwrap());
    let admin = server.ask("POST", "/tokens", &[JSON, ("authorization", &bearer)], asked).json();
    let admin = format!("Bearer {}", admin["token"].as_str().unwrap());
    assert_eq!(server.get("/admin/load").status, 401);
    assert_eq!(server.ask("GET", "/admin/load", &[("authorization", &admin)], b"").status, 403);
    assert_eq!(server.ask("GET", "/admin/load", &[("authorization", &bearer)], b"").status, 200);
}
