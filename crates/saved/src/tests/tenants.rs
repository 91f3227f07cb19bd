//! Saved searches of two tenants, each with a collection `events`.

use super::missed::written;
use super::world::{NEWS, OTHER, World, all_of, everything, next, stop, titles};
use crate::{SavedSearch, SavedSearches};
use meridian_backend::View;
use meridian_federation::{Reader, Refusal};
use meridian_model::policy::quota::{Exceeded, Quota, Quotas};
use serde_json::{Value, json};
use std::sync::Arc;

const PLACE: (f64, f64) = (4.8, 45.7);

fn write(world: &World, tenant: &str, titles: &[&str]) {
    for title in titles {
        world.write_of(tenant, &[("title", title)], 0, PLACE);
    }
}

async fn save(saved: &Arc<SavedSearches>, asked: Value, view: &View) -> Arc<SavedSearch> {
    saved.create(&asked, view).await.expect("made")
}

/// Returns the titles that arrive, up to this one.
async fn told(reader: &mut Reader, last: &str) -> Vec<String> {
    let mut told = Vec::new();
    while told.last().is_none_or(|title| title != last) {
        let packet = next(reader).await;
        assert_eq!(packet["kind"], "results", "{packet}");
        told.extend(titles(&packet).into_iter().map(str::to_owned));
    }
    told
}

#[tokio::test]
async fn events_of_one_tenant_never_match_saved_searches_of_another() {
    let world = World::new(NEWS);
    let saved = world.open();
    let flood = || json!({"keywords": "flood"});
    let (ours, theirs) = (save(&saved, flood(), &everything(&saved)).await, {
        let view = all_of(OTHER, &saved);
        save(&saved, flood(), &view).await
    });
    // Their collection has fewer writes than ours, so that a position of one is wrong for the other.
    write(&world, "default", &["flood our 1", "flood our 2", "flood our 3"]);
    write(&world, OTHER, &["flood their 1"]);
    assert_eq!(told(&mut ours.outbox.read_kept(), "flood our 3").await, ["flood our 1", "flood our 2", "flood our 3"]);
    assert_eq!(told(&mut theirs.outbox.read_kept(), "flood their 1").await, ["flood their 1"]);

    // Across a clean stop, each gets what was written meanwhile to its own collection.
    let [read_of_ours, read_of_theirs] = [&ours, &theirs].map(|search| search.outbox.numbers().1);
    stop(&saved).await;
    write(&world, "default", &["flood our 4"]);
    write(&world, OTHER, &["flood their 2"]);
    let saved = world.open();
    let again = |search: &SavedSearch| saved.get(&search.id).expect("it is still there");
    let (ours, theirs) = (again(&ours), again(&theirs));
    assert_eq!((&*ours.definition.tenant, &*theirs.definition.tenant), ("default", OTHER));
    let mut readers = (ours.outbox.read(read_of_ours).unwrap(), theirs.outbox.read(read_of_theirs).unwrap());
    assert_eq!(told(&mut readers.0, "flood our 4").await, ["flood our 4"]);
    assert_eq!(told(&mut readers.1, "flood their 2").await, ["flood their 2"]);

    // And across a crash, from the checkpoint.
    written(&world, |checkpoint| {
        checkpoint["collections"]["events"]["position"] == 4
            && checkpoint["tenants"][OTHER]["events"]["position"] == 2
            && checkpoint["waiting"] == json!({})
    })
    .await;
    saved.close();
    drop(saved);
    write(&world, "default", &["flood our 5"]);
    write(&world, OTHER, &["flood their 3", "flood their 4"]);
    let saved = world.open();
    let again = |search: &SavedSearch| saved.get(&search.id).expect("it is still there");
    let (ours, theirs) = (again(&ours), again(&theirs));
    assert_eq!(told(&mut ours.outbox.read_kept(), "flood our 5").await, ["flood our 5"]);
    assert_eq!(told(&mut theirs.outbox.read_kept(), "flood their 4").await, ["flood their 3", "flood their 4"]);
    stop(&saved).await;
}

#[tokio::test]
async fn objects_of_one_name_move_in_each_tenant_for_themselves() {
    let world = World::new("ship:String:object=true,title:String,at:Date,*geom:Point:srid=4326");
    let mut saved = world.open();
    let fence = json!({"question": {"bbox": [0, 0, 1, 1], "when": ["enter", "inside", "exit"]}});
    let ours = save(&saved, fence.clone(), &everything(&saved)).await;
    let theirs = save(&saved, fence, &all_of(OTHER, &saved)).await;
    let mut expected = [Vec::new(), Vec::new()];
    for (tenant, second, lon, when) in [
        ("default", 1, -1.0, None),
        (OTHER, 10, 0.5, Some("enter")),
        ("default", 2, 0.5, Some("enter")),
        (OTHER, 11, 5.0, Some("exit")),
        ("default", 3, 0.5, Some("inside")),
        ("restart", 0, 0.0, None),
        (OTHER, 12, 5.0, None),
        ("default", 4, 5.0, Some("exit")),
    ] {
        if tenant == "restart" {
            stop(&saved).await;
            saved = world.open();
            continue;
        }
        let title = format!("{tenant} {second}");
        world.write_of(tenant, &[("ship", "a"), ("title", &title)], second, (lon, 0.5));
        expected[usize::from(tenant == OTHER)].extend(when.map(|when| (title, when.to_owned())));
    }
    stop(&saved).await;
    let [of_ours, of_theirs] = [ours, theirs].map(|search| {
        let (_, packets) = saved.get(&search.id).unwrap().outbox.kept();
        let packets = packets.iter().map(|packet| serde_json::from_str::<Value>(packet).unwrap());
        let told = packets.flat_map(|packet| {
            let when = packet["when"].as_str().unwrap_or_default().to_owned();
            titles(&packet).into_iter().map(|title| (title.to_owned(), when.clone())).collect::<Vec<_>>()
        });
        told.collect::<Vec<_>>()
    });
    assert_eq!([of_ours, of_theirs], expected);
}

