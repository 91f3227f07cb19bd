//! The stated age of a reader's data, and that the owner keeps what a reader uses.

use super::{WriteOutcome, seams, write};
use crate::world::{content, options, schema};
use meridian_model::IdRole;
use meridian_store::bucket::{Bucket, MemoryBucket};
use meridian_store::seams::{Clock, ManualClock, Seams};
use meridian_store::stream::MemoryStreams;
use meridian_store::{Collection, Lease, LeaseState, Options, Settings, SharedLog, Store};
use std::sync::Arc;
use std::time::Duration;

const SECOND: i64 = 1_000_000;

/// The processes of a cluster, sharing one clock.
struct Cluster {
    bucket: MemoryBucket,
    log: SharedLog,
    clock: Arc<ManualClock>,
}

impl Cluster {
    fn new() -> Cluster {
        Cluster::over(SharedLog::Bucket)
    }

    fn over(log: SharedLog) -> Cluster {
        Cluster { bucket: MemoryBucket::new(), log, clock: Arc::new(ManualClock::new(crate::world::START)) }
    }

    fn seams(&self) -> Seams {
        Seams { clock: self.clock.clone(), ..seams() }
    }

    fn owner(&self) -> Owner {
        let bucket: Arc<dyn Bucket> = Arc::new(self.bucket.clone());
        let seams = self.seams();
        let lease = Lease::new(&bucket, "owner", "one", "host:1", Duration::from_secs(3), &seams);
        // The previous owner may still hold it.
        for _ in 0..100 {
            if matches!(lease.turn().unwrap(), LeaseState::Owner(_)) {
                break;
            }
            self.clock.advance(SECOND / 10);
        }
        assert!(lease.holds());
        let options = Options { staleness_max: Some(Duration::from_secs(60)), ..options() };
        let store = Arc::new(Store::open_shared_over(options, seams, bucket, self.log.clone()).unwrap());
        let says = Arc::downgrade(&store);
        let epoch = lease.term().unwrap().epoch;
        lease.say(epoch, Some(Arc::new(move || says.upgrade()?.complete())));
        Owner { lease, store }
    }

    fn reader(&self) -> Store {
        Store::open_read_only(options(), self.seams(), Arc::new(self.bucket.clone())).unwrap()
    }

    fn age(&self, collection: &Collection) -> i64 {
        (self.clock.now() - collection.snapshot().taken_at) / SECOND
    }
}

struct Owner {
    lease: Lease,
    store: Arc<Store>,
}

impl Owner {
    fn collection(&self) -> Arc<Collection> {
        match self.store.collection("t", "c") {
            Some(collection) => collection,
            None => self.store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap(),
        }
    }
}

#[test]
fn an_idle_collection_is_fresh_and_one_behind_says_how_far() {
    idle_and_behind(&Cluster::new());
    let streams = Arc::new(MemoryStreams::default());
    idle_and_behind(&Cluster::over(SharedLog::Streams { streams, accept_loss: false }));
}

fn idle_and_behind(cluster: &Cluster) {
    let owner = cluster.owner();
    let c = owner.collection();
    assert_eq!(write(&c, 1), WriteOutcome::Stored);
    c.flush().unwrap();
    let reader = cluster.reader();
    let seen = reader.collection("t", "c").unwrap();
    let tick = |seconds: i64| {
        for _ in 0..seconds {
            cluster.clock.advance(SECOND);
            owner.lease.turn().unwrap();
            reader.refresh().unwrap();
        }
    };
    // No writes for an hour.
    tick(3600);
    assert!(cluster.age(&seen) <= 1, "{}", cluster.age(&seen));
    assert_eq!(cluster.age(&c), 0, "the owner shows everything");
    // An unflushed write makes the data as old as the write.
    write(&c, 2);
    let old = seen.snapshot();
    tick(30);
    assert!((29..=31).contains(&cluster.age(&seen)), "{}", cluster.age(&seen));
    c.flush().unwrap();
    tick(2);
    assert!(cluster.age(&seen) <= 1);
    assert_eq!(content(&seen.snapshot()).len(), 6);
    // An earlier snapshot does not become more recent.
    let again = seen.snapshot_at(old.seq).unwrap();
    assert!(cluster.clock.now() - again.taken_at >= 32 * SECOND);
    assert_eq!(content(&again).len(), 3);
    // Without an owner all data ages.
    for _ in 0..40 {
        cluster.clock.advance(SECOND);
        reader.refresh().unwrap();
    }
    assert!((39..=42).contains(&cluster.age(&seen)), "{}", cluster.age(&seen));
}

/// The bucket looks like a folder that is no longer mounted.
#[test]
fn a_reader_of_a_bucket_that_is_empty_all_at_once_keeps_what_it_has_and_writes_nothing() {
    let cluster = Cluster::new();
    let owner = cluster.owner();
    let c = owner.collection();
    write(&c, 1);
    c.flush().unwrap();
    let reader = cluster.reader();
    cluster.clock.advance(SECOND);
    reader.refresh().unwrap();
    let names: Vec<String> = cluster.bucket.objects().into_iter().map(|(name, _)| name).collect();
    names.iter().for_each(|name| cluster.bucket.harm(name, None));
    for _ in 0..40 {
        cluster.clock.advance(SECOND);
        let error = reader.refresh().unwrap_err().to_string();
        assert!(error.contains("mounted"), "{error}");
    }
    assert!(reader.collection("t", "c").is_some(), "it was not dropped");
    assert!(cluster.bucket.objects().is_empty(), "{:?}", cluster.bucket.objects());
}

