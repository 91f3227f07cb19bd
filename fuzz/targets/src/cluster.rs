//! Data shared by the processes of a cluster: objects of a bucket, and messages of their log's streams.

use crate::{folder, named, sealed, world};
use bytes::Bytes;
use meridian_backend::cluster::{ClusterSurvey, Connector, ServerStatus};
use meridian_model::RecordChange;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::policy::groups::Groups;
use meridian_model::policy::level::LEVEL;
use meridian_store::bucket::{
    Bucket, Condition, Levels, MemoryBucket, Node, OrderKind, Orders, Peers, Put, Roll, ScanServers, Upload,
    decide_groups, expect_log, groups_of, terms_of,
};
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::stream::{MemoryStreams, Streams, fuzzed};
use meridian_store::{Act, ControlPlane, Lease, SharedLog, Store, StoreError, Write, check_bucket};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Objects by name.
type Objects = BTreeMap<String, Vec<u8>>;

/// Duration of a lease.
const TTL: Duration = Duration::from_secs(3);
/// The number of a process on the roll.
const PROCESS: u64 = 7;
/// First number of the events written to a store that holds the input.
const MORE: usize = 1_000;

/// A bucket that reports when its objects were written.
#[derive(Debug)]
struct Dated(MemoryBucket, i64);

impl Bucket for Dated {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        self.0.put(name, bytes)
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.0.upload(name)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name)
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.get_range(name, offset, into)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Bucket::len(&self.0, name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.0.delete(name)
    }

    fn modified(&self, name: &str) -> io::Result<Option<i64>> {
        self.get(name).map(|_| Some(self.1))
    }

    fn place(&self) -> String {
        self.0.place()
    }
}

/// A survey needs only the bucket.
#[derive(Debug)]
struct Nothing;

impl Connector for Nothing {
    fn streams(&self) -> Result<SharedLog, String> {
        Err("none".to_owned())
    }

