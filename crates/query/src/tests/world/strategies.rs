//! Strategies for events, writes, kinds of collections and filters.

use super::{Event, Filter, HOUR, Kind, Op, Places, Spot, Times};
use meridian_model::Seq;
use proptest::prelude::*;

/// Longitudes that touch each other, the antimeridian and the edges of the world.
pub(crate) fn lons() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-6i32..=6).prop_map(|i| f64::from(i) * 30.0),
        4 => -180.0..=180.0f64,
        2 => (-10.0..=10.0f64).prop_map(|d| if d < 0.0 { 180.0 + d } else { -180.0 + d }),
        3 => 10.0..11.0f64,
    ]
}

pub(crate) fn lats() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-3i32..=3).prop_map(|i| f64::from(i) * 30.0),
        4 => -90.0..=90.0f64,
        1 => prop_oneof![89.0..=90.0f64, -90.0..=-89.0f64],
        3 => 50.0..51.0f64,
    ]
}

fn spots() -> impl Strategy<Value = Spot> {
    let rect = |(a, b): (f64, f64), (c, d): (f64, f64)| {
        let (w, e) = (a.min(c), a.max(c));
        let (s, n) = (b.min(d), b.max(d));
        if w < e && s < n { Spot::Rect([w, s, e, n]) } else { Spot::Point(w, s) }
    };
    prop_oneof![
        1 => Just(Spot::Nowhere),
        8 => (lons(), lats()).prop_map(|(x, y)| Spot::Point(x, y)),
        1 => ((lons(), lats()), (lons(), lats())).prop_map(move |(a, b)| rect(a, b)),
        3 => ((lons(), lats()), (0.0..2.0f64, 0.0..2.0f64)).prop_map(move |((x, y), (w, h))| {
            rect((x, y), ((x + w).min(180.0), (y + h).min(90.0)))
        }),
    ]
}

pub(crate) fn instants() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0i64..400).prop_map(|h| 1_760_000_400_000_000 + h * HOUR),
        4 => 1_760_000_000_000_000i64..1_763_000_000_000_000,
        1 => -2_000_000_000_000_000i64..2_000_000_000_000_000,
    ]
}

fn spans() -> impl Strategy<Value = (i64, i64)> {
    (instants(), prop_oneof![Just(0i64), 0..HOUR, 0..1000 * HOUR], 0u8..10).prop_map(|(start, length, open)| match open
    {
        0 => (i64::MIN, start),
        1 => (start, i64::MAX),
        _ => (start, start + length),
    })
}

pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "Z", "é", ""]).prop_map(str::to_owned)
}

pub(crate) fn events() -> impl Strategy<Value = Event> {
    (
        spots(),
        spans(),
        prop::option::weighted(0.8, -5i64..6),
        prop::option::weighted(0.8, prop_oneof![(-4i32..5).prop_map(f64::from), -1e6..1e6f64]),
        prop::option::weighted(0.8, texts()),
        prop::option::weighted(0.8, any::<bool>()),
    )
        .prop_map(|(spot, (start, end), n, x, s, b)| Event {
            id: String::new(),
            spot,
            start,
            end,
            n,
            x,
            s,
            b,
            seq: Seq(0),
        })
}

pub(crate) fn batches(most: usize) -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![
        3 => prop::collection::vec(events(), 1..most),
        // Some events many times, so that there are nodes with a single value and trees of several levels.
        1 => (prop::collection::vec(events(), 1..20), 1..most).prop_map(|(events, times)| {
            events.iter().cycle().take(events.len() * times.min(40)).cloned().collect()
        }),
    ]
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => batches(80).prop_map(Op::Write),
        2 => (1usize..7, prop::collection::vec(events(), 1..20)).prop_map(|(every, e)| Op::Replace(every, e)),
        1 => (1usize..9).prop_map(Op::Delete),
        2 => Just(Op::Flush),
        1 => Just(Op::Maintain),
    ];
    prop::collection::vec(op, 1..9)
}

pub(crate) fn kinds() -> impl Strategy<Value = Kind> {
    (
        prop_oneof![1 => Just(Places::None), 4 => Just(Places::Points), 3 => Just(Places::Shapes)],
        prop_oneof![1 => Just(Times::None), 4 => Just(Times::Instant), 3 => Just(Times::Interval)],
        prop::bool::weighted(0.3),
    )
        .prop_map(|(places, times, made_ids)| Kind { places, times, made_ids })
}

pub(crate) fn bboxes() -> impl Strategy<Value = [f64; 4]> {
    prop_oneof![
        2 => (lons(), lats(), lons(), lats()).prop_map(|(w, a, e, b)| [w, a.min(b), e, a.max(b)]),
        1 => (lons(), lats(), 0.0..3.0f64, 0.0..3.0f64)
            .prop_map(|(w, s, dx, dy)| [w, s, (w + dx).min(180.0), (s + dy).min(90.0)]),
        1 => Just([-180.0, -90.0, 180.0, 90.0]),
    ]
}

pub(crate) fn filters() -> impl Strategy<Value = Filter> {
    let plain = prop_oneof![
        2 => Just(Filter::All),
        4 => bboxes().prop_map(Filter::Bbox),
        3 => (instants(), instants(), 0u8..8).prop_map(|(a, b, open)| match open {
            0 => Filter::During(i64::MIN, a),
            1 => Filter::During(a, i64::MAX),
            _ => Filter::During(a.min(b), a.max(b)),
        }),
        3 => (lons(), lats(), prop_oneof![0.0..100_000.0f64, 0.0..2.1e7f64]).prop_map(|(x, y, r)| Filter::Near(x, y, r)),
        1 => (-6i64..6).prop_map(Filter::More),
        1 => (-5.0..5.0f64).prop_map(Filter::Less),
        1 => texts().prop_map(Filter::Same),
        1 => any::<bool>().prop_map(Filter::Flag),
        1 => Just(Filter::NoValue),
    ];
    let combined = plain.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|f| Filter::Not(Box::new(f))),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Filter::And(Box::new(a), Box::new(b))),
            1 => (inner.clone(), inner).prop_map(|(a, b)| Filter::Or(Box::new(a), Box::new(b))),
        ]
    });
    prop_oneof![
        9 => combined,
        1 => prop::collection::vec(any::<usize>(), 0..8).prop_map(Filter::Ids),
    ]
}
