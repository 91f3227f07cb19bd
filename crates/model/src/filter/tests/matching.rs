//! Cases with a known result.

use super::events::{DAY, Event, Kind, NEW_YEAR, batch, plain, schema};
use crate::filter::{FieldRange, Predicate, Region, Relation, distances_m, parse_text};
use crate::sphere::EARTH_RADIUS_M;
use crate::{Bounds, Interval};
use geo_types::{Geometry, Point, polygon};

fn at(id: &str, lon: f64, lat: f64) -> Event {
    Event { geometry: Some(Point::new(lon, lat).into()), ..plain(id) }
}

fn shape(id: &str, geometry: impl Into<Geometry<f64>>) -> Event {
    Event { geometry: Some(geometry.into()), ..plain(id) }
}

fn ids(predicate: &Predicate, kind: Kind, events: &[Event]) -> Vec<String> {
    predicate.evaluate(&batch(kind, events)).set_indices().map(|i| events[i].id.clone()).collect()
}

fn filter(text: &str, kind: Kind) -> Predicate {
    Predicate::bind(&parse_text(text).unwrap(), &schema(kind)).unwrap_or_else(|e| panic!("{text}: {e}"))
}

struct Node(Bounds);

impl Region for Node {
    fn bounds(&self) -> Bounds {
        self.0
    }

    fn field_range(&self, _: usize) -> Option<FieldRange> {
        None
    }
}

fn node(west: f64, south: f64, east: f64, north: f64) -> Node {
    Node(Bounds { west, south, east, north, start: NEW_YEAR, end: NEW_YEAR + DAY })
}

#[test]
fn boxes_hold_their_edges_and_cross_the_antimeridian() {
    let events = [at("in", 5.0, 5.0), at("edge", 10.0, 0.0), at("out", 10.1, 5.0), plain("nowhere")];
    assert_eq!(ids(&Predicate::bbox(0.0, 0.0, 10.0, 10.0), Kind::Points, &events), ["in", "edge"]);
    assert_eq!(ids(&Predicate::bbox(0.0, 0.0, 10.0, 10.0).not(), Kind::Points, &events), ["out"]);

    let events = [at("west", -179.0, 0.0), at("east", 179.0, 0.0), at("greenwich", 0.0, 0.0)];
    assert_eq!(ids(&Predicate::bbox(170.0, -5.0, -170.0, 5.0), Kind::Points, &events), ["west", "east"]);
    assert_eq!(
        ids(&filter("S_INTERSECTS(geometry, BBOX(170, -5, -170, 5))", Kind::Points), Kind::Points, &events),
        ["west", "east"]
    );
    // Without height it is two lines; a half without width is part of the boundary.
    let flat = "BBOX(170, 0, -170, 0)";
    for op in ["S_INTERSECTS", "S_WITHIN"] {
        assert_eq!(
            ids(&filter(&format!("{op}(geometry, {flat})"), Kind::Points), Kind::Points, &events),
            ["west", "east"]
        );
    }
    let events = [at("west", -179.0, 0.0), at("seam", 180.0, 0.0), at("east", 179.0, 0.0)];
    for (op, found) in [("S_INTERSECTS", &["west", "seam"][..]), ("S_WITHIN", &["west"]), ("S_TOUCHES", &[])] {
        let within = filter(&format!("{op}(geometry, BBOX(180, -5, -170, 5))"), Kind::Points);
        assert_eq!(ids(&within, Kind::Points, &events), found, "{op}");
    }
}

/// Longitudes are compared as written; a box that crosses the antimeridian contains it under both of its names.
#[test]
fn the_antimeridian_has_two_names() {
    let events = [at("minus", -180.0, 0.0), at("plus", 180.0, 0.0)];
    assert_eq!(ids(&Predicate::bbox(170.0, -5.0, 180.0, 5.0), Kind::Points, &events), ["plus"]);
    assert_eq!(ids(&Predicate::bbox(-180.0, -5.0, -170.0, 5.0), Kind::Points, &events), ["minus"]);
    assert_eq!(ids(&Predicate::bbox(175.0, -5.0, -175.0, 5.0), Kind::Points, &events), ["minus", "plus"]);
    assert_eq!(ids(&Predicate::bbox(180.0, -5.0, -180.0, 5.0), Kind::Points, &events), ["minus", "plus"]);
    assert_eq!(ids(&Predicate::bbox(-180.0, -90.0, 180.0, 90.0), Kind::Points, &events), ["minus", "plus"]);
    // Distances make no such distinction.
    assert_eq!(ids(&Predicate::near(180.0, 0.0, 1.0), Kind::Points, &events), ["minus", "plus"]);
}

