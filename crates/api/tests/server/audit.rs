//! The audit log: its content, its readers, and the behaviour when it cannot be written.

use crate::kinds::{CANARY, Shared, ask};
use crate::owner::is_in_bucket;
use crate::sign_in::{Browser, PASSWORD, sign_in};
use crate::support::{Server, send};
use meridian_api::ServerConfig;
use meridian_store::Options;
use meridian_store::seams::{FaultKind, MemoryDisk, Seams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads all pages of the lines visible to a caller.
pub fn acts(shared: &Shared, by: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let answer = shared.ask(by, "GET", &format!("/audit?limit=3&after={after}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = answer.json();
        all.extend(page["acts"].as_array().unwrap().iter().cloned());
        let Some(next) = page["links"][0]["href"].as_str() else { return all };
        after = next.split(['?', '&']).find_map(|pair| pair.strip_prefix("after=")).unwrap().to_owned();
    }
}

pub fn named<'a>(acts: &'a [Value], act: &str) -> Vec<&'a Value> {
    acts.iter().filter(|line| line["act"] == act).collect()
}

#[test]
fn every_act_leaves_two_lines_that_name_who_did_what() {
    let shared = Shared::start();
    let bearer = format!("Bearer {}", shared.admin);
    let headers = [("content-type", "text/plain"), ("authorization", &*bearer), ("x-request-id", "order-17")];
    let put = shared.server.ask(
        "PUT",
        "/collections/ships-3?retention=P30D",
        &headers,
        b"name:String,dtg:Date,*geom:Point:srid=4326",
    );
    assert_eq!(put.status, 201, "{}", put.text());
    let made = ask(
        &shared.server,
        Some(&shared.admin),
        "POST",
        "/tokens",
        br#"{"role":"reader","collections":"ships","expires":"P1D"}"#,
    );
    let (id, text) =
        (made.json()["id"].as_str().unwrap().to_owned(), made.json()["token"].as_str().unwrap().to_owned());
    shared.ask(&shared.admin, "DELETE", "/tokens/0000000000000000").problem(404);
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    let body = br#"{"weight":3,"quotas":{"searches":4}}"#;
    assert_eq!(ask(&shared.server, Some(&shared.operator), "PATCH", "/tenants/other", body).status, 200);

    let all = acts(&shared, &shared.operator);
    assert!(all.iter().zip(1..).all(|(line, n)| line["n"] == n), "none is missing");
    let created = named(&all, "createCollection");
    let [began, ended] = created[created.len() - 2..] else { panic!("{created:?}") };
    let admin = ended["who"].as_str().unwrap();
    assert!(admin.len() == 16 && shared.ask(&shared.operator, "GET", "/tokens").text().contains(admin));
    assert_eq!((&began["status"], &ended["status"], &ended["began"]), (&Value::Null, &json!(201), &began["n"]));
    for line in [began, ended] {
        assert_eq!((&line["request"], &line["target"]), (&json!("order-17"), &json!("/collections/ships-3")));
        assert_eq!(
            (&line["from"], &line["tenant"], &line["collection"]),
            (&json!("127.0.0.1"), &json!("default"), &json!("ships-3"))
        );
    }
    assert_eq!(ended["change"], "retention P30D");
    let token = *named(&all, "createToken").last().unwrap();
    assert_eq!((&token["target"], &token["who"]), (&json!(format!("/tokens/{id}")), &json!(admin)));
    assert!(token["change"].as_str().unwrap().starts_with("reader over ships, until 2"), "{token}");
    let revoked: Vec<&Value> = named(&all, "revokeToken").into_iter().filter(|line| line["who"] == admin).collect();
    let outcomes: Vec<(&Value, &Value)> = revoked.iter().map(|line| (&line["target"], &line["status"])).collect();
    let (absent, own) = (json!("/tokens/0000000000000000"), json!(format!("/tokens/{id}")));
    assert_eq!(outcomes, [(&absent, &Value::Null), (&absent, &json!(404)), (&own, &Value::Null), (&own, &json!(204))]);
    let tenant = *named(&all, "updateTenant").last().unwrap();
    assert_eq!((&tenant["tenant"], &tenant["change"]), (&json!("other"), &json!("weight 3, searches 4")));
    // Before the first token, any program on this machine is an administrator.
    assert_eq!(named(&all, "createTenant")[0]["who"], "local");
    // Reads and writes of events are not administrative acts.
    assert!(named(&all, "createFeatures").is_empty() && named(&all, "getAudit").is_empty());
    // The raw lines of the log, for the hashes.
    let lines = shared.ask(&shared.operator, "GET", "/audit?f=ndjson&limit=1000").text();
    assert_eq!(lines.lines().count(), all.len());
    for secret in [&text, &shared.operator, &shared.admin] {
        assert!(!lines.contains(secret.rsplit('_').next().unwrap()));
    }
    let times = all[3]["time"].as_str().unwrap();
    let from_then = shared.ask(&shared.operator, "GET", &format!("/audit?limit=1000&datetime={times}/..")).json();
    assert!(from_then["acts"].as_array().unwrap().len() < all.len());
    let long_ago = shared.ask(&shared.operator, "GET", "/audit?datetime=2020-01-01").json();
    assert_eq!(long_ago["acts"], json!([]));
    for wrong in ["after=-1", "after=x", "limit=0", "datetime=soon", "f=csv", "since=1"] {
        shared.ask(&shared.operator, "GET", &format!("/audit?{wrong}")).problem(400);
    }
}

