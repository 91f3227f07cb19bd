//! The audit log against tenants that flood it, hide in it, or read lines of others in it.

use crate::audit::{acts, named};
use crate::kinds::{Shared, ask, token};
use crate::owner::is_in_bucket;
use crate::sign_in::{Browser, PASSWORD, sign_in};
use meridian_store::Act;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Reads all lines once the expected number of an act exists: refused attempts are recorded after their response.
fn recorded(shared: &Shared, act: &str, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let all = acts(shared, &shared.operator);
        if named(&all, act).len() >= count {
            return all;
        }
        assert!(Instant::now() < deadline, "{count} of {act} are missing: {:?}", named(&all, act));
    }
}

#[test]
fn acts_of_a_tenant_have_a_pace_and_names_of_nothing_leave_no_line() {
    let shared = Shared::start();
    let before = acts(&shared, &shared.operator).len();
    let long = "x".repeat(200);
    for path in ["/collections/%01%01", "/collections/a%2Fb", "/tokens/%00", &format!("/users/{long}")] {
        shared.ask(&shared.foreign, "DELETE", path).problem(404);
    }
    shared.ask(&shared.foreign, "PUT", "/collections/%01").problem(400);
    assert_eq!(acts(&shared, &shared.operator).len(), before);
    let absent = |by: &str| shared.ask(by, "DELETE", "/tokens/0123456789abcdef");
    let refused = (0..5_000).map(|_| absent(&shared.foreign)).find(|answer| answer.status != 404).unwrap();
    let problem = refused.problem(429);
    assert_eq!((&problem["quota"], &problem["limit"]), (&json!("acts_per_minute"), &json!(300)));
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1 && refused.header("ratelimit").contains("r=0"));
    // Changes of collections have another limit, so that a token that floods them can be revoked.
    let changes = || shared.ask(&shared.foreign, "DELETE", "/collections/none").status;
    let refused = (0..5_000).position(|_| changes() == 429);
    assert!(refused.is_some_and(|made| made >= 300), "{refused:?}");
    // The limit is the tenant's own.
    absent(&shared.admin).problem(404);
    for _ in 0..400 {
        absent(&shared.operator).problem(404);
    }
}

#[test]
fn collections_that_searches_and_places_create_are_acts_and_have_their_pace() {
    let shared = Shared::start();
    let post =
        |by: &str, path: &str, body: Value| ask(&shared.server, Some(by), "POST", path, body.to_string().as_bytes());
    let keep = |name: &str| json!({ "keywords": "x", "providers": ["meridian"], "keep": { "collection": name } });
    let place = json!({ "name": "Sutro Baths", "latitude": 37.7788151, "longitude": -122.512226 });
    post(&shared.writer, "/searches", keep("ships-kept")).problem(403);
    assert_eq!(post(&shared.admin, "/searches", keep("ships-kept")).status, 202);
    // The collection exists now, so it is not created again.
    assert_eq!(post(&shared.admin, "/searches", keep("ships-kept")).status, 202);
    assert_eq!(post(&shared.operator, "/api/v0/places", place.clone()).status, 303);
    assert_eq!(post(&shared.operator, "/api/v0/places", place.clone()).status, 303);
    let deadline = Instant::now() + Duration::from_secs(60);
    let kept = loop {
        // The refused attempt is recorded after its response.
        let all = acts(&shared, &shared.operator);
        let of = |path: &str| -> Vec<Value> {
            let lines = named(&all, "createCollection").into_iter().filter(|line| line["target"] == path);
            lines.cloned().collect()
        };
        let (kept, places) = (of("/collections/ships-kept"), of("/collections/places"));
        let statuses: Vec<&Value> = places.iter().map(|line| &line["status"]).collect();
        assert_eq!((statuses, &places[1]["began"]), (vec![&Value::Null, &json!(201)], &places[0]["n"]));
        if kept.len() == 3 {
            break kept;
        }
        assert!(Instant::now() < deadline, "{kept:?}");
    };
    let (refused, done): (Vec<&Value>, Vec<&Value>) = kept.iter().partition(|line| line["status"] == 403);
    assert_eq!((refused.len(), &done[0]["status"], &done[1]["status"]), (1, &Value::Null, &json!(201)));
    assert_eq!((&done[1]["collection"], &done[1]["tenant"]), (&json!("ships-kept"), &json!("default")));
    assert_eq!(done[1]["change"], "retention P1D, for results of searches");
    assert_ne!(refused[0]["who"], done[0]["who"]);

    let until_refused = |attempt: &dyn Fn(usize) -> u16| (0..5_000).find(|n| attempt(*n) == 429).expect("a pace");
    until_refused(&|_| shared.ask(&shared.foreign, "DELETE", "/collections/none").status);
    shared.ask(&shared.foreign, "DELETE", "/tokens/0123456789abcdef").problem(404);
    until_refused(&|n| post(&shared.foreign, "/searches", keep(&format!("kept-{n}"))).status);
    let plain = json!({ "keywords": "x", "providers": ["meridian"] });
    assert_eq!(post(&shared.foreign, "/searches", plain).status, 202);
    let mut refused = (0..5_000).map(|_| {
        shared.ask(&shared.foreign, "DELETE", "/collections/places");
        post(&shared.foreign, "/api/v0/places", place.clone())
    });
    let problem = refused.find(|answer| answer.status != 303).expect("a pace").problem(429);
    assert_eq!((&problem["quota"], &problem["limit"]), (&json!("acts_per_minute"), &json!(300)));
}

