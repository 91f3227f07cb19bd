//! Work begun before a process was fenced or lost an answer completes later (`crate::bucket::wakes`). The tests run in
//! a stream of the second generation, which the manifest has to name.

use super::{Cluster, Process, WriteOutcome, Writes};
use meridian_store::stream::StreamFault;
use parking_lot::Mutex;
use std::sync::Arc;

/// More calls than any of the runs makes.
const CALLS: u64 = 2_000;

/// Returns an owner that continued in another stream, because the first one had lost a write.
fn renewed() -> (Cluster, Process, Writes) {
    let cluster = Cluster::default();
    let owner = cluster.first();
    let mut writes = Writes::default();
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
    cluster.streams.lose(1);
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Refused);
    owner.collection.flush().unwrap();
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
    (cluster, owner, writes)
}

/// A flush is in progress when the log is fenced, and is committed before the first manifest of the new owner.
#[test]
fn a_flush_that_ends_after_a_fence_names_the_stream_that_goes_on() {
    for streams in [true, false] {
        let mut paused = 0;
        for after in 0..CALLS {
            let (cluster, owner, mut writes) = renewed();
            let flush = owner.collection.begin_memory(true).unwrap();
            assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored);
            let writes = Arc::new(Mutex::new(writes));
            let meanwhile = writes.clone();
            let wake = move || {
                meanwhile.lock().write(&owner.collection);
                let _ = owner.collection.install(flush);
            };
            // The candidate is paused at its calls to the streams, or to the bucket.
            match streams {
                true => cluster.streams.pause(after, wake),
                false => cluster.bucket.pause(after, wake),
            }
            let store = cluster.open().unwrap();
            if cluster.streams.take_pause() || cluster.bucket.take_pause() {
                break;
            }
            paused += 1;
            assert_eq!(store.problems(), [], "pause after {after}");
            let collection = store.collection("t", "c").expect("the collection is there");
            let mut writes = writes.lock();
            writes.compare(&collection);
            assert_eq!(writes.write(&collection), WriteOutcome::Stored, "pause after {after}");
            writes.compare(&cluster.next().collection);
        }
        assert!((4..CALLS).contains(&paused), "{paused} calls were paused at");
    }
}

/// The outcome of an append is unknown, and a flush in progress is committed.
#[test]
fn a_flush_after_an_append_of_unknown_outcome_names_the_stream_that_goes_on() {
    let (cluster, owner, mut writes) = renewed();
    let flush = owner.collection.begin_memory(true).unwrap();
    // It arrives, and nothing does from then on.
    cluster.streams.fail(StreamFault::After, 0);
    let cut = cluster.streams.clone();
    cluster.streams.pause(1, move || cut.cut(true));
    assert_eq!(writes.write(&owner.collection), WriteOutcome::Unknown);
    cluster.streams.cut(false);
    owner.collection.install(flush).unwrap();
    drop(owner);
    let next = cluster.next();
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), WriteOutcome::Stored);
}
