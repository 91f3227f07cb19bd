//! The driver against servers of these tests; one file per protocol.

mod answers;
mod follow;
mod goaway;
mod http;
mod http2;
mod idle;
mod live;
mod load;
mod nats;
mod postgres;
mod real;
mod resp;
mod streams;
mod tls;
mod watch;
mod websocket;

use super::*;
use meridian_lab_results::folder;
use meridian_lab_results::record::{Outcome as Came, Phase, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A server that passes every request to `answer`, with its path and number. `answer` writes any response, and
/// returns whether the connection stays open.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve(answer: impl Fn(&str, u32, &mut TcpStream) -> bool + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (answer, log, number) = (Arc::new(answer), Arc::clone(&asked), Arc::new(AtomicU32::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, log, number) = (Arc::clone(&answer), Arc::clone(&log), Arc::clone(&number));
            std::thread::spawn(move || connection(stream, &*answer, &log, &number));
        }
    });
    Server { url, asked }
}

fn connection(
    mut stream: TcpStream,
    answer: &dyn Fn(&str, u32, &mut TcpStream) -> bool,
    log: &Mutex<Vec<String>>,
    number: &AtomicU32,
) {
    stream.set_nodelay(true).expect("a socket");
    let mut held = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = loop {
            if let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(n) => held.extend_from_slice(&piece[..n]),
            }
        };
        let head = String::from_utf8_lossy(&held[..end]).into_owned();
        held.drain(..end);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().expect("a log").push(path.clone());
        if !answer(&path, number.fetch_add(1, Ordering::SeqCst), &mut stream) {
            return;
        }
    }
}

fn say(stream: &mut TcpStream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).is_ok()
}

fn ok(stream: &mut TcpStream) -> bool {
    say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
}

struct Ran {
    outcome: Outcome,
    records: Vec<Record>,
}

impl Ran {
    fn outcomes(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        self.records.iter().for_each(|record| *counts.entry(record.outcome.name()).or_default() += 1);
        counts
    }
}

fn drive(text: &str) -> Ran {
    drive_with(text, None)
}

fn drive_with(text: &str, interrupt: Option<Arc<Notify>>) -> Ran {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("run");
    let scenario = Scenario::parse(text, "test.toml", &[]).expect("a scenario");
    let options = Options { out: out.clone(), interrupt, ..Options::default() };
    let outcome = run(&scenario, &options, &mut |_| {}).expect("runs");
    let records =
        folder::open(&out).expect("opens").records().expect("reads").flat_map(|batch| batch.expect("a batch"));
    Ran { outcome, records: records.collect() }
}

fn scenario(url: &str, arrival: &str, rest: &str) -> String {
    format!("[target]\nurl = \"{url}\"\n[arrival]\n{arrival}\n[request]\npath = \"/x\"\n{rest}")
}

/// Returns why a scenario was not started; nothing of it may remain.
fn refusal(text: &str) -> LabError {
    let dir = tempfile::tempdir().expect("a folder");
    let scenario = Scenario::parse(text, "t", &[]).expect("a scenario");
    let options = Options { out: dir.path().join("run"), ..Options::default() };
    let error = run(&scenario, &options, &mut |_| {}).expect_err("refused");
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
    error
}
