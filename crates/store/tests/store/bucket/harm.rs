//! A bucket that lost or changed objects, is full, or does not answer.

use super::{Process, WriteOutcome, Writes, open, seams, write};
use crate::world::{batch, content, options, readable, schema};
use meridian_model::IdRole;
use meridian_store::bucket::{Bucket, BucketFault, MemoryBucket};
use meridian_store::seams::{Seams, SeededRandom};
use meridian_store::{Collection, Options, Settings, Store, StoreError, Write, WriteError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Returns the names of the log's groups, oldest first.
fn groups(bucket: &MemoryBucket) -> Vec<String> {
    let mut names: Vec<(String, usize)> = bucket.objects();
    names.retain(|(name, bytes)| name.contains("/wal/") && *bytes > 200);
    let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    names
}

#[test]
fn a_group_that_is_gone_or_damaged_is_named_and_stops_the_collection() {
    for gone in [true, false] {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        (1..6).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
        drop(owner);
        let name = groups(&bucket)[2].clone();
        bucket.harm(&name, (!gone).then(|| vec![7; 300]));
        let store = open(&bucket).unwrap();
        let problems = store.problems();
        let file = name.rsplit('/').next().unwrap();
        assert!(problems.iter().any(|problem| problem.to_string().contains(file)), "{problems:?}");
        let c = store.collection("t", "c").unwrap();
        assert_eq!(content(&c.snapshot()).len(), 12, "what is there is served");
        assert_eq!(write(&c, 9), WriteOutcome::Refused);
        // Neither the next process nor a flush makes up for it.
        drop((store, c));
        let store = open(&bucket).unwrap();
        assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()).len(), 12);
        assert!(!store.problems().is_empty());
    }
}

#[test]
fn a_manifest_that_is_damaged_is_named_and_nothing_is_served() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    write(&owner.collection, 1);
    drop(owner);
    let newest = bucket.objects().into_iter().map(|(name, _)| name).rfind(|name| name.contains("/manifests/")).unwrap();
    bucket.harm(&newest, Some(vec![7; 300]));
    let store = open(&bucket).unwrap();
    assert!(store.collection("t", "c").is_none());
    let damaged = store.why_damaged("t", "c").unwrap().to_string();
    assert!(damaged.contains(newest.rsplit('/').next().unwrap()), "{damaged}");
}

/// Returns the names of the manifests, oldest first.
fn manifests(bucket: &MemoryBucket) -> Vec<String> {
    let names = bucket.objects().into_iter().map(|(name, _)| name);
    names.filter(|name| name.contains("/manifests/") && !name.contains("/0-newest-")).collect()
}

#[test]
fn a_manifest_that_is_gone_is_named_and_the_state_before_does_not_pass_for_the_newest() {
    // The manifest of the creation, of a flush, and of one of many flushes.
    for flushes in [0, 1, 3, 30] {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        for number in 1..=flushes {
            write(&owner.collection, number);
            owner.collection.flush().unwrap();
        }
        let before = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
        let known = content(&before.collection("t", "c").unwrap().snapshot());
        assert_eq!(known.len() as i64, flushes * 3);
        let newest = manifests(&bucket).pop().unwrap();
        let kept = bucket.get(&newest).unwrap();
        bucket.harm(&newest, None);
        let file = newest.rsplit('/').next().unwrap();
        let named = |store: &Store| {
            assert!(store.collection("t", "c").is_none(), "after {flushes} flushes: it is served");
            let damaged = store.why_damaged("t", "c").expect("it is there, and damaged").to_string();
            assert!(damaged.contains(file) && damaged.contains("missing"), "{damaged}");
        };
        let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
        named(&reader);
        // A reader that has read it keeps serving it, and reports the loss.
        assert!(before.refresh().unwrap_err().to_string().contains(file));
        assert_eq!(content(&before.collection("t", "c").unwrap().snapshot()), known);
        named(&open(&bucket).unwrap());
        assert!(open(&bucket).unwrap().create("t", "c", schema(IdRole::Given), Settings::default()).is_err());
        bucket.harm(&newest, Some(kept));
        assert!(reader.refresh().unwrap());
        assert_eq!(content(&reader.collection("t", "c").unwrap().snapshot()), known);
        assert_eq!(content(&Process::next(&bucket).collection.snapshot()), known);
    }
}

