//! Eventual reads: scan servers answer them, and take over when another one is lost.

use super::proxy::Proxy;
use super::reluctant::{BUSY, RETRIED, Refusal, Reluctant};
use super::world::{Owner, PATIENCE, Ship, TENANT, control, fleet, ships, store};
use meridian_backend::{
    Backend, Collection, Embedded, Eventual, Operation, ReadPoint, Seams, Settings, StoreError, Write,
};
use meridian_model::policy::busy::Limits;
use meridian_model::policy::selector::{Fallback, Hedging, NoServerRule, Profiles};
use meridian_model::{IdRole, Schema, Seqs, schema_spec};
use meridian_query::{Aggregate, Cursor, Function, Items, Order, QueryError, SortKey};
use meridian_remote::{RemoteBackend, RemoteOptions, ScanExecutor, ScanOptions, ScanServerLocation};
use meridian_store::bucket::{Bucket, MemoryBucket};
use meridian_store::seams::{ManualClock, MemoryDisk};
use meridian_store::{Options, Store};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const MANY: u32 = 60_000;
pub const LIMITS: Limits = Limits { places: 4, started: 64, waiting: 64 };

pub fn at(process: u64, address: SocketAddr) -> ScanServerLocation {
    ScanServerLocation { process, address: address.to_string(), group: "default".to_owned() }
}

/// Returns the options of scan servers, and the sender of their list.
pub fn options(rule: NoServerRule) -> (watch::Sender<Arc<[ScanServerLocation]>>, ScanOptions) {
    let (told, servers) = watch::channel(Arc::from(Vec::new()));
    let plans = r#"[{"servers": "100%", "busyTimeout": "5s"}]"#;
    let profiles = format!(r#"[{{"isDefault": true, "timeToWaitForScanServers": "0s", "attemptPlans": {plans}}}]"#);
    let scans = ScanOptions {
        servers,
        profiles: Profiles::parse(&profiles).unwrap(),
        fallback: Fallback::new(rule, 1.0, 1000.0).unwrap(),
        hedging: Hedging::new(Duration::from_secs(60), 0.0, 1.0).unwrap(),
    };
    (told, scans)
}

/// Returns the sender of an owner's scan servers, and a gateway.
fn gateway(owner: &Owner, rule: NoServerRule) -> (watch::Sender<Arc<[ScanServerLocation]>>, Arc<RemoteBackend>) {
    let (told, scans) = options(rule);
    (told, gateway_with(owner, scans))
}

pub fn gateway_with(owner: &Owner, scans: ScanOptions) -> Arc<RemoteBackend> {
    let owner = watch::channel(Some(owner.address.to_string().into())).1;
    let records = Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap());
    let options = RemoteOptions { scans: Some(scans), ..RemoteOptions::new(Seams::real().random) };
    RemoteBackend::connect(owner, records, options).unwrap()
}

pub fn eventual() -> ReadPoint {
    ReadPoint { eventual: Some(Eventual::default()), ..ReadPoint::newest() }
}

/// Returns the numbers of all rows of a response, and where its next page begins. Calls `after_first` once it has
/// begun.
pub fn rows(
    collection: &dyn Collection,
    at: ReadPoint,
    items: &Items,
    after_first: impl FnOnce(),
) -> (Vec<u64>, Option<Cursor>) {
    let mut rows = collection.items(at, items, &control(PATIENCE)).unwrap();
    let mut found: Vec<u64> = rows.next().unwrap().unwrap().seqs.iter().map(|seq| seq.0).collect();
    after_first();
    for hits in rows.by_ref() {
        found.extend(hits.unwrap().seqs.iter().map(|seq| seq.0));
    }
    (found, rows.next_page().cloned())
}

