//! What aggregates read: blocks and events that summaries do not answer for.

use super::oracle::{all_functions, event, same};
use super::world::*;
use crate::aggregate::{Aggregate, aggregate};
use crate::function::{Function, FunctionValue};
use crate::windows::Windows;
use meridian_index::LEAF_ROWS;
use std::collections::BTreeMap;

#[test]
fn a_whole_collection_is_summed_without_reading_a_block() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| event(n, n * 1_000)).collect()));
    for _ in 0..2 {
        let question = Aggregate {
            predicate: Filter::All.predicate(&world),
            functions: vec![Function::Sum(2), Function::Max(3)],
            windows: None,
            by: Vec::new(),
            empty: false,
        };
        let snapshot = world.collection.snapshot();
        let answer = aggregate(&snapshot, &question, &world.control()).unwrap();
        assert_eq!(answer.groups[0].values[0], FunctionValue::Int(19_999 * 10_000));
        assert_eq!(answer.groups[0].values[1], FunctionValue::Float(19_999.0 * 0.5));
        assert_eq!((answer.stats.blocks_read, answer.stats.events_tested), (0, 0));
        assert_eq!(crate::count(&snapshot, &question.predicate, 0, &world.control()).unwrap().0, Some(20_000));
        world.apply(&Op::Flush);
    }
}

#[test]
fn a_histogram_reads_only_where_windows_cut() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    // Two days, an event every 8.64 s, places everywhere: in space-time order every leaf is cut by every hour.
    world.apply(&Op::Write((0..20_000).map(|n| event((n * 7_919) % 20_000, n * 8_640_000)).collect()));
    let question = Aggregate {
        predicate: Filter::All.predicate(&world),
        functions: vec![Function::Count, Function::Sum(2)],
        windows: Some(Windows::parse("PT1H", "UTC").unwrap()),
        by: Vec::new(),
        empty: false,
    };
    // First from a memory tree, then from a segment.
    for _ in 0..2 {
        let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
        assert_eq!(answer.groups.len(), 48);
        assert_eq!(answer.groups.iter().map(|g| g.count).sum::<u64>(), 20_000);
        assert!(answer.stats.nodes_whole > 48, "{:?}", answer.stats);
        // Every block is cut by an hour somewhere, but only the leaves at the cut are read of it.
        assert!(answer.stats.blocks_read <= 60, "{:?}", answer.stats);
        world.apply(&Op::Flush);
    }
}

#[test]
fn windows_in_a_box_read_a_block_once() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| event((n * 7_919) % 20_000, n * 8_640_000)).collect()));
    let during = Filter::During(3 * HOUR, 40 * HOUR + 7);
    let filter = Filter::And(Box::new(Filter::Bbox([20.0, 10.0, 90.0, 40.0])), Box::new(during));
    let question = Aggregate {
        predicate: filter.predicate(&world),
        functions: all_functions(),
        windows: Some(Windows::parse("PT1H", "UTC").unwrap()),
        by: Vec::new(),
        empty: false,
    };
    // First from a memory tree, then from a segment, then with dead rows.
    for round in 0..3 {
        let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
        let mut expected: BTreeMap<i64, Vec<&Event>> = BTreeMap::new();
        for event in filter.matching(&world) {
            expected.entry(event.start.div_euclid(HOUR)).or_default().push(event);
        }
        assert_eq!(answer.groups.len(), expected.len());
        answer.groups.iter().zip(expected.values()).for_each(|(group, events)| same(group, events).unwrap());
        let rows = 20_000u64;
        assert!(answer.stats.blocks_read <= rows.div_ceil(meridian_store::CHUNK_ROWS.into()), "{:?}", answer.stats);
        assert!(answer.stats.edge_blocks > 0 && answer.stats.events_tested < rows, "{:?}", answer.stats);
        world.apply(if round == 0 { &Op::Flush } else { &Op::Delete(1_777) });
    }
}

/// Across the world there are `sqrt(N / 64)` leaves side by side, each of 64 neighbours on the curve. Leaves inside a
/// box are counted from their summaries, and leaves on its edge are tested. If leaves were squares, these would be
/// `4 * share * sqrt(N / 64)` for a box of that share of the world's sides. So the cost doubles with four times the
/// content: four times as many events, or a box twice as wide and high. The test asserts a factor below three, and
/// that the cost of a scan would fail this assertion.
#[test]
fn a_box_costs_what_its_edge_meets_and_not_what_it_holds() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let spread = |count: i64| {
        // All at one instant, so that only the place distinguishes events; evenly spread without being a lattice.
        let share = |n: i64, step: f64| (n as f64 * step).fract() - 0.5;
        let place = |n| Spot::Point(share(n, 0.754_877_666) * 360.0, share(n, 0.569_840_291) * 180.0);
        let mut world = World::new(kind);
        world.apply(&Op::Write((0..count).map(|n| Event { spot: place(n), ..event(n, 3 * HOUR) }).collect()));
        world
    };
    // Events in the box, and events tested for it.
    let cost = |world: &World, share: f64| {
        let filter = Filter::Bbox([-180.0 * share, -90.0 * share, 180.0 * share, 90.0 * share]);
        let question = Aggregate {
            predicate: filter.predicate(world),
            functions: vec![Function::Sum(2), Function::Max(3)],
            windows: None,
            by: Vec::new(),
            empty: false,
        };
        let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
        let (held, tested) = (filter.matching(world).len() as u64, answer.stats.events_tested);
        assert_eq!(answer.groups[0].count, held);
        let leaves = (world.live.len() as f64 / LEAF_ROWS as f64).sqrt() * 4.0 * share;
        // Leaves are not squares, and their boxes overlap: a few times as many are cut. A scan tests more than this.
        assert!(tested > 0 && tested as f64 <= 4.0 * leaves * LEAF_ROWS as f64, "{tested} of {held}, {share}");
        (held, tested)
    };
    let grows_as_the_edge = |less: u64, more: u64| more < 3 * less;
    let (mut few, mut many) = (spread(20_000), spread(80_000));
    // First from a memory tree, then from a segment.
    for _ in 0..2 {
        let (small, dense, large) = (cost(&few, 1.0 / 3.0), cost(&many, 1.0 / 3.0), cost(&many, 2.0 / 3.0));
        for (less, more) in [(small, dense), (dense, large)] {
            assert!(grows_as_the_edge(less.1, more.1), "{} events tested, then {}", less.1, more.1);
            assert!(!grows_as_the_edge(less.0, more.0), "the content grew from {} to {} only", less.0, more.0);
        }
        few.apply(&Op::Flush);
        many.apply(&Op::Flush);
    }
}
