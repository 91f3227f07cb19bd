//! Kills the real server at random times during writes, and checks that every acknowledged event is stored.

use crate::common::batches::{Batches, Known, SPEC};
use crate::common::{self, MERIDIAN, Random, Server, as_holder, meridian, token};
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Min number of kills.
const KILLS: u32 = 25;
/// Concurrent writers.
const WRITERS: u64 = 4;

#[test]
fn every_acknowledged_event_survives_kill_9_and_no_batch_is_half_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let until = std::env::var("MERIDIAN_CHAOS_SECONDS").ok().and_then(|s| s.parse().ok());
    let until = until.map(|s| Instant::now() + Duration::from_secs(s));
    let batches = Batches::default();
    let mut kills = 0;
    Server::start(folder.path()).create("events", SPEC);

    while kills < KILLS || until.is_some_and(|end| Instant::now() < end) {
        let server = Server::start(folder.path());
        batches.check(&server, &format!("kill {kills}"));
        batches.resend(&server.url);

        let stop = AtomicBool::new(false);
        let pause = Duration::from_millis(5 + random.below(300));
        let url = server.url.clone();
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                let random = Random(random.next() | 1);
                scope.spawn(|| batches.write(&url, &stop, random));
            }
            scope.spawn(|| batches.watch(&url, false));
            std::thread::sleep(pause);
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
        kills += 1;
    }

    let server = Server::start(folder.path());
    let acknowledged = batches.acknowledged();
    println!("{kills} kills, {} batches sent, {acknowledged} acknowledged, {MERIDIAN}", batches.sent().len());
    assert!(acknowledged as u32 > kills, "the clients hardly wrote: {acknowledged} batches in {kills} rounds");
    batches.check(&server, "the last kill");
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["check", "--data", folder.path().to_str().unwrap()]).ended(0);
}

/// Reads a stream of a tenant to its end; calls `opened` when it has begun. Returns the reason in its last message, if
/// there is one.
fn last_word(batches: &Batches, url: &str, opened: impl FnOnce()) -> Option<String> {
    let mut response = batches.get(url, "/collections/events/stream?after=0").call().unwrap();
    assert_eq!(response.status().as_u16(), 200);
    opened();
    let (mut event, mut reason) = (String::new(), None);
    for line in BufReader::new(response.body_mut().as_reader()).lines().map_while(Result::ok) {
        match line.split_once(": ") {
            Some(("event", name)) => name.clone_into(&mut event),
            Some(("data", json)) if event == "end" => {
                let end: serde_json::Value = serde_json::from_str(json).unwrap();
                reason = end["reason"].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }
    reason
}

#[test]
fn tenants_under_load_lose_nothing_over_kills_and_stops() {
    const ROUNDS: u32 = 8;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let mut random = Random::new();
    token(folder.path(), &["--role", "operator"]);
    let server = Server::start(folder.path());
    let tenants = ["airport", "harbour", "station"].map(|name| {
        meridian(&["tenant", "create", name, "--data", data]).ended(0);
        let token = token(folder.path(), &["--tenant", name, "--role", "admin"]);
        as_holder(&token, &["create", "events", "--schema", SPEC, "--url", &server.url]).ended(0);
        Batches::of(name, &token)
    });
    assert_eq!(server.stop("TERM"), Some(0));

    for round in 0..ROUNDS {
        let server = Server::start(folder.path());
        for tenant in &tenants {
            tenant.check(&server, &format!("round {round}"));
            tenant.resend(&server.url);
        }
        let clean = round % 2 == 1;
        let (url, stop) = (server.url.clone(), AtomicBool::new(false));
        let (opened, open) = channel();
        let pause = Duration::from_millis(50 + random.below(400));
        // Each client ends by itself once the server is gone: a request that never ends would block the scope.
        std::thread::scope(|scope| {
            let mut streams = Vec::new();
            for tenant in &tenants {
                let (url, stop) = (&url, &stop);
                for _ in 0..2 {
                    let random = Random(random.next() | 1);
                    scope.spawn(move || tenant.write(url, stop, random));
                }
                scope.spawn(move || tenant.watch(url, clean));
                let opened = opened.clone();
                streams.push(scope.spawn(move || last_word(tenant, url, || opened.send(()).unwrap())));
            }
            for _ in &tenants {
                open.recv_timeout(common::PATIENCE).unwrap();
            }
            std::thread::sleep(pause);
            if clean {
                assert_eq!(server.stop("TERM"), Some(0), "round {round}");
            } else {
                server.kill();
            }
            stop.store(true, Ordering::Relaxed);
            for stream in streams {
                let reason = stream.join().unwrap();
                assert_eq!(reason.as_deref(), clean.then_some("closing"), "round {round}");
            }
        });
    }

    let server = Server::start(folder.path());
    for tenant in &tenants {
        tenant.check(&server, "the last stop");
        let acknowledged = tenant.acknowledged();
        assert!(acknowledged as u32 > ROUNDS, "the clients hardly wrote: {acknowledged} batches");
    }
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["check", "--data", data]).ended(0);
}

/// A client that follows the collection and resumes at its position: the batch and number of each event it received.
#[derive(Default)]
struct Follower {
    events: Vec<(String, u64)>,
    /// The last position it received.
    position: String,
}

impl Follower {
    /// Follows until the server is gone, or an event of this batch has arrived.
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
                // Only complete messages count: the server may die in the middle of one.
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
    let batches = Batches::default();
    let mut followers = [Follower::default(), Follower::default()];
    Server::start(folder.path()).create("events", SPEC);
    for _ in 0..ROUNDS {
        let server = Server::start(folder.path());
        let (url, stop) = (server.url.clone(), AtomicBool::new(false));
        let pause = Duration::from_millis(5 + random.below(300));
        std::thread::scope(|scope| {
            for follower in &mut followers {
                scope.spawn(|| follower.follow(&url, LAST));
            }
            batches.resend(&url);
            for _ in 0..WRITERS {
                let random = Random(random.next() | 1);
                scope.spawn(|| batches.write(&url, &stop, random));
            }
            std::thread::sleep(pause);
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let server = Server::start(folder.path());
    batches.resend(&server.url);
    batches.sent().insert(LAST.to_owned(), (1, Known::Acknowledged));
    assert_eq!(batches.send(&server.url, LAST, 1).unwrap().0, 201);
    let mut expected: Vec<(String, u64)> =
        batches.sent().iter().flat_map(|(batch, (events, _))| (0..*events).map(|n| (batch.clone(), n))).collect();
    expected.sort_unstable();
    for mut follower in followers {
        let before = follower.events.len();
        follower.follow(&server.url, LAST);
        println!("{} events, {before} of them over kills", follower.events.len());
        follower.events.sort_unstable();
        assert!(follower.events == expected, "{} events came of {}", follower.events.len(), expected.len());
    }
}
