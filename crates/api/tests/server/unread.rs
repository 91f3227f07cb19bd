//! Streams of events that no client reads: each holds one message, from its tenant's memory, and gives way to others.

use crate::events::Socket;
use crate::messages::Follow;
use crate::support::{Server, point, read_head, send};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::io::{self, BufReader, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const LARGE: usize = 95_000;
const STREAM: &str = "/collections/q/stream?after=0";

/// Bytes that the client's system accepts although its program does not read.
const BUFFER: u32 = 4 << 10;

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").text();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn config(answer_bytes_total: usize) -> ServerConfig {
    ServerConfig { answer_bytes_total, ..ServerConfig::default() }
}

/// Loads events whose notes have these sizes.
fn load(server: &Server, sizes: &[usize]) {
    let schema = json!({
        "type": "object",
        "properties": {
            "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
            "at": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"},
            "ship": {"type": "string", "x-meridian-object": true},
            "n": {"type": "integer"},
            "note": {"type": "string"}
        }
    });
    let headers = [("content-type", "application/schema+json")];
    let made = server.ask("PUT", "/collections/q?partitions=1", &headers, schema.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    for (part, sizes) in sizes.chunks(50).enumerate() {
        let event = |(n, size): (usize, &usize)| {
            let n = part * 50 + n;
            let at = format!("2026-03-01T{:02}:{:02}:00Z", n / 60, n % 60);
            let properties = json!({"n": n, "note": "x".repeat(*size), "ship": format!("ship {}", n % 7), "at": at});
            point("", (n * 5 % 9) as f64 - 4.0, 1.0, properties)
        };
        server.load("q", &sizes.iter().enumerate().map(event).collect::<Vec<_>>());
    }
}

fn unread(server: &Server) -> TcpStream {
    server.connect_from(Ipv4Addr::LOCALHOST, BUFFER)
}

#[test]
fn many_streams_of_large_events_that_nobody_reads_hold_no_more_than_one_message_each() {
    const BUDGET: usize = 6 << 20;
    const STREAMS: usize = 80;
    let server = Server::with(config(BUDGET));
    load(&server, &[LARGE; 40]);
    let sockets: Vec<Socket> = (0..STREAMS / 2).map(|_| Socket::over(unread(&server), STREAM)).collect();
    let events: Vec<Follow> = (0..STREAMS / 2).map(|_| Follow::over(unread(&server), STREAM, None)).collect();
    // They fill the memory, and the streams that wait for it need earlier ones to be evicted.
    wait_until("the memory is never needed twice", || {
        let held = metric(&server, "meridian_answer_bytes");
        assert!(held <= BUDGET as u64, "{held}");
        metric(&server, "meridian_readers_gave_way_total") > 0
    });
    // Clients that read find room. On a busy machine one may be the slowest of all for a moment, and lose its turn.
    for path in ["items?limit=20", "items?f=ndjson", "items?f=csv&limit=10"] {
        wait_until(path, || server.try_get(&format!("/collections/q/{path}")).is_ok_and(|answer| answer.status == 200));
    }
    let mut reader = Follow::open(&server, STREAM, None);
    for n in 0..40 {
        assert_eq!(reader.next().unwrap().n(), n);
    }
    assert!(metric(&server, "meridian_answer_bytes") <= BUDGET as u64);
    drop((sockets, events, reader));
    wait_until("the streams never end", || metric(&server, "meridian_streams_open") == 0);
    wait_until("their memory is never returned", || metric(&server, "meridian_answer_bytes") == 0);
}

#[test]
fn long_conditions_of_idle_streams_leave_the_memory_to_responses() {
    let server = Server::with(config(2 << 20));
    load(&server, &[LARGE; 4]);
    // Three of them, parsed, take more than an eighth of the memory, and 22 more than all of it.
    let numbers = ["7"; 1_500].join(",");
    let path = format!("/collections/q/stream?filter=n%20IN%20({numbers})");
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..24 {
        let mut stream = server.connect();
        send(&mut stream, "GET", &path, &[], b"");
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).unwrap();
        match status {
            200 => open.push(reader),
            _ => {
                let mut body = vec![0; headers["content-length"].parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let problem: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(status, 503, "{problem}");
                assert!(problem["detail"].as_str().unwrap().contains("the conditions of open streams"), "{problem}");
                refused += 1;
            }
        }
    }
    assert!(!open.is_empty() && refused > 0, "{} are open", open.len());
    let answer = server.get("/collections/q/items?limit=3");
    assert_eq!(answer.status, 200, "{}", answer.text());
    drop(open);
    wait_until("the conditions stay", || metric(&server, "meridian_stream_condition_bytes") == 0);
}

#[test]
fn a_stop_does_not_wait_for_clients_that_take_nothing() {
    // Both far longer than this test waits.
    let long = 10 * PATIENCE;
    let mut server = Server::with(ServerConfig { write_stall: long, shutdown_grace: long, ..config(8 << 20) });
    load(&server, &[LARGE; 100]);
    let mut events = unread(&server);
    send(&mut events, "GET", STREAM, &[], b"");
    let mut socket = Socket::over(unread(&server), STREAM);
    // Until the system accepts no more for them.
    let sent = || metric(&server, "meridian_stream_events_total");
    let (mut last, mut since) = (0, Instant::now());
    while last == 0 || since.elapsed() < Duration::from_secs(1) {
        assert!(since.elapsed() < PATIENCE, "nothing is sent");
        std::thread::sleep(Duration::from_millis(10));
        let now = sent();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    assert!(last < 200, "all was sent");
    let (done, stopped) = channel();
    std::thread::spawn(move || {
        server.stop();
        let _ = done.send(());
    });
    stopped.recv_timeout(PATIENCE).expect("it waits for clients that take nothing");
    let mut rest = Vec::new();
    let _ = events.read_to_end(&mut rest);
    let text = String::from_utf8_lossy(&rest);
    // Their systems may have received the last message for them.
    assert_eq!(text.ends_with("\r\n0\r\n\r\n"), text.contains("event: end"), "a stream that was cut looked whole");
    while let Ok(message) = socket.text() {
        if let Err((code, reason)) = message {
            assert_eq!(code, 1001, "{reason}");
            break;
        }
    }
}

#[test]
fn streams_that_a_tenant_does_not_read_leave_room_to_another() {
    const BUDGET: usize = 2 << 20;
    const JSON: (&str, &str) = ("content-type", "application/json");
    let server = Server::with(config(BUDGET));
    let token = |by: &[(&str, &str)], asked: Value| {
        let answer = server.ask("POST", "/tokens", &[by, &[JSON]].concat(), asked.to_string().as_bytes());
        format!("Bearer {}", answer.json()["token"].as_str().unwrap())
    };
    let operator = token(&[], json!({"role": "operator"}));
    let by = [("authorization", operator.as_str()), JSON];
    assert_eq!(server.ask("POST", "/tenants", &by, br#"{"name":"greedy"}"#).status, 201);
    let tokens = ["default", "greedy"].map(|tenant| token(&by[..1], json!({"role": "admin", "tenant": tenant})));
    let note = "x".repeat(LARGE);
    for token in &tokens {
        let by = ("authorization", token.as_str());
        let made =
            server.ask("PUT", "/collections/q", &[by, ("content-type", "text/plain")], b"note:String,*geom:Point");
        assert_eq!(made.status, 201, "{}", made.text());
        let features: Vec<Value> = (0..20).map(|n| point("", f64::from(n), 1.0, json!({"note": note}))).collect();
        let body = json!({"type": "FeatureCollection", "features": features}).to_string();
        let written = server.ask(
            "POST",
            "/collections/q/items",
            &[by, ("content-type", "application/geo+json")],
            body.as_bytes(),
        );
        assert_eq!(written.status, 201, "{}", written.text());
    }
    let [quiet, greedy] = &tokens;
    let open = || {
        let mut stream = unread(&server);
        send(&mut stream, "GET", STREAM, &[("authorization", greedy)], b"");
        stream
    };
    let mut streams: Vec<TcpStream> = (0..60).map(|_| open()).collect();
    let held = || {
        let load = server.ask("GET", "/admin/load?f=json", &[("authorization", &operator)], b"").json();
        let pools = load["memory"].as_array().unwrap();
        pools.iter().find(|pool| pool["purpose"] == "answers").unwrap()["held"].as_u64().unwrap()
    };
    wait_until("the streams never fill their part", || {
        let filled = held() > BUDGET as u64 / 2;
        // One that came at a bad time was refused or evicted; another takes its place.
        if !filled && streams.len() < 300 {
            streams.push(open());
        }
        filled
    });
    // Half of the memory is guaranteed to the two of them, in equal parts, so a fifth of it is available at once.
    for _ in 0..20 {
        let answer = server.ask("GET", "/collections/q/items?limit=3", &[("authorization", quiet)], b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(held() <= BUDGET as u64);
    }
    drop(streams);
}

/// Demands memory until a client is evicted, then lets `read` continue.
fn after_eviction<T>(server: &Server, read: impl FnOnce() -> T) -> T {
    let evicted = || metric(server, "meridian_readers_gave_way_total");
    let before = evicted();
    demanding_until(server, "nobody is evicted", || evicted() > before, read)
}

/// Demands memory until `until`, then lets `read` continue.
fn demanding_until<T>(server: &Server, what: &str, until: impl FnMut() -> bool, read: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut other = server.connect();
                send(&mut other, "GET", "/collections/q/items?f=ndjson", &[], b"");
                // It may be refused or interrupted.
                let _ = io::copy(&mut other, &mut io::sink());
            }
        });
        let evicts = AssertUnwindSafe(|| wait_until(what, until));
        let evicts = std::panic::catch_unwind(evicts);
        done.store(true, Ordering::Relaxed);
        evicts.unwrap();
        read()
    })
}

