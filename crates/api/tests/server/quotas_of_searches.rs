//! Quotas of searches, saved searches, and what a search reads.

use crate::quotas::{JSON, Shared, refused};
use crate::support::point;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn a_search_reads_within_the_quota_of_a_request_and_names_it() {
    let shared = Shared::start(json!({}));
    let made = shared.ask(
        &shared.harbour,
        "PUT",
        "/collections/postal-places",
        &[("content-type", "text/plain")],
        b"name:String,*geom:Point",
    );
    assert_eq!(made.status, 201, "{}", made.text());
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
    let features: Vec<Value> = (0..3_000).map(|n| point("", f64::from(n % 90), 1.0, json!({"name": "a"}))).collect();
    let body = json!({"type": "FeatureCollection", "features": features}).to_string();
    let headers = [("content-type", "application/geo+json")];
    let path = "/collections/postal-places/items";
    assert_eq!(shared.ask(&shared.harbour, "POST", path, &headers, body.as_bytes()).status, 201);
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
