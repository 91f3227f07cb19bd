//! The minimum that a query must read, against what it reads.

use super::oracle::all_functions;
use super::world::*;
use crate::aggregate::{Aggregate, aggregate};
use crate::error::QueryError;
use crate::items::Items;
use crate::scan::{Matches, Scan};
use meridian_model::filter::{Predicate, RegionVerdict, Relation};
use proptest::prelude::*;
use std::time::Duration;

fn count(predicate: Predicate) -> Aggregate {
    Aggregate { predicate, functions: all_functions(), windows: None, by: Vec::new(), empty: false }
}

fn everything(world: &World, predicate: Predicate) -> Items {
    Items { predicate, ..Items::all(&world.schema) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The weight is a lower bound of what the query then reads, for every filter. A certain verdict is what the walk
    /// finds at every node.
    #[test]
    fn no_question_reads_less_than_its_weight(kind in kinds(), ops in ops(), filter in filters()) {
        let world = World::after(kind, &ops);
        let (snapshot, predicate) = (world.collection.snapshot(), filter.predicate(&world));
        let scan = Scan::new(&snapshot, &predicate, &world.control()).unwrap();
        for part in scan.parts() {
            for tree in scan.part(part).trees() {
                let mut open: Vec<_> = tree.root().into_iter().collect();
                while let Some(node) = open.pop() {
                    let relation = predicate.relation(&tree.node_ref(node));
                    match predicate.verdict(&tree.node_ref(node)) {
                        RegionVerdict::False => prop_assert_eq!(relation, Relation::None),
                        RegionVerdict::True => prop_assert_eq!(relation, Relation::All),
                        RegionVerdict::Tested => prop_assert_eq!(relation, Relation::Some),
                        RegionVerdict::Open => {}
                    }
                    if !tree.is_leaf(node) {
                        open.extend(tree.children(node));
                    }
                }
            }
        }
        if predicate.ids().is_none() {
            let weight = scan.weight(Matches::Counted);
            let answer = aggregate(&snapshot, &count(predicate.clone()), &world.control()).unwrap();
            prop_assert!(weight.events <= answer.stats.events_tested, "{weight:?} {:?}", answer.stats);
            prop_assert!(weight.bytes <= answer.stats.bytes_read, "{weight:?} {:?}", answer.stats);
            let weight = scan.weight(Matches::Read);
            let mut answer = crate::items(&snapshot, &everything(&world, predicate), &world.control()).unwrap();
            for hits in answer.by_ref() {
                hits.unwrap();
            }
            prop_assert!(weight.bytes <= answer.stats().bytes_read, "{weight:?} {:?}", answer.stats());
        }
    }
}

#[test]
fn a_question_that_must_read_too_much_is_refused_before_it_reads() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| super::oracle::event(n, n * HOUR)).collect()));
    world.apply(&Op::Flush);
    let snapshot = world.collection.snapshot();
    let text = Filter::Same("s".to_owned()).predicate(&world);
    let read = || world.collection.stats().blocks_read;
    let before = read();
    let bytes = snapshot.parts[0].event_bytes() * 20_000;
    let control = world.control().reading_at_most(bytes - 1);
    match aggregate(&snapshot, &count(text.clone()), &control) {
        Err(QueryError::TooLarge { events, bytes: needed, limit }) => {
            assert_eq!((events, needed, limit), (20_000, bytes, Some(bytes - 1)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(read(), before, "nothing was read");
    assert!(aggregate(&snapshot, &count(text.clone()), &world.control().reading_at_most(bytes)).is_ok());
    // Results from the tree weigh nothing.
    let all = Filter::All.predicate(&world);
    assert!(aggregate(&snapshot, &count(all.clone()), &world.control().reading_at_most(0)).is_ok());
    // A query that lists events reads them all, and a page ends on the way once it is too much.
    assert!(matches!(
        crate::items(&snapshot, &everything(&world, all.clone()), &world.control().reading_at_most(bytes / 2)),
        Err(QueryError::TooLarge { limit: Some(_), .. })
    ));
    let page = Items { limit: Some(15_000), ..everything(&world, text) };
    let control = world.control().reading_at_most(bytes / 2);
    let mut answer = crate::items(&snapshot, &page, &control).unwrap();
    let ended = answer.find_map(Result::err).expect("it read all");
    assert!(matches!(ended, QueryError::TooLarge { events: 0, .. }), "{ended:?}");
    assert!(read() > before);
}

#[test]
fn a_question_without_the_time_to_read_what_it_must_is_refused_at_once() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| super::oracle::event(n, n * HOUR)).collect()));
    let snapshot = world.collection.snapshot();
    let text = Filter::Same("s".to_owned()).predicate(&world);
    let (clock, cancel) = (world.clock.clone(), crate::CancelFlag::new());
    // No processor tests twenty thousand texts in a hundred nanoseconds; the clock of this test stands still.
    let hurried = crate::Control::new(clock.clone(), Duration::from_micros(1), cancel.clone());
    assert!(matches!(
        aggregate(&snapshot, &count(text.clone()), &hurried),
        Err(QueryError::TooLarge { events: 20_000, limit: None, .. })
    ));
    let all = Filter::All.predicate(&world);
    assert!(aggregate(&snapshot, &count(all), &hurried).is_ok(), "the tree answers it");
    assert!(aggregate(&snapshot, &count(text), &crate::Control::new(clock, Duration::from_secs(1), cancel)).is_ok());
}
