//! A cluster that an operator starts with mistakes, or whose bucket has lost something, as real processes.

use crate::common::batches::{Batches, SPEC};
use crate::common::owners::Cluster;
use crate::common::{PATIENCE, counted, meridian};
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_candidate_with_the_log_or_the_folder_of_another_is_refused_at_its_start() {
    let cluster = Cluster::new();
    let owner = cluster.owner("o0");
    owner.says("owns");
    cluster.server("gateway").create("events", SPEC);
    let standby = cluster.owner("o1");
    standby.says("waiting: the owner is");
    let refused = |data: &str| {
        let arguments = cluster.arguments("owner", data);
        let serve = ["serve", "--flight", "127.0.0.1:0"].into_iter().chain(arguments.iter().map(String::as_str));
        meridian(&serve.collect::<Vec<_>>())
    };
    // That of the owner, and that of a standby.
    for folder in ["o0", "o1"] {
        refused(folder).ended(3).says(&["--data", &cluster.path(folder), "in use by another process"]);
    }
    std::fs::create_dir(cluster.path("other")).unwrap();
    std::fs::write(Path::new(&cluster.path("other")).join("notes.txt"), "mine").unwrap();
    refused("other").ended(2).says(&["--data", "notes.txt"]);
    // Before NATS is contacted: there is none.
    let settings =
        "[cluster]\nlog = \"nats\"\n[cluster.nats]\nurls = [\"nats://127.0.0.1:1\"]\nallow_unsynced = true\n";
    std::fs::write(cluster.path("nats.toml"), settings).unwrap();
    let (bucket, data) = (format!("file://{}", cluster.path("bucket")), cluster.path("o2"));
    let settings = cluster.path("nats.toml");
    let serve = ["serve", "--role", "owner", "--config", &settings, "--bucket", &bucket, "--data", &data];
    meridian(&[&serve[..], &["--flight", "127.0.0.1:0"]].concat()).ended(2).says(&["--log", "expected --log bucket"]);
}

/// Returns the newest manifest of the only collection in a cluster's bucket.
fn newest_manifest(cluster: &Cluster, collection: &str) -> std::path::PathBuf {
    let folder = cluster.path(&format!("bucket/tenants/default/{collection}/p0/00000000/manifests"));
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| !path.to_string_lossy().contains("newest")).max().unwrap()
}

#[test]
fn a_lost_manifest_is_named_by_a_check_and_by_servers_that_start() {
    let cluster = Cluster::new();
    let bucket = format!("file://{}", cluster.path("bucket"));
    let mut owner = cluster.owner("owner");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    let batches = Batches::default();
    assert_eq!(batches.send(&gateway.url, "b1", 1).unwrap().0, 201);
    // Beside a running owner that has not flushed yet.
    let said = meridian(&["check", "--bucket", &bucket]).ended(0).out;
    assert!(said.contains("everything is in order, in 1 collections"), "{said}");
    owner.signal("TERM");
    assert_eq!(owner.ends(), Some(0));
    meridian(&["check", "--bucket", &bucket]).ended(0);
    meridian(&["check", "--bucket", &bucket, "--repair"]).ended(2).says(&["--repair", "copy of the bucket"]);
    let (newest, aside) = (newest_manifest(&cluster, "events"), cluster.path("aside"));
    std::fs::rename(&newest, &aside).unwrap();
    let file = newest.file_name().unwrap().to_str().unwrap();
    let said = meridian(&["check", "--bucket", &bucket]).ended(1).out;
    assert!(said.contains(file) && said.contains("it is missing"), "{said}");
    let scan = cluster.server("scan");
    let (status, said) = scan.get("/collections/events/items");
    assert!(status == 503 && said.contains(file) && said.contains("check --bucket"), "{status} {said}");
    std::fs::rename(&aside, &newest).unwrap();
    let begun = Instant::now();
    while scan.get("/collections/events/items").0 != 200 {
        assert!(begun.elapsed() < PATIENCE, "it is not taken up again");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(counted(&scan.json("/collections/events/aggregate?function=count")), 1);
}
