//! Servers that share tokens, tenants, users and audit lines, like those of a cluster.

use crate::jwt::read_to_the_end;
use crate::kinds::{ask, token};
use crate::sign_in::{Browser, PASSWORD, sign_in, user};
use crate::support::{Response, Server, read_chunk, read_head, send};
use meridian_api::{AppState, ServerConfig};
use meridian_backend::Embedded;
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::Seams;
use meridian_store::{ControlPlane, Options, Store};
use serde_json::json;
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Max wait for something that takes a second at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server with a store of its own.
fn server(bucket: &MemoryBucket) -> Result<Server, String> {
    with_state(bucket).map(|(server, _)| server)
}

fn with_state(bucket: &MemoryBucket) -> Result<(Server, AppState), String> {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let records = ControlPlane::new(Arc::new(bucket.clone()), &seams, 1 << 20);
    let backend = Embedded::with_records(store.clone(), records);
    let state = AppState::new(backend, &seams, ServerConfig::default()).map_err(|e| e.to_string())?;
    Ok((Server::of("127.0.0.1:0", store, state.clone(), None, None), state))
}

/// Waits until a condition holds.
#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it never came true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Repeats a request until the response has this status.
#[track_caller]
fn becomes(status: u16, mut asked: impl FnMut() -> Response) {
    until(|| asked().status == status);
}

