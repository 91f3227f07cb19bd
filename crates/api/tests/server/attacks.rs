//! HTTP/1.1 attacks, byte by byte. Each test shows how the attack is refused, and that others are served. Attacks with
//! slow heads and bodies, with many connections from one address, and by pages are in `overload.rs` and `guard.rs`.

use crate::kinds::Shared;
use crate::overload::busy;
use crate::owner::is_gateway;
use crate::quotas;
use crate::support::{Response, Server, point, read_head, read_response};
use meridian_api::ServerConfig;
use serde_json::json;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// Returns all responses to the written text; the server must then close.
fn responses(server: &Server, text: &str) -> Vec<Response> {
    let mut stream = server.connect();
    let _ = stream.write_all(text.as_bytes());
    let mut reader = BufReader::new(stream);
    std::iter::from_fn(|| read_response(&mut reader).ok()).collect()
}

fn statuses(server: &Server, text: &str) -> Vec<u16> {
    responses(server, text).iter().map(|response| response.status).collect()
}

const SMUGGLED: &str = "DELETE /collections/c HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Starts a server with a collection that must survive every attack.
fn house() -> Server {
    let server = Server::start();
    server.create("c", "n:Integer");
    server
}

#[test]
fn requests_whose_end_two_readers_see_differently_are_refused_and_nothing_is_smuggled() {
    let server = house();
    let post = "POST /collections/c/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\n";
    let length = SMUGGLED.len();
    for (what, head, body) in [
        ("both lengths (CL.TE)", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("both lengths (TE.CL)", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"),
        ("two lengths", "Content-Length: 0\r\nContent-Length: 90\r\n", ""),
        ("two lengths in one", "Content-Length: 0, 90\r\n", ""),
        ("a signed length", "Content-Length: +0\r\n", ""),
        ("no length", "Content-Length: x\r\n", ""),
        ("an encoding that is not chunked", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ("chunked not last", "Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("a space before the colon", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ("a folded field (obs-fold)", "X-A: 1\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("a bare CR in a field", "X-A: 1\rTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("a NUL in a field", "X-A: 1\0\r\n", ""),
        ("no name", ": 1\r\n", ""),
        ("a chunk without a size", "Transfer-Encoding: chunked\r\n", "\r\n0\r\n\r\n"),
        ("a size that is none", "Transfer-Encoding: chunked\r\n", "0x0\r\n\r\n"),
        ("a size beyond all", "Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"),
        ("a bare LF in a chunk", "Transfer-Encoding: chunked\r\n", "0;\n\r\n\r\n"),
    ] {
        let all = responses(&server, &format!("{post}{head}\r\n{body}{SMUGGLED}"));
        // Either the first is refused and the connection ends with it, or the rest is part of its body.
        assert_eq!(all.len(), 1, "{what}: {:?}", all.iter().map(|one| one.status).collect::<Vec<_>>());
        assert!((400..500).contains(&all[0].status), "{what}: {}", all[0].text());
        assert_eq!(server.get("/collections/c").status, 200, "{what}");
    }
    // A well-formed request has one body, whatever that looks like.
    let hidden = format!("{post}Content-Length: {length}\r\nConnection: close\r\n\r\n{SMUGGLED}");
    assert_eq!(statuses(&server, &hidden), [400]);
    assert_eq!(server.get("/collections/c").status, 200);
}

#[test]
fn transfer_codings_besides_chunked_get_501_and_end_the_connection() {
    let server = Server::start();
    server.create("c", "n:Integer,*geom:Point");
    let head = "POST /collections/c/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\n";
    let event = point("", 1.0, 2.0, json!({ "n": 1 })).to_string();
    let body = format!("{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
    let next = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for (codings, expected) in [
        ("Chunked", &[201_u16, 200][..]),
        ("gzip, chunked", &[501]),
        ("foo, chunked", &[501]),
        ("chunked, chunked", &[501]),
        ("gzip\r\nTransfer-Encoding: chunked", &[501]),
    ] {
        let text = format!("{head}Transfer-Encoding: {codings}\r\n\r\n{body}{next}");
        assert_eq!(statuses(&server, &text), expected, "{codings}");
    }
    assert_eq!(server.json("/collections/c")["itemCount"], 1);
}

#[test]
fn a_malformed_handshake_of_a_websocket_opens_no_stream() {
    let server = house();
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let asked = |upgrade: &str, version: &str, rest: &str| {
        let mut stream = server.connect();
        write!(
            stream,
            "GET /collections/c/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
             Sec-WebSocket-Version: {version}\r\n{rest}\r\n"
        )
        .unwrap();
        read_head(&mut BufReader::new(stream)).unwrap()
    };
    for (version, rest, expected) in [
        ("13", key.to_owned(), 101),
        ("13", format!("Upgrade: WebSocket\r\n{key}"), 101),
        ("12", key.to_owned(), 426),
        ("12", format!("Upgrade: WebSocket\r\n{key}"), 426),
        ("13", String::new(), 400),
        ("13", "Sec-WebSocket-Key: x\r\n".to_owned(), 400),
        ("13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSE=\r\n".to_owned(), 400),
        ("13", key.repeat(2), 400),
    ] {
        // A list, in one line or in several (RFC 9110, 7.8).
        let upgrade = if rest.contains("WebSocket\r") { "h2c/1, other" } else { "other, websocket" };
        let (status, headers) = asked(upgrade, version, &rest);
        assert_eq!(status, expected, "{version} {rest}");
        if status == 426 {
            assert_eq!((&*headers["sec-websocket-version"], &*headers["upgrade"]), ("13", "websocket"));
        }
    }
    // A text in quotes is no protocol: the answer is Server-Sent Events.
    for (upgrade, expected) in [(", websocket,", 101), ("\"a\", websocket", 101), ("\"a,websocket\"", 200)] {
        assert_eq!(asked(upgrade, "13", key).0, expected, "{upgrade}");
    }
}

#[test]
fn lines_that_end_with_a_bare_lf_are_read_as_one_request() {
    let server = house();
    // RFC 9112, 2.2 lets a server accept bare line feeds. It must then treat all that follow the same way.
    let text = "GET /healthz HTTP/1.1\nHost: localhost\nConnection: close\n\n";
    assert_eq!(statuses(&server, &format!("{text}{SMUGGLED}")), [200]);
    assert_eq!(server.get("/collections/c").status, 200);
}

#[test]
fn endless_chunk_extensions_and_trailers_are_refused() {
    let server = house();
    let head = "POST /collections/c/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let bomb = "x".repeat(1 << 20);
    for body in [format!("1;{bomb}\r\n{{\r\n0\r\n\r\n"), format!("0\r\nx-a: {bomb}\r\n\r\n")] {
        let all = responses(&server, &format!("{head}{body}"));
        assert!(all.iter().all(|one| (400..500).contains(&one.status)), "{:?}", all.first().map(Response::text));
    }
    assert_eq!(server.get("/collections/c").status, 200);
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let server = house();
    let fields: String = (0..101).map(|n| format!("X-{n}: 1\r\n")).collect();
    for bomb in [format!("X-A: {}\r\n", "a".repeat(200 << 10)), fields] {
        assert_eq!(statuses(&server, &format!("GET / HTTP/1.1\r\nHost: localhost\r\n{bomb}\r\n")), [431]);
    }
    // Bytes that are not HTTP at all, and a TLS handshake.
    for noise in ["\r\n\r\n\0\0\0 x", "\x16\x03\x01\x02\0\x01\0\r\n\r\n"] {
        assert!(statuses(&server, noise).iter().all(|status| *status == 400));
    }
    assert_eq!(server.get("/collections/c").status, 200);
}

/// Writes a head and reads the response, without sending any of the body.
fn announced(server: &Server, head: &str) -> (Response, BufReader<TcpStream>) {
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    (read_response(&mut reader).unwrap(), reader)
}

/// Checks the refusal of a body that was announced. No `100 Continue` precedes it. The connection closes, because the
/// server cannot tell whether the next bytes are the body.
#[track_caller]
fn refused_unsent(server: &Server, head: &str, status: u16) {
    let (answer, mut reader) = announced(server, head);
    answer.problem(status);
    assert_eq!(answer.header("connection"), "close");
    reader.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(reader.read(&mut [0; 16]).unwrap(), 0);
}

#[test]
fn who_waits_for_100_continue_is_refused_before_it_sends() {
    let server = Server::with(ServerConfig { body_bytes_max: 1 << 20, ..ServerConfig::default() });
    server.create("c", "n:Integer");
    let head = |path: &str, kind: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             Expect: 100-continue\r\n\r\n"
        )
    };
    for (path, kind, length, status) in [
        ("/nowhere", "application/geo+json", 10, 404),
        ("/collections/c/items", "text/plain", 10, 415),
        ("/collections/c/items", "application/geo+json", 64 << 20, 413),
        // By the handler, which has not asked for the body.
        ("/collections/nowhere/items", "application/geo+json", 10, 404),
        ("/collections/c/items?nonsense=1", "application/geo+json", 10, 400),
    ] {
        refused_unsent(&server, &head(path, kind, length), status);
    }
    // A body that is wanted is asked for.
    let body = r#"{"type":"Feature","geometry":null,"properties":{"n":1}}"#;
    let (go_on, mut reader) = announced(&server, &head("/collections/c/items", "application/geo+json", body.len()));
    assert_eq!(go_on.status, 100);
    reader.get_mut().write_all(body.as_bytes()).unwrap();
    assert_eq!(read_response(&mut reader).unwrap().status, 201);
}

#[test]
fn who_waits_for_100_continue_and_may_not_write_now_is_refused_before_it_sends() {
    let feature = point("", 1.0, 1.0, json!({})).to_string();
    let head = |method: &str, by: &str| {
        let authorization = if by.is_empty() { String::new() } else { format!("Authorization: Bearer {by}\r\n") };
        format!(
            "{method} /collections/ships/items HTTP/1.1\r\nHost: localhost\r\n{authorization}\
             Content-Type: application/geo+json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            feature.len()
        )
    };
    let shared = Shared::start();
    for (by, status) in [("", 401), (&*shared.forged, 401), (&*shared.revoked, 401), (&*shared.reader, 403)] {
        refused_unsent(&shared.server, &head("POST", by), status);
    }
    let limited = quotas::Shared::start(json!({ "concurrent_requests": 0 }));
    refused_unsent(&limited.server, &head("POST", &limited.harbour), 429);
    // The same write by a caller who may is asked for, and the connection goes on.
    let (go_on, mut reader) = announced(&shared.server, &head("POST", &shared.writer));
    assert_eq!(go_on.status, 100);
    reader.get_mut().write_all(feature.as_bytes()).unwrap();
    assert_eq!(read_response(&mut reader).unwrap().status, 201);
    reader.get_mut().write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(read_response(&mut reader).unwrap().status, 200);
    // A write waits for its permit with its body, a question without. A gateway's permit is free while its owner works.
    if !is_gateway() {
        let (server, _holder) = busy(0);
        refused_unsent(&server, &head("GET", "").replace("/ships/", "/q/"), 503);
    }
}

#[test]
fn a_refusal_reads_small_bodies_and_leaves_large_ones() {
    let server = house();
    let head = |length: usize| {
        format!(
            "POST /collections/c/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    // A small one is read, and the next request on the connection is served.
    let mut stream = server.connect();
    stream.write_all(format!("{}{}", head(5), "12345").as_bytes()).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    assert_eq!(read_response(&mut reader).unwrap().status, 415);
    assert_eq!(read_response(&mut reader).unwrap().status, 200);
    // For a large one, the response arrives before any of it is sent.
    let (answer, _) = announced(&server, &head(512 << 20));
    answer.problem(415);
    assert_eq!(answer.header("connection"), "close");
    // A client that sends all of it first can still read the response.
    let mut stream = server.connect();
    stream.write_all(head(4 << 20).as_bytes()).unwrap();
    let _ = stream.write_all(&vec![b' '; 4 << 20]);
    read_response(&mut BufReader::new(stream)).unwrap().problem(415);
}

#[test]
fn small_bodies_that_a_handler_leaves_are_read_and_large_ones_are_not() {
    let server = house();
    let head = |length: usize| {
        format!(
            "POST /collections/c/items?nonsense=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    // The rest of a small one arrives after the refusal was decided, and is not taken for a request.
    let mut stream = server.connect();
    stream.write_all(format!("{}{}", head(9), "GET").as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(50));
    stream.write_all(b" / HTT").unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    read_response(&mut reader).unwrap().problem(400);
    assert_eq!(read_response(&mut reader).unwrap().status, 200);
    let (answer, _) = announced(&server, &head(512 << 10));
    answer.problem(400);
    assert_eq!(answer.header("connection"), "close");
    // Half of a small one never arrives: the connection is closed.
    let (answer, _) = announced(&server, &format!("{}GET", head(9)));
    answer.problem(400);
    assert_eq!(answer.header("connection"), "close");
}

#[test]
fn a_refused_client_that_never_stops_sending_is_closed() {
    let server = house();
    let mut stream = server.connect();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    // The server reads some of it and then stops: the connection ends although the client goes on.
    let mut chunks = 0u64;
    while stream.write_all(chunk.as_bytes()).is_ok() {
        chunks += 1;
        assert!(chunks < 1 << 20, "4 GiB were taken");
    }
    assert_eq!(server.get("/healthz").status, 200);
}
