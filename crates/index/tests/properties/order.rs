//! Keys, sorting and merging.

use crate::events::*;
use meridian_index::{CLASS_NOWHERE, Grid, Key, Merge, sort_order};
use meridian_model::{Bounds, GeometryType, Seq};
use proptest::prelude::*;

const POINTS: Kind = Kind { geometry: Some(GeometryType::Point), time: Clock::Instant };
const SHAPES: Kind = Kind { geometry: Some(GeometryType::Any), time: Clock::Interval };

/// Keys with few distinct values, so that sequence numbers often decide.
fn few_keys() -> impl Strategy<Value = Vec<(u128, u64)>> {
    prop::collection::vec((prop_oneof![0..5u128, any::<u128>()], prop_oneof![0..5u64, any::<u64>()]), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn sorting_is_by_key_then_sequence_then_row(rows in few_keys()) {
        let keys: Vec<Key> = rows.iter().map(|r| Key(r.0)).collect();
        let seqs: Vec<u64> = rows.iter().map(|r| r.1).collect();
        let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
        expected.sort_by_key(|&row| rows[row as usize]);
        prop_assert_eq!(sort_order(&keys, &seqs), expected);
    }

    #[test]
    fn a_merge_of_runs_is_a_sort_of_all(runs in prop::collection::vec(few_keys(), 0..8)) {
        let mut expected: Vec<(Key, Seq, usize)> = Vec::new();
        let mut sorted_runs = Vec::new();
        for (source, mut run) in runs.into_iter().enumerate() {
            run.sort_unstable();
            let run: Vec<(Key, Seq)> = run.into_iter().map(|(key, seq)| (Key(key), Seq(seq))).collect();
            expected.extend(run.iter().map(|&(key, seq)| (key, seq, source)));
            sorted_runs.push(run.into_iter());
        }
        expected.sort();
        let merged: Vec<_> = Merge::new(sorted_runs).map(|m| (m.key, m.seq, m.source)).collect();
        prop_assert_eq!(merged, expected);
    }

    /// Pages and merges rely on it: parts of a collection, sorted and merged, equal the whole sorted.
    #[test]
    fn events_merged_from_parts_stand_as_sorted_together(events in events(), kind in kinds(), cuts in prop::collection::vec(0..2500usize, 0..5)) {
        let whole = batch(kind, &events);
        let keys = Grid::of(whole.schema()).keys(&whole);
        let seqs: Vec<u64> = (0..events.len() as u64).collect();
        let expected: Vec<u64> = sort_order(&keys, &seqs).into_iter().map(u64::from).collect();
        let runs = pieces(events.len(), &cuts).into_iter().map(|rows| {
            let (keys, seqs) = (&keys[rows.clone()], &seqs[rows]);
            sort_order(keys, seqs).into_iter().map(|row| (keys[row as usize], seqs[row as usize])).collect::<Vec<_>>().into_iter()
        });
        prop_assert_eq!(Merge::new(runs).map(|m| m.seq).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn keys_of_a_batch_are_the_keys_of_its_boxes(events in events(), kind in kinds()) {
        let batch = batch(kind, &events);
        let grid = Grid::of(batch.schema());
        for (row, key) in grid.keys(&batch).into_iter().enumerate() {
            let bounds = batch.bounds(row);
            prop_assert_eq!(key, grid.key(&bounds));
            prop_assert_eq!(key, Key::new(key.class(), key.bucket(), key.curve()));
            prop_assert_eq!(key.class() >= CLASS_NOWHERE, bounds.is_nowhere());
        }
    }

    #[test]
    fn without_geometry_the_order_is_that_of_time(a in instant(), b in instant()) {
        let grid = Grid::of(&schema(Kind { geometry: None, time: Clock::Instant }));
        let key = |time| grid.key(&Bounds { start: time, end: time, ..Bounds::EMPTY });
        prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
    }

    #[test]
    fn instants_of_one_unit_share_a_bucket(a in instant(), b in instant()) {
        let grid = Grid::of(&schema(POINTS));
        let key = |time| grid.key(&Bounds::point(1.0, 2.0, time));
        prop_assert_eq!(key(a).bucket().cmp(&key(b).bucket()), grid.bin(a).cmp(&grid.bin(b)));
        let (first, last) = grid.bin_interval(grid.bin(a));
        prop_assert!(first <= a && a <= last && grid.bin(first) == grid.bin(last));
        prop_assert_eq!(last - first + 1, grid.unit_us());
        prop_assert_eq!(grid.first_bin(key(a)), grid.bin(a));
    }

    /// Files of events are cut by it.
    #[test]
    fn an_interval_stands_in_the_bucket_that_its_key_tells(a in instant(), b in instant(), nowhere in any::<bool>()) {
        let grid = Grid::of(&schema(SHAPES));
        let place = if nowhere { Bounds::EMPTY } else { Bounds::point(1.0, 2.0, 0) };
        let bounds = Bounds { start: a.min(b), end: a.max(b), ..place };
        let key = grid.key(&bounds);
        let at = if nowhere { bounds.start } else { ((i128::from(a) + i128::from(b)) >> 1) as i64 };
        let units = if nowhere { 1 } else { [1, 1, 16, 256][usize::from(key.class() >> 4)] };
        let first = grid.first_bin(key);
        prop_assert_eq!(first.rem_euclid(units), 0);
        prop_assert!((first..first + units).contains(&grid.bin(at)));
        let without_time = Grid::of(&schema(Kind { time: Clock::None, ..SHAPES }));
        prop_assert_eq!(without_time.first_bin(without_time.key(&Bounds::point(1.0, 2.0, 0))), 0);
    }
}

#[test]
fn many_rows_are_sorted_by_many_threads_alike() {
    let mut seed = 1u128;
    let rows: Vec<(Key, u64)> = (0..50_000)
        .map(|i| {
            seed = seed.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            (Key(seed >> 120), i % 7)
        })
        .collect();
    let keys: Vec<Key> = rows.iter().map(|r| r.0).collect();
    let seqs: Vec<u64> = rows.iter().map(|r| r.1).collect();
    let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
    expected.sort_by_key(|&row| rows[row as usize]);
    assert_eq!(sort_order(&keys, &seqs), expected);
}

#[test]
fn size_classes_follow_extent() {
    let grid = Grid::of(&schema(SHAPES));
    let unit = grid.unit_us();
    let class = |degrees: f64, duration: Option<i64>| {
        let end = duration.map_or(i64::MAX, |d| 1_000 + d);
        grid.key(&Bounds { west: 0.0, south: 0.0, east: degrees, north: degrees / 2.0, start: 1_000, end }).class()
    };
    assert_eq!(class(0.0, Some(0)), 0);
    assert_eq!([class(0.08, Some(0)), class(1.0, Some(0)), class(10.0, Some(0)), class(90.0, Some(0))], [0, 1, 2, 3]);
    assert_eq!([class(0.0, Some(unit / 16)), class(0.0, Some(unit)), class(0.0, Some(16 * unit))], [0, 16, 32]);
    assert_eq!([class(0.0, Some(17 * unit)), class(0.0, None), class(90.0, None)], [48, 64, 67]);
    let nowhere = Bounds { start: 1, end: i64::MAX, ..Bounds::EMPTY };
    assert_eq!(grid.key(&nowhere).class(), CLASS_NOWHERE + 4);
    let always = Bounds { start: i64::MIN, end: i64::MAX, ..Bounds::EMPTY };
    assert_eq!(grid.key(&always).class(), CLASS_NOWHERE + 4);
}

#[test]
fn places_at_the_edges_of_the_world_have_keys() {
    let (east, west) = (180.0, -180.0);
    for kind in [POINTS, Kind { time: Clock::None, ..POINTS }] {
        let grid = Grid::of(&schema(kind));
        let keys: Vec<Key> = [(east, 90.0), (east, -90.0), (west, 90.0), (west, -90.0)]
            .into_iter()
            .map(|(lon, lat)| grid.key(&Bounds::point(lon, lat, 0)))
            .collect();
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(key.class(), 0);
            assert!(!keys[..i].contains(key), "the corners of the world differ");
        }
    }
}
