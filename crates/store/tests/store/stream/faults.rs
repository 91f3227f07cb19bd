//! Messages whose answers are lost, late, duplicated or refused.

use super::{Cluster, Process, WriteOutcome, Writes, write_large};
use crate::bucket::write;
use crate::world::{Event, batch, content};
use meridian_store::bucket::MemoryBucket;
use meridian_store::stream::StreamFault;
use meridian_store::{Write, WriteError};

#[test]
fn what_came_of_a_message_is_found_out() {
    use StreamFault::{After, Before, Doubled, Stalled};
    // Groups of one message, and of some ten.
    for message_max in [0, 200] {
        for fault in [Before, After, Doubled, Stalled] {
            for after in 0..4 {
                let cluster = Cluster::of(message_max);
                let owner = cluster.first();
                let mut writes = Writes::default();
                cluster.streams.fail(fault, after);
                for _ in 0..4 {
                    assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored, "{fault:?} after {after}");
                }
                cluster.streams.deliver();
                assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored, "{fault:?} after {after}");
                assert!(!owner.store.is_outdated());
                writes.compare(&cluster.next().collection);
            }
        }
    }
}

#[test]
fn a_full_stream_refuses_and_a_group_that_it_took_in_part_counts_for_nothing() {
    for after in 0..12 {
        let cluster = Cluster::of(200);
        let owner = cluster.first();
        let mut writes = Writes::default();
        writes.write(&owner.collection);
        cluster.streams.fail(StreamFault::Full, after);
        let full = write_large(&owner, "large", 2_000);
        assert!(matches!(full, Err(WriteError::Full(_))), "full after {after}: {full:?}");
        assert!(!owner.store.is_outdated());
        // Either process may continue: this one, or the next.
        let owner = if after % 2 == 0 { owner } else { cluster.next() };
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        writes.compare(&owner.collection);
        let next = cluster.next();
        writes.compare(&next.collection);
        assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
    }
}

#[test]
fn a_stream_that_groups_have_filled_is_taken_over() {
    // Groups of one message, and of several.
    for message_max in [0, 100] {
        let cluster = Cluster::of(message_max);
        cluster.streams.limit(20_000);
        let mut owner = cluster.first();
        let mut writes = Writes::default();
        let filled = |owner: &Process| {
            let full = (0..1_000).any(|number| match owner.collection.write(single(owner, number)) {
                Ok(_) => false,
                Err(WriteError::Full(_)) => true,
                Err(other) => panic!("{other}"),
            });
            assert!(full, "the stream never fills up");
        };
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        filled(&owner);
        let before = content(&owner.collection.snapshot());
        // One owner after another is killed before it can flush.
        for _ in 0..10 {
            drop(owner);
            owner = cluster.next();
            assert_eq!(content(&owner.collection.snapshot()), before);
            let full = owner.collection.write(single(&owner, 1_000));
            assert!(matches!(full, Err(WriteError::Full(_))), "{full:?}");
        }
        owner.collection.flush().unwrap();
        owner.collection.write(single(&owner, 1_000)).unwrap();
        assert_eq!(content(&cluster.next().collection.snapshot()).len(), before.len() + 1);
    }
}

/// Returns a write of one event: after the last such write that fits, less room is left than an owner record takes.
fn single(process: &Process, number: i64) -> Write {
    Write::new(batch(&process.collection.schema(), &[Event::new(format!("single{number}"), number)]))
}

#[test]
fn a_stream_that_is_out_of_reach_leaves_the_outcome_open() {
    let cluster = Cluster::default();
    let owner = cluster.first();
    let mut writes = Writes::default();
    writes.write(&owner.collection);
    cluster.streams.cut(true);
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Unknown);
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused);
    assert!(owner.store.is_outdated(), "it does not know what the log holds");
    assert!(
        cluster.open().is_ok_and(|store| store.collection("t", "c").is_none()),
        "a stream out of reach is no empty one"
    );
    cluster.streams.cut(false);
    let next = cluster.next();
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
}

