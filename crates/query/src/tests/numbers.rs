//! Aggregates, counts and density against the oracle.

use super::oracle::{GroupKey, all_functions, by_fields, event, functions, group_of, same};
use super::world::*;
use crate::aggregate::{Aggregate, Group, aggregate};
use crate::function::{FUNCTIONS_MAX, Function};
use crate::sort::{SortKey, SortTarget};
use crate::windows::{Window, Windows};
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn aggregates_are_the_oracles(
        kind in kinds(),
        ops in ops(),
        asked in prop::collection::vec((
            filters(),
            prop::option::of(prop::sample::select(vec!["PT1H", "PT6H", "P1D", "P1W", "P1M", "P1Y", "PT7H"])),
            prop::sample::select(vec!["UTC", "Europe/Berlin", "America/St_Johns", "America/Sao_Paulo", "+05:45"]),
            by_fields(),
            functions(),
        ), 1..8),
    ) {
        let world = World::after(kind, &ops);
        let snapshot = world.collection.snapshot();
        for (filter, window, zone, by, functions) in asked {
            let windows = window.map(|w| Windows::parse(w, zone).unwrap());
            let question = Aggregate {
                predicate: filter.predicate(&world),
                functions,
                windows: windows.clone(),
                by: by.clone(),
                empty: false,
            };
            if kind.times == Times::None && windows.is_some() {
                prop_assert!(aggregate(&snapshot, &question, &world.control()).is_err());
                continue;
            }
            let groups = aggregate(&snapshot, &question, &world.control()).unwrap().groups;
            let sliced = aggregate_in(3, &snapshot, &question, &world.control()).unwrap().groups;
            prop_assert_eq!(sliced.len(), groups.len());
            prop_assert!(sliced.iter().zip(&groups).all(|(a, b)| (a.window, &a.by, a.count) == (b.window, &b.by, b.count)));
            let mut expected: BTreeMap<GroupKey, Vec<&Event>> = BTreeMap::new();
            if windows.is_none() && by.is_empty() {
                expected.insert((true, None, Vec::new()), Vec::new());
            }
            for event in filter.matching(&world) {
                let (window, by) = group_of(event, windows.as_ref(), &by);
                expected.entry((window.is_none(), window, by)).or_default().push(event);
            }
            let found: Vec<_> = groups.iter().map(|g| (g.window.is_none(), g.window, g.by.clone())).collect();
            prop_assert_eq!(&found, &expected.keys().cloned().collect::<Vec<_>>(), "{:?}", &filter);
            for (group, events) in groups.iter().zip(expected.values()) {
                same(group, events)?;
            }
            // With empty windows requested, the same groups appear among empty ones, without a gap.
            let reach = question.predicate.reach();
            let span = groups.iter().filter_map(|g| g.window).fold((i64::MAX, i64::MIN), |s, w| (s.0.min(w.start), s.1.max(w.end)));
            let bounded = |end: i64| reach.start <= reach.end && end != i64::MIN && end != i64::MAX;
            let span = [reach.start, reach.end].into_iter().filter(|end| bounded(*end)).fold(span, |s, end| (s.0.min(end), s.1.max(end)));
            if by.is_empty() && span.1.saturating_sub(span.0) < 5_000 * HOUR {
                let filled = aggregate(&snapshot, &Aggregate { empty: true, ..question }, &world.control()).unwrap();
                let listed: Vec<Window> = filled.groups.iter().filter_map(|g| g.window).collect();
                prop_assert!(listed.windows(2).all(|w| w[0].end == w[1].start));
                for end in [reach.start, reach.end].into_iter().filter(|end| bounded(*end)) {
                    prop_assert!(windows.as_ref().is_none_or(|windows| listed.contains(&windows.window_of(end))), "{:?}", &filter);
                }
                let full: Vec<Group> = filled.groups.into_iter().filter(|g| g.count > 0 || g.window.is_none()).collect();
                prop_assert_eq!(full, groups);
            }
        }
    }

    #[test]
    fn counts_and_densities_are_the_oracles(
        kind in kinds(),
        ops in ops(),
        asked in prop::collection::vec((filters(), bboxes(), 1u32..20, 1u32..20), 1..8),
    ) {
        let world = World::after(kind, &ops);
        let snapshot = world.collection.snapshot();
        for (filter, bbox, width, height) in asked {
            let predicate = filter.predicate(&world);
            let matching = filter.matching(&world);
            let (count, _) = crate::count(&snapshot, &predicate, u64::MAX, &world.control()).unwrap();
            prop_assert_eq!(count, Some(matching.len() as u64), "{:?}", &filter);
            let rows = crate::matching_rows(&snapshot, &predicate, &world.control()).unwrap();
            prop_assert_eq!(rows.iter().map(|(_, rows)| rows.len()).sum::<usize>(), matching.len());
            let question = crate::Density { predicate, bbox, width, height };
            let counts = crate::density(&snapshot, &question, &world.control()).unwrap().counts;
            let mut expected = vec![0u64; (width * height) as usize];
            let [west, south, east, north] = bbox;
            for (lon, lat) in matching.iter().filter_map(|e| e.centre()) {
                let crosses = west > east;
                let inside = if crosses { lon >= west || lon <= east } else { west <= lon && lon <= east };
                if !inside || lat < south || lat > north {
                    continue;
                }
                let span = if crosses { east - west + 360.0 } else { east - west };
                let dx = if crosses && lon < west { lon + 360.0 - west } else { lon - west };
                let column = if span > 0.0 { (dx / span * f64::from(width)) as u32 } else { 0 }.min(width - 1);
                let dy = north - lat;
                let row = if north > south { (dy / (north - south) * f64::from(height)) as u32 } else { 0 }.min(height - 1);
                expected[(row * width + column) as usize] += 1;
            }
            prop_assert_eq!(counts, expected, "{:?} {:?}", &filter, bbox);
        }
    }
}

