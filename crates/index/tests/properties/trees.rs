//! Trees agree with scans, both in results and in the state of their nodes.

use crate::events::*;
use meridian_index::{FANOUT, Forest, ForestBuilder, Grid, Key, LEAF_ROWS, Number, Summary, Tree, WalkStats};
use meridian_model::filter::{Region, Relation};
use meridian_model::{Batch, Bounds, GeometryType};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

const POINTS: Kind = Kind { geometry: Some(GeometryType::Point), time: Clock::Instant };
const LINES: Kind = Kind { geometry: Some(GeometryType::Line), time: Clock::Interval };

/// Matching rows in the order found, and the summary of a field over them, from nodes where they match as a whole.
fn ask(trees: &[Tree], batch: &Batch, question: &Question, ordinal: usize) -> (Vec<usize>, Summary, WalkStats) {
    let mut rows = Vec::new();
    let mut summary = if ordinal == COUNT { Summary::INT } else { Summary::FLOAT };
    let mut stats = WalkStats::default();
    for tree in trees {
        let walked = tree.walk(&mut |node| question.relation(node), &mut |visit| {
            let found = visit.rows.map(|row| row as usize);
            if visit.whole {
                summary.merge(&tree.summary(visit.node, ordinal));
                rows.extend(found);
            } else {
                let found: Vec<usize> = found.filter(|&row| question.matches(batch, row)).collect();
                summary.merge(&scan(batch, found.iter().copied(), ordinal).0);
                rows.extend(found);
            }
            ControlFlow::Continue(())
        });
        stats.merge(&walked);
    }
    (rows, summary, stats)
}

/// Checks a forest against a scan: every result, every node.
fn check(forest: &Forest, batch: &Batch, questions: &[Question]) -> Result<(), TestCaseError> {
    let timed = (0..batch.rows()).map(|row| batch.interval(row)).filter(|time| *time != (i64::MIN, i64::MAX));
    prop_assert_eq!(forest.times(), timed.fold((i64::MAX, i64::MIN), |all, (a, b)| (all.0.min(a), all.1.max(b))));
    for question in questions {
        let expected: Vec<usize> = (0..batch.rows()).filter(|&row| question.matches(batch, row)).collect();
        for ordinal in [COUNT, LEVEL] {
            let (rows, summary, _) = ask(&forest.trees, batch, question, ordinal);
            prop_assert_eq!(&rows, &expected);
            check_summary(&summary, &scan(batch, expected.iter().copied(), ordinal))?;
        }
    }
    let mut next_row = 0;
    for tree in &forest.trees {
        prop_assert_eq!(tree.all_rows().start, next_row);
        next_row = tree.all_rows().end;
        prop_assert!(!tree.all_rows().is_empty());
        check_nodes(tree, batch)?;
    }
    prop_assert_eq!(next_row as usize, batch.rows());
    prop_assert_eq!(forest.rows(), next_row);
    prop_assert!(forest.trees.windows(2).all(|pair| pair[0].class() < pair[1].class()));
    Ok(())
}

