//! Sessions: what ends them, and what keeps other pages from using them.

use crate::jwt::read_to_the_end;
use crate::kinds::{CANARY, Shared};
use crate::sign_in::{Browser, PASSWORD, sign_in, user};
use crate::support::{Server, read_chunk, read_head, send};
use meridian_admission::identity::SessionLimits;
use meridian_api::ServerConfig;
use serde_json::json;
use std::io::BufReader;
use std::time::Duration;

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn a_session_changes_nothing_without_its_csrf_token() {
    let shared = Shared::start();
    let server = &shared.server;
    shared.user(json!({ "name": "anna", "role": "admin" }));
    let (one, two) = (Browser::of(server, "anna", PASSWORD), Browser::of(server, "anna", PASSWORD));
    let body = json!({ "keywords": "flood", "providers": ["meridian"] }).to_string();
    let with = |more: &[(&str, &str)]| {
        server.ask("POST", "/searches", &[&[("cookie", &*one.cookie), JSON], more].concat(), body.as_bytes())
    };
    for more in [&[][..], &[("x-csrf-token", "")], &[("x-csrf-token", "x")], &[("x-csrf-token", &*two.csrf)]] {
        assert!(with(more).problem(403)["type"].as_str().unwrap().ends_with(":csrf-token"), "{more:?}");
    }
    let token = ("x-csrf-token", &*one.csrf);
    assert_eq!(with(&[token]).status, 202);
    with(&[token, ("sec-fetch-site", "cross-site")]).problem(403);
    for (method, path) in
        [("DELETE", "/collections/ships"), ("PUT", "/collections/new"), ("PATCH", "/users/anna"), ("POST", "/logout")]
    {
        let headers = [("cookie", &*one.cookie), ("content-type", "application/merge-patch+json")];
        let body: &[u8] = if method == "PATCH" { b"{}" } else { b"" };
        server.ask(method, path, &headers, body).problem(403);
    }
    // If both are sent, `Authorization` decides.
    let (right, wrong) = (format!("Bearer {}", shared.operator), format!("Bearer {}x", shared.operator));
    assert_eq!(with(&[("authorization", &right)]).status, 202);
    with(&[("authorization", &wrong), token]).problem(401);
}

#[test]
fn a_search_is_read_with_the_rights_of_its_user_then_and_by_no_namesake() {
    let shared = Shared::start();
    let server = &shared.server;
    let anna = || shared.user(json!({ "name": "anna", "role": "reader" }));
    anna();
    let question = json!({ "keywords": CANARY, "providers": ["meridian"] });
    let first = Browser::of(server, "anna", PASSWORD);
    let begun = first.ask(server, "POST", "/searches", question);
    assert_eq!(begun.status, 202, "{}", begun.text());
    let status = format!("/searches/{}", begun.json()["search"].as_str().unwrap());
    let packets = format!("{status}/packets");
    assert!(first.get(server, &packets).text().contains(CANARY));
    // Another session of the same user, with the same rights.
    let second = Browser::of(server, "anna", PASSWORD);
    assert_eq!(second.get(server, &status).status, 200);
    let hidden = || {
        let browser = Browser::of(server, "anna", PASSWORD);
        for path in [&status, &packets] {
            browser.get(server, path).problem(404);
        }
        assert_eq!(browser.ask(server, "DELETE", &status, json!(null)).status, 404);
    };
    let narrowed = shared.patch(&shared.operator, "/users/anna", json!({ "role": "reader", "collections": "ships*" }));
    assert_eq!(narrowed.status, 200, "{}", narrowed.text());
    hidden();
    let widened = shared.patch(&shared.operator, "/users/anna", json!({ "role": "reader", "collections": "*" }));
    assert_eq!(widened.status, 200, "{}", widened.text());
    assert_eq!(Browser::of(server, "anna", PASSWORD).get(server, &status).status, 200);
    // A later user with the same name and rights is a different one.
    assert_eq!(shared.ask(&shared.operator, "DELETE", "/users/anna").status, 204);
    anna();
    hidden();
}

