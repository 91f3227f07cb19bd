//! Saved searches of several tenants over HTTP.

use crate::access::{CANARY, Shared, ask};
use crate::support::{Response, point, read_chunk, read_head, send};
use serde_json::{Value, json};
use std::io::BufReader;

fn save(shared: &Shared, by: &str) -> String {
    let asked = json!({ "question": { "keywords": CANARY } }).to_string();
    let saved = ask(&shared.server, Some(by), "POST", "/saved-searches", asked.as_bytes());
    assert_eq!(saved.status, 201, "{}", saved.text());
    saved.json()["id"].as_str().unwrap().to_owned()
}

/// A request of an operator that names a tenant.
fn ask_within(shared: &Shared, tenant: &str, method: &str, path: &str, body: &str) -> Response {
    let bearer = format!("Bearer {}", shared.operator);
    let kind = if path.ends_with("/items") { "application/geo+json" } else { "text/plain" };
    let headers = [("content-type", kind), ("authorization", bearer.as_str()), ("meridian-tenant", tenant)];
    shared.server.ask(method, path, &headers, body.as_bytes())
}

/// The ids of a list, and the number of records that it calls damaged.
fn listed(answer: &Response) -> (Vec<String>, usize) {
    let list = answer.json();
    let ids = list["saved_searches"].as_array().unwrap().iter();
    let damaged = list["damaged"].as_object().map_or(0, serde_json::Map::len);
    (ids.map(|saved| saved["id"].as_str().unwrap().to_owned()).collect(), damaged)
}

#[test]
fn saved_searches_stay_with_their_tenants() {
    let shared = Shared::start();
    let (ours, theirs) = (save(&shared, &shared.operator), save(&shared, &shared.foreign));
    let list = |by: &str| listed(&shared.ask(by, "GET", "/saved-searches")).0;
    assert_eq!(list(&shared.foreign), std::slice::from_ref(&theirs));
    assert_eq!(list(&shared.operator), std::slice::from_ref(&ours));
    let within = |tenant: &str| listed(&ask_within(&shared, tenant, "GET", "/saved-searches", "")).0;
    assert_eq!((within("default"), within("other")), (vec![ours.clone()], vec![theirs.clone()]));
    // An id of another tenant answers as one of nobody, whatever is asked.
    let absent = "0".repeat(32);
    for (by, foreign) in [(&shared.foreign, &ours), (&shared.operator, &theirs), (&shared.admin, &theirs)] {
        for (method, rest) in [("GET", ""), ("GET", "/packets"), ("DELETE", "")] {
            let of = |id: &str| shared.ask(by, method, &format!("/saved-searches/{id}{rest}"));
            let (hidden, none) = (of(foreign), of(&absent));
            assert_eq!((hidden.status, none.status), (404, 404), "{method} {rest}: {}", hidden.text());
            assert_eq!(hidden.text().replace(foreign.as_str(), &absent), none.text(), "{method} {rest}");
        }
    }
    let of_other = format!("/saved-searches/{theirs}");
    assert_eq!(ask_within(&shared, "other", "GET", &of_other, "").status, 200);

    // Collections of one name in two tenants are two collections.
    let spec = "name:String,*geom:Point:srid=4326";
    assert_eq!(ask_within(&shared, "other", "PUT", "/collections/vault", spec).status, 201);
    for tenant in ["default", "other", "default"] {
        let feature = point("", 1.0, 2.0, json!({ "name": format!("{CANARY} of {tenant}") }));
        let body = json!({ "type": "FeatureCollection", "features": [feature] }).to_string();
        let written = ask_within(&shared, tenant, "POST", "/collections/vault/items", &body);
        assert_eq!(written.status, 201, "{}", written.text());
    }
    for (by, id, tenant, count) in [(&shared.operator, &ours, "default", 2), (&shared.foreign, &theirs, "other", 1)] {
        let mut stream = shared.server.connect();
        let bearer = format!("Bearer {by}");
        send(&mut stream, "GET", &format!("/saved-searches/{id}/packets"), &[("authorization", &bearer)], b"");
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().0, 200);
        let mut text = String::new();
        while text.matches(CANARY).count() < count {
            text.push_str(&String::from_utf8(read_chunk(&mut reader).unwrap()).unwrap());
        }
        assert_eq!(text.matches(&format!("{CANARY} of {tenant}")).count(), count, "{text}");
        let status = shared.ask(by, "GET", &format!("/saved-searches/{id}")).json();
        assert_eq!((&status["results"], &status["dropped_events"]), (&json!(count), &json!(0)), "{status}");
    }
}

#[test]
fn a_tenant_that_is_deleted_takes_its_saved_searches_along() {
    let shared = Shared::start();
    let (ours, theirs) = (save(&shared, &shared.operator), save(&shared, &shared.foreign));
    let records = shared.server.store.records("saved");
    records.put_twice(&"0".repeat(32), b"{}").unwrap();
    let change = |method: &str, path: &str, body: Value| {
        ask(&shared.server, Some(&shared.operator), method, path, body.to_string().as_bytes()).status
    };
    assert_eq!(change("PATCH", "/tenants/other", json!({ "suspended": true })), 200);
    // It is kept for as long as its tenant is.
    assert!(records.names().unwrap().contains(&theirs));
    assert_eq!(change("DELETE", "/tenants/other", json!({})), 204);
    let names = records.names().unwrap();
    assert!(names.contains(&ours) && !names.iter().any(|name| name.starts_with(&theirs)), "{names:?}");
    assert!(!records.copied().unwrap().contains(&theirs));
    // Another tenant of its name has nothing of it.
    assert_eq!(change("POST", "/tenants", json!({ "name": "other" })), 201);
    assert!(listed(&ask_within(&shared, "other", "GET", "/saved-searches", "")).0.is_empty());
    ask_within(&shared, "other", "GET", &format!("/saved-searches/{theirs}"), "").problem(404);
    assert_eq!(listed(&shared.ask(&shared.operator, "GET", "/saved-searches")).0, [ours]);
}

#[test]
fn damaged_records_are_listed_for_operators_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        meridian_store::Store::open(meridian_store::Options::at(folder.path()), meridian_store::seams::Seams::real())
            .unwrap();
    let id = "0".repeat(32);
    store.records("saved").put_twice(&id, br#"{"created":1,"tenant":"other"}"#).unwrap();
    store.close().unwrap();
    drop(store);
    let shared = Shared::over(meridian_store::Options::at(folder.path()));
    let damaged = |by: &str| listed(&shared.ask(by, "GET", "/saved-searches")).1;
    assert_eq!((damaged(&shared.operator), damaged(&shared.foreign), damaged(&shared.admin)), (1, 0, 0));
}
