//! Saved searches of the real program, across clean restarts, kills, and a backup.

use crate::common::{self, PATIENCE, Server, agent, meridian};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Mutex;

/// A stream of packets.
struct Packets(Box<dyn BufRead>);

impl Packets {
    /// Opens it after packet `last`, or from the oldest; returns the status of a refusal.
    fn open(server: &Server, id: &str, last: Option<u64>) -> Result<Packets, u16> {
        let mut request = agent().get(format!("{}/saved-searches/{id}/packets", server.url));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let answer = request.call().unwrap();
        match answer.status().as_u16() {
            200 => Ok(Packets(Box::new(BufReader::new(answer.into_body().into_reader())))),
            status => Err(status),
        }
    }

    /// Returns the titles of the next results, and the number of their packet.
    fn next(&mut self) -> (Vec<String>, u64) {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(packet) = line.strip_prefix("data: ") {
                let packet: Value = serde_json::from_str(packet).unwrap();
                assert_eq!(packet["kind"], "results", "{packet}");
                let titles = packet["features"].as_array().unwrap().iter();
                let titles = titles.map(|feature| feature["properties"]["title"].as_str().unwrap().to_owned());
                return (titles.collect(), packet["seq"].as_u64().unwrap());
            }
        }
    }

    /// Returns all titles up to this one.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut titles = Vec::new();
        while titles.last().is_none_or(|title| title != last) {
            titles.extend(self.next().0);
        }
        titles
    }
}

fn feature(title: &str) -> String {
    json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [4.8, 45.7]},
        "properties": {"title": title}})
    .to_string()
}

/// Writes an event; returns true if it was acknowledged.
fn write(url: &str, title: &str) -> bool {
    let sent = common::post(url, "/collections/news/items", "application/geo+json", None, feature(title).as_bytes());
    sent.is_ok_and(|(status, text)| {
        assert_eq!(status, 201, "{text}");
        true
    })
}

/// Starts a server with the collection, and a saved search for floods.
fn start(folder: &Path) -> (Server, String) {
    let server = Server::start(folder);
    server.create("news", "title:String,*geom:Point:srid=4326");
    let asked = json!({"name": "floods", "question": {"keywords": "flood"}}).to_string();
    let (status, made) = server.post("/saved-searches", "application/json", None, asked.as_bytes()).unwrap();
    assert_eq!(status, 201, "{made}");
    let id = serde_json::from_str::<Value>(&made).unwrap()["id"].as_str().unwrap().to_owned();
    (server, id)
}

fn one(title: &str, seq: u64) -> (Vec<String>, u64) {
    (vec![title.to_owned()], seq)
}

#[test]
fn a_saved_search_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let (server, id) = start(folder.path());
    assert!(write(&server.url, "flood one"));
    let mut packets = Packets::open(&server, &id, None).unwrap();
    assert_eq!(packets.next(), one("flood one", 0));
    drop(packets);
    assert!(write(&server.url, "flood two"));
    assert_eq!(server.stop("TERM"), Some(0));

    // After a clean stop, unread packets are kept, and so is what arrived meanwhile; numbers continue without a gap.
    // Reading the folder changes nothing of that.
    meridian(&["check", "--data", data]).ended(0);
    let lines = folder.path().with_extension("ndjson");
    std::fs::write(&lines, feature("flood meanwhile") + "\n").unwrap();
    meridian(&["load", "news", lines.to_str().unwrap(), "--data", data]).ended(0);
    std::fs::remove_file(lines).unwrap();
    meridian(&["query", "news", "--data", data]).ended(0);
    let server = Server::start(folder.path());
    let mut packets = Packets::open(&server, &id, Some(0)).unwrap();
    assert_eq!([packets.next(), packets.next()], [one("flood two", 1), one("flood meanwhile", 2)]);
    assert!(write(&server.url, "flood three"));
    assert_eq!(packets.next(), one("flood three", 3));
    drop(packets);
    server.kill();

    // After a kill it still exists. A reader of lost packets is notified.
    let server = Server::start(folder.path());
    assert_eq!(Packets::open(&server, &id, Some(3)).err(), Some(410));
    let mut packets = Packets::open(&server, &id, None).unwrap();
    assert!(write(&server.url, "flood four"));
    let told = packets.until("flood four");
    let all = ["flood two", "flood meanwhile", "flood three", "flood four"].map(str::to_owned);
    assert!(all.ends_with(&told), "what the disk did not know yet comes again, and nothing else: {told:?}");
    drop(packets);
    assert_eq!(server.stop("TERM"), Some(0));

    // A missing one is found by a check or a start, named, and rebuilt from its copy.
    let [file, copy] = ["saved", "saved-copy"].map(|folder_of| folder.path().join(folder_of).join(&id));
    std::fs::remove_file(&file).unwrap();
    let check = meridian(&["check", "--data", data]).ended(1);
    assert!(check.out.contains(&id) && check.out.contains("it is missing; it is rewritten"), "{}", check.out);
    meridian(&["check", "--data", data]).ended(0);
    std::fs::remove_file(&file).unwrap();
    let server = Server::start(folder.path());
    let listed = server.json("/saved-searches");
    assert_eq!(listed["numberReturned"], 1);
    assert!(listed["damaged"][&id].as_str().unwrap().contains("it is missing"), "{listed}");
    assert_eq!(server.stop("TERM"), Some(0));

    // Damage to both costs only that saved search.
    for file in [&file, &copy] {
        let mut bytes = std::fs::read(file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(file, bytes).unwrap();
    }
    meridian(&["check", "--data", data]).ended(1);
    let server = Server::start(folder.path());
    let listed = server.json("/saved-searches");
    assert_eq!(listed["numberReturned"], 0);
    assert!(listed["damaged"][&id].as_str().unwrap().contains("checksum"), "{listed}");
    assert!(write(&server.url, "flood five"));
    assert_eq!(server.stop("TERM"), Some(0));
}

