//! Slots of saved searches, divided among gateways and passed on: real processes.

use crate::common::owners::{Cluster, answered};
use crate::common::saved::{received, receiver, save, settle, spread, titles, until_received, write};
use crate::common::source::Source;
use crate::common::{PATIENCE, Server, agent, send};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Waits until a condition holds.
#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Three gateways, each with saved searches. One is stopped, one killed and one paused, and others replace them. Each
/// webhook gets everything, and nothing twice, except what was sent shortly before the kill.
#[test]
fn gateways_divide_the_saved_searches_and_nothing_is_lost_as_they_go_and_come() {
    let cluster = Cluster::with("bucket", |_| "[search]\nwebhook_private = true\n".to_owned());
    let owner = cluster.owner("owner");
    owner.says("owns");
    let [first, stopped, paused] = [(); 3].map(|()| cluster.server("gateway"));
    first.create("news", "title:String,*geom:Point:srid=4326");
    spread(&[&first, &stopped, &paused]);
    let mut hooks: Vec<(String, Source)> = Vec::new();
    for server in [&first, &stopped, &paused] {
        for _ in 0..3 {
            let hook = receiver();
            hooks.push((save(server, Some(&hook)).0, hook));
        }
    }
    for server in [&first, &stopped, &paused] {
        // Each runs some, once no slot moves any more.
        until(|| !server.get("/metrics").1.contains("\nmeridian_saved_searches 0\n"));
    }
    let mut ids: Vec<String> = hooks.iter().map(|(id, _)| id.clone()).collect();
    ids.sort();
    // Every gateway lists all of them, by pages too.
    for server in [&first, &stopped, &paused] {
        let (mut found, mut path) = (Vec::new(), "/saved-searches?limit=2".to_owned());
        loop {
            let page: Value = serde_json::from_str(&answered(server, &path)).unwrap();
            let some = page["saved_searches"].as_array().unwrap().iter();
            found.extend(some.map(|search| search["id"].as_str().unwrap().to_owned()));
            match page["links"][0]["href"].as_str() {
                Some(next) => path = next.strip_prefix(&server.url).unwrap().to_owned(),
                None => break,
            }
        }
        assert_eq!(found, ids);
        // Compression applies to the whole list, and not to the gateways' parts.
        let packed = || agent().get(format!("{}/saved-searches", server.url)).header("Accept-Encoding", "zstd").call();
        until(|| packed().unwrap().status().as_u16() == 200);
    }
    let reach_all = |at: &Server, name: &str, twice: &[String]| {
        let titles = titles(name, 4);
        titles.iter().for_each(|title| write(at, title));
        for (id, hook) in &hooks {
            let times = until_received(hook, &titles);
            for (title, times) in times {
                assert!(times == 1 || times == 2 && twice.contains(&title), "{name}: {title} {times} times at {id}");
            }
        }
        titles
    };
    let in_order = |when: &str| {
        for (id, hook) in &hooks {
            let numbers: Vec<u64> = received(hook).into_iter().map(|(number, _)| number).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{when}: {id} {numbers:?}");
        }
    };
    reach_all(&stopped, "before", &[]);
    assert_eq!(stopped.stop("TERM"), Some(0));
    reach_all(&first, "stopped", &[]);
    let killed = cluster.server("gateway");
    spread(&[&first, &paused, &killed]);
    let last = reach_all(&killed, "joined", &[]);
    killed.kill();
    let meanwhile = reach_all(&first, "killed", &last);
    in_order("killed");
    let twice = [last, meanwhile].concat();
    spread(&[&first, &paused]);
    // Otherwise the next gateway to go may not have recorded yet what it has resent.
    settle(&cluster);
    send(paused.pid(), "STOP");
    reach_all(&first, "paused", &twice);
    send(paused.pid(), "CONT");
    paused.said("lost the saved searches");
    spread(&[&first, &paused]);
    reach_all(&first, "woken", &twice);
    in_order("woken");
}