#[test]
fn an_evicted_stream_of_events_is_told_why_and_resumes_without_loss() {
    const EVENTS: usize = 100;
    let server = Server::with(config(400 << 10));
    load(&server, &[LARGE; EVENTS]);
    let (mut got, mut last, mut told) = (Vec::new(), None::<String>, false);
    // It has a second to read what it was sent before; on a busy machine several attempts may be needed.
    for _ in 0..10 {
        let mut follow = Follow::over(unread(&server), STREAM, last.as_deref());
        let read = || {
            while let Ok(Some(message)) = follow.try_message() {
                last = Some(message.id.clone());
                match (&message.data, message.kind.as_str()) {
                    (Some(data), "end") => {
                        assert_eq!((&data["reason"], data["after"].as_str()), (&json!("evicted"), last.as_deref()));
                        return true;
                    }
                    (Some(_), _) => got.push(message.n()),
                    (None, _) => {}
                }
            }
            false
        };
        told = after_eviction(&server, read);
        if told || got.len() == EVENTS {
            break;
        }
    }
    assert!(told, "{} events", got.len());
    assert!(got.len() < EVENTS);
    let mut follow = Follow::open(&server, STREAM, last.as_deref());
    while got.len() < EVENTS {
        got.push(follow.next().unwrap().n());
    }
    assert!(got.iter().copied().eq(0..EVENTS as u64), "{got:?}");
}

