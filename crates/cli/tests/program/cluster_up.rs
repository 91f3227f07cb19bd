//! `meridian cluster up` and `meridian cluster status`, as used by people and scripts.

use crate::common::batches::{Batches, SPEC};
use crate::common::up::Up;
use crate::common::{meridian, send};
use rustix::process::{getpid, set_child_subreaper};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

fn named<'a>(all: &'a [Value], name: &Value) -> &'a Value {
    all.iter().find(|one| one["name"] == *name).unwrap()
}

#[test]
fn a_cluster_for_trial_starts_takes_over_stops_and_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), 2, &[]);
    let before = up.nodes();
    assert_eq!(before["gateways"].as_array().unwrap().len(), 2);
    assert_eq!(before["gateways"][0], json!(up.url));
    for role in ["gateway", "owner", "scan"] {
        assert_eq!(up.of(role).len(), 2, "{role}: {before:#}");
    }
    let status = up.becomes("held", |status| status["owner"]["state"] == "held");
    assert_eq!(status["collections"], json!([]));
    let states = status["processes"].as_array().unwrap().iter().map(|one| one["answers"].clone());
    // One owner is a standby, and is not asked.
    assert_eq!(states.filter(|answers| *answers != json!(true)).collect::<Vec<_>>(), [Value::Null]);

    meridian(&["create", "events", "--schema", SPEC, "--url", &up.url]).ended(0);
    let batches = Batches::default();
    up.write(&batches, "b1");
    up.of("scan").iter().for_each(|scan| up.finds(scan, 1));
    let status = up.becomes("flushed", |status| {
        let one = &status["collections"][0];
        one["tail"]["entries"] == 0 && one["complete"].is_string()
    });
    let one = &status["collections"][0];
    assert_eq!(
        (&one["tenant"], &one["collection"], &one["error"]),
        (&json!("default"), &json!("events"), &Value::Null)
    );
    assert_eq!((&one["rows"], &one["segments"]), (&json!(1), &json!(1)));
    assert!(one["bytes"].as_u64().unwrap() > 0 && one["manifest"].as_str().unwrap().len() == 16, "{one:#}");
    assert_eq!(status["readers"].as_array().unwrap().len(), 2);
    // Each server reports its role, and its page shows the same as the command.
    let status = up.becomes("servers", |status| status["servers"].as_array().unwrap().len() == 4);
    let nodes = |status: &Value, role: &str| -> Vec<String> {
        let servers = status["servers"].as_array().unwrap().iter().filter(|one| one["role"] == role);
        let mut nodes: Vec<String> = servers.map(|one| one["node"].as_str().unwrap().to_owned()).collect();
        nodes.sort();
        nodes
    };
    assert_eq!(nodes(&status, "gateway"), ["gateway-1", "gateway-2"], "{status:#}");
    for role in ["gateway", "scan"] {
        let address = up.of(role)[0]["address"].as_str().unwrap().to_owned();
        let mut answer = ureq::get(format!("http://{address}/admin/cluster?f=json")).call().unwrap();
        let page: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        assert_eq!(page["server"], json!({ "role": role, "node": format!("{role}-1") }));
        assert_eq!(page["cluster"]["owner"]["node"], status["owner"]["node"], "{page:#}");
        assert_eq!(page["cluster"]["owner"]["reachable"], json!(true), "{page:#}");
        assert_eq!(nodes(&page["cluster"], "scan"), ["scan-1", "scan-2"], "{page:#}");
        assert_eq!(page["cluster"]["collections"][0]["rows"], json!(1), "{page:#}");
    }

    // The owner is killed: the other one takes over, and the first one becomes a standby.
    let (epoch, name) = (status["owner"]["epoch"].as_u64().unwrap(), &status["owner"]["node"]);
    let owners = up.of("owner");
    let killed = named(&owners, name);
    send(u32::try_from(killed["pid"].as_u64().unwrap()).unwrap(), "KILL");
    up.says(&format!("{} (pid {}) ended: signal: 9", name.as_str().unwrap(), killed["pid"]));
    up.says(&format!("{} is started again", name.as_str().unwrap()));
    let status = up.becomes("taken over", |status| {
        status["owner"]["epoch"].as_u64() > Some(epoch) && status["owner"]["state"] == "held"
    });
    assert_eq!(status["owner"]["reachable"], json!(true), "{status:#}");
    up.write(&batches, "b2");
    up.of("gateway").iter().for_each(|gateway| up.finds(gateway, 2));
    up.of("scan").iter().for_each(|scan| up.finds(scan, 2));
    assert_ne!(named(&up.of("owner"), name)["pid"], killed["pid"]);
    // A standby is alive, unless it is paused.
    let owners = up.of("owner");
    let standby = owners.iter().find(|one| one["name"] != status["owner"]["node"]).unwrap();
    let pid = u32::try_from(standby["pid"].as_u64().unwrap()).unwrap();
    let answers = |status: &Value| named(status["processes"].as_array().unwrap(), &standby["name"])["answers"].clone();
    up.becomes("two owners", |status| answers(status) == Value::Null);
    send(pid, "STOP");
    up.becomes("one that is paused", |status| answers(status) == json!(false));
    send(pid, "CONT");
    up.becomes("two owners again", |status| answers(status) == Value::Null);

    // Stopped by a signal, or killed: its processes end, and the next start has its ports and its data.
    let addresses = |up: &Up| -> Vec<Value> {
        up.nodes()["nodes"].as_array().unwrap().iter().map(|node| node["address"].clone()).collect()
    };
    let chosen = addresses(&up);
    let mut up = up;
    for signal in ["TERM", "KILL"] {
        up.stop(signal);
        if signal == "TERM" {
            let shown = meridian(&["cluster", "status", "--dir", folder.path().to_str().unwrap()]).ended(0).out;
            // Whichever had the lease last.
            for words in ["gave its lease up", "does not run", "no readers", "partitions"] {
                assert!(shown.contains(words), "{words:?} in {shown}");
            }
        }
        up = Up::start(folder.path(), 2, &[]);
        assert_eq!(addresses(&up), chosen);
        up.of("gateway").iter().for_each(|gateway| up.finds(gateway, 2));
        let status = up.becomes("pinned", |status| status["collections"][0]["pinned"]["readers"] == 2);
        assert_eq!(status["readers"].as_array().unwrap().len(), 2, "{status:#}");
    }
    up.stop("TERM");
}