/// Checks that every node knows exactly what its rows hold, and that children partition their parent's rows.
fn check_nodes(tree: &Tree, batch: &Batch) -> Result<(), TestCaseError> {
    let nodes = each_node(tree, &mut |node| {
        let rows = tree.rows(node);
        let children: Vec<_> = tree.children(node).collect();
        prop_assert_eq!(children.is_empty(), tree.is_leaf(node));
        prop_assert!(children.len() <= FANOUT && tree.children(node).len() == children.len());
        if tree.is_leaf(node) {
            prop_assert!(!rows.is_empty() && rows.len() <= LEAF_ROWS);
            prop_assert!(rows.clone().all(|row| tree.leaf_of(row) == Some(node)));
        } else {
            let parts: Vec<u32> = children.iter().flat_map(|&child| tree.rows(child)).collect();
            prop_assert_eq!(parts, rows.clone().collect::<Vec<_>>());
        }
        let rows = || rows.clone().map(|row| row as usize);
        let bounds = rows().fold(Bounds::EMPTY, |all, row| all.union(&batch.bounds(row)));
        prop_assert_eq!(tree.bounds(node), bounds);
        for ordinal in [COUNT, LEVEL] {
            check_summary(&tree.summary(node, ordinal), &scan(batch, rows(), ordinal))?;
        }
        let range = tree.node_ref(node).field_range(FIELD_LEVEL).unwrap();
        prop_assert_eq!(range.nulls, rows().any(|row| number(batch, row, LEVEL).is_none()));
        let inside = |x: f64| range.min <= x && x <= range.max;
        prop_assert!(rows().filter_map(|row| number(batch, row, LEVEL)).all(|n| inside(n.to_f64())));
        prop_assert!(tree.node_ref(node).field_range(0).is_none(), "a time has no numeric range");
        Ok(())
    })?;
    prop_assert_eq!(nodes, tree.nodes());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_finds_what_a_scan_finds(kind in kinds(), events in events(), questions in questions()) {
        let (batch, keys) = sorted(kind, &events);
        check(&build(&batch, &keys, &[]), &batch, &questions)?;
    }

    #[test]
    fn batches_of_any_size_build_the_same_trees(
        kind in kinds(),
        events in events(),
        cuts in prop::collection::vec(0..1200usize, 0..12),
        questions in questions(),
    ) {
        let (batch, keys) = sorted(kind, &events);
        check(&build(&batch, &keys, &cuts), &batch, &questions)?;
    }

    #[test]
    fn a_cover_is_its_leaves(kind in kinds(), events in events(), times in 1..8usize, ends in (0..5000u32, 0..5000u32)) {
        let events: Vec<Event> = events.iter().cycle().take(events.len() * times).cloned().collect();
        let (batch, keys) = sorted(kind, &events);
        for tree in &build(&batch, &keys, &[]).trees {
            let (a, b) = (ends.0 % (tree.leaves() + 1), ends.1 % (tree.leaves() + 1));
            let leaves = a.min(b)..a.max(b);
            let cover = tree.cover(leaves.clone());
            let first = tree.all_rows().start;
            let row = |leaf: u32| (first + leaf * LEAF_ROWS as u32).min(tree.all_rows().end) as usize;
            for ordinal in [COUNT, LEVEL] {
                let rows = row(leaves.start)..row(leaves.end);
                check_summary(&tree.summary_of(&cover, ordinal), &scan(&batch, rows, ordinal))?;
            }
            // At most the siblings to the left and right of each level, and the top.
            prop_assert!(cover.nodes() <= 30 * 3 + 16, "{} nodes over {} leaves", cover.nodes(), leaves.len());
            prop_assert_eq!(cover.nodes() == 0, leaves.is_empty());
        }
    }

    #[test]
    fn a_tree_over_time_answers_as_a_scan_does(kind in kinds(), events in events(), questions in questions()) {
        let batch = batch(kind, &events);
        let mut rows: Vec<u32> = (0..events.len() as u32).collect();
        rows.sort_by_key(|&row| batch.interval(row as usize));
        let batch = batch.take(&rows);
        let mut builder = ForestBuilder::over_time(batch.schema());
        for rows in pieces(batch.rows(), &[10, 64, 100]) {
            builder.push_ordered(&batch.slice(rows.start, rows.len())).unwrap();
        }
        let forest = builder.finish();
        prop_assert_eq!(forest.trees.len(), usize::from(!events.is_empty()));
        for question in &questions {
            let expected: Vec<usize> = (0..batch.rows()).filter(|&row| question.matches(&batch, row)).collect();
            let (rows, summary, _) = ask(&forest.trees, &batch, question, LEVEL);
            prop_assert_eq!(&rows, &expected);
            check_summary(&summary, &scan(&batch, expected.into_iter(), LEVEL))?;
        }
    }
}

/// Points anywhere in a region of 40 by 20 degrees, one a minute.
fn small_points(count: usize) -> Vec<Event> {
    let mut seed = 3u64;
    let mut part = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    };
    let event = |i: usize| {
        let (lon, lat) = (part() * 40.0 - 10.0, part() * 20.0 + 40.0);
        Event {
            place: Some([lon, lat, lon, lat]),
            start: Some(i as i64 * 60_000_000),
            duration: Some(0),
            count: Some(i as i64),
            level: (!i.is_multiple_of(5)).then_some(0.1 * i as f64),
        }
    };
    (0..count).map(event).collect()
}

