//! Gateways that divide the saved searches of a cluster, and their webhooks.

use super::owners::{Cluster, Owner, answered};
use super::source::{Source, typed};
use super::{PATIENCE, Server};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Line that a gateway prints once it runs a slot.
pub const RUNS: &str = "runs the saved searches of slot ";
/// Number of slots.
pub const SLOTS: usize = 8;

/// Returns the slots of saved searches that a gateway runs, by its output.
pub fn slots(server: &Server) -> BTreeSet<u16> {
    let mut slots = BTreeSet::new();
    for line in server.said("").lines() {
        let Some((does, of)) = line.split_once(" the saved searches of slot ") else { continue };
        let slot = of.split([',', ':', ' ']).next().unwrap().parse().unwrap();
        if does == "runs" {
            slots.insert(slot)
        } else {
            slots.remove(&slot)
        };
    }
    slots
}

/// Waits until each of these gateways runs its share of the saved searches, and all of them know that.
#[track_caller]
pub fn spread(servers: &[&Server]) {
    let begun = Instant::now();
    let (min, max) = (SLOTS / servers.len(), SLOTS.div_ceil(servers.len()));
    loop {
        let held: Vec<BTreeSet<u16>> = servers.iter().map(|server| slots(server)).collect();
        let all: BTreeSet<u16> = held.iter().flatten().copied().collect();
        let is_fair = held.iter().all(|slots| (min..=max).contains(&slots.len()));
        if is_fair && all.len() == SLOTS && held.iter().map(BTreeSet::len).sum::<usize>() == SLOTS {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{held:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    servers.iter().for_each(|server| drop(answered(server, "/saved-searches")));
}

/// A cluster with two gateways, which divide the saved searches.
pub struct Two {
    pub cluster: Cluster,
    /// It ends when dropped.
    _owner: Owner,
    pub holder: Server,
    pub other: Server,
}

impl Two {
    /// Starts it.
    pub fn start() -> Two {
        let cluster = Cluster::with("bucket", |_| "[search]\nwebhook_private = true\n".to_owned());
        let owner = cluster.owner("owner");
        owner.says("owns");
        let holder = cluster.server("gateway");
        holder.create("news", "title:String,*geom:Point:srid=4326");
        holder.said(RUNS);
        let other = cluster.server("gateway");
        spread(&[&holder, &other]);
        Two { cluster, _owner: owner, holder, other }
    }
}

/// Writes an event.
#[track_caller]
pub fn write(server: &Server, title: &str) {
    write_to(server, "news", title);
}

/// Writes an event into a collection.
#[track_caller]
pub fn write_to(server: &Server, collection: &str, title: &str) {
    let event = json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [4.8, 45.7]},
        "properties": {"title": title}});
    let body = event.to_string();
    let path = format!("/collections/{collection}/items");
    let (status, said) = server.post(&path, "application/geo+json", None, body.as_bytes()).unwrap();
    assert_eq!(status, 201, "{said}");
}

/// Saves a search for floods at a gateway; returns its id and the response.
#[track_caller]
pub fn save(server: &Server, webhook: Option<&Source>) -> (String, Value) {
    let mut asked = json!({"name": "floods", "question": {"keywords": "flood"}});
    if let Some(source) = webhook {
        asked["webhook"] = json!({"url": format!("http://{}/hook", source.address), "secret": "a secret of mine"});
    }
    let begun = Instant::now();
    loop {
        let sent = server.post("/saved-searches", "application/json", None, asked.to_string().as_bytes());
        match sent.unwrap() {
            (201, made) => {
                let made: Value = serde_json::from_str(&made).unwrap();
                return (made["id"].as_str().unwrap().to_owned(), made);
            }
            // The gateway does not know yet which one runs them.
            (503, said) => assert!(begun.elapsed() < PATIENCE, "{said}"),
            (status, said) => panic!("{status} {said}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns a gateway's response for a saved search, once it is found.
#[track_caller]
pub fn read(server: &Server, id: &str) -> Value {
    serde_json::from_str(&answered(server, &format!("/saved-searches/{id}"))).unwrap()
}

/// Starts a webhook.
pub fn receiver() -> Source {
    Source::start(|_| typed("text/plain", ""))
}

/// Returns what a webhook has received: the numbers of packets and the titles of their events, in order. A call in
/// progress when its slot moves is repeated with the same number, and counted once. One of a process that was killed may
/// have come in part: it is left out.
pub fn received(source: &Source) -> Vec<(u64, Vec<String>)> {
    let packet = |call: &String| {
        let number = call.lines().find_map(|line| line.strip_prefix("meridian-seq: "))?.parse().ok()?;
        let packet: Value = serde_json::from_str(&call[call.find("\n{")?..]).ok()?;
        let titles = packet["features"].as_array().into_iter().flatten();
        Some((number, titles.map(|event| event["properties"]["title"].as_str().unwrap().to_owned()).collect()))
    };
    let mut packets: Vec<(u64, Vec<String>)> = source.calls().iter().filter_map(packet).collect();
    packets.dedup();
    packets
}

/// Waits until a webhook has received events with all of these titles; returns how often each arrived.
#[track_caller]
pub fn until_received(source: &Source, titles: &[String]) -> BTreeMap<String, usize> {
    let begun = Instant::now();
    loop {
        let mut times = BTreeMap::new();
        for title in received(source).into_iter().flat_map(|(_, titles)| titles) {
            *times.entry(title).or_insert(0) += 1;
        }
        if titles.iter().all(|title| times.contains_key(title)) {
            return times;
        }
        assert!(begun.elapsed() < PATIENCE, "{times:?} of {titles:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns titles of events about floods.
pub fn titles(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("flood {name} {n}")).collect()
}

/// Waits until the checkpoint of saved searches has not changed for a while: what was sent by then is not sent again.
pub fn settle(cluster: &Cluster) {
    let records = cluster.path("bucket/records/saved");
    let newest = || std::fs::read_dir(&records).unwrap().map(|entry| entry.unwrap().file_name()).max();
    let (mut known, mut since) = (newest(), Instant::now());
    while since.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(50));
        let now = newest();
        if now != known {
            (known, since) = (now, Instant::now());
        }
    }
}
