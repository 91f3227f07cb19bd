//! The life of a token: what it gives, and what ends with it.

use crate::audit::acts;
use crate::events::Socket;
use crate::jwt::{last_event, read_to_the_end};
use crate::kinds::{JSON, Shared, ask, create, token};
use crate::sign_in::{Browser, PASSWORD};
use crate::sources::{Sources, config};
use crate::support::{Server, read_chunk, read_head, read_response, send};
use meridian_api::ServerConfig;
use meridian_store::Options;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};

#[test]
fn a_token_gives_what_its_maker_has_and_ends_when_it_is_revoked() {
    let shared = Shared::start();
    let server = &shared.server;
    for (by, asked) in [
        (&shared.admin, json!({ "role": "operator" })),
        (&shared.admin, json!({ "role": "reader" })),
        (&shared.admin, json!({ "role": "reader", "collections": "ships*", "tenant": "other" })),
        (&shared.writer, json!({ "role": "reader", "collections": "ships" })),
    ] {
        ask(server, Some(by), "POST", "/tokens", asked.to_string().as_bytes()).problem(403);
    }
    for wrong in [
        json!({ "role": "king" }),
        json!({ "role": "reader", "collections": "a b" }),
        json!({ "role": "reader", "expires": "yesterday" }),
        json!({ "role": "reader", "expires": "2020-01-01T00:00:00Z" }),
        json!({ "role": "reader", "tenant": "nobody" }),
        json!({ "role": "operator", "tenant": "other" }),
        json!({ "role": "operator", "collections": "ships*" }),
        json!({ "roles": "reader" }),
    ] {
        ask(server, Some(&shared.operator), "POST", "/tokens", wrong.to_string().as_bytes()).problem(400);
    }
    let made =
        create(server, Some(&shared.admin), json!({ "role": "reader", "collections": "ships", "expires": "P1D" }));
    let (id, text) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let basic = format!("Basic {}", data_encoding::BASE64.encode(format!("gdal:{text}").as_bytes()));
    let with_basic = || server.ask("GET", "/collections/ships", &[("authorization", &basic)], b"");
    assert_eq!(with_basic().status, 200);
    assert_eq!(shared.ask(text, "GET", "/collections/ships-2").status, 404);
    // Neither its secret nor its digest can be read again.
    let secret = text.rsplit('_').next().unwrap();
    let listed = shared.ask(&shared.admin, "GET", "/tokens");
    assert!(listed.text().contains(id) && !listed.text().contains(secret) && !listed.text().contains("digest"));
    // An admin sees and revokes only the tokens of its tenant.
    assert!(!shared.ask(&shared.foreign, "GET", "/tokens").text().contains(id));
    shared.ask(&shared.foreign, "DELETE", &format!("/tokens/{id}")).problem(404);
    assert_eq!(with_basic().status, 200);
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    with_basic().problem(401);
    shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).problem(404);
}

#[test]
fn a_token_goes_on_without_the_user_that_made_it_whom_the_audit_log_names() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "admin" }));
    let anna = Browser::of(&shared.server, "anna", PASSWORD);
    let made = anna.ask(&shared.server, "POST", "/tokens", json!({ "role": "reader" })).json();
    let (path, text) = (format!("/tokens/{}", made["id"].as_str().unwrap()), made["token"].as_str().unwrap());
    let reads = || shared.ask(text, "GET", "/collections/ships").status;
    for change in [json!({ "password": "another horse battery" }), json!({ "disabled": true })] {
        assert_eq!(shared.patch(&shared.operator, "/users/anna", change).status, 200);
        assert_eq!(reads(), 200);
    }
    assert_eq!(shared.ask(&shared.operator, "DELETE", "/users/anna").status, 204);
    assert_eq!(reads(), 200);
    let acts = acts(&shared, &shared.operator);
    assert!(acts.iter().any(|act| act["who"] == "user:anna" && act["target"] == path), "{acts:?}");
    assert_eq!(shared.ask(&shared.operator, "DELETE", &path).status, 204);
    assert_eq!(reads(), 401);
}

