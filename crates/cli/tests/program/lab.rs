//! `meridian lab` as used by people: a run, its folder, its exit codes.

use crate::common::{MERIDIAN, Mock, Run, command, meridian, send};
use meridian_lab_drive::sample::proc;
use meridian_lab_results::folder;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Starts a server that always gives the same response; returns its URL.
fn parrot(says: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut asked = [0; 4096];
                // The client may go at any time.
                while stream.read(&mut asked).is_ok_and(|n| n > 0) && stream.write_all(says).is_ok() {}
            });
        }
    });
    url
}

/// Limits that no busy machine exceeds: these tests are about the program, not the machine.
const CALM: &str = "[limits]\nlate_ms = 1e6\nother_load = 1e3\n";

fn scenario(folder: &Path, url: &str, rest: &str) -> String {
    let path = folder.join("first.toml");
    let text = format!(
        "[target]\nurl = \"{url}\"\n[arrival]\nkind = \"constant\"\nrate = 100\n[request]\npath = \"/x\"\n[phases]\nmeasured_s = 1\n{CALM}{rest}"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn run(folder: &Path, scenario: &str, more: &[&str]) -> Run {
    let out = folder.join("out");
    meridian(&[&["lab", "run", scenario, "--out", out.to_str().unwrap()], more].concat())
}

#[test]
fn a_run_leaves_a_folder_that_can_be_run_again_and_says_whether_its_objectives_hold() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&["--null"]));
    let path = scenario(folder.path(), &mock.1, "[[objective]]\nmetric = \"sound_share\"\nat_least = 1.0\n");
    let ran = run(folder.path(), &path, &["--json", "--set", "arrival.rate=50"]).ended(0);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["groups"][0]["outcomes"]["sound"], 50);
    assert_eq!(json["objectives"][0]["holds"], true);
    let out = folder.path().join("out");
    let mut files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["requests.parquet", "run.json", "samples.parquet", "scenario.toml", "summary.json"]);
    let again = out.join("scenario.toml");
    let place = folder.path().join("again");
    let args = ["lab", "run", again.to_str().unwrap(), "--out", place.to_str().unwrap()];
    let shown = meridian(&[&args[..], &["--set", "objective.at_least=1.1"]].concat()).ended(1);
    assert!(shown.out.contains("FAILS: sound_share at least 1.1"), "{}", shown.out);
    run(folder.path(), &path, &[]).ended(2).says(&["is there already"]);
}

#[test]
fn a_report_says_how_many_sound_answers_were_empty() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&["--null"]));
    let path = scenario(folder.path(), &mock.1, "");
    let out = folder.path().join("out");
    for (unit, said) in [("feature", true), ("body", false)] {
        let unit = format!("request.result={unit}");
        run(folder.path(), &path, &["--set", &unit, "--set", "arrival.rate=20"]).ended(0);
        let shown = meridian(&["lab", "report", out.to_str().unwrap()]).ended(0);
        assert_eq!(shown.out.contains("100 % of the sound answers held no result."), said, "{}", shown.out);
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn mistakes_end_with_their_code_and_leave_nothing() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&["--null"]));
    let good = scenario(folder.path(), &mock.1, "");
    let secure = format!("target.url={}", mock.1.replace("http://", "https://"));
    let garbage = format!("target.url={}", parrot(b"220 mail.example ready\r\n"));
    for (sets, code, words) in [
        (&["--set", "arrival.rat=5"][..], 2, &["rat"][..]),
        (&["--set", "arrival.rate=0"], 2, &["arrival.rate = 0", "above 0"]),
        (&["--set", "target.url=http://127.0.0.1:1"], 3, &["cannot be reached"]),
        (&["--set", "target.url=http://9.9.9.9"], 2, &["--allow-public 9.9.9.9"]),
        (&["--set", "target.url=gopher://127.0.0.1"], 2, &["not spoken", "https://"]),
        (&["--set", &secure], 3, &["cannot be reached", "TLS"]),
        (&["--set", &garbage], 3, &["the answer is not HTTP"]),
    ] {
        run(folder.path(), &good, sets).ended(code).says(words);
    }
    std::fs::write(folder.path().join("bad.toml"), "[target]\nurl = \"http://127.0.0.1\"\nspeed = 3\n").unwrap();
    run(folder.path(), folder.path().join("bad.toml").to_str().unwrap(), &[]).ended(2).says(&["bad.toml:3", "speed"]);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_str().unwrap().ends_with(".toml")), "{left:?}");
    meridian(&["lab", "mock"]).ended(2);
}