#[test]
fn an_evicted_socket_is_told_why_and_resumes_without_loss() {
    const EVENTS: usize = 100;
    let server = Server::with(config(400 << 10));
    load(&server, &[LARGE; EVENTS]);
    let (mut got, mut last, mut told) = (Vec::new(), "0".to_owned(), None);
    for _ in 0..10 {
        let mut socket = Socket::over(unread(&server), &format!("/collections/q/stream?after={last}"));
        let read = || loop {
            match socket.text() {
                Ok(Ok(text)) => {
                    let message: Value = serde_json::from_slice(&text).unwrap();
                    if let Some(position) = message["position"].as_str() {
                        last = position.to_owned();
                    }
                    got.extend(message["properties"]["n"].as_u64());
                }
                Ok(Err(close)) => return Some(close),
                Err(_) => return None,
            }
        };
        told = after_eviction(&server, read);
        if told.is_some() || got.len() == EVENTS {
            break;
        }
    }
    assert_eq!(told, Some((1013, format!("evicted: resume after {last}"))), "{} events", got.len());
    assert!(got.len() < EVENTS);
    let mut socket = Socket::open(&server, &format!("/collections/q/stream?after={last}"));
    while got.len() < EVENTS {
        got.extend(socket.next().unwrap()["properties"]["n"].as_u64());
    }
    assert!(got.iter().copied().eq(0..EVENTS as u64), "{got:?}");
}

