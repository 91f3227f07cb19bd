//! Eventual reads of a gateway, served by scan servers: real processes that are killed, stopped, paused, overloaded, or
//! missing.

use crate::common::batches::SPEC;
use crate::common::clients::dawdler;
use crate::common::owners::{Cluster, answered};
use crate::common::{PATIENCE, Server, agent, counted, meridian, send};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Scan servers serve gateways, and see writes soon.
const SCANS: &str = "staleness_max = \"1s\"\n[cluster.scan]\nlisten = \"127.0.0.1:0\"\n";

fn scan(cluster: &Cluster, name: &str) -> Server {
    let arguments = cluster.arguments("scan", name);
    Server::start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Starts a gateway with its own settings.
fn gateway(cluster: &Cluster, name: &str, settings: &str) -> Server {
    let path = cluster.path(&format!("{name}.toml"));
    std::fs::write(&path, settings).unwrap();
    let mut arguments = cluster.arguments("gateway", name);
    *arguments.last_mut().unwrap() = path;
    Server::start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").1;
    // A server counts as soon as it serves gateways.
    let line = text.lines().find(|l| l.starts_with(&format!("{name} ")));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[track_caller]
fn becomes(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a response: status, snapshot, consistency and body.
fn asked(server: &Server, path: &str) -> (u16, String, String, String) {
    let request = agent().get(format!("{}{path}", server.url)).header("Meridian-Timeout", "60000");
    let mut response = request.call().unwrap();
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (snapshot, consistency) = (header("meridian-snapshot"), header("meridian-consistency"));
    let mut body = Vec::new();
    response.body_mut().with_config().limit(u64::MAX).reader().read_to_end(&mut body).unwrap();
    (response.status().as_u16(), snapshot, consistency, String::from_utf8_lossy(&body).into_owned())
}

/// Returns a batch as lines.
fn lines(batch: usize, events: usize) -> String {
    let mut body = String::new();
    for n in 0..events {
        let (lon, lat) = ((n * 7 + batch) % 360, (n * 3 + batch) % 170);
        let _ = writeln!(
            body,
            "{{\"batch\":\"b{batch}\",\"n\":{n},\"dtg\":\"2024-01-01T00:00:{:02}Z\",\"geom\":{{\"type\":\"Point\",\"coordinates\":[{},{}]}}}}",
            n % 60,
            lon as i64 - 180,
            lat as i64 - 85
        );
    }
    body
}

/// Repeated queries: rows in their order, rows by distance and by field, groups, counts, a page with its link.
const QUESTIONS: [&str; 6] = [
    "/collections/events/items?f=ndjson",
    "/collections/events/items?f=csv&near=10,10&limit=300",
    "/collections/events/items?f=csv&sortby=-n,batch&limit=400",
    "/collections/events/aggregate?function=count,sum(n)&by=batch",
    "/collections/events/density?width=8&height=4",
    "/collections/still/aggregate?function=count,max(n)",
];

fn eventual(path: &str) -> String {
    format!("{path}{}consistency=eventual", if path.contains('?') { '&' } else { '?' })
}

#[test]
fn scan_servers_are_killed_stopped_paused_and_added_and_no_question_fails() {
    let cluster = Cluster::with("bucket", |_| SCANS.to_owned());
    let owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    meridian(&["create", "still", "--schema", SPEC, "--partitions", "4", "--url", &gateway.url]).ended(0);
    let write = |collection: &str, batch: usize| {
        let path = format!("/collections/{collection}/items");
        let (status, said) = gateway.post(&path, "application/x-ndjson", None, lines(batch, 1_500).as_bytes()).unwrap();
        assert_eq!(status, 201, "{said}");
    };
    write("still", 0);
    let (first, second) = (scan(&cluster, "s1"), scan(&cluster, "s2"));
    becomes("two scan servers", || metric(&gateway, "meridian_scan_servers") == 2);
    // Results of immediate reads, by query and snapshot. There is a single writer, so none is missed.
    let shown: Mutex<HashMap<(usize, String), String>> = Mutex::default();
    let found: Mutex<Vec<(usize, String, String)>> = Mutex::default();
    let (stop, asked_so_far, batches) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let note = || {
        for (number, path) in QUESTIONS.iter().enumerate() {
            let (status, snapshot, consistency, body) = asked(&gateway, path);
            assert_eq!((status, consistency.as_str()), (200, "immediate"), "{path}: {body}");
            shown.lock().unwrap().insert((number, snapshot), body);
        }
    };
    note();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Few enough that responses stay small, and enough to mix writes with reads.
                if batches.load(Ordering::Relaxed) < 12 {
                    write("events", batches.fetch_add(1, Ordering::Relaxed));
                    note();
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        for reader in 0..3 {
            let (stop, found, asked_so_far, gateway) = (&stop, &found, &asked_so_far, &gateway);
            scope.spawn(move || {
                for number in (0..QUESTIONS.len()).cycle().skip(reader) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = eventual(QUESTIONS[number]);
                    let (status, snapshot, consistency, body) = asked(gateway, &path);
                    if (status, consistency.as_str()) != (200, "eventual") {
                        stop.store(true, Ordering::Relaxed);
                        panic!("{path}: {status} {body}");
                    }
                    found.lock().unwrap().push((number, snapshot, body));
                    asked_so_far.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let more = |what: &str| {
            let upto = asked_so_far.load(Ordering::Relaxed) + 30;
            becomes(what, || stop.load(Ordering::Relaxed) || asked_so_far.load(Ordering::Relaxed) >= upto);
        };
        let answers = |server: &Server| metric(server, "meridian_scan_turns_total") > 0;
        more("before");
        assert!(answers(&first) || answers(&second));
        first.kill();
        more("after one was killed");
        let third = scan(&cluster, "s3");
        becomes("the third answers", || stop.load(Ordering::Relaxed) || answers(&third));
        assert_eq!(second.stop("TERM"), Some(0));
        more("after one was stopped");
        let fourth = scan(&cluster, "s4");
        becomes("the fourth answers", || stop.load(Ordering::Relaxed) || answers(&fourth));
        send(third.pid(), "STOP");
        more("while one is paused");
        send(third.pid(), "CONT");
        more("at the end");
        assert!(!stop.swap(true, Ordering::Relaxed), "a question failed");
        // What is already known can be read without an owner too.
        owner.signal("KILL");
        for path in &QUESTIONS {
            let (status, _, _, body) = asked(&gateway, &eventual(path));
            assert_eq!(status, 200, "{path}: {body}");
        }
        assert_eq!(gateway.get(QUESTIONS[0]).0, 503);
    });
    assert_eq!(metric(&gateway, "meridian_scan_fallbacks_total"), 0, "there was a scan server at all times");
    assert!(metric(&gateway, "meridian_scan_failures_total") > 0);
    let (shown, found) = (shown.into_inner().unwrap(), found.into_inner().unwrap());
    let mut compared = [0; QUESTIONS.len()];
    for (number, snapshot, body) in &found {
        // A state from between two writes may only show up if those were in one group.
        if let Some(expected) = shown.get(&(*number, snapshot.clone())) {
            assert!(
                expected == body,
                "{} of {snapshot}: {} bytes instead of {}",
                QUESTIONS[*number],
                body.len(),
                expected.len()
            );
            compared[*number] += 1;
        }
    }
    assert!(compared.iter().all(|n| *n > 5), "{compared:?} of {}", found.len());
}

const ROWS: usize = 100_000;

#[test]
fn a_full_server_says_busy_another_answers_and_goes_on_where_one_was_killed() {
    let cluster = Cluster::with("bucket", |folder| {
        let profiles = folder.join("profiles.json");
        let plans = r#"[{"servers": "1", "busyTimeout": "50ms"}, {"servers": "100%", "busyTimeout": "10s"}]"#;
        let all = format!(r#"[{{"isDefault": true, "timeToWaitForScanServers": "0s", "attemptPlans": {plans}}}]"#);
        std::fs::write(&profiles, all).unwrap();
        let limits = "places = 1\nstarted = 1\nhedge_share = 0.0\n";
        format!(
            "{SCANS}{limits}profiles = {:?}\n[log]\nslow = \"20ms\"\n[answers]\nstall = \"1h\"\n",
            profiles.display().to_string()
        )
    });
    let owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("big", "n:Integer,note:String,*geom:Point:srid=4326");
    let filler = "x".repeat(20);
    let mut csv = String::from("n,note,lon,lat\n");
    for n in 0..ROWS {
        let _ = writeln!(csv, "{n},{filler},{},{}", n % 180, n % 90);
    }
    assert_eq!(gateway.post("/collections/big/items", "text/csv", None, csv.as_bytes()).unwrap().0, 201);
    let mut servers = vec![scan(&cluster, "s1"), scan(&cluster, "s2")];
    let count = "/collections/big/aggregate?function=count";
    becomes("both have the events", || {
        servers.iter().all(|server| counted(&serde_json::from_str(&answered(server, count)).unwrap()) == ROWS as u64)
    });
    becomes("two scan servers", || metric(&gateway, "meridian_scan_servers") == 2);
    let mut reader =
        dawdler(gateway.address().parse().unwrap(), "/collections/big/items?f=ndjson&consistency=eventual");
    let mut status = String::new();
    reader.read_line(&mut status).unwrap();
    assert!(status.contains(" 200 "), "{status}");
    let started = |server: &Server| metric(server, "meridian_scan_turns_started");
    becomes("one is full", || servers.iter().map(started).sum::<u64>() == 1);
    let (status, _, _, body) = asked(&gateway, &eventual(count));
    assert_eq!((status, counted(&serde_json::from_str(&body).unwrap())), (200, ROWS as u64));
    becomes("the other one is free again", || servers.iter().map(started).sum::<u64>() == 1);
    let full = servers.iter().position(|server| started(server) == 1).unwrap();
    assert!(metric(&servers[full], "meridian_scan_turns_busy_total") > 0);
    assert!(metric(&gateway, "meridian_scan_busy_total") > 0);
    // Lines of one kind are written once a second.
    becomes("the slow request names its attempts", || {
        assert_eq!(asked(&gateway, &eventual(count)).0, 200);
        let log = gateway.log();
        log.contains(": busy after ") && log.contains(": done after ")
    });
    // The reader's server is killed: another one continues after the last row, on the same snapshot.
    servers.remove(full).kill();
    let body = rest(&mut reader);
    let mut numbers: Vec<usize> = body.lines().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers.len(), ROWS);
    assert!(numbers.into_iter().eq(0..ROWS), "rows are missing, or were given twice");
}

/// Returns the number of an event.
fn number(line: &str) -> usize {
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    event["properties"]["n"].as_u64().unwrap() as usize
}

/// Returns the rest of a response, which must be complete: header lines, then chunks.
fn rest(reader: &mut BufReader<TcpStream>) -> String {
    let line = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    while !line(reader).is_empty() {}
    let mut body = Vec::new();
    loop {
        let size = line(reader);
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("the answer was broken off: {size:?}"));
        let from = body.len();
        body.resize(from + size, 0);
        reader.read_exact(&mut body[from..]).unwrap();
        assert_eq!(line(reader), "");
        if size == 0 {
            return String::from_utf8(body).unwrap();
        }
    }
}

#[test]
fn without_a_scan_server_each_rule_does_what_it_says() {
    let cluster = Cluster::with("bucket", |_| SCANS.to_owned());
    let owner = cluster.owner("owner");
    owner.says("owns");
    let rule =
        |name: &str, more: &str| gateway(&cluster, name, &format!("[cluster.scan]\nabsent = \"{name}\"\n{more}"));
    let wait = rule("wait", "");
    wait.create("events", SPEC);
    let (status, said) =
        wait.post("/collections/events/items", "application/x-ndjson", None, lines(0, 10).as_bytes()).unwrap();
    assert_eq!(status, 201, "{said}");
    let count = eventual("/collections/events/aggregate?function=count");
    let fail = rule("fail", "");
    let (status, _, _, said) = asked(&fail, &count);
    assert!(status == 503 && said.contains("no scan server"), "{status} {said}");
    assert_eq!(metric(&fail, "meridian_scan_refusals_total"), 1);
    // Immediate reads need no scan server.
    assert_eq!(fail.get("/collections/events/aggregate?function=count").0, 200);
    let fallback = rule("fallback", "fallback_per_second = 0.001\nfallback_burst = 2\n");
    for _ in 0..2 {
        let (status, _, consistency, said) = asked(&fallback, &count);
        assert_eq!((status, consistency.as_str()), (200, "eventual"), "{said}");
        assert_eq!(counted(&serde_json::from_str(&said).unwrap()), 10);
    }
    let (status, _, _, said) = asked(&fallback, &count);
    assert!(status == 503 && said.contains("takes no further question"), "{status} {said}");
    assert_eq!(metric(&fallback, "meridian_scan_fallbacks_total"), 2);
    for (path, field) in [
        (format!("{count}&scan_type="), "scan_type"),
        ("/collections/events/aggregate?function=count&scan_type=x".to_owned(), "scan_type"),
        ("/collections/events/density?consistency=strong".to_owned(), "consistency"),
    ] {
        let (status, _, _, said) = asked(&fail, &path);
        assert!(status == 400 && said.contains(field), "{path}: {status} {said}");
    }
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| asked(&wait, &count));
        becomes("it waits", || metric(&wait, "meridian_scans_total") > 0);
        let server = scan(&cluster, "late");
        let (status, _, _, said) = asking.join().unwrap();
        assert_eq!(status, 200, "{said}");
        assert!(metric(&server, "meridian_scan_turns_total") > 0);
    });
    let bucket = format!("file://{}", cluster.path("bucket"));
    let late = scan(&cluster, "status");
    becomes("the status names it", || {
        let run = meridian(&["cluster", "status", "--bucket", &bucket, "--json"]).ended(0);
        let status: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        let readers = status["readers"].as_array().unwrap().clone();
        readers.iter().any(|one| one["scan"]["group"] == "default" && one["scan"]["waiting"] == 0)
    });
    assert_eq!(late.stop("TERM"), Some(0));
}

#[test]
fn scan_servers_that_follow_the_log_show_what_is_not_flushed() {
    let settings = "staleness_max = \"1h\"\n[cluster.scan]\nlisten = \"127.0.0.1:0\"\nfollow_log = true\n";
    let cluster = Cluster::with("bucket", |_| settings.to_owned());
    let owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    meridian(&["create", "events", "--schema", SPEC, "--partitions", "4", "--url", &gateway.url]).ended(0);
    let _scan = scan(&cluster, "s1");
    becomes("a scan server", || metric(&gateway, "meridian_scan_servers") == 1);
    let of = |path: &str| {
        let (status, _, consistency, body) = asked(&gateway, path);
        assert_eq!(status, 200, "{path}: {body}");
        (consistency, body)
    };
    let write = |batch: usize| {
        let path = "/collections/events/items";
        becomes("a write", || {
            let sent =
                gateway.post(path, "application/x-ndjson", Some(&format!("k{batch}")), lines(batch, 300).as_bytes());
            sent.is_ok_and(|(status, _)| matches!(status, 200 | 201))
        });
        for path in
            ["/collections/events/aggregate?function=count,sum(n)&by=batch", "/collections/events/items?f=ndjson"]
        {
            let (_, now) = of(path);
            // Nothing is flushed for an hour.
            becomes("the write at a scan server", || of(&eventual(path)) == ("eventual".to_owned(), now.clone()));
        }
    };
    (0..3).for_each(write);
    // The next owner's part of the log follows a fence. It has flushed what it replayed, so this covers manifest and
    // log together.
    let next = cluster.owner("next");
    owner.signal("KILL");
    next.says("owns");
    (3..6).for_each(write);
}
