//! Page tokens across changes of processes: real scan servers, owners and gateways come and go, and all pages show the
//! first snapshot.

use crate::common::batches::SPEC;
use crate::common::clients;
use crate::common::owners::Cluster;
use crate::common::{self, PATIENCE, Server, agent, meridian, send};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Scan servers serve gateways, and see writes soon.
const SCANS: &str = "staleness_max = \"1s\"\n[cluster.scan]\nlisten = \"127.0.0.1:0\"\n";
/// How long page tokens stay valid here.
const TOKENS: (&str, Duration) = ("10s", Duration::from_secs(10));
const EVENTS: usize = 400;
const ITEMS: &str = "/collections/events/items";

/// A page: status, snapshot, the numbers of its events, and the path of the next page.
#[derive(Debug, Clone, PartialEq)]
struct Page {
    status: u16,
    snapshot: String,
    numbers: Vec<u64>,
    next: Option<String>,
    body: Value,
}

fn page(server: &Server, path: &str) -> Page {
    let request = agent().get(format!("{}{path}", server.url)).header("Meridian-Timeout", "60000");
    let mut response = request.call().unwrap();
    let snapshot = response.headers().get("meridian-snapshot").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
    let events = body["features"].as_array().cloned().unwrap_or_default();
    let numbers = events.iter().map(|event| event["properties"]["n"].as_u64().unwrap()).collect();
    let links = body["links"].as_array().cloned().unwrap_or_default();
    let next = links.iter().find(|link| link["rel"] == "next").map(|link| link["href"].as_str().unwrap().to_owned());
    let next = next.map(|url| url.split_once("/collections/").map(|(_, rest)| format!("/collections/{rest}")).unwrap());
    Page { status, snapshot: snapshot.unwrap_or_default(), numbers, next, body }
}