#[test]
fn a_manifest_that_is_gone_while_its_owner_runs_is_followed_by_the_next() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    (1..3).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
    owner.collection.flush().unwrap();
    bucket.harm(&manifests(&bucket).pop().unwrap(), None);
    assert_eq!(write(&owner.collection, 3), WriteOutcome::Stored);
    owner.collection.flush().unwrap();
    let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
    let all = content(&owner.collection.snapshot());
    assert_eq!(content(&reader.collection("t", "c").unwrap().snapshot()), all);
    drop(owner);
    assert_eq!(content(&Process::next(&bucket).collection.snapshot()), all);
}

#[test]
fn a_partition_that_is_gone_is_named_and_its_collection_is_not_absent() {
    let bucket = MemoryBucket::new();
    let store = open(&bucket).unwrap();
    store.create("t", "c", schema(IdRole::Given), Settings { partitions: 2, ..Settings::default() }).unwrap();
    drop(store);
    for (name, _) in bucket.objects().iter().filter(|(name, _)| name.contains("/p1/")) {
        bucket.harm(name, None);
    }
    let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
    for store in [reader, open(&bucket).unwrap()] {
        assert!(store.collection("t", "c").is_none());
        let damaged = store.why_damaged("t", "c").expect("it is there, and damaged").to_string();
        assert!(damaged.contains("partition 1 of 2 is missing"), "{damaged}");
    }
}

#[test]
fn a_reader_never_goes_back_to_an_older_manifest() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    let mut receipts = Vec::new();
    for number in 1..3 {
        write(&owner.collection, number);
        owner.collection.flush().unwrap();
        receipts.extend(bucket.objects().into_iter().map(|(name, _)| name).filter(|name| name.contains("/0-newest-")));
    }
    let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
    // As under an owner of an earlier version, which wrote no receipts.
    receipts.iter().for_each(|name| bucket.harm(name, None));
    bucket.harm(&manifests(&bucket).pop().unwrap(), None);
    assert!(reader.refresh().unwrap_err().to_string().contains("a newer manifest"));
    assert_eq!(content(&reader.collection("t", "c").unwrap().snapshot()).len(), 6);
}

/// Segments whose rows or deletions are gone. Readers and owners serve the rest and report what is missing, and readers
/// load it again once it is back.
#[test]
fn what_a_lost_object_held_is_said_to_be_missing_and_the_rest_is_served() {
    for (end, events) in [(".rows", 3), (".dead", 6), (".segment", 5)] {
        for late in [false, true] {
            let at = format!("{end}, late: {late}");
            let bucket = MemoryBucket::new();
            let owner = Process::first(&bucket);
            write(&owner.collection, 1);
            owner.collection.flush().unwrap();
            owner.collection.delete(&["w1-0".to_owned()]).unwrap();
            owner.collection.flush().unwrap();
            let mut names = bucket.objects().into_iter().map(|(name, _)| name);
            let name = names.find(|name| name.ends_with(end)).unwrap();
            write(&owner.collection, 2);
            owner.collection.flush().unwrap();
            let all = content(&owner.collection.snapshot());
            assert_eq!(all.len(), 5, "{at}");
            drop(owner);
            let reader = || Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
            let early = reader();
            let kept = bucket.get(&name).unwrap();
            bucket.harm(&name, None);
            // A reader that has it open notices no loss.
            assert!(!early.refresh().unwrap(), "{at}");
            let stores = if late { vec![open(&bucket).unwrap(), reader()] } else { vec![reader()] };
            for store in &stores {
                let seen = store.collection("t", "c").expect("it is served").snapshot();
                assert_eq!(content(&seen).len(), events, "{at}");
                // An index is rebuilt from its rows, and nothing is missing.
                let missing: String = seen.missing.iter().map(ToString::to_string).collect();
                assert_eq!(missing.contains(name.rsplit('/').next().unwrap()), end != ".segment", "{at}: {missing:?}");
            }
            bucket.harm(&name, Some(kept));
            let last = stores.last().unwrap();
            last.refresh().unwrap();
            let seen = last.collection("t", "c").unwrap().snapshot();
            assert_eq!((content(&seen), seen.missing.len()), (all, 0), "{at}");
            assert!(!last.refresh().unwrap(), "{at}");
        }
    }
}

