//! A reader that follows the log shows what the owner has acknowledged but not flushed yet.

use super::{Process, seams};
use crate::world::{Event, START, batch, content, options, schema};
use meridian_model::IdRole;
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{Clock, ManualClock, Seams};
use meridian_store::stream::MemoryStreams;
use meridian_store::{Collection, Options, Settings, SharedLog, Store, Write};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// A bucket and the log of its owners.
struct Backing {
    bucket: MemoryBucket,
    log: SharedLog,
}

impl Backing {
    /// Returns one of each kind of log.
    fn each() -> [Backing; 2] {
        let streams = SharedLog::Streams { streams: Arc::new(MemoryStreams::new(0)), accept_loss: false };
        [SharedLog::Bucket, streams].map(|log| Backing { bucket: MemoryBucket::new(), log })
    }
}

fn owner(place: &Backing) -> Process {
    let bucket = Arc::new(place.bucket.clone());
    let store = Store::open_shared_over(options(), seams(), bucket, place.log.clone()).unwrap();
    let collection = match store.collection("t", "c") {
        Some(collection) => collection,
        None => store.create("t", "c", schema(IdRole::Made), Settings::default()).unwrap(),
    };
    Process { store, collection }
}

fn reader(place: &Backing) -> Store {
    let options = Options { follow_log: true, ..options() };
    Store::open_read_only_over(options, seams(), Arc::new(place.bucket.clone()), place.log.clone()).unwrap()
}

fn write(collection: &Collection, number: i64) {
    let events: Vec<Event> = (0..3).map(|i| Event::new(String::new(), number * 10 + i)).collect();
    collection.write(Write::new(batch(&collection.schema(), &events))).unwrap();
}

/// Checks that both show the same at the reader's position.
fn compare(owner: &Collection, reader: &Collection) {
    let shown = reader.snapshot();
    let expected: Vec<_> = content(&owner.snapshot()).into_iter().filter(|(_, seq, _)| *seq <= shown.seq.0).collect();
    assert_eq!(content(&shown), expected, "at {}", reader.position());
}

#[test]
fn writes_are_shown_before_they_are_flushed() {
    for place in Backing::each() {
        let owner = owner(&place);
        write(&owner.collection, 1);
        owner.collection.flush().unwrap();
        write(&owner.collection, 2);
        let follower = reader(&place);
        let c = follower.collection("t", "c").unwrap();
        follower.refresh().unwrap();
        assert_eq!((c.position(), content(&c.snapshot()).len()), (2, 6));
        assert!(!follower.refresh().unwrap(), "nothing is new");
        let before = c.snapshot();
        (3..40).for_each(|number| write(&owner.collection, number));
        assert!(follower.refresh().unwrap());
        compare(&owner.collection, &c);
        assert_eq!(c.position(), 39);
        // A manifest that covers a part replaces it, and nothing is shown twice.
        owner.collection.flush().unwrap();
        write(&owner.collection, 40);
        assert!(follower.refresh().unwrap());
        assert_eq!(content(&c.snapshot()), content(&owner.collection.snapshot()));
        assert_eq!(content(&before).len(), 6, "a snapshot in hand does not change");
        assert_eq!(content(&c.snapshot_at(before.seq).unwrap()).len(), 6);
        // A reader that does not follow the log sees only flushed writes.
        let plain = Store::open_read_only(options(), seams(), Arc::new(place.bucket.clone())).unwrap();
        assert_eq!(plain.collection("t", "c").unwrap().position(), 39);
    }
}

#[test]
fn a_deletion_ends_what_is_shown_until_it_is_flushed() {
    for place in Backing::each() {
        let owner = owner(&place);
        write(&owner.collection, 1);
        let follower = reader(&place);
        follower.refresh().unwrap();
        let c = follower.collection("t", "c").unwrap();
        let id = content(&owner.collection.snapshot())[0].0.clone();
        owner.collection.delete(&[id]).unwrap();
        write(&owner.collection, 2);
        follower.refresh().unwrap();
        assert_eq!((c.position(), content(&c.snapshot()).len()), (1, 3));
        owner.collection.flush().unwrap();
        write(&owner.collection, 3);
        follower.refresh().unwrap();
        assert_eq!(content(&c.snapshot()), content(&owner.collection.snapshot()));
        assert_eq!(c.position(), 4, "the log is followed again");
    }
}

#[test]
fn collections_with_given_ids_are_shown_as_flushed() {
    let [place, _] = Backing::each();
    let owner = Process::first(&place.bucket);
    super::write(&owner.collection, 1);
    let follower = reader(&place);
    follower.refresh().unwrap();
    assert_eq!(follower.collection("t", "c").unwrap().position(), 0);
    owner.collection.flush().unwrap();
    follower.refresh().unwrap();
    assert_eq!(follower.collection("t", "c").unwrap().position(), 1);
}

