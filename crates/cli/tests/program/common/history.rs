//! Continuous ingest: each event names an earlier, acknowledged one, of any writer. Under all faults, no event may name
//! a missing one, none may occur twice, and each acknowledged one must exist.

use super::clients::{Outcome, Response, get, post};
use super::{PATIENCE, Random};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Name and fields of the collection.
pub const CHAIN: &str = "chain";
pub const CHAIN_SPEC: &str = "node:String,prev:String,dtg:Date,*geom:Point";

/// Value of the first events, which name no other.
const NOTHING: &str = "-";
/// Max events of a batch.
const EVENTS_MAX: u64 = 8;
/// Number of latest events from which every other event chooses the one it names; the others choose from all.
const LATE: usize = 40;
/// Pause of a writer after a batch, and after one with an unknown outcome.
const PAUSE: Duration = Duration::from_millis(20);
const UNKNOWN_PAUSE: Duration = Duration::from_millis(150);
/// Pause of a reader.
const READ_PAUSE: Duration = Duration::from_millis(250);

/// A batch: its events with the event that each names, and the time of its acknowledgement.
struct Sent {
    events: Vec<(String, String)>,
    acknowledged: Option<Instant>,
}

#[derive(Default)]
struct State {
    /// By the batch's name, which is its key.
    sent: HashMap<String, Sent>,
    /// Names of the acknowledged events, in the order of acknowledgement.
    acknowledged: Vec<String>,
}

/// Everything that writers sent, with its known outcome.
#[derive(Default)]
pub struct Chain {
    state: Mutex<State>,
    next: AtomicU64,
    /// Number of successful checks by readers.
    reads: AtomicU64,
    /// Reasons for unknown outcomes, with their numbers.
    unknown: Mutex<BTreeMap<String, u64>>,
}

impl Chain {
    /// Number of acknowledged events.
    pub fn acknowledged(&self) -> usize {
        self.state.lock().unwrap().acknowledged.len()
    }

    /// Returns a line that summarises it.
    pub fn summary(&self) -> String {
        let (events, batches) = (self.acknowledged(), self.state.lock().unwrap().sent.len());
        let (reads, unknown) = (self.reads.load(Ordering::Relaxed), self.unknown.lock().unwrap());
        format!(
            "{events} events acknowledged in {batches} batches, read {reads} times; outcomes not known: {unknown:?}"
        )
    }

    /// Sends a new batch once; returns true if it was acknowledged.
    pub fn write_once(&self, url: &str, random: &mut Random) -> bool {
        let batch = self.begin(random);
        self.send(url, &batch)
    }

