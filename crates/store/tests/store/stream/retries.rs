//! An owner that could not open a collection for a temporary reason opens it later, while it serves others.

use super::{Cluster, WriteOutcome, Writes};
use crate::bucket::{seams, write};
use crate::world::{START, options, schema};
use meridian_model::IdRole;
use meridian_store::bucket::Bucket;
use meridian_store::seams::{ManualClock, Seams};
use meridian_store::{Lease, LeaseState, Options, Settings, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

const SECOND: i64 = 1_000_000;

/// Opens the collections as their owner, with the test's clock.
fn owner(cluster: &Cluster, background: bool) -> (Store, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let seams = Seams { clock: clock.clone(), ..seams() };
    let options = Options { background, ..options() };
    let store = Store::open_shared_over(options, seams, Arc::new(cluster.bucket.clone()), cluster.log(false)).unwrap();
    (store, clock)
}

#[test]
fn what_did_not_answer_is_opened_later() {
    // The streams are unreachable, or their reads are stale.
    for lag in [false, true] {
        let cluster = Cluster::default();
        let mut writes = Writes::default();
        let first = cluster.first();
        (0..3).for_each(|_| assert_eq!(writes.write(&first.collection), WriteOutcome::Stored));
        drop(first);
        match lag {
            true => cluster.streams.lag(2),
            false => cluster.streams.cut(true),
        }
        let (store, clock) = owner(&cluster, false);
        let why = store.why_damaged("t", "c").expect("it opened all the same").to_string();
        assert!(why.contains("cannot be opened now") && why.contains("tries again"), "{why}");
        assert_eq!(store.complete().unwrap().time_of("t", "c"), i64::MIN);
        let made = store.create("t", "c", schema(IdRole::Given), Settings::default());
        assert!(matches!(made, Err(StoreError::Damaged(_))), "its name is taken: {made:?}");
        for _ in 0..20 {
            assert_eq!(store.open_due(), 0);
            clock.advance(SECOND);
        }
        // It is opened once: the second call finds nothing due.
        cluster.streams.heal();
        clock.advance(9 * SECOND);
        assert_eq!((store.open_due(), store.open_due()), (1, 0));
        assert_eq!((store.problems(), store.why_damaged("t", "c")), (Vec::new(), None));
        let c = store.collection("t", "c").unwrap();
        writes.compare(&c);
        assert_eq!(writes.write(&c), WriteOutcome::Stored);
        assert!(store.complete().unwrap().time_of("t", "c") > i64::MIN);
        writes.compare(&cluster.next().collection);
    }
}

#[test]
fn the_threads_of_an_owner_open_it() {
    let cluster = Cluster::default();
    drop(cluster.first());
    cluster.streams.cut(true);
    let (store, clock) = owner(&cluster, true);
    assert!(store.collection("t", "c").is_none());
    cluster.streams.heal();
    for _ in 0..3_000 {
        clock.advance(SECOND);
        if let Some(c) = store.collection("t", "c") {
            assert_eq!(write(&c, 1), WriteOutcome::Stored);
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody tries again");
}

#[test]
fn an_owner_that_was_replaced_takes_nothing_back() {
    let cluster = Cluster::default();
    drop(cluster.first());
    cluster.streams.cut(true);
    let (store, clock) = owner(&cluster, false);
    cluster.streams.heal();
    let bucket: Arc<dyn Bucket> = Arc::new(cluster.bucket.clone());
    let lease = Lease::new(&bucket, "owner", "two", "host:2", Duration::from_secs(3), &seams());
    assert!(matches!(lease.turn().unwrap(), LeaseState::Owner(_)));
    let next = cluster.next();
    for number in 1..20 {
        clock.advance(9 * SECOND);
        assert_eq!(store.open_due(), 0);
        assert_eq!(write(&next.collection, number), WriteOutcome::Stored);
    }
}

#[test]
fn damage_sets_a_collection_apart_for_good() {
    let cluster = Cluster::default();
    drop(cluster.first());
    let mut names = cluster.bucket.objects().into_iter().map(|(name, _)| name);
    let newest = names.rfind(|name| name.contains("/manifests/")).unwrap();
    cluster.bucket.harm(&newest, Some(vec![7; 300]));
    let (store, clock) = owner(&cluster, false);
    for _ in 0..20 {
        clock.advance(9 * SECOND);
        assert_eq!(store.open_due(), 0);
    }
    let why = store.why_damaged("t", "c").unwrap().to_string();
    assert!(why.contains("is damaged and not served"), "{why}");
}

/// Another owner finds a collection without a manifest yet.
#[test]
fn a_collection_that_is_being_made_keeps_its_stream() {
    for after in 0..500 {
        let cluster = Cluster::default();
        let store = cluster.open().unwrap();
        let other = cluster.clone();
        cluster.bucket.pause(after, move || drop(other.open().unwrap()));
        let made = store.create("t", "c", schema(IdRole::Given), Settings::default());
        let reached = !cluster.bucket.take_pause();
        if let Ok(c) = &made {
            let _ = write(c, 1);
        }
        assert_eq!(cluster.open().unwrap().problems(), [], "pause after {after}");
        if !reached {
            assert!(made.is_ok() && after > 3, "{after}: {made:?}");
            return;
        }
    }
    panic!("a collection takes more calls than expected");
}