/// Reads messages of a stream with their transitions, pausing so long that the server forgets what it read ahead.
fn read_slowly(follow: &mut Follow, events: usize, pause_after: usize) -> Vec<(u64, Option<String>)> {
    let mut got = Vec::new();
    while got.len() < events {
        if got.len() % pause_after == pause_after / 2 {
            std::thread::sleep(Duration::from_millis(1_500));
        }
        let message = follow.next().unwrap();
        let when = message.data.as_ref().unwrap()["when"].as_str().map(str::to_owned);
        got.push((message.n(), when));
    }
    got
}

#[test]
fn a_slow_reader_gets_every_event_in_order_and_once() {
    let server = Server::with(config(8 << 20));
    let sizes: Vec<usize> = (0..600).map(|n| [10, 300, LARGE, 20_000, 70][n % 5]).collect();
    load(&server, &sizes);
    for filter in ["", "&when=enter,inside,exit&bbox=-1,-2,3,2"] {
        let path = format!("{STREAM}{filter}");
        let mut quick = Follow::open(&server, &path, None);
        let count = if filter.is_empty() {
            sizes.len()
        } else {
            let found = server.json("/collections/q/aggregate?function=count&bbox=-1,-2,3,2");
            found["groups"][0]["count"].as_u64().unwrap() as usize
        };
        let expected = read_slowly(&mut quick, count, usize::MAX);
        assert!(count > 100 && expected.is_sorted_by(|a, b| a.0 < b.0));
        let mut slow = Follow::over(unread(&server), &path, None);
        assert_eq!(read_slowly(&mut slow, count, count / 3), expected, "{filter}");
    }
    // Also over a socket, in fragments.
    let mut socket = Socket::over(unread(&server), STREAM);
    let mut got: Vec<u64> = Vec::new();
    while got.len() < sizes.len() {
        if got.len() % 250 == 100 {
            std::thread::sleep(Duration::from_millis(1_500));
        }
        got.extend(socket.next().unwrap()["properties"]["n"].as_u64());
    }
    assert!(got.into_iter().eq(0..sizes.len() as u64));
}

#[test]
fn a_client_of_http_1_that_was_evicted_and_still_does_not_read_is_hung_up_on() {
    // Far longer than this test waits, so the client is not found to stall.
    let server = Server::with(ServerConfig { write_stall: 10 * PATIENCE, ..config(400 << 10) });
    load(&server, &[LARGE; 200]);
    let mut stream = unread(&server);
    send(&mut stream, "GET", STREAM, &[], b"");
    wait_until("the stream does not open", || metric(&server, "meridian_streams_open") == 1);
    let ended = || metric(&server, "meridian_streams_open") == 0;
    demanding_until(&server, "the stream stays", ended, || ());
    wait_until("its memory is never returned", || metric(&server, "meridian_answer_bytes") == 0);
    wait_until("its connection stays", || metric(&server, "meridian_connections_open") == 1);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let text = String::from_utf8_lossy(&rest);
    // Its system may have received the last message for it.
    assert_eq!(text.ends_with("\r\n0\r\n\r\n"), text.contains("event: end"), "a stream that was cut looked whole");
}
