//! Saved searches over a real store: events in, packets out, across restarts.

use super::world::{NEWS, World, everything, next, stop, titles};
use crate::SavedSearch;
use meridian_federation::Refusal;
use serde_json::Value;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn new_events_are_told_and_a_saved_search_goes_on_after_a_restart() {
    let world = World::new(NEWS);
    let saved = world.open();
    world.write(&[("title", "flood zero")], 0, (4.8, 45.7));
    let asked = json!({"name": "floods", "question": {"keywords": "flood", "near": [4.8, 45.7], "radius": 5000}});
    let search = saved.create(&asked, &everything(&saved)).await.expect("made");
    let mut reader = search.outbox.read_kept();
    for (title, lon) in [("flood one", 4.8), ("fire", 4.8), ("flood far away", 5.8), ("flood two", 4.81)] {
        world.write(&[("title", title)], 0, (lon, 45.7));
    }
    let packet = next(&mut reader).await;
    assert_eq!((packet["search"].as_str(), packet["seq"].as_u64()), (Some(search.id.as_str()), Some(0)));
    assert_eq!((packet["provider"].as_str(), packet["kind"].as_str()), (Some("meridian"), Some("results")));
    let mut told: Vec<String> = titles(&packet).into_iter().map(str::to_owned).collect();
    while told.len() < 2 {
        told.extend(titles(&next(&mut reader).await).into_iter().map(str::to_owned));
    }
    assert_eq!(told, ["flood one", "flood two"], "and not the one before it was saved");

    // No reader takes these packets; a clean stop keeps them.
    drop(reader);
    let (_, read, _) = search.outbox.numbers();
    world.write(&[("title", "flood three")], 0, (4.8, 45.7));
    stop(&saved).await;
    drop(saved);
    world.write(&[("title", "flood meanwhile")], 0, (4.8, 45.7));
    let saved = world.open();
    let again = saved.get(&search.id).expect("it is still there");
    assert_eq!(again.definition.shown(), search.definition.shown());
    let mut reader = again.outbox.read(read).expect("numbers go on");
    world.write(&[("title", "flood four")], 0, (4.8, 45.7));
    let expected = ["flood three", "flood meanwhile", "flood four"];
    for title in expected {
        assert_eq!(titles(&next(&mut reader).await), [title]);
    }
    let (_, after, lost) = again.outbox.numbers();
    assert_eq!((after, lost), (read + 3, 0));

    // A crash loses the kept packets; a reader that asks for them is notified. Numbers are never reused.
    drop(reader);
    saved.close();
    drop(saved);
    let saved = world.open();
    let again = saved.get(&search.id).expect("it is still there");
    let gone = again.outbox.read(after).expect_err("lost");
    assert!(gone.first > after + 1_000_000);
    let mut reader = again.outbox.read_kept();
    world.write(&[("title", "flood five")], 0, (4.8, 45.7));
    // First, packets repeat that were read, but not yet recorded on disk as read.
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "flood five") {
        told.extend(titles(&next(&mut reader).await).into_iter().map(str::to_owned));
    }
    told.pop();
    assert!(expected.ends_with(&told.iter().map(String::as_str).collect::<Vec<_>>()), "{told:?}");

    assert!(saved.delete(&search.id).await.expect("deleted"));
    assert_eq!(next(&mut reader).await["kind"], "complete");
    assert!(reader.next().await.is_none());
    assert!(!saved.delete(&search.id).await.expect("there is none"));
    stop(&saved).await;
    assert!(world.open().list(&everything(&saved), "", 10).0.is_empty());
}