#[test]
fn an_admin_reads_what_concerns_its_tenant_and_the_collections_that_it_sees() {
    let shared = Shared::start();
    for name in ["vault", "ships"] {
        shared.ask(&shared.reader, "DELETE", &format!("/collections/{name}"));
    }
    assert_eq!(ask(&shared.server, Some(&shared.operator), "PATCH", "/tenants/other", br#"{"weight":2}"#).status, 200);
    // The scope of a token is in its line.
    let covered = br#"{"role":"reader","collections":"vault"}"#;
    assert_eq!(ask(&shared.server, Some(&shared.operator), "POST", "/tokens", covered).status, 201);
    let own = br#"{"role":"reader","collections":"ships-2"}"#;
    assert_eq!(ask(&shared.server, Some(&shared.admin), "POST", "/tokens", own).status, 201);
    let of = |by: &str| serde_json::to_string(&acts(&shared, by)).unwrap();
    assert!(of(&shared.operator).contains("/collections/vault"));
    let (admin, foreign) = (of(&shared.admin), of(&shared.foreign));
    assert!(
        admin.contains("/collections/ships") && !admin.contains("vault") && !admin.contains("/tenants/other"),
        "{admin}"
    );
    assert!(admin.contains("reader over ships-2"), "{admin}");
    assert!(foreign.contains("weight 2") && !foreign.contains("ships"), "{foreign}");
    for text in [admin, foreign] {
        assert!(!text.contains(CANARY));
    }
    for by in [&shared.reader, &shared.writer] {
        shared.ask(by, "GET", "/audit").problem(403);
    }
}

#[test]
fn refused_attempts_are_recorded_and_a_flood_of_them_is_counted() {
    let shared = Shared::start();
    for _ in 0..200 {
        shared.ask(&shared.writer, "DELETE", "/tenants/other").problem(403);
    }
    // They are recorded after the response.
    let recorded = || named(&acts(&shared, &shared.operator), "deleteTenant").len();
    let mut found = 0;
    while found < 60 {
        found = recorded();
        std::thread::yield_now();
    }
    let all = acts(&shared, &shared.operator);
    let refused = named(&all, "deleteTenant");
    assert!(refused.len() <= 120, "at most in two minutes: {}", refused.len());
    assert!(refused.iter().all(|line| line["status"] == 403 && line["target"] == "/tenants/other"));
}

#[test]
fn attempts_refused_before_their_caller_is_known_are_recorded() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "admin" }));
    let anna = Browser::of(&shared.server, "anna", PASSWORD);
    let (right, wrong) = (format!("Bearer {}", shared.admin), format!("Bearer {}", shared.forged));
    let attempts: [(&[(&str, &str)], u16); 4] = [
        (&[], 401),
        (&[("authorization", &*wrong)], 401),
        (&[("cookie", &*anna.cookie)], 403),
        (&[("authorization", &*right), ("sec-fetch-site", "cross-site")], 403),
    ];
    for (headers, status) in attempts {
        shared.server.ask("DELETE", "/collections/ships", headers, b"").problem(status);
    }
    // Neither a read nor a write of events is an act.
    shared.server.ask("GET", "/tokens", &[], b"").problem(401);
    shared.server.ask("DELETE", "/collections/ships/items", &[], b"").problem(401);
    // They are recorded after the response.
    let deadline = Instant::now() + Duration::from_secs(60);
    let all = loop {
        let all = acts(&shared, &shared.operator);
        if named(&all, "deleteCollection").len() >= attempts.len() {
            break all;
        }
        assert!(Instant::now() < deadline, "{all:?}");
    };
    let lines = named(&all, "deleteCollection");
    let mut statuses: Vec<u64> = lines.iter().map(|line| line["status"].as_u64().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [401, 401, 403, 403]);
    for line in lines {
        assert_eq!((&line["who"], &line["from"]), (&json!("nobody"), &json!("127.0.0.1")), "{line}");
    }
    assert!(named(&all, "getTokens").is_empty() && named(&all, "deleteFeatures").is_empty());
    assert!(named(&acts(&shared, &shared.admin), "deleteCollection").is_empty(), "they are of no tenant");
}

