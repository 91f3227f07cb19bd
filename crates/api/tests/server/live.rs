//! Streams of events: each acknowledged event is sent exactly once, whatever happens to connections and servers.

use crate::events::Socket;
use crate::messages::Follow;
use crate::support::{Response, Server, point};
use meridian_api::ServerConfig;
use meridian_store::Options;
use meridian_store::seams::{CrashStyle, MemoryDisk, Random, Seams, SeededRandom};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SPEC: &str = "n:Integer,note:String,dtg:Date,*geom:Point:srid=4326";

fn feature(n: u64) -> Value {
    let minute = n % 60;
    let properties =
        json!({"n": n, "note": format!("note {}", n % 10), "dtg": format!("2026-03-01T10:{minute:02}:00Z")});
    point("", (n % 360) as f64 - 180.0, (n % 170) as f64 - 85.0, properties)
}

fn write(server: &Server, numbers: std::ops::Range<u64>) -> Response {
    let features: Vec<Value> = numbers.map(feature).collect();
    let body = json!({ "type": "FeatureCollection", "features": features }).to_string();
    let answer = server.post("/collections/q/items", "application/geo+json", body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer
}

#[test]
fn while_writers_write_and_readers_come_and_go_each_gets_everything_once_and_in_order() {
    let server = Arc::new(Server::start());
    server.create_of("q", SPEC, 1);
    const EVENTS: u64 = 1500;
    let filters = [
        "",
        "bbox=-60,-50,60,50",
        "filter=note%3D%27note%203%27",
        "datetime=2026-03-01T10:10:00Z/2026-03-01T10:30:00Z",
        "near=0,0&radius=5000000",
    ];
    let writer = std::thread::spawn({
        let server = server.clone();
        move || {
            let random = SeededRandom::new(7);
            let mut n = 0;
            while n < EVENTS {
                let size = (1 + random.next_u64() % 12).min(EVENTS - n);
                write(&server, n..n + size);
                n += size;
                if random.next_u64().is_multiple_of(20) {
                    server.store.collection("default", "q").unwrap().flush().unwrap();
                }
            }
            // The event that ends every stream: it matches all of the filters.
            let mut last = feature(EVENTS);
            last["geometry"] = json!({"type": "Point", "coordinates": [1, 1]});
            last["properties"]["note"] = json!("note 3");
            last["properties"]["dtg"] = json!("2026-03-01T10:20:00Z");
            server.load("q", &[last]);
        }
    });
    let readers: Vec<_> = filters
        .into_iter()
        .enumerate()
        .map(|(i, filter)| {
            let server = server.clone();
            std::thread::spawn(move || {
                let random = SeededRandom::new(100 + i as u64);
                let path = format!("/collections/q/stream?{filter}&after=0");
                let (mut got, mut last) = (Vec::new(), None::<String>);
                'connections: loop {
                    let mut follow = Follow::open(&server, &path, last.as_deref());
                    for _ in 0..1 + random.next_u64() % 90 {
                        // In the middle of a batch as well as between two; positions without an event advance too.
                        let message = follow.message().unwrap();
                        last = Some(message.id.clone());
                        if message.data.is_some() {
                            got.push(message.n());
                            if message.n() == EVENTS {
                                break 'connections;
                            }
                        }
                    }
                }
                (filter, got)
            })
        })
        .collect();
    writer.join().unwrap();
    for reader in readers {
        let (filter, got) = reader.join().unwrap();
        let lines = server.get(&format!("/collections/q/items?f=ndjson&{filter}")).text();
        let mut expected: Vec<u64> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["properties"]["n"].as_u64().unwrap())
            .collect();
        // With one writer, the numbers are in write order.
        expected.sort_unstable();
        assert!(expected.len() > 50, "{filter}: {}", expected.len());
        assert_eq!(got, expected, "{filter}");
    }
    let text = server.get("/metrics").text();
    assert!(!text.contains("\nmeridian_stream_events_total 0\n"), "{text}");
}

