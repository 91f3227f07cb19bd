//! Encodings round-trip, and damaged ones do no harm.

use crate::events::*;
use arrow_buffer::Buffer;
use meridian_index::{CountPyramid, Forest, Grid, PyramidBuilder, Summary, TileCells};
use meridian_model::filter::{Region, Relation};
use meridian_model::{Bounds, Interval};
use proptest::prelude::*;
use proptest::sample::Index;

/// A kind of damage.
#[derive(Debug, Clone)]
enum Damage {
    Set(Index, u8),
    /// In the first bytes, which hold lengths.
    SetEarly(Index, u8),
    /// Eight equal bytes at a multiple of eight, where numbers are.
    Fill(Index, u8),
    Cut(Index),
    Append(Vec<u8>),
    Remove(Index),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let damage = prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::SetEarly(at, byte)),
        3 => (any::<Index>(), prop_oneof![Just(0u8), Just(0x7f), Just(0x80), Just(0xff)])
            .prop_map(|(at, byte)| Damage::Fill(at, byte)),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..100).prop_map(Damage::Append),
        1 => any::<Index>().prop_map(Damage::Remove),
    ];
    prop::collection::vec(damage, 1..4)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let len = bytes.len().max(1);
        match damage {
            _ if bytes.is_empty() => {}
            Damage::Set(at, byte) => bytes[at.index(len)] = *byte,
            Damage::SetEarly(at, byte) => bytes[at.index(len.min(96))] = *byte,
            Damage::Fill(at, byte) => {
                let from = at.index(len) / 8 * 8;
                bytes[from..len.min(from + 8)].fill(*byte);
            }
            Damage::Cut(at) => bytes.truncate(at.index(len)),
            Damage::Append(more) => bytes.extend(more),
            Damage::Remove(at) => {
                bytes.remove(at.index(len));
            }
        }
    }
    bytes
}

/// Reads everything that a forest holds.
fn look_at(forest: &Forest) -> Result<Bounds, TestCaseError> {
    let mut total = Summary::INT;
    for tree in &forest.trees {
        each_node(tree, &mut |node| {
            let _ = tree.node_ref(node).bounds();
            for field in 0..6 {
                let _ = tree.node_ref(node).field_range(field);
            }
            (0..4).for_each(|ordinal| total.merge(&tree.summary(node, ordinal)));
            prop_assert!(tree.rows(node).end <= forest.rows());
            Ok(())
        })?;
    }
    if let Some(pieces) = &forest.pieces {
        let (rows, _) = pieces.sift(&mut |region| {
            let _ = region.bounds();
            Relation::Some
        });
        prop_assert_eq!(rows.len(), forest.rows() as usize);
    }
    let _ = total.mean();
    Ok(forest.bounds())
}

