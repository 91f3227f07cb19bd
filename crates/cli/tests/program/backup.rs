//! Backups of the real server during writes, and restores from them.

use crate::common::{self, MERIDIAN, Server, meridian};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Returns the number of events in the nth batch.
fn size(n: u64) -> u64 {
    1 + n * 7 % 400
}

fn body(n: u64) -> String {
    let mut out = String::new();
    for i in 0..size(n) {
        let (lon, lat) = ((i * 37 % 360) as f64 - 180.0, (n * 17 % 180) as f64 - 90.0);
        let dtg = format!("2026-01-{:02}T00:00:{:02}Z", n % 28 + 1, i % 60);
        writeln!(
            out,
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{lon},{lat}]}},"properties":{{"batch":{n},"dtg":"{dtg}"}}}}"#
        )
        .unwrap();
    }
    out
}

/// Writes batches one after another, and counts the acknowledged ones.
fn write(url: &str, acknowledged: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let n = acknowledged.load(Ordering::Relaxed);
        let key = format!("b{n}");
        let sent =
            common::post(url, "/collections/events/items", "application/x-ndjson", Some(&key), body(n).as_bytes());
        let (status, text) = sent.unwrap();
        assert!(matches!(status, 200 | 201), "{status} {text}");
        acknowledged.store(n + 1, Ordering::Relaxed);
    }
}

/// Returns the number of events by batch, as found by a server.
fn batches(server: &Server) -> BTreeMap<u64, u64> {
    let (status, body) = server.get("/collections/events/items?f=csv&properties=batch");
    assert_eq!(status, 200, "{body}");
    let mut reader = csv::Reader::from_reader(body.as_bytes());
    let column = reader.headers().unwrap().iter().position(|h| h == "batch").unwrap();
    let mut counts = BTreeMap::new();
    for record in reader.records() {
        *counts.entry(record.unwrap()[column].parse().unwrap()).or_insert(0) += 1;
    }
    counts
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_backup_of_a_busy_server_holds_whole_batches_up_to_a_position() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(&at("data"));
    server.create("events", "batch:Long,dtg:Date,*geom:Point");
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut spans = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| write(&server.url, &acknowledged, &stop));
        for _ in 0..4 {
            let wanted = acknowledged.load(Ordering::Relaxed) + 15;
            while acknowledged.load(Ordering::Relaxed) < wanted {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let before = acknowledged.load(Ordering::Relaxed);
            let run = meridian(&["backup", text(&at("kept")), "--url", &server.url]);
            let after = acknowledged.load(Ordering::Relaxed);
            spans.push((before, after, run));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut last = None;
    for (before, after, run) in spans {
        let run = run.ended(0);
        let line = run.out.lines().find(|l| l.starts_with("events: ")).unwrap().to_owned();
        let position: u64 = line.split("position ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        // The only writer's nth batch is the nth write.
        assert!(before <= position && position <= after + 1, "{before} <= {position} <= {after}: {line}");
        last = Some(position);
    }
    server.kill();
    meridian(&["restore", text(&at("kept")), "--data", text(&at("restored"))]).ended(0);
    meridian(&["check", "--data", text(&at("restored"))]).ended(0);
    let restored = Server::start(&at("restored"));
    let expected: BTreeMap<u64, u64> = (0..last.unwrap()).map(|n| (n, size(n))).collect();
    assert_eq!(batches(&restored), expected);
    // The last batch is recognised when it is resent.
    let n = last.unwrap() - 1;
    let again =
        restored.post("/collections/events/items", "application/x-ndjson", Some(&format!("b{n}")), body(n).as_bytes());
    let answer: serde_json::Value = serde_json::from_str(&again.unwrap().1).unwrap();
    assert_eq!(answer["duplicates"], size(n), "{answer}");
}

#[test]
fn a_backup_that_is_killed_leaves_none_and_what_is_there_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(&at("data"));
    server.create("events", "batch:Long,dtg:Date,*geom:Point");
    for n in 0..40 {
        let sent = server.post("/collections/events/items", "application/x-ndjson", None, body(n).as_bytes());
        assert!(matches!(sent.unwrap().0, 200 | 201));
    }
    // A client of the API that goes away midway, and a command killed at once.
    let mut answer = common::agent().post(format!("{}/backup", server.url)).send_empty().unwrap();
    let mut some = [0; 4096];
    std::io::Read::read_exact(&mut answer.body_mut().as_reader(), &mut some).unwrap();
    drop(answer);
    let mut child = Command::new(MERIDIAN)
        .args(["backup", text(&at("kept")), "--url", &server.url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !at("kept").join("files").exists() {
        assert!(child.try_wait().unwrap().is_none_or(|status| status.success()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if !at("kept").join("BACKUP").exists() {
        let run = meridian(&["restore", text(&at("kept")), "--data", text(&at("restored"))]).ended(2);
        run.says(&["holds no backup"]);
    }
    meridian(&["backup", text(&at("kept")), "--url", &server.url]).ended(0);
    // `tar` unpacks the same from the API's response.
    std::fs::create_dir(at("unpacked")).unwrap();
    let mut tar = Vec::new();
    let mut answer = common::agent().post(format!("{}/backup", server.url)).send_empty().unwrap();
    std::io::Read::read_to_end(&mut answer.body_mut().with_config().limit(u64::MAX).reader(), &mut tar).unwrap();
    std::fs::write(at("all.tar"), tar).unwrap();
    let unpacked = Command::new("tar").args(["-xf", text(&at("all.tar")), "-C", text(&at("unpacked"))]).status();
    assert!(unpacked.unwrap().success());
    for from in ["kept", "unpacked"] {
        let to = at(&format!("from-{from}"));
        meridian(&["restore", text(&at(from)), "--data", text(&to)]).ended(0);
        assert_eq!(common::count_in_folder("events", &to), (0..40).map(size).sum::<u64>());
        meridian(&["restore", text(&at(from)), "--data", text(&to)]).ended(2).says(&["is a data folder already"]);
    }
    meridian(&["restore", text(&at("kept")), "--url", &server.url]).ended(2).says(&["--data"]);
    // Also a backup of a folder that is not being served.
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["backup", text(&at("cold")), "--data", text(&at("data"))]).ended(0);
    meridian(&["restore", text(&at("cold")), "--data", text(&at("from-cold"))]).ended(0);
    assert_eq!(common::count_in_folder("events", &at("from-cold")), (0..40).map(size).sum::<u64>());
}
