//! Registers: a few events under their ids, which clients put, delete and read concurrently. Each operation is recorded
//! with its times, for a checker of histories (`tests/linearizability`).

use super::clients::{Outcome, delete, get, put};
use super::history::any;
use super::{Random, root};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Name and fields of the collection.
pub const REGISTERS: &str = "registers";
pub const REGISTERS_SPEC: &str = "value:Long,dtg:Date,*geom:Point;meridian.id='given'";

/// Registers in use at a time, and operations until they are replaced. So each has a history short enough to check.
const KEYS: u64 = 3;
const ROUND: u64 = 200;
const PAUSE: Duration = Duration::from_millis(5);
const UNKNOWN_PAUSE: Duration = Duration::from_millis(50);

/// All operations.
pub struct Registers {
    begun: Instant,
    begun_operations: AtomicU64,
    values: AtomicU64,
    operations: Mutex<Vec<Value>>,
}

impl Registers {
    pub fn new() -> Registers {
        Registers {
            begun: Instant::now(),
            begun_operations: AtomicU64::default(),
            values: AtomicU64::default(),
            operations: Mutex::default(),
        }
    }

    /// Number of operations with a known outcome.
    pub fn known(&self) -> usize {
        self.operations.lock().unwrap().iter().filter(|operation| operation["outcome"] == "ok").count()
    }

    /// Runs operations one after another until `stop`, at any gateway.
    pub fn run(&self, client: usize, gateways: &[String], stop: &AtomicBool, mut random: Random) {
        while !stop.load(Ordering::Relaxed) {
            let round = self.begun_operations.fetch_add(1, Ordering::Relaxed) / ROUND;
            let key = format!("r{round}-{}", random.below(KEYS));
            let url = format!("{}/collections/{REGISTERS}/items/{key}", any(gateways, &mut random));
            let (mut value, mut found) = (None, None);
            let chosen = random.below(20);
            let op = match chosen {
                0..9 => "put",
                9..11 => "delete",
                _ => "get",
            };
            if op == "put" {
                value = Some(self.values.fetch_add(1, Ordering::Relaxed));
            }
            let call = self.now();
            let answer = match value {
                Some(value) => put(&url, &event(&key, value)),
                None if op == "delete" => delete(&url),
                None => get(&url),
            };
            let back = self.now();
            let outcome = match Outcome::of(answer) {
                Outcome::Done(answer) => {
                    found = (op == "delete").then_some(true);
                    if op == "get" {
                        let consistency = answer.header("meridian-consistency");
                        assert_eq!(consistency, Some("immediate"), "{url}");
                        let event: Value = serde_json::from_str(&answer.body).unwrap();
                        value = event["properties"]["value"].as_u64();
                        assert!(value.is_some(), "{url}: {}", answer.body);
                    }
                    "ok"
                }
                Outcome::Absent => {
                    assert_ne!(op, "put", "{url}");
                    found = (op == "delete").then_some(false);
                    "ok"
                }
                Outcome::Unknown(_) => "unknown",
            };
            self.operations.lock().unwrap().push(json!({
                "client": client, "op": op, "key": key, "value": value, "call": call, "return": back,
                "outcome": outcome, "found": found,
            }));
            std::thread::sleep(if outcome == "ok" { PAUSE } else { UNKNOWN_PAUSE });
        }
    }

    /// Writes the history to a file, and checks it.
    #[track_caller]
    pub fn check(&self, file: &Path) {
        let lines: String = self.operations.lock().unwrap().iter().map(|operation| format!("{operation}\n")).collect();
        std::fs::write(file, lines).unwrap();
        let (is_linearizable, said) = verdict(file);
        println!("{said}");
        assert!(is_linearizable, "{}: {said}", file.display());
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap()
    }
}

/// Runs the checker on a history; builds it if missing.
#[track_caller]
pub fn verdict(file: &Path) -> (bool, String) {
    let made = Command::new(root().join("scripts/porcupine.sh")).output().unwrap();
    let program = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(made.status.success(), "scripts/porcupine.sh: {}", String::from_utf8_lossy(&made.stderr));
    let checked = Command::new(program).arg(file).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    (checked.status.code() == Some(0), said.trim().to_owned())
}

fn event(key: &str, value: u64) -> String {
    let properties = json!({"value": value, "dtg": "2026-01-01T00:00:00Z"});
    let point = json!({"type": "Point", "coordinates": [7.5, 50.25]});
    json!({"type": "Feature", "id": key, "geometry": point, "properties": properties}).to_string()
}
