//! A failed, damaged or slow partition: a result is an error or complete, and damage is named.

use super::{KINDS, Kind, PARTITIONS, World, all, control, sorted};
use crate::{Backend, Collection, ReadPoint};
use meridian_model::{Seq, Seqs};
use meridian_query::{CancelFlag, Control, Items, Order, QueryError};
use meridian_store::seams::{Clock, ManualClock};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const EVENTS: i64 = 400;

/// A clock that advances a millisecond each time it is read.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> i64 {
        0
    }

    fn elapsed(&self) -> i64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }

    fn sleep(&self, _: Duration) {}
}

/// Returns the numbers of all events, or the error that ended the result.
fn try_all(collection: &dyn Collection, question: &Items, control: &Control) -> Result<Vec<i64>, QueryError> {
    let mut found = Vec::new();
    for hits in collection.items(ReadPoint::newest(), question, control)? {
        found.extend(super::numbers(&hits?.batch));
    }
    Ok(sorted(found))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_answer_past_its_deadline_is_never_a_short_one(time_ms in 0u64..400, near: bool) {
        let world = World::new(KINDS[0]);
        world.write(0..EVENTS);
        world.flush();
        let control = Control::new(Arc::new(Ticking::default()), Duration::from_millis(time_ms), CancelFlag::new());
        let order = if near { Order::Near { lon: 1.0, lat: 2.0, k: None } } else { Order::Natural };
        let question = Items { order, ..Items::all(&world.many.schema()) };
        match try_all(&*world.many, &question, &control) {
            Ok(found) => prop_assert_eq!(found, (0..EVENTS).collect::<Vec<_>>()),
            // A query that needs more than its time is refused before it runs.
            Err(error) => {
                let expected = matches!(error, QueryError::Deadline | QueryError::TooLarge { limit: None, .. });
                prop_assert!(expected, "{}", error);
            }
        }
    }
}

#[test]
fn a_cancelled_question_ends() {
    let world = World::new(KINDS[0]);
    world.write(0..EVENTS);
    let flag = CancelFlag::new();
    let control = Control::new(Arc::new(ManualClock::new(0)), Duration::from_secs(1), flag.clone());
    let schema = world.many.schema();
    flag.cancel();
    assert!(matches!(try_all(&*world.many, &Items::all(&schema), &control), Err(QueryError::Cancelled)));
}

/// Returns the files of one partition that end like this.
fn files_of(world: &World, partition: u16, end: &str) -> Vec<std::path::PathBuf> {
    let folder = format!("many/p{partition}/");
    let files = world.disk.files().into_iter().map(|(path, _)| path);
    files.filter(|path| path.to_string_lossy().contains(&folder) && path.to_string_lossy().ends_with(end)).collect()
}

#[test]
fn a_damaged_partition_is_named_and_the_others_are_served() {
    for harmed in 0..PARTITIONS {
        let mut world = World::new(KINDS[0]);
        world.write(0..EVENTS);
        world.flush();
        world.store.close().unwrap();
        for path in files_of(&world, harmed, ".rows").into_iter().chain(files_of(&world, harmed, ".segment")) {
            world.disk.vanish(&path).unwrap();
        }
        (world.store, world.backend) = super::open(&world.disk, &world.clock);
        let many = world.backend.collection("t", "many").unwrap().expect("a collection that is open");
        let rows = many.items(ReadPoint::newest(), &Items::all(&many.schema()), &world.control()).unwrap();
        let missing = rows.head().missing.clone();
        assert!(!missing.is_empty(), "partition {harmed}");
        let folder = format!("p{harmed}");
        assert!(missing.iter().all(|problem| problem.path.iter().any(|part| part == folder.as_str())), "{missing:?}");
        let found = rows.flat_map(|hits| super::numbers(&hits.unwrap().batch)).count();
        assert!(found > 0 && found < EVENTS as usize);
        let part = many.density(ReadPoint::newest(), &whole_world(), &world.control()).unwrap();
        assert_eq!(part.head.missing, missing);
    }
}

fn whole_world() -> meridian_query::Density {
    let predicate = meridian_model::filter::Predicate::all();
    meridian_query::Density { predicate, bbox: [-180.0, -90.0, 180.0, 90.0], width: 4, height: 4 }
}

#[test]
fn a_partition_that_is_gone_sets_the_collection_apart() {
    for gone in 0..PARTITIONS {
        let mut world = World::new(KINDS[0]);
        world.write(0..EVENTS);
        world.store.close().unwrap();
        for end in ["MANIFEST", "MANIFEST.copy"] {
            for path in files_of(&world, gone, end) {
                world.disk.vanish(&path).unwrap();
            }
        }
        (world.store, world.backend) = super::open(&world.disk, &world.clock);
        assert!(world.backend.collection("t", "many").unwrap().is_none(), "partition {gone}");
        let damaged = world.backend.why_damaged("t", "many").unwrap().expect("a reason");
        let folder = format!("p{gone}");
        assert!(damaged.problem.path.iter().any(|part| part == folder.as_str()), "{damaged}");
        // The other collection is served, and nothing was removed.
        assert!(world.backend.collection("t", "one").unwrap().is_some());
        assert!(!files_of(&world, (gone + 1) % PARTITIONS, "MANIFEST").is_empty());
        assert!(world.backend.create("t", "many", super::schema(KINDS[0]), Default::default()).is_err());
    }
}

#[test]
fn a_snapshot_of_another_number_of_partitions_is_gone() {
    let world = World::new(Kind { given: false, object: true, latest: false });
    world.write(0..20);
    let question = Items::all(&world.many.schema());
    let long: Seqs = std::iter::repeat_n(Seq(1 << 24), usize::from(PARTITIONS) + 1).collect();
    for seq in [Seqs::one(Seq(1 << 24)), long] {
        let at = ReadPoint { seq: Some(seq), ..ReadPoint::default() };
        assert!(matches!(world.many.items(at, &question, &world.control()), Err(QueryError::Gone(_))));
    }
    let at = ReadPoint { seq: Some(world.many.position().ends()), ..ReadPoint::default() };
    assert_eq!(all(&*world.many, at.clone(), &question, &control(world.clock.clone())).len(), 20);
    assert!(world.one.items(at, &question, &world.control()).is_err());
}