#[test]
fn a_stream_begins_now_or_after_a_position_and_refuses_those_that_are_none() {
    let server = Server::with(ServerConfig { streams_max: 2, ..ServerConfig::default() });
    server.create_of("q", SPEC, 1);
    let position = write(&server, 0..3).json()["position"].as_str().unwrap().to_owned();
    let mut now = Follow::open(&server, "/collections/q/stream?properties=n", None);
    // The position is sent at once, so that nothing is lost if the connection breaks before the first event.
    assert_eq!(now.message().unwrap().id.len(), 13);
    write(&server, 3..5);
    let first = now.next().unwrap();
    assert_eq!(first.n(), 3);
    assert_eq!(first.data.as_ref().unwrap()["properties"], json!({"n": 3}));
    let mut after = Follow::open(&server, &format!("/collections/q/stream?after={position}"), None);
    assert_eq!((after.next().unwrap().n(), after.next().unwrap().n()), (3, 4));
    let refused = server.get("/collections/q/stream");
    refused.problem(503);
    assert!(["1", "2"].contains(&refused.header("retry-after")), "{:?}", refused.headers);
    drop((now, after));
    let begun = Instant::now();
    while !server.get("/metrics").text().contains("\nmeridian_streams_open 0\n") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the streams of clients who left never ended");
    }
    for (query, field) in [
        ("after=99", "after"),
        ("after=7zzzzzzzzzzzz", "after"),
        ("after=x", "after"),
        ("limit=5", "limit"),
        ("near=1,1", "near"),
        ("filter=nosuch%3D1", "filter"),
    ] {
        let problem = server.get(&format!("/collections/q/stream?{query}")).problem(400);
        assert_eq!(problem["field"], field, "{query}: {problem}");
    }
    server.get("/collections/none/stream").problem(404);
}

#[test]
fn a_stream_over_partitions_goes_on_at_any_of_its_places() {
    let server = Server::start();
    server.create_of("q", SPEC, 4);
    for part in 0..10 {
        write(&server, part * 10..part * 10 + 10);
    }
    let mut all = Follow::open(&server, "/collections/q/stream?after=0", None);
    let mut sent = Vec::new();
    for _ in 0..100 {
        let message = all.next().unwrap();
        assert_eq!(message.id.split('-').map(str::len).collect::<Vec<_>>(), [13; 4], "{}", message.id);
        sent.push((message.id.clone(), message.n()));
    }
    let sorted = |numbers: &mut dyn Iterator<Item = u64>| numbers.collect::<BTreeSet<u64>>();
    assert_eq!(sorted(&mut sent.iter().map(|(_, n)| *n)), (0..100).collect());
    // The rest, once, from wherever its client was cut off; then new events.
    for at in [0, 1, 9, 37, 98, 99] {
        let mut rest = Follow::open(&server, "/collections/q/stream?after=0", Some(&sent[at].0));
        let found: Vec<u64> = (at + 1..100).map(|_| rest.next().unwrap().n()).collect();
        let expected = sorted(&mut sent[at + 1..].iter().map(|(_, n)| *n));
        assert_eq!((found.len(), sorted(&mut found.into_iter())), (expected.len(), expected), "after {at}");
        let next = 1_000 + at as u64 * 10;
        write(&server, next..next + 10);
        let found: Vec<u64> = (0..10).map(|_| rest.next().unwrap().n()).collect();
        assert_eq!(found, (next..next + 10).collect::<Vec<_>>(), "after {at}");
        // The next round would otherwise read this round's events again. Only the first hundred matter.
        assert_eq!(server.ask("DELETE", "/collections/q/items?filter=n%3E%3D1000", &[], b"").status, 200);
    }
    for wrong in ["1-2", "0-0-0-0-0", "9-9-9-99", "1", "0-0-0-x"] {
        let problem = server.get(&format!("/collections/q/stream?after={wrong}")).problem(400);
        assert_eq!(problem["field"], "after", "{wrong}: {problem}");
    }
}

#[test]
fn a_filter_on_made_ids_holds_in_a_stream_too() {
    let server = Server::start();
    server.create_of("q", SPEC, 1);
    let mut all = Follow::open(&server, "/collections/q/stream", None);
    let begun = all.message().unwrap().id;
    write(&server, 0..4);
    let ids: Vec<String> =
        (0..4).map(|_| all.next().unwrap().data.unwrap()["id"].as_str().unwrap().to_owned()).collect();
    let filter = format!("filter=id%3E'{}'", ids[1]);
    let mut some = Follow::open(&server, &format!("/collections/q/stream?after={begun}&{filter}"), None);
    assert_eq!((some.next().unwrap().n(), some.next().unwrap().n()), (2, 3));
}

