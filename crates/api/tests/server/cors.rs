//! Pages of other origins: which of them may read, and how preflights are answered.

use crate::house::{event, raw};
use crate::kinds::Shared;
use crate::sign_in::{Browser, PASSWORD};
use crate::support::{Response, Server};
use meridian_api::ServerConfig;
use meridian_store::Options;
use serde_json::json;

const LISTED: &str = "https://tools.example.org";
const OTHER: &str = "https://evil.example";

fn listing() -> ServerConfig {
    ServerConfig { origins: vec![LISTED.parse().unwrap()], ..ServerConfig::default() }
}

fn preflight(server: &Server, path: &str, origin: &str, method: &str) -> Response {
    let headers = [
        ("origin", origin),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "cors"),
        ("access-control-request-method", method),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    server.ask("OPTIONS", path, &headers, b"")
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[track_caller]
fn tells_nothing(answer: &Response) {
    let told: Vec<_> = answer.headers.keys().filter(|name| name.starts_with("access-control-")).collect();
    assert!(told.is_empty(), "{told:?}");
}

/// Checks that the page can read every header of this API.
#[track_caller]
fn hides_nothing(answer: &Response) {
    let exposed = names(answer.header("access-control-expose-headers"));
    let safe = ["cache-control", "content-language", "content-length", "content-type", "expires", "last-modified"];
    let of_browsers = ["connection", "date", "transfer-encoding", "vary", "x-content-type-options"];
    for name in answer.headers.keys().filter(|name| !name.starts_with("access-control-")) {
        let known = [&safe[..], &of_browsers].concat().contains(&name.as_str());
        assert!(known || exposed.contains(name), "{name} is not exposed");
    }
}

#[test]
fn by_default_no_page_of_another_origin_reads() {
    let server = Server::start();
    let answer = server.ask("GET", "/version", &[("origin", LISTED)], b"");
    assert_eq!(answer.status, 200);
    tells_nothing(&answer);
    assert!(!names(answer.header("vary")).contains(&"origin".to_owned()));
    tells_nothing(&preflight(&server, "/collections", LISTED, "GET"));
}

#[test]
fn a_listed_page_with_a_token_reads_and_writes() {
    let shared = Shared::with(Options::ephemeral(), listing());
    let server = &shared.server;
    let asked = preflight(server, "/collections/ships/items", LISTED, "POST");
    assert_eq!((asked.status, asked.body.len()), (204, 0), "without a credential, which a preflight never has");
    assert_eq!(asked.header("access-control-allow-origin"), LISTED);
    assert!(names(asked.header("access-control-allow-methods")).contains(&"post".to_owned()));
    let allowed = names(asked.header("access-control-allow-headers"));
    for header in ["authorization", "content-type", "idempotency-key", "if-match", "meridian-timeout"] {
        assert!(allowed.contains(&header.to_owned()), "{header}: {allowed:?}");
    }
    assert!(asked.header("access-control-max-age").parse::<u32>().unwrap() > 0);

    let bearer = format!("Bearer {}", shared.writer);
    let page = [("origin", LISTED), ("sec-fetch-site", "cross-site"), ("authorization", &*bearer)];
    let body =
        json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"name": "x"}});
    let typed = [&page[..], &[("content-type", "application/geo+json")]].concat();
    let written = server.ask("POST", "/collections/ships/items", &typed, body.to_string().as_bytes());
    assert_eq!(written.status, 201, "{}", written.text());
    let read = server.ask("GET", "/collections/ships/items?limit=1", &page, b"");
    assert_eq!(read.status, 200, "{}", read.text());
    for answer in [&written, &read] {
        assert_eq!(answer.header("access-control-allow-origin"), LISTED);
        assert!(names(answer.header("vary")).contains(&"origin".to_owned()), "{}", answer.header("vary"));
        hides_nothing(answer);
    }
    // A refusal can be read as well, so that the page can display the reason.
    let refused = server.ask("GET", "/collections/ships/items", &page[..2], b"");
    refused.problem(401);
    assert_eq!(refused.header("access-control-allow-origin"), LISTED);
}

#[test]
fn a_preflight_is_granted_for_what_exists_alone() {
    let server = Server::with(listing());
    preflight(&server, "/nowhere", LISTED, "GET").problem(404);
    for (path, method) in [("/conformance", "DELETE"), ("/collections", "PATCH"), ("/healthz", "get"), ("/", "")] {
        let answer = preflight(&server, path, LISTED, method);
        assert!(!answer.headers.contains_key("access-control-allow-methods"), "{method} {path}");
    }
    for origin in [OTHER, "null", "https://tools.example.org.evil.example", "http://tools.example.org", "*"] {
        let answer = preflight(&server, "/collections", origin, "GET");
        assert_eq!(answer.status, 204);
        tells_nothing(&answer);
        // A cache must know that a listed page would have received more.
        assert!(names(answer.header("vary")).contains(&"origin".to_owned()));
        tells_nothing(&server.ask("GET", "/collections", &[("origin", origin)], b""));
    }
    let twice = [("origin", LISTED), ("origin", OTHER), ("access-control-request-method", "GET")];
    tells_nothing(&server.ask("OPTIONS", "/collections", &twice, b""));
}