#[test]
fn a_damaged_object_of_the_log_hides_nothing_that_is_flushed() {
    let [place, _] = Backing::each();
    let owner = owner(&place);
    write(&owner.collection, 1);
    owner.collection.flush().unwrap();
    write(&owner.collection, 2);
    let name = place
        .bucket
        .objects()
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| name.contains("/wal/"))
        .max()
        .unwrap();
    place.bucket.harm(&name, Some(b"not an object of the log".to_vec()));
    write(&owner.collection, 3);
    let follower = reader(&place);
    let c = follower.collection("t", "c").unwrap();
    follower.refresh().unwrap();
    assert_eq!((c.position(), content(&c.snapshot()).len()), (1, 3));
    owner.collection.flush().unwrap();
    write(&owner.collection, 4);
    follower.refresh().unwrap();
    assert_eq!((c.position(), content(&c.snapshot()).len()), (4, 12));
}

#[test]
fn what_is_shown_is_as_old_as_the_look_that_found_the_end_of_the_log() {
    let bucket = MemoryBucket::new();
    let clock = Arc::new(ManualClock::new(START));
    let with_clock = || Seams { clock: clock.clone(), ..seams() };
    let owner = Store::open_shared(options(), with_clock(), Arc::new(bucket.clone())).unwrap();
    let written = owner.create("t", "c", schema(IdRole::Made), Settings::default()).unwrap();
    let options = Options { follow_log: true, skew: Duration::from_secs(2), ..options() };
    let follower = Store::open_read_only(options, with_clock(), Arc::new(bucket.clone())).unwrap();
    let c = follower.collection("t", "c").unwrap();
    let age = || (clock.now() - c.snapshot().taken_at) / 1_000_000;
    write(&written, 1);
    clock.advance(40_000_000);
    follower.refresh().unwrap();
    assert_eq!((c.position(), age()), (1, 2), "the clocks may differ by two seconds");
    clock.advance(5_000_000);
    assert_eq!(age(), 7);
    // The event hidden by a deletion is older than the deletion.
    let id = content(&written.snapshot())[0].0.clone();
    written.delete(&[id]).unwrap();
    clock.advance(5_000_000);
    follower.refresh().unwrap();
    assert_eq!(age(), 12);
    written.flush().unwrap();
    // The poll before the manifest found nothing that it could take for the end.
    follower.refresh().unwrap();
    follower.refresh().unwrap();
    assert_eq!((c.position(), age()), (2, 2));
}

#[derive(Debug, Clone)]
enum Step {
    Write(u8),
    Flush,
    Maintain,
    Delete,
    TakeOver,
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1..5u8).prop_map(Step::Write),
        2 => Just(Step::Flush),
        1 => Just(Step::Maintain),
        1 => Just(Step::Delete),
        1 => Just(Step::TakeOver),
        5 => Just(Step::Look),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever owners do, a reader shows a state that existed: all writes up to its position, none twice, and its
    /// position never goes back. Without deletions since the last flush it shows every write acknowledged before its
    /// poll.
    #[test]
    fn a_follower_shows_a_state_of_the_owner(steps in steps(), in_streams: bool) {
        let place = &Backing::each()[usize::from(in_streams)];
        let mut process = owner(place);
        let follower = reader(place);
        let (mut number, mut shown, mut is_blocked) = (0, 0, false);
        for step in steps.into_iter().chain([Step::Look]) {
            match step {
                Step::Write(count) => (0..count).for_each(|_| {
                    number += 1;
                    write(&process.collection, number);
                }),
                Step::Flush => {
                    process.collection.flush().unwrap();
                    is_blocked = false;
                }
                Step::Maintain => {
                    process.collection.maintain().unwrap();
                }
                Step::Delete => {
                    if let Some((id, ..)) = content(&process.collection.snapshot()).first() {
                        process.collection.delete(std::slice::from_ref(id)).unwrap();
                        is_blocked = true;
                    }
                }
                // The former owner ends without a flush; its part of the log ends with a fence.
                Step::TakeOver => process = owner(place),
                Step::Look => {
                    follower.refresh().unwrap();
                    let Some(c) = follower.collection("t", "c") else { continue };
                    prop_assert!(c.position() >= shown, "{} after {shown}", c.position());
                    shown = c.position();
                    // Events deleted since are still shown at a position before their deletion.
                    let then = process.collection.snapshot_at(c.snapshot().seq);
                    if let Ok(then) = then {
                        prop_assert_eq!(content(&c.snapshot()), content(&then));
                    }
                    if !is_blocked {
                        prop_assert_eq!(shown, process.collection.position());
                        prop_assert_eq!(content(&c.snapshot()), content(&process.collection.snapshot()));
                    }
                }
            }
        }
    }
}
