//! Long lines in pieces: the same results as without them, for less work.

use super::world::{Kind, Places, Times, World, aggregate_in};
use crate::aggregate::Aggregate;
use crate::function::Function;
use crate::{Items, count, items};
use geo_types::{Geometry, LineString, MultiLineString};
use meridian_model::builder::Value;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{BatchBuilder, Interval, Projection};
use meridian_store::Write;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000_000;

/// A line that wanders from a place, with a given number of vertices.
#[derive(Debug, Clone)]
struct Walk {
    from: (f64, f64),
    steps: Vec<(f64, f64)>,
    start: i64,
    two: bool,
}

impl Walk {
    fn geometry(&self) -> Geometry<f64> {
        let mut at = self.from;
        let mut line = vec![at];
        for (dx, dy) in &self.steps {
            at = ((at.0 + dx).clamp(-180.0, 180.0), (at.1 + dy).clamp(-90.0, 90.0));
            line.push(at);
        }
        if self.two && line.len() >= 4 {
            let second = line.split_off(line.len() / 2);
            return MultiLineString(vec![LineString::from(line), LineString::from(second)]).into();
        }
        LineString::from(line).into()
    }
}

fn walks() -> impl Strategy<Value = Vec<Walk>> {
    let drift = (-1.0..1.0f64, -1.0..1.0f64);
    let steps = (drift, prop::collection::vec((-0.5..0.5f64, -0.5..0.5f64), 1..120))
        .prop_map(|((x, y), steps)| steps.into_iter().map(|(dx, dy)| (dx + x, dy + y)).collect::<Vec<_>>());
    let walk = ((-150.0..150.0f64, -60.0..60.0f64), steps, 0i64..400, any::<bool>())
        .prop_map(|(from, steps, start, two)| Walk { from, steps, start: start * HOUR, two });
    prop::collection::vec(walk, 1..90)
}

fn write(world: &World, walks: &[Walk], first: usize) {
    let mut builder = BatchBuilder::new(world.schema.clone());
    for (i, walk) in walks.iter().enumerate() {
        builder.set_id(format!("w{}", first + i)).unwrap();
        builder.set_geometry(&walk.geometry()).unwrap();
        builder.set(0, Value::Time(walk.start)).unwrap();
        builder.set(1, Value::Time(walk.start + 20 * HOUR)).unwrap();
        builder.set(2, Value::Int(i as i64 % 7)).unwrap();
        builder.end_event().unwrap();
    }
    world.collection.write(Write::new(builder.finish().unwrap())).unwrap();
}

fn world() -> World {
    World::new(Kind { places: Places::Shapes, times: Times::Interval, made_ids: false })
}

/// Ids of all matching events, found by testing every row.
fn scanned(world: &World, predicate: &Predicate) -> Vec<String> {
    let snapshot = world.collection.snapshot();
    let mut found = Vec::new();
    for part in snapshot.parts.iter() {
        let batch = part.read(0..part.rows(), &Projection::all(&snapshot.layout)).unwrap();
        let seen = &predicate.evaluate(&batch) & &part.visible(0..part.rows()).unwrap();
        found.extend(seen.set_indices().map(|row| batch.ids().unwrap().value(row).to_owned()));
    }
    found.sort();
    found
}

fn found(world: &World, predicate: &Predicate) -> (Vec<String>, crate::Stats) {
    let question = Items { predicate: predicate.clone(), ..Items::all(&world.schema) };
    let mut answer = items(&world.collection.snapshot(), &question, &world.control()).unwrap();
    let mut ids = Vec::new();
    for hits in answer.by_ref() {
        let hits = hits.unwrap();
        ids.extend((0..hits.batch.rows()).map(|row| hits.batch.ids().unwrap().value(row).to_owned()));
    }
    ids.sort();
    (ids, answer.stats())
}