#[test]
fn a_damaged_index_is_rebuilt_and_written_under_another_name() {
    for (archived, place) in
        [false, true].into_iter().flat_map(|archived| [3, 30, 60, 99].map(|place| (archived, place)))
    {
        let at = format!("archived: {archived}, at {place}%");
        let bucket = MemoryBucket::new();
        // Uses seeds of its own. With those of other tests the filter of ids may take a new id for a known one, once in
        // a hundred times. Then the damaged page is read, and the write is refused.
        let process = AtomicU64::new(0);
        let seams =
            || Seams { random: Arc::new(SeededRandom::new(process.fetch_add(1, Ordering::Relaxed) << 20)), ..seams() };
        let options = || Options { archive_rows_min: if archived { 1 } else { u32::MAX }, ..options() };
        let open = || {
            let seams = seams();
            let clock = seams.clock.clone();
            let store = Store::open_shared(options(), seams, Arc::new(bucket.clone())).unwrap();
            (store, clock)
        };
        let (store, clock) = open();
        let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        (1..100).for_each(|number| assert_eq!(write(&c, number), WriteOutcome::Stored));
        c.flush().unwrap();
        clock.sleep(Duration::from_secs(60));
        c.maintain().unwrap();
        let before = content(&c.snapshot());
        drop((store, c));
        let named = |end: &str| {
            let names = bucket.objects().into_iter().map(|(name, _)| name);
            names.filter(|name| name.ends_with(end)).collect::<Vec<_>>()
        };
        assert_eq!(named(".parquet").len(), usize::from(archived), "{at}");
        let damaged = named(".segment");
        for name in &damaged {
            let mut bytes = bucket.get(name).unwrap();
            let byte = bytes.len() * place / 100;
            bytes[byte..byte + 8].iter_mut().for_each(|byte| *byte ^= 0x55);
            bucket.harm(name, Some(bytes));
        }
        let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
        // Damage that shows when a block is read fails only that read, by name.
        let seen = reader.collection("t", "c").unwrap();
        for error in readable(&seen.snapshot()).1 {
            assert!(error.to_string().contains(".segment"), "{at}: {error}");
        }
        reader.refresh().unwrap();
        assert_eq!(content(&seen.snapshot()), before, "{at}: a reader");
        let (store, clock) = open();
        let c = store.collection("t", "c").unwrap();
        assert_eq!(write(&c, 100), WriteOutcome::Stored, "{at}");
        c.delete(&["w100-0".to_owned(), "w100-1".to_owned(), "w100-2".to_owned()]).unwrap();
        store.check();
        c.maintain().unwrap();
        assert_eq!(content(&c.snapshot()), before, "{at}: rebuilt");
        clock.sleep(Duration::from_secs(60));
        c.maintain().unwrap();
        assert_eq!(content(&c.snapshot()), before, "{at}: once it is written again");
        drop((store, c));
        let (store, _) = open();
        assert_eq!(store.check(), [], "{at}");
        assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()), before, "{at}");
        assert!(reader.refresh().unwrap(), "{at}");
        assert_eq!(content(&reader.collection("t", "c").unwrap().snapshot()), before, "{at}");
    }
}

#[test]
fn a_full_bucket_refuses_and_one_that_is_gone_leaves_it_open() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    let mut writes = Writes::default();
    writes.write(&owner.collection);
    bucket.fail(BucketFault::Full, 0);
    let c = &owner.collection;
    let full = c.write(Write::new(batch(&c.schema(), &[crate::world::Event::new("full", 1)])));
    assert!(matches!(full, Err(WriteError::Full(_))), "{full:?}");
    assert_eq!(writes.write(c), WriteOutcome::Stored);
    assert!(!owner.store.is_outdated());
    bucket.cut(true);
    assert_eq!(writes.write(c), WriteOutcome::Unknown);
    assert_eq!(writes.write(c), WriteOutcome::Refused);
    assert!(owner.store.is_outdated(), "it does not know what the log holds");
    assert!(open(&bucket).is_err(), "a bucket that does not answer is no empty one");
    bucket.cut(false);
    let next = Process::next(&bucket);
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
}

