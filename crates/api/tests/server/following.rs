//! A server that shows what an owner has flushed to a bucket.

use crate::kinds::{ask, token};
use crate::support::Server;
use meridian_api::{AppState, ServerConfig};
use meridian_backend::Embedded;
use meridian_model::{IdRole, Schema};
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::{ControlPlane, Options, Settings, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn seams() -> Seams {
    Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() }
}

fn options() -> Options {
    Options { background: false, ..Options::at("/data") }
}

/// Starts a read-only server, with a store that follows when a test tells it to.
fn follower(bucket: &MemoryBucket) -> Server {
    let (seams, shared) = (seams(), Arc::new(bucket.clone()));
    let store = Arc::new(Store::open_read_only(options(), seams.clone(), shared.clone()).unwrap());
    let backend = Embedded::with_records(store.clone(), ControlPlane::new(shared, &seams, 1 << 20));
    // As for its role: gateways run saved searches.
    let mut config = ServerConfig::default();
    config.saved.enabled = false;
    let state = AppState::new(backend, &seams, config).unwrap();
    Server::of("127.0.0.1:0", store, state, None, None)
}

fn make(owner: &Store, name: &str) {
    make_of(owner, "default", name);
}

fn make_of(owner: &Store, tenant: &str, name: &str) {
    let schema = Schema { id: IdRole::Made, ..Schema::default() };
    owner.create(tenant, name, schema, Settings::default()).unwrap();
}

#[test]
fn a_collection_that_a_client_knows_of_is_waited_for_and_any_other_is_absent() {
    let bucket = MemoryBucket::new();
    let owner = Store::open_shared(options(), seams(), Arc::new(bucket.clone())).unwrap();
    let server = follower(&bucket);
    let made_later =
        [("a1", "items"), ("a2", "items?f=csv"), ("a3", "aggregate?function=count"), ("a4", "items?explain=true")];
    for (name, path) in made_later {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let after = [("meridian-after", "0"), ("meridian-timeout", "30000")];
                server.ask("GET", &format!("/collections/{name}/{path}"), &after, b"")
            });
            // Long enough for a response that does not wait.
            std::thread::sleep(Duration::from_millis(200));
            make(&owner, name);
            assert!(server.store.refresh().unwrap());
            let answer = waiting.join().unwrap();
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        });
    }
    // There is no wait without the header, nor if the header or another parameter is invalid.
    for headers in [&[][..], &[("meridian-after", "newest")][..]] {
        assert_eq!(server.ask("GET", "/collections/b1/items", headers, b"").status, 404);
    }
    // A name that the caller may not read is absent, whether or not the collection exists. So is one that does not
    // arrive.
    make(&owner, "c1");
    server.store.refresh().unwrap();
    let operator = token(&server, None, json!({ "role": "operator" }));
    let reader = token(&server, Some(&operator), json!({ "role": "reader", "collections": "a*" }));
    let begun = Instant::now();
    let bearer = format!("Bearer {reader}");
    let asked = |name: &str, timeout: &str| {
        let headers = [("authorization", bearer.as_str()), ("meridian-after", "0"), ("meridian-timeout", timeout)];
        let answer = server.ask("GET", &format!("/collections/{name}/items"), &headers, b"");
        (answer.status, answer.text().replace(name, "NAME"))
    };
    let absent = asked("a9", "300");
    assert!(begun.elapsed() >= Duration::from_millis(300), "it did not wait");
    assert_eq!((absent.0, &asked("b9", "30000"), &asked("c1", "30000")), (404, &absent, &absent));
    assert_eq!(ask(&server, Some(&operator), "GET", "/collections/c1/items", b"").status, 200);
}

#[test]
fn counts_that_only_the_owner_knows_are_left_out_and_a_tenant_with_collections_is_removed_elsewhere() {
    let bucket = MemoryBucket::new();
    let owner = Store::open_shared(options(), seams(), Arc::new(bucket.clone())).unwrap();
    let server = follower(&bucket);
    let operator = token(&server, None, json!({ "role": "operator" }));
    let by_operator =
        |method: &str, path: &str, body: &str| ask(&server, Some(&operator), method, path, body.as_bytes());
    for name in ["harbour", "empty"] {
        assert_eq!(by_operator("POST", "/tenants", &json!({ "name": name }).to_string()).status, 201);
    }
    make_of(&owner, "harbour", "ships");
    server.store.refresh().unwrap();
    let listed = by_operator("GET", "/tenants", "").json();
    let of = |name: &str| listed["tenants"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let counts = |name: &str| ["collections", "events", "bytes"].map(|count| of(name)[count].as_u64());
    assert_eq!(counts("harbour"), [Some(1), None, None]);
    assert_eq!(counts("empty"), [Some(0), Some(0), Some(0)]);
    for name in ["harbour", "empty"] {
        assert_eq!(by_operator("PATCH", &format!("/tenants/{name}"), r#"{"suspended":true}"#).status, 200);
    }
    let refused = by_operator("DELETE", "/tenants/harbour", "").problem(409);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("gateway") && detail.contains("tenant delete harbour --url"), "{detail}");
    assert_eq!(by_operator("DELETE", "/tenants/empty", "").status, 204);
}

#[test]
fn changes_of_collections_are_refused_and_those_of_records_are_not() {
    let bucket = MemoryBucket::new();
    let owner = Store::open_shared(options(), seams(), Arc::new(bucket.clone())).unwrap();
    make(&owner, "c1");
    let server = follower(&bucket);
    assert_eq!(server.get("/collections/c1/items").status, 200);
    let json = ("content-type", "application/json");
    for (method, path, body) in [
        ("POST", "/collections/c1/items", &b"{}"[..]),
        ("DELETE", "/collections/c1/items", b""),
        ("PUT", "/collections/c1/items/a", b"{}"),
        ("PUT", "/collections/c2", b"{}"),
        ("DELETE", "/collections/c1", b""),
        ("POST", "/api/v0/places", b"{}"),
    ] {
        let refused = server.ask(method, path, &[json], body);
        assert_eq!(refused.header("allow"), "OPTIONS, GET, HEAD", "{method} {path}");
        let detail = refused.problem(405)["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("gateway"), "{method} {path}: {detail}");
    }
    let operator = token(&server, None, json!({ "role": "operator" }));
    // A caller that may not write there learns that first.
    let reader = token(&server, Some(&operator), json!({ "role": "reader" }));
    let bearer = format!("Bearer {reader}");
    let asked = server.ask("DELETE", "/collections/c1", &[("authorization", &bearer)], b"");
    assert_eq!(asked.status, 403);
}