#[test]
fn another_server_goes_on_after_the_last_row() {
    for partitions in [1, 4] {
        let backend = store();
        let schema = Schema { id: IdRole::Given, ..schema_spec::parse(super::world::SHIPS).unwrap() };
        let theirs = backend.create(TENANT, "ships", schema, Settings { partitions, ..Settings::default() }).unwrap();
        theirs.write(Write::new(ships(&theirs.schema(), &fleet(MANY)))).unwrap();
        let owner = Owner::serve(backend.clone(), 1);
        let (first, second) = (
            Owner::scan(backend.clone(), 11, ScanExecutor::new(LIMITS)),
            Owner::scan(backend, 12, ScanExecutor::new(LIMITS)),
        );
        let proxy = Proxy::to(first.address);
        let (told, gateway) = gateway(&owner, NoServerRule::Fail);
        let ours = gateway.collection(TENANT, "ships").unwrap().unwrap();
        let schema = theirs.schema();
        let all = Items::all(&schema);
        let sort = SortKey::parse("-speed,ship", &schema).unwrap();
        let near = |k| Order::Near { lon: 3.0, lat: 4.0, k };
        for items in [
            all.clone(),
            Items { limit: Some(50_000), ..all.clone() },
            Items { order: near(None), limit: Some(45_000), ..all.clone() },
            Items { order: near(Some(40_000)), ..all.clone() },
            Items { order: Order::Fields(sort), limit: Some(50_000), ..all.clone() },
        ] {
            proxy.heal();
            told.send_replace(Arc::from(vec![at(11, proxy.address)]));
            let cut = || {
                told.send_replace(Arc::from(vec![at(12, second.address)]));
                proxy.cut_after(64 << 10);
            };
            let found = rows(&*ours, eventual(), &items, cut);
            let expected = rows(&*theirs, ReadPoint::newest(), &items, || ());
            assert_eq!(found.0.len(), expected.0.len(), "{:?} of {partitions}", items.order);
            assert!(found == expected, "{:?} of {partitions}", items.order);
        }
        assert!(gateway.figures().iter().any(|one| one.name == "meridian_scan_failures_total" && one.value >= 5));
        // Aggregates are requested as a whole.
        let functions = Function::parse("count,sum(speed)", &schema).unwrap();
        let question =
            Aggregate { predicate: all.predicate.clone(), functions, windows: None, by: Vec::new(), empty: false };
        let (theirs, ours) = (
            theirs.aggregate(ReadPoint::newest(), &question, &control(PATIENCE)).unwrap(),
            ours.aggregate(eventual(), &question, &control(PATIENCE)).unwrap(),
        );
        assert_eq!(format!("{:?}", theirs.value.groups), format!("{:?}", ours.value.groups));
        assert_eq!(theirs.head.seq, ours.head.seq);
    }
}

#[test]
fn a_server_of_another_number_is_not_asked_and_the_owner_answers_where_it_may() {
    let backend = store();
    let schema = schema_spec::parse(super::world::SHIPS).unwrap();
    backend.create(TENANT, "ships", schema, Settings::default()).unwrap();
    let owner = Owner::serve(backend.clone(), 1);
    let server = Owner::scan(backend, 11, ScanExecutor::new(LIMITS));
    let count = |collection: &dyn Collection| {
        let all = Items::all(&collection.schema()).predicate;
        collection.count(eventual(), &all, u64::MAX, &control(Duration::from_secs(2)))
    };
    let (told, fails) = gateway(&owner, NoServerRule::Fail);
    let ours = fails.collection(TENANT, "ships").unwrap().unwrap();
    assert!(count(&*ours).is_err(), "there is none");
    told.send_replace(Arc::from(vec![at(12, server.address)]));
    assert!(count(&*ours).is_err(), "another process is there");
    told.send_replace(Arc::from(vec![at(12, owner.address)]));
    assert!(count(&*ours).is_err(), "an owner is no scan server");
    told.send_replace(Arc::from(vec![at(11, server.address)]));
    assert_eq!(count(&*ours).unwrap(), Some(0));
    let (_told, falls_back) = gateway(&owner, NoServerRule::Fallback);
    let ours = falls_back.collection(TENANT, "ships").unwrap().unwrap();
    assert_eq!(count(&*ours).unwrap(), Some(0));
    assert!(falls_back.figures().iter().any(|one| one.name == "meridian_scan_fallbacks_total" && one.value == 1));
}

