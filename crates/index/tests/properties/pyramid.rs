//! The count pyramid agrees with a scan.

use crate::events::{Clock, Kind, schema};
use meridian_index::{CountPyramid, PyramidBuilder, TileCells, mercator_cell};
use meridian_model::{BatchBuilder, GeometryType, Interval, builder::Value};
use proptest::prelude::*;

const POINTS: Kind = Kind { geometry: Some(GeometryType::Point), time: Clock::Instant };
const WEEK: i64 = 7 * 86_400_000_000;

type Point = (f64, f64, i64);

fn points() -> impl Strategy<Value = Vec<Point>> {
    let lon =
        prop_oneof![3 => -180.0..=180.0f64, 2 => 10.0..11.0f64, 1 => prop_oneof![Just(-180.0), Just(180.0), Just(0.0)]];
    let lat =
        prop_oneof![3 => -90.0..=90.0f64, 2 => 50.0..51.0f64, 1 => prop_oneof![Just(-90.0), Just(85.06), Just(0.0)]];
    let time = prop_oneof![-3 * WEEK..3 * WEEK, (-3..3i64).prop_map(|week| week * WEEK)];
    prop::collection::vec((lon, lat, time), 0..400)
}

fn intervals() -> impl Strategy<Value = Interval> {
    let start = prop_oneof![Just(i64::MIN), -4 * WEEK..4 * WEEK, (-4..4i64).prop_map(|week| week * WEEK)];
    let length = prop_oneof![Just(i64::MAX), 0..4 * WEEK, (1..4i64).prop_map(|weeks| weeks * WEEK - 1)];
    (start, length).prop_map(|(start, length)| match (start, length) {
        (i64::MIN, i64::MAX) => Interval::ALWAYS,
        (start, i64::MAX) => Interval { start, end: i64::MAX },
        (i64::MIN, length) => Interval { start: i64::MIN, end: length - WEEK },
        (start, length) => Interval { start, end: start + length },
    })
}

/// An existing tile, and how finely it is divided.
fn tiles() -> impl Strategy<Value = TileCells> {
    (0..8u8, 0..6u8, any::<u32>(), any::<u32>(), any::<bool>()).prop_map(|(z, bits, x, y, near)| {
        let side = 1u32 << z;
        // Half of them over the cluster of points.
        let (x, y) = if near { mercator_cell(10.5, 50.5, z.into()).unwrap() } else { (x % side, y % side) };
        TileCells { z, x, y, bits }
    })
}

fn pyramid(points: &[Point]) -> CountPyramid {
    let mut builder = PyramidBuilder::new(&schema(POINTS));
    points.iter().for_each(|&(lon, lat, time)| builder.push_point(lon, lat, time));
    builder.finish()
}

fn count(pyramid: &CountPyramid, tile: &TileCells, interval: &Interval) -> Vec<u64> {
    let mut counts = vec![0; tile.len()];
    assert!(pyramid.add_counts(tile, interval, &mut counts));
    counts
}

fn scan(points: &[Point], tile: &TileCells, within: Option<Interval>) -> Vec<u64> {
    let mut counts = vec![0; tile.len()];
    let inside = |time: i64| within.is_some_and(|within| within.start <= time && time <= within.end);
    for &(lon, lat, _) in points.iter().filter(|p| inside(p.2)) {
        let Some((x, y)) = mercator_cell(lon, lat, (tile.z + tile.bits).into()) else { continue };
        if (x >> tile.bits, y >> tile.bits) == (tile.x, tile.y) {
            let mask = (1 << tile.bits) - 1;
            counts[(((y & mask) << tile.bits) + (x & mask)) as usize] += 1;
        }
    }
    counts
}

/// The largest interval of whole weeks within another, found by trial.
fn whole_weeks(interval: &Interval) -> Option<Interval> {
    let start = match interval.start {
        i64::MIN => i64::MIN,
        start => (-20..20).map(|week| week * WEEK).find(|&t| t >= start)?,
    };
    let end = match interval.end {
        i64::MAX => i64::MAX,
        end => (-20..20).map(|week| week * WEEK - 1).rfind(|&t| t <= end)?,
    };
    (start <= end).then_some(Interval { start, end })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_tile_counts_as_a_scan_does(points in points(), interval in intervals(), tile in tiles()) {
        let pyramid = pyramid(&points);
        let inner = pyramid.inner(&interval);
        prop_assert_eq!(inner, whole_weeks(&interval));
        prop_assert_eq!(count(&pyramid, &tile, &interval), scan(&points, &tile, inner));
    }

    #[test]
    fn a_merge_counts_as_the_whole(points in points(), cut in 0..400usize, tile in tiles(), interval in intervals()) {
        let (a, b) = points.split_at(cut.min(points.len()));
        let merged = CountPyramid::merge(&[&pyramid(a), &pyramid(b)]).unwrap();
        prop_assert_eq!(&merged, &pyramid(&points));
        prop_assert_eq!(count(&merged, &tile, &interval), scan(&points, &tile, whole_weeks(&interval)));
    }
}