#[test]
fn dead_rows_are_left_out_of_the_order_of_time() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| event((n * 7_919) % 20_000, n * 8_640_000)).collect()));
    world.apply(&Op::Delete(1_999));
    let question = Aggregate {
        predicate: Filter::During(3 * HOUR, 40 * HOUR + 7).predicate(&world),
        functions: all_functions(),
        windows: Some(Windows::parse("PT1H", "UTC").unwrap()),
        by: Vec::new(),
        empty: false,
    };
    for slices in [1, 2, 5] {
        // First from a memory tree, then from a segment.
        if slices == 2 {
            world.apply(&Op::Flush);
            world.apply(&Op::Delete(1_777));
        }
        let answer = aggregate_in(slices, &world.collection.snapshot(), &question, &world.control()).unwrap();
        let mut expected: BTreeMap<i64, Vec<&Event>> = BTreeMap::new();
        for event in Filter::During(3 * HOUR, 40 * HOUR + 7).matching(&world) {
            expected.entry(event.start.div_euclid(HOUR)).or_default().push(event);
        }
        assert_eq!(answer.groups.len(), expected.len());
        answer.groups.iter().zip(expected.values()).for_each(|(group, events)| same(group, events).unwrap());
        assert!(answer.stats.nodes_whole > 20 && answer.stats.events_tested < 1_000, "{:?}", answer.stats);
    }
}

