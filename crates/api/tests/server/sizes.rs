//! Max sizes of documents with instructions, and how little of them a refusal repeats.

use crate::support::Server;
use serde_json::json;

/// Max bytes of a refusal of one mistake, whatever was sent.
const REFUSAL_BYTES_MAX: usize = 6 << 10;

#[test]
fn a_refusal_repeats_little_of_what_was_sent() {
    let server = Server::start();
    server.create("c", "when:Date,*at:Point");
    // Each of its bytes takes four in a quotation within JSON.
    let (small, large) = ("\\".repeat(15_000), "\\".repeat(1 << 20));
    let event = |when: &str| json!({ "type": "Feature", "geometry": null, "properties": { "when": when } }).to_string();
    for (method, path, body) in [
        ("POST", "/searches", json!({ "keywords": "x", "limit": small }).to_string()),
        ("POST", "/searches", json!({ "keywords": "x", "radius": small }).to_string()),
        ("POST", "/searches", json!({ "keywords": "x", &small: 1 }).to_string()),
        ("POST", "/searches", json!({ "keywords": "x", "providers": [small] }).to_string()),
        ("POST", "/saved-searches", json!({ "keywords": "x", "when": small }).to_string()),
        ("POST", "/saved-searches", json!({ "keywords": "x", "poll_s": small }).to_string()),
        ("POST", "/tokens", json!({ "role": small }).to_string()),
        ("POST", "/tokens", json!({ "role": "reader", "expires": small }).to_string()),
        ("POST", "/tokens", json!({ &small: 1 }).to_string()),
        ("POST", "/users", json!({ "name": small, "role": "reader", "password": "a long password" }).to_string()),
        ("POST", "/tenants", json!({ "name": small }).to_string()),
        ("PUT", "/collections/d", json!({ "properties": { &small: { "type": large } } }).to_string()),
        ("PUT", "/collections/d", json!({ "properties": {}, "title": [small] }).to_string()),
        ("POST", "/collections/c/items", event(&large)),
    ] {
        let kind = if path.ends_with("/items") { "application/geo+json" } else { "application/json" };
        let answer = server.ask(method, path, &[("content-type", kind)], body.as_bytes());
        let shown = &body[..body.len().min(100)];
        assert!((400..=413).contains(&answer.status), "{method} {path} {shown}: {}", answer.status);
        assert!(answer.body.len() < REFUSAL_BYTES_MAX, "{method} {path} {shown}: {} bytes", answer.body.len());
    }
    // The expected value is still reported.
    let answer = server.post("/collections/c/items", "application/geo+json", event(&large)).problem(400);
    assert!(answer["detail"].as_str().unwrap().ends_with("expected RFC 3339 such as 2026-01-31T12:00:00Z"), "{answer}");
}

#[test]
fn documents_that_say_what_to_do_are_small() {
    let server = Server::start();
    server.create("c", "when:Date,*at:Point");
    let text = "x".repeat(70 << 10);
    for (method, path, kind) in [
        ("POST", "/searches", "application/json"),
        ("POST", "/saved-searches", "application/json"),
        ("POST", "/tokens", "application/json"),
        ("POST", "/users", "application/json"),
        ("PATCH", "/users/anna", "application/json"),
        ("POST", "/tenants", "application/json"),
        ("PATCH", "/tenants/default", "application/json"),
        ("POST", "/api/v0/places", "application/json"),
        ("POST", "/login", "application/json"),
    ] {
        let body = json!({ "name": text }).to_string();
        let problem = server.ask(method, path, &[("content-type", kind)], body.as_bytes()).problem(413);
        assert!(problem["limit_bytes"].as_u64().unwrap() <= 64 << 10, "{method} {path}: {problem}");
    }
    let schema = json!({ "properties": {}, "title": "x".repeat(256 << 10) }).to_string();
    for method in ["PUT", "PATCH"] {
        let answer = server.ask(method, "/collections/c", &[("content-type", "application/json")], schema.as_bytes());
        assert_eq!(answer.problem(413)["limit_bytes"], 256 << 10, "{method}");
    }
    for (name, bytes) in [("title", 1_001), ("description", 10_001)] {
        let schema = json!({ "properties": {}, name: "x".repeat(bytes) }).to_string();
        let answer = server.ask("PUT", "/collections/d", &[("content-type", "application/json")], schema.as_bytes());
        assert_eq!(answer.problem(400)["field"], name);
    }
    // Events may be larger.
    let event = json!({ "type": "Feature", "geometry": null, "properties": {}, "id": null, "more": text }).to_string();
    assert_ne!(server.post("/collections/c/items", "application/geo+json", event).status, 413);
}
