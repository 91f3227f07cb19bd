//! Writes: where events go, the effect of a repetition, and the client's outcome.

use super::{KINDS, Kind, PARTITIONS, World, all, events, schema, sorted};
use crate::{Backend, ReadPoint, Write, WriteError};
use meridian_model::filter::Predicate;
use meridian_model::{Field, FieldType, IdRole, Mode, SeqLayout, partition_of};
use meridian_query::Items;
use meridian_store::{Settings, StoreError};
use tokio::runtime::Builder;
use tokio::time::{Duration, Instant};

/// Returns the number of events in each partition.
fn spread(world: &World) -> Vec<u64> {
    world.store.partitions("t", "many").unwrap().iter().map(|partition| partition.stats().events).collect()
}

#[test]
fn a_repeated_write_is_stored_once_in_every_partition() {
    for kind in KINDS {
        let world = World::new(kind);
        let write = || Write::new(events(&*world.many, 0..200)).with_key("key");
        let first = world.many.write(write()).unwrap();
        let again = world.many.write(write()).unwrap();
        assert_eq!((first.written, first.duplicates), (200, 0), "{kind:?}");
        assert_eq!((again.written, again.duplicates), (0, 200), "{kind:?}");
        assert!(again.position.covers(&first.position), "{kind:?}: {} {}", again.position, first.position);
        assert_eq!(first.position.len(), usize::from(PARTITIONS));
        assert!(world.many.position().covers(&first.position));
        let held: u64 = spread(&world).iter().sum();
        assert_eq!(held, world.many.stats().events);
        if kind.given || kind.object {
            assert!(spread(&world).iter().filter(|events| **events > 0).count() > 1, "{:?}", spread(&world));
        }
        // The number of the first event is that of its id.
        if !kind.given {
            let (batch, _) = world.many.event(&first.first.to_id()).unwrap().value.unwrap();
            assert_eq!(super::numbers(&batch), [0]);
        }
    }
}

#[test]
fn a_position_of_a_write_is_that_of_now_in_partitions_without_a_share() {
    let world = World::new(Kind { given: false, object: false, latest: false });
    let mut before = world.many.position();
    for n in 0..8 {
        let position = world.many.write(Write::new(events(&*world.many, n..n + 1))).unwrap().position;
        assert!(position.covers(&before) && position != before, "{position} after {before}");
        assert_eq!(position, world.many.position());
        before = position;
    }
}

#[test]
fn writes_without_keys_take_turns() {
    let world = World::new(Kind { given: false, object: false, latest: false });
    for n in 0..8 {
        world.many.write(Write::new(events(&*world.many, n * 10..n * 10 + 10))).unwrap();
    }
    assert_eq!(spread(&world).iter().sum::<u64>(), 80);
    assert!(spread(&world).iter().filter(|events| **events > 0).count() > 1, "{:?}", spread(&world));
    let found = all(&*world.many, ReadPoint::newest(), &Items::all(&world.many.schema()), &world.control());
    assert_eq!(sorted(found), (0..80).collect::<Vec<_>>());
}

#[test]
fn an_id_stands_once_and_what_is_stored_is_said() {
    let world = World::new(KINDS[0]);
    let twice = world.many.write(Write::new(events(&*world.many, [1, 2, 3, 1])));
    let Err(WriteError::Invalid(wrong)) = twice else { panic!("{twice:?}") };
    assert_eq!((wrong.len(), wrong[0].line), (1, Some(4)));
    assert_eq!(world.many.stats().events, 0, "no part of it is stored");
    world.many.write(Write::new(events(&*world.many, 0..100))).unwrap();
    // All of these exist.
    let there = world.many.write(Write::new(events(&*world.many, 0..100)));
    assert!(matches!(there, Err(WriteError::Conflict { total: 100, .. })), "{there:?}");
    // One exists: its partition stores nothing, and the others do.
    let partly = world.many.write(Write::new(events(&*world.many, 99..300)));
    let Err(WriteError::Partly { stored, why }) = partly else { panic!("{partly:?}") };
    assert!(matches!(*why, WriteError::Conflict { total: 1, .. }), "{why:?}");
    assert_eq!(world.many.stats().events, 100 + stored);
    assert!(stored > 0 && stored < 200);
    // Resent with its key, it returns what is stored, though nothing is added this time.
    let keyed = || Write::new(events(&*world.many, 250..400)).with_key("key");
    let first = world.many.write(keyed());
    let Err(WriteError::Partly { stored, .. }) = first else { panic!("{first:?}") };
    let again = world.many.write(keyed());
    assert!(matches!(&again, Err(WriteError::Partly { stored: found, .. }) if *found == stored), "{again:?}");
}

#[test]
fn a_batch_that_is_too_large_for_a_partition_is_refused_whole() {
    let world = World::new(Kind { given: false, object: true, latest: false });
    let most = SeqLayout::Partitioned.batch_events_max() as i64;
    // All of one ship.
    let ship = |count: i64| events(&*world.many, (0..count).map(|n| n * 55 + 1));
    let refused = world.many.write(Write::new(ship(most + 1)));
    assert!(matches!(&refused, Err(WriteError::Invalid(list)) if list[0].detail.contains("partitions")), "{refused:?}");
    assert_eq!(world.many.stats().events, 0);
    assert_eq!(world.many.write(Write::new(ship(most))).unwrap().written, most as u64);
    // Without keys, events share the memory of several partitions.
    let world = World::new(Kind { given: false, object: false, latest: false });
    let written = world.many.write(Write::new(events(&*world.many, 0..most + 10))).unwrap();
    assert_eq!((written.written, world.many.stats().events), (most as u64 + 10, most as u64 + 10));
}