#[test]
fn windows_of_a_zone_follow_its_days_of_23_and_25_hours() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    // An event every half hour around both clock changes of 2026, in Berlin's winter and summer.
    let at = |text: &str| meridian_model::time::parse_instant(text, None).unwrap();
    let days = [at("2026-03-27T22:15:00Z"), at("2026-10-23T21:15:00Z")];
    let events: Vec<Event> =
        days.iter().flat_map(|&first| (0..192).map(move |i| event(i, first + i * HOUR / 2))).collect();
    world.apply(&Op::Write(events));
    for _ in 0..2 {
        let ask = |window: &str| {
            let windows = Some(Windows::parse(window, "Europe/Berlin").unwrap());
            let predicate = Filter::All.predicate(&world);
            let question =
                Aggregate { predicate, functions: vec![Function::Count], windows, by: Vec::new(), empty: false };
            aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap().groups
        };
        let days: Vec<(u64, i64)> =
            ask("P1D").iter().map(|g| (g.count, g.window.map_or(0, |w| (w.end - w.start) / HOUR))).collect();
        let spring = [(2, 24), (48, 24), (46, 23), (48, 24), (48, 24)];
        let autumn = [(2, 24), (48, 24), (50, 25), (48, 24), (44, 24)];
        assert_eq!(days, [spring, autumn].concat());
        assert!(ask("PT1H").iter().all(|g| g.window.is_some_and(|w| w.end - w.start == HOUR)));
        assert_eq!(ask("P1M").iter().map(|g| g.count).collect::<Vec<_>>(), [192, 192]);
        world.apply(&Op::Flush);
    }
}

#[test]
fn functions_are_read_and_named() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let schema = schema_of(kind);
    let functions = Function::parse("count, sum(n),avg(x)", &schema).unwrap();
    assert_eq!(functions, [Function::Count, Function::Sum(2), Function::Avg(3)]);
    assert_eq!(functions.iter().map(|f| f.name(&schema)).collect::<Vec<_>>(), ["count", "sum(n)", "avg(x)"]);
    let more = "median(n),percentile(x,99.9),distinct(s),top(b,3)";
    let functions = Function::parse(more, &schema).unwrap();
    let names = functions.iter().map(|f| f.name(&schema)).collect::<Vec<_>>();
    assert_eq!(names, ["percentile(n,50)", "percentile(x,99.9)", "distinct(s)", "top(b,3)"]);
    assert_eq!(Function::parse(&names.join(","), &schema).unwrap(), functions);
    for bad in [
        "",
        "mode(n)",
        "sum",
        "sum(",
        "sum(s)",
        "sum(nothing)",
        "count,",
        "percentile(n)",
        "percentile(n,101)",
        "percentile(s,50)",
        "median(b)",
        "distinct",
        "top(n)",
        "top(n,0)",
        "top(n,1001)",
        "top(x,2)",
        "top(t,2)",
        "percentile(n,-1)",
    ] {
        assert_eq!(Function::parse(bad, &schema).unwrap_err().field.as_deref(), Some("function"), "{bad}");
    }
}

proptest! {
    #[test]
    fn functions_and_orders_are_read_as_they_are_written(
        functions in prop::collection::vec(prop::sample::select(all_functions()), 1..=FUNCTIONS_MAX),
        keys in prop::collection::vec((prop::sample::select(vec!["t", "n", "x", "s", "b", "id"]), any::<bool>()), 1..6),
    ) {
        let schema = schema_of(Kind { places: Places::Points, times: Times::Instant, made_ids: false });
        let names: Vec<String> = functions.iter().map(|function| function.name(&schema)).collect();
        // Two results of one name could not be told apart.
        let is_twice = (1..functions.len()).any(|at| functions[..at].contains(&functions[at]));
        match Function::parse(&names.join(", "), &schema) {
            Ok(read) => prop_assert!(!is_twice && read == functions),
            Err(_) => prop_assert!(is_twice),
        }

        let written: Vec<String> = keys.iter().map(|(name, down)| format!("{}{name}", if *down { "-" } else { "+" })).collect();
        let read = SortKey::parse(&written.join(","), &schema).unwrap();
        // Only the first key of a name can decide a tie.
        let mut first: Vec<(&str, bool)> = Vec::new();
        for (name, down) in keys {
            if first.iter().all(|(known, _)| *known != name) {
                first.push((name, down));
            }
        }
        let target = |name: &str| schema.field_index(name).map_or(SortTarget::Id, SortTarget::Field);
        let wanted: Vec<SortKey> = first.iter().map(|(name, down)| SortKey { target: target(name), descending: *down }).collect();
        prop_assert_eq!(read, wanted);
    }
}