#[test]
fn boxes_meet_shapes_and_not_only_their_boxes() {
    // The lower left triangle of a square, a ring around a hole, and a line past the corner.
    let triangle = polygon![(x: 0.0, y: 0.0), (x: 10.0, y: 0.0), (x: 0.0, y: 10.0), (x: 0.0, y: 0.0)];
    let ring = polygon!(
        exterior: [(x: 20.0, y: 0.0), (x: 30.0, y: 0.0), (x: 30.0, y: 10.0), (x: 20.0, y: 10.0), (x: 20.0, y: 0.0)],
        interiors: [[(x: 22.0, y: 2.0), (x: 28.0, y: 2.0), (x: 28.0, y: 8.0), (x: 22.0, y: 8.0), (x: 22.0, y: 2.0)]],
    );
    let events = [shape("triangle", triangle), shape("ring", ring)];
    let found = |w, s, e, n| ids(&Predicate::bbox(w, s, e, n), Kind::Shapes, &events);
    assert!(found(6.0, 6.0, 9.0, 9.0).is_empty());
    assert_eq!(found(5.0, 5.0, 9.0, 9.0), ["triangle"]);
    assert_eq!(found(1.0, 1.0, 2.0, 2.0), ["triangle"]);
    assert!(found(24.0, 4.0, 26.0, 6.0).is_empty());
    assert_eq!(found(24.0, 4.0, 28.0, 6.0), ["ring"]);
    assert_eq!(found(-1.0, -1.0, 40.0, 40.0), ["triangle", "ring"]);
}

#[test]
fn near_is_over_the_globe() {
    let degree = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;
    let events =
        [at("one", 1.0, 0.0), at("north", 0.0, 1.0), at("far", 3.0, 0.0), at("across", 179.5, 89.5), plain("nowhere")];
    assert_eq!(ids(&Predicate::near(0.0, 0.0, degree * 1.000001), Kind::Points, &events), ["one", "north"]);
    assert!(ids(&Predicate::near(0.0, 0.0, degree * 0.999999), Kind::Points, &events).is_empty());
    assert_eq!(ids(&Predicate::near(-0.5, 89.5, degree * 1.01), Kind::Points, &events), ["across"]);
    assert_eq!(ids(&Predicate::near(0.0, 0.0, 1e9), Kind::Points, &events).len(), 4);
    for radius in [-1.0, f64::NAN] {
        assert!(ids(&Predicate::near(1.0, 0.0, radius), Kind::Points, &events).is_empty());
    }
    assert_eq!(ids(&Predicate::near(1.0, 0.0, 0.0), Kind::Points, &events), ["one"]);
    let distances = distances_m(&batch(Kind::Points, &events), 0.0, 0.0);
    assert!((distances[0] - degree).abs() < 1e-6 && distances[4] == f64::INFINITY);
}

#[test]
fn events_without_a_place_match_no_spatial_question_and_not_its_contrary() {
    let events = [plain("nowhere"), at("here", 1.0, 1.0)];
    for text in ["S_INTERSECTS(geometry, BBOX(0, 0, 2, 2))", "NOT S_DISJOINT(geometry, BBOX(0, 0, 2, 2))"] {
        assert_eq!(ids(&filter(text, Kind::Points), Kind::Points, &events), ["here"]);
    }
    assert!(ids(&filter("S_DISJOINT(geometry, BBOX(0, 0, 2, 2))", Kind::Points), Kind::Points, &events).is_empty());
    assert_eq!(ids(&filter("geometry IS NULL", Kind::Points), Kind::Points, &events), ["nowhere"]);
    let nowhere = Node(Bounds { start: NEW_YEAR, end: NEW_YEAR, ..Bounds::EMPTY });
    for predicate in [Predicate::bbox(0.0, 0.0, 2.0, 2.0), Predicate::near(0.0, 0.0, 1e9)] {
        assert_eq!(predicate.relation(&nowhere), Relation::None);
        assert_eq!(predicate.not().relation(&nowhere), Relation::None);
    }
    assert_eq!(filter("geometry IS NULL", Kind::Points).relation(&nowhere), Relation::All);
    assert_eq!(Predicate::interval(Interval::parse("2026-01-01").unwrap()).relation(&nowhere), Relation::All);
}