#[tokio::test]
async fn a_flood_of_one_tenant_drops_nothing_of_another() {
    let mut world = World::new(NEWS);
    world.saved.queue_bytes = 16 << 10;
    let saved = world.open();
    let ours = save(&saved, json!({"keywords": "flood"}), &everything(&saved)).await;
    let theirs = save(&saved, json!({"keywords": "flood"}), &all_of(OTHER, &saved)).await;
    // The matcher is blocked meanwhile.
    let held = saved.match_indexes.write();
    for n in 0..2_000 {
        write(&world, "default", &[&format!("flood our {n}")]);
    }
    let sent: Vec<String> = (0..10).map(|n| format!("flood their {n}")).collect();
    sent.iter().for_each(|title| write(&world, OTHER, &[title]));
    drop(held);
    assert_eq!(told(&mut theirs.outbox.read_kept(), "flood their 9").await, sent);
    let mut reader = ours.outbox.read_kept();
    let gap = next(&mut reader).await;
    assert!(gap["detail"].as_str().is_some_and(|detail| detail.contains("were dropped")), "{gap}");
    let dropped = |search: &SavedSearch| json!(saved.status(search))["dropped_events"].as_u64();
    assert_eq!(dropped(&theirs), Some(0));
    assert_eq!(dropped(&ours), Some(saved.figures().events.1));
    assert!(saved.figures().events.1 > 1_000);
    stop(&saved).await;
}

#[tokio::test]
async fn a_tenant_sees_its_own_alone_up_to_its_limit() {
    let world = World::new(NEWS);
    let saved = world.open();
    let (our_view, their_view) = (everything(&saved), all_of(OTHER, &saved));
    let mut quotas = Quotas::default();
    quotas.set(Quota::SavedSearches, Some(1)).unwrap();
    their_view.caller().ledger.set(1, &quotas);
    let ours = save(&saved, json!({"keywords": "flood"}), &our_view).await;
    let theirs = saved.create(&json!({"keywords": "flood"}), &their_view).await.expect("made");
    let refused = saved.create(&json!({"keywords": "flood"}), &their_view).await;
    assert!(
        matches!(refused, Err(Refusal::Quota(Exceeded { quota: Quota::SavedSearches, limit: 1, .. }))),
        "{refused:?}"
    );
    assert_eq!((saved.count("default"), saved.count(OTHER), saved.count("unknown")), (1, 1, 0));
    let listed = |view: &View| {
        let (list, more) = saved.list(view, "", 10);
        assert!(!more);
        list.into_iter().map(|status| status.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(&our_view), std::slice::from_ref(&ours.id));
    assert_eq!(listed(&their_view), std::slice::from_ref(&theirs.id));
    assert!(saved.delete(&theirs.id).await.expect("deleted"));
    assert_eq!(saved.count(OTHER), 0);
    saved.create(&json!({"keywords": "flood"}), &their_view).await.expect("there is room again");
    stop(&saved).await;
}

#[tokio::test]
async fn a_tenant_that_is_removed_leaves_no_saved_search_behind() {
    for enabled in [true, false] {
        let mut world = World::new(NEWS);
        let saved = world.open();
        let ours = save(&saved, json!({"keywords": "flood"}), &everything(&saved)).await;
        let theirs = save(&saved, json!({"keywords": "flood"}), &all_of(OTHER, &saved)).await;
        let records = world.store.records("saved");
        // An unusable record still names its tenant.
        let damaged = "0".repeat(32);
        records.put_twice(&damaged, br#"{"created":1,"tenant":"other","question":{"keywords":"(a"}}"#).unwrap();
        records.put(&format!("{}-seen", theirs.id), b"12345678").unwrap();
        stop(&saved).await;
        world.saved.enabled = enabled;
        let saved = world.open();
        assert_eq!(saved.damaged().contains_key(&damaged), enabled);
        let reader = saved.get(&theirs.id).map(|search| search.outbox.read_kept());
        assert_eq!(reader.is_some(), enabled);
        saved.delete_all(OTHER).await.expect("deleted");
        if let Some(mut reader) = reader {
            assert_eq!(next(&mut reader).await["kind"], "complete");
        }
        assert!(saved.damaged().is_empty());
        let names = records.names().unwrap();
        assert!(names.contains(&ours.id), "{names:?}");
        let state = records.get("state").unwrap();
        assert_eq!(state.is_none(), enabled, "it is kept until saved searches run");
        assert!(!String::from_utf8_lossy(&state.unwrap_or_default()).contains(&theirs.id));
        assert!(!names.iter().any(|name| name.starts_with(&theirs.id) || *name == damaged), "{names:?}");
        assert_eq!(records.copied().unwrap(), std::slice::from_ref(&ours.id));
        stop(&saved).await;
        world.saved.enabled = true;
        let saved = world.open();
        assert_eq!((saved.count("default"), saved.count(OTHER)), (1, 0));
        assert!(saved.damaged().is_empty(), "{:?}", saved.damaged());
        stop(&saved).await;
    }
}
