//! Inputs of the lab: responses of the servers under load, its files, and status responses of NATS servers.

use crate::named;
use meridian_lab_drive::fuzzed;
use meridian_lab_drive::scenario::Scenario;
use meridian_lab_plan::{cost, simulate};
use meridian_lab_results::folder::{self, Run, Sample, Trial, Writer};
use meridian_lab_results::record::{Outcome, Phase, Record};
use std::path::Path;
use std::sync::LazyLock;

/// Sizes of the pieces in which a response arrives.
const PIECES: [usize; 3] = [1, 3, 7];

/// Checks that a reader returns the same for a response that arrives whole and in pieces. The position of an error
/// may differ.
fn same<T: PartialEq + std::fmt::Debug, E>(bytes: &[u8], read: impl Fn(&[u8], usize) -> Result<T, E>) {
    let whole = read(bytes, bytes.len());
    for size in PIECES {
        let pieces = read(bytes, size);
        match (&whole, &pieces) {
            (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces, "in pieces of {size}"),
            (Err(_), Err(_)) => {}
            _ => panic!("in pieces of {size} it is read otherwise"),
        }
    }
}

/// A reply of a Redis server.
pub fn lab_resp(bytes: &[u8]) {
    same(bytes, fuzzed::resp_reply);
}

/// Messages of a NATS server.
pub fn lab_nats(bytes: &[u8]) {
    same(bytes, fuzzed::nats_messages);
}

/// Messages of a PostgreSQL server.
pub fn lab_postgres(bytes: &[u8]) {
    same(bytes, fuzzed::postgres_messages);
}

/// Frames of a WebSocket.
pub fn lab_websocket(bytes: &[u8]) {
    same(bytes, fuzzed::websocket_frames);
}

/// An HTTP/1.1 response, and the results in a body.
pub fn lab_http(bytes: &[u8]) {
    same(bytes, fuzzed::http_answer);
    same(bytes, |bytes, size| Ok::<_, ()>(fuzzed::counts(bytes, size)));
}

/// Files of a load: a scenario, also read back after resolution; a pipeline to simulate; a cost plan; spans of a
/// trace.
pub fn lab_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(scenario) = Scenario::parse(text, "a.toml", &[]) {
        let written = toml::to_string(&scenario).unwrap_or_else(|e| panic!("{e}: {scenario:?}"));
        let again = Scenario::parse(&written, "a.toml", &[]).unwrap_or_else(|e| panic!("{e}: {written}"));
        assert_eq!(toml::to_string(&again).unwrap(), written);
    }
    let _ = simulate::Scenario::read(text, &[]);
    let _ = simulate::spans::read(text);
    let _ = cost::Plan::read(text);
}

/// The response of a NATS server at its monitoring address.
pub fn nats_monitor(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if meridian_nats::fuzzed::monitor(text).is_ok() {
        let said: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(said["config"]["sync_always"], true, "{text}");
    }
}

fn record(n: u32) -> Record {
    let at = i64::from(n) * 10_000;
    Record {
        phase: Phase::Measured,
        user: n,
        n,
        intended: at,
        sent: Some(at + 10),
        first_byte: Some(at + 900),
        first_result: Some(at + 1_000),
        last_result: Some(at + 1_100),
        done: Some(at + 1_200),
        packets: 1,
        results: 10,
        bytes: 1_000,
        status: 200,
        outcome: Outcome::Sound,
        ..Record::default()
    }
}

/// Names and contents of the files of a results folder.
static RESULTS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("run");
    let mut writer = Writer::create(&place, SCENARIO).unwrap();
    writer.push(&(0..40).map(record).collect::<Vec<_>>()).unwrap();
    let sample = |at| Sample { trial: 0, at, source: "lab".into(), metric: "cpu".into(), value: 0.5 };
    writer.sample((0..5).map(|n| sample(n * 100_000))).unwrap();
    let one = |name: &str| vec![name.to_owned()];
    let trial = Trial { target: 0, started: "2026-01-01T00:00:00Z".to_owned(), measured_us: [0, 400_000] };
    let run = Run {
        name: "a".to_owned(),
        source: "run".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        ended: "2026-01-01T00:00:01Z".to_owned(),
        targets: one("target"),
        populations: one("users"),
        requests: one("r"),
        trials: vec![trial],
        ..Run::default()
    };
    writer.finish(&run).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let paths = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect();
    files.sort();
    files
});

/// A scenario with one table of each kind.
pub const SCENARIO: &str = "[target]\nurl = \"http://127.0.0.1:7117\"\n\n[arrival]\nkind = \"constant\"\nrate = 100\n\n[request]\nname = \"r\"\n\
                            path = \"/collections/quakes/items?limit=10\"\n";

/// A file of a results folder, by its name, in place of the folder's own.
pub fn lab_results(bytes: &[u8]) {
    let Some((name, content)) = named::of(bytes) else { return };
    let Some(at) = RESULTS.iter().position(|(known, _)| known == name) else { return };
    let home = tempfile::tempdir().unwrap();
    for (n, (name, own)) in RESULTS.iter().enumerate() {
        std::fs::write(home.path().join(name), if n == at { content } else { own }).unwrap();
    }
    let Ok(results) = folder::open(home.path()) else { return };
    if let Ok(mut records) = results.records() {
        while let Some(Ok(_)) = records.next() {}
    }
    if let Ok(mut samples) = results.samples() {
        while let Some(Ok(_)) = samples.next() {}
    }
}

/// Inputs for [`lab_results`].
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    RESULTS.iter().map(|(name, bytes)| (name.clone(), named::input(name, bytes))).collect()
}
