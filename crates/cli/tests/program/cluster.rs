//! A cluster over a bucket, as real processes. Owners are killed, paused and stopped while clients write. Gateways and
//! read-only servers give the same responses as a single process.

use crate::common::batches::{Batches, SPEC};
use crate::common::owners::{Cluster, answered};
use crate::common::{PATIENCE, Random, Run, Server, agent, as_holder, counted, data, meridian, post_with, token};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 3;

#[test]
fn owners_are_killed_paused_and_stopped_and_nothing_acknowledged_is_lost() {
    let cluster = Cluster::new();
    let mut random = Random::new();
    let mut owner = cluster.owner("o0");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    let batches = Batches::default();
    for (round, how) in ["KILL", "STOP", "TERM", "KILL"].into_iter().enumerate() {
        let next = cluster.owner(&format!("o{}", round + 1));
        next.says("waiting: the owner is");
        let stop = AtomicBool::new(false);
        let before = batches.acknowledged();
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                let random = Random(random.next() | 1);
                scope.spawn(|| batches.write(&gateway.url, &stop, random));
            }
            while batches.acknowledged() < before + 3 {
                std::thread::sleep(Duration::from_millis(20));
            }
            owner.signal(how);
            next.says("owns");
            let taken = batches.acknowledged();
            let begun = Instant::now();
            while batches.acknowledged() < taken + 3 {
                assert!(begun.elapsed() < PATIENCE, "no write after {how}");
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::Relaxed);
        });
        match how {
            // Paused for longer than its lease: its memory no longer counts, and it reports that.
            "STOP" => {
                owner.signal("CONT");
                owner.says("lost");
                owner.says("waiting: the owner is");
                owner.signal("TERM");
                assert_eq!(owner.ends(), Some(0));
            }
            "TERM" => assert_eq!(owner.ends(), Some(0)),
            _ => assert_eq!(owner.ends(), None),
        }
        owner = next;
        answered(&gateway, "/collections/events/items?limit=1");
        batches.check(&gateway, how);
        batches.resend(&gateway.url);
        batches.check(&gateway, &format!("{how}, sent again"));
    }
    // A read-only server has everything once the last owner has flushed.
    let scan = cluster.server("scan");
    owner.signal("TERM");
    assert_eq!(owner.ends(), Some(0));
    let begun = Instant::now();
    while counted(&scan.json("/collections/events/aggregate?function=count"))
        < batches.sent().values().map(|b| b.0).sum()
    {
        assert!(begun.elapsed() < PATIENCE, "the server that reads does not follow");
        std::thread::sleep(Duration::from_millis(50));
    }
    batches.check(&scan, "the end");
    let (status, said) = scan.post("/collections/events/items", "application/x-ndjson", None, b"{}").unwrap();
    assert!(status == 405 && said.contains("send changes of collections and events to a gateway"), "{status} {said}");
    // While there is no owner, a gateway reports that.
    let (status, said) = gateway.get("/collections/events/items");
    assert_eq!(status, 503, "{said}");
    let back = cluster.owner("back");
    back.says("owns");
    answered(&gateway, "/collections/events/items?limit=1");
    batches.check(&gateway, "the return");
}

/// Returns a response without the parts that differ between two servers: their addresses, and the times of the
/// responses.
fn plain(server: &Server, path: &str) -> String {
    let body = answered(server, path).replace(&server.url, "http://server");
    let Ok(Value::Object(mut answer)) = serde_json::from_str(&body) else { return body };
    for key in ["timeStamp", "links"] {
        answer.remove(key);
    }
    Value::Object(answer).to_string()
}

