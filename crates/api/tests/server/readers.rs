//! Slow or idle clients and waiting writers: they hold no permit to run.

use crate::gated::Gated;
use crate::support::{Server, read_chunk, read_head, send};
use meridian_api::ServerConfig;
use meridian_store::Options;
use meridian_store::seams::Seams;
use std::fmt::Write;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ROWS: usize = 40_000;

/// Starts a server with few permits, and events whose texts fill every buffer on the way to a client.
fn narrow(config: ServerConfig) -> Server {
    let server = Server::with(ServerConfig {
        requests_running_max: 2,
        requests_waiting_max: 8,
        admission_wait: Duration::from_secs(20),
        ..config
    });
    server.create("big", "n:Integer,note:String,*geom:Point:srid=4326");
    let filler = "x".repeat(300);
    let mut csv = String::from("n,note,lon,lat\n");
    for n in 0..ROWS {
        let _ = writeln!(csv, "{n},{filler}{n},{},{}", n % 180, n % 90);
    }
    assert_eq!(server.post("/collections/big/items", "text/csv", csv).status, 201);
    server
}

/// Requests everything, reads two kilobytes, and stops reading.
fn dawdler(server: &Server) -> BufReader<TcpStream> {
    dawdles(server).unwrap()
}

/// The same for a response that may be refused or interrupted.
fn dawdles(server: &Server) -> io::Result<BufReader<TcpStream>> {
    dawdles_over(server, "/collections/big/items?f=ndjson")
}

/// The same for the response at a path.
fn dawdles_over(server: &Server, path: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10);
    send(&mut stream, "GET", path, &[], b"");
    let mut reader = BufReader::with_capacity(1 << 10, stream);
    let (status, _) = read_head(&mut reader)?;
    if status != 200 {
        return Err(io::Error::other(format!("status {status}")));
    }
    let mut first = [0; 2 << 10];
    reader.read_exact(&mut first)?;
    Ok(reader)
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").text();
    let line = text.lines().find(|l| l.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn wait_for(server: &Server, name: &str, value: u64) {
    let begun = Instant::now();
    while metric(server, name) != value {
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} is {}, not {value}", metric(server, name));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reads the rest of a chunked body, from the middle of a chunk. An interrupted body is an error.
fn rest_lines(reader: &mut BufReader<TcpStream>) -> io::Result<usize> {
    let mut lines = 0;
    // The two kilobytes ended within the first chunk, which ends at the next line without an event.
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        if line == b"\r\n" {
            break;
        }
        lines += 1;
    }
    loop {
        let chunk = read_chunk(reader)?;
        if chunk.is_empty() {
            return Ok(lines);
        }
        lines += chunk.iter().filter(|b| **b == b'\n').count();
    }
}

#[test]
fn slow_readers_hold_no_permit_and_get_their_complete_response() {
    let server = narrow(ServerConfig::default());
    let mut readers: Vec<_> = (0..60).map(|_| dawdler(&server)).collect();
    wait_for(&server, "meridian_answers_resting", 60);
    // A client's system may still accept some of its response, for which the query briefly continues.
    wait_for(&server, "meridian_requests_running", 0);
    for path in ["items?limit=1", "items?f=csv&filter=n%3C50", "aggregate?function=count"] {
        assert_eq!(server.get(&format!("/collections/big/{path}")).status, 200, "{path}");
    }
    assert_eq!(server.get("/collections/big/items?f=ndjson").text().lines().count(), ROWS);
    // Clients that read on get their complete responses, once.
    for reader in readers.iter_mut().take(2) {
        let taken = 2048 / (ROWS.to_string().len() + 300 + 120);
        let lines = rest_lines(reader).unwrap();
        assert!((ROWS - taken - 2..=ROWS).contains(&lines), "{lines} of {ROWS} lines");
    }
    drop(readers);
    wait_for(&server, "meridian_answers_resting", 0);
    wait_for(&server, "meridian_answer_bytes", 0);
}

#[test]
fn a_page_of_html_counts_until_it_is_taken() {
    let server = narrow(ServerConfig::default());
    let mut stream = server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10);
    send(&mut stream, "GET", "/collections/big/items?f=html&limit=10000", &[], b"");
    let begun = Instant::now();
    while metric(&server, "meridian_answer_bytes") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not counted");
    }
    drop(stream);
    wait_for(&server, "meridian_answer_bytes", 0);
}

