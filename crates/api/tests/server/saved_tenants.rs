//! Saved searches of several tenants over HTTP.

use crate::kinds::{CANARY, Shared, ask};
use crate::owner::is_in_bucket;
use crate::support::{Response, point, read_chunk, read_head, send};
use serde_json::{Value, json};
use std::io::BufReader;

fn save(shared: &Shared, by: &str) -> String {
    let asked = json!({ "question": { "keywords": CANARY } }).to_string();
    let saved = ask(&shared.server, Some(by), "POST", "/saved-searches", asked.as_bytes());
    assert_eq!(saved.status, 201, "{}", saved.text());
    saved.json()["id"].as_str().unwrap().to_owned()
}

/// Sends an operator's request that names a tenant.
fn ask_within(shared: &Shared, tenant: &str, method: &str, path: &str, body: &str) -> Response {
    let bearer = format!("Bearer {}", shared.operator);
    let kind = if path.ends_with("/items") { "application/geo+json" } else { "text/plain" };
    let headers = [("content-type", kind), ("authorization", bearer.as_str()), ("meridian-tenant", tenant)];
    shared.server.ask(method, path, &headers, body.as_bytes())
}

/// Returns the ids in a list, and the number of records that it reports as damaged.
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
    // An id of another tenant gets the same response as a nonexistent one, whatever the request.
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
    // Reaches into the records of the folder.
    if is_in_bucket() {
        return;
    }
    let shared = Shared::start();
    let (ours, theirs) = (save(&shared, &shared.operator), save(&shared, &shared.foreign));
    let records = shared.server.store.records("saved");
    records.put_twice(&"0".repeat(32), b"{}").unwrap();
    let change = |method: &str, path: &str, body: Value| {
        ask(&shared.server, Some(&shared.operator), method, path, body.to_string().as_bytes()).status
    };
    assert_eq!(change("PATCH", "/tenants/other", json!({ "suspended": true })), 200);
    // It is kept for as long as its tenant exists.
    assert!(records.names().unwrap().contains(&theirs));
    assert_eq!(change("DELETE", "/tenants/other", json!({})), 204);
    let names = records.names().unwrap();
    assert!(names.contains(&ours) && !names.iter().any(|name| name.starts_with(&theirs)), "{names:?}");
    assert!(!records.copied().unwrap().contains(&theirs));
    // A later tenant of the same name has nothing of it.
    assert_eq!(change("POST", "/tenants", json!({ "name": "other" })), 201);
    assert!(listed(&ask_within(&shared, "other", "GET", "/saved-searches", "")).0.is_empty());
    ask_within(&shared, "other", "GET", &format!("/saved-searches/{theirs}"), "").problem(404);
    assert_eq!(listed(&shared.ask(&shared.operator, "GET", "/saved-searches")).0, [ours]);
}

