//! Distances and their bounds, against dense sampling.

use crate::Bounds;
use crate::filter::{box_around, distance_to_box_m, distance_to_geometry_m, farthest_in_box_m};
use crate::sphere::{EARTH_RADIUS_M, distance_m};
use geo_types::{Coord, Geometry, LineString, Polygon};
use proptest::prelude::*;

fn longitude() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -180.0f64..180.0, 1 => Just(180.0), 1 => Just(-180.0), 1 => Just(0.0)]
}

fn latitude() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -90.0f64..90.0, 1 => Just(90.0), 1 => Just(-90.0), 1 => Just(0.0), 1 => 88.0f64..90.0]
}

fn bounds() -> impl Strategy<Value = Bounds> {
    (longitude(), longitude(), latitude(), latitude(), 0.0f64..1.0).prop_map(|(a, b, c, d, size)| {
        // Boxes of all sizes: the second corner is pulled towards the first.
        let (b, d) = (a + (b - a) * size * size, c + (d - c) * size * size);
        Bounds { west: a.min(b), east: a.max(b), south: c.min(d), north: c.max(d), start: 0, end: 0 }
    })
}

/// The shortest distance to points along an edge, by dense sampling and refinement around the best.
fn sampled(lon: f64, lat: f64, a: Coord<f64>, b: Coord<f64>) -> f64 {
    let to = |t: f64| distance_m(lon, lat, a.x + t * (b.x - a.x), a.y + t * (b.y - a.y));
    let mut best = (0.0, f64::INFINITY);
    let (mut from, mut until) = (0.0f64, 1.0f64);
    for _ in 0..8 {
        const STEPS: u32 = 400;
        let step = (until - from) / f64::from(STEPS);
        for i in 0..=STEPS {
            let t = (from + step * f64::from(i)).clamp(0.0, 1.0);
            if to(t) < best.1 {
                best = (t, to(t));
            }
        }
        (from, until) = ((best.0 - 2.0 * step).max(0.0), (best.0 + 2.0 * step).min(1.0));
    }
    best.1
}

#[test]
fn the_farthest_place_of_a_tiny_box_is_not_lost_to_rounding_at_the_antipode() {
    let at_pole = Bounds { west: 0.0, south: 89.99999968078343, east: 0.0, north: 90.0, start: 0, end: 0 };
    assert!(farthest_in_box_m(0.0, 90.0, &at_pole) >= distance_m(0.0, 90.0, 0.0, at_pole.south));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_of_the_distance_to_a_box_hold(
        lon in longitude(), lat in latitude(), b in bounds(), x in 0.0f64..=1.0, y in 0.0f64..=1.0
    ) {
        let inside = |x: f64, y: f64| {
            let x = if x < 0.05 { 0.0 } else if x > 0.95 { 1.0 } else { x };
            let y = if y < 0.05 { 0.0 } else if y > 0.95 { 1.0 } else { y };
            ((b.west + x * (b.east - b.west)).clamp(b.west, b.east), (b.south + y * (b.north - b.south)).clamp(b.south, b.north))
        };
        let (px, py) = inside(x, y);
        let distance = distance_m(lon, lat, px, py);
        prop_assert!(distance_to_box_m(lon, lat, &b) <= distance);
        prop_assert!(farthest_in_box_m(lon, lat, &b) >= distance);
    }

    #[test]
    fn the_box_around_a_place_holds_all_within_the_distance(
        lon in longitude(), lat in latitude(), other_lon in longitude(), other_lat in latitude(), scale in 0.0f64..1.0
    ) {
        // Near and far: the other place is pulled towards the first.
        let other_lon = (lon + (other_lon - lon) * scale).clamp(-180.0, 180.0);
        let other_lat = (lat + (other_lat - lat) * scale).clamp(-90.0, 90.0);
        let [west, south, east, north] = box_around(lon, lat, distance_m(lon, lat, other_lon, other_lat));
        prop_assert!(west <= other_lon && other_lon <= east && south <= other_lat && other_lat <= north);
    }

    #[test]
    fn bounds_of_the_distance_to_a_box_are_tight(lon in longitude(), lat in latitude(), b in bounds()) {
        let corners = [(b.west, b.south), (b.east, b.south), (b.east, b.north), (b.west, b.north)];
        let edges = (0..4).map(|i| {
            let (a, c) = (corners[i], corners[(i + 1) % 4]);
            sampled(lon, lat, Coord { x: a.0, y: a.1 }, Coord { x: c.0, y: c.1 })
        });
        let within = [lon - 360.0, lon, lon + 360.0].iter().any(|l| b.west <= *l && *l <= b.east)
            && b.south <= lat && lat <= b.north;
        let nearest = if within { 0.0 } else { edges.fold(f64::INFINITY, f64::min) };
        let bound = distance_to_box_m(lon, lat, &b);
        prop_assert!(bound <= nearest && nearest - bound < 1.0 + 1e-6 * nearest, "bound {bound}, nearest {nearest}");
    }

    #[test]
    fn the_distance_to_an_edge_is_that_of_its_nearest_point(
        lon in longitude(), lat in latitude(), b in bounds(), falls in any::<bool>()
    ) {
        let (south, north) = if falls { (b.north, b.south) } else { (b.south, b.north) };
        let (a, c) = (Coord { x: b.west, y: south }, Coord { x: b.east, y: north });
        let measured = distance_to_geometry_m(lon, lat, &Geometry::LineString(LineString(vec![a, c])));
        let expected = sampled(lon, lat, a, c);
        // Sampling may end in the wrong one of two similar minima, which is never the lower one.
        prop_assert!(measured <= expected + 0.002 + 1e-7 * expected, "measured {measured}, sampled {expected}");
        prop_assert!(measured >= distance_to_box_m(lon, lat, &b), "nearer than the box");
        prop_assert!(measured <= farthest_in_box_m(lon, lat, &b), "farther than the box");
        // No point of the edge is nearer than the measured distance.
        prop_assert!(measured >= expected - 0.002 - 1e-7 * expected, "measured {measured}, sampled {expected}");
    }
}