#[test]
fn a_reader_of_a_collection_of_which_nothing_was_said_does_not_call_it_fresh() {
    let cluster = Cluster::new();
    let store = Store::open_shared(options(), cluster.seams(), Arc::new(cluster.bucket.clone())).unwrap();
    let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    write(&c, 1);
    c.flush().unwrap();
    cluster.clock.advance(100 * SECOND);
    let seen = cluster.reader().collection("t", "c").unwrap();
    // Before its creation nothing was missing.
    assert_eq!(seen.snapshot().taken_at, c.created());
    // The owner's clock may be ahead, so the data may be older than the statement.
    let options = Options { skew: Duration::from_secs(7), ..options() };
    let reader = Store::open_read_only(options, cluster.seams(), Arc::new(cluster.bucket.clone())).unwrap();
    let seen = reader.collection("t", "c").unwrap();
    assert_eq!(seen.snapshot().taken_at, c.created() - 7 * SECOND);
}

#[test]
fn a_write_is_flushed_before_it_is_too_old() {
    let cluster = Cluster::new();
    let owner = cluster.owner();
    let c = owner.collection();
    write(&c, 1);
    // Writers are never quiet: neither size nor idleness makes it flush.
    for number in 2..=60 {
        cluster.clock.advance(SECOND);
        assert!(!c.maintain_memory(false).unwrap() || c.stats().segments == 0, "{number}");
        write(&c, number);
    }
    cluster.clock.advance(SECOND);
    while c.maintain_memory(false).unwrap() {}
    assert_eq!((c.stats().segments > 0, c.stats().memory_rows), (true, 0));
    assert!(owner.store.complete().unwrap().behind.is_empty());
    // Unflushed writes of an earlier process count from when they were written.
    write(&c, 61);
    cluster.clock.advance(50 * SECOND);
    drop((owner, c));
    let owner = cluster.owner();
    let c = owner.collection();
    cluster.clock.advance(10 * SECOND);
    assert!(c.maintain_memory(false).unwrap());
    assert_eq!(c.stats().memory_rows, 0);
}

#[test]
fn who_may_have_been_replaced_says_nothing() {
    let cluster = Cluster::new();
    let owner = cluster.owner();
    let c = owner.collection();
    write(&c, 1);
    let said = owner.store.complete().unwrap();
    assert_eq!(said.behind.len(), 1);
    let next = Store::open_shared(options(), cluster.seams(), Arc::new(cluster.bucket.clone())).unwrap();
    assert_eq!(write(&next.collection("t", "c").unwrap(), 2), WriteOutcome::Stored);
    // It does not know yet, and only its lease keeps it from stating so; once it knows, it makes no statement.
    assert_eq!(write(&c, 3), WriteOutcome::Refused);
    assert_eq!(owner.store.complete(), None);
    next.close().unwrap();
    assert_eq!(next.complete(), None, "a store without its collections does not know of any");
}

#[test]
fn what_a_reader_uses_stays_for_as_long_as_it_says_so() {
    let cluster = Cluster::new();
    let owner = cluster.owner();
    let c = owner.collection();
    for number in 1..4 {
        write(&c, number);
        c.flush().unwrap();
    }
    let reader = cluster.reader();
    let seen = reader.collection("t", "c").unwrap();
    let (slow, token) = (seen.snapshot(), seen.snapshot().seq);
    let before = content(&slow);
    let objects = || cluster.bucket.objects().iter().filter(|(name, _)| name.ends_with(".segment")).count();
    // Everything it shows is replaced, merged away and long past the grace period.
    let pass = |refresh: bool, seconds: i64| {
        for n in 0..seconds / 10 {
            cluster.clock.advance(10 * SECOND);
            if refresh {
                reader.refresh().unwrap();
                // A token in use stays valid.
                assert_eq!(content(&seen.snapshot_at(token).unwrap()), before, "after {n}");
            }
            owner.store.trim_serving();
            c.maintain().unwrap();
        }
    };
    pass(true, 20);
    c.delete(&["w1-0".to_owned(), "w1-1".to_owned(), "w2-0".to_owned()]).unwrap();
    for number in 4..40 {
        write(&c, number);
        c.flush().unwrap();
        c.maintain().unwrap();
    }
    pass(true, 1200);
    assert_eq!(content(&slow), before, "a query that reads slowly");
    let held = objects();
    // It disappears without notice: its pin counts until it expires.
    pass(false, 600);
    assert!(objects() < held, "{} of {held} stay", objects());
    assert_eq!(objects() as u64, c.stats().segments);
    // By its own clock it has stopped before that.
    assert!(seen.snapshot_at(token).is_err());
    reader.refresh().unwrap();
    assert_eq!(content(&seen.snapshot()), content(&c.snapshot()));
}

#[test]
fn a_reader_that_cannot_write_its_pin_shows_no_earlier_snapshot() {
    let cluster = Cluster::new();
    let owner = cluster.owner();
    let c = owner.collection();
    write(&c, 1);
    c.flush().unwrap();
    let reader = cluster.reader();
    let seen = reader.collection("t", "c").unwrap();
    let old = seen.snapshot().seq;
    write(&c, 2);
    c.flush().unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(content(&seen.snapshot_at(old).unwrap()).len(), 3);
    cluster.bucket.cut(true);
    cluster.clock.advance(61 * SECOND);
    assert!(reader.refresh().is_err());
    assert!(seen.snapshot_at(old).is_err(), "the owner may let go of it");
    let newest = seen.snapshot().seq;
    assert!(seen.snapshot_at(newest).is_ok());
    cluster.bucket.cut(false);
    reader.refresh().unwrap();
    assert_eq!(content(&seen.snapshot_at(old).unwrap()).len(), 3);
    reader.close().unwrap();
    assert!(cluster.bucket.objects().iter().all(|(name, _)| !name.starts_with("pins/")));
}
