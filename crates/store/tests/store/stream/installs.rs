//! What happens while a manifest is committed. No call of an install is made under the lock that writers need.

use super::{Cluster, Process, WriteOutcome, Writes};
use parking_lot::Mutex;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// More calls than any install makes.
const CALLS: u64 = 200;

/// Installs a flush, or a merge of segments, and does something at its call `after` to the streams or to the bucket.
/// Returns false if it makes fewer calls.
fn installed(
    (cluster, owner): (&Cluster, &Process),
    (streams, merge, after): (bool, bool, u64),
    meanwhile: impl FnOnce() + Send + 'static,
) -> bool {
    let job = if merge { owner.collection.begin_segments() } else { owner.collection.begin_memory(true) };
    let mut job = job.expect("there is something to do");
    owner.collection.run(&mut job);
    let wake = move || {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            meanwhile();
            done.send(()).unwrap();
        });
        // No measure of time: without the lock it is done at once.
        is_done.recv_timeout(Duration::from_secs(60)).expect("a writer waits for the install, or has failed");
    };
    match streams {
        true => cluster.streams.pause(after, wake),
        false => cluster.bucket.pause(after, wake),
    }
    owner.collection.install(job).unwrap();
    !cluster.streams.take_pause() & !cluster.bucket.take_pause()
}

#[test]
fn events_that_are_written_and_deleted_meanwhile_are_carried_over() {
    for (streams, merge, calls_min) in [(true, false, 1), (false, false, 3), (false, true, 3)] {
        let mut paused = 0;
        for after in 0..CALLS {
            let cluster = Cluster::default();
            let owner = cluster.first();
            let mut writes = Writes::default();
            for _ in 0..5 {
                assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
                if merge {
                    owner.collection.flush().unwrap();
                }
            }
            let before = owner.collection.snapshot();
            let writes = Arc::new(Mutex::new(writes));
            let (others, collection) = (writes.clone(), owner.collection.clone());
            let meanwhile = move || {
                let mut writes = others.lock();
                assert_eq!(writes.write(&collection), WriteOutcome::Stored);
                let gone = ["w1-0", "w1-1", "w1-2"].map(str::to_owned);
                assert_eq!(collection.delete(&gone).unwrap().deleted, 3);
                writes.note(1, WriteOutcome::Refused);
            };
            if !installed((&cluster, &owner), (streams, merge, after), meanwhile) {
                break;
            }
            paused += 1;
            assert_eq!(crate::world::readable(&before).0.len(), 15, "the snapshot at call {after}");
            let mut writes = writes.lock();
            writes.compare(&owner.collection);
            // What the manifest lacks of it is in the log.
            drop(owner);
            let next = cluster.next();
            writes.compare(&next.collection);
            next.collection.flush().unwrap();
            drop(next);
            writes.compare(&cluster.next().collection);
        }
        assert!((calls_min..CALLS).contains(&paused), "{paused} calls were paused at");
    }
}

/// The manifest under way names no next generation, so the log does not begin one.
#[test]
fn a_stream_that_loses_writes_during_a_commit_is_followed_by_another_after_the_next_flush() {
    let mut paused = 0;
    for after in 0..CALLS {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
        let writes = Arc::new(Mutex::new(writes));
        let (others, collection, lost) = (writes.clone(), owner.collection.clone(), cluster.streams.clone());
        let meanwhile = move || {
            lost.lose(1);
            assert_eq!(others.lock().write(&collection), WriteOutcome::Refused);
        };
        if !installed((&cluster, &owner), (false, false, after), meanwhile) {
            break;
        }
        paused += 1;
        let mut writes = writes.lock();
        // Another owner would find this stream, in which nothing that is acknowledged is missing.
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused, "call {after}");
        owner.collection.flush().unwrap();
        assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored, "call {after}");
        drop(owner);
        let next = cluster.next();
        writes.compare(&next.collection);
        assert_eq!(writes.write(&next.collection), WriteOutcome::Stored, "call {after}");
    }
    assert!((3..CALLS).contains(&paused), "{paused} calls were paused at");
}
