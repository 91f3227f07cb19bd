//! Requests that wait for a stopped owner, and other requests meanwhile: real processes.

use crate::common::owners::{Cluster, answered};
use crate::common::{PATIENCE, Server};
use std::time::{Duration, Instant};

/// More than the gateway's slots, of which its settings allow four.
const WAITING: usize = 6;

/// Returns a metric of the gateway.
fn metric(gateway: &Server, name: &str) -> usize {
    let (status, text) = gateway.get("/metrics");
    assert_eq!(status, 200, "{text}");
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

#[test]
fn requests_that_wait_for_a_stopped_owner_leave_their_slots_to_others() {
    // The lease outlasts the pause, so that only the owner ends the waits.
    let cluster = Cluster::with("bucket", |_| "lease = \"30s\"\n[requests]\nrunning_max = 4\n".to_owned());
    let owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("ships", "*geom:Point:srid=4326");
    let items = "/collections/ships/items?limit=1&timeout=50000";
    answered(&gateway, items);
    owner.signal("STOP");
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(|| gateway.get(items))).collect();
        // Requests that need no owner need a slot. All of the others have arrived long before the last of these.
        for n in 0..100 {
            let (status, said) = gateway.get("/conformance");
            assert_eq!(status, 200, "{n}: {said}");
        }
        assert!(waiting.iter().all(|asked| !asked.is_finished()), "they wait for the owner");
        owner.signal("CONT");
        for asked in waiting {
            let (status, said) = asked.join().unwrap();
            assert_eq!(status, 200, "{said}");
        }
    });
    // None keeps a slot.
    let begun = Instant::now();
    while metric(&gateway, "meridian_requests_away") > 0 || metric(&gateway, "meridian_requests_running") > 0 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}
