//! `f=gpkg`: responses that are made in files, whose size is bounded, one by one and together.

use crate::owner::is_gateway;
use crate::support::{Response, Server, read_head, send};
use meridian_api::ServerConfig;
use serde_json::json;
use std::fmt::Write;
use std::io::{BufReader, Read};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const ITEMS: &str = "/collections/notes/items?f=gpkg";
const MIB: usize = 1 << 20;

/// Loads events with notes of four kilobytes, two mebibytes in 500 of them.
fn filled(config: ServerConfig, events: usize) -> Server {
    let server = Server::with(config);
    server.create("notes", "n:Integer,note:String,*geom:Point:srid=4326");
    let (filler, mut csv) = ("x".repeat(4_096), String::from("n,note,lon,lat\n"));
    for n in 0..events {
        let _ = writeln!(csv, "{n},{filler},{},{}", n % 180, n % 90);
    }
    let answer = server.post("/collections/notes/items", "text/csv", csv);
    assert_eq!(answer.status, 201, "{:.500}", answer.text());
    server
}

/// Checks that a response is a whole file with its length.
#[track_caller]
fn is_whole(answer: &Response) {
    assert_eq!(answer.status, 200, "{:.500}", answer.text());
    assert!(answer.body.starts_with(b"SQLite format 3\0"));
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    // The header of a database has the number of its pages.
    let pages = u32::from_be_bytes(answer.body[28..32].try_into().unwrap()) as usize;
    assert_eq!(pages * usize::from(u16::from_be_bytes([answer.body[16], answer.body[17]])), answer.body.len());
}

fn held(server: &Server) -> usize {
    let text = server.get("/metrics").text();
    let line = text.lines().find(|line| line.starts_with("meridian_answer_file_bytes ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[track_caller]
fn becomes(server: &Server, is: impl Fn(usize) -> bool) {
    let begun = Instant::now();
    while !is(held(server)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes", held(server));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_file_over_the_max_is_refused_with_the_command_that_has_none() {
    let server = filled(ServerConfig { answer_file_bytes_max: MIB as u64, ..ServerConfig::default() }, 500);
    is_whole(&server.get(&format!("{ITEMS}&filter=n%3C50")));
    is_whole(&server.get(&format!("{ITEMS}&properties=n")));
    let problem = server.get(ITEMS).problem(400);
    assert_eq!((&problem["field"], &problem["limit_bytes"]), (&json!("f"), &json!(MIB)));
    let detail = problem["detail"].as_str().unwrap();
    for words in ["answers.file_bytes", "bbox=", "meridian export notes notes.gpkg"] {
        assert!(detail.contains(words), "{words}: {detail}");
    }
    becomes(&server, |bytes| bytes == 0);
}

#[test]
fn files_share_a_disk_until_their_clients_have_them_or_leave() {
    let (max, total) = (12 * MIB, 12 * MIB);
    let config =
        ServerConfig { answer_file_bytes_max: max as u64, answer_file_bytes_total: total, ..ServerConfig::default() };
    // Some nine mebibytes: no buffer on the way holds them.
    let server = filled(config, 2_200);
    let mut stream = server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10);
    send(&mut stream, "GET", ITEMS, &[], b"");
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader).unwrap();
    let length: usize = headers["content-length"].parse().unwrap();
    assert!(status == 200 && length > 8 * MIB && length < max, "{status}, {length} bytes");
    assert_eq!(held(&server), total);
    let refused = server.get(ITEMS);
    assert!(!refused.header("retry-after").is_empty());
    let problem = refused.problem(503);
    assert!(problem["detail"].as_str().unwrap().contains("answers.file_bytes_total"), "{problem}");
    // Other formats need none of it.
    assert_eq!(server.get("/collections/notes/items?f=csv&limit=10").status, 200);
    drop(reader);
    becomes(&server, |bytes| bytes == 0);
    is_whole(&server.get(ITEMS));
    becomes(&server, |bytes| bytes == 0);

    // A client that reads slowly gets all of it.
    let mut stream = server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10);
    send(&mut stream, "GET", ITEMS, &[], b"");
    let mut reader = BufReader::new(stream);
    read_head(&mut reader).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut body = Vec::new();
    reader.read_to_end(&mut body).unwrap();
    assert_eq!(body.len(), length);
    becomes(&server, |bytes| bytes == 0);
}

#[test]
fn a_page_that_is_whole_is_sent_to_its_end_after_its_deadline() {
    let server = filled(ServerConfig::default(), 2_200);
    let (mut stream, deadline) = (server.connect_from(Ipv4Addr::LOCALHOST, 4 << 10), Duration::from_secs(5));
    let begun = Instant::now();
    send(&mut stream, "GET", &format!("{ITEMS}&limit=2200&timeout={}", deadline.as_millis()), &[], b"");
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader).unwrap();
    let length: usize = headers["content-length"].parse().unwrap();
    assert!(status == 200 && length > 8 * MIB, "{status}, {length} bytes");
    std::thread::sleep((deadline + Duration::from_millis(500)).saturating_sub(begun.elapsed()));
    let mut body = Vec::new();
    reader.read_to_end(&mut body).unwrap();
    assert_eq!(body.len(), length);
    becomes(&server, |bytes| bytes == 0);
}