#[test]
fn damaged_records_are_listed_for_operators_alone() {
    // Reaches into the records of the folder.
    if is_in_bucket() {
        return;
    }
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

/// Builds a question whose polygon has `corners` corners.
fn around(corners: u32) -> Value {
    let corner = |n: u32| {
        let (x, y) = (f64::from(n % corners) / f64::from(corners) * std::f64::consts::TAU).sin_cos();
        json!([x, y])
    };
    let ring: Vec<Value> = (0..=corners).map(corner).collect();
    json!({ "question": { "polygon": { "type": "Polygon", "coordinates": [ring] } } })
}

#[test]
fn large_saved_searches_count_as_several_and_end_a_page() {
    let shared = Shared::start();
    let post = |asked: &Value| {
        ask(&shared.server, Some(&shared.foreign), "POST", "/saved-searches", asked.to_string().as_bytes())
    };
    let large = around(1_400);
    assert!((40_000..64_000).contains(&large.to_string().len()), "{}", large.to_string().len());
    for _ in 0..30 {
        assert_eq!(post(&large).status, 201);
    }
    let mut path = "/saved-searches".to_owned();
    let (mut ids, mut pages) = (Vec::new(), 0);
    loop {
        let page = shared.ask(&shared.foreign, "GET", &path);
        assert!(page.body.len() < 3 << 20, "{}", page.body.len());
        (ids, pages) = ([ids, listed(&page).0].concat(), pages + 1);
        let page = page.json();
        let Some(next) = page["links"].as_array().unwrap().iter().find(|link| link["rel"] == "next") else { break };
        let href = next["href"].as_str().unwrap();
        path = href[href.find("/saved").unwrap()..].to_owned();
    }
    assert!(ids.len() == 30 && pages > 1, "{} on {pages} pages", ids.len());

    let quota = json!({ "quotas": { "saved_searches": 900 } });
    assert_eq!(shared.patch(&shared.operator, "/tenants/other", quota).status, 200);
    let refused = (0..30).find_map(|_| Some(post(&large)).filter(|answer| answer.status != 201)).unwrap();
    assert_eq!(refused.problem(429)["quota"], "saved_searches");
    let many = json!({ "question": { "keywords": "x", "providers": vec!["meridian"; 101] } });
    assert_eq!(post(&many).problem(400)["field"], "providers");
}

#[test]
fn saved_searches_of_one_tenant_leave_room_for_those_of_another() {
    let mut config = meridian_api::ServerConfig::default();
    config.saved.max = 20;
    let shared = Shared::with(meridian_store::Options::ephemeral(), config);
    let asked = json!({ "question": { "keywords": CANARY } }).to_string();
    let post = |by: &str| ask(&shared.server, Some(by), "POST", "/saved-searches", asked.as_bytes());
    let taken = (0..20).take_while(|_| post(&shared.foreign).status == 201).count();
    // Half of them are guaranteed, to two tenants.
    assert_eq!(taken, 15);
    post(&shared.foreign).problem(429);
    assert_eq!((0..20).take_while(|_| post(&shared.operator).status == 201).count(), 5);
}

#[test]
fn readers_see_no_address_of_a_webhook_and_callers_without_a_credential_no_saved_search() {
    let shared = Shared::start();
    let asked = json!({ "question": { "keywords": "fire" },
        "webhook": { "url": "https://bob:hunter2@example.org/hook?key=canary-key", "secret": "s".repeat(32) } });
    let saved = ask(&shared.server, Some(&shared.writer), "POST", "/saved-searches", asked.to_string().as_bytes());
    assert_eq!(saved.status, 201, "{}", saved.text());
    let own = format!("/saved-searches/{}", saved.json()["id"].as_str().unwrap());
    for path in ["/saved-searches", &own] {
        let (writer, reader) = (shared.ask(&shared.writer, "GET", path), shared.ask(&shared.reader, "GET", path));
        assert_eq!((writer.status, reader.status), (200, 200), "{path}: {}", reader.text());
        assert!(writer.text().contains("canary-key") && reader.text().contains("fire"), "{path}: {}", reader.text());
        assert!(!reader.text().contains("hunter2") && !reader.text().contains("canary-key"), "{}", reader.text());
    }
    let opened = shared.patch(&shared.operator, "/tenants/default", json!({ "anonymous": "ships*" }));
    assert_eq!(opened.status, 200, "{}", opened.text());
    assert_eq!(shared.ask("", "GET", "/collections/ships").status, 200);
    for (method, path) in [
        ("GET", "/saved-searches"),
        ("GET", &own),
        ("GET", &format!("{own}/packets")),
        ("DELETE", &own),
        ("POST", "/searches"),
        ("GET", "/providers"),
    ] {
        shared.ask("", method, path).problem(401);
    }
}

#[test]
fn only_the_default_tenant_can_be_opened_to_callers_without_a_credential() {
    let shared = Shared::start();
    let problem = shared.patch(&shared.operator, "/tenants/other", json!({ "anonymous": "ships" })).problem(400);
    assert_eq!(problem["field"], "anonymous");
    let problem = shared.patch(&shared.operator, "/tenants/default", json!({ "anonymous": "a b" })).problem(400);
    assert_eq!(problem["field"], "anonymous");
    assert_eq!(shared.patch(&shared.operator, "/tenants/other", json!({ "anonymous": null })).status, 200);
}
