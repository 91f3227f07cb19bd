//! The page of a cluster, and of a server that is a single process.

use crate::kinds::token;
use crate::owner::gateway;
use crate::support::{Server, point};
use meridian_api::{AppState, Member, ServerConfig};
use meridian_backend::Embedded;
use meridian_backend::cluster::{Caches, ClusterSurvey, Connector, ScanReads, ServerLoad, ServerStatus};
use meridian_model::{IdRole, Schema};
use meridian_observe::Tracer;
use meridian_store::bucket::{Bucket, Condition, Lease, MemoryBucket, Node, Peers, Roll};
use meridian_store::seams::{CrashStyle, MemoryDisk, Seams};
use meridian_store::{ControlPlane, Options, Settings, SharedLog, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Reached;

impl Connector for Reached {
    fn streams(&self) -> Result<SharedLog, String> {
        Err("no NATS here".to_owned())
    }

    fn reaches(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Starts a scan server over a bucket.
fn member(bucket: &MemoryBucket) -> Server {
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let options = Options { background: false, ..Options::at("/data") };
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let store = Arc::new(Store::open_read_only(options, seams.clone(), shared.clone()).unwrap());
    let backend = Embedded::with_records(store.clone(), ControlPlane::new(shared.clone(), &seams, 1 << 20));
    let survey = ClusterSurvey::new("memory", &shared, &seams, Arc::new(Reached));
    let member = Member::new("scan", "scan-1".to_owned(), survey);
    let config = ServerConfig::default();
    let state = AppState::with(backend, &seams, config, Tracer::default(), Some(member)).unwrap();
    Server::of("127.0.0.1:0", store, state, None, None)
}

fn page(server: &Server) -> String {
    let page = server.ask("GET", "/admin/cluster", &[("accept", "text/html")], b"");
    assert_eq!((page.status, page.header("refresh"), page.header("cache-control")), (200, "2", "no-store"));
    let html = page.text();
    assert!(!html.contains("<script>"));
    html
}

#[test]
fn one_process_says_that_it_is_one_and_only_operators_hear_it() {
    let server = Server::start();
    assert_eq!(server.json("/admin/cluster"), json!({"server": {"role": "all", "node": null}, "cluster": null}));
    assert!(page(&server).contains("one process"));
    let stopped = server.get("/admin/cluster?f=html&refresh=off");
    assert!(!stopped.headers.contains_key("refresh") && stopped.status == 200);
    server.get("/admin/cluster?refresh=often").problem(400);
    let operator = token(&server, None, json!({ "role": "operator" }));
    let admin = token(&server, Some(&operator), json!({ "role": "admin", "tenant": "default" }));
    let asked = |bearer: &str| {
        let bearer = format!("Bearer {bearer}");
        server.ask("GET", "/admin/cluster", &[("authorization", &bearer)], b"").status
    };
    assert_eq!((server.get("/admin/cluster").status, asked(&admin), asked(&operator)), (401, 403, 200));
}

#[test]
fn a_server_of_a_cluster_shows_its_owner_its_collections_and_the_other_servers() {
    let bucket = MemoryBucket::new();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let options = Options { background: false, ..Options::at("/owner") };
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let owner = Store::open_shared(options, seams.clone(), shared.clone()).unwrap();
    let schema = Schema { id: IdRole::Made, ..Schema::default() };
    owner.create("default", "ships", schema, Settings { partitions: 2, ..Settings::default() }).unwrap();
    let lease = Lease::new(&shared, "owner", "owner-1".to_owned(), "127.0.0.1:9", Duration::from_secs(3), &seams);
    lease.turn().unwrap();
    let caches = Caches { hits: 3, misses: 1, bytes_fetched: 4096 };
    let reads =
        ScanReads { questions: 1_100, attempts: 2_000, busy: 820, hedges: 33, fallbacks: 11, ..ScanReads::default() };
    let said = ServerStatus {
        role: Some("gateway".to_owned()),
        node: Some("<gateway-1>".to_owned()),
        load: Some(ServerLoad {
            slots: 4,
            running: 2,
            refused: 7,
            caches: Some(caches),
            scan_reads: Some(reads),
            ..ServerLoad::default()
        }),
        ..ServerStatus::default()
    };
    let peers = Peers::new(shared.clone(), &seams);
    peers.say(&said.write()).unwrap();
    let node = Node {
        node: "<owner-2>".to_owned(),
        role: "owner".to_owned(),
        process: 7,
        program: "0.1.0".to_owned(),
        level: 1,
        address: "127.0.0.1:8".to_owned(),
        condition: Condition::StandsBy,
        leases: Vec::new(),
        done: None,
    };
    Roll::new(shared.clone(), &seams, 7, Duration::from_secs(8)).say(&node).unwrap();

    let server = member(&bucket);
    let answer = server.json("/admin/cluster");
    assert_eq!(answer["server"], json!({"role": "scan", "node": "scan-1"}));
    let cluster = &answer["cluster"];
    assert_eq!(
        (&cluster["version"], &cluster["bucket"], &cluster["empty"]),
        (&json!(1), &json!("memory"), &json!(false))
    );
    assert_eq!((&cluster["owner"]["node"], &cluster["owner"]["state"]), (&json!("owner-1"), &json!("held")));
    let one = &cluster["collections"][0];
    assert_eq!((&one["collection"], &one["partitions"]), (&json!("ships"), &json!(2)), "{one:#}");
    assert_eq!(cluster["collections"].as_array().unwrap().len(), 1, "a partition is no collection");
    let reader = &cluster["readers"][0];
    assert_eq!((&reader["collections"], &reader["error"]), (&json!(1), &Value::Null), "{reader:#}");
    let other = &cluster["servers"][0];
    assert_eq!((&other["node"], &other["load"]["refused"]), (&json!("<gateway-1>"), &json!(7)), "{other:#}");
    assert_eq!(other["load"]["scan_reads"]["hedges"], 33);
    let node = &cluster["nodes"][0];
    assert_eq!((&node["node"], &node["condition"]), (&json!("<owner-2>"), &json!("stands_by")), "{node:#}");
    let html = page(&server);
    for words in [
        "owner-1",
        "&lt;owner-2&gt;",
        "stands by",
        "<b>ships</b>",
        "&lt;gateway-1&gt;",
        "2 of 4",
        "75\u{202f}%",
        "4.0\u{202f}KiB",
        "41\u{202f}% busy, 3\u{202f}% hedged, 1\u{202f}% to the owner",
    ] {
        assert!(html.contains(words), "{words:?} in {html}");
    }
    // Damage is named, and an unresponsive bucket is an error, not an empty cluster.
    let pins = bucket.objects().into_iter().filter(|(name, _)| name.starts_with("pins/"));
    pins.for_each(|(name, _)| bucket.harm(&name, Some(b"damaged".to_vec())));
    let damaged = || server.json("/admin/cluster")["cluster"]["readers"][0]["error"].is_string();
    let begun = std::time::Instant::now();
    while !damaged() {
        assert!(begun.elapsed() < Duration::from_secs(30), "what was found a while ago is shown");
        std::thread::sleep(Duration::from_millis(50));
    }
    bucket.cut(true);
    let begun = std::time::Instant::now();
    while server.get("/admin/cluster").status == 200 {
        assert!(begun.elapsed() < Duration::from_secs(30), "what was found a while ago is shown");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.get("/admin/cluster").status, 503);
    bucket.cut(false);
}

/// Checks that the server is ready, and that its metrics count the damaged collection.
fn is_ready_and_counts_the_damage(server: &Server) {
    let ready = server.get("/readyz");
    assert_eq!(ready.status, 200, "{}", ready.text());
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("\nmeridian_collections_damaged 1\n"), "{metrics}");
}

#[test]
fn a_damaged_collection_leaves_a_scan_server_ready() {
    let bucket = MemoryBucket::new();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let options = Options { background: false, ..Options::at("/owner") };
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let owner = Store::open_shared(options, seams, shared).unwrap();
    for name in ["good", "lost"] {
        let schema = Schema { id: IdRole::Made, ..Schema::default() };
        owner.create("default", name, schema, Settings::default()).unwrap();
    }
    drop(owner);
    let names = bucket.objects().into_iter().map(|(name, _)| name);
    let mut manifests = names.filter(|name| name.contains("/lost/") && name.contains("/manifests/"));
    bucket.harm(&manifests.rfind(|name| !name.contains("/0-newest-")).unwrap(), None);
    let server = member(&bucket);
    is_ready_and_counts_the_damage(&server);
    assert_eq!(server.get("/collections/good").status, 200);
}

#[test]
fn a_damaged_collection_leaves_a_gateway_ready() {
    let disk = MemoryDisk::new();
    let seams = Seams { disk: Arc::new(disk.clone()), ..Seams::real() };
    let options = || Options { background: false, ..Options::at("/data") };
    let server = Server::upon(seams.clone(), options(), ServerConfig::default());
    let event = [point("", 1.0, 2.0, json!({"n": 1}))];
    for name in ["good", "lost"] {
        server.create_of(name, "n:Integer,*geom:Point", 1);
        server.load(name, &event);
        server.store.collection("default", name).unwrap().flush().unwrap();
    }
    disk.crash(CrashStyle::Lose);
    drop(server);
    disk.vanish(Path::new("/data/tenants/default/lost/p0/MANIFEST")).unwrap();

    let store = Arc::new(Store::open(options(), seams.clone()).unwrap());
    let (backend, owner) = gateway(&store, &seams);
    let shared: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
    let survey = ClusterSurvey::new("memory", &shared, &seams, Arc::new(Reached));
    let member = Member::new("gateway", "gateway-1".to_owned(), survey);
    let state = AppState::with(backend, &seams, ServerConfig::default(), Tracer::default(), Some(member)).unwrap();
    let server = Server::of("127.0.0.1:0", store, state, None, Some(owner));
    is_ready_and_counts_the_damage(&server);
    assert_eq!(server.get("/collections/lost/items").problem(503)["type"], "urn:meridian:problem:damaged");
    server.load("good", &event);
    // Without the owner there is nothing to serve. What the last request found counts a little longer.
    server.owner.as_ref().unwrap().known(false);
    let begun = Instant::now();
    while server.get("/readyz").status == 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still ready");
    }
    server.get("/readyz").problem(503);
}
