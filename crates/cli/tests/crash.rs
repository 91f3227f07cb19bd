//! Kills the real server at random moments while it is written to, and looks for every acknowledged event.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::{MERIDIAN, Random, Server, meridian};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Least number of kills.
const KILLS: u32 = 25;
/// Clients that write at the same time.
const WRITERS: u64 = 4;

/// What a client knows of a batch it sent.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Known {
    /// The server said it is in.
    Acknowledged,
    /// No answer came: it is in whole, or not at all.
    Unanswered,
}

/// Batches sent so far: name to (events, what is known).
type Sent = Mutex<HashMap<String, (u64, Known)>>;

fn body(batch: &str, events: u64) -> String {
    let mut out = String::new();
    for n in 0..events {
        let (lon, lat) = ((n * 37 % 360) as f64 - 180.0, (n * 17 % 180) as f64 - 90.0);
        writeln!(
            out,
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{lon},{lat}]}},"properties":{{"batch":"{batch}","n":{n},"dtg":"2026-01-{:02}T00:00:{:02}Z"}}}}"#,
            n % 28 + 1,
            n % 60,
        )
        .unwrap();
    }
    out
}

fn send(url: &str, batch: &str, events: u64) -> Result<(u16, String), String> {
    common::post(url, "/collections/events/items", "application/x-ndjson", Some(batch), body(batch, events).as_bytes())
}

/// One client: batch after batch until the server is gone.
fn write(url: &str, sent: &Sent, next: &AtomicU64, stop: &AtomicBool, mut random: Random) {
    while !stop.load(Ordering::Relaxed) {
        let batch = format!("b{}", next.fetch_add(1, Ordering::Relaxed));
        let events = 1 + random.below(120);
        sent.lock().unwrap().insert(batch.clone(), (events, Known::Unanswered));
        match send(url, &batch, events) {
            Ok((200 | 201, _)) => {
                sent.lock().unwrap().insert(batch, (events, Known::Acknowledged));
            }
            Ok((status, text)) => panic!("{batch}: {status} {text}"),
            Err(_) => return,
        }
    }
}

/// Events by batch, as the server finds them.
fn found(server: &Server) -> HashMap<String, u64> {
    let (status, body) = server.get("/collections/events/items?f=csv&properties=batch");
    assert_eq!(status, 200, "{body}");
    by_batch(&body)
}

fn by_batch(csv: &str) -> HashMap<String, u64> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let column = reader.headers().unwrap().iter().position(|h| h == "batch").unwrap();
    let mut counts = HashMap::new();
    for record in reader.records() {
        *counts.entry(record.unwrap()[column].to_owned()).or_insert(0) += 1;
    }
    counts
}

/// A reader beside the writers: whatever it sees of a batch is all of it. Ends with the server.
fn watch(url: &str, sent: &Sent) {
    let ask = || {
        let mut response =
            common::agent().get(format!("{url}/collections/events/items?f=csv&properties=batch")).call()?;
        response.body_mut().with_config().limit(u64::MAX).read_to_string()
    };
    while let Ok(body) = ask() {
        for (batch, there) in by_batch(&body) {
            let events = sent.lock().unwrap()[&batch].0;
            assert_eq!(there, events, "{batch} is half there for a reader");
        }
    }
}

#[test]
fn every_acknowledged_event_survives_kill_9_and_no_batch_is_half_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let until = std::env::var("MERIDIAN_CHAOS_SECONDS").ok().and_then(|s| s.parse().ok());
    let until = until.map(|s| Instant::now() + Duration::from_secs(s));
    let (sent, next) = (Sent::default(), AtomicU64::new(0));
    let mut kills = 0;
    Server::start(folder.path()).create("events", "batch:String,n:Long,dtg:Date,*geom:Point");

    while kills < KILLS || until.is_some_and(|end| Instant::now() < end) {
        let server = Server::start(folder.path());
        let counts = found(&server);
        for (batch, (events, known)) in sent.lock().unwrap().iter_mut() {
            let there = counts.get(batch).copied().unwrap_or(0);
            match known {
                Known::Acknowledged => assert_eq!(there, *events, "{batch} was acknowledged; kill {kills}"),
                Known::Unanswered => {
                    assert!(there == 0 || there == *events, "{batch}: {there} of {events} are there; kill {kills}");
                    // What a client does that got no answer: it sends again, and nothing is doubled.
                    let (status, text) = send(&server.url, batch, *events).unwrap();
                    assert!(matches!(status, 200 | 201), "{batch}: {status} {text}");
                    *known = Known::Acknowledged;
                }
            }
        }
        assert!(counts.keys().all(|b| sent.lock().unwrap().contains_key(b)), "events that nobody sent");

        let stop = AtomicBool::new(false);
        let pause = Duration::from_millis(5 + random.below(300));
        let url = server.url.clone();
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                let random = Random(random.next() | 1);
                scope.spawn(|| write(&url, &sent, &next, &stop, random));
            }
            scope.spawn(|| watch(&url, &sent));
            std::thread::sleep(pause);
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
        kills += 1;
    }

    let server = Server::start(folder.path());
    let counts = found(&server);
    let sent = sent.into_inner().unwrap();
    let acknowledged = sent.values().filter(|(_, known)| *known == Known::Acknowledged).count();
    println!("{kills} kills, {} batches sent, {acknowledged} acknowledged, {MERIDIAN}", sent.len());
    assert!(acknowledged as u32 > kills, "the clients hardly wrote: {acknowledged} batches in {kills} rounds");
    for (batch, (events, known)) in &sent {
        let there = counts.get(batch).copied().unwrap_or(0);
        assert!(there == *events || (there == 0 && *known == Known::Unanswered), "{batch}: {there} of {events}");
    }
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["check", "--data", folder.path().to_str().unwrap()]).ended(0);
}