#[test]
fn a_server_that_takes_no_call_is_passed_over() {
    let backend = store();
    backend.create(TENANT, "ships", schema_spec::parse(super::world::SHIPS).unwrap(), Settings::default()).unwrap();
    let owner = Owner::serve(backend.clone(), 1);
    let server = Owner::scan(backend, 12, ScanExecutor::new(LIMITS));
    // As of a paused process: the kernel takes connections, and nobody reads from them.
    let paused = TcpListener::bind("127.0.0.1:0").unwrap();
    let plans = r#"[{"servers": "100%", "busyTimeout": "33ms"}]"#;
    let profiles = format!(r#"[{{"isDefault": true, "timeToWaitForScanServers": "0s", "attemptPlans": {plans}}}]"#);
    let (told, scans) = options(NoServerRule::Fail);
    let gateway = gateway_with(&owner, ScanOptions { profiles: Profiles::parse(&profiles).unwrap(), ..scans });
    told.send_replace(Arc::from(vec![at(11, paused.local_addr().unwrap()), at(12, server.address)]));
    let ours = gateway.collection(TENANT, "ships").unwrap().unwrap();
    let all = Items::all(&ours.schema()).predicate;
    let failures = || gateway.figures().iter().find(|one| one.name == "meridian_scan_failures_total").unwrap().value;
    // Either is chosen at random. The deadline is before the end of a connection that is silent.
    for _ in 0..1_000 {
        ours.count(eventual(), &all, u64::MAX, &control(Duration::from_secs(2))).unwrap();
        if failures() > 0 {
            return;
        }
    }
    panic!("the silent server was never asked");
}

#[test]
fn a_known_collection_stands_while_its_owner_is_silent() {
    let backend = store();
    let schema = schema_spec::parse(super::world::SHIPS).unwrap();
    let made = backend.create(TENANT, "ships", schema, Settings::default()).unwrap();
    let owner = Owner::serve(backend, 1);
    let proxy = Proxy::to(owner.address);
    let at = watch::channel(Some(proxy.address.to_string().into())).1;
    let records = Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap());
    let (_told, scans) = options(NoServerRule::Fail);
    let options = RemoteOptions {
        scans: Some(scans),
        timeout: Duration::from_millis(500),
        ..RemoteOptions::new(Seams::real().random)
    };
    let gateway = RemoteBackend::connect(at, records, options).unwrap();
    assert!(gateway.collection(TENANT, "ships").unwrap().is_some());
    proxy.swallow(true);
    let known = gateway.collection(TENANT, "ships").unwrap().expect("it is known");
    assert_eq!((known.created(), known.schema()), (made.created(), made.schema()));
    // The existence of another one cannot be determined.
    assert!(gateway.collection(TENANT, "boats").is_err());
}

