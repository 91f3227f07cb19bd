//! Slots of saved searches, divided among servers over one bucket.

use super::world::{NEWS, PATIENCE, World, next, titles};
use crate::records::RECORDS;
use crate::slots::SavedSlots;
use crate::{Slot, definition};
use meridian_admission::identity::Identity;
use meridian_backend::{Backend, Embedded, RecordSource, Seams, View};
use meridian_federation::Refusal;
use meridian_model::policy::access::{Grant, Role};
use meridian_store::ControlPlane;
use meridian_store::bucket::MemoryBucket;
use serde_json::json;
use std::sync::Arc;

/// A gateway over the store of another server.
fn gateway(world: &World, bucket: &MemoryBucket) -> (World, Arc<SavedSlots>) {
    let mut other = World::new(NEWS);
    other.store = world.store.clone();
    let records: Arc<dyn RecordSource> = ControlPlane::new(Arc::new(bucket.clone()), &Seams::real(), 1 << 20);
    other.backend = Embedded::with_records(other.store.clone(), records);
    other.saved.enabled = false;
    other.saved.max = 4;
    let slots = Arc::new(other.slots());
    (other, slots)
}

fn view(world: &World) -> View {
    View::new(world.backend.clone(), Arc::new(Identity::new("default", Grant::over_all(Role::Admin), "tests")))
}

fn slot(number: usize) -> Slot {
    Slot::all().nth(number).unwrap()
}

async fn take(slots: &Arc<SavedSlots>, slot: Slot, epoch: u64) {
    let taking = slots.clone();
    tokio::task::spawn_blocking(move || taking.take(slot, epoch, Arc::new(|| true))).await.unwrap().unwrap();
}

async fn pass_on(slots: &Arc<SavedSlots>, slot: Slot) {
    let passing = slots.clone();
    tokio::task::spawn_blocking(move || passing.pass_on(slot)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_gateway_runs_the_slots_that_it_has_and_one_passes_on_what_it_kept() {
    let (bucket, world) = (MemoryBucket::new(), World::new(NEWS));
    let ((here, one), (there, two)) = (gateway(&world, &bucket), gateway(&world, &bucket));
    let asked = json!({"keywords": "flood"});
    assert!(matches!(one.create(&asked, &view(&here)).await, Err(Refusal::Unavailable(_))), "it has no slot yet");
    take(&one, slot(2), 1).await;
    take(&two, slot(5), 1).await;
    let first = one.create(&asked, &view(&here)).await.expect("made");
    let second = two.create(&asked, &view(&there)).await.expect("made");
    assert_eq!((Slot::of_id(&first.id), Slot::of_id(&second.id)), (Some(slot(2)), Some(slot(5))));
    assert!(one.get(&second.id).is_none() && two.get(&first.id).is_none());
    let listed: Vec<String> = one.list(&view(&here), "", 10).0.into_iter().map(|status| status.id).collect();
    assert_eq!(listed, [first.id.as_str()]);
    world.write(&[("title", "flood one")], 0, (4.8, 45.7));
    for search in [&first, &second] {
        assert_eq!(titles(&next(&mut search.outbox.read_kept()).await), ["flood one"]);
    }
    // The other slot continues while this one moves, along with its packets.
    pass_on(&one, slot(2)).await;
    assert!(one.get(&first.id).is_none());
    take(&two, slot(2), 2).await;
    let same = two.get(&first.id).expect("it has moved");
    world.write(&[("title", "flood two")], 0, (4.8, 45.7));
    let mut reader = same.outbox.read(0).expect("all packets are kept");
    assert_eq!(titles(&next(&mut reader).await), ["flood one"]);
    assert_eq!(titles(&next(&mut reader).await), ["flood two"]);
    assert!(two.delete(&same.id).await.expect("deleted") && two.get(&same.id).is_none());
    assert_eq!(two.figures().searches, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_of_the_saved_searches_of_all_gateways() {
    let (bucket, world) = (MemoryBucket::new(), World::new(NEWS));
    let ((here, one), (there, two)) = (gateway(&world, &bucket), gateway(&world, &bucket));
    take(&one, slot(0), 1).await;
    take(&two, slot(1), 1).await;
    let asked = json!({"keywords": "flood"});
    // A large one counts as several.
    let words = "flood ".repeat(2 << 10);
    assert_eq!(definition::counted(words.len()), 6);
    for gateway in [(&one, &here), (&two, &there), (&one, &here), (&two, &there)] {
        gateway.0.create(&asked, &view(gateway.1)).await.expect("made");
    }
    for gateway in [(&one, &here), (&two, &there)] {
        let refused = gateway.0.create(&asked, &view(gateway.1)).await;
        assert!(matches!(refused, Err(Refusal::TooManySaved { most: 4 })));
    }
    let id = one.list(&view(&here), "", 1).0[0].id.clone();
    assert!(one.delete(&id).await.expect("deleted"));
    two.create(&asked, &view(&there)).await.expect("there is room again");
}

/// Records move from a server without slots to gateways and back, as in a backup: events are matched once each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_begin_with_the_records_of_a_server_without_and_end_in_one() {
    let (bucket, world) = (MemoryBucket::new(), World::new(NEWS));
    let (mut alone, slots) = gateway(&world, &bucket);
    alone.saved.enabled = true;
    let asked = json!({"keywords": "flood"});
    let before = alone.open();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(before.create(&asked, &view(&alone)).await.expect("made").id.clone());
    }
    world.write(&[("title", "flood one")], 0, (4.8, 45.7));
    for id in &ids {
        assert_eq!(titles(&next(&mut before.get(id).unwrap().outbox.read_kept()).await), ["flood one"]);
    }
    super::world::stop(&before).await;
    world.write(&[("title", "flood two")], 0, (4.8, 45.7));
    for slot in Slot::all() {
        take(&slots, slot, 1).await;
    }
    let expect = |numbered: &'static [&'static str]| {
        let (ids, slots) = (ids.clone(), slots.clone());
        async move {
            for id in &ids {
                let mut reader = slots.get(id).expect("it runs").outbox.read(0).expect("all packets");
                for title in numbered {
                    assert_eq!(titles(&next(&mut reader).await), [*title]);
                }
            }
        }
    };
    expect(&["flood one", "flood two"]).await;
    // A stop during a catch-up repeats it.
    while !slots.are_caught_up() {
        tokio::task::yield_now().await;
    }
    for slot in Slot::all() {
        pass_on(&slots, slot).await;
    }
    world.write(&[("title", "flood three")], 0, (4.8, 45.7));
    let records = alone.backend.records(RECORDS);
    assert!(records.names().unwrap().iter().any(|name| name == "looked-3"));
    let after = alone.open();
    for id in &ids {
        let mut reader = after.get(id).expect("it is known").outbox.read(0).expect("all packets");
        for title in ["flood one", "flood two", "flood three"] {
            assert_eq!(titles(&next(&mut reader).await), [title]);
        }
        // No further events.
        assert_eq!(after.get(id).unwrap().outbox.numbers().1, 3);
    }
    assert!(!records.names().unwrap().iter().any(|name| name.starts_with("looked-") || name.starts_with("state-")));
    tokio::time::timeout(PATIENCE, super::world::stop(&after)).await.expect("it stops");
}
