//! What a read-only process of the bucket sees.

use super::{Process, WriteOutcome, seams, write};
use crate::world::{content, options, schema};
use meridian_model::IdRole;
use meridian_store::bucket::{BucketFault, MemoryBucket};
use meridian_store::{Options, Settings, Store, StoreError, WriteError};
use std::sync::Arc;
use std::time::Duration;

fn reader(bucket: &MemoryBucket) -> Store {
    // With background threads, as in a server: none may start.
    let options = Options { background: true, ..options() };
    Store::open_read_only(options, seams(), Arc::new(bucket.clone())).unwrap()
}

#[test]
fn a_reader_sees_what_was_flushed_and_changes_nothing() {
    let bucket = MemoryBucket::new();
    let early = reader(&bucket);
    assert!(early.collections().is_empty());
    let owner = Process::first(&bucket);
    (1..4).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
    owner.collection.flush().unwrap();
    write(&owner.collection, 4);
    let reader = reader(&bucket);
    let c = reader.collection("t", "c").unwrap();
    assert_eq!((content(&c.snapshot()).len(), c.position()), (9, 3));
    let old = c.snapshot();
    let before = content(&old);
    assert!(early.refresh().unwrap());
    assert_eq!(content(&early.collection("t", "c").unwrap().snapshot()), before);
    let objects = bucket.objects();
    assert!(!reader.refresh().unwrap(), "nothing is new");
    // Refused; the message names the servers that accept writes.
    assert_eq!(write(&c, 5), WriteOutcome::Refused);
    let refused = c.delete(&["w1-0".to_owned()]).unwrap_err();
    assert!(matches!(&refused, WriteError::Refused(why) if why.contains("gateway")), "{refused}");
    let made = reader.create("t", "d", schema(IdRole::Made), Settings::default()).unwrap_err();
    assert!(matches!(&made, StoreError::Invalid(_)) && made.to_string().contains("gateway"), "{made}");
    assert!(reader.drop_collection("t", "c").is_err());
    assert!(c.set_settings(Settings { retention: Some(Duration::from_secs(1)), ..Settings::default() }).is_err());
    let _ = c.flush();
    c.maintain().unwrap();
    reader.trim_serving();
    assert_eq!(bucket.objects(), objects, "it only reads");
    // Deletions, merges and new fields come with the manifests.
    owner.collection.delete(&["w1-0".to_owned(), "w4-1".to_owned()]).unwrap();
    owner.collection.flush().unwrap();
    owner.collection.maintain().unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(content(&c.snapshot()), content(&owner.collection.snapshot()));
    assert_eq!(content(&old), before, "a snapshot in hand does not change");
    assert_eq!(content(&c.snapshot_at(old.seq).unwrap()), before);
    reader.close().unwrap();
    assert!(matches!(reader.refresh(), Err(StoreError::Busy(_))));
}

#[test]
fn a_reader_outlives_merges_for_a_grace() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    for number in 1..4 {
        write(&owner.collection, number);
        owner.collection.flush().unwrap();
    }
    let reader = reader(&bucket);
    let c = reader.collection("t", "c").unwrap();
    let (snapshot, before) = (c.snapshot(), content(&c.snapshot()));
    for number in 4..40 {
        write(&owner.collection, number);
        owner.collection.flush().unwrap();
        owner.collection.maintain().unwrap();
        owner.store.trim_serving();
    }
    // The next owner finds them as leftovers, and keeps them for a grace period of its own.
    drop(owner);
    let next = Process::next(&bucket);
    assert_eq!(content(&snapshot), before);
    assert!(reader.refresh().unwrap());
    assert_eq!(content(&c.snapshot()), content(&next.collection.snapshot()));
}

