//! Two servers that share the records of saved searches.

use super::world::{NEWS, PATIENCE, World, everything, next, stop, titles};
use crate::SavedSearches;
use crate::assigned::AssignedSearches;
use crate::backup::BackupParts;
use crate::records::RECORDS;
use meridian_backend::{Backend, Embedded, RecordSource, Records, Seams, StoreError};
use meridian_store::ControlPlane;
use meridian_store::bucket::MemoryBucket;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts a server over shared records.
fn server(bucket: &MemoryBucket) -> World {
    let mut world = World::new(NEWS);
    let records: Arc<dyn RecordSource> = ControlPlane::new(Arc::new(bucket.clone()), &Seams::real(), 1 << 20);
    world.backend = Embedded::with_records(world.store.clone(), records);
    world
}

/// Starts one over the store of another server, without the saved searches assigned to it.
fn beside(world: &World, bucket: &MemoryBucket) -> World {
    let mut other = World::new(NEWS);
    other.store = world.store.clone();
    let records: Arc<dyn RecordSource> = ControlPlane::new(Arc::new(bucket.clone()), &Seams::real(), 1 << 20);
    other.backend = Embedded::with_records(other.store.clone(), records);
    other.saved.enabled = false;
    other
}

async fn take(assigned: &Arc<AssignedSearches>, epoch: u64) -> Result<(), StoreError> {
    let taking = assigned.clone();
    tokio::task::spawn_blocking(move || taking.take(epoch, Arc::new(|| true))).await.unwrap()
}

/// Returns the checkpoint in a bucket.
fn checkpoint(world: &World) -> Option<Vec<u8>> {
    let records: Arc<dyn Records> = world.backend.records(RECORDS);
    records.get("looked").unwrap()
}

