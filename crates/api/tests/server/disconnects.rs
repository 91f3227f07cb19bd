//! Readers that disconnect, reconnect, or read slowly.

use crate::events::{Events, Socket};
use crate::searches::{begin, ids, packets_of, whole};
use crate::sources;
use crate::support::Server;
use meridian_api::ServerConfig;
use meridian_federation::{Settings, SourceDeclaration};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Max time for a disconnect to be noticed on a busy machine; the search itself would run twice as long.
const PATIENCE: Duration = Duration::from_secs(40);

/// Starts a source that accepts calls and never responds. It reports each call, and when its caller has disconnected.
fn silent() -> (SocketAddr, Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, said) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let send = send.clone();
            std::thread::spawn(move || {
                let mut piece = [0; 4_096];
                while !matches!(stream.read(&mut piece), Ok(0) | Err(_)) {
                    if piece.windows(4).any(|end| end == b"\r\n\r\n") {
                        let _ = send.send("called");
                        piece = [0; 4_096];
                    }
                }
                let _ = send.send("left");
            });
        }
    });
    (address, said)
}

/// Starts a server that queries one source, whose results have an id and a text.
fn asking(address: SocketAddr, change: impl FnOnce(&mut ServerConfig)) -> Server {
    let text = format!(
        "name = \"source\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"http://{address}/\"\n[request.query]\nq = \"{{words}}\"\n\
         [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntext = \"text\"\n\
         [limits]\nallow_private = true\nretries = 0\ntimeout_ms = 110000\nanswer_bytes = 16777216"
    );
    let providers = vec![Arc::new(SourceDeclaration::parse(&text, &|_| None).unwrap())];
    let search = Settings { providers, ..Settings::default() };
    let mut config = ServerConfig { search, ..ServerConfig::default() };
    change(&mut config);
    Server::with(config)
}

fn running(server: &Server) -> bool {
    !server.get("/metrics").text().contains("meridian_searches_running 0")
}

#[test]
fn a_disconnect_ends_the_work_and_the_calls_to_sources() {
    let (address, said) = silent();
    let server = asking(address, |_| {});
    for way in ["events", "socket"] {
        let id = begin(&server, &json!({"keywords": way, "providers": ["source"], "timeout": 120_000}));
        let (events, socket) = match way {
            "events" => (Some(Events::open(&server, &packets_of(&id), None)), None),
            _ => (None, Some(Socket::open(&server, &packets_of(&id)))),
        };
        assert_eq!(said.recv_timeout(PATIENCE), Ok("called"), "{way}");
        assert!(running(&server), "{way}");
        drop((events, socket));
        assert_eq!(said.recv_timeout(PATIENCE), Ok("left"), "{way}");
        // Its permit is released once its end is sent.
        assert!((0..10_000).any(|_| !running(&server)), "{way}");
        let status = server.json(&format!("/searches/{id}"));
        assert!(status["providers"]["source"]["detail"].as_str().unwrap().contains("no reader was left"), "{status}");
    }
}

#[test]
fn a_browser_reconnects_soon_and_not_after_the_end() {
    let server = Server::start();
    let id = begin(&server, &json!({"keywords": "flood"}));
    let packets = Events::open(&server, &packets_of(&id), None).all();
    let whole = server.get(&packets_of(&id));
    assert!(whole.text().starts_with("retry: 200\n\nid: 0\ndata: {"), "{}", whole.text());
    let from = |last: usize| server.ask("GET", &packets_of(&id), &[("last-event-id", last.to_string().as_str())], b"");
    let rest = from(packets.len() - 2);
    assert_eq!((rest.status, rest.text().matches("\ndata: ").count()), (200, 1), "{}", rest.text());
    let nothing = from(packets.len() - 1);
    assert_eq!((nothing.status, nothing.body.len()), (204, 0));
}

/// Starts a source that reports each call, and responds when the test lets it.
fn patient(answer: Vec<u8>) -> (SocketAddr, Receiver<()>, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ((call, called), (go, told)) = (channel(), channel());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4_096]).unwrap() > 0);
        call.send(()).unwrap();
        let _ = told.recv();
        let _ = stream.write_all(&answer);
    });
    (address, called, go)
}

/// Returns a response of `count` results, each of about 4 KB.
fn floods(count: usize) -> Vec<u8> {
    let item = |n: usize| json!({"id": n.to_string(), "text": format!("flood {n} {}", "x".repeat(4_000))});
    let items: Vec<Value> = (0..count).map(item).collect();
    sources::json(&json!({"items": items}).to_string())
}

#[test]
fn a_slow_reader_loses_nothing_of_a_response_larger_than_its_buffer() {
    const KEPT: usize = 64 << 10;
    let (address, called, go) = patient(floods(300));
    let server = asking(address, |config| config.search.buffer_bytes = KEPT);
    let question = json!({"keywords": "flood", "providers": ["source"], "limit": 300, "timeout": 120_000});
    let id = begin(&server, &question);
    called.recv_timeout(PATIENCE).unwrap();
    let mut events = Events::over(server.connect_from(Ipv4Addr::LOCALHOST, 64 << 10), &packets_of(&id), None);
    go.send(()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = events.next() {
        packets.push(packet);
        std::thread::sleep(Duration::from_millis(2));
        if packets.len().is_multiple_of(50) {
            let metrics = server.get("/metrics").text();
            let kept = metrics.lines().find_map(|line| line.strip_prefix("meridian_search_packet_bytes ")).unwrap();
            assert!(kept.parse::<usize>().unwrap() <= KEPT + (16 << 10), "{kept}");
        }
    }
    whole(&packets);
    assert_eq!((packets.last().unwrap()["state"].as_str(), ids(&packets).len()), (Some("complete"), 300));
}

#[test]
fn a_socket_closed_while_its_client_takes_nothing_ends_the_work() {
    // More than all buffers on the way hold.
    const COUNT: usize = 2_500;
    let (address, called, go) = patient(floods(COUNT));
    let server = asking(address, |config| {
        config.write_stall = Duration::from_secs(600);
        config.search.buffer_bytes = 64 << 10;
        config.search.limit_max = COUNT;
    });
    let question = json!({"keywords": "flood", "providers": ["source"], "limit": COUNT, "timeout": 120_000});
    let id = begin(&server, &question);
    called.recv_timeout(PATIENCE).unwrap();
    let mut socket = Socket::over(server.connect_from(Ipv4Addr::LOCALHOST, 64 << 10), &packets_of(&id));
    go.send(()).unwrap();
    // Sending stalls, since the client reads nothing.
    let sent = || server.json(&format!("/searches/{id}"))["result_packets"].as_u64().unwrap();
    let (mut last, mut since) = (0, Instant::now());
    while last == 0 || since.elapsed() < Duration::from_secs(1) {
        assert!(since.elapsed() < PATIENCE, "no results");
        std::thread::sleep(Duration::from_millis(10));
        let now = sent();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    assert!(running(&server), "all was sent");
    socket.close();
    let closed = Instant::now();
    while running(&server) {
        assert!(closed.elapsed() < PATIENCE, "nobody noticed");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(socket);
}
