//! Events of many kilobytes: a query reads few of them at a time.

use super::world::*;
use crate::aggregate::{Aggregate, aggregate};
use crate::function::Function;
use meridian_index::LEAF_ROWS;
use meridian_model::Seq;
use meridian_model::filter::{Predicate, parse_text};

const COUNT: usize = 700;

fn world() -> World {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let event = |n: usize| {
        let s = Some(format!("{n:04}{}", "x".repeat(16_000)));
        let spot = Spot::Point((n % 360) as f64 - 180.0, 10.0);
        let start = n as i64 * HOUR;
        Event { id: String::new(), spot, start, end: start, n: Some(n as i64), x: None, s, b: None, seq: Seq(0) }
    };
    world.apply(&Op::Write((0..COUNT).map(event).collect()));
    world.apply(&Op::Flush);
    world
}

/// Counts events, reading the large field for its test or for the groups.
fn counted(world: &World, predicate: Predicate, by: Vec<usize>) -> (u64, u64) {
    let question = Aggregate { predicate, functions: vec![Function::Max(2)], windows: None, by, empty: false };
    let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
    (answer.groups.iter().map(|group| group.count).sum(), answer.stats.blocks_read)
}

#[test]
fn large_events_are_tested_and_grouped_a_few_at_a_time() {
    let world = world();
    let reads = (COUNT / LEAF_ROWS) as u64;
    let like = Predicate::bind(&parse_text("s LIKE '%7%'").unwrap(), &world.schema).unwrap();
    let expected = (0..COUNT).filter(|n| n.to_string().contains('7')).count() as u64;
    let (found, read) = counted(&world, like, Vec::new());
    assert_eq!(found, expected);
    assert!(read >= reads, "{read} reads for {reads} pages");
    let (found, read) = counted(&world, Predicate::all(), vec![4]);
    assert_eq!(found, COUNT as u64);
    assert!(read >= reads, "{read} reads for {reads} pages");
}