#[test]
fn a_session_that_has_ended_reads_nothing_of_another_tenant() {
    let shared = Shared::start();
    let server = &shared.server;
    user(server, Some(&shared.foreign), json!({ "name": "eve", "role": "admin" }));
    assert_eq!(shared.patch(&shared.operator, "/tenants/default", json!({ "anonymous": "*" })).status, 200);
    let eve = Browser::of(server, "other/eve", PASSWORD);
    eve.get(server, "/collections/ships").problem(404);
    assert_eq!(shared.patch(&shared.foreign, "/users/eve", json!({ "disabled": true })).status, 200);
    for path in ["/collections/ships", "/collections", "/collections/vault/items"] {
        eve.get(server, path).problem(401);
    }
    eve.ask(server, "DELETE", "/collections/ships", json!(null)).problem(401);
    let cookie = ("cookie", &*eve.cookie);
    let person = server.ask("GET", "/collections?f=html", &[cookie, ("accept", "text/html")], b"");
    assert_eq!((person.status, person.header("location")), (303, "/login?next=/collections%3Ff%3Dhtml"));
    // There the browser loses the cookie, and can read what is open to everyone.
    let page = server.ask("GET", "/login", &[cookie], b"");
    assert!(page.status == 200 && page.header("set-cookie").contains("Max-Age=0"), "{:?}", page.headers);
    assert!(server.get("/login").header("set-cookie").is_empty());
    assert_eq!(server.get("/collections/ships").status, 200);
}

#[test]
fn a_websocket_with_a_session_is_opened_by_own_pages_only() {
    let shared = Shared::start();
    let server = &shared.server;
    shared.user(json!({ "name": "anna", "role": "reader" }));
    let browser = Browser::of(server, "anna", PASSWORD);
    let status = |more: &[(&str, &str)]| {
        let upgrade = [
            ("cookie", &*browser.cookie),
            ("upgrade", "websocket"),
            ("connection", "upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let mut stream = server.connect();
        // Without the `Connection: close` of other requests.
        let mut head = "GET /collections/ships/stream HTTP/1.1\r\nHost: localhost\r\n".to_owned();
        for (name, value) in upgrade.iter().chain(more) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        std::io::Write::write_all(&mut stream, (head + "\r\n").as_bytes()).unwrap();
        read_head(&mut BufReader::new(stream)).unwrap().0
    };
    assert_eq!(status(&[]), 403);
    assert_eq!(status(&[("origin", "http://evil.example")]), 403);
    assert_eq!(status(&[("sec-fetch-site", "same-site"), ("origin", "http://localhost")]), 403);
    assert_eq!(status(&[("origin", "http://localhost")]), 101);
}

#[test]
fn sessions_end_with_what_they_stand_for() {
    let shared = Shared::start();
    let server = &shared.server;
    let bearer = format!("Bearer {}", shared.foreign);
    let headers = [("content-type", "text/plain"), ("authorization", bearer.as_str())];
    let made = server.ask("PUT", "/collections/ships", &headers, b"name:String,*geom:Point:srid=4326");
    assert_eq!(made.status, 201, "{}", made.text());
    let ends: [(&str, &dyn Fn() -> u16); 4] = [
        ("removed", &|| shared.ask(&shared.foreign, "DELETE", "/users/anna").status),
        ("disabled", &|| shared.patch(&shared.foreign, "/users/anna", json!({ "disabled": true })).status),
        ("changed", &|| {
            shared.patch(&shared.foreign, "/users/anna", json!({ "password": "another horse battery" })).status
        }),
        ("suspended", &|| shared.patch(&shared.operator, "/tenants/other", json!({ "suspended": true })).status),
    ];
    for (what, end) in ends {
        shared.ask(&shared.foreign, "DELETE", "/users/anna");
        user(server, Some(&shared.foreign), json!({ "name": "anna", "role": "reader" }));
        let browser = Browser::of(server, "other/anna", PASSWORD);
        let mut stream = server.connect();
        send(&mut stream, "GET", "/collections/ships/stream", &[("cookie", &browser.cookie)], b"");
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().0, 200);
        assert!(!read_chunk(&mut reader).unwrap().is_empty());
        assert!(end() < 300, "{what}");
        browser.get(server, "/collections").problem(401);
        read_to_the_end(reader);
    }
    sign_in(server, "other/anna", PASSWORD).problem(401);
    assert_eq!(shared.patch(&shared.operator, "/tenants/other", json!({ "suspended": false })).status, 200);
    assert_eq!(sign_in(server, "other/anna", PASSWORD).status, 200, "the user is still there");
}

#[test]
fn sessions_outlive_a_restart_and_not_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = || meridian_store::Options::at(folder.path());
    let short = |idle, lifetime| ServerConfig { session: SessionLimits { idle, lifetime }, ..ServerConfig::default() };
    let (none, hour) = (Duration::ZERO, Duration::from_secs(3600));
    let browser = {
        let mut server = Server::over(options(), short(hour, hour));
        user(&server, None, json!({ "name": "anna", "role": "operator" }));
        server.get("/collections").problem(401);
        let browser = Browser::of(&server, "anna", PASSWORD);
        server.stop();
        server.store.close().unwrap();
        browser
    };
    let mut server = Server::over(options(), short(hour, none));
    assert_eq!(browser.get(&server, "/tokens").status, 200);
    assert_eq!(browser.ask(&server, "DELETE", "/users/nobody", json!(null)).status, 404);
    // New sessions expire at once.
    let over = Browser::of(&server, "anna", PASSWORD);
    over.get(&server, "/tokens").problem(401);
    server.stop();
    server.store.close().unwrap();
    drop(server);
    let server = Server::over(options(), short(none, hour));
    browser.get(&server, "/tokens").problem(401);
}

