//! Batches that clients send to a server that is killed or stopped meanwhile, and what is known of each.

use super::{PATIENCE, Random, Server, agent, post_with};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The collection that the batches go to.
pub const SPEC: &str = "batch:String,n:Long,dtg:Date,*geom:Point";

/// Pause of a client after a refusal.
const REFUSED_PAUSE: Duration = Duration::from_millis(200);

/// A client's knowledge of a batch it sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Known {
    /// The server reported it as stored.
    Acknowledged,
    /// No response came: it is stored completely, or not at all.
    Unanswered,
}

/// The batches of one tenant: name to (events, knowledge).
#[derive(Default)]
pub struct Batches {
    name: String,
    token: Option<String>,
    sent: Mutex<HashMap<String, (u64, Known)>>,
    next: AtomicU64,
}

impl Batches {
    /// Batches of a tenant, whose names begin with its own, sent with its token.
    pub fn of(name: &str, token: &str) -> Batches {
        Batches { name: name.to_owned(), token: Some(token.to_owned()), ..Batches::default() }
    }

    /// All batches sent so far.
    pub fn sent(&self) -> MutexGuard<'_, HashMap<String, (u64, Known)>> {
        self.sent.lock().unwrap()
    }

    /// Number of batches known to be stored.
    pub fn acknowledged(&self) -> usize {
        self.sent().values().filter(|(_, known)| *known == Known::Acknowledged).count()
    }

    /// Makes a GET request of the tenant.
    pub fn get(&self, url: &str, path: &str) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        let request = agent().get(format!("{url}{path}"));
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Sends a batch; returns status and body, or the failure.
    pub fn send(&self, url: &str, batch: &str, events: u64) -> Result<(u16, String), String> {
        let mut headers = vec![("Idempotency-Key", batch.to_owned())];
        headers.extend(self.token.as_ref().map(|token| ("Authorization", format!("Bearer {token}"))));
        let body = body(batch, events);
        post_with(url, "/collections/events/items", "application/x-ndjson", &headers, body.as_bytes())
    }

    /// Writes batch after batch until the server is gone. No request may take forever.
    pub fn write(&self, url: &str, stop: &AtomicBool, mut random: Random) {
        while !stop.load(Ordering::Relaxed) {
            let batch = format!("{}b{}", self.name, self.next.fetch_add(1, Ordering::Relaxed));
            let events = 1 + random.below(120);
            self.sent().insert(batch.clone(), (events, Known::Unanswered));
            match self.send(url, &batch, events) {
                Ok((200 | 201, _)) => {
                    self.sent().insert(batch, (events, Known::Acknowledged));
                }
                // After a refusal, it is resent with the batches that got no response. Without the pause, a server that
                // refuses at once would produce thousands of them.
                Ok((429 | 503, _)) => std::thread::sleep(REFUSED_PAUSE),
                Ok((status, text)) => panic!("{batch}: {status} {text}"),
                Err(e) => {
                    assert!(!e.contains("timeout"), "{batch} was left without an end: {e}");
                    return;
                }
            }
        }
    }

    /// Checks as a reader that each batch is seen completely, and belongs to the tenant. Ends with the server. A server
    /// that `drains` completes the responses it has begun.
    pub fn watch(&self, url: &str, drains: bool) {
        let path = "/collections/events/items?f=csv&properties=batch";
        while let Ok(mut response) = self.get(url, path).call() {
            if response.status().as_u16() == 503 {
                continue;
            }
            let Ok(body) = response.body_mut().with_config().limit(u64::MAX).read_to_string() else {
                assert!(!drains, "a response was cut off");
                return;
            };
            for (batch, there) in by_batch(&body) {
                let events = self.sent()[&batch].0;
                assert_eq!(there, events, "{batch} is half there for a reader");
            }
        }
    }

    /// Returns events by batch, as found by the server. Retries while the server refuses temporarily, like a gateway
    /// whose owner loses its lease on an overloaded machine.
    pub fn found(&self, server: &Server) -> HashMap<String, u64> {
        let begun = Instant::now();
        loop {
            let mut response =
                self.get(&server.url, "/collections/events/items?f=csv&properties=batch").call().unwrap();
            let status = response.status().as_u16();
            let body = response.body_mut().with_config().limit(u64::MAX).read_to_string().unwrap();
            if status == 200 {
                return by_batch(&body);
            }
            assert!(status == 503 && begun.elapsed() < PATIENCE, "{status}: {body}");
            std::thread::sleep(REFUSED_PAUSE);
        }
    }

    /// Checks after a start: every acknowledged batch is stored, every other one completely or not at all, and nothing
    /// else. `when`: the preceding step, for messages.
    pub fn check(&self, server: &Server, when: &str) {
        let (counts, sent) = (self.found(server), self.sent());
        for (batch, (events, known)) in sent.iter() {
            let there = counts.get(batch).copied().unwrap_or(0);
            match known {
                Known::Acknowledged => assert_eq!(there, *events, "{batch} was acknowledged; {when}"),
                Known::Unanswered => {
                    assert!(there == 0 || there == *events, "{batch}: {there} of {events} are there; {when}");
                }
            }
        }
        assert!(counts.keys().all(|batch| sent.contains_key(batch)), "events that this tenant never sent; {when}");
    }

    /// Resends as a client does without a response; nothing is duplicated.
    pub fn resend(&self, url: &str) {
        let unanswered: Vec<_> = self
            .sent()
            .iter()
            .filter(|(_, of)| of.1 == Known::Unanswered)
            .map(|(name, of)| (name.clone(), of.0))
            .collect();
        for (batch, events) in unanswered {
            let (status, text) = self.send(url, &batch, events).unwrap();
            assert!(matches!(status, 200 | 201), "{batch}: {status} {text}");
            self.sent().insert(batch, (events, Known::Acknowledged));
        }
    }
}

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

fn by_batch(csv: &str) -> HashMap<String, u64> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let column = reader.headers().unwrap().iter().position(|h| h == "batch").unwrap();
    let mut counts = HashMap::new();
    for record in reader.records() {
        *counts.entry(record.unwrap()[column].to_owned()).or_insert(0) += 1;
    }
    counts
}
