//! A load that is killed midway and repeated stores every event once.

use crate::common::{self, PATIENCE, Server, command, count_in_folder, counted, meridian};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