#[test]
fn a_folder_has_one_cluster_and_its_log_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    // Open to others, like one created by a user.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let up = Up::start(folder.path(), 1, &[]);
    for (name, expected) in [
        ("cluster.json", 0o600),
        ("owner-1", 0o700),
        ("owner-1/settings.toml", 0o600),
        ("logs", 0o700),
        ("logs/owner-1.log", 0o600),
        ("bucket", 0o700),
    ] {
        let mode = folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{name}: {mode:o}");
    }
    let again = meridian(&["cluster", "up", "--nodes", "1", "--dir", at]).ended(3);
    again.says(&["another `meridian cluster up` runs there"]);
    up.stop("INT");
    meridian(&["cluster", "up", "--nodes", "1", "--dir", at, "--log", "nats"])
        .ended(2)
        .says(&["expected --log bucket"]);
    meridian(&["cluster", "up", "--nodes", "0", "--dir", at]).ended(2);
    meridian(&["cluster", "up", "--nodes", "1", "--dir", at, "--log", "disk"]).ended(2);
    let settings = folder.path().join("wrong.toml");
    std::fs::write(&settings, "[cluster]\nlease = \"soon\"\n").unwrap();
    let wrong = meridian(&["cluster", "up", "--nodes", "1", "--dir", at, "--config", settings.to_str().unwrap()]);
    wrong.ended(2).says(&["wrong.toml", "cluster.lease"]);
}

#[test]
fn a_start_waits_for_processes_of_a_killed_one_and_for_no_other_program() {
    // Their parent stays in this session: the kernel continues stopped processes whose group has lost its session.
    set_child_subreaper(Some(getpid())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), 1, &[]);
    let before = up.nodes();
    let pid = |all: &Value, role: &str| {
        let nodes = all["nodes"].as_array().unwrap();
        u32::try_from(nodes.iter().find(|node| node["role"] == role).unwrap()["pid"].as_u64().unwrap()).unwrap()
    };
    let scan = pid(&before, "scan");
    let address = up.of("gateway")[0]["address"].as_str().unwrap().to_owned();
    // It cannot end yet. The others do.
    send(scan, "STOP");
    drop(up);
    let taken = std::thread::scope(|scope| {
        let begun = scope.spawn(|| Up::start(folder.path(), 1, &[]));
        std::thread::sleep(Duration::from_secs(2));
        let text = std::fs::read_to_string(folder.path().join("cluster.json")).unwrap();
        let now: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(now, before, "it did not wait");
        // Another program has one of the ports by then.
        let tries = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(100));
            TcpListener::bind(&address).ok()
        });
        let taken = tries.take(200).flatten().next().unwrap();
        send(scan, "CONT");
        let up = begun.join().unwrap();
        assert_ne!(pid(&up.nodes(), "scan"), scan);
        assert_ne!(up.of("gateway")[0]["address"], json!(address));
        up.stop("KILL");
        taken
    });
    // Process ids are still listed, but nothing of that start is running.
    let up = Up::start(folder.path(), 1, &[]);
    up.stop("TERM");
    drop(taken);
}

