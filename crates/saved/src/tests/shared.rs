//! Two servers that share the records of saved searches.

use super::world::{NEWS, World, everything, next, stop, titles};
use crate::SavedSearches;
use meridian_backend::{Embedded, RecordSource, Seams};
use meridian_store::ControlPlane;
use meridian_store::bucket::MemoryBucket;
use serde_json::json;
use std::sync::Arc;

/// A server over records that others share.
fn server(bucket: &MemoryBucket) -> World {
    let mut world = World::new(NEWS);
    let records: Arc<dyn RecordSource> = ControlPlane::new(Arc::new(bucket.clone()), &Seams::real(), 1 << 20);
    world.backend = Embedded::with_records(world.store.clone(), records);
    world
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
    // One's own is entered once.
    follow(&one);
    follow(&one);
    assert_eq!(one.count("default"), 1);
    // Deleted at either.
    assert!(two.delete(&same.id).await.expect("deleted"));
    follow(&one);
    assert!(one.get(&before.id).is_none() && one.count("default") == 0);
    // A server that starts has what the others have.
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
    // What runs in the background must not call instead.
    one.close();
    two.close();
    for calls in 0..500 {
        let made = one.create(&json!({"keywords": "flood"}), &everything(&one)).await.expect("made");
        let cut = bucket.clone();
        bucket.pause(calls, move || cut.cut(true));
        // It fails where it must read.
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