#[test]
fn a_user_has_ten_sessions_at_most() {
    let server = Server::start();
    user(&server, None, json!({ "name": "anna", "role": "reader" }));
    let browsers: Vec<Browser> = (0..11).map(|_| Browser::of(&server, "anna", PASSWORD)).collect();
    let alive = browsers.iter().filter(|browser| browser.get(&server, "/collections").status == 200).count();
    assert_eq!(alive, 10);
    browsers[0].get(&server, "/collections").problem(401);
}

#[test]
fn pages_name_who_is_signed_in_and_lead_to_the_way_out() {
    let shared = Shared::start();
    let server = &shared.server;
    let page = |headers: &[(&str, &str)], path: &str| {
        server.ask("GET", path, &[headers, &[("accept", "text/html")]].concat(), b"")
    };
    let bearer = format!("Bearer {}", shared.operator);
    let program = [("authorization", bearer.as_str())];
    assert!(!page(&program, "/").text().contains("/login"), "there are no users");
    shared.user(json!({ "name": "anna", "role": "reader", "collections": "ships*" }));
    let browser = Browser::of(server, "anna", PASSWORD);
    for path in ["/", "/collections", "/collections/ships", "/collections/ships/items", "/conformance", "/api"] {
        let seen = page(&[("cookie", &browser.cookie)], path);
        let text = seen.text();
        assert!(
            text.contains("title=\"Signed in as anna\"") && text.contains("href=\"/login\">Account"),
            "{path}: {text}"
        );
        assert_eq!(seen.header("cache-control"), "private", "{path}");
        let text = page(&program, path).text();
        assert!(!text.contains("anna") && text.contains("href=\"/login\">Sign in"), "{path}: {text}");
    }
    assert!(page(&[("cookie", &browser.cookie)], "/login").text().contains("action=\"/logout\""));
}