#[test]
fn tokens_and_tenants_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let options = || meridian_store::Options::at(folder.path());
    let operator = {
        let mut server = Server::over(options(), ServerConfig::default());
        let operator = token(&server, None, json!({ "role": "operator" }));
        let made = ask(&server, Some(&operator), "POST", "/tenants", br#"{"name":"other","weight":3}"#);
        assert_eq!(made.status, 201, "{}", made.text());
        server.stop();
        server.store.close().unwrap();
        operator
    };
    let server = Server::over(options(), ServerConfig::default());
    server.get("/collections").problem(401);
    let tenants = ask(&server, Some(&operator), "GET", "/tenants", b"").json();
    let shown: Vec<_> =
        tenants["tenants"].as_array().unwrap().iter().map(|t| (t["name"].clone(), t["weight"].clone())).collect();
    assert_eq!(shown, [(json!("default"), json!(1)), (json!("other"), json!(3))]);
}

#[test]
fn streams_end_when_their_token_is_revoked() {
    let shared = Shared::start();
    let made = create(&shared.server, Some(&shared.admin), json!({ "role": "reader", "collections": "ships" }));
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let mut stream = shared.server.connect();
    send(&mut stream, "GET", "/collections/ships/stream", &[("authorization", &bearer)], b"");
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    assert!(!read_chunk(&mut reader).unwrap().is_empty());
    let id = made["id"].as_str().unwrap();
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    read_to_the_end(reader);
}

#[test]
fn streams_of_every_kind_end_when_their_token_is_revoked_and_say_why() {
    let sources = Sources::start();
    let shared = Shared::with(Options::ephemeral(), config(vec![sources.provider("hang", "")]));
    let server = &shared.server;
    let made = create(server, Some(&shared.admin), json!({ "role": "writer", "collections": "ships" }));
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let post = |path: &str, asked: Value| {
        let answer = ask(server, Some(token), "POST", path, asked.to_string().as_bytes());
        assert!(matches!(answer.status, 201 | 202), "{}", answer.text());
        answer.json()
    };
    let search = post("/searches", json!({ "keywords": "flood", "providers": ["hang"], "timeout": 120_000 }));
    let saved = post("/saved-searches", json!({ "question": { "keywords": "flood" } }));
    let paths = [
        "/collections/ships/stream".to_owned(),
        format!("/searches/{}/packets", search["search"].as_str().unwrap()),
        format!("/saved-searches/{}/packets", saved["id"].as_str().unwrap()),
    ];
    let bearer = format!("Bearer {token}");
    let open = |path: &String| {
        let mut stream = server.connect();
        send(&mut stream, "GET", path, &[("authorization", &bearer)], b"");
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().0, 200, "{path}");
        (reader, Socket::by(server, token, path))
    };
    let opened: Vec<_> = paths.iter().map(open).collect();
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    for ((events, mut socket), path) in opened.into_iter().zip(&paths) {
        read_to_the_end(events);
        let (code, reason) = loop {
            if let Err(closed) = socket.text().unwrap() {
                break closed;
            }
        };
        assert!(code == 1008 && reason.contains("credential"), "{path}: {code} {reason}");
    }
}

