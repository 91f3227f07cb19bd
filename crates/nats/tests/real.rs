//! A store whose log is in a real NATS server, which is killed, fills up, and keeps its streams.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail a test")]
#![allow(clippy::disallowed_methods, reason = "tests read files and clocks as they are")]

use meridian_model::builder::Value;
use meridian_model::{BatchBuilder, Field, FieldType, GeometryType, IdRole, Schema, TimeRole};
use meridian_nats::NatsOptions;
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::Seams;
use meridian_store::{Collection, Options, Settings, SharedLog, Store, StoreError, Write, WriteError};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Max duration of anything before a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server of its own, and what the processes of a cluster share besides it.
struct World {
    folder: TempDir,
    runtime: Runtime,
    server: Child,
    ports: [u16; 2],
    bucket: MemoryBucket,
}

fn start(program: &Path, folder: &Path, port: u16) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("nats.log")).unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.join("nats.conf")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let (child, begun) = (command.spawn().unwrap(), Instant::now());
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = || std::fs::read_to_string(folder.join("nats.log")).unwrap_or_default();
        assert!(begun.elapsed() < PATIENCE, "nats-server does not start:\n{}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Returns the path of the program, which is built if missing.
fn program() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/nats.sh");
    let made = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(
        made.status.success() && Path::new(&said).is_file(),
        "there is no nats-server: scripts/nats.sh has to build it from Go modules, and could not; what it said is above"
    );
    PathBuf::from(said)
}

impl World {
    fn new(sync: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let text = format!(
            "listen: 127.0.0.1:{}\nhttp: 127.0.0.1:{}\njetstream {{ store_dir: {:?}, sync_interval: {sync} }}\n",
            ports[0],
            ports[1],
            folder.path().join("jetstream")
        );
        std::fs::write(folder.path().join("nats.conf"), text).unwrap();
        let server = start(&program(), folder.path(), ports[0]);
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        World { folder, runtime, server, ports, bucket: MemoryBucket::new() }
    }

    fn restart(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.server = start(&program(), self.folder.path(), self.ports[0]);
    }

    fn options(&self) -> NatsOptions {
        NatsOptions {
            urls: vec![format!("nats://127.0.0.1:{}", self.ports[0])],
            monitor: vec![format!("http://127.0.0.1:{}", self.ports[1])],
            ..NatsOptions::default()
        }
    }

    fn open(&self, name: &str, nats: &NatsOptions) -> Result<Store, StoreError> {
        let streams = meridian_nats::open(nats, self.runtime.handle())?;
        let options = Options { background: false, ..Options::at(self.folder.path().join(name)) };
        let log = SharedLog::Streams { streams, accept_loss: false };
        Store::open_shared_over(options, Seams::real(), Arc::new(self.bucket.clone()), log)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn schema() -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![field("at", FieldType::Time, true), field("text", FieldType::Text, false)],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id: IdRole::Given,
        ..Schema::default()
    }
}

fn write(collection: &Collection, ids: std::ops::Range<u64>, bytes: usize) -> Result<(), WriteError> {
    let mut builder = BatchBuilder::new(collection.schema());
    let mut state = ids.start;
    for id in ids {
        builder.set_id(format!("e{id}").as_str()).unwrap();
        builder.set_point(id as f64 % 180.0, 1.0).unwrap();
        builder.set(0, Value::Time(id as i64)).unwrap();
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 60) as u8)
        };
        builder.set(1, Value::Text((0..bytes).map(|_| letter()).collect())).unwrap();
        builder.end_event().unwrap();
    }
    collection.write(Write::new(builder.finish().unwrap())).map(drop)
}