#[test]
fn a_position_whose_successors_are_past_the_retention_is_gone() {
    let options = Options { snapshot_memory: Duration::ZERO, ..Options::ephemeral() };
    let server = Server::over(options, ServerConfig::default());
    server.create_of("q", SPEC, 1);
    let collection = server.store.collection("default", "q").unwrap();
    write(&server, 0..10);
    let old = write(&server, 10..20).json()["position"].as_str().unwrap().to_owned();
    collection.flush().unwrap();
    let change = [("content-type", "application/merge-patch+json")];
    let answer = server.ask("PATCH", "/collections/q?confirm=20", &change, br#"{"retention": "P1D"}"#);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let begun = Instant::now();
    while collection.oldest().position() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(30), "what is past the retention was never dropped");
        collection.expire().unwrap();
        collection.maintain().unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    let problem = server.get("/collections/q/stream?after=0").problem(410);
    let first = problem["first"].as_str().unwrap().to_owned();
    let now = feature(77)["geometry"].clone();
    let event = json!({"type": "Feature", "geometry": now, "properties": {"n": 77, "dtg": "2999-01-01T00:00:00Z"}});
    server.load("q", &[event]);
    assert_eq!(Follow::open(&server, &format!("/collections/q/stream?after={first}"), None).next().unwrap().n(), 77);
    assert!(old.parse::<u64>().unwrap() >= 2);
}

#[test]
fn a_reader_that_is_too_slow_is_disconnected_and_resumes_where_it_was() {
    const STALL: Duration = Duration::from_secs(3);
    let server = Server::with(ServerConfig { write_stall: STALL, answer_rate_min: 1 << 30, ..ServerConfig::default() });
    server.create_of("q", SPEC, 1);
    let note = "x".repeat(4000);
    const EVENTS: u64 = 4000;
    for part in 0..4 {
        let features: Vec<Value> = (part * EVENTS / 4..(part + 1) * EVENTS / 4)
            .map(|n| point("", 1.0, 1.0, json!({"n": n, "note": note, "dtg": "2026-03-01T00:00:00Z"})))
            .collect();
        server.load("q", &features);
    }
    let mut follow =
        Follow::over(server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10), "/collections/q/stream?after=0", None);
    // Far less than fills the buffers on the way, for longer than a client may pause.
    let (begun, mut some, mut taken) = (Instant::now(), [0; 512], Vec::new());
    while begun.elapsed() < 3 * STALL {
        // The connection may be cut before this ends.
        let Ok(read @ 1..) = follow.reader.read(&mut some) else { break };
        taken.extend_from_slice(&some[..read]);
        std::thread::sleep(Duration::from_millis(100));
    }
    // Data in transit still arrives; then the connection ends, in whatever way.
    let mut rest = Vec::new();
    let _ = follow.reader.read_to_end(&mut rest);
    taken.extend(rest);
    let text = unchunked(&taken);
    let (mut got, mut last): (Vec<u64>, _) = (Vec::new(), None);
    let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    for block in whole.split("\n\n") {
        let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        last = line("id: ").or(last);
        match (line("data: "), line("event: ")) {
            (Some(data), None) => {
                let data: Value = serde_json::from_str(data).unwrap();
                got.push(data["properties"]["n"].as_u64().unwrap());
            }
            (Some(data), Some("end")) => assert!(data.contains("\"reason\":\"slow\""), "{data}"),
            _ => {}
        }
    }
    assert!(!got.is_empty() && (got.len() as u64) < EVENTS, "{} events", got.len());
    let mut follow = Follow::open(&server, "/collections/q/stream", last);
    while got.len() < EVENTS as usize {
        got.push(follow.next().unwrap().n());
    }
    assert!(got.iter().copied().eq(0..EVENTS), "each once and in order");
}

