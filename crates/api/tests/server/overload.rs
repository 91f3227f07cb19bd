//! Too much, too large, too slow.

use crate::support::{Server, point, read_response, send};
use meridian_api::ServerConfig;
use serde_json::json;
use std::io::{BufReader, Read, Write};
use std::time::{Duration, Instant};

/// A server whose only permit is held by a query that finds nothing for long.
fn busy(waiting: usize) -> (Server, BufReader<std::net::TcpStream>) {
    let server = Server::with(ServerConfig {
        requests_running_max: 1,
        requests_waiting_max: waiting,
        admission_wait: Duration::from_millis(200),
        ..ServerConfig::default()
    });
    server.create("q", "note:String,*geom:Point");
    let note = "x".repeat(4000);
    let all: Vec<_> = (0..5000).map(|i| point("", f64::from(i % 180), 1.0, json!({"note": note}))).collect();
    server.load("q", &all);
    let parts: Vec<String> = (0..400).map(|i| format!("note%20LIKE%20'%25y{i}%25z%25'")).collect();
    let mut stream = server.connect();
    send(&mut stream, "GET", &format!("/collections/q/items?f=ndjson&filter={}", parts.join("%20OR%20")), &[], b"");
    let begun = Instant::now();
    while !server.get("/metrics").text().contains("\nmeridian_requests_running 1\n") {
        assert!(begun.elapsed() < Duration::from_secs(20), "the question never began");
    }
    (server, BufReader::new(stream))
}

#[test]
fn what_neither_runs_nor_waits_is_refused_with_a_time_to_come_back() {
    let (server, holder) = busy(0);
    let answer = server.get("/collections/q/items?limit=1");
    let problem = answer.problem(503);
    assert_eq!(problem["type"], "urn:meridian:problem:overloaded");
    assert_eq!((answer.header("retry-after"), &problem["retry_after_seconds"]), ("1", &json!(1)));
    assert_eq!(answer.header("ratelimit"), "\"running\";r=0;t=1");
    assert_eq!(answer.header("ratelimit-policy"), "\"running\";q=1;qu=\"concurrent-requests\"");
    // Every other route waits for a permit too, but operators have permits of their own.
    for path in ["/", "/collections", "/collections/q", "/map", "/api/v0/places/near/0/0"] {
        server.get(path).problem(503);
    }
    for path in ["/healthz", "/readyz", "/metrics", "/version", "/providers"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    drop(holder);
    let begun = Instant::now();
    while server.get("/collections/q/items?limit=1").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the place never came free");
    }
}

#[test]
fn a_wait_in_the_queue_is_bounded() {
    let (server, _holder) = busy(4);
    server.get("/collections/q/items?limit=1").problem(503);
    server.post("/collections/q/items", "application/json", point("", 1.0, 1.0, json!({})).to_string()).problem(503);
    server.get("/api/v0/places/near/1/1").problem(503);
    let text = server.get("/metrics").text();
    assert!(text.contains("\nmeridian_requests_refused_total 3\n"), "{text}");
}

#[test]
fn a_body_over_the_limit_gets_413() {
    let server = Server::with(ServerConfig { body_bytes_max: 1 << 20, ..ServerConfig::default() });
    server.create("q", "n:Integer");
    let body = vec![b' '; 3 << 20];
    let problem = server.post("/collections/q/items", "application/geo+json", &body).problem(413);
    assert_eq!(problem["limit_bytes"], 1 << 20);
    // The same without a `Content-Length`.
    let mut chunked = Vec::new();
    for chunk in body.chunks(64 << 10) {
        write!(chunked, "{:x}\r\n", chunk.len()).unwrap();
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let mut stream = server.connect();
    stream
        .write_all(
            b"POST /collections/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .unwrap();
    let _ = stream.write_all(&chunked);
    read_response(&mut BufReader::new(stream)).unwrap().problem(413);
    // Packed small, unpacked large.
    let line = b"{\"type\":\"Feature\",\"geometry\":null,\"properties\":{\"n\":1}}\n";
    let mut plain = Vec::new();
    while plain.len() < 12 << 20 {
        plain.extend_from_slice(line);
    }
    let packed = zstd_stored_runs(&plain);
    assert!(packed.len() < 1 << 20);
    let answer = server.post("/collections/q/items", "application/x-ndjson", packed);
    assert_eq!(answer.status, 413, "{}", answer.text());
}

/// Packs bytes well enough for a test.
fn zstd_stored_runs(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, 1).unwrap()
}

#[test]
fn a_body_that_trickles_gets_408() {
    let server = Server::with(ServerConfig {
        body_grace: Duration::from_millis(300),
        body_stall: Duration::from_secs(30),
        ..ServerConfig::default()
    });
    server.create("q", "n:Integer");
    let mut stream = server.connect();
    stream.write_all(b"POST /collections/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\nContent-Length: 100000\r\n\r\n").unwrap();
    let mut writer = stream.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        for _ in 0..100 {
            if writer.write_all(b" ").is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    read_response(&mut BufReader::new(stream)).unwrap().problem(408);
    trickle.join().unwrap();
}

#[test]
fn a_body_that_stops_gets_408() {
    let server = Server::with(ServerConfig { body_stall: Duration::from_millis(200), ..ServerConfig::default() });
    server.create("q", "n:Integer");
    let mut stream = server.connect();
    stream.write_all(b"POST /collections/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\nContent-Length: 100\r\n\r\n{").unwrap();
    read_response(&mut BufReader::new(stream)).unwrap().problem(408);
}

#[test]
fn a_head_that_trickles_is_cut_off() {
    let server = Server::with(ServerConfig { head_timeout: Duration::from_millis(300), ..ServerConfig::default() });
    let mut stream = server.connect();
    let mut writer = stream.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        for byte in b"GET / HTTP/1.1\r\nHost: a-long-enough-name-for-many-seconds.example.org\r\n\r\n" {
            if writer.write_all(&[*byte]).is_err() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    });
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    drop(stream);
    trickle.join().unwrap();
}

#[test]
fn connections_are_bounded() {
    let server = Server::with(ServerConfig { connections_max: 1, ..ServerConfig::default() });
    let mut first = server.connect();
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reader = BufReader::new(first);
    assert_eq!(read_response(&mut reader).unwrap().status, 200);
    let mut second = server.connect();
    send(&mut second, "GET", "/healthz", &[], b"");
    read_response(&mut BufReader::new(second)).unwrap().problem(503);
    drop(reader);
    let begun = Instant::now();
    while server.get("/healthz").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the connection never came free");
    }
}

#[test]
fn bodies_in_flight_are_bounded() {
    let server = Server::with(ServerConfig { body_bytes_total: 1 << 20, ..ServerConfig::default() });
    server.create("q", "n:Integer");
    let mut first = server.connect();
    first.write_all(b"POST /collections/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\nContent-Length: 1000000\r\n\r\n{").unwrap();
    let begun = Instant::now();
    while !server.get("/metrics").text().contains("\nmeridian_request_body_bytes 1000000\n") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", server.get("/metrics").text());
    }
    let body = vec![b' '; 100_000];
    server.post("/collections/q/items", "application/geo+json", body).problem(503);
    drop(first);
    let begun = Instant::now();
    while server.post("/collections/q/items", "application/geo+json", vec![b' '; 100_000]).status == 503 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the memory never came free");
    }
}
