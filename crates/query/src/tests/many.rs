//! Aggregates against a plain sum, over enough events for trees of several levels, time orders in memory and hundreds
//! of windows.

use super::world::*;
use crate::aggregate::{Aggregate, Group};
use crate::function::{Function, FunctionValue};
use crate::windows::{Window, Windows};
use meridian_model::Seq;
use proptest::prelude::*;
use std::collections::BTreeMap;

const DAY: i64 = 24 * HOUR;
/// 2026-03-15, two weeks before clocks change in Berlin.
const START: i64 = 1_773_532_800_000_000;

/// A tenth of the events share the previous one's instant. Some places lie close together, on both sides of the
/// antimeridian, some everywhere, and some on the edges of the queried boxes.
fn crowd(seed: u64, count: usize, from: i64, days: i64) -> Vec<Event> {
    let mut state = seed;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut last = from;
    (0..count)
        .map(|i| {
            let part = |n: u64| (n % 1_000_003) as f64 / 1_000_003.0;
            let (lon, lat) = match random() % 4 {
                0 => (part(random()) * 360.0 - 180.0, part(random()) * 180.0 - 90.0),
                1 => (10.0 + part(random()) * 4.0, 45.0 + part(random()) * 4.0),
                2 => (179.0 + part(random()), 10.0 + part(random())),
                _ => (-180.0 + (random() % 3) as f64, 10.0 + (random() % 3) as f64),
            };
            let time = if random() % 10 == 0 { last } else { from + (random() as i64 * 977) % (days * DAY) };
            last = time;
            let spot = if i % 97 == 0 { Spot::Nowhere } else { Spot::Point(lon, lat) };
            let x = (i % 11 != 0).then(|| part(random()) * 1e3 - 500.0);
            let n = (i % 13 != 0).then(|| random() as i64 - (1 << 30));
            Event { id: String::new(), spot, start: time, end: time, n, x, s: None, b: None, seq: Seq(0) }
        })
        .collect()
}

fn functions() -> Vec<Function> {
    vec![Function::Avg(3), Function::Min(3), Function::Max(3), Function::Sum(2), Function::Min(2), Function::CountOf(2)]
}

fn check(group: &Group, events: &[&Event]) -> Result<(), TestCaseError> {
    let floats: Vec<f64> = events.iter().filter_map(|e| e.x).collect();
    let ints: Vec<i64> = events.iter().filter_map(|e| e.n).collect();
    let some = |value: Option<FunctionValue>| value.unwrap_or(FunctionValue::Null);
    prop_assert_eq!(group.count, events.len() as u64);
    prop_assert_eq!(&group.values[1], &some(floats.iter().copied().reduce(f64::min).map(FunctionValue::Float)));
    prop_assert_eq!(&group.values[2], &some(floats.iter().copied().reduce(f64::max).map(FunctionValue::Float)));
    let sum = ints.iter().map(|&n| i128::from(n)).sum();
    prop_assert_eq!(&group.values[3], &some((!ints.is_empty()).then_some(FunctionValue::Int(sum))));
    prop_assert_eq!(&group.values[4], &some(ints.iter().min().map(|&n| FunctionValue::Int(n.into()))));
    prop_assert_eq!(&group.values[5], &FunctionValue::Int(ints.len() as i128));
    match &group.values[0] {
        FunctionValue::Float(mean) => {
            let (sum, magnitude) = (floats.iter().sum::<f64>(), floats.iter().map(|x| x.abs()).sum::<f64>());
            prop_assert!((mean * floats.len() as f64 - sum).abs() <= 2e-12 * magnitude, "{mean} of {sum}");
        }
        _ => prop_assert!(floats.is_empty()),
    }
    Ok(())
}

fn questions() -> impl Strategy<Value = (Filter, Option<(&'static str, &'static str)>)> {
    let bbox = prop_oneof![
        2 => Just([10.0, 45.0, 12.5, 47.5]),
        2 => Just([179.5, 9.0, -179.0, 11.0]),
        1 => bboxes(),
        1 => Just([-180.0, -90.0, 180.0, 90.0]),
    ];
    let during = (0..45 * DAY, 0..45 * DAY).prop_map(|(a, b)| Filter::During(START + a.min(b), START + a.max(b)));
    let both = |(a, b): (Filter, Filter)| Filter::And(Box::new(a), Box::new(b));
    let filter = prop_oneof![
        1 => Just(Filter::All),
        3 => during.clone(),
        2 => bbox.clone().prop_map(Filter::Bbox),
        4 => (bbox.prop_map(Filter::Bbox), during).prop_map(both),
    ];
    let window = prop::sample::select(vec!["PT5M", "PT1H", "PT7H", "P1D", "P1W", "P1M"]);
    let zone = prop::sample::select(vec!["UTC", "Europe/Berlin", "America/St_Johns", "+05:45"]);
    (filter, prop::option::weighted(0.85, (window, zone)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn many_events_are_summed_as_one_by_one(
        places in prop::sample::select(vec![Places::Points, Places::Points, Places::None]),
        seed in any::<u64>(),
        flushed in any::<[bool; 3]>(),
        deleted in prop::option::of(prop_oneof![3usize..9, 200usize..5_000]),
        late in any::<bool>(),
        asked in prop::collection::vec(questions(), 12),
    ) {
        let mut world = World::new(Kind { places, times: Times::Instant, made_ids: true });
        for (i, flush) in flushed.into_iter().enumerate() {
            // Later parts continue where the first ended, or overlap it.
            let from = if late { START } else { START + i as i64 * 15 * DAY };
            world.apply(&Op::Write(crowd(seed ^ i as u64, [20_000, 3_000, 300][i], from, 15)));
            if flush {
                world.apply(&Op::Flush);
            }
        }
        if let Some(every) = deleted {
            world.apply(&Op::Delete(every));
        }
        let snapshot = world.collection.snapshot();
        for (i, (filter, window)) in asked.into_iter().enumerate() {
            let windows = window.map(|(length, zone)| Windows::parse(length, zone).unwrap());
            let question = Aggregate {
                predicate: filter.predicate(&world),
                functions: functions(),
                windows: windows.clone(),
                by: Vec::new(),
                empty: false,
            };
            let answer = aggregate_in(1 + i % 3, &snapshot, &question, &world.control()).unwrap();
            let mut expected: BTreeMap<Option<Window>, Vec<&Event>> = BTreeMap::new();
            if windows.is_none() {
                expected.insert(None, Vec::new());
            }
            let mut last: Option<Window> = None;
            let mut matching = filter.matching(&world);
            matching.sort_by_key(|e| e.start);
            for event in matching {
                if let Some(windows) = &windows {
                    last = last.filter(|w| w.holds(event.start)).or_else(|| Some(windows.window_of(event.start)));
                }
                expected.entry(last).or_default().push(event);
            }
            prop_assert_eq!(answer.groups.iter().map(|g| g.window).collect::<Vec<_>>(), expected.keys().copied().collect::<Vec<_>>());
            for (group, events) in answer.groups.iter().zip(expected.values()) {
                check(group, events)?;
            }
            let found = answer.groups.iter().map(|g| g.count).sum::<u64>();
            prop_assert_eq!(answer.stats.events_matched, found);
        }
    }
}