#[test]
fn the_status_of_a_bucket_is_read_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("b");
    let address = format!("file://{}", bucket.display());
    meridian(&["cluster", "status", "--bucket", &address]).ended(2).says(&["there is no folder", "--bucket"]);
    assert!(!bucket.is_dir(), "a look makes no folder");
    let at = folder.path().to_str().unwrap();
    meridian(&["cluster", "status", "--dir", at]).ended(2).says(&["no cluster was started there", "--bucket"]);
    meridian(&["cluster", "status", "--bucket", "s3://b"]).ended(2).says(&["--bucket s3://b"]);
    // A key in an address is not repeated, wherever an address is accepted.
    for command in
        [&["cluster", "status"][..], &["check"], &["token", "list"], &["serve", "--role", "scan", "--log", "bucket"]]
    {
        for address in ["s3://key:hidden@events/p", "https://key:hidden@store/events", "s3://a:hid/den@events"] {
            let refused = meridian(&[command, &["--bucket", address]].concat()).ended(2);
            let refused = refused.says(&["cluster.s3.secret_key_file"]);
            assert!(!refused.out.contains("hid") && !refused.err.contains("hid"), "{}", refused.err);
        }
    }
    meridian(&["cluster", "status", "--bucket", &address, "--dir", at]).ended(2);

    std::fs::create_dir(&bucket).unwrap();
    // A wrong prefix must not pass for a cluster without an owner.
    let run = meridian(&["cluster", "status", "--bucket", &address, "--json"]).ended(2);
    let run = run.says(&["nothing of a cluster is there", "prefix"]);
    let status: Value = serde_json::from_str(&run.out).unwrap();
    assert!(status["time"].is_string(), "{status:#}");
    for (name, expected) in [
        ("version", json!(1)),
        ("bucket", json!(address)),
        ("empty", json!(true)),
        ("log", json!("bucket")),
        ("log_error", Value::Null),
        ("owner", Value::Null),
        ("collections", json!([])),
        ("readers", json!([])),
        ("servers", json!([])),
        ("processes", Value::Null),
    ] {
        assert_eq!(status.get(name), Some(&expected), "{name}");
    }
    let shown = meridian(&["cluster", "status", "--bucket", &address]).ended(2).out;
    assert!(shown.contains("nothing of a cluster is in this bucket"), "{shown}");
    assert_eq!(std::fs::read_dir(&bucket).unwrap().count(), 0, "a look writes nothing");
    // Damage is reported, with a bad exit code.
    let pins = bucket.join("pins/000000000000000a");
    std::fs::create_dir_all(&pins).unwrap();
    std::fs::write(pins.join("0000000000000001"), "damaged").unwrap();
    let run = meridian(&["cluster", "status", "--bucket", &address, "--json"]).ended(1).says(&["1 objects"]);
    let status: Value = serde_json::from_str(&run.out).unwrap();
    assert!(status["readers"][0]["error"].as_str().unwrap().contains("damaged"), "{status:#}");
    let shown = meridian(&["cluster", "status", "--bucket", &address]).ended(1).out;
    for words in ["no owner: no process has had the lease yet", "no collections", "no gateways or scan servers"] {
        assert!(shown.contains(words), "{words:?} in:\n{shown}");
    }
}

#[test]
fn a_cluster_for_trial_has_certificates_if_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), 2, &["--tls"]);
    meridian(&["create", "events", "--schema", SPEC, "--url", &up.url]).ended(0);
    let batches = Batches::default();
    up.write(&batches, "b1");
    let status = up.status();
    assert_eq!((&status["owner"]["reachable"], &status["owner"]["reason"]), (&json!(true), &Value::Null));
    // The other owner has a certificate as well.
    let owners = up.of("owner");
    send(u32::try_from(named(&owners, &status["owner"]["node"])["pid"].as_u64().unwrap()).unwrap(), "KILL");
    up.write(&batches, "b2");
    up.of("gateway").iter().for_each(|gateway| up.finds(gateway, 2));
    // Callers without one are rejected, and keys are for this user alone.
    let address = up.status()["owner"]["address"].as_str().unwrap().to_owned();
    let ca = folder.path().join("tls/ca.pem").display().to_string();
    meridian(&["query", "events", "--url", &format!("https://{address}"), "--ca-file", &ca]).ended(3);
    for name in ["tls/owner-1.key", "tls/gateway-1.key"] {
        assert_eq!(folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    let before = std::fs::read(&ca).unwrap();
    up.stop("TERM");
    // The next start makes new ones, or none unless asked to.
    let up = Up::start(folder.path(), 2, &["--tls"]);
    assert_ne!(std::fs::read(&ca).unwrap(), before);
    up.of("gateway").iter().for_each(|gateway| up.finds(gateway, 2));
    up.stop("TERM");
    let up = Up::start(folder.path(), 2, &[]);
    up.of("gateway").iter().for_each(|gateway| up.finds(gateway, 2));
    up.stop("TERM");
}