#[test]
fn idle_readers_are_evicted_when_others_need_the_memory() {
    let server = narrow(ServerConfig { answer_bytes_total: 8 << 20, ..ServerConfig::default() });
    let mut readers: Vec<_> = (0..6).map(|_| dawdler(&server)).collect();
    wait_for(&server, "meridian_answers_resting", 6);
    let held = metric(&server, "meridian_answer_bytes");
    assert!(held > 1 << 20, "{held}");
    // A client that has just read something is not evicted.
    std::thread::sleep(Duration::from_millis(1100));
    let mut more = Vec::new();
    while metric(&server, "meridian_readers_gave_way_total") == 0 {
        assert!(
            more.len() < 60,
            "{} bytes are held by {} readers",
            metric(&server, "meridian_answer_bytes"),
            more.len() + 6
        );
        // If all clients that hold memory have just connected, the next one finds no room.
        more.push(dawdles(&server).ok());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The newest have just read, so they are not evicted either: a client that finds no room retries.
    let whole = || {
        std::panic::catch_unwind(AssertUnwindSafe(|| {
            server.get("/collections/big/items?f=ndjson").text().lines().count()
        }))
    };
    let begun = Instant::now();
    while whole().ok() != Some(ROWS) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody gave way for a client that reads");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(metric(&server, "meridian_answer_bytes") <= 8 << 20);
    // An interrupted response never looks complete.
    let gave_way = metric(&server, "meridian_readers_gave_way_total") as usize;
    let broken = readers.iter_mut().map(rest_lines).filter(Result::is_err).count();
    assert!((1..=gave_way).contains(&broken), "{broken} of {gave_way}");
}

#[test]
fn a_client_that_reads_gets_all_of_its_answer_where_others_have_just_filled_the_memory() {
    let server = narrow(ServerConfig { answer_bytes_total: 8 << 20, ..ServerConfig::default() });
    let mut readers = Vec::new();
    while metric(&server, "meridian_answer_bytes") < 6 << 20 && metric(&server, "meridian_readers_gave_way_total") == 0
    {
        assert!(readers.len() < 60, "{} readers do not fill it", readers.len());
        readers.push(dawdles(&server).ok());
    }
    for _ in 0..3 {
        assert_eq!(server.get("/collections/big/items?f=ndjson").text().lines().count(), ROWS);
        readers.push(dawdles(&server).ok());
    }
    assert!(metric(&server, "meridian_answer_bytes") <= 8 << 20);
}

#[test]
fn a_reader_below_the_min_speed_is_disconnected() {
    let server = narrow(ServerConfig {
        write_stall: Duration::from_secs(5),
        answer_rate_min: 1 << 30,
        ..ServerConfig::default()
    });
    // A stream, and a page that is complete before its first byte is sent.
    for path in ["/collections/big/items?f=ndjson", "/collections/big/items?f=html&limit=10000"] {
        let before = metric(&server, "meridian_readers_slow_total");
        let mut reader = dawdles_over(&server, path).unwrap();
        let (begun, mut some) = (Instant::now(), [0; 64]);
        // About 3 KB per second. The server knows at once: what the system already holds takes much longer to read.
        while metric(&server, "meridian_readers_slow_total") == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "{path}: it was never disconnected");
            let _ = reader.read_exact(&mut some);
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        let ends = [&b"\r\n0\r\n\r\n"[..], b"</html>", b"</html>\n"];
        assert!(!ends.iter().any(|end| rest.ends_with(end)), "{path}: a cut answer looked whole");
    }
}

