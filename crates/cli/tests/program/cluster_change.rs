//! Planned changes of a cluster as real processes, while clients write and read and accept no refusal. Collections pass
//! to another owner, and processes are drained, added and removed. Two program versions run side by side.

use crate::common::batches::SPEC;
use crate::common::owners::{Cluster, Owner, Version, answered};
use crate::common::strict::Strict;
use crate::common::{PATIENCE, Run, Server, counted, meridian};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Runs `meridian cluster` with these words over the cluster's bucket.
fn order(cluster: &Cluster, words: &[&str]) -> Run {
    let bucket = format!("file://{}", cluster.path("bucket"));
    meridian(&[&["cluster"], words, &["--bucket", &bucket]].concat())
}

/// Returns the lines of the cluster's audit log.
fn acts(cluster: &Cluster) -> Vec<Value> {
    let bucket = format!("file://{}", cluster.path("bucket"));
    let lines = meridian(&["audit", "--json", "--bucket", &bucket]).ended(0).out;
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until a standby has reported itself to the others.
fn stands_by(cluster: &Cluster, owner: &Owner) {
    becomes(cluster, &owner.node(), "stands_by");
}

#[track_caller]
fn becomes(cluster: &Cluster, name: &str, condition: &str) {
    let begun = Instant::now();
    loop {
        let status: Value = serde_json::from_str(&order(cluster, &["status", "--json"]).ended(0).out).unwrap();
        let is = |node: &&Value| node["node"] == name && node["condition"] == condition;
        if status["nodes"].as_array().unwrap().iter().any(|node| is(&node)) {
            // The owner learns it within another turn.
            return std::thread::sleep(Duration::from_secs(1));
        }
        assert!(begun.elapsed() < PATIENCE, "{name} is not {condition}: {status:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until a read-only server finds all events.
#[track_caller]
fn follows(server: &Server, events: u64) {
    let begun = Instant::now();
    while counted(&serde_json::from_str(&answered(server, "/collections/events/aggregate?function=count")).unwrap())
        < events
    {
        assert!(begun.elapsed() < PATIENCE, "the server that reads does not follow: {}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_collections_pass_to_another_owner_and_no_request_fails() {
    let cluster = Cluster::new();
    let (one, two) = (cluster.owner("o1"), cluster.owner("o2"));
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    order(&cluster, &["handover", "ships/0"]).ended(2).says(&["ships/0", "no collection"]);
    order(&cluster, &["handover", "--to", "owner-0"]).ended(2).says(&[
        "owner-0",
        "there is no such owner",
        &one.node(),
    ]);
    let clients = Strict::default();
    let status: Value = serde_json::from_str(&order(&cluster, &["status", "--json"]).ended(0).out).unwrap();
    let (mut owner, mut next) = if status["owner"]["node"] == one.node() { (one, two) } else { (two, one) };
    stands_by(&cluster, &next);
    clients.during(&gateway.url, |clients| {
        for round in 0..3 {
            clients.goes_on();
            let name = next.node();
            let words: &[&str] = if round == 0 { &["handover", "events/0"] } else { &["handover", "--to", &name] };
            let run = order(&cluster, words).ended(0);
            assert!(run.out.contains(&format!("passed the lease \"owner\" on to {name}")), "{}", run.out);
            assert!(run.out.contains(&format!("{name} owns the collections")), "{}", run.out);
            next.says("owns");
            owner.says("passed the collections on to");
            std::mem::swap(&mut owner, &mut next);
            clients.goes_on();
            stands_by(&cluster, &next);
        }
        // An owner that stops hands them over as well.
        owner.signal("TERM");
        assert_eq!(owner.ends(), Some(0));
        next.says("owns");
        clients.goes_on();
    });
    clients.check(&gateway);
    // There is no process to take them, so it stays the owner.
    order(&cluster, &["handover"]).ended(3).says(&["no other owner stands by"]);
    order(&cluster, &["drain", &next.node()]).ended(3).says(&["no other owner stands by"]);
    clients.check(&gateway);
    let acts = acts(&cluster);
    let ended = |act: &str, status: u64| acts.iter().any(|line| line["act"] == act && line["status"] == status);
    assert!(ended("handover", 200) && ended("handover", 409) && ended("drain", 409), "{acts:?}");
    let whole = |line: &&Value| line["act"] == "drain" && line["began"].is_u64() && line["who"] == "local";
    let target = &acts.iter().find(whole).unwrap()["target"];
    assert_eq!(*target, format!("/cluster/{}", next.node()));
}

#[test]
fn a_drained_process_takes_no_new_work_until_it_starts_again() {
    let cluster = Cluster::new();
    let one = cluster.owner("o1");
    one.says("owns");
    let (gateway, scan) = (cluster.server("gateway"), cluster.server("scan"));
    gateway.create("events", SPEC);
    let clients = Strict::default();
    let mut two = cluster.owner("o2");
    stands_by(&cluster, &two);
    clients.during(&gateway.url, |clients| {
        clients.goes_on();
        order(&cluster, &["drain", &one.node()]).ended(0);
        two.says("owns");
        clients.goes_on();
    });
    // Gateways and scan servers tell a load balancer, and still serve late clients.
    for (server, role) in [(&gateway, "gateway"), (&scan, "scan")] {
        let name = format!("{role}-{}", server.pid());
        order(&cluster, &["drain", &name]).ended(0);
        let (status, said) = server.get("/readyz");
        assert!(status == 503 && said.contains("drained"), "{status} {said}");
        assert_eq!(server.get("/collections").0, 200);
        order(&cluster, &["drain", &name, "--undo"]).ended(0);
        let begun = Instant::now();
        while server.get("/readyz").0 != 200 {
            assert!(begun.elapsed() < PATIENCE, "{name} is not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // The only other owner is drained: when theirs ends, the collections have none until it is a standby again.
    becomes(&cluster, &one.node(), "drained");
    order(&cluster, &["handover", "--to", &one.node()]).ended(3).says(&["it is drained", &one.node()]);
    let run = order(&cluster, &["handover", "--to", &two.node()]).ended(0);
    assert!(run.out.contains("owns the collections already"), "{}", run.out);
    two.signal("TERM");
    assert_eq!(two.ends(), Some(0));
    follows(&scan, clients.written());
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(gateway.get("/collections/events/items").0, 503);
    order(&cluster, &["drain", &one.node(), "--undo"]).ended(0);
    one.says("owns");
    answered(&gateway, "/collections/events/items?limit=1");
    clients.check(&gateway);
    assert!(acts(&cluster).iter().any(|line| line["act"] == "undoDrain" && line["status"] == 200));
}

#[test]
fn processes_are_added_and_removed_while_clients_write() {
    let cluster = Cluster::new();
    let mut owner = cluster.owner("o0");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    let clients = Strict::default();
    clients.during(&gateway.url, |clients| {
        let mut scan = cluster.server_of(Version::This, "scan", "scan-0");
        for round in 1..=3 {
            let next = cluster.owner(&format!("o{round}"));
            let (other, added) =
                (cluster.server("gateway"), cluster.server_of(Version::This, "scan", &format!("scan-{round}")));
            stands_by(&cluster, &next);
            clients.goes_on();
            if round == 2 {
                order(&cluster, &["drain", &owner.node()]).ended(0);
            }
            owner.signal("TERM");
            assert_eq!(owner.ends(), Some(0));
            assert_eq!(scan.stop("TERM"), Some(0));
            next.says("owns");
            clients.goes_on();
            assert_eq!(other.stop("TERM"), Some(0));
            (owner, scan) = (next, added);
        }
    });
    owner.signal("KILL");
    let last = cluster.owner("last");
    last.says("owns");
    answered(&gateway, "/collections/events/items?limit=1");
    clients.check(&gateway);
}

/// Runs two program versions in a cluster: processes of the first start, those of the second join, and the first leave.
fn side_by_side(first: Version, second: Version) {
    let cluster = Cluster::new();
    // While one process has this version, the level of the bucket stays.
    let keeps = cluster.server_of(Version::This, "scan", "s0");
    let mut owner = cluster.owner_of(first, "o1");
    owner.says("owns");
    let before = (cluster.server_of(first, "gateway", "g1"), cluster.server_of(first, "scan", "s1"));
    before.0.create("events", SPEC);
    let clients = Strict::default();
    let mut next = cluster.owner_of(second, "o2");
    let after = (cluster.server_of(second, "gateway", "g2"), cluster.server_of(second, "scan", "s2"));
    stands_by(&cluster, &next);
    for gateway in [&before.0, &after.0] {
        // Through gateways of both versions, with an owner of either.
        clients.during(&gateway.url, |clients| {
            clients.goes_on();
            order(&cluster, &["handover", "--to", &next.node()]).ended(0);
            next.says("owns");
            std::mem::swap(&mut owner, &mut next);
            clients.goes_on();
            stands_by(&cluster, &next);
        });
    }
    // The first owns again, and has everything of the second.
    [&before.0, &after.0].into_iter().for_each(|gateway| clients.check(gateway));
    clients.during(&after.0.url, |clients| {
        clients.goes_on();
        owner.signal("TERM");
        assert_eq!(owner.ends(), Some(0));
        next.says("owns");
    });
    order(&cluster, &["status"]).ended(0);
    // Servers of both versions read what owners of both have written.
    next.signal("TERM");
    assert_eq!(next.ends(), Some(0));
    [&before.1, &after.1].into_iter().for_each(|scan| follows(scan, clients.written()));
    [before.0, before.1].into_iter().for_each(|server| assert_eq!(server.stop("TERM"), Some(0)));
    let last = cluster.owner_of(second, "o3");
    last.says("owns");
    answered(&after.0, "/collections/events/items?limit=1");
    clients.check(&after.0);
    if second == Version::This {
        return;
    }
    follows(&keeps, clients.written());
    assert_eq!(keeps.stop("TERM"), Some(0));
    // All live processes support the next level, and the bucket reaches it after a while. A process without it is
    // refused.
    last.says("the bucket is at level 2");
    let mut refused = cluster.owner_of(first, "o4");
    assert_eq!(refused.ends(), Some(2));
    let log = std::fs::read_to_string(cluster.path("o4.log")).unwrap();
    for words in ["--bucket", "this bucket is at level 2", "reads up to level 1"] {
        assert!(log.contains(words), "{words:?} in {log}");
    }
    clients.check(&after.0);
}

#[test]
fn a_newer_version_joins_an_older_one_and_takes_over() {
    side_by_side(Version::This, Version::Next);
}

#[test]
fn an_older_version_joins_a_newer_one_and_takes_over() {
    side_by_side(Version::Next, Version::This);
}
