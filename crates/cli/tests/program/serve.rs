//! The program as a server: its settings and names, how it ends, and what it keeps.

use crate::common::spots::{SPOTS, text};
use crate::common::{Server, agent, command, count_in_folder, meridian, meridian_with_input, send};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_signal_ends_the_server_cleanly() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path());
        server.create("spots", "name:String,*geom:Point");
        let body = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"name":"x"}}"#;
        let path = "/collections/spots/items";
        let (status, text) = server.post(path, "application/geo+json", None, body.as_bytes()).unwrap();
        assert!(matches!(status, 200 | 201), "{status} {text}");
        assert_eq!(server.stop(signal), Some(0));
        assert_eq!(count_in_folder("spots", folder.path()), 1);
    }
}

#[test]
fn first_reads_of_a_folder_log_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/atlantic-storms/storms.csv.zst");
    meridian(&["load", "storms", file, "--data", data]).ended(0);
    // Nothing of its segments is in memory: a short query that would wait for a file runs on another thread.
    let server = Server::start(folder.path());
    for path in ["/", "/collections/storms/aggregate?function=count", "/collections/storms/items?limit=5"] {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}

#[test]
fn a_schema_file_that_is_not_there_is_no_schema() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path());
    let create = |schema: &str| meridian(&["create", "ships", "--schema", schema, "--data", data]);
    create("nofile.schema.json").ended(2).says(&["--schema: there is no file nofile.schema.json"]);
    create("name,note;meridian.id='given'").ended(0);
}

#[test]
fn an_ephemeral_server_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    send(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "an ephemeral server wrote to its folder");

    let server = Server::start_with(&["--ephemeral"]);
    let load = ["load", "spots", "-", "--format", "csv", "--url", &server.url];
    meridian_with_input(&load, SPOTS.as_bytes()).ended(0);
    meridian(&["query", "spots", "--url", &server.url]).ended(0).says(&["3 events"]);
}

#[test]
fn settings_are_checked_at_start_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("meridian.toml");
    let shown = meridian(&["serve", "--show-config", "--listen", "127.0.0.1:0"]).ended(0).out;
    assert!(shown.contains("cache_bytes") && shown.contains("listen = \"127.0.0.1:0\""), "{shown}");
    std::fs::write(&file, shown.replace("./meridian-data", text(&folder.path().join("data")))).unwrap();
    let server = Server::start_with(&["--config", text(&file)]);
    assert_eq!(server.get("/collections").0, 200);
    drop(server);
    for (config, words) in [
        ("[store]\ncache = 1\n", "store.cache: there is no such setting"),
        ("[requests]\ntimeout = \"soon\"\n", "requests.timeout: \"soon\" is not a length of time"),
        ("[store]\n[store]\n", "duplicate"),
    ] {
        std::fs::write(&file, config).unwrap();
        meridian(&["serve", "--config", text(&file)]).ended(2).says(&[words]);
    }
    meridian(&["serve", "--config", "/no/such.toml"]).ended(2).says(&["/no/such.toml"]);
}

#[test]
fn a_server_answers_to_the_names_that_it_was_given() {
    let server = Server::start_with(&["--ephemeral", "--host", "events.example.org"]);
    let statuses =
        [("events.example.org", 200), ("events.example.org:80", 200), ("localhost", 200), ("evil.example", 421)];
    for (host, status) in statuses {
        let answer = agent().get(format!("{}/healthz", server.url)).header("host", host).call().unwrap();
        assert_eq!(answer.status(), status, "{host}");
    }
    meridian(&["serve", "--host", "http://events.example.org"]).ended(2).says(&["--host", "192.0.2.7"]);
    let shown = meridian(&["serve", "--host", "events.example.org", "--show-config"]).ended(0);
    assert!(shown.out.contains("hosts = [\"events.example.org\"]"), "{}", shown.out);

    // Settings that accept connections on all addresses are reported at the start.
    let folder = tempfile::tempdir().unwrap();
    meridian(&["token", "create", "--role", "operator", "--data", text(folder.path())]).ended(0);
    let serve = ["serve", "--data", text(folder.path()), "--listen", "0.0.0.0:0"];
    let mut every = command(&serve).stdout(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(every.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find(|l| l.starts_with("answers to"));
    every.kill().unwrap();
    every.wait().unwrap();
    assert_eq!(
        told.unwrap(),
        "answers to 127.0.0.1, localhost, [::1], any IP address; other names get 421 (--host, server.hosts)"
    );
}