#[test]
fn a_file_that_would_leave_too_little_of_the_disk_is_refused() {
    let server = filled(ServerConfig { answer_disk_free_min: u64::MAX, ..ServerConfig::default() }, 10);
    let problem = server.get(ITEMS).problem(507);
    assert_eq!(problem["type"], "urn:meridian:problem:storage-unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("answers.disk_free_min"), "{problem}");
    assert_eq!(server.get("/collections/notes/items?f=csv").status, 200);
    becomes(&server, |bytes| bytes == 0);
}

#[test]
fn a_server_without_a_place_for_files_says_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = Some(file.path().join("answers"));
    let server = filled(ServerConfig { answer_folder: folder, ..ServerConfig::default() }, 10);
    let problem = server.get(ITEMS).problem(507);
    assert_eq!(problem["type"], "urn:meridian:problem:storage-unavailable");
    assert!(!problem["detail"].as_str().unwrap().contains("answers"), "{problem}");
    assert_eq!(server.get("/collections/notes/items?f=csv").status, 200);
    becomes(&server, |bytes| bytes == 0);
}

#[test]
fn a_head_and_a_client_that_has_the_events_need_no_file() {
    let pages = [ITEMS.to_owned(), format!("{ITEMS}&limit=10")];
    let server = filled(ServerConfig::default(), 50);
    for path in &pages {
        let (whole, head) = (server.get(path), server.ask("HEAD", path, &[], b""));
        is_whole(&whole);
        for name in ["content-crs", "content-type", "etag", "link", "meridian-consistency", "meridian-snapshot"] {
            assert_eq!(head.header(name), whole.header(name), "{path}: {name}");
        }
        assert_eq!(head.header("link").contains("rel=\"next\""), path.ends_with("limit=10"), "{path}");
        assert!(head.status == 200 && !head.headers.contains_key("content-length"), "{path}");
    }
    drop(server);
    // Where no file can be made.
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = Some(file.path().join("answers"));
    let server = filled(ServerConfig { answer_folder: folder, ..ServerConfig::default() }, 50);
    for path in &pages {
        let head = server.ask("HEAD", path, &[], b"");
        assert_eq!(head.status, 200, "{path}");
        let known = [("if-none-match", head.header("etag"))];
        assert_eq!(server.ask("HEAD", path, &known, b"").status, 304, "{path}");
        // A gateway may know the snapshot only from the query.
        let answer = server.ask("GET", path, &known, b"");
        assert!(answer.status == 304 || is_gateway() && answer.status == 507, "{path}: {}", answer.status);
        server.get(path).problem(507);
    }
    let mut stream = server.connect();
    send(&mut stream, "HEAD", &format!("{ITEMS}&filter=none%3D1"), &[], b"");
    assert_eq!(read_head(&mut BufReader::new(stream)).unwrap().0, 400);
}

#[test]
fn a_collection_without_places_is_a_layer_of_attributes() {
    let server = Server::start();
    server.create("lines", "line:String,dtg:Date");
    let lines: String = (0..300).map(|n| format!("line {n},2026-01-01T00:00:00Z\n")).collect();
    assert_eq!(server.post("/collections/lines/items", "text/csv", format!("line,dtg\n{lines}")).status, 201);
    let answer = server.get("/collections/lines/items?f=gpkg");
    is_whole(&answer);
    let has = |words: &[u8]| answer.body.windows(words.len()).any(|part| part == words);
    assert!(has(b"attributes") && has(b"line 299"));
    // The file of no events has its layer.
    is_whole(&server.get("/collections/lines/items?f=gpkg&filter=line%3D'none'"));
}