fn follow(saved: &Arc<SavedSearches>) {
    saved.follow().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_saves_is_matched_at_the_other_until_it_is_deleted() {
    let bucket = MemoryBucket::new();
    let (here, there) = (server(&bucket), server(&bucket));
    let (one, two) = (here.open(), there.open());
    let before = one.create(&json!({"keywords": "flood"}), &everything(&one)).await.expect("made");
    follow(&two);
    let same = two.get(&before.id).expect("it is known");
    assert_eq!((&same.definition.name, same.created), (&before.definition.name, before.created));
    assert_eq!(two.count("default"), 1);
    let mut reader = same.outbox.read_kept();
    there.write(&[("title", "flood here")], 0, (4.8, 45.7));
    assert_eq!(titles(&next(&mut reader).await), ["flood here"]);
    // Its own is entered once.
    follow(&one);
    follow(&one);
    assert_eq!(one.count("default"), 1);
    // Either can delete it.
    assert!(two.delete(&same.id).await.expect("deleted"));
    follow(&one);
    assert!(one.get(&before.id).is_none() && one.count("default") == 0);
    // A new server has those of the others.
    let other = one.create(&json!({"keywords": "fire"}), &everything(&one)).await.expect("made");
    let third = server(&bucket);
    let three = third.open();
    assert!(three.get(&other.id).is_some());
    for saved in [&one, &two, &three] {
        stop(saved).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_does_not_answer_for_a_moment_loses_no_saved_search() {
    let bucket = MemoryBucket::new();
    let (here, there) = (server(&bucket), server(&bucket));
    let (one, two) = (here.open(), there.open());
    // The background tasks must not call instead.
    one.close();
    two.close();
    for calls in 0..500 {
        let made = one.create(&json!({"keywords": "flood"}), &everything(&one)).await.expect("made");
        let cut = bucket.clone();
        bucket.pause(calls, move || cut.cut(true));
        // It fails where it has to read.
        drop(two.follow());
        let all_passed = bucket.take_pause();
        bucket.cut(false);
        follow(&two);
        assert!(two.get(&made.id).is_some(), "after {calls} calls");
        if all_passed {
            break;
        }
    }
    for saved in [&one, &two] {
        stop(saved).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_paused_changes_no_record_once_another_has_taken_over() {
    let (bucket, store) = (MemoryBucket::new(), World::new(NEWS));
    let (here, there) = (beside(&store, &bucket), beside(&store, &bucket));
    let (one, two) = (Arc::new(here.assigned()), Arc::new(there.assigned()));
    let asked = json!({"keywords": "flood"});
    assert!(one.current().list(&everything(&one.current()), "", 10).0.is_empty());
    take(&one, 1).await.unwrap();
    let first = one.current();
    let search = first.create(&asked, &everything(&first)).await.expect("made");
    let mut reader = search.outbox.read_kept();
    store.write(&[("title", "flood one")], 0, (4.8, 45.7));
    assert_eq!(titles(&next(&mut reader).await), ["flood one"]);
    // From here on it is paused, as far as the other can tell.
    take(&two, 2).await.unwrap();
    let second = two.current();
    let same = second.get(&search.id).expect("it has the saved search");
    let mut other = same.outbox.read_kept();
    store.write(&[("title", "flood two")], 0, (4.8, 45.7));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|title| title != "flood two") {
        let packet = next(&mut other).await;
        assert!(packet["seq"].as_u64() > search.outbox.numbers().1.checked_add(1_000), "numbers go on: {packet}");
        seen.extend(titles(&packet).into_iter().map(str::to_owned));
    }
    // The state from which the next one would continue.
    let stands = async {
        loop {
            second.write_checkpoint(false).unwrap();
            let stands: Value = serde_json::from_slice(&checkpoint(&there).unwrap_or_default()).unwrap_or_default();
            if stands["collections"]["events"]["position"] == 2 && same.behind().is_empty() {
                return checkpoint(&there);
            }
            tokio::task::yield_now().await;
        }
    };
    let stands = tokio::time::timeout(PATIENCE, stands).await.expect("a checkpoint");
    // It wakes up, has matched the event as well, and believes that the saved searches are still assigned to it.
    assert_eq!(titles(&next(&mut reader).await), ["flood two"]);
    let refused = async {
        // Until it has recorded the event, there is nothing to write.
        while first.write_checkpoint(false).is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("its checkpoint is refused");
    assert!(first.create(&asked, &everything(&first)).await.is_err());
    assert!(first.delete(&search.id).await.is_err());
    let stopping = first.clone();
    assert!(tokio::task::spawn_blocking(move || stopping.stop()).await.unwrap().is_err());
    assert_eq!(checkpoint(&there), stands);
    assert!(second.records.get(&search.id).unwrap().is_some() && second.records.get("state").unwrap().is_none());
    // Nor can it take them back in its own epoch.
    assert!(take(&one, 1).await.is_err());
    one.lose();
    assert!(one.current().get(&search.id).is_none());
    stop(&second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_lost_the_lease_to_nobody_gives_no_number_twice() {
    let (bucket, store) = (MemoryBucket::new(), World::new(NEWS));
    let one = Arc::new(beside(&store, &bucket).assigned());
    take(&one, 1).await.unwrap();
    let first = one.current();
    let id = first.create(&json!({"keywords": "flood"}), &everything(&first)).await.expect("made").id.clone();
    one.lose();
    let mut highest = None;
    for _ in 0..3 {
        // The bucket did not respond for longer than the lease, so no other process could take it either.
        take(&one, 1).await.unwrap();
        let running = one.current();
        let mut reader = running.get(&id).expect("it has the saved search").outbox.read_kept();
        store.write(&[("title", "flood")], 0, (4.8, 45.7));
        let seq = next(&mut reader).await["seq"].as_u64();
        assert!(seq > highest, "{seq:?} after {highest:?}");
        highest = seq;
        one.lose();
    }
    take(&one, 1).await.unwrap();
    // Leftovers of earlier terms change nothing.
    assert!(first.records.put("looked", b"{}").is_err());
    stop(&one.current()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_records_of_a_backup_can_be_claimed_in_another_bucket_and_numbers_go_on() {
    let (store, bucket, another) = (World::new(NEWS), MemoryBucket::new(), MemoryBucket::new());
    let (here, there) = (beside(&store, &bucket), beside(&store, &another));
    let (one, two) = (Arc::new(here.assigned()), Arc::new(there.assigned()));
    take(&one, 5).await.unwrap();
    let before = one.current();
    let content = here.backend.records(RECORDS).get("runs").unwrap().expect("it is claimed");
    let kept = BackupParts::new(None).of("runs", &content).plain.expect("the backup has it");
    there.backend.records(RECORDS).put("runs", &kept).unwrap();
    // If the lease had no holder before.
    take(&two, 1).await.unwrap();
    let after = two.current();
    assert!(after.first > before.first.map(|first| first + 1_000_000), "{:?} after {:?}", after.first, before.first);
    stop(&after).await;
    stop(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_and_numbers_follow_a_process_that_hands_over_and_no_event_is_lost_or_doubled() {
    let (bucket, store) = (MemoryBucket::new(), World::new(NEWS));
    let servers = [(); 3].map(|()| Arc::new(beside(&store, &bucket).assigned()));
    take(&servers[0], 1).await.unwrap();
    let first = servers[0].current();
    let id = first.create(&json!({"keywords": "flood"}), &everything(&first)).await.expect("made").id.clone();
    let (written, mut next_one) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        // Events arrive during takeovers.
        scope.spawn(|| {
            for event in 0..200 {
                store.write(&[("title", &format!("flood {event}"))], 0, (4.8, 45.7));
            }
            written.store(true, Ordering::Release);
        });
        for epoch in 2.. {
            if written.load(Ordering::Acquire) && next_one > 0 {
                break;
            }
            // A stop during a catch-up repeats it.
            while !servers[next_one % 3].current().progress.is_caught_up() {
                std::thread::yield_now();
            }
            let (former, later) = (&servers[next_one % 3], &servers[(next_one + 1) % 3]);
            former.current().stop().unwrap();
            later.take(epoch, Arc::new(|| true)).unwrap();
            former.lose();
            next_one += 1;
        }
    });
    let last = servers[next_one % 3].current();
    let mut reader = last.get(&id).expect("it is there").outbox.read(0).expect("all packets are kept");
    let (mut seen, mut seq) = (Vec::new(), 0);
    while seen.len() < 200 {
        let packet = next(&mut reader).await;
        assert_eq!(packet["seq"], seq);
        seq += 1;
        seen.extend(titles(&packet).into_iter().map(str::to_owned));
    }
    let expected: Vec<String> = (0..200).map(|event| format!("flood {event}")).collect();
    assert_eq!(seen, expected);
    stop(&last).await;
}