    fn reaches(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

fn seams(process: u64) -> Seams {
    world::seams(&MemoryDisk::new(), process)
}

fn all(memory: &MemoryBucket) -> Objects {
    memory.objects().into_iter().map(|(name, _)| (name.clone(), memory.get(&name).unwrap())).collect()
}

fn bucket_of(objects: &Objects) -> MemoryBucket {
    let memory = MemoryBucket::new();
    objects.iter().for_each(|(name, bytes)| memory.harm(name, Some(bytes.clone())));
    memory
}

/// A bucket used by an owner, a scan server and a gateway.
fn objects() -> &'static Objects {
    static OBJECTS: LazyLock<Objects> = LazyLock::new(|| {
        let memory = MemoryBucket::new();
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let own = seams(1);
        let lease = Lease::new(&bucket, "owner", "owner-1", "127.0.0.1:7118", TTL, &own);
        lease.turn().unwrap();
        let store = Store::open_shared(world::options(), own.clone(), bucket.clone()).unwrap();
        world::fill(&store);
        let reader = Store::open_read_only(world::options(), seams(2), bucket.clone()).unwrap();
        reader.refresh().unwrap();
        assert!(lease.name_heir(Some(PROCESS)).unwrap());
        let control = ControlPlane::new(bucket.clone(), &own, 1 << 20);
        control.records("access").commit(0, &[RecordChange::put("token-1", b"{}".to_vec())]).unwrap().unwrap();
        control.audit().append(&[act("createToken")]).unwrap();
        let said =
            ServerStatus { role: Some("gateway".to_owned()), node: Some("g".to_owned()), ..ServerStatus::default() };
        Peers::new(bucket.clone(), &own).say(&said.write()).unwrap();
        let node = Node {
            node: "owner-1".to_owned(),
            role: "owner".to_owned(),
            process: PROCESS,
            program: "0.1.0".to_owned(),
            level: LEVEL,
            address: "127.0.0.1:7118".to_owned(),
            condition: Condition::Serves,
            leases: vec!["owner".to_owned()],
            done: None,
        };
        Roll::new(bucket.clone(), &own, PROCESS, TTL).say(&node).unwrap();
        let handover = OrderKind::Handover { lease: "owner".to_owned(), epoch: 1, to: Some(8) };
        Orders::new(bucket.clone(), &own, PROCESS).give(1, handover, 1).unwrap();
        Levels::new(bucket.clone(), &own, LEVEL + 1, "0.1.0").raise(LEVEL + 1).unwrap();
        decide_groups(bucket.as_ref(), own.clock.as_ref(), Groups::ONE).unwrap();
        all(&memory)
    });
    &OBJECTS
}

fn act(name: &str) -> Act {
    Act { who: "server".to_owned(), act: name.to_owned(), ..Act::default() }
}

/// Whether an object is part of a collection.
fn is_data(name: &str) -> bool {
    ["collections/", "tenants/"].iter().any(|folder| name.starts_with(folder))
}

/// The bucket with one of its objects replaced, or another one added.
fn harmed(bytes: &[u8], data: bool) -> Option<MemoryBucket> {
    let (name, content) = named::of(bytes).filter(|(name, _)| is_data(name) == data)?;
    let mut content = content.to_vec();
    sealed::object(name, &mut content);
    let memory = bucket_of(objects());
    memory.harm(name, Some(content));
    Some(memory)
}

/// An object through which processes coordinate, by its name: leases, the roll, orders, levels, pins, peers, records,
/// audit log, groups.
pub fn cluster_object(bytes: &[u8]) {
    let Some(memory) = harmed(bytes, false) else { return };
    let own = seams(9);
    let bucket: Arc<dyn Bucket> = Arc::new(Dated(memory, own.clock.now()));
    let groups = groups_of(bucket.as_ref());
    for terms in terms_of(&bucket, groups.ok().flatten().unwrap_or(Groups::ONE)) {
        let _ = terms.newest();
    }
    let _ = decide_groups(bucket.as_ref(), own.clock.as_ref(), Groups::ONE);
    let _ = expect_log(bucket.as_ref(), "bucket");
    let lease = Lease::new(&bucket, "owner", "owner-2", "127.0.0.1:7119", TTL, &own);
    let _ = lease.turn();
    let _ = Roll::read(bucket.as_ref(), None);
    let roll = Roll::new(bucket.clone(), &own, PROCESS + 1, TTL);
    for _ in 0..2 {
        let _ = roll.hear();
        for said in Peers::new(bucket.clone(), &own).tell(b"{}").unwrap_or_default() {
            let said = ServerStatus::read(&said);
            assert_eq!(ServerStatus::read(&said.write()), said);
        }
    }
    let orders = Orders::new(bucket.clone(), &own, PROCESS);
    (0..3).for_each(|number| drop(orders.get(number, 1)));
    let _ = Levels::new(bucket.clone(), &own, LEVEL, "0.1.0").check();
    let _ = ScanServers::new(bucket.clone(), own.clock.clone()).look();
    if let Ok(cluster) = ClusterSurvey::new("memory:", &bucket, &own, Arc::new(Nothing)).run() {
        let _ = (cluster.unreadable(), cluster.groups().count());
        serde_json::to_vec(&cluster).unwrap();
    }
    let control = ControlPlane::new(bucket.clone(), &own, 1 << 20);
    for kind in ["access", "saved"] {
        let records = control.records(kind);
        let _ = records.since(0);
        if records.put("more", b"[]").is_ok() {
            let next = ControlPlane::new(bucket.clone(), &seams(10), 1 << 20).records(kind);
            assert_eq!(next.get("more").unwrap().as_deref(), Some(&b"[]"[..]), "a record that was stored");
        }
    }
    let _ = control.audit().page(0, 10, &|_| true);
    if let Ok(n) = control.audit().append(&[act("removeToken")]) {
        let page = control.audit().page(n - 1, 10, &|_| true).unwrap();
        assert!(page.lines.iter().any(|line| line.n == n), "line {n} was stored");
    }
    let _ = check_bucket(&bucket, &own);
}

/// Opens a store, writes to the collection and reopens the store: acknowledged writes must exist.
fn stays(open: impl Fn(u64) -> Result<Store, StoreError>) {
    let Ok(store) = open(20) else { return };
    store.check();
    folder::read(&store);
    let Some(collection) = store.collection("t", "c") else { return };
    if collection.write(Write::new(world::events(MORE, 3))).is_err() {
        return;
    }
    drop((collection, store));
    let Ok(store) = open(21) else { return };
    let Some(collection) = store.collection("t", "c") else { return };
    let snapshot = collection.snapshot();
    let written = parse_text(&format!("n >= {MORE}")).unwrap();
    let Ok(predicate) = Predicate::bind(&written, &snapshot.schema) else { return };
    if let Ok((Some(count), _)) = meridian_query::count(&snapshot, &predicate, u64::MAX, &world::control()) {
        assert!(count >= 3, "{count} events of 3 that were acknowledged");
    }
}

/// An object of a collection, by its name: its existence marker, manifests, groups of the log, segments and their
/// sidecars.
pub fn collection_object(bytes: &[u8]) {
    let Some(memory) = harmed(bytes, true) else { return };
    let bucket: Arc<dyn Bucket> = Arc::new(memory);
    if let Ok(reader) = Store::open_read_only(world::options(), seams(11), bucket.clone()) {
        let _ = reader.refresh();
        reader.check();
        folder::read(&reader);
    }
    stays(|process| Store::open_shared(world::options(), seams(process), bucket.clone()));
}

/// A cluster whose log is in a stream.
struct Streamed {
    objects: Objects,
    /// The stream's name, and the number of its first message.
    name: String,
    first: u64,
    messages: Vec<Bytes>,
}

fn over(streams: &MemoryStreams) -> SharedLog {
    SharedLog::Streams { streams: Arc::new(streams.clone()), accept_loss: false }
}

fn streamed() -> &'static Streamed {
    static STREAMED: LazyLock<Streamed> = LazyLock::new(|| {
        // Small messages, so that a group has several.
        let (memory, streams) = (MemoryBucket::new(), MemoryStreams::new(2 << 10));
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let store = Store::open_shared_over(world::options(), seams(3), bucket.clone(), over(&streams)).unwrap();
        world::fill(&store);
        drop(store);
        let name = streams.names("").unwrap().remove(0);
        let stream = streams.open(&name).unwrap().unwrap();
        let bounds = stream.bounds().unwrap();
        let messages = (bounds.first..=bounds.last).filter_map(|number| stream.get(number).unwrap()).collect();
        Streamed { objects: all(&memory), name, first: bounds.first, messages }
    });
    &STREAMED
}

