//! Deadlines, cancellation and limits stop the work: blocks read are counted.

use super::world::*;
use crate::control::{CancelFlag, Control, Scheduler};
use crate::error::QueryError;
use crate::items::{Items, Order, items};
use crate::sort::{SortKey, SortTarget};
use meridian_model::Seq;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const EVENTS: i64 = 60_000;

/// Some 15 blocks of points in one segment.
fn world() -> World {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let event = |n: i64| Event {
        id: String::new(),
        spot: Spot::Point(((n * 7_919) % 36_000) as f64 * 0.01 - 180.0, ((n * 104_729) % 18_000) as f64 * 0.01 - 90.0),
        start: n * 1_000_000,
        end: n * 1_000_000,
        n: Some(n),
        x: Some((n * 31 % 1000) as f64),
        s: Some("a".to_owned()),
        b: None,
        seq: Seq(0),
    };
    world.apply(&Op::Write((0..EVENTS).map(event).collect()));
    world.apply(&Op::Flush);
    world
}

/// A query that must test every event, and matches all.
fn everything(world: &World) -> Items {
    Items { predicate: Filter::Same("a".to_owned()).predicate(world), ..Items::all(&world.schema) }
}

fn store_blocks(world: &World) -> u64 {
    world.collection.stats().blocks_read
}

#[test]
fn a_raised_flag_stops_the_next_block() {
    let world = world();
    let cancel = CancelFlag::new();
    let control = Control::new(world.clock.clone(), Duration::from_secs(60), cancel.clone());
    let mut answer = items(&world.collection.snapshot(), &everything(&world), &control).unwrap();
    assert!(answer.next().unwrap().is_ok());
    let before = store_blocks(&world);
    assert!(answer.stats().blocks_read < 8, "{:?}", answer.stats());
    cancel.cancel();
    assert!(matches!(answer.next(), Some(Err(QueryError::Cancelled))));
    assert!(answer.next().is_none());
    assert_eq!(store_blocks(&world), before);
}

#[test]
fn a_deadline_stops_the_next_block() {
    let world = world();
    let control = Control::new(world.clock.clone(), Duration::from_millis(10), CancelFlag::new());
    let mut answer = items(&world.collection.snapshot(), &everything(&world), &control).unwrap();
    assert!(answer.next().unwrap().is_ok());
    let before = store_blocks(&world);
    world.clock.advance(10_000);
    assert!(matches!(answer.next(), Some(Err(QueryError::Deadline))));
    assert_eq!(store_blocks(&world), before);
    // Nor does any other query begin.
    let snapshot = world.collection.snapshot();
    let question = crate::Density {
        predicate: everything(&world).predicate,
        bbox: [-180.0, -90.0, 180.0, 90.0],
        width: 3,
        height: 3,
    };
    assert!(matches!(crate::density(&snapshot, &question, &control), Err(QueryError::Deadline)));
    assert!(matches!(items(&snapshot, &everything(&world), &control), Err(QueryError::Deadline)));
    assert_eq!(store_blocks(&world), before);
}

/// Counts what is charged, for queries that must never wait for their turn.
#[derive(Debug, Default)]
struct Charged(AtomicU64);

impl Scheduler for Charged {
    fn tick(&self, _: &dyn Fn() -> bool) {
        panic!("a brief query waits for its turn");
    }

    fn is_contended(&self) -> bool {
        false
    }

    fn charge(&self, _: Duration) {
        panic!("a brief query runs on several threads");
    }

    fn read(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read_too_much(&self) {}
}

#[test]
fn a_brief_try_ends_in_time_and_is_charged_once_complete() {
    let world = world();
    let charged = Arc::new(Charged::default());
    let control = world.control().scheduled_by(charged.clone()).reading_at_most(1 << 30);
    let read = || charged.0.load(Ordering::Relaxed);
    let limit = Duration::from_millis(10);

    let brief = control.brief(limit);
    let mut answer = items(&world.collection.snapshot(), &everything(&world), &brief).unwrap();
    assert!(answer.next().unwrap().is_ok());
    world.clock.advance(10_000);
    assert!(matches!(answer.next(), Some(Err(QueryError::Deadline))));
    assert!(brief.is_exceeded() && answer.stats().bytes_read > 0);
    assert_eq!((read(), control.cancel_flag().is_cancelled()), (0, false));

    let brief = control.brief(limit);
    let mut answer = items(&world.collection.snapshot(), &everything(&world), &brief).unwrap();
    let given: usize = answer.by_ref().map(|hits| hits.unwrap().batch.rows()).sum();
    assert_eq!((given as i64, brief.is_exceeded(), read()), (EVENTS, false, 0));
    brief.settle();
    assert_eq!(read(), answer.stats().bytes_read);

    // It has an allowance of its own, as large as the query's.
    let few = control.reading_at_most(100).brief(limit);
    let refused = items(&world.collection.snapshot(), &everything(&world), &few);
    assert!(matches!(refused, Err(QueryError::TooLarge { .. })) && !few.is_exceeded());
}

#[test]
fn a_limit_reads_what_it_needs_and_no_more() {
    let world = world();
    let snapshot = world.collection.snapshot();
    let blocks = |question: &Items| {
        let mut answer = items(&snapshot, question, &world.control()).unwrap();
        let given: usize = answer.by_ref().map(|hits| hits.unwrap().batch.rows()).sum();
        (given, answer.next_page().is_some(), answer.stats().blocks_read)
    };
    let all = everything(&world);
    let (given, _, whole) = blocks(&all);
    assert_eq!(given as i64, EVENTS);
    let (given, more, few) = blocks(&Items { limit: Some(10), ..all.clone() });
    assert!(given == 10 && more);
    assert!(few <= 6 && whole >= 15, "{few} of {whole}");
    let near = Items { order: Order::Near { lon: 10.0, lat: 50.0, k: Some(10) }, ..all.clone() };
    let (given, more, few) = blocks(&near);
    assert!(given == 10 && !more);
    assert!(few < 120, "{few} blocks for the ten nearest");
    let key = SortKey { target: SortTarget::Field(2), descending: true };
    let sorted = Items { order: Order::Fields(vec![key]), limit: Some(10), ..all };
    let (given, more, few) = blocks(&sorted);
    assert!(given == 10 && more);
    assert!(few < 60, "{few} blocks for the ten largest");
}

#[test]
fn explain_tells_what_was_pruned() {
    let world = world();
    let predicate = Filter::Bbox([10.0, 10.0, 20.0, 20.0]).predicate(&world);
    let question = Items { predicate, ..Items::all(&world.schema) };
    let told = crate::explain(&world.collection.snapshot(), &question, &world.control()).unwrap();
    assert!(told.returned > 0 && told.stats.events_matched == told.returned);
    assert!(told.stats.nodes_pruned > 0 && told.stats.events_tested < EVENTS as u64 / 2, "{told:?}");
    assert!(told.plan.iter().any(|line| line.contains("1 segments")), "{told:?}");
}