#[test]
fn while_no_token_exists_a_listed_page_on_this_machine_reads_and_no_other() {
    let server = Server::with(listing());
    server.create("c", "n:Integer,*geom:Point");
    let read = |origin| {
        server.ask("GET", "/collections/c/items", &[("origin", origin), ("sec-fetch-site", "cross-site")], b"")
    };
    assert_eq!(read(LISTED).status, 200);
    read(OTHER).problem(401);
    // Pictures and scripts of that page have no origin, and no permission either.
    server.ask("GET", "/collections/c/items", &[("sec-fetch-site", "cross-site")], b"").problem(401);
}

#[test]
fn a_page_of_another_origin_never_uses_the_session() {
    let shared = Shared::with(Options::ephemeral(), listing());
    shared.user(json!({ "name": "anna", "role": "writer", "collections": "ships*" }));
    let browser = Browser::of(&shared.server, "anna", PASSWORD);
    let page = [("origin", LISTED), ("sec-fetch-site", "cross-site"), ("cookie", &*browser.cookie)];
    let read = shared.server.ask("GET", "/session", &page, b"");
    // Without this header, a browser hides responses fetched with cookies.
    assert!(!read.headers.contains_key("access-control-allow-credentials"));
    let asked = preflight(&shared.server, "/collections/ships/items", LISTED, "POST");
    assert!(!asked.headers.contains_key("access-control-allow-credentials"));
    assert!(!names(asked.header("access-control-allow-headers")).contains(&"x-csrf-token".to_owned()));
    shared.server.ask("DELETE", "/collections/ships/items", &page, b"").problem(403);
}

#[test]
fn a_listed_page_reads_and_sends_every_header_of_the_contract() {
    let server = Server::with(listing());
    server.create("c", "n:Integer,*geom:Point");
    server.load("c", &[event()]);
    let read = |path: &str| server.ask("GET", path, &[("origin", LISTED)], b"");
    for path in [
        "/collections/c",
        "/collections/c/items?limit=1",
        "/collections/c/items?f=csv",
        "/collections/c/aggregate?function=count",
        "/collections/c/density?width=4&height=4",
        "/collections/c/tiles/WebMercatorQuad/0/0/0",
        "/assets/pages.css",
    ] {
        let answer = read(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        hides_nothing(&answer);
    }
    let contract = server.json("/openapi.json")["components"].clone();
    let exposed = names(read("/collections/c").header("access-control-expose-headers"));
    for name in contract["headers"].as_object().unwrap().keys() {
        assert!(exposed.contains(&name.to_ascii_lowercase()), "{name}");
    }
    let asked = preflight(&server, "/collections/c", LISTED, "GET");
    let allowed = names(asked.header("access-control-allow-headers"));
    let parameters = contract["parameters"].as_object().unwrap().values();
    let sent = parameters.filter(|one| one["in"] == "header").map(|one| one["name"].as_str().unwrap());
    // The contract leaves out those of HTTP itself, and the one that holds for every operation.
    let more = ["Authorization", "Content-Type", "If-Modified-Since", "If-Unmodified-Since", "Meridian-Tenant"];
    for name in sent.chain(more) {
        assert!(allowed.contains(&name.to_ascii_lowercase()), "{name}");
    }
}

#[test]
fn a_listed_page_reads_why_a_head_is_refused() {
    let server = Server::with(listing());
    let long = format!("/{}", "x".repeat(65_600));
    let many: String = (0..120).map(|n| format!("X-{n}: 1\r\n")).collect();
    let large = format!("X-Long: {}\r\n", "x".repeat(100 << 10));
    for (target, fields, status) in
        [(&*long, "", 414), ("/", &*many, 431), ("/", &*large, 431), ("/", "Bad Name: 1\r\n", 400), ("/a>b", "", 400)]
    {
        let ask = |origin: &str| {
            raw(&server, format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n{fields}\r\n"))
        };
        let refused = ask(LISTED);
        refused.problem(status);
        assert_eq!(refused.header("access-control-allow-origin"), LISTED, "{status}");
        let other = ask(OTHER);
        other.problem(status);
        tells_nothing(&other);
        for answer in [&refused, &other] {
            assert_eq!(answer.header("vary"), "Origin", "{status}");
        }
    }
}
