//! A cluster whose partitions have several owners, as real processes. They divide the groups, write concurrently, take
//! over from a killed one, and hand some over to a later one.

use crate::common::batches::{Batches, SPEC};
use crate::common::owners::{Cluster, Owner, answered};
use crate::common::strict::Strict;
use crate::common::{self, PATIENCE, Random, Server, agent, counted, data, meridian};
use meridian_model::partition_of;
use meridian_model::policy::groups::Groups;
use meridian_model::policy::placement::{LiveCandidate, places};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const GROUPS: u16 = 8;
const PARTITIONS: usize = 4;

fn cluster() -> Cluster {
    Cluster::with("bucket", |_| format!("groups = {GROUPS}\n"))
}

/// Returns the name and the address of the holder of each group's lease.
fn holders(cluster: &Cluster) -> Vec<Option<(String, String)>> {
    let bucket = format!("file://{}", cluster.path("bucket"));
    let status = meridian(&["cluster", "status", "--json", "--bucket", &bucket]).ended(0).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    let owners = status["owners"].as_array().unwrap();
    assert_eq!(owners.len(), usize::from(GROUPS));
    let text = |owner: &Value, key: &str| owner["owner"][key].as_str().unwrap().to_owned();
    let held =
        |owner: &Value| (owner["owner"]["state"] == "held").then(|| (text(owner, "node"), text(owner, "address")));
    owners.iter().map(held).collect()
}

