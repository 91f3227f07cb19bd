//! Compressed responses: which ones are compressed, with which coding, and which never are.

use crate::events::Events;
use crate::kinds::Shared;
use crate::sign_in::{Browser, PASSWORD};
use crate::support::{Response, Server, point, read_chunk, read_head, send};
use meridian_api::ServerConfig;
use meridian_store::Options;
use serde_json::json;
use std::io::{BufReader, Read};

const CODINGS: [&str; 3] = ["zstd", "br", "gzip"];

fn decoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        "zstd" => zstd::stream::read::Decoder::new(bytes).unwrap().read_to_end(&mut out),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
        other => panic!("{other:?}"),
    }
    .unwrap_or_else(|e| panic!("{coding}: {e}"));
    out
}

fn accepting(server: &Server, path: &str, codings: &str, more: &[(&str, &str)]) -> Response {
    server.ask("GET", path, &[&[("accept-encoding", codings)], more].concat(), b"")
}

/// Starts a server with a few hundred events.
fn filled(config: ServerConfig) -> Server {
    let server = Server::with(config);
    server.create("c", "n:Integer,note:String,*geom:Point:srid=4326");
    let events: Vec<_> = (0..400)
        .map(|n| {
            point("", f64::from(n % 90), f64::from(n % 45), json!({ "n": n, "note": format!("the note of event {n}") }))
        })
        .collect();
    server.load("c", &events);
    server
}

#[test]
fn every_coding_gives_the_same_and_says_so() {
    let server = filled(ServerConfig::default());
    for path in [
        "/collections/c/items?f=csv&limit=400",
        "/collections/c/items?f=ndjson",
        "/openapi.json",
        "/collections/c/items?f=arrow",
        "/collections/c/items?f=flatgeobuf",
    ] {
        let plain = server.get(path);
        assert!(!plain.headers.contains_key("content-encoding"), "{path}");
        for coding in CODINGS {
            let answer = accepting(&server, path, coding, &[]);
            assert_eq!((answer.status, answer.header("content-encoding")), (200, coding), "{path}");
            assert!(answer.body.len() < plain.body.len() * 2 / 3, "{path} {coding}: {}", answer.body.len());
            assert!(decoded(coding, &answer.body) == plain.body, "{path} {coding}");
            assert_eq!(answer.header("content-type"), plain.header("content-type"));
            for answer in [&answer, &plain] {
                // A cache must not serve one coding to a client that asked for the other.
                assert!(answer.header("vary").split(", ").any(|name| name == "Accept-Encoding"), "{path}: {answer:?}");
            }
            let mut stream = server.connect();
            send(&mut stream, "HEAD", path, &[("accept-encoding", coding)], b"");
            let (status, headers) = read_head(&mut BufReader::new(stream)).unwrap();
            assert_eq!((status, headers["content-encoding"].as_str()), (200, coding), "{path}");
        }
    }
}

#[test]
fn the_client_chooses() {
    let server = filled(ServerConfig::default());
    let path = "/collections/c/items?limit=100";
    for (codings, expected) in [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "br"),
        ("zstd;q=0.5, gzip;q=0.9", "gzip"),
        ("identity;q=1, *;q=0.5", ""),
        ("*;q=0", ""),
        ("deflate", ""),
    ] {
        let answer = accepting(&server, path, codings, &[]);
        assert_eq!((answer.status, answer.header("content-encoding")), (200, expected), "{codings}");
    }
    let off = filled(ServerConfig { compress: false, ..ServerConfig::default() });
    let answer = accepting(&off, path, "gzip", &[]);
    assert_eq!(answer.header("content-encoding"), "");
    assert!(!answer.header("vary").contains("Accept-Encoding"), "{}", answer.header("vary"));
}

#[test]
fn what_is_small_or_compressed_already_is_sent_as_it_is() {
    let server = filled(ServerConfig::default());
    for path in ["/collections/c/items?f=parquet", "/version", "/collections/c/items?limit=1&f=csv"] {
        let answer = accepting(&server, path, "gzip, br, zstd", &[]);
        assert_eq!((answer.status, answer.header("content-encoding")), (200, ""), "{path}");
    }
    // A small response is compressed if the client accepts nothing else.
    let answer = accepting(&server, "/version", "gzip, identity;q=0", &[]);
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert_eq!(decoded("gzip", &answer.body), server.get("/version").body);
    // A refusal is a separate document.
    accepting(&server, "/collections/absent", "gzip", &[]).problem(404);
}

#[test]
fn events_are_not_held_back() {
    let server = filled(ServerConfig::default());
    let mut stream = server.connect();
    let path = "/collections/c/stream?after=0";
    send(&mut stream, "GET", path, &[("accept-encoding", "gzip, br, zstd"), ("accept", "text/event-stream")], b"");
    let (status, headers) = read_head(&mut BufReader::new(stream)).unwrap();
    assert_eq!((status, headers.get("content-encoding")), (200, None));
    // The same stream, read like its clients do.
    drop(Events::open(&server, "/collections/c/stream", None));
}