/// Ids and shapes of all matching events, as in the result.
fn shapes(world: &World, predicate: &Predicate) -> Vec<(String, Geometry<f64>)> {
    let question = Items { predicate: predicate.clone(), ..Items::all(&world.schema) };
    let mut shapes = Vec::new();
    for hits in items(&world.collection.snapshot(), &question, &world.control()).unwrap() {
        let batch = hits.unwrap().batch;
        let shape = |row| (batch.ids().unwrap().value(row).to_owned(), batch.geometry(row).unwrap());
        shapes.extend((0..batch.rows()).map(shape));
    }
    shapes.sort_by(|(a, _), (b, _)| a.cmp(b));
    shapes
}

fn questions() -> impl Strategy<Value = Vec<String>> {
    let place = || (-170.0..160.0f64, -80.0..70.0f64);
    let bbox = || {
        (place(), 0.1..20.0f64, 0.1..20.0f64)
            .prop_map(|((w, s), x, y)| format!("S_INTERSECTS(geom,BBOX({w},{s},{},{}))", w + x, s + y))
    };
    let triangle =
        || (place(), 0.1..20.0f64).prop_map(|((w, s), d)| format!("(({w} {s},{} {s},{w} {},{w} {s}))", w + d, s + d));
    let leaf = prop_oneof![
        4 => bbox(),
        2 => triangle().prop_map(|t| format!("S_INTERSECTS(geom,POLYGON{t})")),
        1 => triangle().prop_map(|t| format!("S_WITHIN(geom,POLYGON{t})")),
        1 => triangle().prop_map(|t| format!("S_CROSSES(geom,POLYGON{t})")),
        1 => triangle().prop_map(|t| format!("S_DISJOINT(geom,POLYGON{t})")),
        1 => (0i64..7).prop_map(|n| format!("n = {n}")),
    ];
    let any = leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} AND {b})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            1 => inner.prop_map(|a| format!("NOT ({a})")),
        ]
    });
    prop::collection::vec(any, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_in_pieces_are_found_as_if_they_were_whole(
        walks in walks(),
        asked in questions(),
        near in (-170.0..170.0f64, -80.0..80.0f64, 0.0..900_000.0f64),
        during in (0i64..400, 0i64..200),
        cut in any::<prop::sample::Index>(),
        flushes in 0u8..3,
    ) {
        let world = world();
        let cut = cut.index(walks.len());
        write(&world, &walks[..cut.max(1)], 0);
        if flushes > 0 {
            world.collection.flush().unwrap();
        }
        if cut > 0 {
            write(&world, &walks[cut..], cut);
        }
        if flushes > 1 {
            world.collection.flush().unwrap();
            world.collection.maintain().unwrap();
        }
        world.collection.delete(&["w0".to_owned(), "w3".to_owned()]).unwrap();
        let time = Predicate::interval(Interval { start: during.0 * HOUR, end: (during.0 + during.1) * HOUR });
        let mut predicates = vec![Predicate::near(near.0, near.1, near.2)];
        for text in &asked {
            let text = text.replace("geom", &world.schema.geometry_name);
            predicates.push(Predicate::bind(&parse_text(&text).unwrap(), &world.schema).unwrap());
        }
        predicates.extend(predicates.clone().into_iter().map(|p| Predicate::and(vec![time.clone(), p])));
        for predicate in &predicates {
            let expected = scanned(&world, predicate);
            let (given, stats) = found(&world, predicate);
            prop_assert_eq!(&given, &expected, "{:?} {:?}", &asked, stats);
            let snapshot = world.collection.snapshot();
            let (counted, _) = count(&snapshot, predicate, u64::MAX, &world.control()).unwrap();
            prop_assert_eq!(counted, Some(expected.len() as u64));
            let functions = vec![Function::Count, Function::Sum(2)];
            let question = Aggregate { predicate: predicate.clone(), functions, windows: None, by: Vec::new(), empty: false };
            let answer = aggregate_in(2, &snapshot, &question, &world.control()).unwrap();
            prop_assert_eq!(answer.groups[0].count, expected.len() as u64);
        }
    }
}