fn pyramid(events: &[Event], kind: Kind) -> CountPyramid {
    let mut builder = PyramidBuilder::new(&schema(kind));
    builder.push(&batch(kind, events));
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_forest_comes_back_as_written(kind in kinds(), events in events(), shift in 0..20usize) {
        let (batch, keys) = sorted(kind, &events);
        let forest = build(&batch, &keys, &[]);
        let bytes = forest.encode();
        prop_assert_eq!(&Forest::decode(&bytes).unwrap(), &forest);
        // Anywhere in memory, aligned or not.
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&bytes);
        prop_assert_eq!(&Forest::decode_shared(&Buffer::from_vec(shifted).slice(shift)).unwrap(), &forest);
    }

    #[test]
    fn a_damaged_forest_does_no_harm(kind in kinds(), events in events(), damages in damages()) {
        let (batch, keys) = sorted(kind, &events);
        let bytes = damaged(build(&batch, &keys, &[]).encode(), &damages);
        if let Ok(forest) = Forest::decode(&bytes) {
            look_at(&forest)?;
        }
    }

    #[test]
    fn a_damaged_pyramid_does_no_harm(kind in kinds(), events in events(), damages in damages()) {
        let bytes = pyramid(&events, kind).encode();
        prop_assert_eq!(CountPyramid::decode(&bytes).unwrap(), pyramid(&events, kind));
        let Ok(pyramid) = CountPyramid::decode(&damaged(bytes, &damages)) else { return Ok(()) };
        for z in 0..=12 {
            let tile = TileCells { z, x: (1 << z) / 2, y: (1 << z) / 3, bits: 3 };
            let mut counts = vec![0; tile.len()];
            pyramid.add_counts(&tile, &Interval::ALWAYS, &mut counts);
            pyramid.add_counts(&tile, &Interval { start: 0, end: i64::MAX }, &mut counts);
            pyramid.add_counts(&tile, &Interval { start: i64::MIN + 1, end: i64::MAX - 1 }, &mut counts);
        }
        let _ = CountPyramid::merge(&[&pyramid, &pyramid]).map(|merged| merged.encode());
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), whole in any::<bool>()) {
        for mark in [b"MFOR\x02\0\0\0", b"MFOR\x03\0\0\0", b"MPYR\x01\0\0\0"] {
            let marked: Vec<u8> = if whole { mark.iter().chain(&bytes).copied().collect() } else { bytes.clone() };
            if let Ok(forest) = Forest::decode(&marked) {
                look_at(&forest)?;
            }
            let _ = CountPyramid::decode(&marked);
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let message = |bytes: &[u8]| Forest::decode(bytes).unwrap_err().to_string();
    assert!(message(b"MF").contains("cut off after 2 bytes"));
    assert!(message(b"PAR1\x01\0\0\0").contains("begins with"));
    assert!(message(b"MFOR\x07\0\0\0").contains("version 7: expected 2"));
    assert!(message(b"MFOR\x02\0\0\0\xff\xff\xff\xff\x01\0\0\0").contains("too many"));
    assert!(message(b"MFOR\x02\0\0\0\0\0\0\0\x01\0\0\0\xff\xff\xff\xff\0\0\0\0\x01\0\0\0").contains("cut off"));
}

/// Files of collections whose events all have a time stay as they are.
#[test]
fn times_are_written_where_an_event_has_none() {
    let kind = Kind { geometry: None, time: Clock::Interval };
    let timed = Event { place: None, start: Some(3), duration: Some(4), count: None, level: None };
    let timeless = Event { start: None, duration: None, ..timed.clone() };
    for (events, version, times) in [
        (vec![timed.clone()], 2, (3, 7)),
        (vec![timed, timeless.clone()], 3, (3, 7)),
        (vec![timeless], 3, (i64::MAX, i64::MIN)),
    ] {
        let (batch, keys) = sorted(kind, &events);
        let forest = build(&batch, &keys, &[]);
        let bytes = forest.encode();
        assert_eq!((bytes[4], Forest::decode(&bytes).unwrap().times()), (version, times));
        assert_eq!(forest.bounds().end == i64::MAX, version == 3, "the boxes still rule nothing out");
    }
}

/// The encoding is stored for years: a change of one byte requires a new version.
#[test]
fn the_encoding_of_version_two_stays() {
    let kind = Kind { geometry: Some(meridian_model::GeometryType::Point), time: Clock::Instant };
    let event =
        Event { place: Some([1.0, 2.0, 1.0, 2.0]), start: Some(3), duration: None, count: Some(4), level: Some(5.0) };
    let (batch, keys) = sorted(kind, &[event]);
    let bytes = build(&batch, &keys, &[]).encode();
    let mut expected = b"MFOR\x02\0\0\0\x02\0\0\0\x01\0\0\0".to_vec();
    for number in [2u32, 0, 4, 1, 1, 0, 1, 0] {
        expected.extend_from_slice(&number.to_le_bytes());
    }
    let mut array = |value: &[u8]| {
        expected.resize(expected.len().next_multiple_of(64), 0);
        expected.extend_from_slice(value);
    };
    for side in [1.0f64, 2.0, 1.0, 2.0] {
        array(&side.to_le_bytes());
    }
    array(&3i64.to_le_bytes());
    array(&3i64.to_le_bytes());
    array(&1u32.to_le_bytes());
    array(&4i128.to_le_bytes());
    array(&4i64.to_le_bytes());
    array(&4i64.to_le_bytes());
    array(&1u32.to_le_bytes());
    array(&5f64.to_le_bytes());
    array(&5f64.to_le_bytes());
    array(&5f64.to_le_bytes());
    assert_eq!(bytes, expected);
}

#[test]
fn the_encoding_of_pieces_stays() {
    let kind = Kind { geometry: Some(meridian_model::GeometryType::Line), time: Clock::None };
    // 48 edges of one degree each way: three pieces.
    let event =
        Event { place: Some([0.0, 0.0, 48.0, 48.0]), start: None, duration: None, count: Some(47), level: None };
    let (batch, keys) = sorted(kind, &[event]);
    let forest = build(&batch, &keys, &[]);
    let bytes = forest.encode();
    let mut expected = Vec::new();
    let mut array = |value: &[u8]| {
        expected.resize(expected.len().next_multiple_of(64), 0);
        expected.extend_from_slice(value);
    };
    for side in [0.0f64, 0.0, 48.0, 48.0] {
        array(&side.to_le_bytes());
    }
    array(&0i64.to_le_bytes());
    array(&0i64.to_le_bytes());
    let box_of = |low: f32| Bounds {
        west: low.into(),
        south: low.into(),
        east: (low + 16.0).into(),
        north: (low + 16.0).into(),
        start: 0,
        end: 0,
    };
    let mut lows = [0f32, 16.0, 32.0];
    lows.sort_by_key(|&low| Grid::of(&schema(kind)).key(&box_of(low)));
    for add in [0f32, 0.0, 16.0, 16.0] {
        array(&lows.map(|low| (low + add).to_le_bytes()).concat());
    }
    array(&[0; 12]);
    let at = bytes.len() - expected.len();
    assert!(at.is_multiple_of(64));
    assert_eq!(bytes[at..], expected);
    assert_eq!(Forest::decode(&bytes).unwrap(), forest);
}

#[test]
fn the_encoding_of_pyramids_of_version_one_stays() {
    let kind = Kind { geometry: Some(meridian_model::GeometryType::Point), time: Clock::Instant };
    let week = 7 * 86_400_000_000i64;
    let mut builder = PyramidBuilder::new(&schema(kind));
    // The north-western cell in the first week, the south-eastern one twice in the third.
    builder.push_point(-180.0, 85.0, 0);
    builder.push_point(180.0, -85.0, 2 * week);
    builder.push_point(180.0, -85.0, 2 * week);
    let mut expected = b"MPYR\x01\0\0\0".to_vec();
    expected.extend_from_slice(&week.to_le_bytes());
    expected.extend_from_slice(&3u64.to_le_bytes());
    expected.extend_from_slice(&7u32.to_le_bytes());
    for number in (0..=12u32).rev().step_by(2).flat_map(|level| [level, 2, 2]) {
        expected.extend_from_slice(&number.to_le_bytes());
    }
    let mut array = |value: Vec<u8>| {
        expected.resize(expected.len().next_multiple_of(64), 0);
        expected.extend_from_slice(&value);
    };
    for level in (0..=12u32).rev().step_by(2) {
        // Latitude 85 is some six rows of level 12 from the edge.
        let (_, y) = meridian_index::mercator_cell(-180.0, 85.0, level).unwrap();
        let north_west = (0..16).map(|bit| (y >> bit & 1) << (2 * bit + 1)).sum::<u32>();
        let south_east = (1 << (2 * level)) - 1 - north_west;
        array([0i64, 2].map(i64::to_le_bytes).concat());
        array([0u32, 1, 2].map(u32::to_le_bytes).concat());
        array([north_west, south_east].map(u32::to_le_bytes).concat());
        array([1u64, 2].map(u64::to_le_bytes).concat());
    }
    assert_eq!(builder.finish().encode(), expected);
}

#[test]
fn counts_too_great_to_add_stay_at_the_greatest() {
    let mut builder = PyramidBuilder::new(&schema(Kind { geometry: None, time: Clock::Instant }));
    builder.push_point(10.0, 20.0, 0);
    let mut bytes = builder.finish().encode();
    // The only count of the base layer: its bins, firsts and cells are at 128, 192 and 256.
    assert_eq!(bytes[320..328], 1u64.to_le_bytes());
    bytes[320..328].fill(0xff);
    let pyramid = CountPyramid::decode(&bytes).unwrap();
    let merged = CountPyramid::merge(&[&pyramid, &pyramid]).unwrap();
    let mut counts = [0];
    assert!(merged.add_counts(&TileCells { z: 0, x: 0, y: 0, bits: 0 }, &Interval::ALWAYS, &mut counts));
    assert_eq!(counts, [u64::MAX]);
}
