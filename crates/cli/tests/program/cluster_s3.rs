//! A cluster with its bucket in a real S3-compatible store. Owners are killed and the store is restarted while clients
//! write. Commands find it by the settings.

use crate::common::batches::{Batches, SPEC};
use crate::common::gateway::{BUCKET, Gateway, REGION};
use crate::common::owners::{Cluster, answered};
use crate::common::{PATIENCE, Random, Run, as_holder, counted, meridian};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 3;

fn cluster(bucket: &str) -> (Cluster, Gateway) {
    let mut store = None;
    let cluster = Cluster::over(bucket, "bucket", |folder| {
        let store = store.insert(Gateway::start(folder, None));
        let file = |name: &str| store.path(name).display().to_string();
        format!(
            "[cluster.s3]\nendpoint = {:?}\nregion = {REGION:?}\naccess_key_file = {:?}\nsecret_key_file = {:?}\n",
            store.endpoint(),
            file("access.key"),
            file("secret.key")
        )
    });
    (cluster, store.unwrap())
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
fn owners_are_killed_and_the_store_starts_again_and_nothing_acknowledged_is_lost() {
    let (cluster, mut store) = cluster(&format!("s3://{BUCKET}/trial"));
    let mut random = Random::new();
    let mut owner = cluster.owner("o0");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create("events", SPEC);
    let batches = Batches::default();
    for (round, how) in ["KILL", "store", "KILL"].into_iter().enumerate() {
        let next = (how != "store").then(|| cluster.owner(&format!("o{}", round + 1)));
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
                None => store.restart(),
            }
            more(&batches, batches.acknowledged(), how);
            stop.store(true, Ordering::Relaxed);
        });
        owner = next.unwrap_or(owner);
        answered(&gateway, "/collections/events/items?limit=1");
        batches.check(&gateway, how);
        batches.resend(&gateway.url);
        batches.check(&gateway, &format!("{how}, sent again"));
    }
    // A read-only server has everything once the last owner has flushed.
    let scan = cluster.server("scan");
    owner.signal("TERM");
    assert_eq!(owner.ends(), Some(0));
    let all: u64 = batches.sent().values().map(|batch| batch.0).sum();
    let begun = Instant::now();
    while counted(&scan.json("/collections/events/aggregate?function=count")) < all {
        assert!(begun.elapsed() < PATIENCE, "the server that reads does not follow");
        std::thread::sleep(Duration::from_millis(50));
    }
    batches.check(&scan, "the end");
}

#[test]
fn commands_work_on_the_bucket_by_the_settings_of_its_cluster() {
    let bucket = format!("s3://{BUCKET}/p");
    let (cluster, _store) = cluster(&bucket);
    let settings = cluster.path("settings.toml");
    let on = |args: &[&str]| -> Run { meridian(&[args, &["--bucket", &bucket, "--config", &settings]].concat()) };
    on(&["token", "create", "--role", "operator"]).ended(0);
    let made = on(&["token", "create", "--role", "admin", "--tenant", "default"]).ended(0);
    let token = made.out.split_whitespace().last().unwrap().to_owned();
    on(&["tenant", "create", "ships"]).ended(0);
    for (args, word) in
        [(vec!["token", "list"], "operator"), (vec!["tenant", "list"], "ships"), (vec!["audit"], "ships")]
    {
        let listed = on(&args).ended(0).out;
        assert!(listed.contains(word), "{args:?}: {listed}");
    }
    let owner = cluster.owner("o0");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    let url = gateway.url.clone();
    assert_eq!(gateway.get("/collections").0, 401, "the token counts");
    as_holder(&token, &["create", "events", "--schema", SPEC, "--url", &url]).ended(0);
    // On a busy machine a renewal of the lease may be late, and the status says so.
    let begun = Instant::now();
    let status = loop {
        let status: Value = serde_json::from_str(&on(&["cluster", "status", "--json"]).ended(0).out).unwrap();
        if (&status["owner"]["state"], &status["owner"]["reachable"]) == (&"held".into(), &true.into()) {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "{status}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(
        (&status["collections"][0]["collection"], &status["bucket"]),
        (&"events".into(), &bucket.as_str().into())
    );
    // The problem is named, if possible without a request to the store.
    for (args, words) in [
        (
            vec!["cluster", "status", "--bucket", "s3://missing/p", "--config", &settings],
            "there is no bucket missing at",
        ),
        (vec!["token", "list", "--bucket", "s3://missing/p", "--config", &settings], "there is no bucket missing at"),
        (vec!["token", "list", "--bucket", "s3://x/p", "--config", &settings], "is not the name of a bucket"),
        (vec!["token", "list", "--config", &settings], "--bucket"),
    ] {
        meridian(&args).ended(2).says(&[words]);
    }
    let wrong = cluster.path("wrong.toml");
    std::fs::write(&wrong, "[cluster.s3]\nendpoint = \"http://store.example.org\"\n").unwrap();
    meridian(&["user", "list", "--bucket", &bucket, "--config", &wrong]).ended(2).says(&["cluster.s3.allow_http"]);
}