/// Waits until `processes` processes share the groups. Returns the address of the owner of each group.
fn divided(cluster: &Cluster, processes: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let held: Vec<(String, String)> = holders(cluster).into_iter().flatten().collect();
        let nodes: Vec<String> =
            held.iter().map(|(node, _)| node.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        let placed = |(process, node): (usize, &String)| LiveCandidate { node: node.clone(), process: process as u64 };
        let candidates: Vec<LiveCandidate> = nodes.iter().enumerate().map(placed).collect();
        let wanted = places(Groups::new(GROUPS).unwrap(), &candidates);
        let is_first = |(order, (node, _)): (&Vec<u64>, &(String, String))| nodes[order[0] as usize] == *node;
        if held.len() == usize::from(GROUPS) && nodes.len() == processes && wanted.iter().zip(&held).all(is_first) {
            return held.into_iter().map(|(_, address)| address).collect();
        }
        assert!(begun.elapsed() < PATIENCE, "the groups are not divided: {held:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Removes from these the owner that serves gateways at an address, and returns it.
fn take_at(owners: &mut Vec<(String, Owner)>, address: &str) -> Owner {
    let at = owners.iter().position(|(of, _)| of == address).expect("one of them is there");
    owners.remove(at).1
}

fn start(cluster: &Cluster, name: &str) -> (String, Owner) {
    let owner = cluster.owner(name);
    let line = owner.says("Meridian");
    let address = line.split_once("answers gateways on ").unwrap().1.split([',', ')']).next().unwrap().to_owned();
    (address, owner)
}

fn group_of(partition: usize) -> usize {
    Groups::new(GROUPS).unwrap().of("default", "events", partition as u32).number().into()
}

/// A client that writes to a single partition; each of its writes must succeed.
fn steady(gateway: &Server, partition: usize, stop: &AtomicBool, written: &AtomicU64) {
    let keys = (0u64..).map(|n| format!("steady-{partition}-{n}"));
    for key in keys.filter(|key| partition_of(key.as_bytes(), PARTITIONS) == partition) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let event = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"batch":"steady","n":1,"dtg":"2026-01-01T00:00:00Z"}}"#;
        let done = gateway.post("/collections/events/items", "application/x-ndjson", Some(&key), event.as_bytes());
        let (status, said) = done.unwrap();
        assert!(matches!(status, 200 | 201), "partition {partition}, whose owner lives: {status} {said}");
        written.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn owners_share_the_partitions_and_take_over_from_one_that_is_killed() {
    let cluster = cluster();
    let mut random = Random::new();
    let mut owners: Vec<(String, Owner)> = ["o0", "o1", "o2"].map(|name| start(&cluster, name)).into();
    let held = divided(&cluster, 3);
    let gateway = cluster.server("gateway");
    meridian(&["create", "events", "--schema", SPEC, "--partitions", "4", "--url", &gateway.url]).ended(0);
    // The owner of the first partition goes; the collection is still known.
    let lost = held[group_of(0)].clone();
    let of_others: Vec<usize> = (0..PARTITIONS).filter(|partition| held[group_of(*partition)] != lost).collect();
    assert!(!of_others.is_empty(), "{held:?}");
    let (batches, stop, written) = (Batches::default(), AtomicBool::new(false), AtomicU64::new(0));
    let wait_for = |count: u64| {
        let (begun, before) = (Instant::now(), written.load(Ordering::Relaxed));
        while written.load(Ordering::Relaxed) < before + count {
            assert!(begun.elapsed() < PATIENCE, "no write");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let (to, halt, count) = (&gateway, &stop, &written);
    std::thread::scope(|scope| {
        for partition in of_others {
            scope.spawn(move || steady(to, partition, halt, count));
        }
        for _ in 0..2 {
            let random = Random(random.next() | 1);
            scope.spawn(|| batches.write(&gateway.url, &stop, random));
        }
        wait_for(5);
        let mut killed = take_at(&mut owners, &lost);
        killed.signal("KILL");
        assert_eq!(killed.ends(), None);
        let now = divided(&cluster, 2);
        assert!(!now.contains(&lost));
        let acknowledged = batches.acknowledged();
        wait_for(5);
        let begun = Instant::now();
        while batches.acknowledged() < acknowledged + 3 {
            assert!(begun.elapsed() < PATIENCE, "no write to all partitions after the takeover");
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let check = |server: &Server, when: &str| {
        let steady = server.json("/collections/events/aggregate?function=count&filter=batch%3D%27steady%27");
        assert_eq!(counted(&steady), written.load(Ordering::Relaxed), "{when}");
        batches
            .sent()
            .insert("steady".to_owned(), (written.load(Ordering::Relaxed), common::batches::Known::Acknowledged));
        batches.check(server, when);
        batches.sent().remove("steady");
    };
    answered(&gateway, "/collections/events/items?limit=1");
    batches.resend(&gateway.url);
    check(&gateway, "the takeover");
    // A later process gets its share from the others.
    let later = start(&cluster, "o3");
    later.1.says("owns group");
    owners.push(later);
    divided(&cluster, 3);
    answered(&gateway, "/collections/events/items?limit=1");
    check(&gateway, "the handovers");
    // Once stopped, they leave everything to read-only processes.
    owners.iter().for_each(|(_, owner)| owner.signal("TERM"));
    owners.iter_mut().for_each(|(_, owner)| assert_eq!(owner.ends(), Some(0)));
    let scan = cluster.server("scan");
    check(&scan, "the end");
}

#[test]
fn answers_of_several_owners_equal_those_of_one_process() {
    let cluster = cluster();
    let _owners = ["o0", "o1", "o2"].map(|name| start(&cluster, name));
    divided(&cluster, 3);
    let (alone, gateway) = (Server::start(Path::new(&cluster.path("alone"))), cluster.server("gateway"));
    let file = data("usgs-earthquakes/earthquakes.csv.zst").display().to_string();
    meridian(&["load", "quakes", &file, "--url", &alone.url]).ended(0);
    let schema = cluster.path("schema.json");
    std::fs::write(&schema, answered(&alone, "/collections/quakes/schema")).unwrap();
    meridian(&["create", "quakes", "--schema", &schema, "--partitions", "4", "--url", &gateway.url]).ended(0);
    meridian(&["load", "quakes", &file, "--url", &gateway.url]).ended(0);
    let about = "/collections/quakes";
    for path in [
        format!("{about}/items?f=csv&sortby=-mag,id&limit=500"),
        format!("{about}/items?f=ndjson&bbox=-130,30,-110,50&sortby=id&limit=200"),
        format!("{about}/aggregate?function=count,min(mag),max(mag)&window=P1D"),
        format!("{about}/aggregate?function=count&by=net"),
        format!("{about}/tiles/WebMercatorQuad/3/3/1"),
        format!("{about}/items?bbox=nonsense"),
    ] {
        let (expected, found) = (alone.get(&path), gateway.get(&path));
        assert_eq!(expected.0, found.0, "{path}: {} beside {}", expected.1, found.1);
        if expected.0 == 200 {
            assert_eq!(without_times(&expected.1), without_times(&found.1), "{path}");
        }
    }
    // All pages, from whichever owners.
    let rows = |server: &Server| -> BTreeSet<String> {
        let csv = answered(server, &format!("{about}/items?f=csv&limit=10000"));
        csv.lines().map(str::to_owned).collect()
    };
    assert_eq!(rows(&alone), rows(&gateway));
    // Changed, dropped and created again as one collection.
    meridian(&["create", "quakes", "--retention", "90000d", "--yes", "--url", &gateway.url]).ended(0);
    let dropped = agent().delete(format!("{}{about}", gateway.url)).call().unwrap().status().as_u16();
    assert!((200..300).contains(&dropped), "{dropped}");
    assert_eq!(gateway.get(&format!("{about}/items")).0, 404);
    meridian(&["create", "quakes", "--schema", &schema, "--partitions", "4", "--url", &gateway.url]).ended(0);
    assert_eq!(counted(&gateway.json(&format!("{about}/aggregate?function=count"))), 0);
    meridian(&["load", "quakes", &file, "--url", &gateway.url]).ended(0);
    assert_eq!(rows(&alone), rows(&gateway));
}

#[test]
fn groups_are_handed_over_and_drained_and_no_request_fails() {
    let cluster = cluster();
    let owners = ["o0", "o1"].map(|name| start(&cluster, name).1);
    divided(&cluster, 2);
    let gateway = cluster.server("gateway");
    meridian(&["create", "events", "--schema", SPEC, "--partitions", "4", "--url", &gateway.url]).ended(0);
    let bucket = format!("file://{}", cluster.path("bucket"));
    let order = |words: &[&str]| meridian(&[&["cluster"], words, &["--bucket", &bucket]].concat()).ended(0).out;
    let holder = || holders(&cluster)[group_of(0)].clone().expect("it has an owner").0;
    let clients = Strict::default();
    let of = |name: &str| owners.iter().find(|owner| owner.node() == name).expect("one of them is there");
    let (before, names) = (holder(), [owners[0].node(), owners[1].node()]);
    let other = names.iter().find(|name| **name != before).unwrap();
    clients.during(&gateway.url, |clients| {
        clients.goes_on();
        let said = order(&["handover", "events/0", "--to", other]);
        assert!(said.contains(&format!("passed the lease \"owner-{}\" on to {other}", group_of(0))), "{said}");
        of(&before).says("passed the partitions of group");
        clients.goes_on();
        // It stays there, though the former owner ranks first for it.
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(holder(), *other);
        order(&["drain", other]);
        assert!(holders(&cluster).iter().flatten().all(|(name, _)| *name == before));
        clients.goes_on();
        // Once back, it gets its share.
        order(&["drain", other, "--undo"]);
        divided(&cluster, 2);
        clients.goes_on();
        // An owner that stops hands all of them over.
        of(other).signal("TERM");
        divided(&cluster, 1);
        clients.goes_on();
    });
    clients.check(&gateway);
}

#[test]
fn a_backup_has_what_all_owners_have() {
    let cluster = cluster();
    let mut owners: Vec<(String, Owner)> = ["o0", "o1"].map(|name| start(&cluster, name)).into();
    divided(&cluster, 2);
    let gateway = cluster.server("gateway");
    let (bucket, file) = (format!("file://{}", cluster.path("bucket")), data("usgs-earthquakes/earthquakes.csv.zst"));
    let (alone, file) = (Server::start(Path::new(&cluster.path("alone"))), file.display().to_string());
    meridian(&["load", "quakes", &file, "--url", &alone.url]).ended(0);
    let schema = cluster.path("schema.json");
    std::fs::write(&schema, answered(&alone, "/collections/quakes/schema")).unwrap();
    meridian(&["create", "quakes", "--schema", &schema, "--partitions", "4", "--url", &gateway.url]).ended(0);
    meridian(&["load", "quakes", &file, "--url", &gateway.url]).ended(0);
    let count = "/collections/quakes/aggregate?function=count";
    let expected = counted(&gateway.json(count));
    assert_eq!(expected, counted(&alone.json(count)));
    let restored = |from: &[&str], name: &str| {
        let (backup, folder) = (cluster.path(&format!("{name}-backup")), cluster.path(name));
        meridian(&[&["backup", backup.as_str()], from].concat()).ended(0);
        meridian(&["restore", &backup, "--data", &folder]).ended(0);
        counted(&Server::start(Path::new(&folder)).json(count))
    };
    // Right after the load: nothing was flushed until the request.
    assert_eq!(restored(&["--url", &gateway.url], "by-gateway"), expected);
    assert_eq!(restored(&["--bucket", &bucket], "beside-owners"), expected);
    let page = answered(&gateway, "/admin/cluster?f=html");
    assert!(page.contains("<h2>Owners</h2>") && page.contains("of 8 groups of partitions"), "{page}");
    drop(gateway);
    // Writes acknowledged by killed owners are only in their logs.
    owners.iter_mut().for_each(|(_, owner)| owner.signal("KILL"));
    owners.iter_mut().for_each(|(_, owner)| assert_eq!(owner.ends(), None));
    assert_eq!(restored(&["--bucket", &bucket], "as-owner"), expected);
    // The command has given up all groups.
    let _next = start(&cluster, "o2");
    divided(&cluster, 1);
    assert_eq!(counted(&cluster.server("gateway").json(count)), expected);
}

/// Returns a response without its timestamps.
fn without_times(body: &str) -> String {
    let Ok(Value::Object(mut answer)) = serde_json::from_str(body) else { return body.to_owned() };
    for key in ["timeStamp", "links"] {
        answer.remove(key);
    }
    Value::Object(answer).to_string()
}