#[test]
fn known_distances_to_boxes() {
    let degree = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;
    let b = |west, south, east, north| Bounds { west, south, east, north, start: 0, end: 0 };
    let close = |a: f64, b: f64| (a - b).abs() < 0.1;
    // Inside; due south; over the pole; over the antimeridian; at the antipode.
    assert_eq!(distance_to_box_m(5.0, 5.0, &b(0.0, 0.0, 10.0, 10.0)), 0.0);
    assert!(close(distance_to_box_m(5.0, -5.0, &b(0.0, 0.0, 10.0, 10.0)), 5.0 * degree));
    assert!(close(distance_to_box_m(180.0, 85.0, &b(-1.0, 80.0, 1.0, 88.0)), distance_m(180.0, 85.0, 1.0, 88.0)));
    assert!(close(distance_to_box_m(179.0, 0.0, &b(-179.0, -1.0, -170.0, 1.0)), 2.0 * degree));
    assert_eq!(distance_to_box_m(180.0, 0.0, &b(-180.0, -1.0, -170.0, 1.0)), 0.0);
    assert!((farthest_in_box_m(0.0, 0.0, &b(170.0, -10.0, 180.0, 10.0)) - 180.0 * degree).abs() < 2.0);
    // A side that bulges north of the straight line: the nearest point of the meridian is not at its ends.
    let side = distance_to_box_m(0.0, 60.0, &b(60.0, 0.0, 61.0, 89.0));
    assert!(side < distance_m(0.0, 60.0, 60.0, 60.0) - 1000.0);
    assert_eq!(distance_to_box_m(0.0, 0.0, &Bounds::EMPTY), f64::INFINITY);
    assert_eq!(farthest_in_box_m(0.0, 0.0, &Bounds::EMPTY), f64::NEG_INFINITY);
}

#[test]
fn a_place_inside_a_polygon_is_at_no_distance() {
    let ring = |a: f64, b: f64| LineString::from(vec![(a, a), (b, a), (b, b), (a, b), (a, a)]);
    let polygon = Geometry::Polygon(Polygon::new(ring(0.0, 10.0), vec![ring(4.0, 6.0)]));
    let degree = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;
    assert_eq!(distance_to_geometry_m(1.0, 1.0, &polygon), 0.0);
    assert_eq!(distance_to_geometry_m(0.0, 5.0, &polygon), 0.0);
    // In the hole, nearest to a side. West of it on the equator. Beyond the parallel of its north side, which is
    // not a great circle.
    assert!((distance_to_geometry_m(4.5, 5.0, &polygon) - 0.5 * degree * 5.0f64.to_radians().cos()).abs() < 20.0);
    assert!((distance_to_geometry_m(-1.0, 0.0, &polygon) - degree).abs() < 0.01);
    assert!((distance_to_geometry_m(5.0, 11.0, &polygon) - degree).abs() < 0.01);
}