#[test]
fn what_was_acknowledged_before_a_kill_is_told_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, id) = start(folder.path());
    let mut expected = BTreeSet::new();
    for round in 0..3 {
        // There are no readers; the server is killed while events come in, and while it matches them.
        let (acknowledged, url) = (Mutex::new(Vec::new()), server.url.clone());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0.. {
                    let title = format!("flood {round}-{n}");
                    if !write(&url, &title) {
                        break;
                    }
                    acknowledged.lock().unwrap().push(title);
                }
            });
            let begun = std::time::Instant::now();
            while acknowledged.lock().unwrap().len() < 40 * (round + 1) {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::yield_now();
            }
            server.kill();
        });
        expected.extend(acknowledged.into_inner().unwrap());
        server = Server::start(folder.path());
    }
    let mut packets = Packets::open(&server, &id, None).unwrap();
    while !expected.is_empty() {
        for title in packets.next().0 {
            expected.remove(&title);
        }
    }
    assert_eq!(server.json(&format!("/saved-searches/{id}"))["dropped_events"], 0);
}

#[test]
fn a_backup_has_saved_searches_and_what_they_have_yet_to_see() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let (server, id) = start(&at("data"));
    assert!(write(&server.url, "flood one") && write(&server.url, "flood two"));
    let run = meridian(&["backup", &text("hot"), "--url", &server.url]).ended(0);
    assert!(run.out.contains("saved searches: "), "{}", run.out);
    assert!(write(&server.url, "flood after it"));
    assert_eq!(server.stop("TERM"), Some(0));
    meridian(&["backup", &text("cold"), "--data", &text("data")]).ended(0);

    // A running server's packets are not included: their events are processed again.
    meridian(&["restore", &text("hot"), "--data", &text("from-hot")]).ended(0);
    meridian(&["check", "--data", &text("from-hot")]).ended(0);
    let server = Server::start(&at("from-hot"));
    assert_eq!(server.json(&format!("/saved-searches/{id}"))["name"], "floods");
    let mut packets = Packets::open(&server, &id, None).unwrap();
    assert!(write(&server.url, "flood anew"));
    assert_eq!(packets.until("flood anew"), ["flood one", "flood two", "flood anew"]);
    drop((packets, server));

    // A stopped server's packets are included, with their numbers.
    meridian(&["restore", &text("cold"), "--data", &text("from-cold")]).ended(0);
    let server = Server::start(&at("from-cold"));
    let mut packets = Packets::open(&server, &id, None).unwrap();
    let expected = [one("flood one", 0), one("flood two", 1), one("flood after it", 2)];
    assert_eq!([packets.next(), packets.next(), packets.next()], expected);
}
