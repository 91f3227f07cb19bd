//! The bounds of `docs/compaction.md`, measured under seeded patterns of writes.

use crate::world::{DAY, Event, START, World, batch, content};
use meridian_model::IdRole;
use meridian_store::seams::{Random, SeededRandom};
use meridian_store::{CollectionStats, Write};

/// How event times are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pattern {
    /// Each later than the last.
    InOrder,
    /// In order, except for one in a hundred, which may have any earlier time.
    SomeLate,
    /// Any time within two years.
    Anywhere,
}

const EVENTS: i64 = 60_000;

fn time(pattern: Pattern, n: i64, random: &SeededRandom) -> i64 {
    let day = |n: i64| START + n * 730 * DAY / EVENTS;
    let before = |n: i64| day((random.next_u64() % (n as u64 + 1)) as i64);
    match pattern {
        Pattern::InOrder => day(n),
        Pattern::SomeLate if random.next_u64().is_multiple_of(100) => before(n),
        Pattern::SomeLate => day(n),
        Pattern::Anywhere => before(EVENTS - 1),
    }
}

/// Runs writes, flushes and merges; the depth is within its bound whenever merges are done. Returns the mean depth as
/// well.
fn run(pattern: Pattern, merge_rows_max: u64, seed: u64) -> (CollectionStats, f64) {
    let random = SeededRandom::new(seed);
    let mut world = World::new();
    world.options.segment_rows_min = 256;
    world.options.archive_rows_min = 4096;
    world.options.merge_rows_max = merge_rows_max;
    let (store, c) = world.with_collection(IdRole::Made);
    let (mut next, mut depths, mut flushes) = (0, 0, 0);
    while next < EVENTS {
        // The content of one flush, in several writes.
        let until = (next + 200 + (random.next_u64() % 800) as i64).min(EVENTS);
        while next < until {
            let end = (next + 1 + (random.next_u64() % 300) as i64).min(until);
            let events: Vec<Event> =
                (next..end).map(|n| Event { time: time(pattern, n, &random), ..Event::new("", n) }).collect();
            c.write(Write::new(batch(&c.schema(), &events))).unwrap();
            next = end;
        }
        c.flush().unwrap();
        c.maintain().unwrap();
        let stats = c.stats();
        assert!(stats.depth <= stats.depth_bound, "{pattern:?} {seed}: {} > {}", stats.depth, stats.depth_bound);
        depths += stats.depth;
        flushes += 1;
    }
    world.clock.advance(3600 * 1_000_000);
    c.maintain().unwrap();
    assert_eq!(content(&c.snapshot()).len() as i64, EVENTS);
    assert_eq!(store.check(), []);
    (c.stats(), depths as f64 / f64::from(flushes))
}

#[test]
fn depth_and_write_amplification_stay_within_their_bounds() {
    let patterns = [(Pattern::InOrder, 1), (Pattern::SomeLate, 2), (Pattern::Anywhere, 3)];
    for (pattern, seed) in patterns {
        let small = (pattern == Pattern::SomeLate).then_some(1 << 13);
        for merge_rows_max in small.into_iter().chain([1 << 25]) {
            let (stats, depth) = run(pattern, merge_rows_max, seed);
            assert_eq!(stats.flush_rows as i64, EVENTS);
            let rewritten = stats.merge_rows as f64 / stats.flush_rows as f64;
            println!(
                "{pattern:?}, merges of {merge_rows_max} at most: depth {depth:.1} (bound {}), rewritten {rewritten:.2} \
                 times, {:.2} bytes for one; {} segments",
                stats.depth_bound,
                stats.write_amplification(),
                stats.segments,
            );
            // Flushes of some 600 events, 60,000 in total: three to four factors of four between them.
            let factors = (EVENTS as f64 / 600.0).log(4.0);
            assert!(rewritten <= 2.0 * factors + 1.0, "{pattern:?} {seed}: rewritten {rewritten:.2} times");
        }
    }
}
