//! Tiles, decoded, and tracks against the oracle.

use super::world::*;
use crate::by::ByValue;
use crate::mvt::tests::{OwnedValue, decode};
use crate::passages::{Passage, Passages, passages};
use crate::tile::{TILE_BYTES_MAX, TILE_CELLS, Tile, TileKind, tile};
use crate::track::{Track, track};
use meridian_index::mercator_cell;
use meridian_model::Seq;
use meridian_model::filter::Predicate;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

fn ask(world: &World, filter: &Filter, z: u8, row: u32, column: u32) -> crate::TileResult {
    let question = Tile {
        predicate: filter.predicate(world),
        z,
        row,
        column,
        layer: "events".to_owned(),
        fields: None,
        density: false,
        average: None,
    };
    tile(&world.collection.snapshot(), &question, &world.control()).unwrap()
}

/// A place in tile units, by the Web Mercator formula.
fn units(lon: f64, lat: f64, z: u8, row: u32, column: u32) -> (f64, f64) {
    let side = f64::from(1u32 << z);
    let x = (lon + 180.0) / 360.0 * side - f64::from(column);
    let phi = lat.to_radians();
    let y = (1.0 - (phi.tan() + 1.0 / phi.cos()).ln() / std::f64::consts::PI) / 2.0 * side - f64::from(row);
    (x * 4096.0, y * 4096.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn tiles_hold_the_oracles_events(
        made_ids: bool,
        ops in ops(),
        asked in prop::collection::vec((filters(), 0u8..9, any::<prop::sample::Index>(), lons(), lats()), 1..6),
    ) {
        let world = World::after(Kind { places: Places::Points, times: Times::Instant, made_ids }, &ops);
        for (filter, z, pick, lon, lat) in asked {
            // A tile that usually has some content.
            let at = (!world.live.is_empty()).then(|| pick.index(world.live.len())).and_then(|i| world.live[i].centre());
            let (lon, lat) = at.unwrap_or((lon, lat));
            let (column, row) = mercator_cell(lon, lat.clamp(-85.0, 85.0), z.into()).unwrap();
            let answer = ask(&world, &filter, z, row, column);
            let mut expected: HashMap<String, &Event> = HashMap::new();
            let mut doubtful = 0;
            for event in filter.matching(&world) {
                if let Some((lon, lat)) = event.centre().filter(|(_, lat)| lat.abs() < 89.0) {
                    let (x, y) = units(lon, lat, z, row, column);
                    let edge = |v: f64| (v + 64.0).abs().min((v - 4160.0).abs()) < 0.01;
                    if (-64.0..=4160.0).contains(&x) && (-64.0..=4160.0).contains(&y) || edge(x) || edge(y) {
                        doubtful += usize::from(edge(x) || edge(y));
                        expected.insert(event.id.clone(), event);
                    }
                }
            }
            if answer.kind == TileKind::Empty {
                prop_assert!(answer.bytes.is_empty() && expected.len() <= doubtful);
                continue;
            }
            prop_assert_eq!(answer.kind, TileKind::Events);
            let (name, extent, features) = decode(&answer.bytes);
            prop_assert_eq!((name.as_str(), extent), ("events", 4096));
            prop_assert!(features.len() + doubtful >= expected.len(), "{} of {}", features.len(), expected.len());
            for feature in features {
                let Some(OwnedValue::Text(id)) = feature.get("id") else { panic!("no id") };
                let event = expected.remove(id);
                prop_assert!(event.is_some(), "{} is not expected, or comes twice", id);
                let event = event.unwrap();
                let (lon, lat) = event.centre().unwrap();
                let (x, y) = units(lon, lat, z, row, column);
                // At the antimeridian no tile follows, so clients would draw no point at 4096.
                let x = if column + 1 == 1 << z { x.min(4095.0) } else { x };
                let (px, py) = feature.paths[0][0];
                prop_assert!((f64::from(px) - x).abs() <= 0.51 && (f64::from(py) - y).abs() <= 0.51);
                prop_assert_eq!(feature.kind, 1);
                prop_assert_eq!(feature.get("n").cloned(), event.n.map(OwnedValue::Int));
                prop_assert_eq!(feature.get("x").cloned(), event.x.map(OwnedValue::Float));
                prop_assert_eq!(feature.get("b").cloned(), event.b.map(OwnedValue::Bool));
                prop_assert_eq!(feature.get("s").cloned(), event.s.clone().map(OwnedValue::Text));
            }
        }
    }

    #[test]
    fn tiles_of_shapes_decode_and_hold_every_shape_that_touches_them(
        ops in ops(),
        z in 0u8..6, x: u32, y: u32,
    ) {
        let world = World::after(Kind { places: Places::Shapes, times: Times::Interval, made_ids: false }, &ops);
        let (column, row) = (x % (1 << z), y % (1 << z));
        let answer = ask(&world, &Filter::All, z, row, column);
        let mut found = std::collections::HashSet::new();
        if !answer.bytes.is_empty() {
            for feature in decode(&answer.bytes).2 {
                let Some(OwnedValue::Text(id)) = feature.get("id") else { panic!("no id") };
                prop_assert!(found.insert(id.clone()));
                prop_assert!(feature.kind == 1 || feature.kind == 3 && feature.paths[0].len() >= 3);
                prop_assert!(feature.paths.iter().flatten().all(|(x, y)| (-64..=4161).contains(x) && (-64..=4161).contains(y)));
            }
        }
        for event in &world.live {
            let bounds = event.bounds();
            if bounds.is_nowhere() || bounds.south < -85.0 || bounds.north > 85.0 {
                continue;
            }
            let (west, north) = units(bounds.west, bounds.north, z, row, column);
            let (east, south) = units(bounds.east, bounds.south, z, row, column);
            let touches = west <= 4159.0 && east >= -63.0 && north <= 4159.0 && south >= -63.0;
            let apart = west > 4161.0 || east < -65.0 || north > 4161.0 || south < -65.0;
            prop_assert!(!touches || found.contains(&event.id), "{:?} is missing", event);
            prop_assert!(!apart || !found.contains(&event.id), "{:?} is too much", event);
        }
    }

    #[test]
    fn tracks_are_the_oracles_in_order_of_time(
        times in prop::sample::select(vec![Times::Instant, Times::Interval]),
        places in prop::sample::select(vec![Places::Points, Places::Shapes]),
        ops in ops(),
        object in texts(),
        tolerance in prop::option::of(0.0..1e6f64),
    ) {
        let world = World::after(Kind { places, times, made_ids: false }, &ops);
        let question = Track { object: object.clone(), predicate: Predicate::all(), simplify_m: None };
        let snapshot = world.collection.snapshot();
        let answer = track(&snapshot, &question, &world.control()).unwrap();
        let mut expected: Vec<(i64, Seq, (f64, f64))> = world
            .live
            .iter()
            .filter(|e| e.s.as_ref() == Some(&object) && e.start > i64::MIN)
            .filter_map(|e| Some((e.start, e.seq, e.centre()?)))
            .collect();
        expected.sort_by_key(|(time, seq, _)| (*time, *seq));
        let found: Vec<_> = answer.points.iter().map(|p| (p.time, p.seq, (p.lon, p.lat))).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(answer.events, expected.len() as u64);
        if let Some(tolerance) = tolerance {
            let fewer = track(&snapshot, &Track { simplify_m: Some(tolerance), ..question }, &world.control()).unwrap();
            prop_assert_eq!(fewer.events, expected.len() as u64);
            prop_assert_eq!(fewer.points.first(), answer.points.first());
            prop_assert_eq!(fewer.points.last(), answer.points.last());
            let mut rest = answer.points.iter();
            prop_assert!(fewer.points.iter().all(|p| rest.any(|q| q == p)), "not a part of the whole");
        }
    }

    #[test]
    fn objects_that_passed_are_the_oracles_page_by_page(
        kind in kinds().prop_filter("a track takes time", |kind| kind.times != Times::None),
        ops in ops(),
        filter in filters(),
        limit in 1usize..5,
    ) {
        let world = World::after(kind, &ops);
        let snapshot = world.collection.snapshot();
        let mut expected: BTreeMap<String, (u64, i64, i64)> = BTreeMap::new();
        for event in filter.matching(&world) {
            let Some(object) = &event.s else { continue };
            let seen = expected.entry(object.clone()).or_insert((0, i64::MAX, i64::MIN));
            let has_time = (event.start, event.end) != (i64::MIN, i64::MAX);
            let (start, end) = if has_time { (event.start, event.end) } else { (i64::MAX, i64::MIN) };
            *seen = (seen.0 + 1, seen.1.min(start), seen.2.max(end));
        }
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let question = Passages { predicate: filter.predicate(&world), after, limit };
            let page = passages(&snapshot, &question, &world.control()).unwrap();
            prop_assert!(page.passages.len() == limit || !page.more);
            after = page.passages.last().map(|p| p.object.clone());
            found.extend(page.passages);
            if !page.more {
                break;
            }
        }
        let expected: Vec<Passage> = expected
            .into_iter()
            .map(|(object, (count, first, last))| Passage { object: ByValue::Text(object), count, first, last })
            .collect();
        prop_assert_eq!(found, expected, "{:?}", &filter);
    }
}