#[test]
fn nodes_are_taken_or_left_whole() {
    let square = "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))";
    let polygon = filter(&format!("S_INTERSECTS(geometry, {square})"), Kind::Points);
    let hole = filter(
        "S_INTERSECTS(geometry, POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 8 2, 8 8, 2 8, 2 2)))",
        Kind::Points,
    );
    let bbox = Predicate::bbox(0.0, 0.0, 10.0, 10.0);
    let near = Predicate::near(5.0, 5.0, 500_000.0);
    for (predicate, region, relation) in [
        (&polygon, node(1.0, 1.0, 2.0, 2.0), Relation::All),
        (&polygon, node(0.0, 0.0, 10.0, 10.0), Relation::All),
        (&polygon, node(9.0, 9.0, 11.0, 11.0), Relation::Some),
        (&polygon, node(11.0, 0.0, 12.0, 1.0), Relation::None),
        (&hole, node(3.0, 3.0, 7.0, 7.0), Relation::None),
        (&hole, node(0.5, 0.5, 1.5, 1.5), Relation::All),
        (&hole, node(2.0, 2.0, 3.0, 3.0), Relation::Some),
        (&bbox, node(0.0, 0.0, 10.0, 10.0), Relation::All),
        (&bbox, node(10.0, 10.0, 11.0, 11.0), Relation::Some),
        (&bbox, node(-5.0, -5.0, -0.1, 5.0), Relation::None),
        (&near, node(4.0, 4.0, 6.0, 6.0), Relation::All),
        (&near, node(4.0, 4.0, 10.0, 6.0), Relation::Some),
        (&near, node(10.0, 10.0, 11.0, 11.0), Relation::None),
    ] {
        assert_eq!(predicate.relation(&region), relation, "{predicate:?} of {:?}", region.0);
        let contrary = match relation {
            Relation::All => Relation::None,
            Relation::None => Relation::All,
            Relation::Some => Relation::Some,
        };
        assert_eq!(predicate.clone().not().relation(&region), contrary, "NOT {predicate:?} of {:?}", region.0);
    }
}

#[test]
fn time_prunes_nodes() {
    let region = node(0.0, 0.0, 1.0, 1.0);
    for (text, relation) in [
        ("seen >= DATE('2026-01-01')", Relation::All),
        ("seen > DATE('2026-01-01')", Relation::Some),
        ("seen < DATE('2026-01-01')", Relation::None),
        ("seen = DATE('2027-01-01')", Relation::None),
        ("T_DURING(seen, INTERVAL('2025-01-01', '2027-01-01'))", Relation::All),
        ("T_AFTER(seen, INTERVAL('2025-01-01', '2025-12-31'))", Relation::All),
        ("NOT T_AFTER(seen, INTERVAL('2025-01-01', '2025-12-31'))", Relation::None),
        ("from > DATE('2030-01-01')", Relation::Some),
        ("INTERVAL(from, to) IS NULL", Relation::Some),
        ("INTERVAL(from, '2026-01-01') IS NULL", Relation::None),
    ] {
        assert_eq!(filter(text, Kind::Points).relation(&region), relation, "{text}");
    }
    let during = "T_INTERSECTS(INTERVAL(from, to), INTERVAL('2025-01-01', '2027-01-01'))";
    assert_eq!(filter(during, Kind::Shapes).relation(&region), Relation::All);
    assert_eq!(filter(during, Kind::Points).relation(&region), Relation::Some);
}

#[test]
fn a_collection_without_time_matches_every_time() {
    let events = [plain("one")];
    let year = Predicate::interval(Interval::parse("2020-01-01/2020-12-31").unwrap());
    assert_eq!(ids(&year, Kind::Bare, &events), ["one"]);
    assert_ne!(year.relation(&Node(batch(Kind::Bare, &events).bounds(0))), Relation::None);
}