/// Returns the features of all pages.
fn pages(server: &Server, path: &str) -> Vec<Value> {
    let (mut found, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next {
        let page: Value = serde_json::from_str(&answered(server, &path)).unwrap();
        found.extend(page["features"].as_array().unwrap().iter().cloned());
        let links = page["links"].as_array().unwrap();
        let link = links.iter().find(|link| link["rel"] == "next");
        next = link.map(|link| link["href"].as_str().unwrap().replace(&server.url, ""));
    }
    found
}

#[test]
fn answers_of_a_cluster_equal_those_of_one_process() {
    let cluster = Cluster::new();
    let mut owner = cluster.owner("owner");
    owner.says("owns");
    let (alone, gateway) = (Server::start(Path::new(&cluster.path("alone"))), cluster.server("gateway"));
    let file = data("usgs-earthquakes/earthquakes.csv.zst").display().to_string();
    for server in [&alone, &gateway] {
        meridian(&["load", "quakes", &file, "--url", &server.url]).ended(0);
    }
    let about = "/collections/quakes";
    let asked = [
        format!("{about}/schema"),
        format!("{about}/items?f=csv&sortby=-mag,id&limit=500"),
        format!("{about}/items?f=ndjson&bbox=-130,30,-110,50&sortby=id&limit=200"),
        format!("{about}/items?filter=mag%3E5.5&sortby=id&limit=1000"),
        format!("{about}/aggregate?function=count,min(mag),max(mag)&window=P1D"),
        format!("{about}/aggregate?function=count&by=net"),
        format!("{about}/near?lon=-118&lat=34&radius=200km&limit=20"),
        format!("{about}/tiles/WebMercatorQuad/3/3/1"),
        format!("{about}/items?bbox=nonsense"),
    ];
    let compare = |server: &Server| {
        for path in &asked {
            let (expected, found) = (alone.get(path), server.get(path));
            assert_eq!(expected.0, found.0, "{path}: {} beside {}", expected.1, found.1);
            if expected.0 == 200 {
                assert_eq!(plain(&alone, path), plain(server, path), "{path}");
            }
        }
        let ids = |server: &Server| {
            let mut ids: Vec<Value> =
                pages(server, &format!("{about}/items?limit=700")).iter().map(|f| f["id"].clone()).collect();
            ids.sort_by_key(Value::to_string);
            ids
        };
        let (expected, found) = (ids(&alone), ids(server));
        assert!(expected.len() > 1_000, "{}", expected.len());
        assert_eq!(expected, found);
    };
    compare(&gateway);
    owner.signal("TERM");
    assert_eq!(owner.ends(), Some(0));
    let scan = cluster.server("scan");
    compare(&scan);
}

/// Returns the status of a response to the holder of a token; an empty token sends none.
fn status(server: &Server, token: &str, path: &str) -> u16 {
    let mut request = agent().get(format!("{}{path}", server.url));
    if !token.is_empty() {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    request.call().unwrap().status().as_u16()
}

#[track_caller]
fn becomes(expected: u16, server: &Server, token: &str, path: &str) {
    let begun = Instant::now();
    while status(server, token, path) != expected {
        assert!(begun.elapsed() < PATIENCE, "{path}: {} instead of {expected}", status(server, token, path));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the last word printed by `token create`.
fn made(run: Run) -> String {
    run.ended(0).out.split_whitespace().last().unwrap().to_owned()
}

#[test]
fn tokens_lie_in_the_bucket_and_count_at_every_server_and_after_a_takeover() {
    let cluster = Cluster::new();
    let bucket = format!("file://{}", cluster.path("bucket"));
    // The first owner has records in its folder, from before there was a bucket.
    let operator = token(Path::new(&cluster.path("o0")), &["--role", "operator"]);
    let owner = cluster.owner("o0");
    owner.says("moved 1 records");
    owner.says("owns");
    let next = cluster.owner("o1");
    next.says("waiting: the owner is");
    let servers = [cluster.server("gateway"), cluster.server("gateway"), cluster.server("scan")];
    for server in &servers {
        assert_eq!((status(server, "", "/collections"), status(server, &operator, "/collections")), (401, 200));
    }
    let made_over = |options: &[&str]| made(meridian(&[&["token", "create", "--role", "reader"], options].concat()));
    // Created in the bucket while servers run, it counts at all of them; revoked at one, it counts at none.
    let reader = made_over(&["--bucket", &bucket]);
    servers.iter().for_each(|server| becomes(200, server, &reader, "/collections"));
    let id = reader.split('_').nth(1).unwrap();
    as_holder(&operator, &["token", "revoke", id, "--url", &servers[0].url]).ended(0);
    servers.iter().for_each(|server| becomes(401, server, &reader, "/collections"));
    // Without an owner, tokens still count, and can be created.
    owner.signal("KILL");
    assert_eq!((status(&servers[0], &operator, "/tokens"), status(&servers[1], &reader, "/tokens")), (200, 401));
    let while_away = made(as_holder(&operator, &["token", "create", "--role", "reader", "--url", &servers[1].url]));
    assert_eq!(status(&servers[1], &while_away, "/tokens"), 403, "a reader, and known");
    next.says("owns");
    for server in &servers {
        becomes(200, server, &while_away, "/collections");
        assert_eq!((status(server, &operator, "/collections"), status(server, "", "/collections")), (200, 401));
    }
    let acts = meridian(&["audit", "--bucket", &bucket]).ended(0).out;
    for act in ["moveRecords", "createToken", "revokeToken"] {
        assert!(acts.contains(act), "{act}: {acts}");
    }
    // Records in the folder of a later owner are ignored in favour of the bucket's.
    let stranger = token(Path::new(&cluster.path("o2")), &["--role", "operator"]);
    let last = cluster.owner("o2");
    last.says("waiting: the owner is");
    next.signal("TERM");
    last.says("the tokens, tenants, users and saved searches in");
    last.says("owns");
    becomes(200, &servers[0], &operator, "/collections");
    assert_eq!(status(&servers[0], &stranger, "/collections"), 401);
}

#[test]
fn tokens_in_the_folder_of_a_server_that_only_reads_do_not_count_and_do_not_leave_it_open() {
    let cluster = Cluster::new();
    let stranger = token(Path::new(&cluster.path("scan")), &["--role", "operator"]);
    let arguments = cluster.arguments("scan", "scan");
    let serve = ["serve", "--listen", "127.0.0.1:0"].into_iter().chain(arguments.iter().map(String::as_str));
    meridian(&serve.collect::<Vec<_>>()).ended(2).says(&["--data", "the bucket has none", "token create"]);
    let bucket = format!("file://{}", cluster.path("bucket"));
    let operator = made(meridian(&["token", "create", "--role", "operator", "--bucket", &bucket]));
    let scan = cluster.server("scan");
    scan.said("are not used: those in the bucket count");
    assert_eq!((status(&scan, &operator, "/collections"), status(&scan, &stranger, "/collections")), (200, 401));
    // The owner may have more than this server shows.
    let bearer = [("Authorization", format!("Bearer {operator}"))];
    let (status, said) = post_with(&scan.url, "/backup", "application/json", &bearer, b"{}").unwrap();
    assert!((400..500).contains(&status) && said.contains("ask a gateway"), "{status} {said}");
}

#[test]
fn the_owner_of_a_bucket_gets_in_before_there_is_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = format!("file://{}", folder.path().join("b").display());
    meridian(&["token", "list", "--bucket", &bucket]).ended(2).says(&["there is no folder"]);
    let operator = made(meridian(&["token", "create", "--role", "operator", "--bucket", &bucket]));
    let listed = meridian(&["token", "list", "--bucket", &bucket]).ended(0).out;
    assert!(listed.contains(operator.split('_').nth(1).unwrap()) && listed.contains("operator"), "{listed}");
    meridian(&["tenant", "create", "harbour", "--bucket", &bucket]).ended(0);
    meridian(&["tenant", "suspend", "harbour", "--bucket", &bucket]).ended(0);
    meridian(&["tenant", "delete", "harbour", "--bucket", &bucket]).ended(0);
    meridian(&["token", "list", "--bucket", "s3://b"]).ended(2).says(&["--bucket s3://b"]);
    meridian(&["token", "list", "--bucket", &bucket, "--data", "x"]).ended(2).says(&["--data"]);
    // Secrets are not in it, and other callers cannot read it.
    let secret = operator.rsplit('_').next().unwrap();
    let mut folders = vec![folder.path().join("b")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let held = std::fs::read(&path).unwrap();
                assert!(!String::from_utf8_lossy(&held).contains(secret), "{}", path.display());
            }
        }
    }
}

/// Sends a GET with this `Meridian-After`. Returns the status, the age in seconds, the body, and whether it shows
/// flushed data only.
fn asked_after(server: &Server, path: &str, after: &str) -> (u16, u64, String, bool) {
    let request = agent().get(format!("{}{path}", server.url)).header("Meridian-After", after);
    let mut response = request.header("Meridian-Timeout", "20000").call().unwrap();
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (age, consistency, snapshot) = (header("age"), header("meridian-consistency"), header("meridian-snapshot"));
    let status = response.status().as_u16();
    assert!(status != 200 || snapshot.len() == 13, "{path}: {snapshot:?}");
    let body = response.body_mut().read_to_string().unwrap();
    (status, age.parse().unwrap_or(u64::MAX), body, consistency == "eventual")
}

#[test]
fn a_server_that_only_reads_says_how_old_its_answers_are_and_waits_for_a_write() {
    let cluster = Cluster::new();
    let settings = "[cluster]\nlease = \"1s\"\nstaleness_max = \"1s\"\n";
    std::fs::write(cluster.path("settings.toml"), settings).unwrap();
    let mut owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    let scan = cluster.server("scan");
    answered(&scan, "/collections/events");
    let batches = Batches::default();
    let write = |batch: &str| {
        let (status, said) = batches.send(&gateway.url, batch, 1).unwrap();
        assert_eq!(status, 201, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        said["position"].as_str().unwrap().to_owned()
    };
    let aggregate = "/collections/events/aggregate?function=count";
    // A reader's own writes, on a server that has only flushed data.
    for n in 1..=2 {
        let position = write(&format!("b{n}"));
        for path in ["/collections/events/items?f=csv", aggregate] {
            let (status, _, body, eventual) = asked_after(&scan, path, &position);
            assert_eq!((status, eventual), (200, true), "{path}: {body}");
            let (status, age, _, eventual) = asked_after(&gateway, path, &position);
            assert!((status, eventual) == (200, false) && age < 5, "{path}: {status}, {age} s old");
        }
        assert_eq!(counted(&scan.json(aggregate)), n);
    }
    assert_eq!(scan.get("/readyz").0, 200, "it is ready for reads");
    let (status, said) = scan
        .post("/saved-searches", "application/json", None, br#"{"name":"n","question":{"keywords":"flood"}}"#)
        .unwrap();
    assert!(status == 400 && said.contains("at a gateway"), "{status} {said}");
    let ages_to = |right: &dyn Fn(u64) -> bool| {
        let begun = Instant::now();
        loop {
            let (status, age, said, _) = asked_after(&scan, aggregate, "1");
            assert_eq!(status, 200, "{said}");
            if right(age) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{age} s old");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    // No more writes. However long ago the last one was, the server knows that it has everything.
    std::thread::sleep(Duration::from_secs(4));
    ages_to(&|age| age <= 3);
    // A position that was never written is not reached.
    let request = agent().get(format!("{}{aggregate}&timeout=300", scan.url)).header("Meridian-After", "1000000");
    let mut response = request.call().unwrap();
    let said = response.body_mut().read_to_string().unwrap();
    assert_eq!(response.status().as_u16(), 503, "{said}");
    assert!(said.contains("1000000") && said.contains("gateway"), "{said}");
    let (status, said) = scan.get("/collections/events/items?consistency=immediate");
    assert!(status == 400 && said.contains("eventual"), "{status} {said}");
    // Without an owner it keeps responding, and reports a growing age.
    owner.signal("KILL");
    assert_eq!(owner.ends(), None);
    ages_to(&|age| age >= 4);
}

#[test]
fn what_a_role_needs_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = format!("file://{}", folder.path().join("b").display());
    for (arguments, words) in [
        (vec!["--role", "king"], "expected all, gateway, owner or scan"),
        (vec!["--role", "owner"], "--log bucket"),
        (vec!["--role", "owner", "--log", "nats://here"], "cluster.nats.urls"),
        (vec!["--role", "owner", "--log", "bucket"], "--bucket file://DIR"),
        (vec!["--role", "scan", "--log", "bucket", "--bucket", "s3://events"], "--bucket s3://events"),
        (vec!["--role", "gateway", "--log", "bucket", "--bucket", &bucket, "--ephemeral"], "--ephemeral"),
        (vec!["--bucket", &bucket], "--role gateway"),
        (vec!["--role", "owner", "--log", "bucket", "--bucket", &bucket, "--flight", "0.0.0.0:0"], "--flight"),
    ] {
        let listen: &[&str] = &["serve", "--listen", "127.0.0.1:0"];
        meridian(&[listen, &arguments].concat()).ended(2).says(&[words]);
    }
}
