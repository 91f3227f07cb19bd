//! `meridian search --follow` against a real server that is stopped and restarted.

use crate::common::relay::Relay;
use crate::common::source::{self, Source};
use crate::common::{self, PATIENCE, Server, command, meridian, send};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// A running `meridian search --follow`.
struct Follow {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Follow {
    /// Runs it, and waits until it prints which saved search it follows.
    fn start(url: &str, args: &[&str]) -> Follow {
        let args = [&["search", "--url", url, "--follow"], args].concat();
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        let follow = Follow { child, out, err };
        follow.says("follows saved search");
        follow
    }

    /// Waits for a line on standard error that contains this.
    #[track_caller]
    fn says(&self, part: &str) -> String {
        loop {
            let line = self.err.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{part:?} was never said: {e}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Returns the next result.
    #[track_caller]
    fn feature(&self) -> Value {
        let line = self.out.recv_timeout(PATIENCE).unwrap();
        let feature: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(feature["type"], "Feature", "{line}");
        feature
    }

    /// Returns the title of the next result, which is from this server.
    #[track_caller]
    fn title(&self) -> String {
        let feature = self.feature();
        assert_eq!(feature["provider"], "meridian", "{feature}");
        feature["properties"]["title"].as_str().unwrap().to_owned()
    }

    /// Waits for its end; returns the exit code, and checks that nothing more was printed.
    #[track_caller]
    fn ended(mut self) -> Option<i32> {
        assert_eq!(self.out.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        self.child.wait().unwrap().code()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the lines of a stream as they arrive.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });
    receive
}

fn write(server: &Server, title: &str) {
    let feature = json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [4.8, 45.7]},
        "properties": {"title": title}});
    let (status, text) =
        server.post("/collections/news/items", "application/geo+json", None, feature.to_string().as_bytes()).unwrap();
    assert_eq!(status, 201, "{text}");
}

fn saved(server: &Server) -> Vec<String> {
    let listed = server.json("/saved-searches");
    listed["saved_searches"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_server_that_comes_back_is_followed_without_loss_or_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.create("news", "title:String,*geom:Point:srid=4326");
    let relay = Relay::to(&server.url);
    write(&server, "flood before");
    let follow = Follow::start(&relay.url, &["flood", "--name", "floods", "--format", "ndjson"]);
    write(&server, "flood one");
    write(&server, "fire");
    write(&server, "flood two");
    assert_eq!([follow.title(), follow.title()], ["flood one", "flood two"]);

    relay.cut();
    assert_eq!(server.stop("TERM"), Some(0));
    follow.says("the connection broke");
    let server = Server::start(folder.path());
    // It arrives before or after the reconnection.
    write(&server, "flood three");
    relay.turn(&server.url);
    follow.says("connected again");
    write(&server, "flood four");
    assert_eq!([follow.title(), follow.title()], ["flood three", "flood four"]);
    send(follow.child.id(), "INT");
    follow.says("4 results: continue with: meridian search --follow --name \"floods\" --after 3");
    assert_eq!(follow.ended(), Some(0));

    // It stays, and is followed from there, and then until it is deleted.
    assert_eq!(saved(&server), ["floods"]);
    write(&server, "flood five");
    let follow = Follow::start(&relay.url, &["--name", "floods", "--after", "3", "--format", "ndjson"]);
    assert_eq!(follow.title(), "flood five");
    let id = server.json("/saved-searches")["saved_searches"][0]["id"].as_str().unwrap().to_owned();
    common::agent().delete(format!("{}/saved-searches/{id}", server.url)).call().unwrap();
    follow.says("1 result: the saved search was deleted on the server");
    assert_eq!(follow.ended(), Some(0));
}

#[test]
fn what_a_kill_of_the_server_may_have_cost_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.create("news", "title:String,*geom:Point:srid=4326");
    let relay = Relay::to(&server.url);
    let follow = Follow::start(&relay.url, &["flood", "--format", "ndjson"]);
    write(&server, "flood one");
    assert_eq!(follow.title(), "flood one");
    relay.cut();
    server.kill();
    follow.says("the connection broke");
    let server = Server::start(folder.path());
    write(&server, "flood two");
    relay.turn(&server.url);
    follow.says("packet 1 is no longer kept");
    // The first one repeats if its receipt was not on disk yet.
    while follow.title() != "flood two" {}
    send(follow.child.id(), "INT");
    follow.says("the saved search is deleted");
    assert_eq!(follow.ended(), Some(1));
    assert!(saved(&server).is_empty());
}

#[test]
fn what_was_saved_to_be_followed_is_deleted_in_the_end() {
    let server = Server::start_with(&["--ephemeral"]);
    server.create("news", "title:String,*geom:Point:srid=4326");
    let follow = Follow::start(&server.url, &["flood", "--near", "4.8,45.7"]);
    assert_eq!(saved(&server), ["meridian search --follow flood"]);
    write(&server, "flood one");
    let line = follow.out.recv_timeout(PATIENCE).unwrap();
    assert!(line.contains("meridian") && line.ends_with("flood one"), "{line}");
    send(follow.child.id(), "TERM");
    follow.says("1 result: the saved search is deleted");
    assert_eq!(follow.ended(), Some(0));
    assert!(saved(&server).is_empty());
}