#[test]
fn a_long_response_is_compressed_as_it_is_sent() {
    // Small chunks, and few of them ahead: most of the response is produced after its first bytes are read.
    let config = ServerConfig { chunk_bytes: 2048, chunks_waiting_max: 1, ..ServerConfig::default() };
    let server = filled(config);
    for part in 0..10 {
        let events: Vec<_> = (0..400)
            .map(|n| point("", 1.0, 2.0, json!({ "n": n, "note": format!("{part} {}", n * n * 7919) })))
            .collect();
        server.load("c", &events);
    }
    let plain = server.get("/collections/c/items?f=ndjson").body;
    for coding in CODINGS {
        let mut stream = server.connect();
        send(&mut stream, "GET", "/collections/c/items?f=ndjson", &[("accept-encoding", coding)], b"");
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).unwrap();
        assert_eq!((status, headers["transfer-encoding"].as_str()), (200, "chunked"), "{coding}");
        let (mut coded, mut chunks) = (Vec::new(), 0);
        loop {
            let chunk = read_chunk(&mut reader).unwrap();
            if chunk.is_empty() {
                break;
            }
            chunks += 1;
            coded.extend(chunk);
        }
        assert!(chunks > 1 && decoded(coding, &coded) == plain, "{coding}: {chunks} chunks");
    }
}

#[test]
fn a_response_with_a_secret_is_never_compressed() {
    let shared = Shared::with(Options::ephemeral(), ServerConfig::default());
    shared.user(json!({ "name": "anna", "role": "admin", "collections": "*" }));
    let browser = Browser::of(&shared.server, "anna", PASSWORD);
    let own = ("sec-fetch-site", "same-origin");
    // Without a min size, so that size is not the reason why they are left uncompressed.
    let all = ("accept-encoding", "gzip, br, zstd, identity;q=0");
    let ask = |method, path, more: &[(&str, &str)], body: &str| {
        shared.server.ask(method, path, &[&[all], more].concat(), body.as_bytes())
    };
    let cookie = ("cookie", &*browser.cookie);
    let (json_type, csrf) = (("content-type", "application/json"), ("x-csrf-token", &*browser.csrf));
    let bearer = format!("Bearer {}", shared.operator);
    for answer in [
        // Pages of a user: they contain the CSRF token.
        ask("GET", "/?f=html", &[cookie, own], ""),
        ask("GET", "/login", &[cookie, own], ""),
        ask("GET", "/collections?f=html", &[cookie, own], ""),
        ask("GET", "/session", &[cookie, own], ""),
        ask("POST", "/login", &[json_type], &json!({ "name": "anna", "password": PASSWORD }).to_string()),
        ask("POST", "/tokens", &[cookie, own, json_type, csrf], &json!({ "role": "reader" }).to_string()),
        ask("POST", "/tokens", &[("authorization", &bearer), json_type], &json!({ "role": "reader" }).to_string()),
    ] {
        assert!(answer.status < 300, "{} {}", answer.status, answer.text());
        assert_eq!(answer.header("content-encoding"), "", "{}", answer.text());
    }
    // Requests that another site made the browser send, with the session that the browser adds by itself.
    let path = "/collections?f=json";
    for site in ["cross-site", "same-site"] {
        let answer = ask("GET", path, &[cookie, ("sec-fetch-site", site)], "");
        assert_eq!((answer.status, answer.header("content-encoding")), (200, ""), "{site}");
    }
    assert_eq!(ask("GET", path, &[cookie], "").header("content-encoding"), "");
    // The same with a password that its user has typed, by a browser that states the origin alone.
    let basic = format!("Basic {}", data_encoding::BASE64.encode(format!("anna:{}", shared.operator).as_bytes()));
    for (origin, coding) in [("http://localhost", "zstd"), ("https://evil.example", ""), ("null", "")] {
        let answer = ask("GET", path, &[("authorization", &basic), ("origin", origin)], "");
        assert_eq!((answer.status, answer.header("content-encoding")), (200, coding), "{origin}");
    }
    // Data for a page of this server, and for a program with a token.
    assert_eq!(ask("GET", path, &[cookie, own], "").header("content-encoding"), "zstd");
    assert_eq!(ask("GET", path, &[("authorization", &bearer)], "").header("content-encoding"), "zstd");
}

#[test]
fn without_memory_for_the_work_a_response_is_not_compressed() {
    // Encoders may hold a quarter of it.
    let config = ServerConfig { answer_bytes_total: 2 << 20, ..ServerConfig::default() };
    let server = filled(config);
    let answer = accepting(&server, "/collections/c/items?limit=100", "br", &[]);
    assert_eq!((answer.status, answer.header("content-encoding")), (200, ""));
    assert_eq!(answer.json()["numberReturned"], 100);
    let answer = accepting(&server, "/collections/c/items?limit=100", "gzip", &[]);
    assert_eq!(answer.header("content-encoding"), "gzip", "which takes less");
}