#[test]
fn many_rows_are_summarised_by_many_threads_alike() {
    let mut events = small_points(40_000);
    for (i, event) in events.iter_mut().enumerate().step_by(97) {
        event.place = (i.is_multiple_of(2)).then_some([-180.0, -90.0, 180.0, 90.0]);
    }
    let questions = [
        Question { place: Some([9.0, 49.0, 20.0, 51.0]), time: None, level: None },
        Question {
            place: Some([10.0, 50.0, 10.5, 50.5]),
            time: Some((0, 1_000_000_000_000)),
            level: Some((5.0, 50.0)),
        },
    ];
    for kind in [POINTS, LINES] {
        let (batch, keys) = sorted(kind, &events);
        check(&build(&batch, &keys, &[]), &batch, &questions).unwrap();
        check(&build(&batch, &keys, &[1, 17_000, 17_001, 39_990]), &batch, &questions).unwrap();
    }
}

#[test]
fn huge_boxes_do_not_inflate_the_leaves_of_small_ones() {
    // Three hours of the second week.
    let time = Some((800_000_000_000, 810_800_000_000));
    let question = Question { place: Some([10.0, 50.0, 11.0, 51.0]), time, level: None };
    let small = small_points(20_000);
    let (batch, keys) = sorted(LINES, &small);
    let forest = build(&batch, &keys, &[]);
    let (_, _, alone) = ask(&forest.trees, &batch, &question, COUNT);

    // Countries, continents and open ends that overlap the query, one for each hundred small ones.
    let mut mixed = small;
    for i in 0..200 {
        let degrees = f64::from(1 << (i % 6));
        // Centred anywhere from which they still overlap the query.
        let (lon, lat) =
            (10.5 + degrees * (i as f64 * 0.37 % 2.0 - 1.0), 50.5 + degrees * (i as f64 * 0.23 % 1.0 - 0.5));
        let (start, duration) = match i % 3 {
            0 => (Some(i * 6_000_000_000), Some(1)),
            1 => (Some(i * 6_000_000_000), Some(400 * 86_400_000_000)),
            _ => (Some(i * 6_000_000_000), None),
        };
        let place = Some([lon - degrees, lat - degrees / 2.0, lon + degrees, lat + degrees / 2.0]);
        mixed.push(Event { place, start, duration, count: None, level: None });
    }
    let (batch, keys) = sorted(LINES, &mixed);
    let forest = build(&batch, &keys, &[]);
    let (rows, _, together) = ask(&forest.trees, &batch, &question, COUNT);
    assert_eq!(rows, (0..batch.rows()).filter(|&row| question.matches(&batch, row)).collect::<Vec<_>>());
    let small_tree = forest.trees.iter().find(|tree| tree.class() == 0).unwrap();
    assert_eq!(small_tree.all_rows().len(), 20_000);
    let (_, _, in_small_tree) = ask(std::slice::from_ref(small_tree), &batch, &question, COUNT);
    assert_eq!(in_small_tree, alone);
    let nodes_of_others: usize = forest.trees.iter().filter(|tree| tree.class() != 0).map(Tree::nodes).sum();
    assert!(nodes_of_others < 50);
    assert!(together.nodes_visited <= alone.nodes_visited + nodes_of_others as u64);

    // Among the small ones, at the same centres, they would more than double the visited nodes.
    let grid = Grid::of(batch.schema());
    let centre = |row: usize| {
        let box_of = batch.bounds(row);
        grid.key(&Bounds::point((box_of.west + box_of.east) / 2.0, (box_of.south + box_of.north) / 2.0, box_of.start))
    };
    let mut one_class: Vec<(Key, u32)> = (0..batch.rows()).map(|row| (centre(row), row as u32)).collect();
    one_class.sort_unstable();
    let batch = batch.take(&one_class.iter().map(|r| r.1).collect::<Vec<_>>());
    let forest = build(&batch, &one_class.iter().map(|r| r.0).collect::<Vec<_>>(), &[]);
    let (_, _, shared) = ask(&forest.trees, &batch, &question, COUNT);
    assert!(shared.nodes_visited > 2 * together.nodes_visited, "{shared:?} {together:?} {alone:?}");
}

