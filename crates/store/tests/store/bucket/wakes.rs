//! Defects found by the explorer of the protocol (`crates/model/tests/owner`), reproduced with the store itself. A
//! process resumes late, or completes work begun before it was fenced.

use super::{Process, WriteOutcome, Writes, open, seams};
use crate::world::options;
use meridian_store::Store;
use meridian_store::bucket::{BucketFault, MemoryBucket};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// More calls than any of the runs makes.
const CALLS: u64 = 2_000;

/// A flush is in progress when the log is fenced, and is committed before the first manifest of the new owner. It must
/// not record that the log continues after writes that it does not hold.
#[test]
fn a_flush_that_ends_after_a_fence_covers_only_what_it_holds() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        let mut writes = Writes::default();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        let flush = owner.collection.begin_memory(true).unwrap();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        let writes = Arc::new(Mutex::new(writes));
        let meanwhile = writes.clone();
        bucket.pause(after, move || {
            meanwhile.lock().write(&owner.collection);
            let _ = owner.collection.install(flush);
        });
        let store = open(&bucket).unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        assert_eq!(store.problems(), [], "pause after {after}");
        let collection = store.collection("t", "c").expect("the collection is there");
        let mut writes = writes.lock();
        writes.compare(&collection);
        assert_eq!(writes.write(&collection), WriteOutcome::Stored, "pause after {after}");
        writes.compare(&Process::next(&bucket).collection);
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

/// A candidate pauses at each of its calls in turn, and a second one takes over meanwhile. Then the former owner
/// resumes as well.
#[test]
fn an_owner_finds_the_manifest_of_each_that_came_after_it() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        let mut writes = Writes::default();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        owner.collection.flush().unwrap();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        let flush = owner.collection.begin_memory(true).unwrap();
        let rival = Arc::new(Mutex::new(None));
        let (others, meanwhile) = (bucket.clone(), rival.clone());
        bucket.pause(after, move || *meanwhile.lock() = Some(Process::next(&others)));
        let candidate = open(&bucket).unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let flushed = owner.collection.install(flush);
        assert!(flushed.is_err() && owner.store.is_outdated(), "pause after {after}: a former owner commits");
        drop((candidate, rival));
        writes.compare(&Process::next(&bucket).collection);
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

/// A candidate pauses at each of its calls in turn, and another takes over and flushes. The other's files are not
/// leftovers, however long the first one continues.
#[test]
fn files_of_a_later_owner_are_no_leftovers() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        let mut writes = Writes::default();
        (0..2).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        drop(owner);
        let others = bucket.clone();
        bucket.pause(after, move || Process::next(&others).collection.flush().unwrap());
        let seams = seams();
        let clock = seams.clock.clone();
        let store = Store::open_shared(options(), seams, Arc::new(bucket.clone())).unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        clock.sleep(Duration::from_secs(3_600));
        store.trim_serving();
        writes.compare(&Process::next(&bucket).collection);
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

/// The outcome of an append is unknown, and a flush in progress is committed: the next owner finds where the log
/// continues.
#[test]
fn a_flush_after_an_append_of_unknown_outcome_names_where_the_log_continues() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    let mut writes = Writes::default();
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
    let flush = owner.collection.begin_memory(true).unwrap();
    // It arrives, and nothing does from then on.
    bucket.fail(BucketFault::After, 0);
    let cut = bucket.clone();
    bucket.pause(1, move || cut.cut(true));
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Unknown);
    bucket.cut(false);
    owner.collection.install(flush).unwrap();
    drop(owner);
    let next = Process::next(&bucket);
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
}
