//! Groups, grids, counts, tracks, objects and circles.

use super::super::oracle::{GroupKey, by_fields, functions, group_of, same};
use super::super::world::*;
use super::{Partitions, given_kinds, shipped, steps};
use crate::aggregate::{Aggregate, aggregate};
use crate::partial::{PartialCount, PartialGrid, PartialGroups, PartialNear, PartialPassages, PartialTrack};
use crate::passages::{Passages, passages};
use crate::track::{Track, TrackPoint, track};
use crate::windows::Windows;
use meridian_model::Projection;
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn merged_groups_are_those_of_all_events(
        kind in given_kinds(),
        count in 1usize..6,
        steps in steps(),
        asked in prop::collection::vec((
            filters(),
            prop::option::of(prop::sample::select(vec!["PT1H", "P1D", "P1M", "PT7H"])),
            prop::sample::select(vec!["UTC", "Europe/Berlin", "+05:45"]),
            by_fields(),
            functions(),
            prop::bool::weighted(0.2),
        ), 1..5),
    ) {
        let all = Partitions::after(kind, count, &steps);
        for (filter, window, zone, by, functions, empty) in asked {
            let windows = window.filter(|_| kind.times != Times::None).map(|w| Windows::parse(w, zone).unwrap());
            let predicate = filter.predicate(&all.whole);
            let question = Aggregate { predicate, functions, windows, by: by.clone(), empty };
            let control = all.whole.control();
            let whole = aggregate(&all.whole.collection.snapshot(), &question, &control);
            let mut parts = all.parts.iter().map(|part| {
                let groups = PartialGroups::of(&part.collection.snapshot(), &question, &part.control()).unwrap();
                let batch = shipped(&groups.to_arrow(&part.schema).unwrap());
                let read = PartialGroups::from_arrow(&batch, &question, &part.schema, &control).unwrap();
                prop_assert_eq!(read.stats(), groups.stats());
                Ok(read)
            });
            let mut merged = parts.next().unwrap()?;
            for part in parts {
                merged.merge(part?).unwrap();
            }
            let merged = merged.finish(&question, &control);
            let (Ok(whole), Ok(merged)) = (whole, merged) else {
                prop_assert!(empty, "too many empty windows are refused, nothing else is");
                continue;
            };
            let shape = |groups: &[crate::Group]| groups.iter().map(|g| (g.window, g.by.clone(), g.count)).collect::<Vec<_>>();
            prop_assert_eq!(shape(&merged.groups), shape(&whole.groups));
            let mut events: BTreeMap<GroupKey, Vec<&Event>> = BTreeMap::new();
            for event in filter.matching(&all.whole) {
                let (window, by) = group_of(event, question.windows.as_ref(), &by);
                events.entry((window.is_none(), window, by)).or_default().push(event);
            }
            for group in &merged.groups {
                let key = (group.window.is_none(), group.window, group.by.clone());
                same(group, events.get(&key).map_or(&[], Vec::as_slice))?;
            }
            prop_assert_eq!(merged.stats.events_matched, whole.stats.events_matched);
        }
    }

    #[test]
    fn merged_grids_and_counts_are_those_of_all_events(
        kind in given_kinds(),
        count in 1usize..6,
        steps in steps(),
        asked in prop::collection::vec((filters(), bboxes(), 1u32..20, 1u32..20), 1..5),
    ) {
        let all = Partitions::after(kind, count, &steps);
        let snapshot = all.whole.collection.snapshot();
        for (filter, bbox, width, height) in asked {
            let predicate = filter.predicate(&all.whole);
            let question = crate::Density { predicate: predicate.clone(), bbox, width, height };
            let cells = question.cells().unwrap();
            let mut merged = PartialGrid { counts: vec![0; cells], stats: Default::default() };
            let mut total = PartialCount { total: Some(0), stats: Default::default() };
            for part in &all.parts {
                let grid = PartialGrid::of(&part.collection.snapshot(), &question, &part.control()).unwrap();
                let read = PartialGrid::from_arrow(&shipped(&grid.to_arrow().unwrap()), cells).unwrap();
                prop_assert_eq!(&read, &grid);
                merged.merge(&read).unwrap();
                let count = PartialCount::of(&part.collection.snapshot(), &predicate, u64::MAX, &part.control()).unwrap();
                let read = PartialCount::from_arrow(&shipped(&count.to_arrow().unwrap())).unwrap();
                prop_assert_eq!(read, count);
                total.merge(&read);
            }
            let whole = crate::density(&snapshot, &question, &all.whole.control()).unwrap();
            prop_assert_eq!(merged.finish().counts, whole.counts);
            prop_assert_eq!(total.total, crate::count(&snapshot, &predicate, u64::MAX, &all.whole.control()).unwrap().0);
        }
    }

    #[test]
    fn merged_tracks_and_objects_are_those_of_all_events(
        instants: bool,
        count in 1usize..6,
        steps in steps(),
        asked in prop::collection::vec((filters(), texts(), 1usize..4), 1..5),
    ) {
        let times = if instants { Times::Instant } else { Times::Interval };
        let all = Partitions::after(Kind { places: Places::Points, times, made_ids: false }, count, &steps);
        let (snapshot, control) = (all.whole.collection.snapshot(), all.whole.control());
        for (filter, object, limit) in asked {
            let predicate = filter.predicate(&all.whole);
            let question = Track { object: object.clone(), predicate: predicate.clone(), simplify_m: None };
            let mut merged: Option<PartialTrack> = None;
            for part in &all.parts {
                let track = PartialTrack::of(&part.collection.snapshot(), &question, &part.control()).unwrap();
                let read = PartialTrack::from_arrow(&shipped(&track.to_arrow().unwrap()), &control).unwrap();
                match &mut merged {
                    Some(merged) => merged.merge(read).unwrap(),
                    none => *none = Some(read),
                }
            }
            let merged = merged.unwrap().finish(&question, &control).unwrap();
            let whole = track(&snapshot, &question, &control).unwrap();
            prop_assert!(merged.points.is_sorted_by_key(|p| p.time));
            // Sequence numbers are per partition: places at the same time may come in any order.
            let places = |points: &[TrackPoint]| {
                let mut places: Vec<(i64, u64, u64)> = points.iter().map(|p| (p.time, p.lon.to_bits(), p.lat.to_bits())).collect();
                places.sort_unstable();
                places
            };
            prop_assert_eq!((merged.events, places(&merged.points)), (whole.events, places(&whole.points)));

            let mut after = None;
            loop {
                let question = Passages { predicate: predicate.clone(), after, limit };
                let mut parts = all.parts.iter().map(|part| {
                    let objects = PartialPassages::of(&part.collection.snapshot(), &question, &part.control()).unwrap();
                    let read = PartialPassages::from_arrow(&shipped(&objects.to_arrow(&part.schema).unwrap()), &part.schema).unwrap();
                    assert_eq!(read, objects);
                    read
                });
                let mut merged = parts.next().unwrap();
                parts.for_each(|part| merged.merge(part));
                let merged = merged.finish(&question);
                let whole = passages(&snapshot, &question, &control).unwrap();
                prop_assert_eq!((&merged.passages, merged.more), (&whole.passages, whole.more));
                if !merged.more {
                    break;
                }
                after = merged.passages.last().map(|p| p.object.clone());
            }
        }
    }

    #[test]
    fn merged_circles_are_those_of_all_events(
        count in 1usize..6,
        steps in steps(),
        asked in prop::collection::vec((lons(), lats(), prop_oneof![0.0..100_000.0f64, 0.0..2e7f64], 0usize..20), 1..5),
    ) {
        let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: false };
        let all = Partitions::after(kind, count, &steps);
        let columns = Projection::all(&meridian_model::Layout::of(&all.whole.schema));
        for (lon, lat, radius_m, k) in asked {
            let question = crate::wire::NearCircle { lon, lat, radius_m, k, projection: columns.clone() };
            let ask = |world: &World| PartialNear::of(&world.collection.snapshot(), question.circle(), k, &columns).unwrap();
            let mut parts = all.parts.iter().map(|part| {
                let batch = shipped(&ask(part).to_arrow().unwrap());
                PartialNear::from_arrow(&batch, &part.schema).unwrap()
            });
            let mut merged = parts.next().unwrap();
            parts.for_each(|part| merged.merge(part, k).unwrap());
            let ((total, merged), (expected, whole)) = (merged.finish(), ask(&all.whole).finish());
            prop_assert_eq!((total, &merged.distances), (expected, &whole.distances));
            let events = all.events();
            for (row, distance_m) in merged.distances.unwrap().into_iter().enumerate() {
                let event = events[merged.batch.ids().unwrap().value(row)];
                prop_assert!((event.distance_m(lon, lat) - distance_m).abs() <= 1e-6 * distance_m.max(1.0));
            }
        }
    }
}