#[test]
fn an_act_that_cannot_be_recorded_is_not_done() {
    // Reaches into the records of the folder.
    if is_in_bucket() {
        return;
    }
    let disk = Arc::new(MemoryDisk::new());
    let seams = Seams { disk: disk.clone(), ..Seams::real() };
    let mut options = Options::at("/data");
    options.background = false;
    let server = Server::upon(seams, options, ServerConfig::default());
    server.create("ships", "name:String");
    disk.inject(FaultKind::WriteFails, "/audit/", 0);
    let problem = server.ask("DELETE", "/collections/ships", &[], b"").problem(507);
    assert!(problem["detail"].as_str().unwrap().contains("audit log"), "{problem}");
    assert_eq!(server.get("/collections/ships").status, 200, "it is still there");
    disk.heal();
    assert_eq!(server.ask("DELETE", "/collections/ships", &[], b"").status, 204);
    assert_eq!(server.get("/collections/ships").status, 404);
    server.create("ports", "name:String");
    // The second line fails: the act was done, and its client learns that the outcome could not be recorded.
    disk.inject(FaultKind::WriteFails, "/audit/", 1);
    let problem = server.ask("DELETE", "/collections/ports", &[], b"").problem(507);
    assert!(problem["detail"].as_str().unwrap().contains("it was done, with status 204"), "{problem}");
    disk.heal();
    let acts = server.json("/audit?limit=1000")["acts"].as_array().unwrap().clone();
    let last = acts.last().unwrap();
    assert_eq!((&last["target"], &last["status"]), (&json!("/collections/ports"), &Value::Null));
    assert_eq!(server.store.check(), []);
}

#[test]
fn an_act_whose_client_disconnects_comes_to_its_end() {
    let server = Server::start();
    server.create("ships", "name:String");
    for n in 0..20 {
        let name = format!("/collections/ships-{n}");
        let mut stream = server.connect();
        send(&mut stream, "PUT", &name, &[("content-type", "text/plain")], b"name:String");
        drop(stream);
    }
    let ended = || {
        let acts = server.json("/audit?limit=1000")["acts"].as_array().unwrap().clone();
        let began = acts.iter().filter(|line| line["status"].is_null()).count();
        let created = acts.iter().filter(|line| line["status"] == 201).count();
        (began, acts.len() - began, created)
    };
    // Each act that began ends, even without its client.
    loop {
        let (began, ended, created) = ended();
        if began == ended && server.json("/collections")["collections"].as_array().unwrap().len() == created {
            break;
        }
        std::thread::yield_now();
    }
}

#[test]
fn signing_in_and_out_is_recorded_by_names_of_users_alone() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "reader", "collections": "ships*" }));
    let browser = Browser::of(&shared.server, "anna", PASSWORD);
    assert_eq!(browser.ask(&shared.server, "POST", "/logout", json!({})).status, 204);
    assert_eq!(sign_in(&shared.server, "anna", "another password").status, 401);
    // A password in the wrong field.
    assert_eq!(sign_in(&shared.server, PASSWORD, "anna").status, 401);
    // Refused attempts are recorded soon.
    let deadline = Instant::now() + Duration::from_secs(60);
    let all = loop {
        let all = acts(&shared, &shared.operator);
        if named(&all, "signIn").len() == 3 {
            break all;
        }
        assert!(Instant::now() < deadline, "{all:?}");
    };
    let said = |act| -> Vec<_> {
        let of = |line: &Value| (line["who"].as_str().unwrap().to_owned(), line["status"].as_u64().unwrap());
        named(&all, act).into_iter().map(of).collect()
    };
    let mut attempts = said("signIn");
    attempts.sort();
    let of = |name: &str, status| (name.to_owned(), status);
    assert_eq!(attempts, [of("nobody", 401), of("user:anna", 200), of("user:anna", 401)]);
    assert_eq!(said("signOut"), [of("user:anna", 200)]);
    let made = named(&all, "createUser");
    assert_eq!(made.last().unwrap()["target"], "/users/anna");
    assert!(!Value::from(all.clone()).to_string().contains(PASSWORD));
}