/// Points that rarely share a cell or a week.
fn scattered(count: usize, weeks: i64) -> Vec<Point> {
    let mut seed = 7u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count)
        .map(|_| (next() * 360.0 - 180.0, next() * 170.0 - 85.0, (next() * (weeks * WEEK) as f64) as i64))
        .collect()
}

#[test]
fn a_pyramid_of_scattered_points_lowers_its_base_level() {
    let points = scattered(60_000, 1);
    let pyramid = pyramid(&points);
    assert!(pyramid.cells() <= 15_000 && (6..12).contains(&pyramid.base_level()), "{}", pyramid.base_level());
    assert_eq!((pyramid.total(), pyramid.bin_width_us()), (60_000, Some(WEEK)));
    for tile in [TileCells { z: 0, x: 0, y: 0, bits: 6 }, TileCells { z: 3, x: 5, y: 2, bits: 3 }] {
        assert_eq!(count(&pyramid, &tile, &Interval::ALWAYS), scan(&points, &tile, Some(Interval::ALWAYS)));
    }
    let fine = TileCells { z: 8, x: 0, y: 0, bits: 8 };
    assert!(!pyramid.add_counts(&fine, &Interval::ALWAYS, &mut vec![0; fine.len()]), "finer than the base");
    let absent = TileCells { z: 1, x: 2, y: 0, bits: 1 };
    assert!(!pyramid.add_counts(&absent, &Interval::ALWAYS, &mut [0; 4]), "no such tile");
    assert!(!pyramid.add_counts(&TileCells { x: 1, ..absent }, &Interval::ALWAYS, &mut [0; 5]), "wrong length");
}

#[test]
fn a_pyramid_of_many_weeks_widens_its_bins() {
    let points = scattered(60_000, 3_000);
    let wide = pyramid(&points);
    let width = wide.bin_width_us().unwrap();
    assert!(wide.cells() <= 15_000 && width > WEEK && width % WEEK == 0, "{width}");
    let tile = TileCells { z: 0, x: 0, y: 0, bits: 4 };
    let interval = Interval { start: 100 * WEEK + 5, end: 2_000 * WEEK };
    let inner = wide.inner(&interval).unwrap();
    assert!(inner.start >= interval.start && inner.end <= interval.end && inner.end - inner.start > 500 * WEEK);
    assert_eq!(count(&wide, &tile, &interval), scan(&points, &tile, Some(inner)));
    // Merged with a fine one, the result has the wider bins and the coarser level.
    let more = scattered(100, 3_000);
    let merged =
        CountPyramid::merge(&[&pyramid(&more), &wide, &CountPyramid::decode(&wide.encode()).unwrap()]).unwrap();
    let all: Vec<Point> = more.iter().chain(&points).chain(&points).copied().collect();
    assert_eq!(merged.total(), 120_100);
    assert_eq!(count(&merged, &tile, &interval), scan(&all, &tile, merged.inner(&interval)));
}

#[test]
fn only_points_are_counted_and_only_instants_have_bins() {
    let batch = |kind| {
        let mut events = BatchBuilder::new(schema(kind));
        for i in 0..10 {
            if i != 3 {
                events.set_point(10.0, 20.0).unwrap();
            }
            events.set(0, Value::Time(i * WEEK)).unwrap();
            events.end_event().unwrap();
        }
        let mut builder = PyramidBuilder::new(&schema(kind));
        builder.push(&events.finish().unwrap());
        builder.finish()
    };
    let instants = batch(POINTS);
    assert_eq!((instants.total(), instants.cells()), (9, 9));
    let intervals = batch(Kind { time: Clock::Interval, ..POINTS });
    assert_eq!((intervals.total(), intervals.cells(), intervals.bin_width_us()), (9, 1, None));
    assert_eq!(intervals.inner(&Interval::ALWAYS), Some(Interval::ALWAYS));
    assert_eq!(intervals.inner(&Interval { start: 0, end: i64::MAX }), None);
    assert_eq!(batch(Kind { geometry: Some(GeometryType::Any), ..POINTS }).total(), 0);
    assert!(CountPyramid::merge(&[&instants, &intervals]).is_err());
    assert!(CountPyramid::merge(&[]).is_err());
}