#[test]
fn a_read_whose_client_leaves_holds_its_memory_until_it_ends() {
    let disk = Gated::new();
    disk.gate.set(true);
    let seams = Seams { disk: Arc::new(disk.clone()), ..Seams::real() };
    let server = Server::upon(seams, Options::at("/data"), ServerConfig::default());
    server.create("q", "n:Integer,*geom:Point:srid=4326");
    assert_eq!(server.post("/collections/q/items", "text/csv", "n,lon,lat\n1,1,1\n").status, 201);
    server.store.collection("default", "q").unwrap().flush().unwrap();
    disk.gate.set(false);
    let mut stream = server.connect();
    send(&mut stream, "GET", "/collections/q/stream?after=0", &[], b"");
    let begun = Instant::now();
    while disk.gate.waiting.load(Ordering::Relaxed) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the stream does not read");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stream);
    // The other connection asks for this number.
    wait_for(&server, "meridian_connections_open", 1);
    for _ in 0..30 {
        assert!(metric(&server, "meridian_answer_bytes") > 0, "memory that is in use is given away");
        std::thread::sleep(Duration::from_millis(10));
    }
    disk.gate.set(true);
    wait_for(&server, "meridian_answer_bytes", 0);
    wait_for(&server, "meridian_streams_open", 0);
}

#[test]
fn writers_that_wait_for_room_hold_no_permit() {
    let disk = Gated::new();
    let seams = Seams { disk: Arc::new(disk.clone()), ..Seams::real() };
    let options = Options { memory_bytes: 256 << 10, ..Options::at("/data") };
    let config = ServerConfig {
        requests_running_max: 2,
        requests_waiting_max: 4,
        admission_wait: Duration::from_millis(500),
        ..ServerConfig::default()
    };
    let server = Server::upon(seams, options, config);
    server.create("q", "n:Integer,note:String,*geom:Point:srid=4326;meridian.id='given'");
    let body = |writer: usize| {
        let mut csv = String::from("id,n,note,lon,lat\n");
        for n in 0..400 {
            let _ = writeln!(csv, "w{writer}n{n},{n},{},1,1", "x".repeat(400));
        }
        csv
    };
    // The first of them fill the memory, and nothing is flushed.
    let collection = server.store.collection("default", "q").unwrap();
    let mut taken = 0;
    while collection.has_room() {
        assert_eq!(server.post("/collections/q/items", "text/csv", body(taken)).status, 201);
        taken += 1;
        assert!(taken < 100, "the memory never filled");
    }
    let server = Arc::new(server);
    let writers: Vec<_> = (0..6)
        .map(|writer| {
            let (server, body) = (server.clone(), body(1000 + writer));
            std::thread::spawn(move || match writer {
                0 => server.ask("DELETE", "/collections/q/items/w0n0", &[], b"").status,
                1 => {
                    let event = r#"{"type":"Feature","id":"p","geometry":null,"properties":{"n":1}}"#;
                    let json = [("content-type", "application/json")];
                    server.ask("PUT", "/collections/q/items/p", &json, event.as_bytes()).status
                }
                _ => server.post("/collections/q/items", "text/csv", body).status,
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..10 {
        assert_eq!(server.get("/collections/q/items?limit=1").status, 200);
        assert_eq!(server.get("/collections/q/aggregate?function=count").json()["groups"][0]["count"], taken * 400);
    }
    assert_eq!(metric(&server, "meridian_requests_running"), 0);
    disk.gate.set(true);
    for (writer, handle) in writers.into_iter().enumerate() {
        let status = handle.join().unwrap();
        assert!(matches!(status, 201 | 204), "writer {writer}: {status}");
    }
    let count = server.get("/collections/q/aggregate?function=count").json()["groups"][0]["count"].clone();
    assert_eq!(count, (taken + 4) * 400, "one is deleted and one is put");
}