fn crowd(count: i64) -> Vec<Event> {
    (0..count)
        .map(|n| Event {
            id: String::new(),
            spot: Spot::Point(
                ((n * 7_919) % 36_000) as f64 * 0.01 - 180.0,
                ((n * 104_729) % 17_000) as f64 * 0.01 - 85.0,
            ),
            start: n * 1_000_000,
            end: n * 1_000_000,
            n: Some(n),
            x: None,
            s: Some("text ".repeat(40)),
            b: None,
            seq: Seq(0),
        })
        .collect()
}

#[test]
fn a_crowded_tile_becomes_counts_that_add_up() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    world.apply(&Op::Write(crowd(12_000)));
    world.apply(&Op::Flush);
    world.apply(&Op::Write(crowd(3_000)));
    world.apply(&Op::Delete(11));
    for (z, row, column) in [(0u8, 0u32, 0u32), (1, 0, 1), (1, 1, 1)] {
        let answer = ask(&world, &Filter::All, z, row, column);
        assert!(answer.bytes.len() <= TILE_BYTES_MAX);
        let mut expected: HashMap<(i32, i32), i64> = HashMap::new();
        for (lon, lat) in world.live.iter().filter_map(Event::centre) {
            let Some((x, y)) = mercator_cell(lon, lat, u32::from(z) + 6) else { continue };
            if x / TILE_CELLS == column && y / TILE_CELLS == row {
                *expected.entry(((x % TILE_CELLS * 64 + 32) as i32, (y % TILE_CELLS * 64 + 32) as i32)).or_default() +=
                    1;
            }
        }
        if z == 0 {
            assert_eq!(answer.kind, TileKind::Density);
        }
        if answer.kind == TileKind::Density {
            let mut found = HashMap::new();
            for feature in decode(&answer.bytes).2 {
                assert_eq!(feature.get("density"), Some(&OwnedValue::Bool(true)));
                let Some(OwnedValue::Int(count)) = feature.get("count") else { panic!("no count") };
                found.insert(feature.paths[0][0], *count);
            }
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn tiles_of_a_large_segment_are_counted_from_its_pyramid() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    // Three weeks and a bit, so that there are whole bins and remainders.
    let mut events = crowd(90_000);
    events.iter_mut().enumerate().for_each(|(i, e)| {
        e.s = None;
        e.start = i as i64 * 22_000_000;
        e.end = e.start;
    });
    world.apply(&Op::Write(events));
    world.apply(&Op::Flush);
    let read = |world: &World| world.collection.stats().blocks_read;
    ask(&world, &Filter::All, 0, 0, 0);
    let before = read(&world);
    let answer = ask(&world, &Filter::All, 0, 0, 0);
    assert_eq!((answer.kind, answer.stats.blocks_read), (TileKind::Density, 0));
    assert_eq!(read(&world), before);
    world.apply(&Op::Delete(7));
    let week = 7 * 24 * HOUR;
    for filter in [Filter::All, Filter::During(week / 2, 2 * week + 5 * HOUR), Filter::During(i64::MIN, week + 1)] {
        for (z, row, column) in [(0u8, 0u32, 0u32), (2, 1, 3)] {
            let answer = ask(&world, &filter, z, row, column);
            let mut expected: HashMap<(i32, i32), i64> = HashMap::new();
            for (lon, lat) in filter.matching(&world).iter().filter_map(|e| e.centre()) {
                let Some((x, y)) = mercator_cell(lon, lat, u32::from(z) + 6) else { continue };
                if x / TILE_CELLS == column && y / TILE_CELLS == row {
                    let cell = ((x % TILE_CELLS * 64 + 32) as i32, (y % TILE_CELLS * 64 + 32) as i32);
                    *expected.entry(cell).or_default() += 1;
                }
            }
            if answer.kind != TileKind::Density {
                continue;
            }
            let count = |f: &crate::mvt::tests::Decoded| match f.get("count") {
                Some(OwnedValue::Int(count)) => (f.paths[0][0], *count),
                other => panic!("{other:?}"),
            };
            let found: HashMap<_, _> = decode(&answer.bytes).2.iter().map(count).collect();
            assert_eq!(found, expected, "{filter:?} {z}/{row}/{column}");
        }
    }
}

#[test]
fn few_events_among_many_are_drawn_however_many_were_tested() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let mut events = crowd(80_000);
    events.iter_mut().enumerate().for_each(|(i, e)| {
        e.s = None;
        e.spot = Spot::Point(5.0 + (i % 283) as f64 * 1e-5, 5.0 + (i / 283) as f64 * 1e-5);
        e.b = Some(i % 1_000 == 0);
    });
    world.apply(&Op::Write(events));
    let (column, row) = mercator_cell(5.0, 5.0, 10).unwrap();
    let answer = ask(&world, &Filter::Flag(true), 10, row, column);
    assert_eq!((answer.kind, answer.events), (TileKind::Events, 80));
    assert_eq!(ask(&world, &Filter::Flag(false), 10, row, column).kind, TileKind::Density);
    assert_eq!(ask(&world, &Filter::All, 10, row, column).kind, TileKind::Density);
}

