//! A process is paused at each of its calls to the bucket in turn, until others have taken over and continued.

use super::{Process, WriteOutcome, Writes, open, write};
use meridian_store::bucket::MemoryBucket;
use parking_lot::Mutex;
use std::sync::Arc;

/// More calls than any of the runs makes.
const CALLS: u64 = 2_000;

/// Makes other owners take over, one after the other. Each writes and flushes so often that everything old enough is
/// removed.
fn go_on(bucket: &MemoryBucket, numbers: std::ops::Range<i64>) -> Vec<(i64, WriteOutcome)> {
    let mut done = Vec::new();
    for from in numbers.step_by(12) {
        let other = Process::next(bucket);
        for number in from..from + 12 {
            done.push((number, write(&other.collection, number)));
            other.collection.flush().unwrap();
        }
        other.collection.maintain().unwrap();
    }
    done
}

/// An owner is paused before any of its actions, and anything may happen meanwhile. Nothing acknowledged is lost, and
/// the owner can no longer change anything.
#[test]
fn an_owner_that_wakes_up_after_a_takeover_changes_nothing_and_knows_it() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        writes.write(&owner.collection);
        let done = Arc::new(Mutex::new(Vec::new()));
        let (others, meanwhile) = (bucket.clone(), done.clone());
        bucket.pause(after, move || *meanwhile.lock() = go_on(&others, 100..124));
        // Work begun before the pause may complete, as if it had been in time.
        writes.write(&owner.collection);
        let _ = owner.collection.flush();
        writes.write(&owner.collection);
        let _ = owner.collection.maintain();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let done = std::mem::take(&mut *done.lock());
        assert_eq!(done.len(), 24, "pause after {after}: the takeover failed");
        done.into_iter().for_each(|(number, outcome)| {
            assert_eq!(outcome, WriteOutcome::Stored, "pause after {after}: the new owner takes no writes");
            writes.note(number, outcome);
        });
        let objects = bucket.objects();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused, "pause after {after}: it acknowledges");
        let _ = owner.collection.flush();
        assert!(owner.store.is_outdated(), "pause after {after}: it does not know");
        assert_eq!(bucket.objects().len(), objects.len(), "pause after {after}: it still writes");
        let third = Process::next(&bucket);
        writes.compare(&third.collection);
        assert_eq!(writes.write(&third.collection), WriteOutcome::Stored);
        assert!(!third.store.is_outdated());
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

/// A process that opens the bucket is paused, and the owner continues; when it resumes it starts from a stale state.
#[test]
fn a_candidate_that_wakes_up_takes_over_what_there_is_then() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = Arc::new(Process::first(&bucket));
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        (0..2).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        let done = Arc::new(Mutex::new(Vec::new()));
        let (other, meanwhile) = (owner.clone(), done.clone());
        bucket.pause(after, move || {
            // If it is already fenced, it is refused.
            for number in 100..112 {
                meanwhile.lock().push((number, write(&other.collection, number)));
                let _ = other.collection.flush();
            }
            let _ = other.collection.maintain();
        });
        let store = open(&bucket).unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        std::mem::take(&mut *done.lock()).into_iter().for_each(|(number, outcome)| writes.note(number, outcome));
        assert_eq!(store.problems(), [], "pause after {after}");
        let collection = store.collection("t", "c").expect("the collection is there");
        writes.compare(&collection);
        assert_eq!(writes.write(&collection), WriteOutcome::Stored, "pause after {after}");
        collection.flush().unwrap();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused, "pause after {after}: two owners");
        assert!(owner.store.is_outdated(), "pause after {after}");
        assert!(!store.is_outdated(), "pause after {after}");
        writes.compare(&Process::next(&bucket).collection);
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

/// Two candidates race for the collection of a dead owner: in the end one of them has it, and nothing is lost.
#[test]
fn of_two_candidates_one_has_the_collection() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        writes.write(&owner.collection);
        drop(owner);
        let rival = Arc::new(Mutex::new(None));
        let (others, meanwhile) = (bucket.clone(), rival.clone());
        bucket.pause(after, move || {
            let other = Process::next(&others);
            let outcome = write(&other.collection, 100);
            *meanwhile.lock() = Some((other, outcome));
        });
        let store = open(&bucket).unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let (rival, outcome) = rival.lock().take().unwrap();
        writes.note(100, outcome);
        let collection = store.collection("t", "c").unwrap();
        let outcomes = [writes.write(&collection), writes.write(&rival.collection)];
        let stored = outcomes.iter().filter(|outcome| **outcome == WriteOutcome::Stored).count();
        assert_eq!(stored, 1, "pause after {after}: {outcomes:?}");
        writes.compare(&Process::next(&bucket).collection);
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}
