//! Requests that are too many, too large or too slow.

use crate::events::Socket;
use crate::owner::is_gateway;
use crate::support::{Server, point, read_response, send};
use meridian_api::ServerConfig;
use meridian_model::BatchBuilder;
use meridian_store::Write as EventWrite;
use serde_json::json;
use std::io::{BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Returns the metric that shows a running query. On a gateway it counts as away, because its owner works and it holds
/// no permit meanwhile.
fn busy_with_one() -> &'static str {
    if is_gateway() { "\nmeridian_requests_away 1\n" } else { "\nmeridian_requests_running 1\n" }
}

/// Starts a server whose only permit is held by a long query without results.
pub fn busy(waiting: usize) -> (Server, BufReader<std::net::TcpStream>) {
    let server = Server::with(ServerConfig {
        requests_running_max: 1,
        requests_waiting_max: waiting,
        // What may wait is not refused for the time that it takes on a busy machine.
        admission_wait: if waiting > 0 { Duration::from_secs(20) } else { Duration::from_millis(200) },
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
    while !server.get("/metrics").text().contains(busy_with_one()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "the question never began");
    }
    (server, BufReader::new(stream))
}

#[test]
fn what_neither_runs_nor_waits_is_refused_with_a_time_to_come_back() {
    // A gateway's permit is free while the owner works.
    if is_gateway() {
        return;
    }
    let (server, holder) = busy(0);
    let answer = server.get("/collections/q/items?limit=1");
    let problem = answer.problem(503);
    assert_eq!(problem["type"], "urn:meridian:problem:overloaded");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert_eq!((&problem["retry_after_seconds"], (1..=2).contains(&wait)), (&json!(wait), true));
    assert_eq!(answer.header("ratelimit"), format!("\"running\";r=0;t={wait}"));
    assert_eq!(answer.header("ratelimit-policy"), "\"running\";q=1;qu=\"concurrent-requests\"");
    // Every other route waits for a permit too, but operators have permits of their own.
    for path in ["/", "/collections", "/collections/q", "/map", "/api/v0/places/near/0/0"] {
        server.get(path).problem(503);
    }
    for path in ["/healthz", "/readyz", "/metrics", "/version"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    drop(holder);
    let begun = Instant::now();
    while server.get("/collections/q/items?limit=1").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the place never came free");
    }
}

#[test]
fn a_short_question_overtakes_a_long_one() {
    let (server, holder) = busy(4);
    // The only slot is taken, and still these are served: the long query pauses after a slice.
    assert_eq!(server.get("/collections/q/items?limit=1").status, 200);
    let event = point("", 1.0, 1.0, json!({})).to_string();
    assert_eq!(server.post("/collections/q/items", "application/json", event).status, 201);
    assert_eq!(server.get("/api/v0/places/near/1/1").status, 200);
    let text = server.get("/metrics").text();
    assert!(text.contains("\nmeridian_requests_refused_total 0\n"), "{text}");
    assert!(text.contains(busy_with_one()), "the long question was over too soon: {text}");
    drop(holder);
}

/// One tenant requests far more than the server can do; another requests little, and none of that is refused.
#[test]
fn a_tenant_that_floods_the_server_is_refused_alone() {
    let server = Server::with(ServerConfig {
        requests_running_max: 1,
        requests_waiting_max: 4,
        admission_wait: Duration::from_secs(20),
        ..ServerConfig::default()
    });
    let send = |token: &str, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        server.ask(method, path, &headers, body.as_bytes())
    };
    let made = server.post("/tokens", "application/json", json!({"role": "operator"}).to_string()).json();
    let operator = made["token"].as_str().unwrap();
    let [heavy, light] = ["heavy", "light"].map(|tenant| {
        assert_eq!(send(operator, "POST", "/tenants", &json!({"name": tenant}).to_string()).status, 201);
        let asked = json!({"role": "admin", "tenant": tenant}).to_string();
        let token = send(operator, "POST", "/tokens", &asked).json()["token"].as_str().unwrap().to_owned();
        let schema = json!({"type": "object", "properties": {"note": {"type": "string"}}}).to_string();
        assert_eq!(send(&token, "PUT", "/collections/q", &schema).status, 201);
        token
    });
    let note = "x".repeat(4000);
    let events: Vec<_> =
        (0..2000).map(|_| json!({"type": "Feature", "geometry": null, "properties": {"note": note}})).collect();
    let events = json!({"type": "FeatureCollection", "features": events}).to_string();
    assert_eq!(send(&heavy, "POST", "/collections/q/items", &events).status, 201);
    let parts: Vec<String> = (0..100).map(|i| format!("note%20LIKE%20'%25y{i}%25z%25'")).collect();
    let slow = format!("/collections/q/items?limit=1&filter={}", parts.join("%20OR%20"));
    let over = std::sync::atomic::AtomicBool::new(false);
    let refused = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        use std::sync::atomic::Ordering::Relaxed;
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    refused.fetch_add(usize::from(send(&heavy, "GET", &slow, "").status == 503), Relaxed);
                }
            });
        }
        let begun = Instant::now();
        while refused.load(Relaxed) < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the flood is not refused");
            std::thread::sleep(Duration::from_millis(5));
        }
        let answers: Vec<u16> =
            (0..50).map(|_| send(&light, "GET", "/collections/q/items?limit=1", "").status).collect();
        over.store(true, Relaxed);
        assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    });
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
    // Small when packed, large when unpacked.
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