/// The messages of a stream in place of a log's, each prefixed with its length.
pub fn stream(bytes: &[u8]) {
    let messages = sealed::messages(bytes);
    for message in &messages {
        if let Ok(again) = fuzzed::message(message) {
            assert_eq!(again, *message);
        }
        // A group of one message.
        if let Some((head, content)) = message.split_at_checked(48) {
            let count = u32::from_le_bytes(head[40..44].try_into().unwrap());
            if let Ok(written) = fuzzed::records(count, content) {
                assert_eq!(fuzzed::records(count, &written).as_ref(), Ok(&written));
            }
        }
    }
    let Streamed { objects, name, first, .. } = streamed();
    let (memory, streams) = (bucket_of(objects), MemoryStreams::default());
    streams.create(name).unwrap();
    let stream = streams.open(name).unwrap().unwrap();
    let before = (1..*first).map(|_| Bytes::new());
    let all: Vec<Bytes> = before.chain(messages.into_iter().map(Bytes::from)).collect();
    stream.publish(0, &all);
    stream.purge(*first).unwrap();
    let bucket: Arc<dyn Bucket> = Arc::new(memory);
    stays(|process| Store::open_shared_over(world::options(), seams(process), bucket.clone(), over(&streams)));
}

/// Inputs for the targets of this module.
pub fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (name, bytes) in objects() {
        let target = if is_data(name) { "collection_object" } else { "cluster_object" };
        seeds.push((target, name.replace('/', "_"), named::input(name, bytes)));
    }
    let framed = |message: &Bytes| [&(message.len() as u32).to_le_bytes()[..], &message[..]].concat();
    let messages: Vec<Vec<u8>> = streamed().messages.iter().map(framed).collect();
    seeds.push(("stream", "whole".to_owned(), messages.concat()));
    seeds
}