#[test]
fn an_outside_source_is_asked_again_and_what_is_new_is_printed() {
    let (folder, calls) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
    // It returns one more result on each call.
    let source = Source::start(move |_| {
        let there = 0..=calls.fetch_add(1, Ordering::SeqCst);
        let items: Vec<Value> = there.map(|n| json!({"id": n, "title": format!("flood {n}")})).collect();
        source::json(&json!({ "items": items }).to_string())
    });
    let text = format!(
        "name = \"growing\"\n[request]\nurl = \"http://{}/\"\n[answer]\nformat = \"json\"\nitems = \"items\"\n\
         [answer.map]\nid = \"id\"\ntitle = \"title\"\n[limits]\nallow_private = true\n",
        source.address
    );
    std::fs::write(folder.path().join("growing.toml"), text).unwrap();
    let config = folder.path().join("config");
    std::fs::write(&config, format!("[search]\nproviders = {:?}\npoll_least = \"1s\"\n", folder.path())).unwrap();
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    let asked = ["flood", "--provider", "growing", "--poll", "1s", "--format", "ndjson"];
    let mut follow = Follow::start(&server.url, &asked);
    for n in 0..3 {
        let feature = follow.feature();
        let (provider, title) = (&feature["provider"], &feature["properties"]["title"]);
        assert_eq!((provider, title), (&json!("growing"), &json!(format!("flood {n}"))));
    }
    // Meanwhile there may be a fourth.
    send(follow.child.id(), "INT");
    follow.says("the saved search is deleted");
    assert_eq!(follow.child.wait().unwrap().code(), Some(0));
    assert!(saved(&server).is_empty());
}

#[test]
fn comings_and_leavings_are_printed_as_such() {
    let server = Server::start_with(&["--ephemeral"]);
    server.create("ships", "ship:String:object=true,title:String,at:Date,*geom:Point:srid=4326");
    let when = ["--bbox", "0,0,1,1", "--when", "enter,exit", "--format", "ndjson"];
    let follow = Follow::start(&server.url, &when);
    for (second, lon) in [-1.0, 0.5, 0.6, 2.0, 0.4].into_iter().enumerate() {
        let feature = json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, 0.5]},
            "properties": {"ship": "a", "title": format!("at {lon}"), "at": format!("2026-01-05T10:00:0{second}Z")}});
        let (status, text) = server
            .post("/collections/ships/items", "application/geo+json", None, feature.to_string().as_bytes())
            .unwrap();
        assert_eq!(status, 201, "{text}");
    }
    for (when, title) in [("enter", "at 0.5"), ("exit", "at 2"), ("enter", "at 0.4")] {
        let feature = follow.feature();
        assert_eq!((&feature["when"], &feature["properties"]["title"]), (&json!(when), &json!(title)));
    }
    send(follow.child.id(), "INT");
    follow.says("3 results: the saved search is deleted");
    assert_eq!(follow.ended(), Some(0));
}

#[test]
fn what_cannot_be_followed_is_said() {
    let server = Server::start_with(&["--ephemeral"]);
    let run = |args: &[&str]| meridian(&[&["search", "--url", &server.url], args].concat());
    let kept = json!({"name": "floods", "question": {"keywords": "flood"}}).to_string();
    for n in 1..3 {
        assert_eq!(server.post("/saved-searches", "application/json", None, kept.as_bytes()).unwrap().0, 201);
        let words = if n == 1 { "already" } else { "2 saved searches" };
        run(&["fire", "--follow", "--name", "floods"]).ended(2).says(&["--name", words]);
    }
    run(&["--follow"]).ended(2).says(&["--follow: expected a question"]);
    run(&["--follow", "--name", "fires"]).ended(2).says(&["there is no saved search \"fires\""]);
    run(&["fire", "--follow", "--after", "1"]).ended(2).says(&["--after"]);
    run(&["fire", "--follow", "--keep", "x"]).ended(2).says(&["--keep"]);
    run(&["fire", "--follow", "--poll", "soon"]).ended(2).says(&["--poll"]);
    run(&["fire", "--follow", "--when", "leave"]).ended(2).says(&["enter, inside and exit"]);
    run(&["fire", "--follow", "--provider", "bing"]).ended(2).says(&["providers", "bing"]);
    run(&["fire", "--name", "fires"]).ended(2).says(&["--follow"]);
    let listed = server.json("/saved-searches");
    let id = listed["saved_searches"][0]["id"].as_str().unwrap();
    run(&["--follow", "--name", id, "--after", "0"]).ended(2).says(&["--after 0", "has number 0"]);
    assert_eq!(listed["numberReturned"], 2);
    meridian(&["search", "fire", "--follow", "--url", "http://127.0.0.1:9"]).ended(3).says(&["cannot reach"]);
}