#[test]
fn a_read_that_is_behind_is_no_end_of_the_stream() {
    let cluster = Cluster::default();
    let owner = cluster.first();
    let mut writes = Writes::default();
    (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
    drop(owner);
    for messages in 1..5 {
        cluster.streams.lag(messages);
        assert!(cluster.open().is_ok_and(|store| store.collection("t", "c").is_none()), "{messages} behind");
    }
    cluster.streams.heal();
    let next = cluster.next();
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
}

#[test]
fn a_batch_that_a_read_leaves_out_is_no_loss() {
    let cluster = Cluster::default();
    let owner = cluster.first();
    let mut writes = Writes::default();
    (0..8).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
    drop(owner);
    // Message 3, the second write, is lost, and the loss is to be accepted. Message 6 exists but was not read.
    cluster.streams.harm(3, None);
    cluster.streams.skip(6);
    for accept_loss in [false, true] {
        let store = cluster.open_with(accept_loss).unwrap();
        assert!(store.collection("t", "c").is_none(), "accept_loss {accept_loss}: {:?}", store.problems());
    }
    cluster.streams.heal();
    let store = cluster.open_with(true).unwrap();
    writes.note(2, WriteOutcome::Refused);
    writes.compare(&store.collection("t", "c").unwrap());
}

#[test]
fn a_group_of_many_messages_is_there_whole() {
    let cluster = Cluster::of(1 << 10);
    let owner = cluster.first();
    write_large(&owner, "large", 300_000).unwrap();
    assert!(cluster.streams.messages().len() > 100, "{} messages", cluster.streams.messages().len());
    let before = content(&owner.collection.snapshot());
    assert_eq!(content(&cluster.next().collection.snapshot()), before);
}

#[test]
fn what_a_manifest_covers_leaves_the_stream() {
    let cluster = Cluster::default();
    let owner = cluster.first();
    (1..30).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
    owner.collection.flush().unwrap();
    assert_eq!(cluster.streams.messages().len(), 1, "the last message stays");
    assert_eq!(write(&owner.collection, 30), WriteOutcome::Stored);
    let before = content(&owner.collection.snapshot());
    let next = cluster.next();
    assert_eq!(content(&next.collection.snapshot()), before);
    next.collection.flush().unwrap();
    // A dropped collection takes its stream along, once no writer can be acknowledged there any more.
    assert!(next.store.drop_collection("t", "c").unwrap());
    drop((owner, next));
    let store = cluster.open().unwrap();
    assert!(store.collections().is_empty() && cluster.streams.messages().is_empty());
}

#[test]
fn two_buckets_share_an_account_and_know_nothing_of_each_other() {
    let one = Cluster::default();
    let two = Cluster { bucket: MemoryBucket::new(), streams: one.streams.clone() };
    let first = one.first();
    let mut writes = Writes::default();
    (0..3).for_each(|_| assert_eq!(writes.write(&first.collection), WriteOutcome::Stored));
    // A collection of the same name.
    let second = two.first();
    assert_eq!((second.store.problems(), content(&second.collection.snapshot()).len()), (Vec::new(), 0));
    assert_eq!(write(&second.collection, 1_000), WriteOutcome::Stored);
    second.collection.flush().unwrap();
    assert_eq!(writes.write(&first.collection), WriteOutcome::Stored, "the other one's owner has fenced it");
    assert!(!first.store.is_outdated());
    // Dropped and recreated.
    assert!(second.store.drop_collection("t", "c").unwrap());
    drop((first, second));
    let next = one.next();
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
    let other = two.first();
    assert_eq!((other.store.problems(), content(&other.collection.snapshot()).len()), (Vec::new(), 0));
    writes.compare(&one.next().collection);
}

#[test]
fn the_log_of_a_bucket_is_one_and_the_same() {
    let cluster = Cluster::default();
    drop(cluster.first());
    let other = crate::bucket::open(&cluster.bucket).unwrap_err().to_string();
    assert!(other.contains("--log nats"), "{other}");
    let bucket = MemoryBucket::new();
    drop(crate::bucket::Process::first(&bucket));
    let cluster = Cluster { bucket, ..Cluster::default() };
    let other = cluster.open().unwrap_err().to_string();
    assert!(other.contains("--log bucket"), "{other}");
}
