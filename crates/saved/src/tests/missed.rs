//! Events missed before a crash and while no server ran.

use super::world::{NEWS, PATIENCE, World, everything, next, stop, titles};
use crate::SavedSearches;
use meridian_federation::Reader;
use serde_json::{Value, json};
use std::sync::Arc;

/// Waits until the checkpoint on disk satisfies a condition.
pub(super) async fn written(world: &World, wanted: impl Fn(&Value) -> bool) {
    let records = world.store.records("saved");
    let written = async {
        while !records.get("looked").unwrap().is_some_and(|bytes| wanted(&serde_json::from_slice(&bytes).unwrap())) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("in time");
}

/// Kills the server: nothing more is written.
fn crash(saved: Arc<SavedSearches>) {
    saved.close();
}

fn write(world: &World, titles: &[&str]) {
    for title in titles {
        world.write(&[("title", title)], 0, (4.8, 45.7));
    }
}

/// Collects titles until there are `count`.
async fn told(reader: &mut Reader, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < count {
        told.extend(titles(&next(reader).await).into_iter().map(str::to_owned));
    }
    told
}

#[tokio::test]
async fn of_a_renamed_collection_nothing_is_told_twice_and_nothing_is_left_out() {
    let world = World::new(NEWS);
    let saved = world.open();
    let read = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    let unread = saved.create(&json!({"keywords": "fire"}), &everything(&saved)).await.expect("made");
    let mut reader = read.outbox.read_kept();
    write(&world, &["flood one", "fire one"]);
    assert_eq!(told(&mut reader, 1).await, ["flood one"]);
    let waits = |checkpoint: &Value| checkpoint["waiting"].as_object().is_some_and(|all| all.len() == 1);
    written(&world, |checkpoint| waits(checkpoint) && checkpoint["waiting"][&unread.id]["events"] == 1).await;
    assert!(world.store.rename("default", "events", "bulletins").unwrap());
    write(&world, &["flood two"]);
    assert_eq!(told(&mut reader, 1).await, ["flood two"]);
    written(&world, |checkpoint| waits(checkpoint) && checkpoint["collections"]["bulletins"]["position"] == 3).await;
    crash(saved);
    write(&world, &["fire two"]);

    let saved = world.open();
    let (read, unread) = (saved.get(&read.id).unwrap(), saved.get(&unread.id).unwrap());
    assert_eq!(told(&mut unread.outbox.read_kept(), 2).await, ["fire one", "fire two"]);
    // While no server runs, and without a write under the new name.
    stop(&saved).await;
    assert!(world.store.rename("default", "bulletins", "reports").unwrap());
    let saved = world.open();
    write(&world, &["flood three"]);
    assert_eq!(told(&mut saved.get(&read.id).unwrap().outbox.read_kept(), 1).await, ["flood three"]);
}

#[tokio::test]
async fn what_no_reader_had_taken_before_a_crash_is_told_after_it_and_nothing_else() {
    let world = World::new(NEWS);
    let saved = world.open();
    write(&world, &["flood before"]);
    let read = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    let unread = saved.create(&json!({"keywords": "fire"}), &everything(&saved)).await.expect("made");
    let mut reader = read.outbox.read_kept();
    write(&world, &["flood one", "fire one", "flood two"]);
    assert_eq!(told(&mut reader, 2).await, ["flood one", "flood two"]);
    written(&world, |checkpoint| {
        checkpoint["collections"]["events"]["position"] == 4
            && checkpoint["waiting"].as_object().is_some_and(|all| all.len() == 1)
            && checkpoint["waiting"][&unread.id]["events"] == 2
    })
    .await;
    crash(saved);
    // Acknowledged, but never processed.
    write(&world, &["flood three", "fire two", "rain"]);

    let saved = world.open();
    let (read, unread) = (saved.get(&read.id).unwrap(), saved.get(&unread.id).unwrap());
    let young = saved.create(&json!({"keywords": "flood OR fire"}), &everything(&saved)).await.expect("made");
    assert_eq!(told(&mut read.outbox.read_kept(), 1).await, ["flood three"]);
    assert_eq!(told(&mut unread.outbox.read_kept(), 2).await, ["fire one", "fire two"]);
    write(&world, &["flood and fire"]);
    for search in [&read, &unread, &young] {
        let mut reader = search.outbox.read_kept();
        while told(&mut reader, 1).await != ["flood and fire"] {
            assert_ne!(search.id, young.id, "it is told of what comes after it alone");
        }
    }

    // A clean stop and start report nothing again.
    stop(&saved).await;
    let saved = world.open();
    let read = saved.get(&read.id).unwrap();
    let (_, number, _) = read.outbox.numbers();
    let mut reader = read.outbox.read(number).unwrap();
    write(&world, &["flood in the end"]);
    assert_eq!(told(&mut reader, 1).await, ["flood in the end"]);
    stop(&saved).await;
}

#[tokio::test]
async fn packets_that_were_kept_over_a_clean_stop_are_not_lost_to_a_crash_after_it() {
    let world = World::new(NEWS);
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    write(&world, &["flood one", "flood two"]);
    let mut reader = search.outbox.read_kept();
    assert_eq!(told(&mut reader, 1).await, ["flood one"]);
    drop(reader);
    stop(&saved).await;
    // The server is killed before it has written its checkpoint.
    crash(world.open());
    let saved = world.open();
    let mut reader = saved.get(&search.id).unwrap().outbox.read_kept();
    assert_eq!(told(&mut reader, 1).await, ["flood two"]);
    stop(&saved).await;
}

#[tokio::test]
async fn of_too_much_the_newest_is_told_and_that_the_rest_is_not() {
    let mut world = World::new(NEWS);
    world.saved.catch_up = 2;
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    let elsewhere = saved.create(&json!({"keywords": "nothing like it"}), &everything(&saved)).await.expect("made");
    stop(&saved).await;
    write(&world, &["flood one", "flood two", "fire", "flood three", "flood four"]);
    let saved = world.open();
    for (search, expected) in [(search, &["flood three", "flood four"][..]), (elsewhere, &[][..])] {
        let search = saved.get(&search.id).unwrap();
        let mut reader = search.outbox.read_kept();
        let gap = next(&mut reader).await;
        assert_eq!((gap["kind"].as_str(), gap["state"].as_str()), (Some("provider"), Some("error")), "{gap}");
        assert!(gap["detail"].as_str().unwrap().starts_with("3 missed events of \"events\""), "{gap}");
        assert_eq!(told(&mut reader, expected.len()).await, expected);
        assert_eq!(json!(saved.status(&search))["dropped_events"], 3);
    }
    assert_eq!(saved.figures().events.1, 3);
    stop(&saved).await;
}

#[tokio::test]
async fn where_no_record_tells_what_was_looked_at_that_is_told() {
    let world = World::new(NEWS);
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    stop(&saved).await;
    world.store.records("saved").put("looked", b"{").unwrap();
    write(&world, &["flood one"]);
    let saved = world.open();
    assert!(saved.damaged().contains_key("looked"));
    let mut reader = saved.get(&search.id).unwrap().outbox.read_kept();
    let gap = next(&mut reader).await;
    assert!(gap["detail"].as_str().unwrap().contains("is unknown"), "{gap}");
    write(&world, &["flood two"]);
    assert_eq!(told(&mut reader, 1).await, ["flood two"]);
    stop(&saved).await;
    assert!(world.open().damaged().is_empty());
}

#[tokio::test]
async fn what_a_clean_stop_kept_is_missed_where_it_is_gone() {
    let world = World::new(NEWS);
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    stop(&saved).await;
    world.store.records("saved").remove("state").unwrap();
    let saved = world.open();
    assert!(saved.damaged()["state"].contains("it is missing"), "{:?}", saved.damaged());
    assert!(saved.get(&search.id).is_some());
    stop(&saved).await;
    // After a crash it does not exist, which is no damage.
    let saved = world.open();
    assert!(saved.damaged().is_empty());
    crash(saved);
    let saved = world.open();
    assert!(saved.damaged().is_empty());
    stop(&saved).await;
}

#[tokio::test]
async fn records_of_before_there_were_copies_get_them() {
    let world = World::new(NEWS);
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    let records = world.store.records("saved");
    assert_eq!(records.copied().unwrap(), std::slice::from_ref(&search.id));
    stop(&saved).await;
    let old = records.get(&search.id).unwrap().unwrap();
    records.remove(&search.id).unwrap();
    records.put(&search.id, &old).unwrap();
    let saved = world.open();
    assert!(saved.get(&search.id).is_some() && saved.damaged().is_empty());
    let copied = async {
        while records.copied().unwrap() != [search.id.clone()] {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, copied).await.expect("in time");
    assert!(world.store.problems().is_empty());
    stop(&saved).await;
}