#[test]
fn owners_take_over_from_one_another_and_a_server_that_is_killed_keeps_what_it_acknowledged() {
    let mut world = World::new("always");
    let nats = world.options();
    let first = world.open("one", &nats).unwrap();
    // A name that is not valid in a subject.
    let old = first.create("t", "sh.ips", schema(), Settings::default()).unwrap();
    (0..20).for_each(|n| write(&old, n * 10..n * 10 + 10, 100).unwrap());
    old.flush().unwrap();
    (20..40).for_each(|n| write(&old, n * 10..n * 10 + 10, 100).unwrap());
    // A group of several messages.
    write(&old, 400..403, 900_000).unwrap();
    assert_eq!(old.stats().events, 403);
    world.restart();
    write(&old, 403..404, 10).unwrap();
    let second = world.open("two", &nats).unwrap();
    assert_eq!(second.problems(), []);
    let new = second.collection("t", "sh.ips").unwrap();
    assert_eq!(new.stats().events, 404);
    write(&new, 404..405, 10).unwrap();
    // The former one is refused, and notices.
    assert!(matches!(write(&old, 500..501, 10), Err(WriteError::Busy(_))));
    assert!(first.is_outdated());
    // It may still cover what it holds, as the other one has all of that as well (decision 047).
    let _ = old.flush();
    new.flush().unwrap();
    write(&new, 405..406, 10).unwrap();
    let third = world.open("three", &nats).unwrap();
    assert_eq!(third.problems(), []);
    assert_eq!(third.collection("t", "sh.ips").unwrap().stats().events, 406);
    // Dropping it removes its stream.
    assert!(third.drop_collection("t", "sh.ips").unwrap());
    drop((third, world.open("four", &nats).unwrap()));
    let left = meridian_nats::open(&nats, world.runtime.handle()).unwrap().names("m.").unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_stream_longer_than_a_batch_is_read_whole() {
    let world = World::new("always");
    let nats = world.options();
    let store = world.open("one", &nats).unwrap();
    let c = store.create("t", "c", schema(), Settings::default()).unwrap();
    // More than a batch of 8 MiB, however well it compresses.
    (0..30).for_each(|n| write(&c, n..n + 1, 900_000).unwrap());
    let next = world.open("two", &nats).unwrap();
    assert_eq!(next.problems(), []);
    assert_eq!(next.collection("t", "c").unwrap().stats().events, 30);
}

#[test]
fn a_stream_that_is_full_refuses_until_a_flush_makes_room() {
    let world = World::new("always");
    let nats = NatsOptions { stream_bytes: 1 << 20, ..world.options() };
    let store = world.open("one", &nats).unwrap();
    let c = store.create("t", "c", schema(), Settings::default()).unwrap();
    let (mut stored, mut full) = (0, false);
    for n in 0..20 {
        match write(&c, n..n + 1, 200_000) {
            Ok(()) => stored += 1,
            Err(WriteError::Full(_)) => full = true,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(full && (1..20).contains(&stored), "{stored} stored");
    // The rest is too little for a write of one event.
    while write(&c, 1_000 + stored..1_001 + stored, 10).is_ok() {
        stored += 1;
    }
    // Although it is full, another owner takes it over.
    let next = world.open("two", &nats).unwrap();
    assert_eq!(next.problems(), []);
    let c = next.collection("t", "c").unwrap();
    assert_eq!(c.stats().events, stored);
    assert!(matches!(write(&c, 100..101, 200_000), Err(WriteError::Full(_))));
    c.flush().unwrap();
    write(&c, 100..101, 200_000).unwrap();
    let next = world.open("three", &nats).unwrap();
    assert_eq!(next.collection("t", "c").unwrap().stats().events, stored + 1);
}

#[test]
fn a_server_that_does_not_sync_each_message_is_refused_unless_that_is_allowed() {
    let world = World::new("2m");
    let nats = world.options();
    for (options, words) in [
        (nats.clone(), "does not sync each message"),
        (NatsOptions { monitor: Vec::new(), ..nats.clone() }, "cannot be seen"),
        (NatsOptions { monitor: vec!["http://127.0.0.1:1".to_owned()], ..nats.clone() }, "does not say"),
    ] {
        let refused = world.open("one", &options).unwrap_err().to_string();
        assert!(refused.contains(words) && refused.contains("cluster.nats.allow_unsynced"), "{refused}");
        world.open("one", &NatsOptions { allow_unsynced: true, ..options }).unwrap();
    }
    let refused =
        world.open("one", &NatsOptions { urls: vec!["nats://127.0.0.1:1".to_owned()], allow_unsynced: true, ..nats });
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("cluster.nats.urls"), "{refused}");
}
