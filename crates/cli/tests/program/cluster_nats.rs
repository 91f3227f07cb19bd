//! A cluster with its log in a real NATS server. Owners are killed and paused, and a server is killed, while clients
//! write.

use crate::common::batches::{Batches, SPEC};
use crate::common::nats::Nats;
use crate::common::owners::{Cluster, answered};
use crate::common::up::Up;
use crate::common::{self, PATIENCE, Random, command, meridian, send};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 3;

fn cluster(sync: &str, more: &str) -> (Cluster, Nats) {
    let mut nats = None;
    let cluster = Cluster::with("nats", |folder| {
        let server = nats.insert(Nats::start(folder, sync));
        format!("[cluster.nats]\nurls = [\"{}\"]\n{}\n", server.url, more.replace("MONITOR", &server.monitor))
    });
    (cluster, nats.unwrap())
}

/// Waits until three more batches than `than` are acknowledged.
#[track_caller]
fn more(batches: &Batches, than: usize, when: &str) {
    let begun = Instant::now();
    while batches.acknowledged() < than + 3 {
        assert!(begun.elapsed() < PATIENCE, "no write {when}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn owners_and_the_server_are_killed_and_paused_and_nothing_acknowledged_is_lost() {
    let (cluster, mut nats) = cluster("always", "monitor = [\"MONITOR\"]");
    let mut random = Random::new();
    let mut owner = cluster.owner("o0");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    let batches = Batches::default();
    for (round, how) in ["KILL", "STOP", "server", "KILL"].into_iter().enumerate() {
        let next = (how != "server").then(|| cluster.owner(&format!("o{}", round + 1)));
        next.iter().for_each(|next| drop(next.says("waiting: the owner is")));
        let stop = AtomicBool::new(false);
        let before = batches.acknowledged();
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                let random = Random(random.next() | 1);
                scope.spawn(|| batches.write(&gateway.url, &stop, random));
            }
            more(&batches, before, "at first");
            match &next {
                Some(next) => {
                    owner.signal(how);
                    next.says("owns");
                }
                None => nats.restart(),
            }
            more(&batches, batches.acknowledged(), how);
            stop.store(true, Ordering::Relaxed);
        });
        if how == "STOP" {
            // Paused for longer than its lease: its memory no longer counts, and it reports that.
            owner.signal("CONT");
            owner.says("lost");
            owner.says("waiting: the owner is");
            owner.signal("TERM");
            assert_eq!(owner.ends(), Some(0));
        }
        owner = next.unwrap_or(owner);
        answered(&gateway, "/collections/events/items?limit=1");
        batches.check(&gateway, how);
        batches.resend(&gateway.url);
        batches.check(&gateway, &format!("{how}, sent again"));
    }
    // From the bucket and the stream only.
    owner.signal("KILL");
    owner.ends();
    let last = cluster.owner("last");
    last.says("owns");
    answered(&gateway, "/collections/events/items?limit=1");
    batches.check(&gateway, "the end");
}