/// Clients are told that the log is at fault and to retry: this owner reopens the collection, or another one opens it.
#[test]
fn a_log_that_does_not_answer_is_no_broken_disk() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    let c = &owner.collection;
    let written = |n: i64| c.write(Write::new(batch(&c.schema(), &[crate::world::Event::new(format!("e{n}"), n)])));
    bucket.cut(true);
    let unknown = written(1).unwrap_err();
    assert!(matches!(&unknown, WriteError::Unknown(why) if why.contains("log of the cluster")), "{unknown:?}");
    let refused = written(2).unwrap_err();
    assert!(matches!(&refused, WriteError::Busy(why) if why.contains("log of the cluster")), "{refused:?}");
    let short = Settings { retention: Some(Duration::from_secs(1)), ..Settings::default() };
    let changed = c.set_settings(short).unwrap_err();
    assert!(matches!(&changed, StoreError::Busy(why) if why.contains("log of the cluster")), "{changed:?}");
    for error in [unknown, refused] {
        assert!(!error.to_string().contains("disk"), "{error}");
    }
    assert!(owner.store.is_outdated() && c.stats().refuses.is_none());
    bucket.cut(false);
    drop(owner);
    assert_eq!(write(&Process::next(&bucket).collection, 3), WriteOutcome::Stored);
    // A former owner reports the takeover, and that nothing is stored.
    let (first, next) = (Process::next(&bucket), Process::next(&bucket));
    let fenced =
        first.collection.write(Write::new(batch(&next.collection.schema(), &[crate::world::Event::new("f", 1)])));
    assert!(matches!(&fenced, Err(WriteError::Busy(why)) if why.contains("taken")), "{fenced:?}");
}

/// It is absent neither for a caller that requests it nor for one that holds it.
#[test]
fn a_collection_that_could_not_be_dropped_is_opened_again() {
    let bucket = MemoryBucket::new();
    let seams = seams();
    let clock = seams.clock.clone();
    let store = Store::open_shared(options(), seams, Arc::new(bucket.clone())).unwrap();
    let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    assert_eq!(write(&c, 1), WriteOutcome::Stored);
    let delete = |c: &Collection| c.delete(&["w1-0".to_owned()]).unwrap_err();
    bucket.cut(true);
    assert!(store.drop_collection("t", "c").is_err());
    bucket.cut(false);
    assert!(store.why_damaged("t", "c").unwrap().to_string().contains("cannot be opened now"));
    assert_eq!(store.complete().unwrap().time_of("t", "c"), i64::MIN, "its log may hold what is not flushed");
    assert!(matches!(delete(&c), WriteError::Busy(_)));
    clock.sleep(Duration::from_secs(1));
    assert_eq!(store.open_due(), 1);
    let again = store.collection("t", "c").unwrap();
    assert_eq!(content(&again.snapshot()).len(), 3);
    assert!(store.drop_collection("t", "c").unwrap());
    assert!(matches!(delete(&again), WriteError::Closed));
    // A closing store loses nothing.
    let other = store.create("t", "d", schema(IdRole::Given), Settings::default()).unwrap();
    store.close().unwrap();
    assert!(matches!(delete(&other), WriteError::Busy(_)));
    let made = store.create("t", "e", schema(IdRole::Given), Settings::default());
    assert!(matches!(made, Err(StoreError::Busy(_))), "{made:?}");
}

#[test]
fn an_object_that_is_gone_when_a_block_of_it_is_read_is_damage() {
    for (archive_rows_min, rows) in [(u32::MAX, ".rows"), (1, ".parquet")] {
        let bucket = MemoryBucket::new();
        let of_owner = seams();
        let clock = of_owner.clock.clone();
        let options_of_owner = Options { archive_rows_min, ..options() };
        let store = Store::open_shared(options_of_owner, of_owner, Arc::new(bucket.clone())).unwrap();
        let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        (1..100).for_each(|number| assert_eq!(write(&c, number), WriteOutcome::Stored));
        c.flush().unwrap();
        clock.sleep(Duration::from_secs(60));
        c.maintain().unwrap();
        drop((store, c));
        // It keeps no extents, so each block is read from the bucket.
        let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
        let snapshot = reader.collection("t", "c").unwrap().snapshot();
        // A bucket that does not answer is none.
        bucket.cut(true);
        let error = readable(&snapshot).1.remove(0);
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
        bucket.cut(false);
        let segments = bucket.objects().into_iter().filter(|(name, _)| name.contains("/segments/"));
        segments.for_each(|(name, _)| bucket.harm(&name, None));
        let errors = [readable(&snapshot).1.remove(0), snapshot.find("w1-0").map(drop).unwrap_err()];
        for (error, end) in errors.iter().zip([rows, ".segment"]) {
            let StoreError::Corrupt { path, detail } = error else { panic!("{error:?}") };
            assert!(path.to_string_lossy().ends_with(end) && detail == "it is missing", "{error}");
        }
    }
}

#[test]
fn a_store_in_memory_has_no_bucket() {
    let bucket = Arc::new(MemoryBucket::new());
    let ephemeral = Options { ephemeral: true, ..options() };
    let refused = Store::open_shared(ephemeral, seams(), bucket).unwrap_err().to_string();
    assert!(refused.contains("data folder"), "{refused}");
}
