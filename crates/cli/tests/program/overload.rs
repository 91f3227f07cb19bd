//! Load of several times a server's capacity, sent by the lab. Checks what must hold on a machine of any speed.

use crate::common::{self, Server, agent, as_holder, meridian, token};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of events queried, and their extent.
const EVENTS: u64 = 40_000;
/// The load, as a multiple of the throughput of two users who send one query after another.
const TIMES: f64 = 4.0;
/// Events per write.
const BATCH: u64 = 20;
const SPEC: &str = "kind:String,value:Long,time:Date,*geom:Point:srid=4326;meridian.id='given'";
const ARRIVALS: &str = "object:String,value:Double,time:Date,*geometry:Point;meridian.id='given'";

/// Queries of the heavy tenant: a quarter of all events each, sorted by time, and sums over all.
const HEAVY: [&str; 4] = [
    "/collections/events/items?f=ndjson&bbox=0,0,180,80&sortby=time&limit=10000",
    "/collections/events/items?f=ndjson&bbox=-180,0,0,80&sortby=time&limit=10000",
    "/collections/events/aggregate?function=count,sum(value)&window=P1D&by=kind",
    "/collections/events/density?bbox=-180,-80,180,80&width=128&height=64",
];
/// Queries of the light tenant.
const LIGHT: [&str; 2] = [
    "/collections/events/items?f=ndjson&bbox=10,10,14,14&sortby=time&limit=10000",
    "/collections/events/aggregate?function=count,sum(value)&bbox=-20,-20,20,20",
];

/// Returns events at whole minutes, so that no two have the same time, with whole numbers, whose sums are exact.
fn events() -> String {
    let mut lines = String::new();
    for n in 0..EVENTS {
        let feature = json!({"type": "Feature", "id": format!("e{n}"),
            "geometry": {"type": "Point", "coordinates": [(n * 7_919 % 36_000) as f64 / 100.0 - 180.0, (n * 104_729 % 16_000) as f64 / 100.0 - 80.0]},
            "properties": {"kind": format!("k{}", n % 5), "value": n % 97,
                "time": format!("2026-01-{:02}T{:02}:{:02}:00Z", 1 + n / 1_440, n / 60 % 24, n % 60)}});
        writeln!(lines, "{feature}").unwrap();
    }
    lines
}

/// Creates a tenant: its token, and its data on the server.
fn tenant(folder: &Path, server: &Server, name: &str, file: &Path) -> String {
    meridian(&["tenant", "create", name, "--data", folder.to_str().unwrap()]).ended(0);
    let token = token(folder, &["--tenant", name, "--role", "admin"]);
    for (collection, spec) in [("events", SPEC), ("arrivals", ARRIVALS)] {
        as_holder(&token, &["create", collection, "--schema", spec, "--url", &server.url]).ended(0);
    }
    as_holder(&token, &["load", "events", file.to_str().unwrap(), "--quiet", "--url", &server.url]).ended(0);
    token
}

fn get(url: &str, token: &str, path: &str) -> (u16, Vec<u8>) {
    let request = agent().get(format!("{url}{path}")).header("authorization", format!("Bearer {token}"));
    let mut response = request.call().unwrap();
    (response.status().as_u16(), response.body_mut().with_config().limit(u64::MAX).read_to_vec().unwrap())
}