#[test]
fn an_interrupt_ends_a_run_with_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, calls) = (folder.path().join("sources.toml"), folder.path().join("calls.ndjson"));
    std::fs::write(&sources, "[[source]]\nname = \"x\"\n").unwrap();
    let mock = Mock::start(&[sources.to_str().unwrap(), "--log", calls.to_str().unwrap()]);
    let path = scenario(folder.path(), &mock.1, "");
    let out = folder.path().join("out");
    let args = ["lab", "run", &path, "--out", out.to_str().unwrap(), "--json", "--set", "phases.measured_s=600"];
    let child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while std::fs::read_to_string(&calls).unwrap_or_default().lines().count() < 20 {
        std::thread::yield_now();
    }
    send(child.id(), "INT");
    let ran = Run::from(child.wait_with_output().unwrap()).ended(0);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["run"]["cut_short"], "interrupted");
    assert!(json["groups"][0]["outcomes"]["sound"].as_u64().unwrap() >= 20);
    assert!(out.join("requests.parquet").is_file());
}

#[test]
fn a_run_whose_own_descriptors_ran_out_is_void_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources.toml");
    std::fs::write(&sources, "[[source]]\nname = \"x\"\ndelay = { kind = \"fixed\", ms = 60000 }\n").unwrap();
    let mock = Mock::start(&[sources.to_str().unwrap()]);
    let path = scenario(folder.path(), &mock.1, "[[objective]]\nmetric = \"sound_share\"\nat_least = 0.0\n");
    let out = folder.path().join("out");
    // Each request holds a connection until its user gives up, and there are not enough descriptors for that.
    let program = ["-c", "ulimit -n 80; exec \"$0\" \"$@\"", MERIDIAN];
    let args = ["lab", "run", &path, "--out", out.to_str().unwrap(), "--json", "--set", "target.timeout_s=2"];
    let ran: Run = Command::new("sh").args(program).args(args).output().unwrap().into();
    let ran = ran.ended(1).says(&["the run is void"]);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let void = json["run"]["void"].as_array().unwrap();
    assert_eq!(void.len(), 1, "{void:?}");
    assert!(void[0].as_str().unwrap().contains("this machine had no port or descriptor left"), "{void:?}");
    // Requests with a connection waited without success, those without were never sent; together they are all that were
    // due.
    let outcomes = &json["groups"][0]["outcomes"];
    let of = |name: &str| outcomes[name].as_u64().unwrap_or(0);
    assert!(of("timed out") > 0 && of("not sent") > 0 && of("timed out") + of("not sent") == 100, "{outcomes}");
}

#[test]
fn what_two_targets_take_is_no_other_load_whosever_turn_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mocks = [Mock::start(&["--null"]), Mock::start(&["--null"])];
    let targets: String = ["a", "b"]
        .iter()
        .zip(&mocks)
        .map(|(name, mock)| format!("[[target]]\nname = \"{name}\"\nurl = \"{}\"\n", mock.1))
        .collect();
    let path = folder.path().join("turns.toml");
    let load = "[arrival]\nkind = \"closed\"\nusers = 4\n[request]\npath = \"/x\"\n[phases]\nmeasured_s = 1\n";
    std::fs::write(&path, format!("{targets}{load}{CALM}")).unwrap();
    let used = || mocks.iter().map(|mock| proc::process(mock.pid()).unwrap().cpu_s).sum::<f64>();
    let (before, begun) = (used(), Instant::now());
    let ran = run(folder.path(), path.to_str().unwrap(), &["--json"]).ended(0);
    let (used, took_s) = (used() - before, begun.elapsed().as_secs_f64());
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let seen = &json["run"]["lab"];
    assert!(seen["other_load"].is_number(), "{seen}");
    // Each had half of the turns. The run took a little longer than its load, so this is no less than what was counted.
    let counted = seen["target_cpu"].as_f64().unwrap() * took_s;
    assert!(counted >= 0.7 * used, "{counted} of {used} s");
    let results = folder::open(&folder.path().join("out")).unwrap();
    let samples = results.samples().unwrap().flat_map(Result::unwrap);
    let resident = samples.filter(|sample| sample.metric == "resident_bytes" && sample.value > 0.0);
    let sources: BTreeSet<String> = resident.map(|sample| sample.source).collect();
    assert_eq!(sources, BTreeSet::from(["lab", "target a", "target b"].map(str::to_owned)));
}
