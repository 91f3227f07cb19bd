//! Streams that lose acknowledged messages.

use super::{Cluster, WriteOutcome, Writes};
use crate::bucket::seams;
use crate::world::{content, options};
use meridian_store::{SharedLog, Store, WriteError};
use std::sync::Arc;

#[test]
fn what_a_live_owner_holds_is_flushed_and_it_goes_on_in_a_new_stream() {
    // Losing all or a part; flushed before or not; with or without a restart before the next write.
    for (flush, lost) in [(false, 1), (false, 3), (true, 1), (true, 100)] {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..5).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        if flush {
            owner.collection.flush().unwrap();
        }
        cluster.streams.lose(lost);
        // The next write reveals it: it is refused and can be retried.
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused, "flush {flush}, {lost} lost");
        assert!(!owner.store.is_outdated());
        owner.collection.maintain_memory(false).unwrap();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored, "flush {flush}, {lost} lost");
        let messages = cluster.streams.messages();
        assert!(messages.iter().all(|(name, _, _)| name.ends_with(".0.1")), "the old stream is gone: {messages:?}");
        writes.compare(&owner.collection);
        let next = cluster.next();
        writes.compare(&next.collection);
        assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
        assert_ne!(writes.write(&owner.collection), WriteOutcome::Stored);
        next.collection.flush().unwrap();
        writes.compare(&cluster.next().collection);
    }
}

#[test]
fn a_live_owner_whose_stream_is_gone_goes_on_in_a_new_one() {
    for flush in [false, true] {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        if flush {
            owner.collection.flush().unwrap();
        }
        cluster.streams.lose_all();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused);
        owner.collection.maintain_memory(false).unwrap();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        let next = cluster.next();
        writes.compare(&next.collection);
        assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
    }
}

#[test]
fn a_loss_is_given_up_without_a_further_write() {
    for lost in [2, 4, 100] {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        let flushed = content(&owner.collection.snapshot());
        // An unflushed write is lost too, and at 100 the stream itself.
        writes.write(&owner.collection);
        drop(owner);
        match lost {
            100 => cluster.streams.lose_all(),
            lost => cluster.streams.lose(lost),
        }
        assert!(!cluster.open().unwrap().problems().is_empty(), "{lost} lost");
        drop(cluster.open_with(true).unwrap());
        let next = cluster.next();
        assert_eq!(content(&next.collection.snapshot()), flushed, "{lost} lost");
        assert_eq!(crate::bucket::write(&next.collection, 100), WriteOutcome::Stored);
        drop(next);
        assert_eq!(content(&cluster.next().collection.snapshot()).len(), flushed.len() + 3);
    }
}

#[test]
fn a_loss_is_given_up_once() {
    let cluster = Cluster::default();
    let mut log = cluster.log(true);
    let open = |log: &SharedLog| {
        Store::open_shared_over(options(), seams(), Arc::new(cluster.bucket.clone()), log.clone()).unwrap()
    };
    drop(cluster.first());
    cluster.streams.lose_all();
    let store = open(&log);
    log.opened();
    assert_eq!(store.problems(), []);
    assert_eq!(crate::bucket::write(&store.collection("t", "c").unwrap(), 1), WriteOutcome::Stored);
    drop(store);
    // The same process takes over again, and the streams have lost something else.
    cluster.streams.lose_all();
    let store = open(&log);
    assert!(!store.problems().is_empty());
    assert_eq!(crate::bucket::write(&store.collection("t", "c").unwrap(), 2), WriteOutcome::Refused);
}

#[test]
fn an_owner_that_ends_between_the_steps_of_a_new_stream_loses_nothing() {
    for after in 0..40 {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..5).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        cluster.streams.lose(2);
        writes.write(&owner.collection);
        // From its first call on, or from a later one, nothing answers.
        let cut = cluster.streams.clone();
        cluster.streams.pause(after, move || cut.cut(true));
        let flushed = owner.collection.flush();
        let reached = !cluster.streams.take_pause();
        writes.write(&owner.collection);
        drop(owner);
        cluster.streams.heal();
        assert!(reached || flushed.is_ok());
        let next = cluster.next();
        writes.compare(&next.collection);
        assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
        writes.compare(&cluster.next().collection);
        if !reached {
            assert!(after > 2, "{after}");
            return;
        }
    }
    panic!("a new stream takes more calls than expected");
}

#[test]
fn what_nobody_holds_any_more_is_named_and_stops_the_collection_until_it_is_given_up() {
    enum Harm {
        Gone,
        Emptied,
        Hole,
        Flipped,
        Tail,
    }
    for harm in [Harm::Gone, Harm::Emptied, Harm::Hole, Harm::Flipped, Harm::Tail] {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        // Numbers 5 to 7: before them are the owner record and three groups.
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        drop(owner);
        let (words, left) = match harm {
            Harm::Gone => {
                cluster.streams.lose_all();
                ("is gone", 9)
            }
            Harm::Emptied => {
                (1..10).for_each(|number| cluster.streams.harm(number, None));
                ("ends with write 0", 9)
            }
            Harm::Hole => {
                cluster.streams.harm(6, None);
                ("writes 5 to 5 are missing", 15)
            }
            Harm::Flipped => {
                cluster.streams.harm(6, Some(b"something else"));
                ("message 6", 15)
            }
            // Below the position that a manifest covers.
            Harm::Tail => {
                cluster.streams.lose(4);
                ("may be missing", 9)
            }
        };
        // It does not disappear by itself.
        for _ in 0..2 {
            let store = cluster.open().unwrap();
            let problems = store.problems();
            assert!(problems.iter().any(|problem| problem.to_string().contains(words)), "{words}: {problems:?}");
            let c = store.collection("t", "c").unwrap();
            assert_eq!(content(&c.snapshot()).len(), left, "{words}: what is there is served");
            let complete = store.complete().unwrap();
            assert_eq!(complete.time_of("t", "c"), i64::MIN, "{words}: readers are told that it is complete");
            let refused = crate::bucket::write(&c, 100);
            assert_eq!(refused, WriteOutcome::Refused, "{words}");
            assert!(matches!(c.delete(&["w1-0".to_owned()]), Err(WriteError::Refused(_))), "{words}");
        }
        // An operator accepts the loss. From the next flush on there is no trace of it.
        let store = cluster.open_with(true).unwrap();
        assert!(store.complete().unwrap().time_of("t", "c") > i64::MIN, "{words}");
        let c = store.collection("t", "c").unwrap();
        assert_eq!(crate::bucket::write(&c, 100), WriteOutcome::Stored, "{words}");
        c.flush().unwrap();
        assert_eq!(crate::bucket::write(&c, 101), WriteOutcome::Stored, "{words}");
        drop((store, c));
        let next = cluster.next();
        assert_eq!(content(&next.collection.snapshot()).len(), left + 6, "{words}");
        assert_eq!(crate::bucket::write(&next.collection, 102), WriteOutcome::Stored, "{words}");
    }
}
