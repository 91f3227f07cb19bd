//! A process is paused at each of its calls to the streams in turn, until others have taken over and continued.

use super::{Cluster, WriteOutcome, Writes};
use crate::bucket::write;
use parking_lot::Mutex;
use std::sync::Arc;

/// More calls than any of the runs makes.
const CALLS: u64 = 500;
/// Max bytes of a message, so small that a write is a group of several.
const MESSAGE_MAX: usize = 100;

/// Makes other owners take over, one after the other, write and flush.
fn go_on(cluster: &Cluster, numbers: std::ops::Range<i64>) -> Vec<(i64, WriteOutcome)> {
    let mut done = Vec::new();
    for from in numbers.step_by(12) {
        let other = cluster.next();
        for number in from..from + 12 {
            done.push((number, write(&other.collection, number)));
            if number % 3 == 0 {
                other.collection.flush().unwrap();
            }
        }
    }
    done
}

/// An owner is paused before any of its actions, and anything may happen meanwhile. Nothing acknowledged is lost, and
/// the owner can no longer change anything.
#[test]
fn an_owner_that_wakes_up_after_a_takeover_changes_nothing_and_knows_it() {
    let mut paused = 0;
    for after in 0..CALLS {
        // Groups of several messages, so that a pause may come between two of them.
        let cluster = Cluster::of(MESSAGE_MAX);
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        let before = cluster.streams.messages().len();
        writes.write(&owner.collection);
        assert!(cluster.streams.messages().len() > before + 2, "a group is of fewer messages than meant");
        let done = Arc::new(Mutex::new(Vec::new()));
        let (others, meanwhile) = (cluster.clone(), done.clone());
        cluster.streams.pause(after, move || *meanwhile.lock() = go_on(&others, 100..124));
        // Work begun before the pause may complete, as if it had been in time.
        writes.write(&owner.collection);
        let _ = owner.collection.flush();
        writes.write(&owner.collection);
        let _ = owner.collection.flush();
        if cluster.streams.take_pause() {
            break;
        }
        paused += 1;
        let done = std::mem::take(&mut *done.lock());
        assert_eq!(done.len(), 24, "pause after {after}: the takeover failed");
        done.into_iter().for_each(|(number, outcome)| {
            assert_eq!(outcome, WriteOutcome::Stored, "pause after {after}: the new owner takes no writes");
            writes.note(number, outcome);
        });
        let before = (cluster.bucket.objects().len(), cluster.streams.messages());
        assert_ne!(writes.write(&owner.collection), WriteOutcome::Stored, "pause after {after}: it acknowledges");
        let _ = owner.collection.flush();
        assert!(owner.store.is_outdated(), "pause after {after}: it does not know");
        let after_it = (cluster.bucket.objects().len(), cluster.streams.messages());
        assert_eq!(after_it, before, "pause after {after}: it still writes");
        let third = cluster.next();
        writes.compare(&third.collection);
        assert_eq!(writes.write(&third.collection), WriteOutcome::Stored);
        assert!(!third.store.is_outdated());
    }
    // At least two groups of three messages, and what two flushes release.
    assert!((8..CALLS).contains(&paused), "{paused} calls were paused at");
}

/// When the former owner resumes in the middle of a group, the new one has published its owner record, and possibly a
/// few more messages. The rest of the group expects numbers that these may have: nothing of it may follow them.
#[test]
fn of_a_group_that_a_takeover_cuts_off_nothing_more_arrives() {
    for others in 0..3 {
        let mut paused = 0;
        for after in 0..CALLS {
            let cluster = Cluster::of(MESSAGE_MAX);
            let owner = cluster.first();
            let mut writes = Writes::default();
            assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
            let next = Arc::new(Mutex::new(None));
            let (other, meanwhile) = (cluster.clone(), next.clone());
            cluster.streams.pause(after, move || {
                let process = other.next();
                let outcomes: Vec<WriteOutcome> = (0..others).map(|n| write(&process.collection, 100 + n)).collect();
                *meanwhile.lock() = Some((process, outcomes, other.streams.messages()));
            });
            let outcome = writes.write(&owner.collection);
            if cluster.streams.take_pause() {
                break;
            }
            paused += 1;
            assert_ne!(outcome, WriteOutcome::Stored, "pause after {after}: it acknowledges");
            let (next, outcomes, messages) = next.lock().take().unwrap();
            (100..).zip(outcomes).for_each(|(number, outcome)| {
                assert_eq!(outcome, WriteOutcome::Stored, "pause after {after}");
                writes.note(number, outcome);
            });
            assert_eq!(cluster.streams.messages(), messages, "pause after {after}: it still writes");
            assert!(owner.store.is_outdated(), "pause after {after}: it does not know");
            // The new owner continues, and finds no other writer's messages in its log.
            assert_eq!(write(&next.collection, 200), WriteOutcome::Stored, "pause after {after}");
            writes.note(200, WriteOutcome::Stored);
            assert!(!next.store.is_outdated());
            writes.compare(&next.collection);
            writes.compare(&cluster.next().collection);
        }
        assert!((3..CALLS).contains(&paused), "{paused} calls were paused at");
    }
}

/// Two candidates race for the collection of a dead owner: in the end one of them has it, and nothing is lost.
#[test]
fn of_two_candidates_one_has_the_collection() {
    let mut paused = 0;
    for after in 0..CALLS {
        let cluster = Cluster::of(MESSAGE_MAX);
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        writes.write(&owner.collection);
        drop(owner);
        let rival = Arc::new(Mutex::new(None));
        let (others, meanwhile) = (cluster.clone(), rival.clone());
        cluster.streams.pause(after, move || {
            let other = others.next();
            let outcome = write(&other.collection, 100);
            other.collection.flush().unwrap();
            *meanwhile.lock() = Some((other, outcome));
        });
        let store = cluster.open().unwrap();
        if cluster.streams.take_pause() {
            break;
        }
        paused += 1;
        let (rival, outcome) = rival.lock().take().unwrap();
        writes.note(100, outcome);
        let collection =
            store.collection("t", "c").unwrap_or_else(|| panic!("pause after {after}: {:?}", store.problems()));
        let outcomes = [writes.write(&collection), writes.write(&rival.collection)];
        let stored = outcomes.iter().filter(|outcome| **outcome == WriteOutcome::Stored).count();
        assert_eq!(stored, 1, "pause after {after}: {outcomes:?}");
        writes.compare(&cluster.next().collection);
    }
    assert!((3..CALLS).contains(&paused), "{paused} calls were paused at");
}