#[test]
fn what_is_changed_at_one_server_counts_at_the_other_and_ends_its_streams() {
    let bucket = MemoryBucket::new();
    let (one, two) = (server(&bucket).unwrap(), server(&bucket).unwrap());
    for server in [&one, &two] {
        server.create("ships", "name:String,*geom:Point");
    }
    // Both are open until the first token, wherever it is created.
    let operator = token(&one, None, json!({ "role": "operator" }));
    becomes(401, || two.get("/collections"));
    assert_eq!(ask(&two, Some(&operator), "GET", "/collections", b"").status, 200);
    let made = ask(&one, Some(&operator), "POST", "/tokens", br#"{"role":"reader"}"#).json();
    let reader = made["token"].as_str().unwrap();
    becomes(200, || ask(&two, Some(reader), "GET", "/collections/ships", b""));
    let bearer = format!("Bearer {reader}");
    let mut stream = two.connect();
    send(&mut stream, "GET", "/collections/ships/stream", &[("authorization", &bearer)], b"");
    let mut stream = BufReader::new(stream);
    assert_eq!(read_head(&mut stream).unwrap().0, 200);
    assert!(!read_chunk(&mut stream).unwrap().is_empty());
    let id = made["id"].as_str().unwrap();
    assert_eq!(ask(&one, Some(&operator), "DELETE", &format!("/tokens/{id}"), b"").status, 204);
    read_to_the_end(stream);
    assert_eq!(ask(&two, Some(reader), "GET", "/collections/ships", b"").status, 401);

    // A tenant, its quotas, its users and their sessions.
    let created = ask(&one, Some(&operator), "POST", "/tenants", br#"{"name":"harbour"}"#);
    assert_eq!(created.status, 201, "{}", created.text());
    user(&one, Some(&operator), json!({ "name": "anna", "role": "admin", "tenant": "harbour" }));
    // Not by signing in repeatedly: a client that fails too often has to wait.
    until(|| ask(&two, Some(&operator), "GET", "/users", b"").text().contains("anna"));
    assert_eq!(sign_in(&two, "harbour/anna", PASSWORD).status, 200);
    let browser = Browser::of(&one, "harbour/anna", PASSWORD);
    becomes(200, || browser.get(&two, "/collections"));
    let patch =
        |server: &Server, body: &str| ask(server, Some(&operator), "PATCH", "/tenants/harbour", body.as_bytes());
    assert_eq!(patch(&two, r#"{"quotas":{"searches":3}}"#).status, 200);
    assert_eq!(patch(&one, r#"{"weight":7}"#).status, 200);
    let tenants = ask(&two, Some(&operator), "GET", "/tenants", b"").json();
    assert_eq!(tenants["tenants"][1]["quotas"]["searches"], 3, "neither change undoes the other: {tenants}");
    until(|| ask(&two, Some(&operator), "GET", "/tenants", b"").json()["tenants"][1]["weight"] == 7);
    assert_eq!(patch(&two, r#"{"suspended":true}"#).status, 200);
    becomes(401, || browser.get(&one, "/collections"));

    // One log for all writers and readers.
    let read = |server: &Server| ask(server, Some(&operator), "GET", "/audit?limit=1000", b"").json()["acts"].clone();
    let acts = read(&one);
    assert_eq!(acts, read(&two));
    let named = |act: &str| acts.as_array().unwrap().iter().filter(|line| line["act"] == act).count();
    assert_eq!((named("createToken"), named("revokeToken"), named("updateTenant")), (4, 2, 6), "{acts}");

    // A server that starts later knows them.
    let three = server(&bucket).unwrap();
    assert_eq!(ask(&three, Some(&operator), "GET", "/tenants", b"").status, 200);
    assert_eq!(three.get("/collections").status, 401);
}

#[test]
fn a_server_does_not_start_over_damaged_records_and_one_that_runs_changes_nothing() {
    let bucket = MemoryBucket::new();
    let one = server(&bucket).unwrap();
    let operator = token(&one, None, json!({ "role": "operator" }));
    let two = server(&bucket).unwrap();
    becomes(200, || ask(&two, Some(&operator), "GET", "/collections", b""));
    // The next change, which no server has read yet.
    let newest =
        bucket.objects().into_iter().map(|(name, _)| name).rfind(|name| name.starts_with("records/access/")).unwrap();
    let (folder, number) = newest.rsplit_once('/').unwrap();
    let next = format!("{folder}/{:016x}", u64::from_str_radix(number, 16).unwrap() + 1);
    bucket.harm(&next, Some(vec![7; 300]));
    let why = server(&bucket).map(drop).unwrap_err();
    assert!(why.contains(&next), "{why}");
    for server in [&one, &two] {
        ask(server, Some(&operator), "POST", "/tokens", br#"{"role":"reader"}"#).problem(507);
        assert_eq!(
            ask(server, Some(&operator), "GET", "/collections", b"").status,
            200,
            "what is known goes on for a while"
        );
    }
}

#[test]
fn who_cannot_know_what_was_revoked_lets_nobody_in() {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let state = AppState::new(Embedded::new(store.clone()), &seams, ServerConfig::default()).unwrap();
    let server = Server::of("127.0.0.1:0", store, state.clone(), None, None);
    server.create("zebras", "name:String,*geom:Point");
    // It is also unknown whether there is still no token.
    state.registry.set_behind(true);
    server.get("/collections").problem(503);
    assert!(!server.get("/?f=html").text().contains("zebras"));
    state.registry.set_behind(false);
    let operator = token(&server, None, json!({ "role": "operator" }));
    let shows = |path: &str| {
        let answer = ask(&server, Some(&operator), "GET", path, b"");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.text().contains("zebras")
    };
    let open = ["/?f=html", "/api?f=json", "/openapi.json"];
    for path in open {
        assert!(shows(path), "{path}");
    }
    state.registry.set_behind(true);
    for path in open {
        assert!(!shows(path), "{path}: what everyone may see, and no more");
    }
    for path in ["/collections", "/audit", "/readyz"] {
        let problem = ask(&server, Some(&operator), "GET", path, b"").problem(503);
        assert!(problem["detail"].as_str().unwrap().contains("cannot read which tokens"), "{path}: {problem}");
    }
    assert_eq!(server.get("/healthz").status, 200);
    state.registry.set_behind(false);
    assert_eq!(ask(&server, Some(&operator), "GET", "/collections", b"").status, 200);
}

#[test]
fn while_it_cannot_be_known_streams_without_a_credential_end_too() {
    let (server, state) = with_state(&MemoryBucket::new()).unwrap();
    server.create("ships", "name:String,*geom:Point");
    let open = || {
        let mut stream = server.connect();
        send(&mut stream, "GET", "/collections/ships/stream", &[], b"");
        let mut stream = BufReader::new(stream);
        assert_eq!(read_head(&mut stream).unwrap().0, 200);
        assert!(!read_chunk(&mut stream).unwrap().is_empty());
        stream
    };
    let local = open();
    let operator = token(&server, None, json!({ "role": "operator" }));
    let allowed = ask(&server, Some(&operator), "PATCH", "/tenants/default", br#"{"anonymous":"ships"}"#);
    assert_eq!(allowed.status, 200, "{}", allowed.text());
    let anonymous = open();
    // Set repeatedly, because the server itself determines that it is not behind.
    let ended = Arc::new(AtomicBool::new(false));
    let behind = {
        let ended = ended.clone();
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                state.registry.set_behind(true);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    read_to_the_end(local);
    read_to_the_end(anonymous);
    ended.store(true, Ordering::Relaxed);
    behind.join().unwrap();
}

#[test]
fn changes_that_wait_too_long_for_their_turn_are_refused_and_hold_no_thread() {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let config = ServerConfig { timeout_default: Duration::from_secs(1), ..ServerConfig::default() };
    let state = AppState::new(Embedded::new(store.clone()), &seams, config).unwrap();
    let server = Server::of("127.0.0.1:0", store, state.clone(), None, None);
    let operator = token(&server, None, json!({ "role": "operator" }));
    user(&server, Some(&operator), json!({ "name": "anna", "role": "reader" }));
    assert_eq!(ask(&server, Some(&operator), "POST", "/tenants", br#"{"name":"harbour"}"#).status, 201);
    let made = ask(&server, Some(&operator), "POST", "/tokens", br#"{"role":"reader"}"#).json();
    let id = made["id"].as_str().unwrap();
    let all = u32::try_from(state.changes.running.available_permits()).unwrap();
    let turns = state.changes.running.clone().try_acquire_many_owned(all).unwrap();
    for path in ["/tokens", "/login"] {
        let body = match path {
            "/login" => json!({ "name": "anna", "password": PASSWORD }),
            _ => json!({ "role": "reader" }),
        };
        let problem = ask(&server, Some(&operator), "POST", path, body.to_string().as_bytes()).problem(503);
        assert!(problem["detail"].as_str().unwrap().contains("too many changes"), "{path}: {problem}");
    }
    assert_eq!(ask(&server, Some(&operator), "GET", "/collections", b"").status, 200);
    // What takes rights away waits for none of them.
    assert_eq!(ask(&server, Some(&operator), "DELETE", &format!("/tokens/{id}"), b"").status, 204);
    for (method, path, body, status) in [
        ("PATCH", "/users/anna", &br#"{"disabled":true}"#[..], 200),
        ("DELETE", "/users/anna", b"", 204),
        ("PATCH", "/tenants/harbour", br#"{"suspended":true}"#, 200),
    ] {
        let answer = ask(&server, Some(&operator), method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    drop(turns);
    assert_eq!(ask(&server, Some(&operator), "POST", "/tokens", br#"{"role":"reader"}"#).status, 201);
}

#[test]
fn few_tenants_are_removed_at_a_time_and_more_are_refused_untouched() {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let state = AppState::new(Embedded::new(store.clone()), &seams, ServerConfig::default()).unwrap();
    let server = Server::of("127.0.0.1:0", store.clone(), state.clone(), None, None);
    let operator = token(&server, None, json!({ "role": "operator" }));
    let tenant = |method: &str, path: &str, body: &str| ask(&server, Some(&operator), method, path, body.as_bytes());
    assert_eq!(tenant("POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    let schema = meridian_model::schema_spec::parse("name:String,*geom:Point").unwrap();
    store.create("harbour", "ships", schema, Default::default()).unwrap();
    assert_eq!(tenant("PATCH", "/tenants/harbour", r#"{"suspended":true}"#).status, 200);
    let all = state.removals.available_permits();
    let removals = state.removals.clone().try_acquire_many_owned(u32::try_from(all).unwrap()).unwrap();
    let problem = tenant("DELETE", "/tenants/harbour", "").problem(503);
    assert!(problem["detail"].as_str().unwrap().contains("tenants are being removed"), "{problem}");
    assert_eq!(store.list("harbour").len(), 1);
    drop(removals);
    assert_eq!(tenant("DELETE", "/tenants/harbour", "").status, 204);
    assert!(store.list("harbour").is_empty());
    assert_eq!(state.removals.available_permits(), all);
}

#[test]
fn what_other_servers_make_of_a_tenant_until_they_hear_of_its_end_is_removed_too() {
    let bucket = MemoryBucket::new();
    let server = server(&bucket).unwrap();
    let operator = token(&server, None, json!({ "role": "operator" }));
    let tenant = |method: &str, path: &str, body: &str| ask(&server, Some(&operator), method, path, body.as_bytes());
    assert_eq!(tenant("POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    assert_eq!(tenant("PATCH", "/tenants/harbour", r#"{"suspended":true}"#).status, 200);
    // Stands in for a server that has not learned of it yet.
    let store = server.store.clone();
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        let schema = meridian_model::schema_spec::parse("name:String,*geom:Point").unwrap();
        store.create("harbour", "late", schema, Default::default()).unwrap();
    });
    assert_eq!(tenant("DELETE", "/tenants/harbour", "").status, 204);
    late.join().unwrap();
    assert!(server.store.list("harbour").is_empty());
}
