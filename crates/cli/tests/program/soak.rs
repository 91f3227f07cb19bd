//! Concurrent writes, deletions, paging and counts, with so little memory that flushes and merges never rest.
//!
//! Runs for a few seconds in every test run; `make soak FOR=3600` sets another duration.

use crate::common::{self, Random, Server, meridian};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Settings that keep the store short of memory.
const SETTINGS: &str = r#"
[store]
cache_bytes = "8 MiB"
memory_bytes = "4 MiB"
log_bytes = "8 MiB"
log_file_bytes = "2 MiB"
[ingest]
batch_bytes = "1 MiB"
"#;
/// Max memory that the server may use with these, in bytes.
const RESIDENT_MAX: u64 = 1 << 30;
const ITEMS: &str = "/collections/events/items";

/// What is known of the batches: name to number of events.
#[derive(Default)]
struct Known {
    sent: HashMap<String, u64>,
    acknowledged: HashMap<String, u64>,
    deleted: HashSet<String>,
}

struct Run<'a> {
    server: &'a Server,
    known: Mutex<Known>,
    next: AtomicU64,
    stop: AtomicBool,
}

impl Run<'_> {
    fn going(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn write(&self, mut random: Random) {
        while self.going() {
            let batch = format!("b{}", self.next.fetch_add(1, Ordering::Relaxed));
            let events = 1 + random.below(800);
            let mut body = String::new();
            for n in 0..events {
                let (lon, lat) =
                    (random.below(36_000) as f64 / 100.0 - 180.0, random.below(18_000) as f64 / 100.0 - 90.0);
                let (day, hour) = (random.below(28) + 1, random.below(24));
                writeln!(
                    body,
                    r#"{{"lon":{lon},"lat":{lat},"dtg":"2026-{:02}-{day:02}T{hour:02}:00:00Z","batch":"{batch}","one":1,"n":{n}}}"#,
                    random.below(12) + 1
                )
                .unwrap();
            }
            self.known.lock().unwrap().sent.insert(batch.clone(), events);
            let answer = self.server.post(ITEMS, "application/x-ndjson", Some(&batch), body.as_bytes());
            match answer {
                Ok((201, _)) => {
                    self.known.lock().unwrap().acknowledged.insert(batch, events);
                }
                // Its flushes or its log are behind: it reports that, and the batch is resent.
                Ok((429 | 503, _)) => std::thread::sleep(Duration::from_millis(50)),
                other => panic!("{batch}: {other:?}"),
            }
        }
    }

    fn delete(&self, mut random: Random) {
        while self.going() {
            std::thread::sleep(Duration::from_millis(30 + random.below(100)));
            let found = {
                let mut known = self.known.lock().unwrap();
                let known = &mut *known;
                let batch = known.acknowledged.keys().find(|b| !known.deleted.contains(*b)).cloned();
                known.deleted.extend(batch.clone());
                batch
            };
            let Some(batch) = found else { continue };
            let events = self.known.lock().unwrap().acknowledged[&batch];
            let url = format!("{}{ITEMS}?filter=batch%3D'{batch}'", self.server.url);
            let mut response = common::agent().delete(url).call().unwrap();
            let text = response.body_mut().read_to_string().unwrap();
            let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(answer["deleted"].as_u64(), Some(events), "{batch}: {text}");
        }
    }

    /// Each event counts one: sum and count agree on every snapshot, and include what was acknowledged before.
    fn count(&self) {
        while self.going() {
            let least = {
                let known = self.known.lock().unwrap();
                let live = known.acknowledged.iter().filter(|(b, _)| !known.deleted.contains(*b));
                live.map(|(_, n)| n).sum::<u64>()
            };
            let answer = self.server.json("/collections/events/aggregate?function=count,sum(one),max(one)");
            let sent: u64 = self.known.lock().unwrap().sent.values().sum();
            let Some(group) = answer["groups"].get(0) else { continue };
            let (count, sum) = (group["count"].as_u64().unwrap(), group["sum(one)"].as_u64().unwrap_or(0));
            assert_eq!(count, sum, "{answer}");
            let gone: u64 = self.deleted_events();
            assert!(
                count + gone >= least && count <= sent,
                "{count} events, {gone} deleted, {least} to {sent} expected"
            );
        }
    }

    fn deleted_events(&self) -> u64 {
        let known = self.known.lock().unwrap();
        known.deleted.iter().map(|b| known.acknowledged[b]).sum()
    }

    /// Reads page after page of one snapshot: nothing twice, and each batch complete.
    fn page(&self) {
        while self.going() {
            let mut path = format!("{ITEMS}?limit=997&properties=batch");
            let (mut ids, mut counts) = (HashSet::new(), HashMap::<String, u64>::new());
            loop {
                let page = self.server.json(&path);
                for feature in page["features"].as_array().unwrap() {
                    assert!(ids.insert(feature["id"].as_str().unwrap().to_owned()), "twice: {feature}");
                    *counts.entry(feature["properties"]["batch"].as_str().unwrap().to_owned()).or_default() += 1;
                }
                let next = page["links"].as_array().unwrap().iter().find(|l| l["rel"] == "next");
                let Some(next) = next else { break };
                path = next["href"].as_str().unwrap().strip_prefix(&self.server.url).unwrap().to_owned();
                if !self.going() {
                    return;
                }
            }
            let known = self.known.lock().unwrap();
            for (batch, there) in counts {
                assert_eq!(there, known.sent[&batch], "{batch} is half there for a reader of pages");
            }
        }
    }
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[test]
fn readers_and_writers_agree_while_memory_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let (data, settings) = (folder.path().join("data"), folder.path().join("meridian.toml"));
    std::fs::write(&settings, SETTINGS).unwrap();
    let server = Server::start_with(&["--data", data.to_str().unwrap(), "--config", settings.to_str().unwrap()]);
    server.create("events", "batch:String,one:Long,n:Long,dtg:Date,*geom:Point");
    let seconds = std::env::var("MERIDIAN_SOAK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(6);
    let mut random = Random::new();
    let run = Run { server: &server, known: Mutex::default(), next: AtomicU64::new(0), stop: AtomicBool::new(false) };
    let (begun, mut most) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        let mut seed = || Random(random.next() | 1);
        let (one, two, three) = (seed(), seed(), seed());
        let tasks = [
            scope.spawn(|| run.write(one)),
            scope.spawn(|| run.write(two)),
            scope.spawn(|| run.delete(three)),
            scope.spawn(|| run.count()),
            scope.spawn(|| run.page()),
        ];
        while begun.elapsed() < Duration::from_secs(seconds) && !tasks.iter().any(|t| t.is_finished()) {
            std::thread::sleep(Duration::from_millis(100));
            most = most.max(resident_bytes(server.pid()));
        }
        run.stop.store(true, Ordering::Relaxed);
    });
    let known = run.known.into_inner().unwrap();
    let (status, csv) = server.get(&format!("{ITEMS}?f=csv&properties=batch"));
    assert_eq!(status, 200);
    let mut counts = HashMap::<&str, u64>::new();
    csv.lines().skip(1).for_each(|line| *counts.entry(line.rsplit(',').next().unwrap()).or_default() += 1);
    for (batch, events) in &known.acknowledged {
        let expected = if known.deleted.contains(batch) { 0 } else { *events };
        assert_eq!(counts.get(batch.as_str()).copied().unwrap_or(0), expected, "{batch}");
    }
    println!(
        "{seconds} s: {} batches, {} deleted, {} events live, at most {} MB resident",
        known.acknowledged.len(),
        known.deleted.len(),
        counts.values().sum::<u64>(),
        most >> 20
    );
    assert!(known.acknowledged.len() > 20 && !known.deleted.is_empty(), "hardly anything was done");
    assert!(most < RESIDENT_MAX, "{most} bytes resident");
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["check", "--data", data.to_str().unwrap()]).ended(0);
}
