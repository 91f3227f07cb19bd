//! A collection that is open to all: what callers without a credential leave to the users of its tenant.

use crate::quotas::{JSON, Shared, refused};
use crate::sign_in::{Browser, PASSWORD};
use crate::support::{read_head, send};
use serde_json::{Value, json};
use std::io::BufReader;
use std::net::{Ipv4Addr, TcpStream};

/// Opens a collection of the tenant `default` to all, and sets the quotas of the tenant.
fn open(shared: &Shared, quotas: &Value) {
    let body = json!({"anonymous": "ships", "quotas": quotas}).to_string();
    let answer = shared.ask(&shared.operator, "PATCH", "/tenants/default", &[JSON], body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Sends a GET by the holder of a token, or without a credential. Returns its status, and the connection with the rest.
fn begin(shared: &Shared, by: Option<&str>, path: &str) -> (TcpStream, u16) {
    let bearer = by.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    let mut stream = shared.server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10);
    send(&mut stream, "GET", path, &headers, b"");
    let status = read_head(&mut BufReader::new(&stream)).unwrap().0;
    (stream, status)
}

#[test]
fn streams_without_a_credential_take_at_most_half_of_the_tenants() {
    let shared = Shared::start(json!({}));
    open(&shared, &json!({"streams": 5}));
    let path = "/collections/ships/stream";
    let of = |by: Option<&str>, streams: usize| -> Vec<(TcpStream, u16)> {
        (0..streams).map(|_| begin(&shared, by, path)).collect()
    };
    let statuses = |streams: &[(TcpStream, u16)]| streams.iter().map(|(_, status)| *status).collect::<Vec<_>>();
    let anonymous = of(None, 2);
    assert_eq!(statuses(&anonymous), [200, 200]);
    let answer = shared.server.get(path);
    refused(&answer, "streams", 2);
    assert_eq!(answer.json()["whole"], 5);
    let users = of(Some(&shared.operator), 4);
    assert_eq!(statuses(&users), [200, 200, 200, 429]);
}

#[test]
fn requests_without_a_credential_take_at_most_half_of_the_tenants_places() {
    // More than the buffers of both systems hold.
    const EVENTS: usize = 150_000;
    let shared = Shared::start(json!({}));
    assert_eq!(shared.post(&shared.operator, EVENTS).status, 201);
    open(&shared, &json!({"concurrent_requests": 4}));
    // Each holds its place, as its client does not read.
    let held: Vec<(TcpStream, u16)> =
        (0..2).map(|_| begin(&shared, None, "/collections/ships/items?f=ndjson")).collect();
    assert!(held.iter().all(|(_, status)| *status == 200));
    let path = "/collections/ships/items?limit=1";
    refused(&shared.server.get(path), "concurrent_requests", 2);
    // The quotas of a tenant do not decide who reaches the routes that are open to all, and can sign in.
    assert_eq!(shared.server.get("/").status, 200);
    assert_eq!(shared.ask(&shared.operator, "GET", path, &[], b"").status, 200);
}

#[test]
fn users_sign_out_and_change_their_password_where_strangers_use_the_quotas_up() {
    let shared = Shared::start(json!({}));
    let user = json!({"name": "anna", "password": PASSWORD, "role": "reader"}).to_string();
    let made = shared.ask(&shared.operator, "POST", "/users", &[JSON], user.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let browser = Browser::of(&shared.server, "anna", PASSWORD);
    // The first response is charged after it is sent. The minute of room that it takes outlasts the test.
    open(&shared, &json!({"result_bytes_per_second": 1}));
    let strangers = (0..100).any(|_| shared.server.get("/collections/ships").status == 429);
    assert!(strangers, "a response has more bytes than the quota");
    browser.get(&shared.server, "/collections/ships").problem(429);
    // Where a page has the token of the session from, which the others need.
    assert_eq!(browser.get(&shared.server, "/session").json()["csrf_token"], browser.csrf.as_str());
    assert!(browser.get(&shared.server, "/login").text().contains("action=\"/logout\""));
    let change = json!({"password": PASSWORD, "new": "another battery, correct"});
    let changed = browser.ask(&shared.server, "POST", "/password", change);
    assert_eq!(changed.status, 200, "{}", changed.text());
    let browser = Browser::from(&changed);
    assert_eq!(browser.ask(&shared.server, "POST", "/logout", json!({})).status, 204);
    assert_eq!(browser.get(&shared.server, "/session").json(), json!({"sign_in": true}));
}
