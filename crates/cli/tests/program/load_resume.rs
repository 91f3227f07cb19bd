//! A load that is killed midway and repeated stores every event once.

use crate::common::{self, PATIENCE, Run, Server, command, count_in_folder, counted, meridian};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// More than two batches of the loader.
const EVENTS: usize = 400_000;

/// Writes a CSV of [`EVENTS`] rows without ids: only the keys of the batches can prevent duplicates.
fn source(folder: &Path) -> PathBuf {
    let path = folder.join("events.csv");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    writeln!(out, "lon,lat,time,n").unwrap();
    for n in 0..EVENTS {
        let (lon, lat) = ((n % 3600) as f64 / 10.0 - 180.0, (n % 1800) as f64 / 10.0 - 90.0);
        writeln!(out, "{lon},{lat},2026-01-01T{:02}:{:02}:{:02}Z,{n}", n / 3600 % 24, n / 60 % 60, n % 60).unwrap();
    }
    out.flush().unwrap();
    path
}

/// Starts a load and kills it as soon as `some` reports stored events, but before it ends by itself.
fn kill_midway(mut load: Command, mut some: impl FnMut() -> bool) {
    let mut child = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !some() {
        assert!(child.try_wait().unwrap().is_none(), "the load ended before it could be killed");
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_broken_load_into_a_server_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let file = source(folder.path());
    let server = Server::start(&folder.path().join("data"));
    server.create("events", "n:Long,time:Date,*geometry:Point");
    let args = ["load", "events", file.to_str().unwrap(), "--url", &server.url];
    let count = || counted(&server.json("/collections/events/aggregate?function=count"));
    kill_midway(command(&args), || count() > 0);
    let before = count();
    assert!(before < EVENTS as u64, "the load was over before it was killed");
    meridian(&args).ended(0);
    assert_eq!(count(), EVENTS as u64, "after {before} of a load that broke off");
    // Once more, completely: nothing changes, and the output explains why.
    let run = meridian(&args).ended(0);
    assert!(run.out.contains("400,000 were in already"), "{}", run.out);
    assert_eq!(count(), EVENTS as u64);
    let sum = &server.json("/collections/events/aggregate?function=sum(n)")["groups"][0]["sum(n)"];
    assert_eq!(sum.as_u64(), Some((EVENTS as u64 - 1) * EVENTS as u64 / 2));
    // Unless it is requested.
    meridian(&[&args[..], &["--again"]].concat()).ended(0);
    assert_eq!(count(), 2 * EVENTS as u64);
}

#[test]
fn a_broken_load_into_a_folder_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let file = source(folder.path());
    let data = folder.path().join("data");
    let args = ["load", "events", file.to_str().unwrap(), "--data", data.to_str().unwrap()];
    // In the folder, only the size of the files shows the progress.
    let size = || {
        fn of(path: &Path) -> u64 {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|e| if e.path().is_dir() { of(&e.path()) } else { allocated(&e) }).sum()
        }
        of(&data)
    };
    kill_midway(command(&args), || size() > 3 << 20);
    meridian(&args).ended(0);
    assert_eq!(count_in_folder("events", &data), EVENTS as u64);
    meridian(&["check", "--data", data.to_str().unwrap()]).ended(0);
}

fn allocated(entry: &std::fs::DirEntry) -> u64 {
    use std::os::unix::fs::MetadataExt;
    entry.metadata().map_or(0, |m| m.blocks() * 512)
}

#[test]
fn a_mended_file_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (file, bad) = (source(folder.path()), 250_000);
    let good = std::fs::read_to_string(&file).unwrap();
    // Line 1 is the header, so this is the row of n = bad - 2.
    let lines: Vec<&str> = good.lines().collect();
    let mut broken = lines.clone();
    broken[bad - 1] = "7,7,yesterday,0";
    std::fs::write(&file, broken.join("\n")).unwrap();
    let args = ["load", "events", file.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let run = meridian(&args).ended(1).says(&[&format!("line {bad}"), "time", "yesterday", "are loaded"]);
    let there = count_in_folder("events", &data);
    assert!(there > 0 && there < bad as u64, "{there}");
    let shown: String = there.to_string();
    assert!(run.err.replace(',', "").contains(&format!("first {shown} events are loaded")), "{}", run.err);
    std::fs::write(&file, &good).unwrap();
    meridian(&args).ended(0);
    assert_eq!(count_in_folder("events", &data), EVENTS as u64);
}

