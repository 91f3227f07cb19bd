//! Requests that wait for an owner that has stopped, and the requests of others meanwhile: real processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::owners::{Cluster, answered};
use common::{PATIENCE, Server};
use meridian_model::policy::groups::Groups;
use std::time::{Duration, Instant};

const GROUPS: u16 = 8;
/// More than the gateway has slots: its settings allow for four.
const WAITING: usize = 6;

/// A number of the gateway's metrics.
fn metric(gateway: &Server, name: &str) -> usize {
    let (status, text) = gateway.get("/metrics");
    assert_eq!(status, 200, "{text}");
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

#[test]
fn requests_that_wait_for_a_stopped_owner_leave_their_slots_to_others() {
    let settings = format!("groups = {GROUPS}\nlease = \"10s\"\n[requests]\nrunning_max = 4\n");
    let cluster = Cluster::with("bucket", |_| settings);
    let owners = [cluster.owner("o0"), cluster.owner("o1")];
    owners.iter().for_each(|owner| drop(owner.says("owns group")));
    let gateway = cluster.server("gateway");
    // A collection in each group: some are of the first owner, some of the other one.
    let groups = Groups::new(GROUPS).unwrap();
    let name = |group: u16| {
        let of = |name: &String| u16::from(groups.of("default", name, 0).number()) == group;
        (0..).map(|n| format!("c{n}")).find(of).unwrap()
    };
    let names: Vec<String> = (0..GROUPS).map(name).collect();
    let items = |name: &String| format!("/collections/{name}/items?limit=1");
    for name in &names {
        gateway.create(name, "*geom:Point:srid=4326");
        answered(&gateway, &items(name));
    }
    owners[0].signal("STOP");
    // Which of them are the stopped one's: they do not answer.
    let stopped = |name: &&String| gateway.get(&format!("{}&timeout=1s", items(name))).0 != 200;
    let (away, here): (Vec<&String>, Vec<&String>) = names.iter().partition(stopped);
    assert!(!away.is_empty() && !here.is_empty(), "each owner has some: {away:?} {here:?}");
    std::thread::scope(|scope| {
        for n in 0..WAITING {
            let path = items(away[n % away.len()]);
            let gateway = &gateway;
            scope.spawn(move || gateway.get(&path));
        }
        let begun = Instant::now();
        while metric(&gateway, "meridian_requests_away") < WAITING {
            assert!(begun.elapsed() < PATIENCE, "{} slots", metric(&gateway, "meridian_requests_slots"));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(metric(&gateway, "meridian_requests_slots") < WAITING);
        // Of the other owner's partitions, and of none.
        for path in [items(here[0]), "/conformance".to_owned(), format!("/collections/{}", here[0])] {
            let (status, said) = gateway.get(&path);
            assert_eq!(status, 200, "{path}: {said}");
        }
        owners[0].signal("CONT");
    });
    // All have ended, and none keeps a slot.
    let begun = Instant::now();
    while metric(&gateway, "meridian_requests_away") > 0 || metric(&gateway, "meridian_requests_running") > 0 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    answered(&gateway, &items(away[0]));
}
