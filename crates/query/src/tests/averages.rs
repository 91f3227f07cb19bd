//! Averages in the cells of tiles against the oracle, of one snapshot and of merged partitions.

use super::partials::{Partitions, shipped, steps};
use super::world::*;
use crate::mvt::tests::{OwnedValue, decode};
use crate::partial::PartialTile;
use crate::tile::{TILE_CELLS, Tile, TileResult, tile};
use meridian_index::mercator_cell;
use meridian_model::Seq;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Events, values, their sum and the sum of their magnitudes.
type Expected = BTreeMap<(i32, i32), (i64, i64, f64, f64)>;

fn question(world: &World, filter: &Filter, (z, row, column): (u8, u32, u32), field: &str) -> Tile {
    Tile {
        predicate: filter.predicate(world),
        z,
        row,
        column,
        layer: "events".to_owned(),
        fields: None,
        density: true,
        average: world.schema.field_index(field),
    }
}

fn value(event: &Event, field: &str) -> Option<f64> {
    if field == "n" { event.n.map(|n| n as f64) } else { event.x }
}

fn expected(world: &World, filter: &Filter, (z, row, column): (u8, u32, u32), field: &str) -> Expected {
    let mut cells = Expected::new();
    for event in filter.matching(world) {
        let Some((x, y)) = event.centre().and_then(|(lon, lat)| mercator_cell(lon, lat, u32::from(z) + 6)) else {
            continue;
        };
        if x / TILE_CELLS != column || y / TILE_CELLS != row {
            continue;
        }
        let cell = ((x % TILE_CELLS * 64 + 32) as i32, (y % TILE_CELLS * 64 + 32) as i32);
        let (count, values, sum, magnitudes) = cells.entry(cell).or_default();
        *count += 1;
        if let Some(value) = value(event, field) {
            *values += 1;
            *sum += value;
            *magnitudes += value.abs();
        }
    }
    cells
}

fn check(answer: &TileResult, expected: &Expected) {
    let features = if answer.bytes.is_empty() { Vec::new() } else { decode(&answer.bytes).2 };
    assert_eq!(features.len(), expected.len());
    for feature in features {
        let (count, values, sum, magnitudes) = expected[&feature.paths[0][0]];
        assert_eq!(feature.get("count"), Some(&OwnedValue::Int(count)));
        match (feature.get("values"), feature.get("avg")) {
            (None, None) => assert_eq!(values, 0),
            (Some(OwnedValue::Int(found)), Some(OwnedValue::Float(average))) => {
                assert_eq!(*found, values);
                let off = (average * values as f64 - sum).abs();
                assert!(off <= 1e-12 * magnitudes, "{average} of {values}, expected a sum of {sum}");
            }
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cells_have_the_oracles_averages(
        points: bool,
        count in 1usize..5,
        steps in steps(),
        asked in prop::collection::vec((filters(), 0u8..4, any::<u32>(), any::<u32>(), any::<bool>()), 1..5),
    ) {
        let places = if points { Places::Points } else { Places::Shapes };
        let all = Partitions::after(Kind { places, times: Times::Instant, made_ids: false }, count, &steps);
        for (filter, z, x, y, ints) in asked {
            let at = (z, y % (1 << z), x % (1 << z));
            let field = if ints { "n" } else { "x" };
            let expected = expected(&all.whole, &filter, at, field);
            let question = question(&all.whole, &filter, at, field);
            check(&tile(&all.whole.collection.snapshot(), &question, &all.whole.control()).unwrap(), &expected);
            let parts = all.parts.iter().map(|part| {
                let part = PartialTile::of(&part.collection.snapshot(), &question, &part.control()).unwrap();
                PartialTile::from_arrow(&shipped(&part.to_arrow().unwrap())).unwrap()
            });
            check(&PartialTile::merge(parts.collect(), &question).unwrap().unwrap().finish(&question), &expected);
        }
    }
}

/// Events around five places, so that whole nodes lie in one cell.
fn crowds(count: i64) -> Vec<Event> {
    let event = |n: i64| Event {
        id: String::new(),
        spot: Spot::Point((n % 5) as f64 * 30.0 + 1.0, 20.0),
        start: n,
        end: n,
        n: (n % 7 != 0).then_some(n),
        x: Some(n as f64 * 0.1),
        s: None,
        b: None,
        seq: Seq(0),
    };
    (0..count).map(event).collect()
}

#[test]
fn whole_nodes_and_deleted_events_average_right() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    world.apply(&Op::Write(crowds(20_000)));
    world.apply(&Op::Flush);
    let at = (0, 0, 0);
    let ask = |world: &World, field: &str| {
        let question = question(world, &Filter::All, at, field);
        tile(&world.collection.snapshot(), &question, &world.control()).unwrap()
    };
    let whole = ask(&world, "x");
    check(&whole, &expected(&world, &Filter::All, at, "x"));
    assert!(whole.stats.events_tested == 0, "nodes say it");
    world.apply(&Op::Delete(11));
    for field in ["n", "x"] {
        check(&ask(&world, field), &expected(&world, &Filter::All, at, field));
    }
}

#[test]
fn a_text_has_no_average() {
    let world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let question = question(&world, &Filter::All, (0, 0, 0), "s");
    assert!(question.average.is_some());
    let refused = tile(&world.collection.snapshot(), &question, &world.control()).unwrap_err();
    assert!(refused.to_string().contains("needs a numeric property"), "{refused}");
}

#[test]
fn averages_and_counts_do_not_merge() {
    let world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let averaged = question(&world, &Filter::All, (0, 0, 0), "n");
    let counted = Tile { average: None, ..averaged.clone() };
    let part = |question: &Tile| PartialTile::of(&world.collection.snapshot(), question, &world.control()).unwrap();
    assert!(PartialTile::merge(vec![part(&averaged), part(&counted)], &averaged).is_err());
    let floats = question(&world, &Filter::All, (0, 0, 0), "x");
    assert!(PartialTile::merge(vec![part(&averaged), part(&floats)], &averaged).is_err());
}
