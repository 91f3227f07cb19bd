//! Aggregates, counts and density against the oracle.

use super::world::*;
use crate::aggregate::{Aggregate, Group, aggregate};
use crate::by::ByValue;
use crate::function::{FUNCTIONS_MAX, Function, FunctionValue};
use crate::sort::{SortKey, SortTarget};
use crate::windows::{Window, Windows};
use meridian_index::LEAF_ROWS;
use meridian_model::Seq;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn all_functions() -> Vec<Function> {
    vec![
        Function::Count,
        Function::CountOf(2),
        Function::Sum(2),
        Function::Avg(2),
        Function::Min(2),
        Function::Max(2),
        Function::CountOf(3),
        Function::Sum(3),
        Function::Avg(3),
        Function::Min(3),
        Function::Max(3),
    ]
}

/// Groups without a window come last.
pub(super) type GroupKey = (bool, Option<Window>, Vec<ByValue>);

pub(super) fn group_of(event: &Event, windows: Option<&Windows>, by: &[usize]) -> (Option<Window>, Vec<ByValue>) {
    let window = windows.filter(|_| event.start != i64::MIN).map(|w| w.window_of(event.start));
    let by = by.iter().map(|by| match by {
        2 => event.n.map_or(ByValue::Null, ByValue::Int),
        4 => event.s.clone().map_or(ByValue::Null, ByValue::Text),
        _ => event.b.map_or(ByValue::Null, ByValue::Bool),
    });
    (window, by.collect())
}

/// Fields to group by.
pub(super) fn by_fields() -> impl Strategy<Value = Vec<usize>> {
    prop::sample::select(vec![vec![], vec![2], vec![4], vec![5], vec![2, 5], vec![4, 2], vec![5, 4, 2]])
}

/// [`all_functions`], possibly with those that read every value.
pub(super) fn functions() -> impl Strategy<Value = Vec<Function>> {
    prop::sample::select(vec![all_functions(), [all_functions(), of_values()].concat()])
}

/// Functions that read every value.
fn of_values() -> Vec<Function> {
    let names = "median(n),percentile(x,95),percentile(n,0),percentile(x,100),distinct(n),distinct(s),distinct(x),top(s,2),top(n,3),top(b,5)";
    Function::parse(names, &schema_of(Kind { places: Places::None, times: Times::None, made_ids: false })).unwrap()
}

/// Compares a group with the plain totals of its events.
pub(super) fn same(group: &Group, events: &[&Event]) -> Result<(), TestCaseError> {
    prop_assert_eq!(group.count, events.len() as u64);
    let ints: Vec<i64> = events.iter().filter_map(|e| e.n).collect();
    let floats: Vec<f64> = events.iter().filter_map(|e| e.x).collect();
    let int = |n: Option<i64>| n.map_or(FunctionValue::Null, |n| FunctionValue::Int(n.into()));
    let float = |x: Option<f64>| x.map_or(FunctionValue::Null, FunctionValue::Float);
    let v = &group.values;
    prop_assert_eq!(&v[0], &FunctionValue::Int(events.len() as i128));
    prop_assert_eq!(&v[1], &FunctionValue::Int(ints.len() as i128));
    prop_assert_eq!(&v[2], &int((!ints.is_empty()).then(|| ints.iter().sum())));
    prop_assert_eq!(&v[4], &int(ints.iter().min().copied()));
    prop_assert_eq!(&v[5], &int(ints.iter().max().copied()));
    prop_assert_eq!(&v[6], &FunctionValue::Int(floats.len() as i128));
    prop_assert_eq!(&v[9], &float(floats.iter().copied().reduce(f64::min)));
    prop_assert_eq!(&v[10], &float(floats.iter().copied().reduce(f64::max)));
    let near = |value: &FunctionValue, expected: Option<f64>, magnitude: f64| match (value, expected) {
        (FunctionValue::Float(x), Some(y)) => (x - y).abs() <= 2e-12 * magnitude,
        (FunctionValue::Null, None) => true,
        _ => false,
    };
    let (sum, magnitude) = (floats.iter().sum::<f64>(), floats.iter().map(|x| x.abs()).sum::<f64>());
    let any = !floats.is_empty();
    prop_assert!(near(&v[7], any.then_some(sum), magnitude), "{:?} is not {}", v[7], sum);
    prop_assert!(near(&v[8], any.then(|| sum / floats.len() as f64), magnitude));
    let mean = (!ints.is_empty()).then(|| ints.iter().sum::<i64>() as f64 / ints.len() as f64);
    prop_assert!(near(&v[3], mean, 1.0));
    // So few values are never estimated.
    prop_assert!(group.errors.iter().all(|error| *error == 0.0) && group.errors.len() == v.len());
    match v.len() > all_functions().len() {
        true => same_values(&v[all_functions().len()..], events),
        false => Ok(()),
    }
}