#[test]
fn a_long_diagonal_line_is_not_looked_at_far_from_it() {
    let world = world();
    let diagonal = |i: usize| Walk {
        from: (-60.0 + i as f64 * 0.01, -40.0),
        steps: vec![(0.001, 0.0008); 100_000],
        start: 0,
        two: false,
    };
    let lines = [diagonal(0), diagonal(1), diagonal(2)];
    write(&world, &lines, 0);
    for _ in 0..2 {
        // In the box of all three, on none of them.
        let (ids, stats) = found(&world, &Predicate::bbox(-50.0, 20.0, -40.0, 30.0));
        assert_eq!((ids.len(), stats.events_tested, stats.blocks_read), (0, 0, 0), "{stats:?}");
        // Touched by many pieces of each, found once.
        let (ids, stats) = found(&world, &Predicate::bbox(-15.0, -10.0, 15.0, 10.0));
        assert_eq!((ids, stats.events_tested), (vec!["w0".to_owned(), "w1".to_owned(), "w2".to_owned()], 3));
        // Returned whole, every vertex once, though many pieces led to it.
        let shapes = shapes(&world, &Predicate::bbox(-15.0, -10.0, 15.0, 10.0));
        assert_eq!(shapes.len(), lines.len());
        for ((id, shape), (number, walk)) in shapes.iter().zip(lines.iter().enumerate()) {
            assert_eq!(*id, format!("w{number}"));
            let (Geometry::LineString(given), Geometry::LineString(written)) = (shape, walk.geometry()) else {
                panic!("{id} is no line");
            };
            assert_eq!(given.0.len(), 100_001, "{id}");
            assert_eq!((given.0.first(), given.0.last()), (written.0.first(), written.0.last()), "{id}");
            assert!(given.0 == written.0, "{id}: a vertex differs");
        }
        world.collection.flush().unwrap();
    }
}

/// Lines of 20 KB each, so that a chunk of them is many pages. Results, whole and in pages, equal those of a scan,
/// and cost what they return.
#[test]
fn large_lines_are_read_where_they_are_wanted() {
    let world = world();
    let line = |i: usize| Walk {
        from: (-170.0 + (i % 40) as f64 * 8.0, -70.0 + (i / 40) as f64 * 8.0),
        steps: (0..1_250).map(|step| ((step as f64).sin() * 0.01, (step as f64).cos() * 0.01)).collect(),
        start: (i % 50) as i64 * HOUR,
        two: false,
    };
    let lines: Vec<Walk> = (0..600).map(line).collect();
    write(&world, &lines, 0);
    world.collection.flush().unwrap();
    world.collection.delete(&["w7".to_owned()]).unwrap();
    let read = || world.collection.stats().bytes_read;
    for (bbox, most) in
        [([-171.0, -71.0, -160.0, -60.0], 5), ([-100.0, -40.0, 20.0, 30.0], 300), ([-180.0, -90.0, 180.0, 90.0], 600)]
    {
        let predicate = Predicate::bbox(bbox[0], bbox[1], bbox[2], bbox[3]);
        let (before, scanned) = (read(), scanned(&world, &predicate));
        assert!(!scanned.is_empty() && scanned.len() <= most);
        let after = read();
        let (given, _) = found(&world, &predicate);
        assert_eq!(given, scanned);
        assert!(read() - after <= after - before, "the cache has them by now");
    }
    let fresh = World::new(world.kind);
    write(&fresh, &lines, 0);
    fresh.collection.flush().unwrap();
    let (given, _) = found(&fresh, &Predicate::bbox(-171.0, -71.0, -160.0, -60.0));
    let (few, whole) = (fresh.collection.stats().bytes_read, 600 * 20_000);
    assert!(!given.is_empty() && few * 4 < whole, "{few} bytes were read for {} lines of 20 KB", given.len());
}