/// Compresses bytes well enough for a test.
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
fn a_socket_counts_as_a_connection() {
    let server = Server::with(ServerConfig { connections_max: 2, ..ServerConfig::default() });
    server.create("q", "n:Integer,*geom:Point");
    let open = || server.get("/metrics").text().contains("\nmeridian_connections_open 2\n");
    let begun = Instant::now();
    let socket = Socket::open(&server, "/collections/q/stream");
    // The connection that asks is the second one.
    while !open() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", server.get("/metrics").text());
    }
    let mut first = server.connect();
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reader = BufReader::new(first);
    while read_response(&mut reader).map(|answer| answer.status).ok() != Some(200) {
        assert!(begun.elapsed() < Duration::from_secs(20), "no connection came free");
        let mut again = server.connect();
        let _ = again.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        reader = BufReader::new(again);
    }
    server.get("/healthz").problem(503);
    drop(socket);
    drop(reader);
    while server.get("/healthz").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(40), "the connection never came free");
    }
}

#[test]
fn connections_of_one_address_are_bounded() {
    let server = Server::with(ServerConfig { connections_per_address_max: 3, ..ServerConfig::default() });
    let idle: Vec<_> = (0..10).map(|_| server.connect_from(Ipv4Addr::new(127, 0, 0, 2), 64 << 10)).collect();
    // Connections beyond the limit get a 503 and are closed.
    let begun = Instant::now();
    while !server.get("/metrics").text().contains("\nmeridian_connections_refused_total 7\n") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", server.get("/metrics").text());
    }
    let last = idle.into_iter().next_back().unwrap();
    read_response(&mut BufReader::new(last)).unwrap().problem(503);
    assert_eq!(server.get("/healthz").status, 200, "another address");
}

#[test]
fn bodies_in_flight_are_bounded() {
    let server = Server::with(ServerConfig { body_bytes_total: 1 << 20, ..ServerConfig::default() });
    server.create("q", "n:Integer");
    let mut first = server.connect();
    first.write_all(b"POST /collections/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/geo+json\r\nContent-Length: 1000000\r\n\r\n{").unwrap();
    // More than half of it: memory grows as the bytes arrive, by doubling.
    first.write_all(&[b' '; 599_999]).unwrap();
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

#[test]
fn a_full_queue_of_a_collection_is_429_and_others_are_written_to() {
    let server = Server::start();
    for name in ["full", "other"] {
        server.create_of(name, "n:Integer,*geom:Point", 1);
    }
    let collection = server.store.collection("default", "full").unwrap();
    let mut builder = BatchBuilder::new(collection.schema());
    builder.set_point(1.0, 2.0).unwrap();
    builder.end_event().unwrap();
    let event = builder.finish().unwrap();
    // They are not committed: the first has to lead, and does not.
    let mut waiting = Vec::new();
    while let Ok(pending) = collection.submit(EventWrite::new(event.clone())) {
        waiting.push(pending);
    }
    let one = [point("", 1.0, 2.0, json!({"n": 1}))];
    let refused = server.post("/collections/full/items", "application/geo+json", one[0].to_string());
    assert_eq!(refused.problem(429)["type"], "urn:meridian:problem:too-many-writes");
    assert!(refused.header("retry-after").parse::<u64>().is_ok_and(|wait| wait >= 1), "{:?}", refused.headers);
    server.load("other", &one);
    drop(waiting);
    server.load("full", &one);
    assert_eq!(server.json("/collections/full")["itemCount"], 1);
}
