//! JSON Web Tokens as credentials of requests.

use crate::sources::{self, Sources};
use crate::support::{Response, Server, read_chunk, read_head, send};
use data_encoding::BASE64URL_NOPAD as BASE64;
use meridian_admission::identity::jwt::{IssuerSettings, KeySource, Rule};
use meridian_api::ServerConfig;
use meridian_model::policy::access::{Grant, Role};
use parking_lot::Mutex;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A key pair with a name.
pub struct Key(&'static str, Ed25519KeyPair);

impl Key {
    pub fn new(name: &'static str, seed: u8) -> Key {
        Key(name, Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    fn public(&self) -> Value {
        json!({ "kid": self.0, "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": BASE64.encode(self.1.public_key().as_ref()) })
    }

    /// Returns a token for a member of this group, valid for an hour.
    fn token(&self, group: &str) -> String {
        self.token_for(group, 3600)
    }

    /// Returns a token for a member of this group that expires after `seconds`.
    fn token_for(&self, group: &str, seconds: i64) -> String {
        let claims =
            json!({ "iss": "login", "sub": "mary", "aud": "meridian", "exp": now() + seconds, "groups": [group] });
        self.sign(&claims)
    }

    /// Returns a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        let head = json!({ "alg": "EdDSA", "kid": self.0 });
        let message =
            format!("{}.{}", BASE64.encode(head.to_string().as_bytes()), BASE64.encode(claims.to_string().as_bytes()));
        format!("{message}.{}", BASE64.encode(self.1.sign(message.as_bytes()).as_ref()))
    }
}

/// Returns the seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Serves a key set, and counts the requests for it.
fn key_server(keys: Arc<Mutex<String>>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            count.fetch_add(1, Ordering::Relaxed);
            let body = keys.lock().clone();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (url, asked)
}

pub fn set(keys: &[&Key]) -> String {
    json!({ "keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>() }).to_string()
}

pub fn config(keys: KeySource) -> ServerConfig {
    let rule = |value: &str, tenant: Option<&str>, role, collections: &str| Rule {
        claim: Some("groups".to_owned()),
        value: value.to_owned(),
        tenant: tenant.map(str::to_owned),
        grant: Grant { role, collections: collections.parse().unwrap() },
    };
    let issuer = IssuerSettings {
        name: "corporate".to_owned(),
        issuer: "login".to_owned(),
        audiences: BTreeSet::from(["meridian".to_owned()]),
        keys,
        skew: Duration::from_secs(30),
        refresh: Duration::from_secs(3600),
        refresh_min: Duration::from_secs(1),
        rules: vec![
            rule("sailors", Some("harbour"), Role::Writer, "ships*"),
            rule("admins", Some("default"), Role::Admin, "*"),
            rule("operations", None, Role::Operator, "*"),
        ],
        sign_in: None,
    };
    ServerConfig { issuers: vec![issuer], ..ServerConfig::default() }
}

pub fn ask(server: &Server, token: &str, method: &str, path: &str, body: &str) -> Response {
    let bearer = format!("Bearer {token}");
    let json = ("content-type", "application/json");
    server.ask(method, path, &[("authorization", &bearer), json], body.as_bytes())
}

/// Starts a server with keys in a file.
fn with_file(key: &Key) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    std::fs::write(&path, set(&[key])).unwrap();
    (folder, Server::with(config(KeySource::File(path))))
}

#[test]
fn a_jwt_with_other_rights_joins_and_reads_no_search_of_its_subject() {
    let (key, folder, sources) = (Key::new("one", 1), tempfile::tempdir().unwrap(), Sources::start());
    let path = folder.path().join("keys.json");
    std::fs::write(&path, set(&[&key])).unwrap();
    let mut config = config(KeySource::File(path));
    config.issuers[0].rules.push(Rule {
        claim: Some("groups".to_owned()),
        value: "visitors".to_owned(),
        tenant: Some("default".to_owned()),
        grant: Grant { role: Role::Reader, collections: "ships*".parse().unwrap() },
    });
    config.search = sources::config(vec![sources.provider("hang", "")]).search;
    config.search.join = Duration::from_secs(60);
    let server = Server::with(config);
    let question = json!({ "keywords": "flood", "providers": ["hang"], "timeout": 60_000 }).to_string();
    let search = |token: &str| {
        let answer = ask(&server, token, "POST", "/searches", &question);
        assert_eq!(answer.status, 202, "{}", answer.text());
        let answer = answer.json();
        (answer["search"].as_str().unwrap().to_owned(), answer["joined"].as_bool().unwrap())
    };
    // One subject, two groups.
    let (wide, narrow) = (key.token("admins"), key.token("visitors"));
    let ((ours, _), (theirs, joined)) = (search(&wide), search(&narrow));
    assert!(!joined && ours != theirs);
    assert_eq!((search(&wide), search(&narrow)), ((ours.clone(), true), (theirs, true)));
    for (method, path) in [("GET", ""), ("GET", "/packets"), ("DELETE", "")] {
        ask(&server, &narrow, method, &format!("/searches/{ours}{path}"), "").problem(404);
    }
    assert_eq!(ask(&server, &wide, "GET", &format!("/searches/{ours}"), "").json()["state"], "running");
}

#[test]
fn a_jwt_is_a_credential_like_a_token() {
    let key = Key::new("one", 1);
    let (_folder, server) = with_file(&key);
    // A configured issuer counts as a credential: the server is not open.
    server.get("/collections").problem(401);
    let (operator, sailor, admin) = (key.token("operations"), key.token("sailors"), key.token("admins"));
    // Its tenant does not exist yet.
    ask(&server, &sailor, "GET", "/collections", "").problem(401);
    assert_eq!(ask(&server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    assert_eq!(ask(&server, &sailor, "GET", "/collections", "").status, 200);
    ask(&server, &sailor, "GET", "/tenants", "").problem(403);
    ask(&server, &sailor, "GET", "/collections/vault", "").problem(404);
    ask(&server, &key.token("strangers"), "GET", "/collections", "").problem(401);
    let basic = format!("Basic {}", data_encoding::BASE64.encode(format!("gdal:{sailor}").as_bytes()));
    assert_eq!(server.ask("GET", "/collections", &[("authorization", &basic)], b"").status, 200);
    // A token cannot outlive the credential that created it.
    ask(&server, &admin, "POST", "/tokens", r#"{"role":"reader"}"#).problem(400);
    assert_eq!(ask(&server, &admin, "POST", "/tokens", r#"{"role":"reader","expires":"PT30M"}"#).status, 201);
    let acts = ask(&server, &operator, "GET", "/audit?limit=1000", "").text();
    assert!(acts.contains("jwt:corporate:mary") && !acts.contains(&sailor));
    let forged = format!("{}x", &sailor[..sailor.len() - 1]);
    ask(&server, &forged, "GET", "/collections", "").problem(401);
}

/// Opens a stream of the tenant's collection, which is created for it.
fn stream(server: &Server, operator: &str, sailor: &str) -> BufReader<TcpStream> {
    let bearer = format!("Bearer {operator}");
    let headers = [("authorization", &*bearer), ("content-type", "text/plain"), ("meridian-tenant", "harbour")];
    assert_eq!(server.ask("PUT", "/collections/ships", &headers, b"name:String,*geom:Point:srid=4326").status, 201);
    let bearer = format!("Bearer {sailor}");
    let mut stream = server.connect();
    send(&mut stream, "GET", "/collections/ships/stream", &[("authorization", &bearer)], b"");
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    assert!(!read_chunk(&mut reader).unwrap().is_empty());
    reader
}

/// Reads the rest of a stream of events until the server ends it for lack of access.
#[track_caller]
pub fn read_to_the_end(reader: BufReader<TcpStream>) {
    let data = last_event(reader);
    assert_eq!(data["reason"], "unauthorized", "{data}");
}

/// Reads the rest of a stream of events until the server ends it, and returns its last event, which says why.
#[track_caller]
pub fn last_event(mut reader: BufReader<TcpStream>) -> Value {
    let mut text = String::new();
    // A minute has four keep-alives.
    for _ in 0..12 {
        let chunk = read_chunk(&mut reader).unwrap_or_else(|e| panic!("{e}, after {text:?}"));
        if chunk.is_empty() {
            let (before, data) = text.split_once("event: end\ndata: ").unwrap_or_else(|| panic!("no reason: {text:?}"));
            assert!(before.is_empty() || before.ends_with("\n\n"), "{text:?}");
            return serde_json::from_str(data).unwrap();
        }
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    panic!("the stream goes on: {text:?}");
}

#[test]
fn a_stream_ends_with_its_jwt() {
    let key = Key::new("one", 1);
    let (_folder, server) = with_file(&key);
    let operator = key.token("operations");
    assert_eq!(ask(&server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    // Within the skew of half a minute for a few more seconds.
    let sailor = key.token_for("sailors", -20);
    read_to_the_end(stream(&server, &operator, &sailor));
    ask(&server, &sailor, "GET", "/collections", "").problem(401);
}

#[test]
fn a_suspension_ends_the_streams_of_a_jwt_and_refuses_it() {
    let key = Key::new("one", 1);
    let (_folder, server) = with_file(&key);
    let (operator, sailor) = (key.token("operations"), key.token("sailors"));
    assert_eq!(ask(&server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    let reader = stream(&server, &operator, &sailor);
    assert_eq!(ask(&server, &operator, "PATCH", "/tenants/harbour", r#"{"suspended":true}"#).status, 200);
    ask(&server, &sailor, "GET", "/collections", "").problem(401);
    read_to_the_end(reader);
    assert_eq!(ask(&server, &operator, "PATCH", "/tenants/harbour", r#"{"suspended":false}"#).status, 200);
    assert_eq!(ask(&server, &sailor, "GET", "/collections", "").status, 200);
}

#[test]
fn a_flood_of_forged_tokens_is_told_to_wait_and_disturbs_no_known_client() {
    let key = Key::new("one", 1);
    let (_folder, server) = with_file(&key);
    let (known, other) = (key.token("operations"), Key::new("one", 2).token("operations"));
    assert_eq!(ask(&server, &known, "GET", "/tenants", "").status, 200);
    let mut statuses = BTreeSet::new();
    // Far more than are forgotten meanwhile.
    for _ in 0..10_000 {
        let answer = ask(&server, &other, "GET", "/tenants", "");
        statuses.insert(answer.status);
        if answer.status == 429 {
            assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
            assert_eq!(answer.problem(429)["type"], "urn:meridian:problem:too-many-attempts");
            break;
        }
    }
    assert_eq!(statuses, BTreeSet::from([401, 429]));
    assert_eq!(ask(&server, &known, "GET", "/tenants", "").status, 200);
}

#[test]
fn an_unknown_key_has_the_keys_read_again_and_a_failure_keeps_those_that_are_there() {
    let (one, two) = (Key::new("one", 1), Key::new("two", 2));
    let served = Arc::new(Mutex::new(set(&[&one])));
    let (url, asked) = key_server(served.clone());
    let server = Server::with(config(KeySource::Url(url)));
    let until_served = |key: &Key| {
        let token = key.token("operations");
        while ask(&server, &token, "GET", "/tenants", "").status != 200 {
            std::thread::yield_now();
        }
    };
    until_served(&one);
    *served.lock() = set(&[&one, &two]);
    until_served(&two);
    // An invalid key set changes nothing.
    "<html>".clone_into(&mut served.lock());
    let before = asked.load(Ordering::Relaxed);
    let unknown = Key::new("three", 3).token("operations");
    while asked.load(Ordering::Relaxed) == before {
        ask(&server, &unknown, "GET", "/tenants", "").problem(401);
    }
    for key in [&one, &two] {
        assert_eq!(ask(&server, &key.token("operations"), "GET", "/tenants", "").status, 200);
    }
    // A flood of tokens with unknown keys triggers only occasional reloads, not one each.
    let before = asked.load(Ordering::Relaxed);
    for _ in 0..200 {
        ask(&server, &unknown, "GET", "/tenants", "").problem(401);
    }
    let (after, most) = (asked.load(Ordering::Relaxed), 100);
    assert!(after - before < most, "{} times", after - before);
}
