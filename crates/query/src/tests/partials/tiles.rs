//! Tiles of several partitions equal, byte by byte, those of all events.

use super::super::world::*;
use super::{Partitions, Step, shipped, steps};
use crate::control::Stats;
use crate::partial::PartialTile;
use crate::tile::{TILE_EVENTS_MAX, Tile, TileKind, TileResult, tile};
use meridian_model::Seq;
use proptest::prelude::*;

fn sent(world: &World, question: &Tile) -> PartialTile {
    let part = PartialTile::of(&world.collection.snapshot(), question, &world.control()).unwrap();
    PartialTile::from_arrow(&shipped(&part.to_arrow().unwrap())).unwrap()
}

/// Queries all partitions like a gateway: once more for counts, if needed.
fn ask(all: &Partitions, question: &Tile) -> (TileResult, bool) {
    let parts = all.parts.iter().map(|part| sent(part, question)).collect();
    if let Some(merged) = PartialTile::merge(parts, question).unwrap() {
        return (merged.finish(question), false);
    }
    let counts = Tile { density: true, ..question.clone() };
    let parts = all.parts.iter().map(|part| sent(part, &counts)).collect();
    (PartialTile::merge(parts, question).unwrap().unwrap().finish(question), true)
}

fn whole(all: &Partitions, question: &Tile) -> TileResult {
    tile(&all.whole.collection.snapshot(), question, &all.whole.control()).unwrap()
}

fn without_cost(answer: TileResult) -> TileResult {
    TileResult { stats: Stats::default(), ..answer }
}

fn question(all: &Partitions, filter: &Filter, (z, row, column): (u8, u32, u32), density: bool) -> Tile {
    let predicate = filter.predicate(&all.whole);
    Tile { predicate, z, row, column, layer: "events".to_owned(), fields: None, density, average: None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn merged_tiles_are_those_of_all_events(
        points: bool,
        count in 1usize..6,
        steps in steps(),
        asked in prop::collection::vec((filters(), 0u8..4, any::<u32>(), any::<u32>(), prop::bool::weighted(0.3)), 1..5),
    ) {
        let places = if points { Places::Points } else { Places::Shapes };
        let all = Partitions::after(Kind { places, times: Times::Instant, made_ids: false }, count, &steps);
        for (filter, z, x, y, density) in asked {
            let question = question(&all, &filter, (z, y % (1 << z), x % (1 << z)), density);
            let (merged, again) = ask(&all, &question);
            prop_assert!(!again, "so few events are drawn");
            let whole = whole(&all, &question);
            // Sequence numbers are per partition: events with the same key may come in any order.
            let mut keys: Vec<_> = all.whole.live.iter().map(|event| all.whole.key(event)).collect();
            keys.sort_unstable();
            let length = keys.len();
            keys.dedup();
            if density || keys.len() == length {
                prop_assert_eq!(without_cost(merged), without_cost(whole));
            } else {
                prop_assert_eq!((merged.kind, merged.events), (whole.kind, whole.events));
            }
        }
    }
}

#[test]
fn a_tile_decides_once_whether_it_draws() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: false };
    let event = |n: usize, part: u8| {
        let spot = Spot::Point((n % 300) as f64 * 0.5, (n / 300) as f64);
        let event = Event {
            id: String::new(),
            spot,
            start: n as i64,
            end: n as i64,
            n: None,
            x: None,
            s: None,
            b: None,
            seq: Seq(0),
        };
        (event, part)
    };
    // Few in each, but too many together; then too many in one.
    for (first, second) in [(TILE_EVENTS_MAX - 100, 200), (TILE_EVENTS_MAX + 1, 3)] {
        let events = (0..first + second).map(|n| event(n, u8::from(n >= first))).collect();
        let all = Partitions::after(kind, 2, &[Step::Write(events)]);
        let question = question(&all, &Filter::All, (0, 0, 0), false);
        let (merged, again) = ask(&all, &question);
        assert!(again && merged.kind == TileKind::Density);
        assert_eq!(without_cost(merged), without_cost(whole(&all, &question)));
    }
    let events = (0..TILE_EVENTS_MAX).map(|n| event(n, (n % 2) as u8)).collect();
    let all = Partitions::after(kind, 2, &[Step::Write(events)]);
    let question = question(&all, &Filter::All, (0, 0, 0), false);
    let (merged, again) = ask(&all, &question);
    assert!(!again && merged.kind == TileKind::Events);
    assert_eq!(without_cost(merged), without_cost(whole(&all, &question)));
}