#[test]
fn objects_that_no_manifest_names_go_after_the_grace() {
    let bucket = MemoryBucket::new();
    let (process, clock) = {
        let seams = seams();
        let clock = seams.clock.clone();
        let store = Store::open_shared(options(), seams, Arc::new(bucket.clone())).unwrap();
        let collection = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        (Process { store, collection }, clock)
    };
    let segments = || bucket.objects().iter().filter(|(name, _)| name.ends_with(".segment")).count() as u64;
    for number in 1..60 {
        write(&process.collection, number);
        process.collection.flush().unwrap();
        process.collection.maintain().unwrap();
    }
    let live = process.collection.stats().segments;
    assert!(segments() > live);
    clock.sleep(Duration::from_secs(400));
    process.store.trim_serving();
    assert!(segments() > live, "a query, a page token and a pin may follow one another");
    clock.sleep(Duration::from_secs(21));
    process.store.trim_serving();
    assert_eq!(segments(), live);
    // Little is left of the log and the manifests as well.
    let count = |part: &str| bucket.objects().iter().filter(|(name, _)| name.contains(part)).count();
    assert!(count("/wal/") <= 3, "{} objects of the log", count("/wal/"));
    assert!(count("/manifests/") <= 24, "{} manifests", count("/manifests/"));
}

#[test]
fn a_collection_is_dropped_and_made_again_for_everybody() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    write(&owner.collection, 1);
    owner.collection.flush().unwrap();
    let reader = reader(&bucket);
    let snapshot = owner.collection.snapshot();
    let slow = Process::next(&bucket);
    write(&slow.collection, 2);
    assert_eq!(write(&owner.collection, 3), WriteOutcome::Refused);
    // A former owner cannot drop it.
    assert!(owner.store.drop_collection("t", "c").is_err());
    let owner = Process::next(&bucket);
    assert!(owner.store.drop_collection("t", "c").unwrap());
    assert_eq!(content(&snapshot).len(), 3, "a snapshot in hand stays readable");
    assert!(reader.refresh().unwrap());
    assert!(reader.collection("t", "c").is_none());
    assert!(super::open(&bucket).unwrap().collections().is_empty());
    // The slow process can neither write to it nor revive it.
    assert_eq!(write(&slow.collection, 4), WriteOutcome::Refused);
    let _ = slow.collection.flush();
    assert!(slow.store.is_outdated());
    let store = super::open(&bucket).unwrap();
    let again = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    assert!(matches!(
        store.create("t", "c", schema(IdRole::Given), Settings::default()),
        Err(StoreError::Exists { .. })
    ));
    assert_eq!(write(&again, 5), WriteOutcome::Stored);
    again.flush().unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(content(&reader.collection("t", "c").unwrap().snapshot()).len(), 3);
    drop((store, again));
    let last = Process::next(&bucket);
    assert_eq!(content(&last.collection.snapshot()).len(), 3);
}

#[test]
fn a_collection_that_is_dropped_while_it_is_opened_is_absent_or_whole() {
    let mut paused = 0;
    for after in 0..2_000 {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        for number in 1..3 {
            assert_eq!(write(&owner.collection, number), WriteOutcome::Stored);
            owner.collection.flush().unwrap();
        }
        let objects = bucket.clone();
        bucket.pause(after, move || {
            owner.store.drop_collection("t", "c").unwrap();
            // As after the grace period.
            let names = objects.objects().into_iter().map(|(name, _)| name);
            names.filter(|name| name.contains("/segments/")).for_each(|name| objects.harm(&name, None));
        });
        let store = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let parts = store.collection("t", "c").map(|c| c.snapshot().parts.len());
        assert!(parts.is_none_or(|parts| parts == 2), "pause after {after}: {parts:?}");
    }
    assert!((5..2_000).contains(&paused), "{paused} calls were paused at");
}

#[test]
fn a_collection_that_another_process_makes_at_once_is_made_once() {
    let bucket = MemoryBucket::new();
    let (one, two) = (super::open(&bucket).unwrap(), super::open(&bucket).unwrap());
    bucket.fail(BucketFault::After, 1);
    let made = one.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    let again = two.create("t", "c", schema(IdRole::Given), Settings::default());
    assert!(matches!(again, Err(StoreError::Exists { .. })), "{again:?}");
    assert_eq!(write(&made, 1), WriteOutcome::Stored);
    let other_case = two.create("t", "C", schema(IdRole::Given), Settings::default()).unwrap_err();
    assert!(other_case.to_string().contains("case"), "{other_case}");
}