#[track_caller]
fn becomes(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Writes events, and deletes some existing ones, so that merges have rows to drop.
fn disturb(gateway: &Server, turn: &mut usize) {
    *turn += 1;
    let mut body = String::new();
    for n in 0..50 {
        let n = EVENTS * *turn + n;
        let _ = writeln!(
            body,
            "{{\"batch\":\"b{turn}\",\"n\":{n},\"dtg\":\"2024-01-01T00:00:00Z\",\"geom\":{{\"type\":\"Point\",\"coordinates\":[{},{}]}}}}",
            n % 180,
            n % 85
        );
    }
    // Both may be refused while the data changes owners; the next turn repeats them.
    let _ = gateway.post(ITEMS, "application/x-ndjson", None, body.as_bytes());
    let some = format!(
        "{}{ITEMS}?filter=n%20BETWEEN%20{}%20AND%20{}",
        gateway.url,
        *turn * 7 % EVENTS,
        *turn * 7 % EVENTS + 6
    );
    let _ = clients::delete(&some);
    let newer = format!("{}{ITEMS}?filter=n%20%3E%3D%20{}", gateway.url, EVENTS * *turn + 10);
    let _ = clients::delete(&newer);
}

#[test]
fn pages_stay_those_of_the_first_snapshot_and_end_after_their_time() {
    let mut cluster = Cluster::with("bucket", |_| SCANS.to_owned());
    cluster.environment("MERIDIAN_TEST_SNAPSHOT_MEMORY", TOKENS.0);
    let first = cluster.owner("o1");
    first.says("owns");
    let (gateway, other) =
        (cluster.server_of(common::owners::Version::This, "gateway", "g1"), cluster.server("gateway"));
    meridian(&["create", "events", "--schema", SPEC, "--partitions", "2", "--url", &gateway.url]).ended(0);
    let mut body = String::new();
    for n in 0..EVENTS {
        let _ = writeln!(
            body,
            "{{\"batch\":\"a\",\"n\":{n},\"dtg\":\"2024-01-01T00:00:00Z\",\"geom\":{{\"type\":\"Point\",\"coordinates\":[{},{}]}}}}",
            n % 180,
            n % 85
        );
    }
    assert_eq!(gateway.post(ITEMS, "application/x-ndjson", None, body.as_bytes()).unwrap().0, 201);
    let scan = |name: &str| cluster.server_of(common::owners::Version::This, "scan", name);
    let mut servers = vec![scan("s1")];
    let known =
        |server: &Server, count: usize| server.get("/metrics").1.contains(&format!("meridian_scan_servers {count}\n"));
    becomes("both gateways know the scan server", || known(&gateway, 1) && known(&other, 1));
    let all = format!("{ITEMS}?limit=1000&consistency=eventual");
    becomes("the scan server has the events", || page(&gateway, &all).numbers.len() == EVENTS);
    let expected = page(&gateway, &all);
    let mut eventual = page(&gateway, &format!("{ITEMS}?limit=50&consistency=eventual"));
    let mut immediate = page(&other, &format!("{ITEMS}?limit=50"));
    assert_eq!(eventual.snapshot, expected.snapshot);
    assert_eq!(eventual.numbers, immediate.numbers);
    let mut numbers = eventual.numbers.clone();
    let (mut turn, begun) = (0, Instant::now());
    let mut owners = vec![first, cluster.owner("o2")];
    for step in 0.. {
        // Time passes between two pages, but no token is unused for longer than its validity.
        let kept = AtomicBool::new(true);
        let (last_eventual, last_immediate) = (eventual.next.clone().unwrap(), immediate.next.clone().unwrap());
        (eventual, immediate) = std::thread::scope(|scope| {
            let keeps = scope.spawn(|| {
                loop {
                    let goes_on = kept.load(Ordering::Relaxed);
                    // Immediate reads wait for an owner; pages are the same at any gateway.
                    let found = (page(&gateway, &last_eventual), page(&other, &last_immediate));
                    assert_eq!(found.0.status, 200, "{step}: {}", found.0.body);
                    assert!(matches!(found.1.status, 200 | 503), "{step}: {}", found.1.body);
                    if !goes_on && found.1.status == 200 {
                        return found;
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
            });
            (0..3).for_each(|_| disturb(&other, &mut turn));
            match step {
                1 => servers.push(scan("s2")),
                2 => becomes("the second scan server is known", || known(&gateway, 2)),
                3 => assert_eq!(servers.remove(0).stop("TERM"), Some(0)),
                4 => {
                    drop(owners.remove(0));
                    owners[0].says("owns");
                }
                _ => {}
            }
            std::thread::sleep(TOKENS.1 / 3);
            kept.store(false, Ordering::Relaxed);
            keeps.join().unwrap()
        });
        assert_eq!(eventual.numbers, immediate.numbers, "step {step}");
        numbers.extend(&eventual.numbers);
        if eventual.next.as_ref().and(immediate.next.as_ref()).is_none() {
            break;
        }
    }
    assert_eq!(numbers, expected.numbers, "in pages and at once");
    assert!(begun.elapsed() > 2 * TOKENS.1, "a token that nobody used would have ended: {:?}", begun.elapsed());
    // Without scan servers the owner responds, and the next owner knows of none. Then there are no requests for a
    // while.
    let shown = page(&gateway, &format!("{ITEMS}?limit=50&consistency=eventual"));
    let token = shown.next.unwrap();
    let shown = page(&gateway, &token);
    servers.into_iter().for_each(|server| assert_eq!(server.stop("TERM"), Some(0)));
    let last = cluster.owner("o3");
    drop(owners);
    last.says("owns");
    becomes("the last owner answers", || page(&gateway, &token).numbers == shown.numbers && known(&gateway, 0));
    becomes("the token ends", || {
        send(gateway.pid(), "STOP");
        let since = Instant::now();
        while since.elapsed() < TOKENS.1 * 3 / 2 {
            disturb(&other, &mut turn);
            std::thread::sleep(TOKENS.1 / 10);
        }
        send(gateway.pid(), "CONT");
        let found = page(&gateway, &token);
        match found.status {
            // Nothing was merged meanwhile, so it is unchanged.
            200 => assert_eq!(found.numbers, shown.numbers),
            status => {
                assert_eq!(status, 410, "{}", found.body);
                assert!(found.body["detail"].as_str().unwrap().contains("snapshot"), "{}", found.body);
            }
        }
        found.status == 410
    });
}