/// Returns the digest of each query's result, by its path, in the form used by the lab.
fn digests(url: &str, asked: &[(&str, &[&'static str])]) -> BTreeMap<&'static str, String> {
    let mut found = BTreeMap::new();
    for (token, paths) in asked {
        for path in *paths {
            let (status, body) = get(url, token, path);
            assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
            assert!(body.len() > 40 && body == get(url, token, path).1, "{path}: {}", String::from_utf8_lossy(&body));
            found.insert(*path, Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect());
        }
    }
    found
}

/// The lab, its tenants and their queries.
struct Lab<'a> {
    folder: &'a Path,
    url: &'a str,
    /// By name of tenant, which is also that of its target.
    tokens: [(&'a str, &'a str); 2],
}

impl Lab<'_> {
    /// Runs a load of populations for some seconds; returns outcomes by population and request. Each run has its own
    /// seed, so that no event is written twice.
    fn run(
        &self,
        name: &str,
        seed: u64,
        seconds: f64,
        populations: &str,
    ) -> BTreeMap<(String, String), BTreeMap<String, u64>> {
        // Limits that no busy machine exceeds: the test is about the server, not the machine.
        let mut text = format!(
            "name = \"{name}\"\nseed = {seed}\n[limits]\nother_load = 1e3\nlate_ms = 1e6\n[phases]\nmeasured_s = {seconds}\n{populations}
            [generate.made]\nkind = \"event\"\nbox = [-180.0, -80.0, 180.0, 80.0]\nstart = \"2026-01-01T00:00:00Z\"\nend = \"2026-12-31T00:00:00Z\"\nbatch = {BATCH}\n
            [[request]]\nname = \"write\"\nmethod = \"POST\"\npath = \"/collections/arrivals/items\"\nheaders = {{ content-type = \"application/x-ndjson\" }}\nbody = \"{{made.ndjson}}\"\n"
        );
        for (tenant, _) in self.tokens {
            writeln!(
                text,
                "[[target]]\nname = \"{tenant}\"\nurl = \"{}\"\ntoken_env = \"TOKEN_{tenant}\"\ntimeout_s = 120",
                self.url
            )
            .unwrap();
        }
        for path in HEAVY.iter().chain(&LIGHT) {
            writeln!(
                text,
                "[[request]]\nname = \"{path}\"\npath = \"{path}\"\ncheck = {{ digests = \"digests.json\" }}"
            )
            .unwrap();
        }
        let scenario = self.folder.join(format!("{name}.toml"));
        std::fs::write(&scenario, text).unwrap();
        let out = self.folder.join(name);
        let args = ["lab", "run", scenario.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
        let mut command = common::command(&args);
        for (tenant, token) in self.tokens {
            command.env(format!("TOKEN_{tenant}"), token);
        }
        let ran: common::Run = command.output().unwrap().into();
        let json: Value = serde_json::from_str(&ran.ended(0).out).unwrap();
        let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for group in json["groups"].as_array().unwrap() {
            let key = |field: &str| group[field].as_str().unwrap_or_default().to_owned();
            let outcomes = found.entry((key("population"), key("request"))).or_default();
            for (outcome, count) in group["outcomes"].as_object().unwrap() {
                *outcomes.entry(outcome.clone()).or_insert(0) += count.as_u64().unwrap();
            }
        }
        found
    }
}

/// Returns a population that waits as long as it takes.
fn population(name: &str, tenant: &str, arrival: &str, requests: &[&str]) -> String {
    format!(
        "[[population]]\nname = \"{name}\"\ntarget = \"{tenant}\"\npatience_s = 120\nconnections = 2000\narrival = {{ {arrival} }}\nrequests = {}\n",
        json!(requests)
    )
}

/// A client beside the flood, until told to stop: each refusal must tell when to come back. Returns the number of
/// refusals, and the longest time told in seconds.
fn refused(url: &str, token: &str, stop: &AtomicBool) -> (u64, u64) {
    let (mut count, mut longest) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let request = agent().get(format!("{url}{}", HEAVY[0])).header("authorization", format!("Bearer {token}"));
        let mut response = request.call().unwrap();
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (after, kind) = (header("retry-after"), header("content-type"));
        let body = response.body_mut().with_config().limit(u64::MAX).read_to_vec().unwrap();
        if status != 200 {
            let text = String::from_utf8_lossy(&body);
            assert!(matches!(status, 429 | 503), "{status} {text}");
            let after = after.and_then(|after| after.parse::<u64>().ok()).unwrap_or_default();
            assert!(after >= 1, "{text}");
            longest = longest.max(after);
            assert_eq!(kind.as_deref(), Some("application/problem+json"), "{text}");
            count += 1;
        }
    }
    (count, longest)
}

#[test]
fn past_its_edge_a_server_answers_everyone_and_what_it_answers_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    token(&data, &["--role", "operator"]);
    let server = Server::start(&data);
    let file = folder.path().join("events.ndjson");
    std::fs::write(&file, events()).unwrap();
    let heavy = tenant(&data, &server, "heavy", &file);
    let light = tenant(&data, &server, "light", &file);
    let digests = digests(&server.url, &[(&heavy, &HEAVY), (&light, &LIGHT)]);
    std::fs::write(folder.path().join("digests.json"), serde_json::to_vec(&digests).unwrap()).unwrap();
    let lab = Lab { folder: folder.path(), url: &server.url, tokens: [("heavy", &heavy), ("light", &light)] };

    let asked: Vec<&str> = HEAVY.into_iter().chain(["write"]).collect();
    let alone = lab.run("alone", 1, 2.0, &population("users", "heavy", "kind = \"closed\", users = 2", &asked));
    let sound = |found: &BTreeMap<(String, String), BTreeMap<String, u64>>, of: &str| -> u64 {
        let mine = found.iter().filter(|((population, request), _)| population == of || request == of);
        mine.filter_map(|(_, outcomes)| outcomes.get("sound")).sum()
    };
    let capacity = sound(&alone, "users") as f64 / 2.0;
    // As many connections per second as a lab on the same processors can keep open.
    let rate = (TIMES * capacity).clamp(20.0, 2_000.0);

    let stop = AtomicBool::new(false);
    let (flood, (refused, longest)) = std::thread::scope(|scope| {
        let client = scope.spawn(|| refused(&server.url, &heavy, &stop));
        let populations = population("flood", "heavy", &format!("kind = \"poisson\", rate = {rate}"), &asked)
            + &population("few", "light", "kind = \"constant\", rate = 4", &LIGHT);
        let flood = lab.run("flood", 1_000, 8.0, &populations);
        stop.store(true, Ordering::Relaxed);
        (flood, client.join().unwrap())
    });
    println!("{capacity} a second alone, {rate} in the flood: {flood:?}, {refused} refusals beside it");
    // Immediately after the flood, for both.
    assert_eq!(get(&server.url, &light, LIGHT[0]).0, 200);
    assert_eq!(get(&server.url, &heavy, HEAVY[3]).0, 200);

    let mut turned_away = 0;
    for ((population, request), outcomes) in &flood {
        for (outcome, count) in outcomes.iter().filter(|(_, count)| **count > 0) {
            match (population.as_str(), outcome.as_str()) {
                (_, "sound") => {}
                ("flood", "refused") => turned_away += count,
                _ => panic!("{population}, {request}: {count} {outcome}"),
            }
        }
    }
    assert!(turned_away > 0 && sound(&flood, "flood") > 0 && sound(&flood, "few") > 0, "{flood:?}");
    assert!(refused > 0, "the flood was none");
    // Clients of a flood are told to return one after the other, not all within two seconds.
    assert!(longest > 2, "{refused} refusals, at most {longest} s");
    // Every acknowledged write is stored, and no refused one.
    let (_, body) = get(&server.url, &heavy, "/collections/arrivals/aggregate?function=count");
    let written = sound(&alone, "write") + sound(&flood, "write");
    assert_eq!(common::counted(&serde_json::from_slice(&body).unwrap()), written * BATCH);
    assert_eq!(server.stop("TERM"), Some(0));
}
