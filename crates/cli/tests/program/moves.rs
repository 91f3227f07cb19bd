//! Data moved between a single server and a cluster, with real processes. Tests backups through a gateway and of a
//! bucket alone, restores into a bucket and into a folder, and the files of a cluster.

use crate::common::owners::{Cluster, Owner};
use crate::common::{MERIDIAN, PATIENCE, Run, Server, agent, as_holder, meridian, post_with, send, token};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Sends a GET with a token until it succeeds.
#[track_caller]
fn get(server: &Server, token: &str, path: &str) -> String {
    let begun = Instant::now();
    loop {
        let mut request = agent().get(format!("{}{path}", server.url));
        if !token.is_empty() {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().unwrap();
        let body = answer.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
        if answer.status() == 200 {
            return body;
        }
        assert!(begun.elapsed() < PATIENCE, "{path}: {} {body}", answer.status());
        std::thread::sleep(Duration::from_millis(50));
    }
}

const COLLECTIONS: [&str; 2] = ["given", "made"];

/// Returns every event of the collections, with ids.
fn events(server: &Server, token: &str) -> Vec<BTreeSet<String>> {
    let of = |name: &&str| {
        let csv = get(server, token, &format!("/collections/{name}/items?f=csv"));
        let lines: BTreeSet<String> = csv.lines().skip(1).map(str::to_owned).collect();
        assert!(lines.len() > 100, "{name}: {} events", lines.len());
        lines
    };
    COLLECTIONS.iter().map(of).collect()
}

/// Checks that events are found by their ids.
fn check_ids(server: &Server, token: &str, all: &[BTreeSet<String>]) {
    for (name, lines) in COLLECTIONS.iter().zip(all) {
        for line in lines.iter().step_by(37) {
            let id = line.split(',').next().unwrap();
            let found: Value =
                serde_json::from_str(&get(server, token, &format!("/collections/{name}/items/{id}"))).unwrap();
            assert_eq!(found["id"], id, "{name}");
        }
    }
}

fn csv(path: &Path, ids: bool, numbers: std::ops::Range<i64>) -> String {
    let mut text = String::from(if ids { "id,time,lon,lat,n,ship\n" } else { "time,lon,lat,n,ship\n" });
    for n in numbers {
        if ids {
            write!(text, "e{n},").unwrap();
        }
        let (lon, lat) = ((n * 37 % 360) - 180, (n * 17 % 180) - 90);
        writeln!(text, "2026-01-{:02}T00:{:02}:00Z,{lon},{lat},{n},s{}", n % 28 + 1, n % 60, n % 7).unwrap();
    }
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

fn put(server: &Server, token: &str, path: &str, kind: &str, body: &str) -> String {
    let bearer = [("Authorization", format!("Bearer {token}"))];
    let (status, text) = post_with(&server.url, path, kind, &bearer, body.as_bytes()).unwrap();
    assert!(matches!(status, 200 | 201), "{path}: {status} {text}");
    text
}

/// Starts an owner and a gateway over an existing bucket.
fn started(cluster: &Cluster, name: &str) -> (Owner, Server) {
    let owner = cluster.owner(name);
    owner.says("owns");
    (owner, cluster.server("gateway"))
}

fn lines(run: Run) -> Vec<String> {
    run.out.lines().map(str::to_owned).collect()
}

#[test]
fn an_embedded_folder_moves_into_a_cluster_and_back() {
    let cluster = Cluster::new();
    let (bucket, at) = (format!("file://{}", cluster.path("bucket")), |name: &str| cluster.path(name));
    let (folder, key) = (at("folder"), at("key"));
    std::fs::write(&key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    let given = csv(Path::new(&at("given.csv")), true, 0..600);
    let made = csv(Path::new(&at("made.csv")), false, 0..900);
    meridian(&["load", "given", &given, "--data", &folder]).ended(0);
    let load = ["load", "made", &made, "--object", "ship", "--partitions", "3", "--data", &folder];
    meridian(&load).ended(0);
    let operator = token(Path::new(&folder), &["--role", "operator"]);
    let server = Server::start(Path::new(&folder));
    let described: Value = serde_json::from_str(&get(&server, &operator, "/collections/made")).unwrap();
    assert_eq!(described["partitions"], 3, "{described}");
    let asked = json!({"name": "ships", "question": {"keywords": "s1"}}).to_string();
    put(&server, &operator, "/saved-searches", "application/json", &asked);
    let before = events(&server, &operator);
    as_holder(&operator, &["backup", &at("kept"), "--key", &key, "--url", &server.url]).ended(0);
    server.kill();

    // Into a bucket, with a different number of partitions.
    let restore = ["restore", &at("kept"), "--key", &key, "--bucket", &bucket, "--partitions", "4"];
    meridian(&restore).ended(0);
    meridian(&["check", "--bucket", &bucket]).ended(0);
    meridian(&restore).ended(2).says(&["is not empty"]);
    // The audit log continues.
    let acts = meridian(&["audit", "--bucket", &bucket]).ended(0).out;
    assert!(acts.contains("createToken"), "{acts}");
    let (owner, gateway) = started(&cluster, "o1");
    assert_eq!(events(&gateway, &operator), before);
    check_ids(&gateway, &operator, &before);
    assert!(get(&gateway, &operator, "/saved-searches").contains("ships"));
    let described: Value = serde_json::from_str(&get(&gateway, &operator, "/collections/made")).unwrap();
    assert_eq!(described["partitions"], 4, "{described}");
    // An event is deleted by its earlier id, and later ones get new ids.
    let gone = before[1].iter().next().unwrap().split(',').next().unwrap().to_owned();
    let delete = agent().delete(format!("{}/collections/made/items/{gone}", gateway.url));
    let deleted = delete.header("Authorization", format!("Bearer {operator}")).call().unwrap();
    assert_eq!(deleted.status(), 204);
    let more = csv(Path::new(&at("more.csv")), false, 2_000..2_300);
    as_holder(&operator, &["load", "made", &more, "--url", &gateway.url]).ended(0);
    let now = events(&gateway, &operator);
    assert_eq!(now[1].len(), before[1].len() - 1 + 300);

    // Its files, for programs that read the bucket.
    let files = lines(as_holder(&operator, &["files", "made", "--url", &gateway.url]).ended(0));
    assert!(!files.is_empty() && files.iter().all(|file| Path::new(file).is_file()), "{files:?}");
    let refused = meridian(&["files", "absent", "--bucket", &bucket]);
    assert_ne!(refused.code, 0, "{}", refused.out);
    let files = lines(meridian(&["files", "made", "--bucket", &bucket]).ended(0));
    assert!(!files.is_empty() && files.iter().all(|file| Path::new(file).is_file()), "{files:?}");

    // Through the gateway, from the bucket beside the owner, and without an owner.
    as_holder(&operator, &["backup", &at("from-gateway"), "--key", &key, "--url", &gateway.url]).ended(0);
    meridian(&["backup", &at("from-bucket"), "--key", &key, "--bucket", &bucket]).ended(0);
    let last = csv(Path::new(&at("last.csv")), false, 3_000..3_100);
    as_holder(&operator, &["load", "made", &last, "--url", &gateway.url]).ended(0);
    let latest = events(&gateway, &operator);
    owner.signal("KILL");
    // It includes what is only in the log.
    meridian(&["backup", &at("alone"), "--key", &key, "--bucket", &bucket]).ended(0);
    drop((owner, gateway));

    // Back into folders.
    for (backup, partitions, expected) in
        [("from-gateway", "4", &now), ("from-bucket", "1", &now), ("alone", "2", &latest)]
    {
        let data = at(&format!("back-{backup}"));
        let restore = ["restore", &at(backup), "--key", &key, "--data", &data, "--partitions", partitions];
        meridian(&restore).ended(0);
        meridian(&["check", "--data", &data]).ended(0);
        let server = Server::start(Path::new(&data));
        assert_eq!(&events(&server, &operator), expected, "{backup}");
        check_ids(&server, &operator, expected);
        assert!(get(&server, &operator, "/saved-searches").contains("ships"), "{backup}");
    }
}

#[test]
fn a_restore_into_a_bucket_that_is_killed_is_served_by_nobody_until_it_is_whole() {
    let cluster = Cluster::new();
    let (bucket, at) = (format!("file://{}", cluster.path("bucket")), |name: &str| cluster.path(name));
    let made = csv(Path::new(&at("made.csv")), false, 0..40_000);
    for name in COLLECTIONS {
        meridian(&["load", name, &made, "--data", &at("folder"), "--quiet"]).ended(0);
    }
    meridian(&["backup", &at("kept"), "--data", &at("folder")]).ended(0);
    let restore = ["restore", &at("kept"), "--bucket", &bucket, "--partitions", "3"];
    let mut child = Command::new(MERIDIAN).args(restore).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mark = Path::new(&at("bucket")).join("restoring-empty");
    while !mark.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
    }
    send(child.id(), "KILL");
    child.wait().unwrap();
    for role in ["owner", "gateway", "scan"] {
        let arguments = cluster.arguments(role, role);
        let listen: &[&str] = if role == "owner" { &["--flight", "127.0.0.1:0"] } else { &["--listen", "127.0.0.1:0"] };
        let serve = ["serve"].iter().chain(listen).copied().chain(arguments.iter().map(String::as_str));
        meridian(&serve.collect::<Vec<_>>()).ended(2).says(&["--bucket", "a restore into", "run it again"]);
    }
    meridian(&["check", "--bucket", &bucket]).ended(2).says(&["a restore into"]);
    meridian(&["restore", &at("kept"), "--bucket", &bucket]).ended(2).says(&["another restore"]);
    meridian(&restore).ended(0);
    let (_owner, gateway) = started(&cluster, "o1");
    for lines in events(&gateway, "") {
        assert_eq!(lines.len(), 40_000);
    }
}
