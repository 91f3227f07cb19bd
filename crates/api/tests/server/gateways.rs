//! A gateway whose owner goes away and comes back, and what a gateway refuses.

use super::owner::gateway;
use super::support::{Server, point};
use meridian_api::{AppState, ServerConfig};
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn server() -> Server {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let (backend, owner) = gateway(&store, &seams);
    let state = AppState::new(backend, &seams, ServerConfig::default()).unwrap();
    Server::of("127.0.0.1:0", store, state, None, Some(owner))
}

#[test]
fn without_an_owner_nothing_is_absent_and_everything_is_refused_until_one_is_there() {
    let server = server();
    server.create("q", "note:String,*geom:Point");
    let event = point("", 1.0, 2.0, json!({"note": "here"}));
    server.load("q", std::slice::from_ref(&event));
    assert_eq!(server.json("/collections/q/items")["numberReturned"], 1);
    let owner = server.owner.as_ref().unwrap();
    owner.known(false);
    for path in ["/collections", "/collections/q", "/collections/absent", "/collections/q/items", "/readyz", "/api"] {
        let problem = server.get(path).problem(503);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("no server owns the data"), "{path}: {detail}");
    }
    let written = server.post("/collections/q/items", "application/geo+json", event.to_string());
    written.problem(503);
    assert_eq!(server.get("/healthz").status, 200);
    owner.known(true);
    server.load("q", &[event]);
    assert_eq!(server.json("/collections/q/items")["numberReturned"], 2);
    // What it found a moment ago counts a little longer.
    let begun = Instant::now();
    while server.get("/readyz").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is not ready");
    }
}

#[test]
fn files_in_memory_and_backups_without_the_bucket_are_refused_with_a_sentence() {
    let server = server();
    server.create("q", "note:String,*geom:Point");
    let files = server.post("/collections/q/files", "application/json", "").problem(400);
    assert!(files["detail"].as_str().unwrap().contains("ephemeral"), "{files}");
    // The collections are not in a bucket here, whether or not the records are.
    let backup = server.post("/backup", "application/json", "{}");
    assert!(matches!(backup.status, 400 | 503), "{}", backup.text());
    let detail = backup.text();
    assert!(detail.contains("ask the server that owns these") || detail.contains("does not show"), "{detail}");
}

#[test]
fn without_an_owner_a_tenant_is_suspended_and_listed_and_not_removed() {
    let server = server();
    let asked = |method: &str, path: &str, body: &str| {
        server.ask(method, path, &[("content-type", "application/json")], body.as_bytes())
    };
    assert_eq!(asked("POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    assert_eq!(server.json("/tenants")["tenants"][1]["collections"], 0);
    let owner = server.owner.as_ref().unwrap();
    owner.known(false);
    let suspended = asked("PATCH", "/tenants/harbour", r#"{"suspended":true}"#);
    assert_eq!(suspended.status, 200, "{}", suspended.text());
    let listed = server.json("/tenants")["tenants"][1].clone();
    for tenant in [suspended.json(), listed] {
        assert_eq!((&tenant["name"], &tenant["suspended"]), (&json!("harbour"), &json!(true)));
        for count in ["collections", "events", "bytes"] {
            assert!(tenant.get(count).is_none(), "{tenant}");
        }
    }
    let refused = asked("DELETE", "/tenants/harbour", "").problem(503);
    assert!(refused["detail"].as_str().unwrap().contains("removed with its collections"), "{refused}");
    owner.known(true);
    assert_eq!(asked("DELETE", "/tenants/harbour", "").status, 204);
}