/// A client that follows the collection and comes back to where it was: the batch and number of each event that it got.
#[derive(Default)]
struct Follower {
    events: Vec<(String, u64)>,
    /// The last position that it has.
    position: String,
}

impl Follower {
    /// Follows until the server is gone, or an event of this batch has come.
    fn follow(&mut self, url: &str, last: &str) {
        let mut request = common::agent().get(format!("{url}/collections/events/stream?after=0&properties=batch,n"));
        if !self.position.is_empty() {
            request = request.header("Last-Event-ID", &self.position);
        }
        let Ok(mut response) = request.call() else { return };
        assert_eq!(response.status().as_u16(), 200, "{} is a position", self.position);
        let (mut id, mut data) = (String::new(), None);
        for line in BufReader::new(response.body_mut().as_reader()).lines().map_while(Result::ok) {
            match line.split_once(": ") {
                Some(("id", position)) => position.clone_into(&mut id),
                Some(("data", json)) => data = Some(json.to_owned()),
                // Only what has its end counts: the server may die in the middle of a message.
                _ if line.is_empty() => {
                    if let Some(data) = data.take() {
                        let event: serde_json::Value = serde_json::from_str(&data).unwrap();
                        assert!(id > self.position, "{id} comes after {}", self.position);
                        let of = &event["properties"];
                        self.events.push((of["batch"].as_str().unwrap().to_owned(), of["n"].as_u64().unwrap()));
                    }
                    if !id.is_empty() {
                        self.position = std::mem::take(&mut id);
                    }
                    if self.events.last().is_some_and(|(batch, _)| batch == last) {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn who_follows_over_kill_9_gets_every_acknowledged_event_once() {
    const ROUNDS: u32 = 10;
    const LAST: &str = "the last";
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let (sent, next) = (Sent::default(), AtomicU64::new(0));
    let mut followers = [Follower::default(), Follower::default()];
    Server::start(folder.path()).create("events", "batch:String,n:Long,dtg:Date,*geom:Point");
    // What got no answer is sent again.
    let settle = |url: &str| {
        for (batch, (events, known)) in sent.lock().unwrap().iter_mut().filter(|(_, of)| of.1 == Known::Unanswered) {
            let (status, text) = send(url, batch, *events).unwrap();
            assert!(matches!(status, 200 | 201), "{batch}: {status} {text}");
            *known = Known::Acknowledged;
        }
    };
    for _ in 0..ROUNDS {
        let server = Server::start(folder.path());
        let (url, stop) = (server.url.clone(), AtomicBool::new(false));
        let pause = Duration::from_millis(5 + random.below(300));
        std::thread::scope(|scope| {
            for follower in &mut followers {
                scope.spawn(|| follower.follow(&url, LAST));
            }
            settle(&url);
            for _ in 0..WRITERS {
                let random = Random(random.next() | 1);
                scope.spawn(|| write(&url, &sent, &next, &stop, random));
            }
            std::thread::sleep(pause);
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let server = Server::start(folder.path());
    settle(&server.url);
    sent.lock().unwrap().insert(LAST.to_owned(), (1, Known::Acknowledged));
    assert_eq!(send(&server.url, LAST, 1).unwrap().0, 201);
    let expected = sent.lock().unwrap();
    let mut expected: Vec<(String, u64)> =
        expected.iter().flat_map(|(batch, (events, _))| (0..*events).map(move |n| (batch.clone(), n))).collect();
    expected.sort_unstable();
    for mut follower in followers {
        let before = follower.events.len();
        follower.follow(&server.url, LAST);
        println!("{} events, {before} of them over kills", follower.events.len());
        follower.events.sort_unstable();
        assert!(follower.events == expected, "{} events came of {}", follower.events.len(), expected.len());
    }
}