#[test]
fn what_cannot_have_partitions_is_refused_and_their_number_stays() {
    let world = World::new(KINDS[0]);
    let latest = schema(Kind { given: true, object: true, latest: true });
    assert_eq!((latest.mode, latest.id), (Mode::Latest, IdRole::Given));
    let create = |name: &str, schema, partitions| {
        world
            .backend
            .create("t", name, schema, Settings { partitions, ..Settings::default() })
            .map(|made| made.settings().partitions)
    };
    for (name, schema, partitions) in
        [("latest", latest.clone(), 2), ("none", schema(KINDS[0]), 0), ("many-more", schema(KINDS[0]), 257)]
    {
        let refused = create(name, schema, partitions);
        let Err(StoreError::Invalid(why)) = refused else { panic!("{refused:?}") };
        assert_eq!(why.field.as_deref(), Some("partitions"), "{why}");
    }
    assert_eq!(create("latest", latest, 1).unwrap(), 1);
    assert_eq!(create("most", schema(KINDS[0]), 256).unwrap(), 256);
    let other = Settings { partitions: 2, ..world.many.settings() };
    assert!(world.many.change(Vec::new(), Some(other)).is_err());
    assert_eq!(world.many.settings().partitions, PARTITIONS);
}

#[test]
fn what_is_stored_is_said_where_the_queue_of_another_partition_is_full() {
    let world = World::new(KINDS[0]);
    let partitions = world.store.partitions("t", "many").unwrap();
    let first = partition_of(b"id 0", usize::from(PARTITIONS));
    let full = (first + 1) % usize::from(PARTITIONS);
    // They are not committed: the first has to lead, and does not.
    let (mut waiting, one) = (Vec::new(), events(&*world.many, [1_000]));
    while let Ok(pending) = partitions[full].submit(Write::new(one.clone())) {
        waiting.push(pending);
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let written = runtime.block_on(async {
        let deadline = Instant::now() + Duration::from_secs(60);
        world.many.append(Write::new(events(&*world.many, 0..100)), deadline)?.await
    });
    let Err(WriteError::Partly { stored, why }) = written else { panic!("{written:?}") };
    assert!(matches!(*why, WriteError::Late(_)), "{why:?}");
    assert!(stored > 0 && stored == world.many.stats().events, "{stored}");
    // If the first partition refuses, nothing is queued.
    while let Ok(pending) = partitions[first].submit(Write::new(one.clone())) {
        waiting.push(pending);
    }
    let refused = world.many.append(Write::new(events(&*world.many, 0..100)), Instant::now()).map(|_| ());
    assert!(matches!(refused, Err(WriteError::Late(_))), "{refused:?}");
    assert_eq!(world.many.stats().events, stored);
}

#[test]
fn what_is_deleted_is_said_where_another_partition_refuses() {
    for full in [1, usize::from(PARTITIONS) - 1] {
        let world = World::new(KINDS[0]);
        world.many.write(Write::new(events(&*world.many, 0..100))).unwrap();
        let partitions = world.store.partitions("t", "many").unwrap();
        // They are not committed: the first has to lead, and does not.
        let (mut waiting, one) = (Vec::new(), events(&*world.many, [1_000]));
        while let Ok(pending) = partitions[full].submit(Write::new(one.clone())) {
            waiting.push(pending);
        }
        let ids: Vec<String> = (0..50).map(|n| format!("id {n}")).collect();
        let stopped = world.many.delete(&ids).unwrap_err();
        let left = world.many.stats().events;
        assert!(stopped.deleted > 0 && stopped.deleted == 100 - left && stopped.matched.is_none(), "{stopped:?}");
        let stopped = world.many.delete_matching(&Predicate::all(), ReadPoint::newest(), &world.control()).unwrap_err();
        assert!(stopped.deleted > 0 && stopped.deleted == left - world.many.stats().events, "{stopped:?}");
        // What the partitions after it have is not known.
        let is_last = full + 1 == usize::from(PARTITIONS);
        assert_eq!(stopped.matched, is_last.then_some(left));
    }
}

#[test]
fn changes_at_once_reach_all_partitions_in_one_order() {
    let world = World::new(KINDS[0]);
    let add = |name: String| {
        let field = Field { name, kind: FieldType::Int, required: false, title: None };
        // A collection of its own, as each request has.
        let many = world.backend.collection("t", "many").unwrap().unwrap();
        many.change(vec![field], None).unwrap();
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let add = &add;
            scope.spawn(move || (0..25).for_each(|n| add(format!("f{thread}x{n}"))));
        }
    });
    let before = world.one.schema().fields.len();
    for partition in world.store.partitions("t", "many").unwrap().iter() {
        assert_eq!((partition.schema().fields.len(), partition.schema()), (before + 100, world.many.schema()));
    }
}
