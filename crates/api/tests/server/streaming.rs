//! Responses are streamed, stop when their client disconnects, and never look complete when they are not.

use crate::support::{Server, read_chunk, read_head, read_response, send};
use meridian_api::ServerConfig;
use std::fmt::Write;
use std::io::BufReader;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const ROWS: usize = 160_000;

/// Loads many events with texts long enough that no buffer on the way holds the response.
fn big(config: ServerConfig) -> Server {
    let server = Server::with(config);
    server.create("big", "n:Integer,note:String,*geom:Point:srid=4326");
    let filler = "x".repeat(200);
    for part in 0..4 {
        let mut csv = String::from("n,note,lon,lat\n");
        for i in 0..ROWS / 4 {
            let n = part * ROWS / 4 + i;
            let _ = writeln!(csv, "{n},{filler}{n},{},{}", n % 180, n % 90);
        }
        let answer = server.post("/collections/big/items", "text/csv", csv);
        assert_eq!(answer.status, 201, "{:.500}", answer.text());
    }
    server
}

fn blocks_read(server: &Server) -> u64 {
    server.store.list("default").iter().map(|c| c.stats().blocks_read).sum()
}

/// Waits until no more blocks are read, and returns how many were.
fn settled(server: &Server) -> u64 {
    let mut last = blocks_read(server);
    let mut quiet = Instant::now();
    while quiet.elapsed() < Duration::from_millis(300) {
        std::thread::sleep(Duration::from_millis(10));
        let now = blocks_read(server);
        if now != last {
            (last, quiet) = (now, Instant::now());
        }
    }
    last
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").text();
    let line = text.lines().find(|l| l.starts_with(name) && !l.starts_with('#')).unwrap_or_else(|| panic!("{name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn wait_for(server: &Server, name: &str, value: u64) {
    let begun = Instant::now();
    while metric(server, name) != value {
        assert!(begun.elapsed() < Duration::from_secs(20), "{name} is {}, not {value}", metric(server, name));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn open(server: &Server, path: &str) -> BufReader<TcpStream> {
    let mut stream = server.connect();
    send(&mut stream, "GET", path, &[], b"");
    BufReader::new(stream)
}

/// Returns a filter that takes long for every event and matches none.
fn slow_filter() -> String {
    let parts: Vec<String> = (0..120).map(|i| format!("note%20LIKE%20'%25y{i}%25z%25'")).collect();
    parts.join("%20OR%20")
}

#[test]
fn a_response_that_breaks_off_early_has_its_head_or_is_refused() {
    let server = big(ServerConfig::default());
    let quota = br#"{"quotas":{"scanned_bytes_per_request":2000000}}"#;
    assert_eq!(server.ask("PATCH", "/tenants/default", &[("content-type", "application/json")], quota).status, 200);
    for _ in 0..20 {
        // With a limit, its cost is not estimated beforehand.
        let mut reader = open(&server, "/collections/big/items?f=csv&limit=100000");
        let (status, _) = read_head(&mut reader).expect("a head");
        assert!(status == 429 || status == 200, "{status}");
        if status == 200 {
            while read_chunk(&mut reader).is_ok_and(|chunk| !chunk.is_empty()) {}
            // It is counted after the connection has ended.
            let begun = Instant::now();
            while metric(&server, "meridian_streams_broken_total") == 0 {
                assert!(begun.elapsed() < Duration::from_secs(20), "a response that broke off is not counted");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

#[test]
fn first_bytes_leave_before_the_last_block_is_read() {
    let server = big(ServerConfig::default());
    let before = blocks_read(&server);
    let mut reader = open(&server, "/collections/big/items?f=ndjson");
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    let first = read_chunk(&mut reader).unwrap();
    assert!(first.starts_with(b"{\"type\":\"Feature\""));
    // The client reads no further: the query waits for it instead of filling the memory.
    let stalled = settled(&server) - before;
    let mut lines = first.iter().filter(|b| **b == b'\n').count();
    loop {
        let chunk = read_chunk(&mut reader).unwrap();
        if chunk.is_empty() {
            break;
        }
        lines += chunk.iter().filter(|b| **b == b'\n').count();
    }
    assert_eq!(lines, ROWS);
    let all = blocks_read(&server) - before;
    assert!(stalled < all, "{stalled} of {all} blocks were read before the client had taken the second chunk");
}

#[test]
fn a_client_that_disconnects_stops_its_query() {
    let server = big(ServerConfig::default());
    let start = blocks_read(&server);
    assert_eq!(server.get("/collections/big/items?f=ndjson").text().lines().count(), ROWS);
    let whole = blocks_read(&server) - start;
    let before = blocks_read(&server);
    let mut reader = open(&server, "/collections/big/items?f=ndjson");
    read_head(&mut reader).unwrap();
    read_chunk(&mut reader).unwrap();
    drop(reader);
    wait_for(&server, "meridian_clients_gone_total", 1);
    wait_for(&server, "meridian_requests_running", 0);
    let read = settled(&server) - before;
    assert!(read < whole, "{read} of {whole} blocks were read for a client that had gone");
}

#[test]
fn a_client_that_disconnects_stops_a_query_without_output_too() {
    let server = big(ServerConfig::default());
    let filter = slow_filter();
    let begun = Instant::now();
    let start = blocks_read(&server);
    assert_eq!(server.get(&format!("/collections/big/items?f=ndjson&filter={filter}")).text(), "");
    let (whole, took) = (blocks_read(&server) - start, begun.elapsed());
    let before = blocks_read(&server);
    let reader = open(&server, &format!("/collections/big/items?f=ndjson&filter={filter}"));
    while blocks_read(&server) == before {
        std::thread::yield_now();
    }
    drop(reader);
    wait_for(&server, "meridian_requests_running", 0);
    let read = settled(&server) - before;
    assert!(read < whole, "{read} of {whole} blocks ({took:?}) were read for a client that had gone");
}

#[test]
fn a_question_past_its_deadline_stops_and_says_so() {
    let server = big(ServerConfig::default());
    let path = format!("/collections/big/items?filter={}", slow_filter());
    let start = blocks_read(&server);
    assert_eq!(server.get(&format!("{path}&timeout=60000")).status, 200);
    let whole = blocks_read(&server) - start;
    let before = blocks_read(&server);
    let problem = server.get(&format!("{path}&timeout=1")).problem(504);
    assert_eq!(problem["type"], "urn:meridian:problem:deadline-exceeded");
    assert_eq!(server.ask("GET", &path, &[("meridian-timeout", "1")], b"").status, 504);
    assert!(settled(&server) - before < whole);
}

#[test]
fn a_response_cut_by_its_deadline_never_looks_complete() {
    let server = big(ServerConfig::default());
    let mut reader = open(&server, "/collections/big/items?f=ndjson&timeout=1500");
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    // The reader is too slow: the deadline passes while the response waits.
    wait_for(&server, "meridian_streams_broken_total", 1);
    let broken = loop {
        match read_chunk(&mut reader) {
            Ok(chunk) if chunk.is_empty() => break false,
            Ok(_) => {}
            Err(_) => break true,
        }
    };
    assert!(broken, "the transfer ended as if the answer were whole");
}

#[test]
fn a_client_that_takes_nothing_is_disconnected() {
    let server = big(ServerConfig { write_stall: Duration::from_millis(300), ..ServerConfig::default() });
    let mut reader = open(&server, "/collections/big/items?f=ndjson");
    read_head(&mut reader).unwrap();
    wait_for(&server, "meridian_clients_gone_total", 1);
    wait_for(&server, "meridian_answers_resting", 0);
}

#[test]
fn a_shutdown_lets_running_answers_finish() {
    let mut server = big(ServerConfig::default());
    let mut reader = open(&server, "/collections/big/items?f=ndjson&limit=10000");
    let (status, headers) = read_head(&mut reader).unwrap();
    assert_eq!(status, 200);
    let address = server.address;
    let rest = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        let mut lines = 0;
        loop {
            let chunk = read_chunk(&mut reader).unwrap();
            if chunk.is_empty() {
                return lines;
            }
            lines += chunk.iter().filter(|b| **b == b'\n').count();
        }
    });
    server.stop();
    assert_eq!(headers["transfer-encoding"], "chunked");
    assert_eq!(rest.join().unwrap(), 10_000);
    assert!(TcpStream::connect(address).is_err(), "the port is still open");
}

#[test]
fn a_shutdown_does_not_wait_for_ever() {
    let mut server = big(ServerConfig { shutdown_grace: Duration::from_millis(300), ..ServerConfig::default() });
    let mut reader = open(&server, "/collections/big/items?f=ndjson");
    read_head(&mut reader).unwrap();
    // An idle connection is not a running request.
    let idle = server.connect();
    server.stop();
    drop(idle);
    assert!(loop {
        match read_chunk(&mut reader) {
            Ok(chunk) if chunk.is_empty() => break false,
            Ok(_) => {}
            Err(_) => break true,
        }
    });
}

#[test]
fn a_head_request_costs_no_answer() {
    let server = Server::start();
    server.create("q", "n:Integer");
    let mut stream = server.connect();
    send(&mut stream, "HEAD", "/collections/q", &[], b"");
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    assert!(read_response(&mut reader).is_err(), "a HEAD answer has no body");
}

#[test]
fn a_small_answer_leaves_as_one_piece() {
    let server = Server::with(ServerConfig::default());
    server.create("few", "n:Integer,*geom:Point:srid=4326");
    let rows: String = (0..2_000).map(|n| format!("{n},{},{}\n", n % 180, n % 90)).collect();
    assert_eq!(server.post("/collections/few/items", "text/csv", format!("n,lon,lat\n{rows}")).status, 201);
    // A client that knows the length does not wait for another chunk.
    for (query, whole) in [
        ("f=ndjson&filter=n%3C500", true),
        ("f=arrow&filter=n%3C500", true),
        ("f=flatgeobuf&filter=n%3C500", true),
        ("f=gpkg", true),
        ("f=ndjson&filter=n%3C0", true),
        ("f=json", true),
        ("f=json&filter=n%3C7", true),
        ("f=ndjson", false),
    ] {
        let answer = server.get(&format!("/collections/few/items?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        assert_eq!(!answer.header("content-length").is_empty(), whole, "{query}");
    }
}