#[test]
fn streams_of_an_operator_in_a_tenant_that_is_deleted_end_as_those_of_a_dropped_collection() {
    let shared = Shared::start();
    let (server, bearer) = (&shared.server, format!("Bearer {}", shared.operator));
    let within = [("authorization", &*bearer), ("meridian-tenant", "other"), ("content-type", "text/plain")];
    assert_eq!(server.ask("PUT", "/collections/c", &within, b"name:String,*geom:Point:srid=4326").status, 201);
    let path = "/collections/c/stream";
    let mut stream = server.connect();
    send(&mut stream, "GET", path, &within[..2], b"");
    let mut events = BufReader::new(stream);
    assert_eq!(read_head(&mut events).unwrap().0, 200);
    let mut socket = Socket::by(server, &format!("{}\r\nmeridian-tenant: other", shared.operator), path);
    let tenant = |method: &str, body: &[u8]| ask(server, Some(&shared.operator), method, "/tenants/other", body).status;
    assert_eq!((tenant("PATCH", br#"{"suspended":true}"#), tenant("DELETE", b"")), (200, 204));
    let last = last_event(events);
    assert_eq!(last["reason"], "gone", "{last}");
    let (code, reason) = loop {
        if let Err(closed) = socket.text().unwrap() {
            break closed;
        }
    };
    assert_eq!(code, 1000, "{reason}");
}

#[test]
fn streams_without_a_credential_end_when_their_access_is_withdrawn() {
    let server = Server::start();
    server.create("ships", "name:String,*geom:Point");
    let open = || {
        let mut stream = server.connect();
        send(&mut stream, "GET", "/collections/ships/stream", &[], b"");
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().0, 200);
        assert!(!read_chunk(&mut reader).unwrap().is_empty());
        reader
    };
    let local = open();
    let operator = token(&server, None, json!({ "role": "operator" }));
    read_to_the_end(local);
    let set = |body: &str| {
        let answer = ask(&server, Some(&operator), "PATCH", "/tenants/default", body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    for (open_to_all, withdrawal) in [
        (r#"{"anonymous":"ships"}"#, r#"{"anonymous":null}"#),
        (r#"{"anonymous":"ships"}"#, r#"{"anonymous":"ports"}"#),
        (r#"{"anonymous":"ships"}"#, r#"{"suspended":true}"#),
    ] {
        set(open_to_all);
        let anonymous = open();
        set(withdrawal);
        read_to_the_end(anonymous);
    }
}

#[test]
fn a_credential_that_ends_while_its_body_arrives_does_nothing() {
    let shared = Shared::start();
    for (method, path, body) in [
        ("POST", "/tokens", r#"{"role":"admin"}"#),
        ("POST", "/users", r#"{"name":"late","role":"admin","password":"correct horse battery"}"#),
        ("PUT", "/collections/ships-late", r#"{"type":"object","properties":{}}"#),
        ("POST", "/collections/ships/items", r#"{"type":"Feature","geometry":null,"properties":{"name":"a"}}"#),
        ("POST", "/saved-searches", r#"{"keywords":"a"}"#),
    ] {
        let made = create(&shared.server, Some(&shared.operator), json!({ "role": "admin" }));
        let (id, bearer) = (made["id"].as_str().unwrap(), format!("Bearer {}", made["token"].as_str().unwrap()));
        let length = body.len().to_string();
        let headers = [("authorization", &*bearer), JSON, ("content-length", &*length)];
        let mut stream = shared.server.connect();
        send(&mut stream, method, path, &headers, &body.as_bytes()[..3]);
        // The head has arrived before the token is revoked.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(shared.ask(&shared.operator, "DELETE", &format!("/tokens/{id}")).status, 204);
        stream.write_all(&body.as_bytes()[3..]).unwrap();
        read_response(&mut BufReader::new(stream)).unwrap().problem(401);
    }
    let names = shared.ask(&shared.operator, "GET", "/collections").text();
    assert!(!names.contains("ships-late"));
}

#[test]
fn no_token_outlives_the_one_that_made_it() {
    let shared = Shared::start();
    let asked = json!({ "role": "admin", "expires": "PT1H" });
    let short = token(&shared.server, Some(&shared.operator), asked);
    for expires in [json!(null), json!("PT2H")] {
        let body = json!({ "role": "reader", "expires": expires }).to_string();
        let problem = ask(&shared.server, Some(&short), "POST", "/tokens", body.as_bytes()).problem(400);
        assert_eq!(problem["field"], "expires");
    }
    token(&shared.server, Some(&short), json!({ "role": "reader", "expires": "PT30M" }));
}