#[test]
fn a_visitor_ends_the_walk() {
    let (batch, keys) = sorted(POINTS, &small_points(5_000));
    let forest = build(&batch, &keys, &[]);
    let mut visits = 0;
    let stats =
        forest.trees[0].walk(&mut |node| if node.is_leaf() { Relation::All } else { Relation::Some }, &mut |visit| {
            visits += 1;
            assert_eq!(visit.rows.len(), LEAF_ROWS);
            if visits == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    assert_eq!((visits, stats.nodes_whole, stats.leaves_tested, stats.stopped), (3, 3, 0, true));
}

#[test]
fn what_matches_nowhere_costs_one_node() {
    let (batch, keys) = sorted(POINTS, &small_points(5_000));
    let forest = build(&batch, &keys, &[]);
    let far = Question { place: Some([-100.0, -50.0, -90.0, -40.0]), time: None, level: None };
    let (rows, _, stats) = ask(&forest.trees, &batch, &far, COUNT);
    assert_eq!((rows.len(), stats.nodes_visited), (0, 1));
}

#[test]
fn a_tree_over_time_is_never_whole_for_a_question_of_place() {
    let mut events = small_points(500);
    events[7].place = None;
    let batch = batch(POINTS, &events);
    let mut builder = ForestBuilder::over_time(batch.schema());
    builder.push_ordered(&batch).unwrap();
    let forest = builder.finish();
    assert!(!forest.trees[0].knows_place());
    let world = Question { place: Some([-180.0, -90.0, 180.0, 90.0]), time: None, level: None };
    let (rows, _, stats) = ask(&forest.trees, &batch, &world, COUNT);
    assert_eq!((rows.len(), stats.nodes_whole), (499, 0));
}

#[test]
fn rows_out_of_order_or_incomplete_are_refused() {
    let (batch, keys) = sorted(POINTS, &small_points(10));
    let mut builder = ForestBuilder::new(batch.schema());
    assert!(builder.push(&batch, &keys[1..]).is_err(), "a key is missing");
    let mut backwards = keys.clone();
    backwards.reverse();
    assert!(builder.push(&batch, &backwards).is_err());
    builder.push(&batch, &keys).unwrap();
    assert!(builder.push(&batch, &keys).is_err(), "the second push begins before the end of the first");
    let mut wanted = meridian_model::Projection::none(batch.layout());
    wanted.add_time(batch.layout(), batch.schema());
    let mut builder = ForestBuilder::new(batch.schema());
    assert!(builder.push(&batch.project(&wanted), &keys).is_err(), "without places");
    wanted.add_boxes(batch.layout());
    assert!(builder.push(&batch.project(&wanted), &keys).is_err(), "without numbers");
    assert_eq!(builder.rows(), 0);
}

#[test]
fn a_field_added_later_has_no_values_in_older_trees() {
    let (batch, keys) = sorted(POINTS, &small_points(100));
    let tree = build(&batch, &keys, &[]).trees[0].clone();
    let root = tree.root().unwrap();
    assert_eq!(tree.summary(root, 2).count, 0);
    assert!(tree.node_ref(root).field_range(5).is_none());
    let mut sum = Summary::FLOAT;
    sum.merge(&tree.summary(root, 2));
    sum.add(Number::Float(1.5));
    assert_eq!((sum.count, sum.mean()), (1, Some(1.5)));
}

#[test]
fn a_forest_of_no_rows_has_no_trees() {
    let forest = ForestBuilder::new(&schema(POINTS)).finish();
    assert_eq!((forest.trees.len(), forest.rows()), (0, 0));
    assert_eq!(forest.bounds(), Bounds::EMPTY);
    let shared: Arc<Forest> = Arc::new(Forest::decode(&forest.encode()).unwrap());
    assert_eq!(*shared, forest);
}