#[test]
fn refused_attempts_of_one_source_hide_none_of_another() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "reader" }));
    let foreign = token(&shared.server, Some(&shared.operator), json!({ "role": "reader", "tenant": "other" }));
    for _ in 0..100 {
        shared.ask(&foreign, "DELETE", "/tokens/0123456789abcdef").problem(403);
    }
    // After some attempts from an address, further ones are refused unread.
    let statuses: Vec<u16> = (0..100).map(|_| sign_in(&shared.server, "nobody", "another password").status).collect();
    assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");
    shared.ask(&shared.writer, "DELETE", "/tenants/other").problem(403);
    let all = recorded(&shared, "deleteTenant", 1);
    assert_eq!(named(&all, "deleteTenant")[0]["status"], 403);
    assert!(named(&all, "signIn").iter().all(|line| line["status"] == 401), "429 is only counted");
}

#[test]
fn the_next_tenant_of_a_name_reads_nothing_of_the_one_before() {
    let shared = Shared::start();
    let put = |by: &str, name: &str| {
        let bearer = format!("Bearer {by}");
        let headers = [("content-type", "text/plain"), ("authorization", &*bearer)];
        shared.server.ask("PUT", &format!("/collections/{name}"), &headers, b"name:String").status
    };
    assert_eq!(put(&shared.foreign, "old-secret-project"), 201);
    assert!(serde_json::to_string(&acts(&shared, &shared.foreign)).unwrap().contains("old-secret-project"));
    let suspended = ask(&shared.server, Some(&shared.operator), "PATCH", "/tenants/other", br#"{"suspended":true}"#);
    assert_eq!(suspended.status, 200);
    assert_eq!(shared.ask(&shared.operator, "DELETE", "/tenants/other").status, 204);
    let made = ask(&shared.server, Some(&shared.operator), "POST", "/tenants", br#"{"name":"other"}"#);
    assert_eq!(made.status, 201);
    let admin = token(&shared.server, Some(&shared.operator), json!({ "role": "admin", "tenant": "other" }));
    assert_eq!(put(&admin, "new-project"), 201);
    let read = acts(&shared, &admin);
    let text = serde_json::to_string(&read).unwrap();
    assert!(text.contains("new-project") && !text.contains("old-secret-project"), "{text}");
    assert!(named(&read, "deleteTenant").is_empty() && named(&read, "createToken").len() == 1, "{text}");
    assert!(serde_json::to_string(&acts(&shared, &shared.operator)).unwrap().contains("old-secret-project"));
}

#[test]
fn acts_of_operators_concern_the_tenant_of_what_they_change() {
    let shared = Shared::start();
    shared.user(json!({ "name": "root", "role": "operator" }));
    let id = |by: &str, asked: &str| {
        let made = ask(&shared.server, Some(by), "POST", "/tokens", asked.as_bytes());
        made.json()["id"].as_str().unwrap().to_owned()
    };
    let operator = id(&shared.operator, r#"{"role":"operator"}"#);
    let foreign = id(&shared.foreign, r#"{"role":"reader"}"#);
    let browser = Browser::of(&shared.server, "root", PASSWORD);
    assert_eq!(browser.ask(&shared.server, "POST", "/logout", json!({})).status, 204);
    for id in [&operator, &foreign] {
        assert_eq!(shared.ask(&shared.operator, "DELETE", &format!("/tokens/{id}")).status, 204);
    }
    assert_eq!(shared.ask(&shared.operator, "DELETE", "/users/root").status, 204);
    // The tenant sees that its token was revoked, and by whom; no tenant sees tokens and users of operators.
    let read = acts(&shared, &shared.foreign);
    let revoked = named(&read, "revokeToken");
    assert_eq!((revoked.len(), &revoked[0]["status"]), (1, &json!(204)), "{read:?}");
    assert_eq!(revoked[0]["target"], format!("/tokens/{foreign}"));
    let everywhere = token(&shared.server, Some(&shared.operator), json!({ "role": "admin" }));
    for by in [&shared.foreign, &everywhere] {
        let text = serde_json::to_string(&acts(&shared, by)).unwrap();
        assert!(!text.contains(&operator) && !text.contains("root"), "{text}");
    }
    let all = serde_json::to_string(&acts(&shared, &shared.operator)).unwrap();
    assert!(all.contains(&operator) && all.contains("user:root"));
}

#[test]
fn no_part_of_a_grant_is_cut_out_of_its_line_and_no_user_looks_like_the_owner() {
    let shared = Shared::start();
    let names: Vec<String> = (0..60).map(|n| format!("harmless{n:03}")).collect();
    let collections = format!("{},*", names.join(","));
    token(&shared.server, Some(&shared.operator), json!({ "role": "admin", "collections": collections }));
    shared.user(json!({ "name": "socket", "role": "reader" }));
    let browser = Browser::of(&shared.server, "socket", PASSWORD);
    assert_eq!(browser.ask(&shared.server, "POST", "/logout", json!({})).status, 204);
    assert_eq!(sign_in(&shared.server, "socket", "another password").status, 401);
    let all = recorded(&shared, "signIn", 2);
    assert!(named(&all, "createToken").last().unwrap()["change"].as_str().unwrap().contains("harmless059,*"));
    assert!(all.iter().all(|line| line["who"] != "socket"), "{all:?}");
    assert_eq!(all.iter().filter(|line| line["who"] == "user:socket").count(), 3);
}

#[test]
fn reading_the_log_is_charged_to_its_tenant() {
    // Reaches into the records of the folder.
    if is_in_bucket() {
        return;
    }
    let shared = Shared::start();
    let act = Act { who: "x".repeat(300), tenant: "default".to_owned(), ..Act::default() };
    shared.server.store.audit().append(&vec![act; 1_500]).unwrap();
    let charged = || {
        let metrics = shared.ask(&shared.operator, "GET", "/metrics").text();
        let line = metrics.lines().find(|line| {
            line.starts_with("meridian_tenant_processor_seconds_total{") && line.contains("tenant=\"other\"")
        });
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
    };
    let (before, nothing) = (charged(), "/audit?limit=1000&datetime=1999-01-01");
    for _ in 0..50 {
        assert_eq!(shared.ask(&shared.foreign, "GET", nothing).json()["acts"], json!([]));
    }
    // 75,000 lines were read. A request that reads nothing is charged about 50 µs.
    let used = charged() - before;
    assert!(used > 0.02, "{used}");
}