#[test]
fn days_and_open_ends() {
    let noon = Event { seen: Some(NEW_YEAR + DAY / 2), from: Some(NEW_YEAR), to: None, ..plain("noon") };
    for (text, expected) in [
        ("seen = DATE('2026-01-01')", true),
        ("seen = '2026-01-01'", true),
        ("seen <= DATE('2026-01-01')", true),
        ("seen > DATE('2026-01-01')", false),
        ("seen BETWEEN DATE('2025-12-31') AND DATE('2026-01-01')", true),
        ("seen > '2026-01-01T11:59:59.999999Z'", true),
        ("T_EQUALS(seen, DATE('2026-01-01'))", true),
        ("T_AFTER(INTERVAL(from, to), DATE('2025-12-31'))", true),
        ("T_CONTAINS(INTERVAL(from, to), DATE('2030-01-01'))", true),
        ("T_EQUALS(INTERVAL(from, to), INTERVAL('2026-01-01', '..'))", true),
        ("to > DATE('1999-01-01')", false),
        ("NOT to > DATE('1999-01-01')", false),
    ] {
        assert_eq!(
            !ids(&filter(text, Kind::Shapes), Kind::Shapes, std::slice::from_ref(&noon)).is_empty(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn an_interval_without_both_ends_is_no_time() {
    let half = Event { from: Some(NEW_YEAR), ..plain("half") };
    let events = [half, plain("none")];
    let always = Predicate::interval(Interval { start: NEW_YEAR - DAY, end: NEW_YEAR + DAY });
    let found = |predicate: &Predicate| ids(predicate, Kind::Shapes, &events);
    assert_eq!(found(&always), ["half"]);
    assert!(found(&always.clone().not()).is_empty());
    for (text, expected) in [
        ("T_INTERSECTS(INTERVAL(from, to), INTERVAL('1900-01-01', '2100-01-01'))", vec!["half"]),
        ("NOT T_DISJOINT(INTERVAL(from, to), INTERVAL('1900-01-01', '2100-01-01'))", vec!["half"]),
        ("T_DISJOINT(INTERVAL(from, to), INTERVAL('1900-01-01', '1901-01-01'))", vec!["half"]),
        ("T_CONTAINS(INTERVAL(from, '..'), DATE('2030-01-01'))", vec!["half"]),
        ("T_CONTAINS(INTERVAL('..', to), DATE('2030-01-01'))", vec![]),
        ("T_CONTAINS(INTERVAL(to, '2031-01-01'), DATE('2030-01-01'))", vec!["half", "none"]),
        ("T_CONTAINS(INTERVAL('..', '..'), DATE('2030-01-01'))", vec!["half", "none"]),
        ("INTERVAL(from, to) IS NULL", vec!["none"]),
        ("INTERVAL('..', to) IS NULL", vec!["half", "none"]),
    ] {
        assert_eq!(found(&filter(text, Kind::Shapes)), expected, "{text}");
    }
    let timeless = Node(Bounds { start: i64::MIN, end: i64::MAX, ..Bounds::EMPTY });
    assert_eq!(always.relation(&timeless), Relation::Some);
}

#[test]
fn booleans_are_ordered_with_false_first() {
    let event = |id: &str, flag, flag2| Event { flag, flag2, ..plain(id) };
    let events = [
        event("ff", Some(false), Some(false)),
        event("ft", Some(false), Some(true)),
        event("tf", Some(true), Some(false)),
        event("tt", Some(true), Some(true)),
        event("n", None, Some(true)),
    ];
    for (text, expected) in [
        ("flag < TRUE", vec!["ff", "ft"]),
        ("flag <= TRUE", vec!["ff", "ft", "tf", "tt"]),
        ("flag > FALSE", vec!["tf", "tt"]),
        ("FALSE < flag", vec!["tf", "tt"]),
        ("flag < FALSE", vec![]),
        ("NOT flag < FALSE", vec!["ff", "ft", "tf", "tt"]),
        ("flag BETWEEN FALSE AND TRUE", vec!["ff", "ft", "tf", "tt"]),
        ("flag NOT BETWEEN TRUE AND TRUE", vec!["ff", "ft"]),
        ("flag < flag2", vec!["ft"]),
        ("flag <> flag2", vec!["ft", "tf"]),
        ("flag >= flag2", vec!["ff", "tf", "tt"]),
        ("flag IN (TRUE)", vec!["tf", "tt"]),
    ] {
        assert_eq!(ids(&filter(text, Kind::Bare), Kind::Bare, &events), expected, "{text}");
    }
}

/// Generated ids are not a column: they derive from the sequence numbers that a batch carries.
#[test]
fn made_ids_are_texts_like_given_ones() {
    let made = std::sync::Arc::new(crate::Schema { id: crate::IdRole::Made, ..crate::Schema::default() });
    let column = crate::Batch::new(made.clone(), std::sync::Arc::new(crate::Layout::of(&made)), 3, vec![]).unwrap();
    let seqs: Vec<crate::Seq> = (0..3).map(|n| crate::Seq::new(7 + n, 1)).collect();
    let batch = column.with_seqs(seqs.iter().map(|seq| seq.0).collect());
    let id = |n: usize| seqs[n].to_id();
    for (text, expected, by_id) in [
        (format!("id = '{}'", id(1)), vec![1], true),
        (format!("id IN ('{}', '{}', 'no')", id(2), id(0)), vec![0, 2], true),
        (format!("id > '{}'", id(0)), vec![1, 2], false),
        (format!("NOT id = '{}'", id(1)), vec![0, 2], false),
        (format!("id LIKE '%{}'", &id(2)[7..]), vec![2], false),
        ("CASEI(id) = CASEI('x')".to_owned(), vec![], false),
    ] {
        let predicate = Predicate::bind(&parse_text(&text).unwrap(), &made).unwrap();
        assert!(predicate.reads_id(), "{text}");
        assert_eq!(predicate.evaluate(&batch).set_indices().collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(
            predicate.evaluate(&batch.slice(1, 2)).count_set_bits(),
            expected.iter().filter(|i| **i > 0).count()
        );
        assert_eq!(predicate.ids().is_some(), by_id, "{text}");
    }
}

#[test]
fn ids_are_found_where_only_they_can_match() {
    let of = |text: &str| filter(text, Kind::Points).ids();
    assert_eq!(of("id = 'a'"), Some(vec!["a".into()]));
    assert_eq!(of("'a' = id AND n > 5"), Some(vec!["a".into()]));
    assert_eq!(of("id IN ('b', 'a') OR id = 'c'"), Some(vec!["a".into(), "b".into(), "c".into()]));
    assert_eq!(of("id = 'a' OR n = 5"), None);
    assert_eq!(of("NOT id = 'a'"), None);
    assert_eq!(of("CASEI(id) = CASEI('a')"), None);
    assert_eq!(of("name = 'a'"), None);
    assert_eq!(of("FALSE"), Some(vec![]));
    assert!(Predicate::and(vec![]).is_all() && Predicate::or(vec![]).is_none() && filter("TRUE", Kind::Bare).is_all());
}

#[test]
fn a_filter_that_is_always_false_keeps_its_time() {
    let day = Interval { start: NEW_YEAR, end: NEW_YEAR + DAY - 1 };
    let time = |predicate: &Predicate| {
        let Bounds { start, end, .. } = predicate.reach();
        Interval { start, end }
    };
    let within = "seen >= TIMESTAMP('2026-01-01T00:00:00Z') AND seen < TIMESTAMP('2026-01-02T00:00:00Z')";
    for never in ["FALSE", "1 = 2", "NOT TRUE", "FALSE AND n > 5", "FALSE OR 1 = 2"] {
        let asked = Predicate::and(vec![Predicate::interval(day), filter(never, Kind::Points)]);
        let as_text = filter(&format!("n > 5 AND ({never}) AND ({within})"), Kind::Points);
        for none in [asked, as_text] {
            assert_eq!((time(&none), none.ids(), none.is_none()), (day, Some(vec![]), true), "{never}");
            assert!(ids(&none, Kind::Points, &[Event { seen: Some(NEW_YEAR), ..plain("a") }]).is_empty());
            assert_eq!(none.relation(&node(0.0, 0.0, 1.0, 1.0)), Relation::None);
            // It is no part of the time of an alternative, and its negation is always true.
            let later = Predicate::interval(Interval { start: day.end + 1, end: i64::MAX });
            assert_eq!(time(&Predicate::or(vec![none.clone(), later.clone()])), time(&later));
            assert!(none.not().is_all());
        }
        assert_eq!(time(&filter(never, Kind::Points)), Interval::ALWAYS);
    }
}

#[test]
fn a_large_polygon_is_the_same_as_its_rings() {
    // A star with many vertices: bands of latitude against the plain even-odd rule.
    use crate::planar::{Side, polygon_side};
    let ring: Vec<(f64, f64)> = (0..=2000)
        .map(|i| {
            let angle = f64::from(i % 2000) / 2000.0 * std::f64::consts::TAU;
            let radius = if i % 2 == 0 { 40.0 } else { 25.0 };
            (radius * angle.cos(), radius * angle.sin())
        })
        .collect();
    let star = geo_types::Polygon::new(ring.into(), vec![]);
    let shape = crate::filter::shape::Shape::new(star.clone().into()).unwrap();
    let mut inside = 0;
    for i in 0..5000u32 {
        let p = geo_types::Coord { x: f64::from(i % 71) * 1.2 - 42.0, y: f64::from(i / 71) * 1.2 - 42.0 };
        assert_eq!(shape.side(p), polygon_side(&star, p), "{p:?}");
        inside += usize::from(shape.side(p) == Side::Inside);
    }
    assert!(inside > 500);
    for vertex in &star.exterior().0 {
        assert_eq!(shape.side(*vertex), Side::Boundary);
    }
}

#[test]
fn predicates_are_shared_between_threads() {
    fn shared<T: Clone + Send + Sync>(_: &T) {}
    shared(&filter("S_WITHIN(geometry, BBOX(0, 0, 1, 1)) AND name IN ('a', 'b')", Kind::Points));
}