#[test]
fn a_server_that_does_not_sync_each_message_is_refused_unless_that_is_allowed() {
    for (sync, more, words) in
        [("2m", "monitor = [\"MONITOR\"]", "does not sync each message"), ("always", "", "cannot be seen")]
    {
        let (cluster, nats) = cluster(sync, more);
        let mut serve = command(&["serve", "--flight", "127.0.0.1:0"]);
        let refused = serve.args(cluster.arguments("owner", "owner")).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        for word in [words, "sync_interval: always", "cluster.nats.allow_unsynced"] {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
        let settings = format!("[cluster.nats]\nurls = [\"{}\"]\nallow_unsynced = true\n", nats.url);
        std::fs::write(cluster.path("settings.toml"), settings).unwrap();
        cluster.owner("allowed").says("owns");
        let log = std::fs::read_to_string(cluster.path("allowed.log")).unwrap();
        assert!(log.contains("a power failure may lose acknowledged writes"), "{log}");
    }
}

#[test]
fn a_cluster_for_trial_has_its_log_in_three_servers() {
    let folder = tempfile::tempdir().unwrap();
    let program = common::nats::program().display().to_string();
    let more = ["--log", "nats", "--nats-server", &program];
    let up = Up::start(folder.path(), 3, &more);
    assert_eq!(up.of("log").len(), 3);
    for server in up.of("log") {
        // For clients of this machine that know the password.
        let (mut said, address) = (String::new(), server["address"].as_str().unwrap().to_owned());
        BufReader::new(TcpStream::connect(&address).unwrap()).read_line(&mut said).unwrap();
        assert!(address.starts_with("127.0.0.1:") && said.contains("\"auth_required\":true"), "{address}: {said}");
        let settings = folder.path().join(server["name"].as_str().unwrap()).join("nats.conf");
        assert_eq!(settings.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let password = folder.path().join("nats-password");
    assert_eq!(password.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    meridian(&["create", "events", "--schema", SPEC, "--url", &up.url]).ended(0);
    let batches = Batches::default();
    up.write(&batches, "b1");
    // One of three servers can be missing, and is restarted.
    let server = &up.of("log")[0];
    send(u32::try_from(server["pid"].as_u64().unwrap()).unwrap(), "KILL");
    up.write(&batches, "b2");
    up.of("scan").iter().for_each(|scan| up.finds(scan, 2));
    let status = up.becomes("flushed", |status| status["collections"][0]["position"] == 2);
    assert_eq!((status["log"].as_str(), status["log_error"].as_str()), (Some("nats"), None));
    up.stop("TERM");
    let at = folder.path().display().to_string();
    meridian(&["cluster", "up", "--nodes", "1", "--dir", &at]).ended(2).says(&["their number stays: expected 3"]);
}

#[test]
fn a_port_that_another_program_takes_during_the_start_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    // A server that, the first time, waits until its port is taken.
    let (program, server) = (folder.path().join("server"), common::nats::program());
    let taken = folder.path().join("taken");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *nats.conf*) until [ -e {} ]; do sleep 0.1; done;; esac\nexec {} \"$@\"\n",
        taken.display(),
        server.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let nodes = folder.path().join("cluster.json");
    let other = std::thread::spawn(move || {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let read = std::fs::read_to_string(&nodes).unwrap_or_default();
            let found: Value = serde_json::from_str(&read).unwrap_or_default();
            let log = found["nodes"].as_array().into_iter().flatten().find(|node| node["name"] == "log-1");
            if let Some(address) = log.and_then(|log| log["address"].as_str()) {
                let listener = std::net::TcpListener::bind(address).unwrap();
                std::fs::write(&taken, "").unwrap();
                return (listener, address.to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no plan is written");
    });
    let up = Up::start(folder.path(), 1, &["--log", "nats", "--nats-server", &program.display().to_string()]);
    let (_listener, address) = other.join().unwrap();
    assert_ne!(up.of("log")[0]["address"], json!(address));
    up.stop("TERM");
}

#[test]
fn a_cluster_for_trial_shows_nats_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let program = common::nats::program().display().to_string();
    // Three servers, which show each other certificates as well.
    let up = Up::start(folder.path(), 3, &["--log", "nats", "--tls", "--nats-server", &program]);
    meridian(&["create", "events", "--schema", SPEC, "--url", &up.url]).ended(0);
    up.write(&Batches::default(), "b1");
    up.of("gateway").iter().for_each(|gateway| up.finds(gateway, 1));
    let status = up.becomes("flushed", |status| status["collections"][0]["position"] == 1);
    assert_eq!((&status["owner"]["reachable"], &status["log_error"]), (&json!(true), &Value::Null));
    let server = up.of("log")[0]["address"].as_str().unwrap().to_owned();
    let mut said = String::new();
    BufReader::new(TcpStream::connect(&server).unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("\"tls_required\":true") && said.contains("\"tls_verify\":true"), "{said}");
    // The password is not enough: settings without the certificate, and without TLS at all.
    let settings = std::fs::read_to_string(folder.path().join("owner-1/settings.toml")).unwrap();
    let mut table: toml::Table = settings.parse().unwrap();
    let bucket = format!("file://{}", folder.path().join("bucket").display());
    for scheme in ["tls", "nats"] {
        let nats = table["cluster"]["nats"].as_table_mut().unwrap();
        nats.insert("tls_cert".to_owned(), String::new().into());
        nats.insert("tls_key".to_owned(), String::new().into());
        if scheme == "nats" {
            nats.insert("tls_ca".to_owned(), String::new().into());
        }
        nats.insert("urls".to_owned(), vec![format!("{scheme}://{server}")].into());
        let file = folder.path().join("without.toml").display().to_string();
        std::fs::write(&file, table.to_string()).unwrap();
        let status = meridian(&["cluster", "status", "--bucket", &bucket, "--config", &file, "--json"]);
        let found: Value = serde_json::from_str(&status.out).unwrap();
        assert!(found["log_error"].is_string(), "{scheme}: {found:#}");
        let password = std::fs::read_to_string(folder.path().join("nats-password")).unwrap();
        assert!(!status.out.contains(password.trim()) && !status.err.contains(password.trim()));
    }
    up.stop("TERM");
}
