//! An object that cannot be read for now is no damage: an owner that takes over opens the collection later, and whole.

use super::{Process, seams};
use crate::world::{Event, batch, content, options, schema};
use meridian_model::IdRole;
use meridian_store::bucket::{Bucket, MemoryBucket};
use meridian_store::{Options, Settings, Store, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// More calls than an open makes.
const CALLS: u64 = 400;

/// Returns another bucket with the same objects: each takeover makes the log longer.
fn copy(bucket: &MemoryBucket) -> MemoryBucket {
    let copy = MemoryBucket::new();
    for (name, _) in bucket.objects() {
        copy.put(&name, &bucket.get(&name).unwrap()).unwrap();
    }
    copy
}

/// Lets the call `after` fail, and no other. The result is true once it did.
fn fail_one(bucket: &MemoryBucket, after: u64) -> Arc<AtomicBool> {
    let (failing, failed) = (bucket.clone(), Arc::new(AtomicBool::new(false)));
    let failure = failed.clone();
    bucket.pause(after, move || {
        failure.store(true, Ordering::SeqCst);
        failing.cut(true);
        let healing = failing.clone();
        failing.pause(0, move || healing.cut(false));
    });
    failed
}

#[test]
fn a_read_that_fails_at_a_takeover_delays_a_collection_and_changes_nothing_of_it() {
    for archive_rows_min in [u32::MAX, 1] {
        let bucket = MemoryBucket::new();
        let of_owner = seams();
        let clock = of_owner.clock.clone();
        let archiving = Options { archive_rows_min, ..options() };
        let store = Store::open_shared(archiving, of_owner, Arc::new(bucket.clone())).unwrap();
        let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        let write = |from: i64| {
            let events: Vec<Event> = (from..from + 100).map(|n| Event::new(format!("e{n}"), n)).collect();
            c.write(Write::new(batch(&c.schema(), &events)).with_key(format!("key {from}"))).unwrap();
        };
        write(1);
        c.flush().unwrap();
        clock.sleep(Duration::from_secs(60));
        c.maintain().unwrap();
        // Dead rows are in a file of their own, as are keys.
        c.delete(&["e1", "e50"].map(str::to_owned)).unwrap();
        write(101);
        c.flush().unwrap();
        let expected = content(&c.snapshot());
        assert_eq!(expected.len(), 198);
        drop((store, c));
        let mut apart = 0;
        for after in 0..CALLS {
            let bucket = copy(&bucket);
            let failed = fail_one(&bucket, after);
            let of_owner = seams();
            let clock = of_owner.clock.clone();
            let opened = Store::open_shared(options(), of_owner, Arc::new(bucket.clone()));
            bucket.take_pause();
            bucket.cut(false);
            let Ok(store) = opened else { continue };
            if store.collection("t", "c").is_none() {
                apart += 1;
                assert!(
                    store.why_damaged("t", "c").unwrap().to_string().contains("cannot be opened now"),
                    "call {after}"
                );
                // As late as a failure may be retried.
                for _ in 0..60 {
                    store.open_due();
                    clock.sleep(Duration::from_secs(1));
                }
            }
            let c = store.collection("t", "c").expect("it is opened later");
            assert_eq!((store.problems(), c.stats().refuses), (vec![], None), "call {after}");
            assert_eq!(content(&c.snapshot()), expected, "call {after}");
            drop((store, c));
            let next = Process::next(&bucket);
            assert_eq!(content(&next.collection.snapshot()), expected, "after call {after}");
            if !failed.load(Ordering::SeqCst) {
                break;
            }
        }
        assert!((8..CALLS).contains(&apart), "it was opened later {apart} times");
    }
}