/// Compares the results of [`of_values`] with lists of values.
fn same_values(v: &[FunctionValue], events: &[&Event]) -> Result<(), TestCaseError> {
    let (mut ints, mut floats): (Vec<i64>, Vec<f64>) =
        (events.iter().filter_map(|e| e.n).collect(), events.iter().filter_map(|e| e.x).collect());
    ints.sort_unstable();
    floats.sort_unstable_by(f64::total_cmp);
    let at = |len: usize, percent: usize| (len * percent).div_ceil(100).max(1) - 1;
    let int =
        |percent| ints.get(at(ints.len(), percent)).map_or(FunctionValue::Null, |n| FunctionValue::Int((*n).into()));
    let float =
        |percent| floats.get(at(floats.len(), percent)).map_or(FunctionValue::Null, |x| FunctionValue::Float(*x));
    prop_assert_eq!([&v[0], &v[1]], [&int(50), &float(95)]);
    prop_assert_eq!([&v[2], &v[3]], [&int(0), &float(100)]);
    let some = |values: usize| FunctionValue::Int(values as i128);
    let texts: BTreeSet<_> = events.iter().filter_map(|e| e.s.as_ref()).collect();
    let bits: BTreeSet<u64> = floats.iter().map(|x| (x + 0.0).to_bits()).collect();
    let distinct = [some(ints.iter().collect::<BTreeSet<_>>().len()), some(texts.len()), some(bits.len())];
    prop_assert_eq!(&v[4..7], &distinct[..]);
    let top = |k: usize, values: Vec<ByValue>| {
        let mut counts: BTreeMap<ByValue, u64> = BTreeMap::new();
        values.into_iter().for_each(|value| *counts.entry(value).or_default() += 1);
        let mut all: Vec<_> = counts.into_iter().collect();
        // A stable sort: ties stay in order.
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.truncate(k);
        FunctionValue::Top(all.into())
    };
    prop_assert_eq!(&v[7], &top(2, events.iter().filter_map(|e| e.s.clone().map(ByValue::Text)).collect()));
    prop_assert_eq!(&v[8], &top(3, ints.iter().map(|n| ByValue::Int(*n)).collect()));
    prop_assert_eq!(&v[9], &top(5, events.iter().filter_map(|e| e.b.map(ByValue::Bool)).collect()));
    Ok(())
}

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
            let span = groups.iter().filter_map(|g| g.window).fold((i64::MAX, i64::MIN), |s, w| (s.0.min(w.start), s.1.max(w.end)));
            if by.is_empty() && span.1.saturating_sub(span.0) < 5_000 * HOUR {
                let filled = aggregate(&snapshot, &Aggregate { empty: true, ..question }, &world.control()).unwrap();
                let windows: Vec<Window> = filled.groups.iter().filter_map(|g| g.window).collect();
                prop_assert!(windows.windows(2).all(|w| w[0].end == w[1].start));
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

pub(super) fn event(n: i64, start: i64) -> Event {
    Event {
        id: String::new(),
        spot: Spot::Point(f64::from((n % 300) as i32) * 0.5, f64::from((n % 100) as i32) * 0.5),
        start,
        end: start,
        n: Some(n),
        x: Some(n as f64 * 0.5),
        s: None,
        b: None,
        seq: Seq(0),
    }
}

#[test]
fn a_whole_collection_is_summed_without_reading_a_block() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| event(n, n * 1_000)).collect()));
    for _ in 0..2 {
        let question = Aggregate {
            predicate: Filter::All.predicate(&world),
            functions: vec![Function::Sum(2), Function::Max(3)],
            windows: None,
            by: Vec::new(),
            empty: false,
        };
        let snapshot = world.collection.snapshot();
        let answer = aggregate(&snapshot, &question, &world.control()).unwrap();
        assert_eq!(answer.groups[0].values[0], FunctionValue::Int(19_999 * 10_000));
        assert_eq!(answer.groups[0].values[1], FunctionValue::Float(19_999.0 * 0.5));
        assert_eq!((answer.stats.blocks_read, answer.stats.events_tested), (0, 0));
        assert_eq!(crate::count(&snapshot, &question.predicate, 0, &world.control()).unwrap().0, Some(20_000));
        world.apply(&Op::Flush);
    }
}

#[test]
fn a_histogram_reads_only_where_windows_cut() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    // Two days, an event every 8.64 s, places everywhere: in space-time order every leaf is cut by every hour.
    world.apply(&Op::Write((0..20_000).map(|n| event((n * 7_919) % 20_000, n * 8_640_000)).collect()));
    let question = Aggregate {
        predicate: Filter::All.predicate(&world),
        functions: vec![Function::Count, Function::Sum(2)],
        windows: Some(Windows::parse("PT1H", "UTC").unwrap()),
        by: Vec::new(),
        empty: false,
    };
    // First from a memory tree, then from a segment.
    for _ in 0..2 {
        let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
        assert_eq!(answer.groups.len(), 48);
        assert_eq!(answer.groups.iter().map(|g| g.count).sum::<u64>(), 20_000);
        assert!(answer.stats.nodes_whole > 48, "{:?}", answer.stats);
        // Every block is cut by an hour somewhere, but only the leaves at the cut are read of it.
        assert!(answer.stats.blocks_read <= 60, "{:?}", answer.stats);
        world.apply(&Op::Flush);
    }
}