#[test]
fn a_pipe_is_resumed_as_a_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let args = ["load", "events", "-", "--format", "ndjson", "--data", data.to_str().unwrap()];
    let line = |n: usize| format!("{{\"lon\":{},\"lat\":5,\"time\":\"2026-01-01T00:00:00Z\",\"n\":{n}}}\n", n % 180);
    let all: String = (0..120_000).map(line).collect();
    // A first run that got only a part, cut between two lines.
    let part = &all[..all[..all.len() / 2].rfind('\n').unwrap() + 1];
    common::meridian_with_input(&args, part.as_bytes()).ended(0);
    let first = count_in_folder("events", &data);
    assert!(first > 50_000 && first < 120_000);
    let run = common::meridian_with_input(&args, all.as_bytes()).ended(0);
    // The full batches of the first run are recognised; its last one ended where the pipe did, and is not.
    assert!(run.out.contains("50,000 were in already"), "{}", run.out);
    assert_eq!(count_in_folder("events", &data), 120_000 + first - 50_000);
}

/// Starts a load from a pipe that stays open.
fn load_from_pipe(url: &str) -> Child {
    let mut load = command(&["load", "events", "-", "--format", "ndjson", "--url", url]);
    load.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Lines of events, padded so that a pipe holds few of them.
fn events_of(numbers: std::ops::Range<usize>) -> String {
    let pad = "x".repeat(100);
    let line = |n| format!("{{\"lon\":1,\"lat\":5,\"time\":\"2026-01-01T00:00:00Z\",\"n\":{n},\"pad\":\"{pad}\"}}\n");
    numbers.map(line).collect()
}

#[test]
fn an_interrupted_load_says_how_much_is_in_and_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let all = events_of(0..120_000);
    let mut load = load_from_pipe(&server.url);
    let mut pipe = load.stdin.take().unwrap();
    pipe.write_all(all.as_bytes()).unwrap();
    // The pipe is still open, so the load waits for its third batch.
    let begun = Instant::now();
    let stored = || match server.get("/collections/events/aggregate?function=count") {
        (200, answer) => counted(&serde_json::from_str(&answer).unwrap()),
        _ => 0,
    };
    while stored() < 100_000 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    common::send(load.id(), "INT");
    let run: Run = load.wait_with_output().unwrap().into();
    drop(pipe);
    let run = run.ended(130).says(&["standard input: interrupted: ", "load it again"]);
    // The answer to the last batch may have been on its way.
    assert!(["100,000", "50,000"].iter().any(|n| run.err.contains(&format!(" {n} events of it"))), "{}", run.err);
    let args = ["load", "events", "-", "--format", "ndjson", "--url", &server.url];
    common::meridian_with_input(&args, all.as_bytes()).ended(0);
    assert_eq!(stored(), 120_000);
}

#[test]
fn a_load_goes_on_with_the_collection_that_another_client_made_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    for (there, exit, kind, events) in [
        ("time:Date,n:Long,pad:String,*geometry:Point", 0, "integer", 2000),
        // A pipe cannot be read again as another schema wants it.
        ("time:Date,n:String,pad:String,*geometry:Point", 3, "string", 0),
    ] {
        let server = Server::start(&folder.path().join(format!("data{exit}")));
        let mut load = load_from_pipe(&server.url);
        let mut pipe = load.stdin.take().unwrap();
        // More than a pipe holds: once it is written, the load has looked for the collection and reads.
        pipe.write_all(events_of(0..2000).as_bytes()).unwrap();
        // Empty, so that nothing but the load's own condition keeps its types.
        server.create("events", there);
        drop(pipe);
        let run: Run = load.wait_with_output().unwrap().into();
        let run = run.ended(exit);
        assert_eq!(run.err.contains("load it again"), exit == 3, "{}", run.err);
        assert_eq!(server.json("/collections/events/schema")["properties"]["n"]["type"], kind);
        assert_eq!(counted(&server.json("/collections/events/aggregate?function=count")), events);
    }
}

#[test]
fn files_loaded_at_once_into_a_new_collection_are_all_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let load = |i: usize| {
        let file = folder.path().join(format!("{i}.ndjson"));
        std::fs::write(&file, events_of(i * 100..i * 100 + 100)).unwrap();
        let mut load = command(&["load", "events", file.to_str().unwrap(), "--url", &server.url]);
        load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let loads: Vec<Child> = (0..6).map(load).collect();
    for load in loads {
        Run::from(load.wait_with_output().unwrap()).ended(0);
    }
    assert_eq!(counted(&server.json("/collections/events/aggregate?function=count")), 600);
}