/// Returns the content of a chunked body.
fn unchunked(mut bytes: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        // The last chunk may be cut.
        let size = size.min(bytes.len() - end - 2);
        text.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = bytes.get(end + size + 4..).unwrap_or_default();
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn a_websocket_gets_the_same_and_many_fit_beside_each_other() {
    let server = Arc::new(Server::with(ServerConfig { requests_running_max: 2, ..ServerConfig::default() }));
    server.create_of("q", SPEC, 1);
    write(&server, 0..5);
    // More streams than permits: a stream that has nothing to send holds none.
    let mut sockets: Vec<Socket> =
        (0..12).map(|_| Socket::open(&server, "/collections/q/stream?after=0&filter=n%3E1")).collect();
    for socket in &mut sockets {
        assert_eq!(socket.next().unwrap()["position"].as_str().unwrap().len(), 13);
        let got: Vec<u64> = (0..3).map(|_| socket.next().unwrap()["properties"]["n"].as_u64().unwrap()).collect();
        assert_eq!(got, [2, 3, 4]);
    }
    write(&server, 5..9);
    for socket in &mut sockets {
        let got: BTreeSet<u64> = (0..4).map(|_| socket.next().unwrap()["properties"]["n"].as_u64().unwrap()).collect();
        assert_eq!(got, (5..9).collect());
    }
    let mut server = Arc::into_inner(server).unwrap();
    server.stop();
    let end = sockets[0].next().unwrap();
    assert_eq!((&end["end"], end["after"].as_str().map(str::len)), (&json!("closing"), Some(13)), "{end}");
}

#[test]
fn a_stream_of_a_collection_that_another_has_replaced_says_so() {
    let server = Server::start();
    server.create_of("q", SPEC, 1);
    write(&server, 0..5);
    let mut follow = Follow::open(&server, "/collections/q/stream?after=0", None);
    for n in 0..5 {
        assert_eq!(follow.next().unwrap().n(), n);
    }
    assert_eq!(server.ask("DELETE", "/collections/q", &[], b"").status, 204);
    server.create_of("q", SPEC, 1);
    // The new collection's positions equal those of the old one: only the creation time distinguishes them.
    write(&server, 10..12);
    let end = follow.next().unwrap();
    assert_eq!(end.kind, "end");
    let end = end.data.unwrap();
    assert_eq!((&end["reason"], end["after"].as_str().map(str::len)), (&json!("gone"), Some(13)), "{end}");
}

#[test]
fn a_stream_of_a_collection_that_is_gone_says_so_without_a_write() {
    let server = Server::start();
    for name in ["removed", "renamed"] {
        server.create_of(name, SPEC, 1);
    }
    let mut follows = ["removed", "renamed"].map(|name| {
        let mut follow = Follow::open(&server, &format!("/collections/{name}/stream"), None);
        // Its position: the stream is open.
        follow.message().unwrap();
        follow
    });
    assert_eq!(server.ask("DELETE", "/collections/removed", &[], b"").status, 204);
    let renamed =
        server.ask("PATCH", "/collections/renamed", &[("content-type", "application/json")], br#"{"id":"other"}"#);
    // A bucket gives no other names.
    let gone = if renamed.status == 501 { &mut follows[..1] } else { &mut follows[..] };
    for follow in gone {
        let end = follow.next().unwrap();
        assert_eq!((end.kind.as_str(), &end.data.unwrap()["reason"]), ("end", &json!("gone")));
    }
}

#[test]
fn after_a_crash_a_stream_goes_on_where_its_client_was() {
    let disk = MemoryDisk::new();
    let over = |disk: &MemoryDisk| {
        let seams = Seams { disk: Arc::new(disk.clone()), ..Seams::real() };
        Server::upon(seams, Options::at("/data"), ServerConfig::default())
    };
    let server = over(&disk);
    server.create_of("q", SPEC, 1);
    write(&server, 0..10);
    write(&server, 10..20);
    let mut follow = Follow::open(&server, "/collections/q/stream?after=0", None);
    let (mut got, mut last) = (Vec::new(), String::new());
    for _ in 0..13 {
        let message = follow.next().unwrap();
        (last, _) = (message.id.clone(), got.push(message.n()));
    }
    drop(follow);
    disk.crash(CrashStyle::Lose);
    drop(server);
    let server = over(&disk);
    write(&server, 20..25);
    let mut follow = Follow::open(&server, "/collections/q/stream?after=0", Some(&last));
    while got.len() < 25 {
        got.push(follow.next().unwrap().n());
    }
    assert!(got.into_iter().eq(0..25));
}