    /// Writes batch after batch until `stop`, through any gateway. Each is resent with its key until it is
    /// acknowledged.
    pub fn write(&self, gateways: &[String], stop: &AtomicBool, mut random: Random) {
        while !stop.load(Ordering::Relaxed) {
            let batch = self.begin(&mut random);
            while !self.send(any(gateways, &mut random), &batch) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(UNKNOWN_PAUSE);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Checks as a reader what any server shows, until `stop`.
    pub fn watch(&self, servers: &[String], stop: &AtomicBool, mut random: Random) {
        while !stop.load(Ordering::Relaxed) {
            // A server that does not respond, or refuses, shows nothing.
            let _ = self.look(any(servers, &mut random), "while faults happen");
            std::thread::sleep(READ_PAUSE);
        }
    }

    /// Resends what is not acknowledged until all of it is. There are no more faults.
    #[track_caller]
    pub fn resend(&self, url: &str) {
        let open = |state: &State| {
            let open = state.sent.iter().filter(|(_, sent)| sent.acknowledged.is_none());
            open.map(|(batch, _)| batch.clone()).collect::<Vec<_>>()
        };
        let unanswered = open(&self.state.lock().unwrap());
        let begun = Instant::now();
        for batch in unanswered {
            while !self.send(url, &batch) {
                let unknown = self.unknown.lock().unwrap().clone();
                assert!(begun.elapsed() < PATIENCE, "{batch} is not taken: {unknown:?}");
                std::thread::sleep(UNKNOWN_PAUSE);
            }
        }
    }

    /// Checks until a server shows everything that was acknowledged.
    #[track_caller]
    pub fn whole(&self, url: &str, when: &str) {
        let (begun, all) = (Instant::now(), self.acknowledged());
        loop {
            let shown = self.look(url, when);
            if shown.as_ref().is_ok_and(|shown| *shown >= all) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{url} shows not all of {all} events: {shown:?}; {when}");
            std::thread::sleep(READ_PAUSE);
        }
    }

    /// Reads all events in one response and checks them. Returns their number, or why there was no response.
    #[track_caller]
    pub fn look(&self, url: &str, when: &str) -> Result<usize, String> {
        let begun = Instant::now();
        let answer = get(&format!("{url}/collections/{CHAIN}/items?f=csv&properties=node,prev"))?;
        if answer.status != 200 {
            return Err(format!("{}: {}", answer.status, answer.body));
        }
        let missing = answer.header("meridian-missing");
        assert_eq!(missing, None, "nothing was damaged; {when}");
        // What was acknowledged by then must be included. A server's `Age` is in whole seconds, rounded up.
        let (due, how) = match answer.header("meridian-consistency") {
            Some("immediate") => (Some(begun), "an immediate answer".to_owned()),
            Some("eventual") => {
                let age = age(&answer);
                (begun.checked_sub(Duration::from_secs(age)), format!("an eventual answer of age {age} s"))
            }
            other => panic!("the answer says {other:?} of its consistency; {when}"),
        };
        let found = events(&answer.body, when);
        self.check(&found, due, &format!("{how} of {url}, {when}"));
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(found.len())
    }

    fn check(&self, found: &HashMap<String, String>, due: Option<Instant>, when: &str) {
        let state = self.state.lock().unwrap();
        let mut known = 0;
        for (batch, sent) in &state.sent {
            let there =
                sent.events.iter().filter(|(node, prev)| found.get(node).is_some_and(|named| named == prev)).count();
            known += there;
            assert!(there == 0 || there == sent.events.len(), "{batch} is there in part: {there} events; {when}");
            let is_due = sent.acknowledged.is_some_and(|at| due.is_some_and(|due| at <= due));
            assert!(!is_due || there > 0, "{batch} was acknowledged and is missing; {when}");
        }
        assert_eq!(known, found.len(), "events that nobody sent; {when}");
        for (node, prev) in found {
            assert!(prev == NOTHING || found.contains_key(prev), "{node} names {prev}, which is missing; {when}");
        }
    }

    /// Starts a new batch; returns its name.
    fn begin(&self, random: &mut Random) -> String {
        let batch = format!("b{}", self.next.fetch_add(1, Ordering::Relaxed));
        let mut state = self.state.lock().unwrap();
        let mut name = || {
            let all = &state.acknowledged;
            let of = if random.below(2) == 0 { &all[all.len().saturating_sub(LATE)..] } else { &all[..] };
            match of.len() as u64 {
                0 => NOTHING.to_owned(),
                len => of[random.below(len) as usize].clone(),
            }
        };
        let first = name();
        let more: Vec<String> = (0..3).map(|_| name()).collect();
        let events = 1 + random.below(EVENTS_MAX);
        let named = |n: u64| if n == 0 { first.clone() } else { more[n as usize % more.len()].clone() };
        let events = (0..events).map(|n| (format!("{batch}-{n}"), named(n))).collect();
        state.sent.insert(batch.clone(), Sent { events, acknowledged: None });
        batch
    }

    /// Sends a batch with its key; returns true if it was acknowledged.
    #[track_caller]
    fn send(&self, url: &str, batch: &str) -> bool {
        let body = body(&self.state.lock().unwrap().sent[batch].events);
        match Outcome::of(post(&format!("{url}/collections/{CHAIN}/items"), batch, &body)) {
            Outcome::Done(_) => {
                let mut state = self.state.lock().unwrap();
                let sent = state.sent.get_mut(batch).unwrap();
                // If there are two responses, the first one counts.
                if sent.acknowledged.is_none() {
                    sent.acknowledged = Some(Instant::now());
                    let names: Vec<String> = sent.events.iter().map(|(node, _)| node.clone()).collect();
                    state.acknowledged.extend(names);
                }
                true
            }
            Outcome::Absent => panic!("{batch}: a write was answered as if it asked for an event"),
            Outcome::Unknown(why) => {
                *self.unknown.lock().unwrap().entry(why).or_default() += 1;
                false
            }
        }
    }
}

/// Returns one of these at random.
pub fn any<'a>(of: &'a [String], random: &mut Random) -> &'a str {
    &of[random.below(of.len() as u64) as usize]
}

#[track_caller]
fn age(answer: &Response) -> u64 {
    let age = answer.header("age").and_then(|age| age.parse().ok());
    age.unwrap_or_else(|| panic!("an answer without its age: {:?}", answer.header("age")))
}

/// Returns the events of a batch, the same each time it is sent.
fn body(events: &[(String, String)]) -> String {
    let mut out = String::new();
    for (n, (node, prev)) in events.iter().enumerate() {
        let (lon, lat) = ((n * 37 % 360) as f64 - 179.5, (n * 17 % 180) as f64 - 89.75);
        writeln!(
            out,
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{lon},{lat}]}},"properties":{{"node":"{node}","prev":"{prev}","dtg":"2026-01-{:02}T00:00:00Z"}}}}"#,
            n % 28 + 1,
        )
        .unwrap();
    }
    out
}

/// Returns the events of a response, each with the one it names; checks that none occurs twice.
#[track_caller]
fn events(csv: &str, when: &str) -> HashMap<String, String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let (node, prev) = (column("node"), column("prev"));
    let mut found = HashMap::new();
    for record in reader.records() {
        let record = record.unwrap();
        let before = found.insert(record[node].to_owned(), record[prev].to_owned());
        assert_eq!(before, None, "{} is there twice; {when}", &record[node]);
    }
    found
}
