//! Many clients that read a part of a large response and then stall.
//!
//! The server is a separate process: it and the test may have 1,024 files open each.
use crate::common::clients::dawdler;
use crate::common::{PATIENCE, Server};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const DAWDLERS: usize = 500;
const ROWS: usize = 100_000;

/// Requests all events, and reads the beginning of the response.
fn reader(address: SocketAddr) -> BufReader<TcpStream> {
    let mut reader = dawdler(address, "/collections/big/items?f=ndjson");
    let mut status = String::new();
    reader.read_line(&mut status).unwrap();
    assert!(status.contains(" 200 "), "{status}");
    reader.read_exact(&mut [0; 2 << 10]).unwrap();
    reader
}

/// Reads the rest, up to the chunk that ends a complete response, and counts its line ends.
fn rest(reader: &mut BufReader<TcpStream>) -> usize {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(bytes.ends_with(b"\r\n0\r\n\r\n"), "the answer was broken off");
    // Chunk delimiters end with a carriage return and a line feed, a line of the response with the latter only.
    bytes.windows(2).filter(|pair| pair[1] == b'\n' && pair[0] != b'\r').count()
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").1;
    let line = text.lines().find(|l| l.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn wait_for(server: &Server, name: &str, value: u64) {
    let begun = Instant::now();
    while metric(server, name) != value {
        assert!(begun.elapsed() < PATIENCE, "{name} is {}, not {value}", metric(server, name));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn five_hundred_who_dawdle_hold_no_place_and_get_all_of_their_answer_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    // They stall for the duration of this test. At first, two thousand events wait for each: about 500 kB.
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[answers]\nstall = \"1h\"\nbytes_total = \"384 MiB\"\n").unwrap();
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    server.create("big", "n:Integer,note:String,*geom:Point:srid=4326");
    let filler = "x".repeat(20);
    let mut csv = String::from("n,note,lon,lat\n");
    for n in 0..ROWS {
        let _ = writeln!(csv, "{n},{filler},{},{}", n % 180, n % 90);
    }
    assert_eq!(server.post("/collections/big/items", "text/csv", None, csv.as_bytes()).unwrap().0, 201);
    let address: SocketAddr = server.url.trim_start_matches("http://").parse().unwrap();
    let mut readers: Vec<_> = (0..DAWDLERS).map(|_| reader(address)).collect();
    wait_for(&server, "meridian_answers_resting", DAWDLERS as u64);
    wait_for(&server, "meridian_requests_running", 0);
    assert!((1..=384 << 20).contains(&metric(&server, "meridian_answer_bytes")));
    for path in ["items?limit=1", "items?f=csv&filter=n%3C50", "aggregate?function=count"] {
        for _ in 0..20 {
            assert_eq!(server.get(&format!("/collections/big/{path}")).0, 200, "{path}");
        }
    }
    assert_eq!(server.get("/collections/big/items?f=ndjson").1.lines().count(), ROWS);
    assert_eq!(metric(&server, "meridian_readers_gave_way_total"), 0);
    // Clients that resume reading get their responses complete, and once.
    let taken = (2 << 10) / 100;
    for reader in readers.iter_mut().step_by(100) {
        let lines = rest(reader);
        assert!((ROWS - taken..=ROWS).contains(&lines), "{lines} of {ROWS} lines");
    }
    drop(readers);
    wait_for(&server, "meridian_answers_resting", 0);
    wait_for(&server, "meridian_answer_bytes", 0);
}
