//! Resources shared by tenants: none can take all memory or slots from the others.

use crate::support::{Response, Server, point, read_head, read_response, send};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

const JSON: (&str, &str) = ("content-type", "application/json");
const GEOJSON: (&str, &str) = ("content-type", "application/geo+json");

/// A server with two tenants, each with a collection named `ships`.
struct Shared {
    server: Server,
    operator: String,
    quiet: String,
    greedy: String,
}

impl Shared {
    fn start(config: ServerConfig) -> Shared {
        let server = Server::with(config);
        let token = |by: &[(&str, &str)], asked: Value| {
            let answer = server.ask("POST", "/tokens", &[by, &[JSON]].concat(), asked.to_string().as_bytes());
            format!("Bearer {}", answer.json()["token"].as_str().unwrap())
        };
        let operator = token(&[], json!({"role": "operator"}));
        let by = [("authorization", operator.as_str()), JSON];
        let made = server.ask("POST", "/tenants", &by, br#"{"name":"greedy"}"#);
        assert_eq!(made.status, 201, "{}", made.text());
        let quiet = token(&by[..1], json!({"role": "admin", "tenant": "default"}));
        let greedy = token(&by[..1], json!({"role": "admin", "tenant": "greedy"}));
        let shared = Shared { server, operator: operator.clone(), quiet, greedy };
        for by in [&shared.quiet, &shared.greedy] {
            let headers = [("content-type", "text/plain")];
            let made = shared.ask(by, "PUT", "/collections/ships", &headers, b"note:String,*geom:Point");
            assert_eq!(made.status, 201, "{}", made.text());
        }
        shared
    }

    fn ask(&self, by: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.server.ask(method, path, &[headers, &[("authorization", by)]].concat(), body)
    }

    /// Waits until bodies take `bytes` bytes of memory.
    fn wait_for_bodies(&self, bytes: usize) {
        let begun = Instant::now();
        loop {
            let load = self.ask(&self.operator, "GET", "/admin/load?f=json", &[], b"").json();
            let memory = load["memory"].as_array().unwrap();
            let held = &memory.iter().find(|pool| pool["purpose"] == "bodies").unwrap()["held"];
            if *held == bytes {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{held} bytes of bodies, expected {bytes}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a head without a body.
    fn begin(&self, by: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> TcpStream {
        let mut stream = self.server.connect();
        send(&mut stream, method, path, &[headers, &[("authorization", by)]].concat(), b"");
        stream
    }
}

fn body(events: usize, note: usize) -> Vec<u8> {
    let note = "x".repeat(note);
    let features: Vec<Value> = (0..events).map(|n| point("", n as f64 % 180.0, 1.0, json!({"note": note}))).collect();
    json!({"type": "FeatureCollection", "features": features}).to_string().into_bytes()
}

#[test]
fn bodies_of_one_tenant_leave_room_for_those_of_another() {
    const MIB: usize = 1 << 20;
    // Waiting bodies must not be cut off for being slow, however slow this machine is.
    let config = ServerConfig {
        body_bytes_total: 8 * MIB,
        body_bytes_max: 8 * MIB,
        body_stall: Duration::from_secs(600),
        ..ServerConfig::default()
    };
    let shared = Shared::start(config);
    let length = (4 * MIB).to_string();
    let headers = [GEOJSON, ("content-length", length.as_str())];
    // A body that is only announced takes nothing.
    let mut held: Vec<TcpStream> =
        (0..20).map(|_| shared.begin(&shared.greedy, "POST", "/collections/ships/items", &headers)).collect();
    let whole = body(30, 100_000);
    let answer = shared.ask(&shared.greedy, "POST", "/collections/ships/items", &[GEOJSON], &whole);
    assert_eq!(answer.status, 201, "{}", answer.text());
    shared.wait_for_bodies(0);
    // What has arrived does take memory: up to three quarters, since the other tenant is guaranteed a quarter.
    for stream in &mut held[..2] {
        stream.write_all(&vec![b' '; 3 * MIB]).unwrap();
    }
    shared.wait_for_bodies(6 * MIB);
    let refused = shared.ask(&shared.greedy, "POST", "/collections/ships/items", &[GEOJSON], &whole);
    assert!(refused.problem(503)["detail"].as_str().unwrap().contains("memory"), "{}", refused.text());
    for _ in 0..5 {
        let answer = shared.ask(&shared.quiet, "POST", "/collections/ships/items", &[GEOJSON], &body(10, 100_000));
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    drop(held);
}

#[test]
fn bodies_of_the_default_tenant_leave_room_for_those_of_operators() {
    const KIB: usize = 1 << 10;
    let stall = Duration::from_secs(600);
    let config = ServerConfig { body_bytes_total: 64 * KIB, body_stall: stall, ..ServerConfig::default() };
    let shared = Shared::start(config);
    // The other tenant is guaranteed a quarter of it.
    let mut held =
        shared.begin(&shared.quiet, "POST", "/collections/ships/items", &[GEOJSON, ("content-length", "49152")]);
    held.write_all(&vec![b' '; 48 * KIB - 1]).unwrap();
    shared.wait_for_bodies(48 * KIB);
    let create = |by: &str| shared.ask(by, "POST", "/tokens", &[JSON], br#"{"role":"reader"}"#);
    let refused = create(&shared.quiet);
    assert!(refused.problem(503)["detail"].as_str().unwrap().contains("memory"), "{}", refused.text());
    let made = create(&shared.operator);
    assert_eq!(made.status, 201, "{}", made.text());
    let patched = shared.ask(&shared.operator, "PATCH", "/tenants/greedy", &[JSON], br#"{"weight":3}"#);
    assert_eq!(patched.status, 200, "{}", patched.text());
    // Events of an operator are like those of everyone.
    let events = shared.ask(&shared.operator, "POST", "/collections/ships/items", &[GEOJSON], &body(1, 10));
    assert_eq!(events.status, 503, "{}", events.text());
    drop(held);
}

#[test]
fn the_list_of_a_large_backup_folder_is_taken() {
    let shared = Shared::start(ServerConfig::default());
    let have: serde_json::Map<_, _> = (0..100_000).map(|n| (format!("{n:060}"), json!(n))).collect();
    let list = json!({ "have": have, "tenant": "absent" }).to_string();
    assert!(list.len() > meridian_api::ADMINISTRATION_BYTES);
    let answer = shared.ask(&shared.operator, "POST", "/backup", &[JSON], list.as_bytes());
    assert!(answer.status != 503 && answer.text().contains("there is no tenant"), "{}", answer.text());
}

#[test]
fn what_a_question_takes_in_memory_is_taken_from_the_memory_for_bodies() {
    let shared = Shared::start(ServerConfig { body_bytes_total: 1 << 20, ..ServerConfig::default() });
    // Four bytes of text for a list with room for four values.
    let lists = vec![json!([0]); 15_000];
    let question = json!({"keywords": "flood", "author": lists});
    let saved = json!({"question": &question});
    for (path, body) in [("/searches", &question), ("/saved-searches", &saved)] {
        let answer = shared.ask(&shared.quiet, "POST", path, &[JSON], body.to_string().as_bytes());
        assert!(answer.problem(503)["detail"].as_str().unwrap().contains("memory"), "{}", answer.text());
    }
    shared.wait_for_bodies(0);
    let small = json!({"keywords": "flood"}).to_string();
    assert_eq!(shared.ask(&shared.quiet, "POST", "/searches", &[JSON], small.as_bytes()).status, 202);
}

#[test]
fn streams_of_one_tenant_leave_slots_for_those_of_another() {
    let shared = Shared::start(ServerConfig { streams_max: 8, ..ServerConfig::default() });
    let open = |by: &str| {
        let stream = shared.begin(by, "GET", "/collections/ships/stream", &[]);
        let status = read_head(&mut BufReader::new(&stream)).unwrap().0;
        (stream, status)
    };
    let greedy: Vec<(TcpStream, u16)> = (0..8).map(|_| open(&shared.greedy)).collect();
    assert_eq!(greedy.iter().filter(|(_, status)| *status == 200).count(), 6);
    let quiet: Vec<(TcpStream, u16)> = (0..3).map(|_| open(&shared.quiet)).collect();
    assert_eq!(quiet.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [200, 200, 503]);
}

#[test]
fn streams_without_a_credential_leave_the_slots_of_every_tenant() {
    let shared = Shared::start(ServerConfig { streams_max: 8, ..ServerConfig::default() });
    let opened = shared.ask(&shared.operator, "PATCH", "/tenants/default", &[JSON], br#"{"anonymous":"ships"}"#);
    assert_eq!(opened.status, 200, "{}", opened.text());
    let open = |by: &[(&str, &str)]| {
        let mut stream = shared.server.connect();
        send(&mut stream, "GET", "/collections/ships/stream", by, b"");
        let status = read_head(&mut BufReader::new(&stream)).unwrap().0;
        (stream, status)
    };
    let anonymous: Vec<(TcpStream, u16)> = (0..8).map(|_| open(&[])).collect();
    assert_eq!(anonymous.iter().filter(|(_, status)| *status == 200).count(), 4);
    let by = |token: &str, streams: usize| -> Vec<(TcpStream, u16)> {
        (0..streams).map(|_| open(&[("authorization", token)])).collect()
    };
    let (quiet, greedy) = (by(&shared.quiet, 3), by(&shared.greedy, 2));
    assert_eq!(quiet.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [200, 200, 503]);
    assert_eq!(greedy.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [200, 200]);
}

#[test]
fn clients_that_do_not_read_are_evicted_from_their_own_tenant_first() {
    // More than the buffers of both systems hold.
    const EVENTS: usize = 40_000;
    let shared = Shared::start(ServerConfig {
        answer_bytes_total: 32 << 20,
        write_stall: Duration::from_secs(60),
        ..ServerConfig::default()
    });
    for by in [&shared.quiet, &shared.greedy] {
        let answer = shared.ask(by, "POST", "/collections/ships/items", &[GEOJSON], &body(EVENTS, 500));
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let open = |by: &str| {
        // With a small receive buffer.
        let mut stream = shared.server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10);
        send(&mut stream, "GET", "/collections/ships/items?f=ndjson", &[("authorization", by)], b"");
        stream
    };
    // Within its part, and idle for longest.
    let quiet = open(&shared.quiet);
    std::thread::sleep(Duration::from_millis(1_500));
    let gave_way = || {
        let text = shared.ask(&shared.operator, "GET", "/metrics", &[], b"").text();
        let count = text.lines().find_map(|line| line.strip_prefix("meridian_readers_gave_way_total "));
        count.unwrap().parse::<u32>().unwrap()
    };
    let mut greedy = Vec::new();
    while gave_way() < 3 {
        assert!(greedy.len() < 200, "nobody had to give way");
        greedy.push(open(&shared.greedy));
        std::thread::sleep(Duration::from_millis(100));
    }
    let answer = read_response(&mut BufReader::new(&quiet)).expect("the quiet tenant's client was not evicted");
    assert_eq!(answer.text().lines().count(), EVENTS);
}