#[test]
fn windows_in_a_box_read_a_block_once() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let mut world = World::new(kind);
    world.apply(&Op::Write((0..20_000).map(|n| event((n * 7_919) % 20_000, n * 8_640_000)).collect()));
    let during = Filter::During(3 * HOUR, 40 * HOUR + 7);
    let filter = Filter::And(Box::new(Filter::Bbox([20.0, 10.0, 90.0, 40.0])), Box::new(during));
    let question = Aggregate {
        predicate: filter.predicate(&world),
        functions: all_functions(),
        windows: Some(Windows::parse("PT1H", "UTC").unwrap()),
        by: Vec::new(),
        empty: false,
    };
    // First from a memory tree, then from a segment, then with dead rows.
    for round in 0..3 {
        let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
        let mut expected: BTreeMap<i64, Vec<&Event>> = BTreeMap::new();
        for event in filter.matching(&world) {
            expected.entry(event.start.div_euclid(HOUR)).or_default().push(event);
        }
        assert_eq!(answer.groups.len(), expected.len());
        answer.groups.iter().zip(expected.values()).for_each(|(group, events)| same(group, events).unwrap());
        let rows = 20_000u64;
        assert!(answer.stats.blocks_read <= rows.div_ceil(meridian_store::CHUNK_ROWS.into()), "{:?}", answer.stats);
        assert!(answer.stats.edge_blocks > 0 && answer.stats.events_tested < rows, "{:?}", answer.stats);
        world.apply(if round == 0 { &Op::Flush } else { &Op::Delete(1_777) });
    }
}

/// Across the world there are `sqrt(N / 64)` leaves side by side, each of 64 neighbours on the curve. Leaves inside a
/// box are counted from their summaries, and leaves on its edge are tested. If leaves were squares, these would be
/// `4 * share * sqrt(N / 64)` for a box of that share of the world's sides. So the cost doubles with four times the
/// content: four times as many events, or a box twice as wide and high. The test asserts a factor below three, and
/// that the cost of a scan would fail this assertion.
#[test]
fn a_box_costs_what_its_edge_meets_and_not_what_it_holds() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: true };
    let spread = |count: i64| {
        // All at one instant, so that only the place distinguishes events; evenly spread without being a lattice.
        let share = |n: i64, step: f64| (n as f64 * step).fract() - 0.5;
        let place = |n| Spot::Point(share(n, 0.754_877_666) * 360.0, share(n, 0.569_840_291) * 180.0);
        let mut world = World::new(kind);
        world.apply(&Op::Write((0..count).map(|n| Event { spot: place(n), ..event(n, 3 * HOUR) }).collect()));
        world
    };
    // Events in the box, and events tested for it.
    let cost = |world: &World, share: f64| {
        let filter = Filter::Bbox([-180.0 * share, -90.0 * share, 180.0 * share, 90.0 * share]);
        let question = Aggregate {
            predicate: filter.predicate(world),
            functions: vec![Function::Sum(2), Function::Max(3)],
            windows: None,
            by: Vec::new(),
            empty: false,
        };
        let answer = aggregate(&world.collection.snapshot(), &question, &world.control()).unwrap();
        let (held, tested) = (filter.matching(world).len() as u64, answer.stats.events_tested);
        assert_eq!(answer.groups[0].count, held);
        let leaves = (world.live.len() as f64 / LEAF_ROWS as f64).sqrt() * 4.0 * share;
        // Leaves are not squares, and their boxes overlap: a few times as many are cut. A scan tests more than this.
        assert!(tested > 0 && tested as f64 <= 4.0 * leaves * LEAF_ROWS as f64, "{tested} of {held}, {share}");
        (held, tested)
    };
    let grows_as_the_edge = |less: u64, more: u64| more < 3 * less;
    let (mut few, mut many) = (spread(20_000), spread(80_000));
    // First from a memory tree, then from a segment.
    for _ in 0..2 {
        let (small, dense, large) = (cost(&few, 1.0 / 3.0), cost(&many, 1.0 / 3.0), cost(&many, 2.0 / 3.0));
        for (less, more) in [(small, dense), (dense, large)] {
            assert!(grows_as_the_edge(less.1, more.1), "{} events tested, then {}", less.1, more.1);
            assert!(!grows_as_the_edge(less.0, more.0), "the content grew from {} to {} only", less.0, more.0);
        }
        few.apply(&Op::Flush);
        many.apply(&Op::Flush);
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