#[test]
fn a_known_collection_stands_while_its_owner_tries_again_to_open_it() {
    let backend = Reluctant::over(store());
    let schema = schema_spec::parse(super::world::SHIPS).unwrap();
    let theirs = backend.create(TENANT, BUSY, schema, Settings::default()).unwrap();
    theirs.write(Write::new(ships(&theirs.schema(), &fleet(20)))).unwrap();
    let owner = Owner::serve(backend.clone(), 1);
    let server = Owner::scan(backend.backend.clone(), 11, ScanExecutor::new(LIMITS));
    let (told, gateway) = gateway(&owner, NoServerRule::Fail);
    told.send_replace(Arc::from(vec![at(11, server.address)]));
    // A description counts for a moment, so this asks until the owner has been asked.
    let found = || {
        let before = owner.flags.lock().len();
        loop {
            let found = gateway.collection(TENANT, BUSY).unwrap();
            if owner.flags.lock().len() > before {
                return found;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    assert!(found().is_some());
    backend.refuse(Some(Refusal::Apart("put the object back")));
    assert!(found().is_none(), "damage is not served around");
    backend.refuse(None);
    assert!(found().is_some());
    backend.refuse(Some(Refusal::Apart(RETRIED)));
    let ours = found().expect("it is known");
    let all = Items::all(&ours.schema());
    assert_eq!(rows(&*ours, eventual(), &all, || ()).0.len(), 20);
    // What the owner has to answer names the reason.
    let refused = ours.items(ReadPoint::newest(), &all, &control(PATIENCE)).err();
    assert!(matches!(refused, Some(QueryError::Store(StoreError::Damaged(_)))), "{refused:?}");
}

#[test]
fn servers_that_are_busy_or_absent_to_the_end_are_the_reason() {
    let backend = store();
    let schema = schema_spec::parse(super::world::SHIPS).unwrap();
    backend.create(TENANT, "ships", schema, Settings::default()).unwrap();
    let (owner, turns) = (Owner::serve(backend.clone(), 1), ScanExecutor::new(LIMITS));
    let server = Owner::scan(backend, 11, turns.clone());
    let (told, gateway) = gateway(&owner, NoServerRule::Wait);
    let ours = gateway.collection(TENANT, "ships").unwrap().unwrap();
    let why = || {
        let all = Items::all(&ours.schema()).predicate;
        match ours.count(eventual(), &all, u64::MAX, &control(Duration::from_millis(500))) {
            Err(QueryError::Store(StoreError::Busy(why))) => why,
            other => panic!("{other:?}"),
        }
    };
    let absent = why();
    assert!(absent.contains("no scan server of the group \"default\""), "{absent}");
    turns.drain();
    told.send_replace(Arc::from(vec![at(11, server.address)]));
    let busy = why();
    assert!(busy.contains("all scan servers are busy"), "{busy}");
}

#[test]
fn a_scan_waits_once_for_each_batch() {
    let backend = store();
    let schema = schema_spec::parse(super::world::SHIPS).unwrap();
    let theirs = backend.create(TENANT, "ships", schema.clone(), Settings::default()).unwrap();
    theirs.write(Write::new(ships(&theirs.schema(), &fleet(300)))).unwrap();
    let (owner, turns) = (Owner::serve(backend.clone(), 1), ScanExecutor::new(LIMITS));
    let server = Owner::scan(backend, 11, turns.clone());
    let (told, gateway) = gateway(&owner, NoServerRule::Fail);
    told.send_replace(Arc::from(vec![at(11, server.address)]));
    let ours = gateway.collection(TENANT, "ships").unwrap().unwrap();
    let all = Items::all(&schema);
    // Neither its plan nor its end takes a turn of its own.
    assert_eq!(rows(&*ours, eventual(), &all, || ()).0.len(), 300);
    assert_eq!(turns.given(), 1);
    let batch = || Write::new(ships(&theirs.schema(), &fleet(4096)));
    theirs.write(batch()).unwrap();
    let before = turns.given();
    assert_eq!(rows(&*ours, eventual(), &all, || ()).0.len(), 4396);
    assert!(turns.given() > before + 1, "a large answer lets others have the place");
}

#[test]
fn a_server_that_cannot_read_is_left_for_another() {
    let options = || Options { background: false, tree_bytes: Some(1 << 20), ..Options::at("/data") };
    let seams = || Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let bucket = MemoryBucket::new();
    let store = Arc::new(Store::open_shared(options(), seams(), Arc::new(bucket.clone())).unwrap());
    let backend: Arc<dyn Backend> = Embedded::new(store.clone());
    let schema = Schema { id: IdRole::Given, ..schema_spec::parse(super::world::SHIPS).unwrap() };
    // Several, since each collection has its own order of servers.
    let names: Vec<String> = (0..8).map(|n| format!("ships{n}")).collect();
    for name in &names {
        let theirs = backend.create(TENANT, name, schema.clone(), Settings::default()).unwrap();
        theirs.write(Write::new(ships(&theirs.schema(), &fleet(500)))).unwrap();
        store.collection(TENANT, name).unwrap().flush().unwrap();
    }
    // Each server has a copy, so that one can be cut off.
    let copied = || {
        let copy = MemoryBucket::new();
        for (name, _) in bucket.objects() {
            copy.put(&name, &bucket.get(&name).unwrap()).unwrap();
        }
        copy
    };
    let reader = |bucket: &MemoryBucket| -> Arc<dyn Backend> {
        Embedded::new(Arc::new(Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap()))
    };
    let (cut, whole) = (copied(), copied());
    let first = Owner::scan(reader(&cut), 11, ScanExecutor::new(LIMITS));
    let second = Owner::scan(reader(&whole), 12, ScanExecutor::new(LIMITS));
    // Before any query has opened a segment.
    cut.cut(true);
    let owner = Owner::serve(backend.clone(), 1);
    let (told, gateway) = gateway(&owner, NoServerRule::Fail);
    let failures = || {
        let figures = gateway.figures();
        figures.iter().find(|one| one.name == "meridian_scan_failures_total").map_or(0, |one| one.value)
    };
    let all = Items::all(&schema);
    told.send_replace(Arc::from(vec![at(11, first.address), at(12, second.address)]));
    for name in &names {
        let of = |backend: &dyn Backend| backend.collection(TENANT, name).unwrap().unwrap();
        let (ours, theirs) = (of(&*gateway), of(&*backend));
        assert_eq!(rows(&*ours, eventual(), &all, || ()), rows(&*theirs, ReadPoint::newest(), &all, || ()));
    }
    assert!(failures() > 0, "the server that is cut off was never asked");
}

#[test]
fn the_owner_keeps_a_snapshot_that_a_scan_server_showed() {
    const SECOND: i64 = 1_000_000;
    let options = || Options { background: false, tree_bytes: Some(1 << 20), ..Options::at("/data") };
    let clock = Arc::new(ManualClock::new(0));
    let seams = || Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), ..Seams::real() };
    let bucket = MemoryBucket::new();
    let store = Arc::new(Store::open_shared(options(), seams(), Arc::new(bucket.clone())).unwrap());
    let backend: Arc<dyn Backend> = Embedded::new(store.clone());
    let schema = Schema { id: IdRole::Given, ..schema_spec::parse(super::world::SHIPS).unwrap() };
    let theirs = backend.create(TENANT, "ships", schema.clone(), Settings::default()).unwrap();
    theirs.write(Write::new(ships(&theirs.schema(), &fleet(500)))).unwrap();
    let of_store = store.collection(TENANT, "ships").unwrap();
    of_store.flush().unwrap();
    // The start is forgotten by now, and the owner never learns of this reader's pin.
    clock.advance(1_000 * SECOND);
    let reader = Store::open_read_only(options(), seams(), Arc::new(bucket)).unwrap();
    reader.leave();
    let server = Owner::scan(Embedded::new(Arc::new(reader)), 11, ScanExecutor::new(LIMITS));
    let owner = Owner::serve(backend, 1);
    let (told, gateway) = gateway(&owner, NoServerRule::Fail);
    told.send_replace(Arc::from(vec![at(11, server.address)]));
    let ours = gateway.collection(TENANT, "ships").unwrap().unwrap();
    let page = Items { limit: Some(10), ..Items::all(&schema) };
    // Reports go out one after the other: once a second one has begun, the first has ended.
    for _ in 0..2 {
        let before = owner.flags.lock().len();
        let mut rows = ours.items(eventual(), &page, &control(PATIENCE)).unwrap();
        assert_eq!(rows.by_ref().map(|hits| hits.unwrap().seqs.len()).sum::<usize>(), 10);
        let begun = Instant::now();
        while owner.flags.lock().len() == before {
            assert!(begun.elapsed() < PATIENCE, "the owner is never told");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let shown = ours.items(eventual(), &page, &control(PATIENCE)).unwrap().head().seq.at(0);
    let expected = rows(&*theirs, ReadPoint { seq: Some(Seqs::one(shown)), ..ReadPoint::newest() }, &page, || ());
    let mut next = 1_000;
    let mut pass = |seconds: i64| {
        clock.advance(seconds * SECOND);
        // Enough segments with deleted events to be merged.
        for _ in 0..12 {
            let more = fleet(40).into_iter().map(|ship| Ship { id: ship.id + next, ..ship }).collect::<Vec<_>>();
            theirs.write(Write::new(ships(&theirs.schema(), &more))).unwrap();
            theirs.delete(&(0..30).map(|n| format!("id{}", next + n)).collect::<Vec<_>>()).unwrap();
            of_store.flush().unwrap();
            next += 40;
        }
        theirs.delete(&(0..300).map(|n| format!("id{n}")).collect::<Vec<_>>()).unwrap();
        store.trim_serving();
        of_store.maintain().unwrap();
    };
    pass(299);
    assert_eq!(
        rows(&*theirs, ReadPoint { seq: Some(Seqs::one(shown)), ..ReadPoint::newest() }, &page, || ()),
        expected
    );
    pass(400);
    assert!(
        theirs
            .items(ReadPoint { seq: Some(Seqs::one(shown)), ..ReadPoint::newest() }, &page, &control(PATIENCE))
            .is_err()
    );
}