#[test]
fn few_events_with_long_properties_do_not_pass_the_bound() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let mut events = crowd(4_000);
    // All texts differ, so they cannot share their place in the tile.
    events.iter_mut().enumerate().for_each(|(i, e)| e.s = Some(format!("{i} {}", "long ".repeat(60))));
    world.apply(&Op::Write(events));
    let answer = ask(&world, &Filter::All, 0, 0, 0);
    assert_eq!(answer.kind, TileKind::Density);
    assert!(answer.bytes.len() <= TILE_BYTES_MAX);
    assert_eq!(answer.events, 4_000);
}

#[test]
fn few_events_are_counted_where_the_question_asks_for_counts() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    world.apply(&Op::Write(crowd(40)));
    let drawn = ask(&world, &Filter::All, 0, 0, 0);
    let question = Tile {
        predicate: Predicate::all(),
        z: 0,
        row: 0,
        column: 0,
        layer: "events".to_owned(),
        fields: None,
        density: true,
        average: None,
    };
    let counted = tile(&world.collection.snapshot(), &question, &world.control()).unwrap();
    assert_eq!((drawn.kind, counted.kind), (TileKind::Events, TileKind::Density));
    assert_eq!((drawn.events, counted.events), (40, 40));
}

#[test]
fn tiles_that_do_not_exist_are_refused() {
    let world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    for (z, row, column) in [(0u8, 1u32, 0u32), (3, 0, 8), (25, 0, 0)] {
        let question = Tile {
            predicate: Predicate::all(),
            z,
            row,
            column,
            layer: "events".to_owned(),
            fields: None,
            density: false,
            average: None,
        };
        assert!(tile(&world.collection.snapshot(), &question, &world.control()).is_err());
    }
    assert_eq!(ask(&world, &Filter::All, 3, 7, 7).kind, TileKind::Empty);
}
