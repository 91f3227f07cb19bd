//! A gateway whose owner goes and comes back, and what a gateway refuses.

use super::owner::gateway;
use super::support::{Server, point};
use meridian_api::{AppState, ServerConfig};
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::json;
use std::sync::Arc;

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
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn files_and_backups_are_refused_with_a_sentence() {
    let server = server();
    server.create("q", "note:String,*geom:Point");
    let files = server.post("/collections/q/files", "application/json", "").problem(400);
    assert!(files["detail"].as_str().unwrap().contains("a gateway has no files"), "{files}");
    let backup = server.post("/backup", "application/json", "{}").problem(400);
    assert!(backup["detail"].as_str().unwrap().contains("a gateway makes no backup"), "{backup}");
}