#[tokio::test]
async fn a_record_that_is_damaged_is_named_and_the_rest_stands() {
    let world = World::new(NEWS);
    let saved = world.open();
    let search = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    let records = world.store.records("saved");
    let (one, two) = ("0".repeat(32), "1".repeat(32));
    records.put(&one, b"{}").unwrap();
    records.put(&two, br#"{"created":1,"question":{"keywords":"(a"}}"#).unwrap();
    stop(&saved).await;
    let saved = world.open();
    assert!(saved.get(&search.id).is_some());
    let damaged = saved.damaged();
    assert_eq!(damaged.keys().collect::<Vec<_>>(), [&one, &two]);
    assert!(damaged[&two].contains("not closed"), "{damaged:?}");
    assert_eq!(records.get(&one).unwrap().as_deref(), Some(&b"{}"[..]), "it is left as it is");
    stop(&saved).await;
}

#[tokio::test]
async fn there_are_no_more_than_may_be_and_no_providers_that_are_not_there() {
    let mut world = World::new(NEWS);
    world.saved.max = 2;
    let saved = world.open();
    for _ in 0..2 {
        saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await.expect("made");
    }
    let refused = saved.create(&json!({"keywords": "flood"}), &everything(&saved)).await;
    assert!(matches!(refused, Err(Refusal::TooManySaved { most: 2 })));
    let (some, more) = saved.list(&everything(&saved), "", 1);
    assert_eq!((some.len(), more), (1, true));
    let (rest, more) = saved.list(&everything(&saved), &some[0].id, 10);
    assert_eq!((rest.len(), more), (1, false));
    for (asked, part) in [
        (json!({"keywords": "a", "providers": ["bing"]}), "not enabled here"),
        (json!({"keywords": "a", "poll_s": 60}), "none to poll"),
        (json!({"address": "Lyon"}), "no collection"),
    ] {
        saved.delete(&rest[0].id).await.expect("deleted or gone");
        let refused = saved.create(&asked, &everything(&saved)).await.expect_err("refused").to_string();
        assert!(refused.contains(part), "{refused}");
    }
    stop(&saved).await;
}

#[tokio::test]
async fn who_comes_and_who_leaves_is_told_over_a_restart() {
    let world = World::new("ship:String:object=true,title:String,at:Date,*geom:Point:srid=4326");
    let mut saved = world.open();
    let fence = |when: &[&str]| json!({"question": {"bbox": [0, 0, 1, 1], "when": when}});
    let all = saved.create(&fence(&["enter", "inside", "exit"]), &everything(&saved)).await.expect("made");
    let leaving = saved.create(&fence(&["exit"]), &everything(&saved)).await.expect("made");
    let inside = saved.create(&fence(&["inside"]), &everything(&saved)).await.expect("made");
    let any = saved.create(&json!({"bbox": [0, 0, 1, 1]}), &everything(&saved)).await.expect("made");
    let mut expected = Vec::new();
    // Ship, second, longitude; what the saved search `all` reports.
    for (ship, second, lon, told) in [
        ("a", 1, -1.0, None),
        ("a", 2, 0.5, Some("enter")),
        ("b", 2, 0.5, Some("enter")),
        ("a", 3, 0.6, Some("inside")),
        ("a", 2, 5.0, None), // it comes late: the ship has been inside since
        ("restart", 0, 0.0, None),
        ("a", 4, 2.0, Some("exit")),
        ("a", 5, 2.1, None),
        ("b", 3, 0.6, Some("inside")),
        ("a", 6, 0.5, Some("enter")),
    ] {
        if ship == "restart" {
            stop(&saved).await;
            saved = world.open();
            continue;
        }
        world.write(&[("ship", ship), ("title", &format!("{ship}{second}"))], second, (lon, 0.5));
        expected.extend(told.map(|told| (format!("{ship}{second}"), told.to_owned())));
    }
    stop(&saved).await;
    let of = |search: &Arc<SavedSearch>| {
        let (_, packets) = saved.get(&search.id).unwrap().outbox.kept();
        let packets = packets.iter().map(|packet| serde_json::from_str::<Value>(packet).unwrap());
        let told = packets.flat_map(|packet| {
            let when = packet["when"].as_str().unwrap_or_default().to_owned();
            titles(&packet).into_iter().map(|title| (title.to_owned(), when.clone())).collect::<Vec<_>>()
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(of(&all), expected);
    assert_eq!(of(&leaving), [("a4".to_owned(), "exit".to_owned())]);
    let matching = || expected.iter().filter(|(_, told)| told != "exit").map(|(title, _)| title.clone());
    assert_eq!(of(&inside), matching().map(|title| (title, "inside".to_owned())).collect::<Vec<_>>());
    assert_eq!(of(&any), matching().map(|title| (title, String::new())).collect::<Vec<_>>());
}
